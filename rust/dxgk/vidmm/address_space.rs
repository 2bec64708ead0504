// SPDX-License-Identifier: GPL-2.0

//! The GPU address space of a process on one adapter (MEM-40 to MEM-50). Its devices share it.
//!
//! INVARIANT: while `state` is free, the page tables say what the ranges say. An entry for a page
//! of an allocation is valid exactly if the allocation has a placement. For: a range is changed
//! with its entries under the lock. A placement is set or taken away first, and then every address
//! space that shows the allocation is refreshed; who maps it meanwhile sees the new placement.
//!
//! A page goes to somebody else only after the refresh, which ends with a flush (MEM-58).
//!
//! LOCK: `state` is a mutex, inside `AllocationMemory::turn`; `AllocationMemory::state` is taken
//! inside. Entries of the KMD are called under it. Memory is allocated under it: only the process
//! itself waits, and who moves an allocation that it shares.

use super::{
    contexts::{
        Contexts,
        SpaceContext, //
    },
    fence_pages::FencePages,
    page_tables::PageTables,
    ranges::{
        places,
        Place,
        RangeTree, //
    },
    residency::{
        AllocationMemory,
        Opening, //
    },
    undo::Undo,
    users::ResidentIn, //
};
use crate::{
    ddi::{
        class::Passive,
        object::{
            self,
            Suspension, //
        },
        paging::PageTableEntry,
        reserve::{
            NoAddresses,
            ReserveAddresses, //
        },
        types::ProcessId, //
    },
    dxgk::{
        adapter::Adapter,
        quota::holder::Holder, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::{
            self,
            Bounds,
            Finder,
            Mapping,
            Owner,
            Range,
            Reservation,
            Stretch,
            What,
            FIRST,
            MAX_STRETCHES, //
        },
        gpu_va_rules::{
            ClientSpace,
            Map,
            Position,
            Protection,
            Reserve,
            Update, //
        },
        kmd_ranges::{
            KmdRange,
            KmdRanges, //
        },
        page_levels::Levels,
        paging_rules::GROUPS,
        range_undo::{
            Change,
            Run, //
        },
        table_tree::{
            Content,
            Pages,
            Rules, //
        }, //
    },
    sys::alloc::{
        pin_arc,
        tree_node, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// What is under the lock.
pub(super) struct State {
    ranges: RangeTree,
    finder: Finder,
    tables: PageTables,
    /// What ranges show, or have shown, by the numbers of the opens.
    openings: RBTree<u64, Arc<AllocationMemory>>,
    /// The number of the last reservation.
    reservations: u64,
    fences: FencePages,
}

/// The GPU addresses of a process on one adapter.
#[pin_data]
pub(crate) struct AddressSpace {
    /// What clients may have.
    pub(crate) clients: ClientSpace,
    /// Who uses its page tables.
    contexts: Arc<Contexts>,
    /// Bytes that its devices want to be resident, by group.
    usage: [Atomic<u64>; GROUPS],
    #[pin]
    pub(super) state: Mutex<State>,
}

/// One of this many pages is kept for what the OS part shows.
const KEPT: u64 = 4;

/// The same where the root of page tables is as large as addresses are high.
const KEPT_LOW: u64 = 64;

/// Most pages that the OS part keeps.
const MOST_KEPT: u64 = 1 << 20;

/// What clients may have, and what the OS part keeps: at the end, where it is in nobody's way, or
/// if the root is resizable at the beginning, because it is always used. There the first entry of
/// the root leads nowhere (MEM-40).
fn divide(levels: &Levels) -> (ClientSpace, Bounds) {
    let pages = levels.pages();

    match levels.has_resizable_root() {
        true => {
            let first = levels.pages_of_entry(levels.root());
            let kept = (pages / KEPT_LOW).max(first).min(MOST_KEPT);
            let end = first.saturating_add(kept);

            (
                ClientSpace {
                    first: end,
                    end: pages,
                },
                Bounds { first, end },
            )
        }
        false => {
            let kept = (pages / KEPT).min(MOST_KEPT);
            let end = pages.saturating_sub(kept);

            (
                ClientSpace { first: FIRST, end },
                Bounds {
                    first: end,
                    end: pages,
                },
            )
        }
    }
}

/// Why entries are written anew.
#[derive(Clone, Copy)]
struct Why {
    /// Some of them may have been valid.
    were_valid: bool,
    /// Their memory is about to go.
    evicted: bool,
}

/// Writes the entries of a part of a stretch as the ranges say.
fn write_stretch(
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
    pub(super) fn fences(&mut self) -> (&mut FencePages, &mut PageTables) {
        (&mut self.fences, &mut self.tables)
    }

    /// Changes what these pages are, and their entries. `change` is as in [`gpu_ranges::edit`].
    /// `has_entries`: they may have entries in page tables afterwards. It does not flush. Either
    /// everything is changed, or nothing.
    fn change(
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
    fn places(&self, first: u64, end: u64, fills: bool) -> DxgResult<KVVec<Place>> {
        let cost = gpu_ranges::cost(&self.ranges, first, end, fills);
        let more = u32::try_from(cost.more).unwrap_or(u32::MAX);

        if more != 0 && self.ranges.count().saturating_add(more) > MAX_STRETCHES {
            return Err(Status::NO_MEMORY.into());
        }
        Ok(places(cost.places)?)
    }

    /// The same, with all the memory that it takes. `claimed`: all pages were claimed, because some
    /// of them have entries afterwards.
    fn change_with(
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
    fn undo(&mut self, undo: &mut Undo, run: &Run) -> DxgResult {
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

    /// Changes pages of a reservation, `part` of them at a time, to what begins with `what`.
    fn repeat(&mut self, first: u64, end: u64, part: u64, what: impl Fn(u64) -> What) -> DxgResult {
        let mut at = first;

        while at < end {
            let next = at.saturating_add(part.max(1)).min(end);
            let what = what(at);

            self.change(at, next, true, |old, further| {
                let reservation = old?.reservation;

                Some(Range { reservation, what }.at(further))
            })?;
            at = next;
        }
        Ok(())
    }

    /// Copies what pages are to others, as if all were read before any is written.
    fn copy(&mut self, source: u64, first: u64, end: u64) -> DxgResult {
        let stop = source.saturating_add(end.saturating_sub(first));
        let mut parts = KVVec::new();

        for part in gpu_ranges::parts(&self.ranges, source, stop) {
            parts.push(part, GFP_KERNEL_ACCOUNT)?;
        }
        for part in &parts {
            let at = first.saturating_add(part.first.saturating_sub(source));

            self.repeat(at, at.saturating_add(part.pages), part.pages, |_| {
                part.range.what
            })?;
        }
        Ok(())
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

    /// The address of a range: where the caller wants it, or where there is room.
    fn find(&self, position: Position, pages: u64) -> DxgResult<u64> {
        match position {
            Position::Fixed(first) => Ok(first),
            Position::Picked(bounds) => self
                .finder
                .find(&self.ranges, pages, bounds)
                .ok_or(Status::NO_MEMORY.into()),
        }
    }

    /// Remembers what was found.
    fn found(&mut self, position: Position, first: u64, end: u64) {
        if let Position::Picked(bounds) = position {
            self.finder.taken(bounds, first, end);
        }
    }
}

impl AddressSpace {
    /// CreateProcess on `adapter`, with an address space in which is only what the KMD reserves.
    /// What it takes is charged to `holder`. `None` if the adapter has no GPU addresses.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn with_process(
        adapter: &Adapter,
        id: ProcessId,
        holder: Arc<Holder>,
    ) -> DxgResult<(Arc<object::Process>, Option<Arc<Self>>)> {
        let class = Passive::here();
        let create = |addresses: &mut dyn ReserveAddresses| {
            object::Process::create(&adapter.port, &class, id, addresses)
        };
        let Some(levels) = adapter.memory.levels else {
            return Ok((create(&mut NoAddresses)?, None));
        };
        let (clients, kept) = divide(&levels);
        let mut ranges = KmdRanges::new(&levels, clients);
        let kmd = create(&mut ranges)?;
        let space = Self::new(adapter, (levels, clients, kept), kmd.clone(), holder)?;

        for range in ranges.iter() {
            space.reserve_for_kmd(&range)?;
        }
        Ok((kmd, Some(space)))
    }

    /// An empty address space of the process that `kmd` is to the KMD of `adapter`.
    fn new(
        adapter: &Adapter,
        (levels, clients, kept): (Levels, ClientSpace, Bounds),
        kmd: Arc<object::Process>,
        holder: Arc<Holder>,
    ) -> DxgResult<Arc<Self>> {
        let rules = Rules::new(&adapter.caps.gpu_mmu);
        let (tables, contexts) = PageTables::new(levels, rules, kmd, holder)?;

        Ok(pin_arc(
            pin_init!(Self {
                clients,
                contexts,
                usage: [const { Atomic::new(0) }; GROUPS],
                state <- new_mutex!(
                    State {
                        ranges: RangeTree::new(),
                        finder: Finder::new(clients.first),
                        tables,
                        openings: RBTree::new(),
                        reservations: 0,
                        fences: FencePages::new(kept),
                    },
                    "AddressSpace::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Makes the tables of what the KMD has reserved (MEM-64).
    fn reserve_for_kmd(&self, range: &KmdRange) -> DxgResult {
        let mut state = self.state.lock();
        let Bounds { first, end } = range.pages;
        let reservation = Reservation {
            id: state.reservations.wrapping_add(1),
            zero: false,
            owner: Owner::Kmd {
                is_shared: range.is_shared,
            },
        };
        let made = state.change(first, end, true, |_, _| {
            Some(Range {
                reservation: Some(reservation),
                what: reservation.bare(),
            })
        });

        state.tables.finish(first, end);
        made?;
        state.reservations = reservation.id;
        Ok(())
    }

    /// What the callbacks of a new context tell the end of its suspensions to.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn suspension(&self) -> DxgResult<Arc<Suspension>> {
        self.contexts.suspension()
    }

    /// The context with this id uses it from now on: the KMD is told where its page tables begin.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn enter_context(
        &self,
        id: u64,
        kmd: Arc<object::Context>,
        suspension: Arc<Suspension>,
    ) -> DxgResult<SpaceContext> {
        {
            let mut state = self.state.lock();
            let (fences, tables) = state.fences();

            fences.walk(tables);
        }
        self.contexts.enter(id, kmd, suspension)
    }

    /// How many bytes its devices want to be resident in a group.
    pub(crate) fn usage(&self, group: usize) -> u64 {
        self.usage.get(group).map_or(0, |usage| usage.load(Relaxed))
    }

    /// ReserveGpuVirtualAddress (MEM-41); returns what takes it back.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(&self, request: &Reserve) -> DxgResult<Undo> {
        let mut state = self.state.lock();
        let first = state.find(request.position, request.pages)?;
        let end = first.saturating_add(request.pages);

        if !gpu_ranges::is_free(&state.ranges, first, end) {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let reservation = Reservation {
            id: state.reservations.wrapping_add(1),
            zero: request.zero,
            owner: Owner::Client,
        };
        let change = Change {
            first,
            end,
            reservation: Some(reservation),
            what: reservation.bare(),
        };
        let undo = Undo::new(&state.ranges, change)?;
        let made = state.change(first, end, request.zero, |old, further| {
            Some(change.made(old, further))
        });

        state.tables.finish(first, end);
        made?;
        state.reservations = reservation.id;
        state.found(request.position, first, end);
        Ok(undo)
    }

    /// MapGpuVirtualAddress (MEM-43); returns what takes it back. `opened` is there if the
    /// protection is that of pages.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn map(&self, request: &Map, opened: Option<Opening<'_>>) -> DxgResult<Undo> {
        // Dropped after the lock if it is not used.
        let mut node = match opened {
            Some(opened) => Some(tree_node(opened.id, opened.memory.clone())?),
            None => None,
        };
        let mut state = self.state.lock();
        let first = state.find(request.position, request.pages)?;
        let end = first.saturating_add(request.pages);
        let what = match (request.protection, opened) {
            (Protection::Pages { write, execute }, Some(opened)) => What::Mapped(Mapping {
                opening: opened.id,
                offset: request.offset,
                write,
                execute,
                driver_protection: request.driver_protection,
            }),
            (Protection::Zero, _) => What::Zero,
            _ => What::NoAccess,
        };

        let is_allowed = gpu_ranges::may_map(&state.ranges, first, end);

        if !is_allowed || opened.is_none() && gpu_ranges::has_map(&state.ranges, first, end) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if let Some(opened) = opened {
            // The end of the handle takes it out, if it has not come already.
            if opened.is_closed() {
                return Err(Status::INVALID_PARAMETER.into());
            }
            if state.openings.get(&opened.id).is_none() {
                if let Some(node) = node.take() {
                    let _nothing = state.openings.insert(node);
                }
            }
        }

        let has_entries =
            what != What::NoAccess || gpu_ranges::keeps_tables(&state.ranges, first, end);
        let change = Change {
            first,
            end,
            reservation: None,
            what,
        };
        let undo = Undo::new(&state.ranges, change)?;
        let made = state.change(first, end, has_entries, |old, further| {
            Some(change.made(old, further))
        });

        state.tables.finish(first, end);
        made?;
        state.found(request.position, first, end);
        drop(state);
        drop(node);
        Ok(undo)
    }

    /// Takes a change back where nobody else has changed the pages since.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn undo(&self, mut undo: Undo) {
        let mut state = self.state.lock();
        let (first, end) = undo.pages();
        let mut at = first;

        while let Some(run) = undo.next_run(&state.ranges, at) {
            // Others may have used up the memory that was kept. Then the pages stay.
            let _undone = state.undo(&mut undo, &run);

            at = run.end;
        }
        state.finder.freed(first);
        state.tables.finish(first, end);
    }

    /// FreeGpuVirtualAddress of these pages (MEM-49).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn free(&self, first: u64, end: u64) -> DxgResult {
        let mut state = self.state.lock();

        if !gpu_ranges::may_free(&state.ranges, first, end) {
            return Err(Status::INVALID_PARAMETER.into());
        }

        // What the KMD has reserved stays, and so do its tables.
        let stays =
            !gpu_ranges::parts(&state.ranges, first, end).all(|part| part.range.freed().is_none());
        // What it is cut out of may become two.
        let mut places = state.places(first, end, stays)?;

        if stays {
            state.tables.claim_again(first, end);
        }
        state.change_with(first, end, &mut places.drain_all(), stays, |old, _| {
            old?.freed()
        });
        state.finder.freed(first);
        state.tables.finish(first, end);
        Ok(())
    }

    /// Checks that all pages of an update are in one reservation that reads as zero (MEM-45).
    pub(crate) fn zero_reservation(&self, first: u64, end: u64) -> DxgResult<Reservation> {
        let state = self.state.lock();

        gpu_ranges::reservation_of(&state.ranges, first, end)
            .filter(|reservation| reservation.zero)
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// Does one operation of an update, if its pages are still in the reservations that they were
    /// in when it was queued.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn update(
        &self,
        update: &Update,
        opened: Option<Opening<'_>>,
        destination: Reservation,
        source: Option<Reservation>,
    ) -> DxgResult {
        // Dropped after the lock if it is not used.
        let mut node = match opened {
            Some(opened) => Some(tree_node(opened.id, opened.memory.clone())?),
            None => None,
        };
        let mut state = self.state.lock();
        let (first, end) = update.destination();
        let is_there = |state: &State, (first, end), reservation| {
            gpu_ranges::reservation_of(&state.ranges, first, end) == reservation
        };

        if !is_there(&state, (first, end), Some(destination)) {
            return Ok(());
        }
        if let Some(pages) = update.source() {
            if !is_there(&state, pages, source) {
                return Ok(());
            }
        }
        if let Some(opened) = opened {
            if opened.is_closed() {
                return Ok(());
            }
            if state.openings.get(&opened.id).is_none() {
                if let Some(node) = node.take() {
                    let _nothing = state.openings.insert(node);
                }
            }
        }

        let done = match *update {
            Update::Map {
                offset,
                part,
                write,
                execute,
                driver_protection,
                ..
            } => state.repeat(first, end, part, |_| {
                What::Mapped(Mapping {
                    opening: opened.map_or(0, |opened| opened.id),
                    offset,
                    write,
                    execute,
                    driver_protection,
                })
            }),
            Update::Unmap { zero, .. } => {
                let what = match zero {
                    true => What::Zero,
                    false => What::NoAccess,
                };

                state.repeat(first, end, end.saturating_sub(first), |_| what)
            }
            Update::Copy { source, .. } => state.copy(source, first, end),
        };

        state.tables.finish(first, end);
        drop(state);
        drop(node);
        done
    }

    /// Takes an open out of the address space: its pages are what was reserved there, or nothing.
    /// On return no engine uses them.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn end_opening(&self, opened: Opening<'_>) {
        let opening = opened.id;
        let mut state = self.state.lock();
        let mut at = 0;
        let mut changed: Option<(u64, u64)> = None;

        opened.close();
        while let Some(stretch) = state.ranges.shown_by(opening, at) {
            let (first, end) = (stretch.first, stretch.end());

            // It is a whole stretch that is there, so that nothing is split and no gap is filled.
            // What was reserved has entries as before, if it keeps its tables.
            let claimed = stretch
                .range
                .reservation
                .is_some_and(Reservation::keeps_tables);

            if claimed {
                state.tables.claim_again(first, end);
            }
            state.change_with(first, end, &mut core::iter::empty(), claimed, |old, _| {
                let reservation = old?.reservation?;

                Some(Range {
                    reservation: Some(reservation),
                    what: reservation.bare(),
                })
            });
            state.finder.freed(first);
            changed = Some(match changed {
                Some((lowest, _)) => (lowest, end),
                None => (first, end),
            });
            at = end;
        }
        if let Some((first, end)) = changed {
            state.tables.finish(first, end);
        }

        let node = state.openings.remove_node(&opening);

        drop(state);
        drop(node);
    }

    /// How many stretches and page tables it has.
    pub(crate) fn extent(&self) -> (u32, usize) {
        let state = self.state.lock();

        (state.ranges.count(), state.tables.count())
    }
}

impl ResidentIn for AddressSpace {
    fn refresh(&self, opening: u64) {
        let mut state = self.state.lock();
        let State {
            ranges,
            tables,
            openings,
            ..
        } = &mut *state;
        let is_placed = openings
            .get(&opening)
            .is_some_and(|memory| memory.placement().is_some());
        // It has got its placement, or it has lost it.
        let why = Why {
            were_valid: !is_placed,
            evicted: !is_placed,
        };
        let mut at = 0;
        let mut changed: Option<(u64, u64)> = None;

        while let Some(stretch) = ranges.shown_by(opening, at) {
            write_stretch(tables, openings, stretch, why);
            at = stretch.end();
            changed = Some(match changed {
                Some((lowest, _)) => (lowest, at),
                None => (stretch.first, at),
            });
        }
        if let Some((first, end)) = changed {
            tables.finish(first, end);
        }
    }

    fn add_usage(&self, group: usize, bytes: u64) {
        if let Some(usage) = self.usage.get(group) {
            usage.add(bytes, Relaxed);
        }
    }

    fn sub_usage(&self, group: usize, bytes: u64) {
        // It wraps, as the counter does.
        self.add_usage(group, bytes.wrapping_neg());
    }
}
