// SPDX-License-Identifier: GPL-2.0

//! What is offered: the bytes of an allocation may be dropped while all who have it open say so
//! (MEM-27, MEM-29 to MEM-31).
//!
//! A device offers an allocation and takes it back. While all of them offer it, and nothing uses it
//! that was begun before, it is in the list of its placement, before those that nobody wants, and
//! gives way although somebody wants it. It loses its placement then, so that engines fault, and
//! what was in a segment is dropped. If all of them allow it, it is in a list of a process, too:
//! its system memory may be given back, and it has none until it is taken back or wanted again.
//!
//! INVARIANT: bytes are dropped under `turn`, while all who have it open offer it. An open comes,
//! and an offer is taken back, under `turn`, too. So whoever does not offer it finds its bytes as
//! they are for good.

use super::{
    AllocationMemory,
    Left,
    State,
    Turn, //
};
use crate::{
    ddi::types::Place,
    dxgk::{
        memory::{
            backing::NoPages,
            storage::Storage, //
        },
        vidmm::{
            idle::IdlePlace,
            placement::Placement,
            resident_in::ResidentIn, //
        }, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        offer_rules::{
            Droppable,
            Offer,
            Rank,
            Reclaimed,
            Request, //
        },
        paging_log::{
            Action,
            Event,
            Kind, //
        },
        users::Users, //
    },
    sys::{
        mem::pages::PageSource,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// Memory for what an offer adds to lists.
pub(in crate::dxgk::vidmm) struct OfferPlaces {
    idle: IdlePlace,
    offered: IdlePlace,
}

impl OfferPlaces {
    /// Context: may sleep.
    pub(in crate::dxgk::vidmm) fn new() -> Result<Self, AllocError> {
        Ok(Self {
            idle: IdlePlace::new()?,
            offered: IdlePlace::new()?,
        })
    }
}

/// A handle that no device uses: as long as there is one, nobody drops the bytes.
pub(in crate::dxgk) struct OtherHandle(Arc<AllocationMemory>);

impl OtherHandle {
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(memory: &Arc<AllocationMemory>) -> Result<Self, AllocError> {
        memory.enter_with(|users| {
            users.count_other(true);
            Ok(())
        })?;
        Ok(Self(memory.clone()))
    }
}

impl Drop for OtherHandle {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let mut state = self.0.state.lock();

        state.users.count_other(false);
        self.0.relist(&mut state);
    }
}

/// What a device has taken back.
pub(in crate::dxgk::vidmm) struct Taken {
    /// What it had said; `None` if it had offered nothing.
    offer: Option<Offer>,
    /// What has become of the bytes.
    pub(in crate::dxgk::vidmm) result: Reclaimed,
}

impl Taken {
    /// Nothing: there is no memory for it.
    pub(in crate::dxgk::vidmm) fn not_committed() -> Self {
        Self {
            offer: None,
            result: Reclaimed::NotCommitted,
        }
    }
}

impl AllocationMemory {
    /// It goes to the lists in which it belongs, and leaves the others. Who makes it belong to one
    /// has left memory for its place.
    pub(super) fn relist(self: &Arc<Self>, state: &mut State) {
        let droppable = state.users.droppable();
        let rank = match droppable {
            _ if state.unmoveable => None,
            Some(droppable) => Some(Rank::Offered(droppable.priority)),
            None if state.is_idle => Some(Rank::Idle),
            None => None,
        };

        self.relist_idle(state, rank);
        self.relist_offered(state, droppable);
        self.relist_for_shrinker(state);
    }

    /// Its place in the list of what a placement has.
    fn relist_idle(self: &Arc<Self>, state: &mut State, rank: Option<Rank>) {
        let wanted = rank.map(|rank| (rank, self.priority()));

        // What stays where it is does not go behind the others.
        if state.idle.map(|(rank, priority, _)| (rank, priority)) == wanted {
            return;
        }
        state.leave_list();

        let list = state.placement.as_ref().and_then(Placement::idle);
        let Some((order, list)) = wanted.zip(list) else {
            return;
        };

        if let Some(place) = state.idle_place.take() {
            state.idle = Some(list.add(place, order, self.size(), self.clone()));
        }
    }

    /// Its place in the list of a process: that of who has it open longest.
    fn relist_offered(self: &Arc<Self>, state: &mut State, droppable: Option<Droppable>) {
        let may_move = state
            .storage
            .as_ref()
            .is_some_and(|storage| storage.may_move());
        let wanted = droppable
            .filter(|all| all.allow_decommit && may_move && !state.is_decommitted)
            .map(|all| (Rank::Offered(all.priority), self.priority()))
            .zip(state.users.first_space().cloned());
        let is_there = match (&state.offered, &wanted) {
            (Some((list, (rank, priority, _))), Some((order, space))) => {
                Arc::ptr_eq(list, space.offered()) && (*rank, *priority) == *order
            }
            (None, None) => true,
            _ => false,
        };

        if is_there {
            return;
        }
        if let Some((list, key)) = state.offered.take() {
            state.offered_place = list.remove(key);
        }

        let Some((order, space)) = wanted else {
            return;
        };

        if let Some(place) = state.offered_place.take() {
            let key = space.offered().add(place, order, self.size(), self.clone());

            state.offered = Some((space.offered().clone(), key));
        }
    }

    /// Adds somebody who has it open. If it is offered, its bytes may be about to be dropped, which
    /// is waited for; and what has no system memory gets it.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn enter_with(
        self: &Arc<Self>,
        enter: impl FnOnce(&mut Users<Arc<dyn ResidentIn>>) -> Result<(), AllocError>,
    ) -> Result<(), AllocError> {
        let _turn;
        let mut state = self.state.lock();

        if state.users.are_offering() {
            drop(state);
            _turn = self.lock_turn();
            self.commit().map_err(|_| AllocError)?;
            state = self.state.lock();
        }
        enter(&mut state.users)?;
        self.relist(&mut state);
        Ok(())
    }

    /// What has given its system memory back gets it again; NO_MEMORY if there is none.
    ///
    /// Context: may sleep, no locks held but `turn`.
    pub(super) fn commit(self: &Arc<Self>) -> DxgResult {
        let storage = {
            let state = self.state.lock();

            if !state.is_decommitted {
                return Ok(());
            }
            state.storage.clone()
        };

        storage.ok_or(Status::INVALID_PARAMETER)?.commit()?;

        let mut state = self.state.lock();

        state.is_decommitted = false;
        self.relist(&mut state);
        Ok(())
    }

    /// Whether a device has it open.
    pub(in crate::dxgk::vidmm) fn is_open_by(&self, device: u64) -> bool {
        self.state.lock().users.is_open_by(device)
    }

    /// Whether a device has offered it and not taken it back.
    pub(in crate::dxgk) fn is_offered_by(&self, device: u64) -> bool {
        self.state.lock().users.is_offered_by(device)
    }

    /// The device offers it, by the call with this number, instead of what it has said before.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn offer(
        self: &Arc<Self>,
        device: u64,
        request: &Request,
        call: u64,
        places: OfferPlaces,
    ) {
        let OfferPlaces { idle, offered } = places;
        // Dropped after the lock if they are not used.
        let (mut idle, mut offered) = (Some(idle), Some(offered));
        let mut state = self.state.lock();
        let offer = request.offer(self.priority(), call);

        if state.idle.is_none() && state.idle_place.is_none() {
            state.idle_place = idle.take();
        }
        if state.offered.is_none() && state.offered_place.is_none() {
            state.offered_place = offered.take();
        }
        // The open may have ended since it was checked.
        let _before = state.users.set_offer(device, Some(offer));

        self.relist(&mut state);
        drop(state);
        self.trace(Event::Offer, device, 0);
    }

    fn trace(&self, event: Event, device: u64, status: u32) {
        self.mover.log.tell(event, || Action {
            device,
            size: self.size(),
            status,
            ..Action::default()
        });
    }

    /// The work is done that was queued before the call with this number.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn take_effect(self: &Arc<Self>, device: u64, call: u64) {
        let mut state = self.state.lock();

        state.users.take_effect(device, call);
        self.relist(&mut state);
    }

    /// The device takes it back. What cannot have system memory stays offered.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn take_back(self: &Arc<Self>, device: u64) -> Taken {
        let _turn = self.lock_turn();

        if self.state.lock().users.is_offered_by(device) && self.commit().is_err() {
            return Taken::not_committed();
        }

        let mut state = self.state.lock();
        let offer = state.users.set_offer(device, None).1;
        let result = match state.users.is_discarded(device) {
            true => Reclaimed::Discarded,
            false => Reclaimed::Ok,
        };

        self.relist(&mut state);
        Taken { offer, result }
    }

    /// The device has not taken it back after all.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn restore_offer(self: &Arc<Self>, device: u64, taken: &Taken) {
        let Some(offer) = taken.offer else {
            return;
        };
        let mut state = self.state.lock();

        // Somebody may have offered it again meanwhile.
        if !state.users.is_offered_by(device) {
            let _before = state.users.set_offer(device, Some(offer));
        }
        self.relist(&mut state);
    }

    /// The device has it back, and knows what has become of the bytes.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn tell_reclaimed(&self, device: u64, result: Reclaimed) {
        if result == Reclaimed::Discarded {
            self.state.lock().users.tell_discarded(device);
        }
        self.trace(Event::Reclaim, device, result.code());
    }

    /// Whether somebody wants it to be resident, and it is not.
    pub(in crate::dxgk::vidmm) fn is_missing(&self) -> bool {
        let state = self.state.lock();

        state.users.are_wanted() && state.placement.is_none()
    }

    /// Gives up what was the placement, and drops bytes that were in a segment. On return no engine
    /// uses it.
    pub(super) fn drop_bytes(
        &self,
        turn: &mut Turn,
        placement: Option<Placement>,
        storage: Option<Arc<Storage>>,
        droppable: Droppable,
    ) -> Left {
        self.give_up(turn, placement, storage, |turn, storage| {
            match (storage, &turn.home) {
                // False if something else keeps the bytes where they are.
                (Some(storage), Some(home)) => self.drop_from(storage, home, droppable),
                _ => true,
            }
        })
    }

    /// Drops bytes that are in a segment; false if they cannot be. They are zeros from now on, in
    /// system memory, or have none.
    fn drop_from(
        &self,
        storage: &Storage,
        home: &Arc<dyn PageSource>,
        droppable: Droppable,
    ) -> bool {
        let empty = match droppable.allow_decommit {
            true => NoPages::in_place_of(home.count()).ok(),
            false => None,
        };
        let is_decommitted = empty.is_some();

        // What is at home is worth nothing from here on, whatever happens.
        self.state.lock().is_written = true;

        let pages = match empty {
            Some(empty) => empty,
            None => {
                // Nobody sees them.
                if clear(&**home).is_err() {
                    return false;
                }
                home.clone()
            }
        };

        if storage.replace_by(Place::SystemMemory, pages).is_err() {
            return false;
        }

        let mut state = self.state.lock();

        state.users.discard();
        state.is_written = false;
        state.set_decommitted(is_decommitted);
        drop(state);
        self.mover.log.write(|| Action {
            kind: Kind::Discard,
            // CAST: a usize fits 64 bits.
            count: storage.count() as u64,
            ..Action::default()
        });
        true
    }

    /// Gives the system memory back, if all who have it open allow that; or only if they have lost
    /// its bytes already. Says how many bytes that are.
    pub(super) fn give_back(&self, only_discarded: bool) -> Option<u64> {
        // Dropped after the lock.
        let (_left, _storage, _empty);
        let count = usize::try_from(self.size()).ok()? / kernel::page::PAGE_SIZE;
        let empty = NoPages::in_place_of(count).ok()?;
        let mut turn = self.lock_turn();
        let mut state = self.state.lock();

        if state.offered.is_none() || only_discarded && !state.users.are_all_discarded() {
            return None;
        }

        let placement = state.take_placement();

        _storage = state.storage.clone();
        drop(state);

        let storage = _storage.as_ref()?;

        if let Some(placement) = &placement {
            self.refresh();
            placement.release();
        }
        if let Some(pinned) = &turn.pinned {
            pinned.unpin();
        }
        _empty = empty.clone();

        let is_done = storage.replace_by(Place::SystemMemory, empty).is_ok();

        if is_done {
            let mut state = self.state.lock();

            state.users.discard();
            state.is_written = false;
            state.set_decommitted(true);
        }
        _left = Left {
            _placement: placement,
            _local: is_done.then(|| turn.leave_segment()).flatten(),
            _home: is_done.then(|| turn.home.take()).flatten(),
            _shown: turn.shown.take(),
            _pinned: turn.pinned.take(),
            ..Left::default()
        };
        is_done.then(|| self.size())
    }
}

impl State {
    /// It has system memory, or none.
    fn set_decommitted(&mut self, is_decommitted: bool) {
        self.is_decommitted = is_decommitted;
        if is_decommitted {
            if let Some((list, key)) = self.offered.take() {
                self.offered_place = list.remove(key);
            }
        }
    }
}

/// Fills the pages that are there with zeros.
fn clear(pages: &dyn PageSource) -> DxgResult {
    for index in 0..pages.count() {
        if let Some(page) = pages.present(index) {
            page.clear().map_err(DxgError::from_errno)?;
        }
        if index % 512 == 511 {
            work::breathe();
        }
    }
    Ok(())
}
