// SPDX-License-Identifier: GPL-2.0

//! What is under the lock of an address space: ranges, and the page tables that say the same.

use crate::{
    ddi::paging::PageTableEntry,
    dxgk::vidmm::{
        fence_pages::FencePages,
        page_tables::PageTables,
        ranges::{
            places,
            Place,
            RangeTree, //
        },
        residency::AllocationMemory,
        undo::Undo, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::{
            self,
            Finder,
            Mapping,
            Range,
            Stretch,
            What,
            MAX_STRETCHES, //
        },
        range_undo::Run,
        table_tree::{
            Content,
            Pages, //
        }, //
    }, //
};
use kernel::{
    prelude::*,
    rbtree::RBTree,
    sync::Arc, //
};

/// What is under the lock.
pub(in crate::dxgk::vidmm) struct State {
    pub(super) ranges: RangeTree,
    pub(super) finder: Finder,
    pub(super) tables: PageTables,
    /// What ranges show, or have shown, by the numbers of the opens.
    pub(super) openings: RBTree<u64, Arc<AllocationMemory>>,
    /// The number of the last reservation.
    pub(super) reservations: u64,
    pub(super) fences: FencePages,
}

/// Why entries are written anew.
#[derive(Clone, Copy)]
pub(super) struct Why {
    /// Some of them may have been valid.
    pub(super) were_valid: bool,
    /// Their memory is about to go.
    pub(super) evicted: bool,
}

/// Writes the entries of a part of a stretch as the ranges say.
pub(super) fn write_stretch(
    tables: &mut PageTables,
    openings: &RBTree<u64, Arc<AllocationMemory>>,
    part: Stretch,
    why: Why,
) {
    let pages = Pages {
        first: part.first,
        end: part.end(),
        were_valid: why.were_valid,
        evicted: why.evicted,
        driver_protection: 0,
    };

    match part.range.what {
        What::NoAccess => tables.write(&pages, Content::All(PageTableEntry::Invalid)),
        What::Zero => tables.write(&pages, Content::All(PageTableEntry::Zero)),
        What::Mapped(mapping) => {
            let memory = openings.get(&mapping.opening);
            let pages = Pages {
                driver_protection: mapping.driver_protection,
                ..pages
            };

            match memory.and_then(|memory| memory.placement()) {
                Some(placement) => tables.write(
                    &pages,
                    Content::Each(&mut |page| {
                        let further = page.saturating_sub(part.first);

                        placement.entry(&Mapping {
                            offset: mapping.offset.saturating_add(further),
                            ..mapping
                        })
                    }),
                ),
                None => tables.write(&pages, Content::All(PageTableEntry::Invalid)),
            }
        }
    }
}

impl State {
    /// The pages of fence values, and the page tables to show them in.
    pub(in crate::dxgk::vidmm) fn fences(&mut self) -> (&mut FencePages, &mut PageTables) {
        (&mut self.fences, &mut self.tables)
    }

    /// Changes what these pages are, and their entries. `change` is as in [`gpu_ranges::edit`].
    /// `has_entries`: they may have entries in page tables afterwards. It does not flush. Either
    /// everything is changed, or nothing.
    pub(super) fn change(
        &mut self,
        first: u64,
        end: u64,
        has_entries: bool,
        change: impl FnMut(Option<Range>, u64) -> Option<Range>,
    ) -> DxgResult {
        let mut places = self.places(first, end, true)?;

        if has_entries {
            self.tables.claim(first, end)?;
        }
        self.change_with(first, end, &mut places.drain_all(), has_entries, change);
        Ok(())
    }

    /// Memory for a change of these pages: `fills` is as in [`gpu_ranges::cost`]. NO_MEMORY also if
    /// there would be too many stretches (MEM-50).
    pub(super) fn places(&self, first: u64, end: u64, fills: bool) -> DxgResult<KVVec<Place>> {
        let cost = gpu_ranges::cost(&self.ranges, first, end, fills);
        let more = u32::try_from(cost.more).unwrap_or(u32::MAX);

        if more != 0 && self.ranges.count().saturating_add(more) > MAX_STRETCHES {
            return Err(Status::NO_MEMORY.into());
        }
        Ok(places(cost.places)?)
    }

    /// The same, with all the memory that it takes. `claimed`: all pages were claimed, because some
    /// of them have entries afterwards.
    pub(super) fn change_with(
        &mut self,
        first: u64,
        end: u64,
        places: &mut impl Iterator<Item = Place>,
        claimed: bool,
        change: impl FnMut(Option<Range>, u64) -> Option<Range>,
    ) {
        let Self { ranges, tables, .. } = self;
        let mut were_valid = false;

        for part in gpu_ranges::parts(ranges, first, end) {
            were_valid |= part.range.what != What::NoAccess;
            if part.range.has_entries() {
                tables.unclaim(part.first, part.end());
            }
        }
        gpu_ranges::edit(ranges, places, first, end, change);
        if claimed {
            let mut at = first;

            for part in gpu_ranges::parts(ranges, first, end) {
                tables.unclaim(at, part.first);
                at = part.end();
                if !part.range.has_entries() {
                    tables.unclaim(part.first, at);
                }
            }
            tables.unclaim(at, end);
        }
        self.write(first, end, were_valid);
        self.tables.sweep(first, end);
    }

    /// Makes pages what they were before a change.
    pub(super) fn undo(&mut self, undo: &mut Undo, run: &Run) -> DxgResult {
        let Run { first, end, old } = *run;
        let old = old.and_then(|old| self.still_there(old));
        let has_entries = old.is_some_and(Range::has_entries);
        let cost = gpu_ranges::cost(&self.ranges, first, end, true);
        let mut missing = undo.missing_places(cost.places)?;

        match (has_entries, undo.made(run).has_entries()) {
            (true, true) => self.tables.claim_again(first, end),
            // Pages that read as zero were mapped without access.
            (true, false) => self.tables.claim(first, end)?,
            (false, _) => {}
        }

        let kept = core::iter::from_fn(|| undo.take_place());
        let mut places = Iterator::chain(missing.drain_all(), kept);

        self.change_with(first, end, &mut places, has_entries, |_, further| {
            Some(old?.at(further))
        });
        Ok(())
    }

    /// What pages were, if the allocation that they showed may be gone by now.
    fn still_there(&self, old: Range) -> Option<Range> {
        match old.what {
            What::Mapped(mapping) if self.openings.get(&mapping.opening).is_none() => {
                let reservation = old.reservation?;

                Some(Range {
                    what: reservation.bare(),
                    ..old
                })
            }
            _ => Some(old),
        }
    }

    /// Writes the entries of these pages as the ranges say.
    fn write(&mut self, first: u64, end: u64, were_valid: bool) {
        let Self {
            ranges,
            tables,
            openings,
            ..
        } = self;
        let why = Why {
            were_valid,
            evicted: false,
        };
        let mut at = first;
        let nothing = |first, end| Pages {
            first,
            end,
            were_valid,
            evicted: false,
            driver_protection: 0,
        };

        for part in gpu_ranges::parts(ranges, first, end) {
            tables.write(
                &nothing(at, part.first),
                Content::All(PageTableEntry::Invalid),
            );
            write_stretch(tables, openings, part, why);
            at = part.end();
        }
        tables.write(&nothing(at, end), Content::All(PageTableEntry::Invalid));
    }
}
