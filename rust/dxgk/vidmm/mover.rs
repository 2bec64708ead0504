// SPDX-License-Identifier: GPL-2.0

//! How the bytes of one allocation are filled and moved: by the paging node of its adapter, or by
//! the processor where there is none. If the paging node fails, the processor does what is left, so
//! that no bytes are lost.

use super::{
    paging_log::{
        LogAbout,
        PagingLog, //
    },
    segment::LocalPages, //
};
use crate::{
    ddi::{
        object,
        segments::SYSTEM_MEMORY,
        types::Place, //
    },
    dxgk::memory::storage::Storage,
    logic::{
        moving::STEP,
        paging_log::{
            Action,
            Event,
            Kind, //
        }, //
    },
    sys::{
        mem::{
            movable::moving::{
                CopyPages,
                MoveError, //
            },
            pages::PageSource, //
        },
        work, //
    }, //
};
use core::{
    cell::Cell,
    ops::Range, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// How often a move is tried that page faults are in the way of, and the pause in between.
const ATTEMPTS: u32 = 20;
const PAUSE: Delta = Delta::from_millis(1);

/// The paging node of an adapter.
pub(crate) trait PagingNode: Send + Sync {
    /// Fills pages of an allocation with zeros, which are in `to`: a segment, and the pages there.
    /// False if the processor has to do it.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    fn clear(
        self: Arc<Self>,
        allocation: &object::Allocation,
        to: (u32, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool;

    /// Copies those of these pages of an allocation that are in both. False if the processor has to
    /// do it.
    ///
    /// Context: the same, and `Movable::state`.
    fn copy(
        self: Arc<Self>,
        allocation: &object::Allocation,
        from: (u32, &dyn PageSource),
        to: (u32, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool;
}

/// Fills and moves the bytes of one allocation.
pub(crate) struct Mover {
    pub(super) log: LogAbout,
    allocation: Arc<object::Allocation>,
    node: Option<Arc<dyn PagingNode>>,
}

/// Who copies in one move, and whether the paging node has done all of it.
struct Copying<'a> {
    mover: &'a Mover,
    is_done: Cell<bool>,
}

impl Mover {
    /// That of an allocation of an adapter with this paging node.
    pub(crate) fn new(
        log: &Arc<PagingLog>,
        allocation: &Arc<object::Allocation>,
        node: Option<Arc<dyn PagingNode>>,
    ) -> Self {
        Self {
            log: LogAbout::allocation(log, allocation),
            allocation: allocation.clone(),
            node,
        }
    }

    /// Fills those pages of `local` with zeros that `home` does not have, so that no byte of an
    /// earlier owner is there when what `home` has was copied (MEM-7).
    ///
    /// Context: may sleep; `AllocationMemory::turn`.
    pub(super) fn clear(&self, local: &LocalPages, home: &dyn PageSource) -> Result {
        let count = local.count();

        if home.is_complete() {
            return Ok(());
        }
        for first in (0..count).step_by(STEP) {
            self.clear_missing(local, home, first..first.saturating_add(STEP).min(count))?;
            work::breathe();
        }
        Ok(())
    }

    /// The same for some of them. Nobody uses them yet, and `home` loses none.
    fn clear_missing(
        &self,
        local: &LocalPages,
        home: &dyn PageSource,
        pages: Range<usize>,
    ) -> Result {
        let is_missing = |index: &usize| home.present(*index).is_none();
        let mut rest = pages;

        while let Some(first) = rest.find(is_missing) {
            let more = rest.clone().take_while(is_missing).count();
            let end = rest.start.saturating_add(more);

            self.clear_pages(local, first..end)?;
            rest = end..rest.end;
        }
        Ok(())
    }

    fn clear_pages(&self, local: &LocalPages, pages: Range<usize>) -> Result {
        let to = (local.segment(), local as &dyn PageSource);
        let node = self.node.clone();
        let is_done = node.is_some_and(|node| node.clear(&self.allocation, to, pages.clone()));

        match is_done {
            true => Ok(()),
            false => local.clear(pages),
        }
    }

    /// Moves the bytes there, as [`Storage::move_to`].
    ///
    /// Context: as there.
    pub(super) fn move_to(
        &self,
        storage: &Storage,
        place: Place,
        pages: Arc<dyn PageSource>,
    ) -> Result<(), MoveError> {
        let by = Copying {
            mover: self,
            is_done: Cell::new(true),
        };

        let mut attempts = ATTEMPTS;

        // Page faults that take pages are in the way, each for a moment.
        while let Err(error) = storage.move_to(place, pages.clone(), &by) {
            attempts = match error {
                MoveError::Busy => attempts.saturating_sub(1),
                _ => 0,
            };
            if attempts == 0 {
                return Err(error);
            }
            fsleep(PAUSE);
        }

        let moved = || Action {
            kind: Kind::Move,
            // CAST: a usize fits 64 bits.
            count: storage.count() as u64,
            segment: segment_of(place),
            ..Action::default()
        };

        if !by.is_done.get() {
            self.log.write(moved);
        }
        self.log.tell(Event::Move, moved);
        Ok(())
    }
}

impl CopyPages<Place> for Copying<'_> {
    fn copy(
        &self,
        (from, source): (Place, &dyn PageSource),
        (to, target): (Place, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool {
        let is_done = self.mover.node.clone().is_some_and(|node| {
            let (from, to) = ((segment_of(from), source), (segment_of(to), target));

            node.copy(&self.mover.allocation, from, to, pages)
        });

        if !is_done {
            self.is_done.set(false);
        }
        is_done
    }
}

/// The segment of a place.
fn segment_of(place: Place) -> u32 {
    match place {
        Place::SystemMemory => SYSTEM_MEMORY,
        Place::Segment(segment) => segment,
    }
}
