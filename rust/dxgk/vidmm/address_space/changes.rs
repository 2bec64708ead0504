// SPDX-License-Identifier: GPL-2.0

//! What calls of clients make of ranges: ReserveGpuVirtualAddress, MapGpuVirtualAddress,
//! FreeGpuVirtualAddress, and the end of an open (MEM-41 to MEM-44, MEM-49).

use super::{
    state::State,
    AddressSpace, //
};
use crate::{
    ddi::paging::PageSize,
    dxgk::vidmm::{
        residency::Opening,
        undo::Undo, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::{
            self,
            Bounds,
            Mapping,
            Owner,
            Range,
            Reservation,
            What, //
        },
        gpu_va_rules::{
            Map,
            Position,
            Protection,
            Reserve, //
        },
        kmd_ranges::KmdRange,
        range_undo::Change, //
    },
    sys::alloc::tree_node, //
};

impl State {
    /// The address of a range: where the caller wants it, or where there is room.
    pub(super) fn find(&self, position: Position, pages: u64) -> DxgResult<u64> {
        match position {
            Position::Fixed(first) => Ok(first),
            Position::Picked(bounds) => self
                .finder
                .find(&self.ranges, pages, bounds)
                .ok_or(Status::NO_MEMORY.into()),
        }
    }

    /// Remembers what was found.
    pub(super) fn found(&mut self, position: Position, first: u64, end: u64) {
        if let Position::Picked(bounds) = position {
            self.finder.taken(bounds, first, end);
        }
    }

    /// Remembers that some of these pages may be free again.
    pub(super) fn freed(&mut self, first: u64, end: u64) {
        self.finder.freed(&self.ranges, first, end);
    }
}

impl AddressSpace {
    /// Makes the tables of what the KMD has reserved (MEM-64).
    pub(super) fn reserve_for_kmd(&self, range: &KmdRange) -> DxgResult {
        let mut state = self.state.lock();
        let Bounds { first, end } = range.pages;
        let reservation = Reservation {
            id: state.reservations.wrapping_add(1),
            zero: false,
            owner: Owner::Kmd {
                is_shared: range.is_shared,
            },
        };
        let made = state.change(first, end, Some(PageSize::Kib4), |_, _| {
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
        let size = state.page_size(first, end, change.what);
        let claims = request.zero.then_some(size);
        let made = state.change(first, end, claims, |old, further| {
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
        let size = state.page_size(first, end, what);
        let made = state.change(first, end, has_entries.then_some(size), |old, further| {
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
    pub(in crate::dxgk::vidmm) fn undo(&self, mut undo: Undo) {
        let mut state = self.state.lock();
        let (first, end) = undo.pages();
        let mut at = first;

        while let Some(run) = undo.next_run(&state.ranges, at) {
            // Others may have used up the memory that was kept. Then the pages stay.
            let _undone = state.undo(&mut undo, &run);

            at = run.end;
        }
        state.freed(first, end);
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
        state.freed(first, end);
        state.tables.finish(first, end);
        Ok(())
    }

    /// Takes an open out of the address space: its pages are what was reserved there, or nothing.
    /// On return no engine uses them.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn end_opening(&self, opened: Opening<'_>) {
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
            state.freed(first, end);
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
}
