// SPDX-License-Identifier: MIT OR Apache-2.0
//! Submission to contexts and hardware queues, and what queues wait for and signal.

mod buffers;
mod ends;
mod hw_queues;
mod legacy;
mod lists;
mod many;
mod order;
mod refusals;
mod types;
mod usage;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("gpu-submit")
        .with(buffers::tests)
        .with(refusals::tests)
        .with(order::tests)
        .with(lists::tests)
        .with(types::tests)
        .with(legacy::tests)
        .with(hw_queues::tests)
        .with(ends::tests)
        .with(many::tests)
        .with(usage::tests)
        .run()
}
