// SPDX-License-Identifier: GPL-2.0

//! What root may change about the memory manager of an adapter, for tests (MEM-107). What was never
//! changed costs one load where it matters.

use crate::{
    ddi::paging::{
        Built,
        PAGING_BUFFER_DWORDS, //
    },
    logic::gpu_ranges::PAGE,
    sys::random, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            AtomicFlag,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// Fewest dwords of a paging buffer: one packet.
const FEWEST_DWORDS: u32 = 8;

/// The switches of one adapter.
pub(in crate::dxgk) struct PagingSwitches {
    scratch_pages: Atomic<u32>,
    buffer_dwords: Atomic<u32>,
    faults: AtomicFlag,
    /// How many builds it is until one fails; 0 for none.
    fail_in: Atomic<u32>,
    /// How many until one finds its allocation busy.
    busy_in: Atomic<u32>,
    segment_pages: Atomic<u32>,
    by_chance: AtomicFlag,
}

impl PagingSwitches {
    /// All is as it is without tests.
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        let switches = Self {
            scratch_pages: Atomic::new(u32::MAX),
            buffer_dwords: Atomic::new(u32::MAX),
            faults: AtomicFlag::new(false),
            fail_in: Atomic::new(0),
            busy_in: Atomic::new(0),
            segment_pages: Atomic::new(u32::MAX),
            by_chance: AtomicFlag::new(false),
        };

        Arc::new(switches, GFP_KERNEL)
    }

    /// Batches from the next one on use so many pages of the scratch area, two at least.
    pub(super) fn limit_scratch(&self, pages: u32) {
        self.scratch_pages.store(pages.max(2), Relaxed);
    }

    /// How many pages of a scratch area with so many are used.
    pub(super) fn scratch_pages(&self, area: u64) -> u64 {
        area.min(self.scratch_pages.load(Relaxed).into())
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

    /// The KMD fails at this BuildPagingBuffer for the paging node; the next one is 1.
    pub(super) fn fail_build(&self, number: u32) {
        self.fail_in.store(number, Relaxed);
    }

    /// It says at this one that the allocation is busy.
    pub(super) fn find_busy(&self, number: u32) {
        self.busy_in.store(number, Relaxed);
    }

    /// What is said instead of the KMD about a BuildPagingBuffer for the paging node.
    ///
    /// Context: one build at a time.
    pub(super) fn take_build(&self) -> Option<Built> {
        if counts_down(&self.fail_in) {
            return Some(Built::Failed);
        }
        counts_down(&self.busy_in).then_some(Built::AllocationBusy)
    }

    /// Allocations get so many pages of each segment from now on. What has more keeps it.
    pub(super) fn limit_segments(&self, pages: u32) {
        self.segment_pages.store(pages, Relaxed);
    }

    /// How many bytes of a segment of so many bytes are used at most.
    pub(super) fn segment_bytes(&self, size: u64) -> u64 {
        let pages = u64::from(self.segment_pages.load(Relaxed));

        size.min(pages.saturating_mul(PAGE))
    }

    /// Whether chance chooses what gives way.
    pub(super) fn choose_by_chance(&self, is_random: bool) {
        self.by_chance.store(is_random, Relaxed);
    }

    /// Which of so many that could give way does so; 0 is the one whose turn it is.
    pub(super) fn victim(&self, count: impl FnOnce() -> usize) -> usize {
        match self.by_chance.load(Relaxed) {
            // CAST: 32 bits fit a usize; there are fewer allocations than 2^32.
            true => random::below(count() as u32) as usize,
            false => 0,
        }
    }
}

/// Counts one build; whether it is the one that was asked for.
fn counts_down(left: &Atomic<u32>) -> bool {
    let before = left.load(Relaxed);

    if before != 0 {
        left.store(before - 1, Relaxed);
    }
    before == 1
}
