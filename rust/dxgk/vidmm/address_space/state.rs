// SPDX-License-Identifier: GPL-2.0

//! What is under the lock of an address space: ranges, and the page tables that say the same.

use crate::{
    ddi::paging::{
        PageSize,
        PageTableEntry, //
    },
    dxgk::vidmm::{
        context_pages::ContextPages,
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
            MAX_STRETCHES,
            PAGE, //
        },
        range_undo::Run,
        table_tree::{
            Content,
            Pages,
            Shows, //
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
    /// What ranges show that the KMD has made for contexts, by the number of the allocation.
    pub(super) context_pages: RBTree<u64, Arc<ContextPages>>,
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

impl Why {
    /// That these pages are written.
    fn pages(self, first: u64, end: u64) -> Pages {
        Pages {
            first,
            end,
            were_valid: self.were_valid,
            evicted: self.evicted,
            driver_protection: 0,
            shows: Shows::default(),
        }
    }
}

/// What page tables are to say.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) ranges: &'a RangeTree,
    pub(super) openings: &'a RBTree<u64, Arc<AllocationMemory>>,
    pub(super) context_pages: &'a RBTree<u64, Arc<ContextPages>>,
}

impl Shown<'_> {
    /// Writes the entries of these pages as the ranges say.
    fn write(&self, tables: &mut PageTables, first: u64, end: u64, why: Why) {
        let mut at = first;

        for part in gpu_ranges::parts(self.ranges, first, end) {
            self.write_all(tables, &why.pages(at, part.first), PageTableEntry::Invalid);
            self.write_stretch(tables, part, why);
            at = part.end();
        }
        self.write_all(tables, &why.pages(at, end), PageTableEntry::Invalid);
    }

    /// Writes the entries of a part of a stretch as the ranges say.
    pub(super) fn write_stretch(&self, tables: &mut PageTables, part: Stretch, why: Why) {
        let pages = why.pages(part.first, part.end());
        let mapping = match part.range.what {
            What::NoAccess => return self.write_all(tables, &pages, PageTableEntry::Invalid),
            What::Zero => return self.write_all(tables, &pages, PageTableEntry::Zero),
            What::Mapped(mapping) => mapping,
        };

        if let Some(made) = self.context_pages.get(&mapping.opening) {
            return self.write_context_pages(tables, &pages, &mapping, made);
        }

        let memory = self.openings.get(&mapping.opening);
        let pages = Pages {
            driver_protection: mapping.driver_protection,
            shows: memory.map_or(Shows::default(), |memory| Shows {
                allocation: memory.kmd.id(),
                offset: mapping.offset.saturating_mul(PAGE),
            }),
            ..pages
        };
        // It may get one, or lose it, behind this look. Then it is refreshed.
        let Some(placement) = memory.and_then(|memory| memory.placement()) else {
            return self.write_all(tables, &pages, PageTableEntry::Invalid);
        };

        if !placement.has_64kb_pages() || !gpu_ranges::is_64kb(mapping.offset) {
            self.split(tables, pages.first, pages.end);
        }
        self.write_pages(
            tables,
            &pages,
            Content::Each(&mut |page| {
                let further = page.saturating_sub(part.first);
                let entry = placement.entry(&Mapping {
                    offset: mapping.offset.saturating_add(further),
                    ..mapping
                });

                (entry, 1)
            }),
        );
    }

    /// Writes the entries of pages that the KMD has made for a context.
    fn write_context_pages(
        &self,
        tables: &mut PageTables,
        pages: &Pages,
        mapping: &Mapping,
        made: &ContextPages,
    ) {
        let pages = Pages {
            driver_protection: mapping.driver_protection,
            shows: Shows {
                allocation: mapping.opening,
                offset: mapping.offset.saturating_mul(PAGE),
            },
            ..*pages
        };

        self.split(tables, pages.first, pages.end);
        self.write_pages(
            tables,
            &pages,
            Content::Each(&mut |page| {
                let further = page.saturating_sub(pages.first);
                let entry = made.entry(&Mapping {
                    offset: mapping.offset.saturating_add(further),
                    ..*mapping
                });

                (entry, 1)
            }),
        );
    }

    fn write_all(&self, tables: &mut PageTables, pages: &Pages, entry: PageTableEntry) {
        self.write_pages(tables, pages, Content::All(entry));
    }

    /// Writes entries, which tables with pages of 64 KiB can say only of whole ones.
    fn write_pages(&self, tables: &mut PageTables, pages: &Pages, content: Content<'_>) {
        if !gpu_ranges::is_64kb(pages.first) || !gpu_ranges::is_64kb(pages.end) {
            self.split(tables, pages.first, pages.end);
        }
        tables.write(pages, content);
    }

    /// Tables of these pages that have pages of 64 KiB get some of 4 KiB, which say the same
    /// (MEM-57). No other split is in there: that is done once in the life of a table.
    fn split(&self, tables: &mut PageTables, first: u64, end: u64) {
        let why = Why {
            were_valid: true,
            evicted: false,
        };

        while let Some((from, to)) = tables.next_64kb(first, end) {
            tables.split(from);
            self.write(tables, from, to, why);
            tables.end_split(from);
        }
    }
}

impl State {
    /// The pages of fence values, and the page tables to show them in.
    pub(in crate::dxgk::vidmm) fn fences(&mut self) -> (&mut FencePages, &mut PageTables) {
        (&mut self.fences, &mut self.tables)
    }

    /// Changes what these pages are, and their entries. `change` is as in [`gpu_ranges::edit`].
    /// `claims`: they may have entries in page tables afterwards, new ones with pages of this size.
    /// It does not flush. Either everything is changed, or nothing.
    pub(super) fn change(
        &mut self,
        first: u64,
        end: u64,
        claims: Option<PageSize>,
        change: impl FnMut(Option<Range>, u64) -> Option<Range>,
    ) -> DxgResult {
        let mut places = self.places(first, end, true)?;

        if let Some(size) = claims {
            self.tables.claim(first, end, size)?;
        }
        self.change_with(
            first,
            end,
            &mut places.drain_all(),
            claims.is_some(),
            change,
        );
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

        let (shown, tables) = self.shown();
        let why = Why {
            were_valid,
            evicted: false,
        };

        shown.write(tables, first, end, why);
        tables.sweep(first, end);
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
            (true, false) => {
                let what = old.map_or(What::NoAccess, |old| old.what);
                let size = self.page_size(first, end, what);

                self.tables.claim(first, end, size)?;
            }
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

    /// How large pages new tables for a range are to have that becomes `what`.
    pub(super) fn page_size(&self, first: u64, end: u64, what: What) -> PageSize {
        let fits = match what {
            What::Mapped(mapping) => {
                let memory = self.openings.get(&mapping.opening);

                gpu_ranges::is_64kb(mapping.offset)
                    && memory.is_some_and(|memory| memory.wants_64kb_pages())
            }
            What::NoAccess | What::Zero => true,
        };

        match fits && gpu_ranges::is_64kb(first) && gpu_ranges::is_64kb(end) {
            true => PageSize::Kib64,
            false => PageSize::Kib4,
        }
    }

    /// What its page tables are to say, and they.
    pub(super) fn shown(&mut self) -> (Shown<'_>, &mut PageTables) {
        let Self {
            ranges,
            tables,
            openings,
            context_pages,
            ..
        } = self;
        let shown = Shown {
            ranges,
            openings,
            context_pages,
        };

        (shown, tables)
    }
}
