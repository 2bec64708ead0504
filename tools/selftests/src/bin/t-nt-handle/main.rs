// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three name spaces, and sharing, over all kinds of objects (RES-6 to RES-17, RES-32 to
//! RES-37).

mod access;
mod duplicates;
mod fence;
mod files;
mod open;
mod privacy;
mod query;
mod sets;
mod spaces;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("nt-handle")
        .with(spaces::tests)
        .with(files::tests)
        .with(open::tests)
        .with(query::tests)
        .with(privacy::tests)
        .with(duplicates::tests)
        .with(sets::tests)
        .with(access::tests)
        .with(fence::tests)
        .run()
}
