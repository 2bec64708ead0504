// SPDX-License-Identifier: GPL-2.0

//! What root may change about the paging node of an adapter, for tests (MEM-107).

use crate::{
    ddi::paging::PAGING_BUFFER_DWORDS,
    logic::paging_scratch::PAGES, //
};
use kernel::sync::atomic::{
    Atomic,
    AtomicFlag,
    Full,
    Relaxed, //
};

/// Fewest dwords of a paging buffer: one packet.
const FEWEST_DWORDS: u32 = 8;

/// The switches of one adapter.
pub(super) struct PagingSwitches {
    scratch_pages: Atomic<u32>,
    buffer_dwords: Atomic<u32>,
    faults: AtomicFlag,
}

impl PagingSwitches {
    /// All is as it is without tests.
    pub(super) fn new() -> Self {
        Self {
            scratch_pages: Atomic::new(u32::MAX),
            buffer_dwords: Atomic::new(u32::MAX),
            faults: AtomicFlag::new(false),
        }
    }

    /// Batches from the next one on use so many pages of the scratch area, two at least.
    pub(super) fn limit_scratch(&self, pages: u32) {
        self.scratch_pages.store(pages.max(2), Relaxed);
    }

    /// How many pages of the scratch area are used.
    pub(super) fn scratch_pages(&self) -> u64 {
        PAGES.min(self.scratch_pages.load(Relaxed).into())
    }

    /// Paging buffers from the next one on have so many dwords, one packet at least.
    pub(super) fn limit_buffer(&self, dwords: u32) {
        self.buffer_dwords.store(dwords.max(FEWEST_DWORDS), Relaxed);
    }

    /// How many dwords a paging buffer has.
    pub(super) fn buffer_dwords(&self) -> usize {
        // CAST: 32 bits fit a usize.
        PAGING_BUFFER_DWORDS.min(self.buffer_dwords.load(Relaxed) as usize)
    }

    /// The next batch finds none of its pages.
    pub(super) fn fault_once(&self) {
        self.faults.store(true, Relaxed);
    }

    /// Whether this batch is to find none of its pages.
    pub(super) fn take_fault(&self) -> bool {
        self.faults.load(Relaxed) && self.faults.xchg(false, Full)
    }
}
