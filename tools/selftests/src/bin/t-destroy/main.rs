// SPDX-License-Identifier: MIT OR Apache-2.0
//! DestroyAllocation2, and every other end of allocations and resources.

mod ends;
mod lists;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("destroy")
        .with(lists::tests)
        .with(ends::tests)
        .run()
}
