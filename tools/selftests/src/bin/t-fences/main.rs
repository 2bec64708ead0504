// SPDX-License-Identifier: MIT OR Apache-2.0
//! Monitored fences and the other synchronisation objects, as far as the CPU uses them.

mod asynchronous;
mod blocking;
mod create;
mod flags;
mod kinds;
mod latch;
mod lists;
mod on_event;
mod order;
mod orphans;
mod points;
mod signal;
mod streams;
mod timelines;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("fences")
        .with(create::tests)
        .with(flags::tests)
        .with(kinds::tests)
        .with(asynchronous::tests)
        .with(blocking::tests)
        .with(latch::tests)
        .with(lists::tests)
        .with(signal::tests)
        .with(orphans::tests)
        .with(points::tests)
        .with(streams::tests)
        .with(on_event::tests)
        .with(timelines::tests)
        .with(order::tests)
        .run()
}
