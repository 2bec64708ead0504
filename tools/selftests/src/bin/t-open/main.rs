// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking about shared resources and opening them, by global and by NT handle; the one blob of
//! runtime data.

mod adapters;
mod at_once;
mod blob;
mod guards;
mod query;
mod sizes;
mod success;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("open")
        .with(query::tests)
        .with(sizes::tests)
        .with(success::tests)
        .with(at_once::tests)
        .with(guards::tests)
        .with(adapters::tests)
        .with(blob::tests)
        .run()
}
