// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware queues that the process fills by itself: rings, control pages, doorbells.

mod ends;
mod power;
mod refusals;
mod removal;
mod rings;
mod victims;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("user queues")
        .with(rings::tests)
        .with(refusals::tests)
        .with(victims::tests)
        .with(ends::tests)
        .with(power::tests)
        .with(removal::tests)
        .run()
}
