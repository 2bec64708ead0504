// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paging queues, residency, GPU addresses and local memory.

mod addresses;
mod budget;
mod contents;
mod evictions;
mod full;
mod many_ranges;
mod notices;
mod offers;
mod offers_shared;
mod offers_system;
mod pages_64kb;
mod placement;
mod profiles;
mod queues;
mod reserve;
mod residency;
mod statistics;
mod undone;
mod updates;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("gpu-memory")
        .with(queues::tests)
        .with(residency::tests)
        .with(evictions::tests)
        .with(offers::tests)
        .with(offers_shared::tests)
        .with(offers_system::tests)
        .with(notices::tests)
        .with(placement::tests)
        .with(addresses::tests)
        .with(reserve::tests)
        .with(many_ranges::tests)
        .with(updates::tests)
        .with(undone::tests)
        .with(contents::tests)
        .with(full::tests)
        .with(budget::tests)
        .with(profiles::tests)
        .with(pages_64kb::tests)
        .with(statistics::tests)
        .run()
}
