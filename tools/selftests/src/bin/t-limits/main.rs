// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits: handles, waits, descriptors, memory, and who may open what.

mod memory;
mod permission;
mod quota;

use selftests::Suite;

fn main() {
    Suite::new("limits")
        .with(quota::tests)
        .with(memory::tests)
        .with(permission::tests)
        .run()
}
