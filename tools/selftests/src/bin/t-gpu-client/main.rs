// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of a client that was written for another driver, from its memory to the end of its
//! work. `t-c-gpu-client` makes the same calls in C.

mod sequence;
mod unknown;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("gpu-client")
        .with(sequence::tests)
        .with(unknown::tests)
        .run()
}
