// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sharing: NT handles, global handles, and descriptors to poll.

mod access;
mod files;
mod global;
mod open;
mod points;
mod sets;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("share")
        .with(sets::tests)
        .with(access::tests)
        .with(open::tests)
        .with(global::tests)
        .with(files::tests)
        .with(points::tests)
        .run()
}
