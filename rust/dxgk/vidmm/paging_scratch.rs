// SPDX-License-Identifier: GPL-2.0

//! The scratch area of the paging process: addresses that show the memory of one batch after the
//! other (MEM-61, MEM-67). Where a batch is in it says `logic/paging_scratch.rs`.
//!
//! Its page tables are there from the start, and the paging node or the processor writes to them.
//! An entry is good until a later batch has the page; only contexts of the paging process could use
//! it meanwhile, which run what the KMD has built and nothing else.

use super::address_space::AddressSpace;
use crate::{
    ddi::paging::{
        PageEntry,
        PageSize,
        PageTableEntry, //
    },
    error::DxgResult,
    logic::{
        gpu_ranges::Bounds,
        paging_scratch::PagingSpace,
        table_tree::{
            Content,
            Pages,
            Shows, //
        }, //
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
    /// The entry of the one that is so many pages behind the first, as in [`Content::Each`].
    pub(super) entry: &'a dyn Fn(u64) -> (PageTableEntry, u64),
}

impl AddressSpace {
    /// It is that of a paging process, which is divided like this: has page tables made that stay.
    /// If the paging node is to write to those of the scratch area, all there will ever be are made
    /// at once, and the first one of level 0 is the system page table: it shows where those of the
    /// scratch area are, and itself nowhere (MEM-61, MEM-73). The processor writes them (MEM-63).
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn prepare_paging(&self, at: &PagingSpace) -> DxgResult {
        let mut state = self.state.lock();
        let (_, tables) = state.fences();
        let levels = tables.levels();
        let table = levels.pages_of_table(0);
        let Bounds { first, end } = at.scratch;
        let mut prepare = || {
            if !at.by_node {
                tables.claim(first, end, PageSize::Kib4)?;
                return tables.claim(at.buffer, at.buffer.saturating_add(1), PageSize::Kib4);
            }
            tables.prepare(0, at.end())?;
            tables.claim(0, at.end(), PageSize::Kib4)?;
            for number in levels.table(0, first)..=levels.table(0, end.saturating_sub(1)) {
                if let Some(at) = tables.leaf(number) {
                    tables.write_one(number, entry(at.segment, at.offset, false), false);
                }
            }
            Ok(())
        };
        let prepared = prepare();

        tables.finish(0, table);
        prepared
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

/// The entry by which the paging process has a page.
pub(super) fn entry(segment: u32, address: u64, read_only: bool) -> PageTableEntry {
    PageTableEntry::Page(PageEntry {
        segment,
        address,
        page_size: PageSize::Kib4,
        read_only,
        no_execute: false,
        system_use_only: true,
        cache_coherent: false,
    })
}
