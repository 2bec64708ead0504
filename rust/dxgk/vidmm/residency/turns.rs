// SPDX-License-Identifier: GPL-2.0

//! An allocation while address spaces take turns with a segment (MEM-18): it leaves while no space
//! runs that wants it, and comes back before one of them goes on.

use super::{
    AllocationMemory,
    Left,
    State, //
};
use crate::dxgk::vidmm::{
    all_allocations::{
        Leaves,
        Relocate,
        Returned, //
    },
    pinned_pages::PinnedPages,
    placement::Placement,
    seat::Seat,
    shortage::Shortage, //
};
use kernel::sync::Arc;

impl Relocate for AllocationMemory {
    fn move_elsewhere(self: Arc<Self>) {
        self.go_elsewhere();
    }

    fn leave(&self, segment: u32, requester: &Arc<Seat>) -> Leaves {
        let verdict = self.may_leave(&self.state.lock(), segment, requester);

        match verdict {
            Leaves::Left => {}
            Leaves::Stays if self.is_about_to_leave(segment) => return Leaves::Comes,
            other => return other,
        }

        // Dropped after the lock.
        let _left: Left;
        let mut turn = self.lock_turn();
        let mut state = self.state.lock();

        // Somebody else may have come to want it.
        match self.may_leave(&state, segment, requester) {
            Leaves::Left => {}
            other => return other,
        }
        // Who has a placement may have written to it. Without one the bytes have stayed behind, or
        // are about to come, or are elsewhere.
        if state.placement.is_some() {
            state.is_written = true;
        } else if turn.segment() != Some(segment) {
            return Leaves::Stays;
        } else if turn.home.is_none() {
            return Leaves::Comes;
        }

        let (placement, storage) = (state.take_placement(), state.storage.clone());

        drop(state);
        _left = self.give_up(&mut turn, placement, storage, |turn, storage| {
            self.go_home(turn, storage)
        });
        match turn.local {
            None => Leaves::Left,
            // Something holds the bytes there, for a moment.
            Some(_) => Leaves::Comes,
        }
    }

    fn come_back(self: Arc<Self>, seat: &Arc<Seat>) -> Returned {
        if !self.is_missed_by(seat) {
            return Returned::Done;
        }
        loop {
            match self.prepare() {
                Ok(()) => break,
                Err(Shortage::Room(_, room)) if room.make() => {}
                Err(Shortage::Room(_, room)) => {
                    return match room.segment {
                        Some((segment, look)) => Returned::LacksRoom(segment, look),
                        None => Returned::Failed,
                    }
                }
                Err(Shortage::Failed(_)) => return Returned::Failed,
            }
        }
        match self.finish() {
            Ok(()) => Returned::Done,
            Err(_) => Returned::Failed,
        }
    }

    fn come_back_elsewhere(self: Arc<Self>, seat: &Arc<Seat>) -> bool {
        !self.is_missed_by(seat) || self.use_system_memory() && self.finish().is_ok()
    }
}

impl AllocationMemory {
    /// [`Leaves::Left`] if it may leave this segment, in case it is there. What engines use by
    /// physical addresses may not.
    ///
    /// Context: the lock of the state.
    fn may_leave(&self, state: &State, segment: u32, requester: &Arc<Seat>) -> Leaves {
        let is_coming = state.placement.is_none();
        let is_there = matches!(&state.placement, Some(Placement::Local(local, _))
            if local.segment() == segment);

        if !is_coming && (!is_there || state.unmoveable || self.is_accessed_physically()) {
            return Leaves::Stays;
        }

        let mut leaves = Leaves::Stays;

        for space in state.users.wanting() {
            let seat = space.seat();

            if Arc::ptr_eq(seat, requester) {
                return Leaves::Stays;
            }
            match &leaves {
                Leaves::IsUsedBy(_) | Leaves::Comes => {}
                _ if seat.is_suspended() => leaves = Leaves::Left,
                _ if is_coming => leaves = Leaves::Comes,
                _ => leaves = Leaves::IsUsedBy(seat.clone()),
            }
        }
        leaves
    }

    /// Whether nobody wants it and it has room in this segment, so that it leaves. What something
    /// else holds there stays. Who brings it there, or away, has the turn for long.
    fn is_about_to_leave(&self, segment: u32) -> bool {
        let has_placement = || self.state.lock().placement.is_some();

        if self.state.lock().users.are_wanted() {
            return false;
        }
        self.turn.try_lock().is_none_or(|turn| {
            turn.segment() == Some(segment) && (turn.home.is_none() || has_placement())
        })
    }

    /// Whether the space wants it, and it has no placement. What was offered stays away until it is
    /// taken back.
    fn is_missed_by(&self, seat: &Arc<Seat>) -> bool {
        let state = self.state.lock();
        let mut wanting = state.users.wanting();

        state.placement.is_none()
            && state.users.droppable().is_none()
            && wanting.any(|space| Arc::ptr_eq(space.seat(), seat))
    }

    /// Takes pages of system memory, although it had best be in a segment; false if it may not be
    /// there, or there are none.
    fn use_system_memory(&self) -> bool {
        let storage = self.state.lock().storage.clone();
        let Some(storage) = storage else {
            return false;
        };
        let mut turn = self.lock_turn();
        let allowed = turn.site.may_be_in_system_memory;

        if !allowed || turn.local.is_some() {
            return false;
        }
        if turn.pinned.is_none() {
            turn.pinned = PinnedPages::new(&storage, &self.mover.log).ok();
        }
        turn.pinned.is_some()
    }
}
