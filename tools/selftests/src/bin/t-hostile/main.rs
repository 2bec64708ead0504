// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process does to others that it is not trusted by: nothing.

mod descriptors;
mod open;
mod pins;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("hostile")
        .with(open::tests)
        .with(descriptors::tests)
        .with(pins::tests)
        .run()
}
