// SPDX-License-Identifier: MIT OR Apache-2.0
//! Software adapters that are made and removed at run time, with clients inside.

mod attributes;
mod counters;
mod fdinfo;
mod removal;
mod storm;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("soft adapters")
        .with(attributes::tests)
        .with(counters::tests)
        .with(fdinfo::tests)
        .with(removal::tests)
        .with(storm::tests)
        .run()
}
