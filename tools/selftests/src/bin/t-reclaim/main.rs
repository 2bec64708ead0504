// SPDX-License-Identifier: MIT OR Apache-2.0
//! System memory that is short: whom it is charged to, what is swapped, and what is discarded
//! (MEM-108, MEM-111).

mod charged;
mod discarded;
mod killed;
mod swapped;

use selftests::Suite;

pub(crate) fn main() {
    Suite::new("reclaim")
        .with(charged::tests)
        .with(swapped::tests)
        .with(discarded::tests)
        .with(killed::tests)
        .run()
}

const MIB: u64 = 1 << 20;
