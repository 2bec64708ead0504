// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters, devices and contexts.

mod chain;
mod devices;
mod enumerate;
mod query;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("adapters")
        .with(enumerate::tests)
        .with(query::tests)
        .with(devices::tests)
        .with(chain::tests)
        .run()
}
