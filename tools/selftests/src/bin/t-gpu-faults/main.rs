// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that is refused by the engine: illegal packets and page faults, what becomes of the device,
//! and that nobody else notices.

mod illegal;
mod others;
mod page;
mod released;

use std::time::Duration;

use selftests::Suite;

/// How long queues whose work does not end may take to end after their process.
const SETTLE: Duration = Duration::from_secs(30);

pub(crate) fn main() {
    Suite::new("gpu-faults")
        .settle(SETTLE)
        .with(illegal::tests)
        .with(page::tests)
        .with(released::tests)
        .with(others::tests)
        .run()
}
