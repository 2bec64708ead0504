// SPDX-License-Identifier: GPL-2.0

//! Moves what is in a segment to other pages there, or to system memory and back if no others are
//! free (MEM-107). The contexts of all who have it open are off their engines meanwhile, so that
//! none of them faults.

use super::{
    AllocationMemory,
    Left,
    Turn, //
};
use crate::{
    ddi::types::Place,
    dxgk::{
        memory::storage::Storage,
        vidmm::{
            pinned_pages::take_pages,
            placement::Placement,
            resident_in::ResidentIn,
            segment::LocalPages, //
        }, //
    },
    sys::mem::pages::PageSource, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// Contexts that are off their engines until this is dropped.
struct Held(KVVec<Arc<dyn ResidentIn>>);

impl Drop for Held {
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    fn drop(&mut self) {
        for space in &self.0 {
            space.hold_contexts(false);
        }
    }
}

impl AllocationMemory {
    /// Moves it to another place, unless it has to stay where it is.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn go_elsewhere(self: &Arc<Self>) {
        // Dropped after the lock.
        let (_left, _old);
        let mut turn = self.lock_turn();

        if !self.may_go_elsewhere() {
            return;
        }
        // Who comes to want it later waits for the turn.
        let Ok(_held) = self.hold_users() else {
            return;
        };
        let (placement, storage, is_idle) = {
            let mut state = self.state.lock();
            let is_idle = state.is_idle;
            let Some(storage) = state.storage.clone() else {
                return;
            };

            (state.take_placement(), storage, is_idle)
        };

        _left = self.give_up(&mut turn, placement, None, |_, _| false);
        _old = self.leave_pages(&mut turn, &storage);
        {
            let mut state = self.state.lock();

            // Somebody may want it meanwhile.
            state.is_idle = is_idle && !state.users.are_wanted();
        }
        if self.place(&mut turn, &storage).is_err() {
            pr_err!("an allocation that was moved for a test has no memory any more\n");
        }
    }

    /// Whether it is in a segment and may be moved, although somebody may want it. What engines
    /// have physical addresses of may not.
    fn may_go_elsewhere(&self) -> bool {
        let state = self.state.lock();
        let is_used_physically = self.is_accessed_physically() && state.users.are_wanted();

        matches!(state.placement, Some(Placement::Local(..)))
            && !state.unmoveable
            && !is_used_physically
    }

    /// Takes the contexts of all who have it open off their engines.
    fn hold_users(&self) -> Result<Held, AllocError> {
        let mut held = Held(KVVec::new());
        let mut place = 0;

        loop {
            let shown = self.state.lock().users.shown_in(place);
            let Some((space, _)) = shown else {
                return Ok(held);
            };

            held.0.push(space.clone(), GFP_KERNEL)?;
            space.hold_contexts(true);
            place += 1;
        }
    }

    /// The bytes go to other pages of the segment, which are its place from then on, or to system
    /// memory. If they can go nowhere they stay. Returns the old place.
    fn leave_pages(&self, turn: &mut Turn, storage: &Arc<Storage>) -> Left {
        let mut left = Left::default();
        let Some(old) = turn.local.clone() else {
            return left;
        };
        let place = Place::Segment(old.segment());
        let others = turn.site.segment.as_ref().and_then(|segment| {
            segment
                .take(storage.count(), turn.site.layout, Some(&self.mover.log))
                .ok()
        });
        let moved = match &others {
            Some(others) => self.move_within(storage, place, &old, others),
            None => self.move_home(storage, &turn.home),
        };

        match (moved, others) {
            (true, Some(others)) => left._local = turn.local.replace(others),
            (true, None) => left._home = turn.home.take(),
            // Something else holds the bytes where they are.
            (false, others) => left._local = others,
        }
        left
    }

    fn move_within(
        &self,
        storage: &Arc<Storage>,
        place: Place,
        old: &LocalPages,
        others: &Arc<LocalPages>,
    ) -> bool {
        // They have the bytes of somebody else wherever nothing is copied to.
        take_pages(&**others).is_ok()
            && self.mover.clear(others, old).is_ok()
            && self.mover.move_to(storage, place, others.clone()).is_ok()
    }

    fn move_home(&self, storage: &Arc<Storage>, home: &Option<Arc<dyn PageSource>>) -> bool {
        home.as_ref().is_some_and(|home| {
            take_pages(&**home).is_ok()
                && self
                    .mover
                    .move_to(storage, Place::SystemMemory, home.clone())
                    .is_ok()
        })
    }
}
