// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to the whole machine while engines work: processors go, and everything freezes.

mod freeze;
mod processors;

use std::time::Duration;

use selftests::Suite;

/// How long queues whose work does not end may take to end after their process.
const SETTLE: Duration = Duration::from_secs(30);

pub(crate) fn main() {
    Suite::new("gpu-machine")
        .settle(SETTLE)
        .with(freeze::tests)
        .with(processors::tests)
        .run()
}
