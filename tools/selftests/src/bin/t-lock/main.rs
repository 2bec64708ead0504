// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lock2: mappings of allocations, who has them, and how they end (RES-89, RES-108).

mod calls;
mod mappings;
mod revoke;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("lock")
        .with(calls::tests)
        .with(mappings::tests)
        .with(revoke::tests)
        .run()
}
