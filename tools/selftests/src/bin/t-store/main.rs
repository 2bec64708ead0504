// SPDX-License-Identifier: MIT OR Apache-2.0
//! The information store of shareable objects (RES-55 to RES-66).

mod atomic;
mod attachable;
mod cycles;
mod entries;
mod files;
mod limits;
mod notice;
mod reach;
mod round_trip;
mod schemas;
mod writers;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("store")
        .with(entries::tests)
        .with(schemas::tests)
        .with(reach::tests)
        .with(files::tests)
        .with(attachable::tests)
        .with(cycles::tests)
        .with(round_trip::tests)
        .with(writers::tests)
        .with(notice::tests)
        .with(limits::tests)
        .with(atomic::tests)
        .run()
}
