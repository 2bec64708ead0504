// SPDX-License-Identifier: MIT OR Apache-2.0
//! dma-bufs: those that we export, those of others that we import, and what the others do with
//! ours.

mod engines;
mod exporters;
mod exports;
mod fences;
mod importers;
mod imports;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("dmabuf")
        .with(exports::tests)
        .with(importers::tests)
        .with(imports::tests)
        .with(exporters::tests)
        .with(engines::tests)
        .with(fences::tests)
        .run()
}
