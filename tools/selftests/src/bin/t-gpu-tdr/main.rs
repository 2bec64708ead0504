// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timeout detection and recovery: work that takes too long, engines that do not answer, resets
//! that fail, and that nobody else notices.

mod adapters;
mod beside;
mod engines;
mod faulty;
mod queues;
mod refusals;
mod reports;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("timeout detection and recovery")
        .with(queues::tests)
        .with(engines::tests)
        .with(beside::tests)
        .with(adapters::tests)
        .with(refusals::tests)
        .with(reports::tests)
        .run()
}
