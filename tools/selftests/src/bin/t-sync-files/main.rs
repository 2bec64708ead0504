// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sync files: points of monitored fences for Linux, and fences of other drivers for contexts.

mod buffers;
mod ends;
mod exports;
mod opened;
mod refusals;
mod timelines;
mod waits;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("sync-files")
        .with(exports::tests)
        .with(refusals::tests)
        .with(waits::tests)
        .with(ends::tests)
        .with(opened::tests)
        .with(buffers::tests)
        .with(timelines::tests)
        .run()
}
