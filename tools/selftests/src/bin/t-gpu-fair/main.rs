// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whoever keeps engines, queues and the pager busy does not keep others from them. Progress is
//! counted in rounds: a test ends when the other side has done them all, however long that takes.

mod engines;
mod kernel;
mod processors;
mod queues;

use std::time::Duration;

use selftests::Suite;

/// How long queues whose work does not end may take to end after their process.
const SETTLE: Duration = Duration::from_secs(30);

pub(crate) fn main() {
    Suite::new("gpu-fair")
        .settle(SETTLE)
        .with(engines::tests)
        .with(queues::tests)
        .with(processors::tests)
        .with(kernel::tests)
        .run()
}
