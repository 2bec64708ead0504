// SPDX-License-Identifier: GPL-2.0

//! The scratch area of the paging process: addresses that show the memory of one batch after the
//! other (MEM-61, MEM-67). Where a batch is in it says `logic/paging_scratch.rs`.
//!
//! Its page tables are there from the start. An entry is good until a later batch has the page;
//! only contexts of the paging process could use it meanwhile, which run what the KMD has built and
//! nothing else.

use super::address_space::AddressSpace;
use crate::{
    ddi::paging::{
        PageSize,
        PageTableEntry, //
    },
    error::DxgResult,
    logic::table_tree::{
        Content,
        Pages,
        Shows, //
    }, //
};

/// Pages of the scratch area that are to show something.
pub(super) struct Window<'a> {
    /// Where they begin, in pages.
    pub(super) first: u64,
    /// How many they are.
    pub(super) count: u64,
    /// What they show, for the log.
    pub(super) shows: Shows,
    /// The entry of the one that is so many pages behind the first.
    pub(super) entry: &'a dyn Fn(u64) -> PageTableEntry,
}

impl AddressSpace {
    /// These pages get page tables, and keep them.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn claim_scratch(&self, first: u64, end: u64) -> DxgResult {
        let mut state = self.state.lock();
        let (_, tables) = state.fences();
        let claimed = tables.claim(first, end, PageSize::Kib4);

        tables.finish(first, end);
        claimed
    }

    /// Has pages beside each other show something else. On return nobody uses what they showed
    /// before. The records of this have the number `batch`.
    ///
    /// Context: may sleep, no spinlocks held.
    pub(super) fn show_scratch(&self, batch: u64, windows: &[Window<'_>]) {
        let mut state = self.state.lock();
        let (_, tables) = state.fences();
        let end = |window: &Window<'_>| window.first.saturating_add(window.count);
        let first = windows.first().map_or(0, |window| window.first);
        let last = windows.last().map_or(0, end);

        tables.begin(batch);
        for window in windows {
            let pages = Pages {
                first: window.first,
                end: end(window),
                // By an older batch.
                were_valid: true,
                evicted: false,
                driver_protection: 0,
                shows: window.shows,
            };

            tables.write(
                &pages,
                Content::Each(&mut |page| (window.entry)(page.saturating_sub(window.first))),
            );
        }
        tables.finish(first, last);
    }
}
