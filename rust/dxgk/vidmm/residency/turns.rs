// SPDX-License-Identifier: GPL-2.0

//! An allocation while address spaces take turns with a segment (MEM-18): it leaves while no space
//! runs that wants it, and comes back before one of them goes on.

use super::{
    AllocationMemory,
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
        match self.may_leave(&self.state.lock(), segment, requester) {
            Leaves::Left => {}
            other => return other,
        }

        let mut leaves = Leaves::Stays;

        // Somebody else may have come to want it. Who wants it may have written to it.
        self.leave_if(|state| {
            leaves = self.may_leave(state, segment, requester);

            let is_left = matches!(leaves, Leaves::Left);

            state.is_written |= is_left;
            is_left
        });
        leaves
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
                    return room.segment.map_or(Returned::Failed, Returned::LacksRoom)
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
    /// [`Leaves::Left`] if it may leave this segment. What engines use by physical addresses may
    /// not.
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
                _ if seat.is_suspended() && is_coming => {}
                _ if seat.is_suspended() => leaves = Leaves::Left,
                _ if is_coming => leaves = Leaves::Comes,
                _ => leaves = Leaves::IsUsedBy(seat.clone()),
            }
        }
        leaves
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
