// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races: several threads on the same objects, for a fixed number of rounds (`OPENDXG_TEST_ROUNDS`
//! multiplies it). No sleep decides a result; a stuck thread is ended by the watchdog of the suite
//! and is a failure.

mod fetch;
mod files;
mod handles;
mod ordering;
mod waits;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("races")
        .with(handles::tests)
        .with(fetch::tests)
        .with(files::tests)
        .with(waits::tests)
        .with(ordering::tests)
        .run()
}
