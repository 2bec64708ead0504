// SPDX-License-Identifier: GPL-2.0

//! What the shrinker may free of an allocation, and when (MEM-111).

use super::{
    AllocationMemory,
    Left,
    State,
    Turn, //
};
use crate::{
    ddi::segments::SYSTEM_MEMORY,
    dxgk::vidmm::{
        placement::Placement,
        shrinker::{
            AdapterShrinker,
            LosesPlacement,
            ReclaimItem,
            Reclaimable,
            Target, //
        }, //
    },
    logic::{
        paging_log::{
            Action,
            Kind, //
        },
        reclaim_rules::{
            Facts,
            Placed, //
        }, //
    }, //
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        lock::mutex::MutexGuard,
        Arc, //
    }, //
};

/// The turn of an allocation: the shrinker frees nothing of it meanwhile.
pub(super) struct TurnGuard<'a> {
    memory: &'a AllocationMemory,
    turn: MutexGuard<'a, Turn>,
}

impl Deref for TurnGuard<'_> {
    type Target = Turn;

    fn deref(&self) -> &Turn {
        &self.turn
    }
}

impl DerefMut for TurnGuard<'_> {
    fn deref_mut(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        if let Some(victim) = &self.memory.victim {
            self.memory
                .relist_for_shrinker(&mut self.memory.state.lock());
            victim.release();
        }
    }
}

/// What an allocation that can move has for the shrinker, and its place in the lists.
pub(super) fn places(
    shrinker: &Arc<AdapterShrinker>,
) -> Result<(Arc<Reclaimable>, ReclaimItem), AllocError> {
    Ok((Reclaimable::new()?, ReclaimItem::new(shrinker)?))
}

impl AllocationMemory {
    /// Waits for its turn.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn lock_turn(&self) -> TurnGuard<'_> {
        let turn = self.turn.lock();

        if self.victim.as_ref().is_some_and(|victim| victim.hold()) {
            self.state.lock().users.discard();
            self.mover.log.write(|| Action {
                kind: Kind::Discard,
                // CAST: a usize fits 64 bits.
                count: self.size() / kernel::page::PAGE_SIZE as u64,
                ..Action::default()
            });
        }
        TurnGuard { memory: self, turn }
    }

    /// A device has it open, so that the shrinker knows what to free.
    pub(super) fn show_to_shrinker(self: &Arc<Self>) {
        let state = self.state.lock();

        if let (Some(victim), Some(storage), false) =
            (&self.victim, &state.storage, state.users.is_empty())
        {
            // What was there is the same, and so not dropped for good.
            victim.begin(self.clone(), storage.clone());
        }
    }

    /// It goes to the list of the shrinker in which it belongs.
    pub(super) fn relist_for_shrinker(&self, state: &mut State) {
        let facts = self.facts(state);
        let Some(victim) = self.victim.as_ref().filter(|_| facts != state.told) else {
            return;
        };

        state.told = facts;
        if let Some(list) = victim.set(facts) {
            if let Some(item) = &mut state.item {
                // Not the last one.
                let _before = item.put(list, victim);
            }
        }
    }

    fn facts(&self, state: &State) -> Option<Facts> {
        if state.storage.is_none() || state.is_decommitted || state.users.is_empty() {
            return None;
        }
        Some(Facts {
            is_droppable: state.users.droppable().is_some(),
            is_wanted: state.users.are_wanted(),
            is_unmoveable: state.unmoveable,
            placed: match state.placement.as_ref().map(Placement::segment) {
                None => Placed::No,
                Some(SYSTEM_MEMORY) => Placed::System,
                Some(_) => Placed::Segment,
            },
        })
    }

    /// Gives the placement up, if it may: the bytes go home, or are dropped if all who have it open
    /// offer them.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn leave_if(&self, may: impl FnOnce(&State) -> bool) {
        // Dropped after the lock.
        let _left: Left;
        let mut turn = self.lock_turn();
        let mut state = self.state.lock();

        if !may(&state) {
            return;
        }

        let droppable = state.users.droppable();
        let (placement, storage) = (state.take_placement(), state.storage.clone());

        drop(state);
        _left = match droppable {
            Some(droppable) => self.drop_bytes(&mut turn, placement, storage, droppable),
            None => self.give_up(&mut turn, placement, storage, |turn, storage| {
                self.go_home(turn, storage)
            }),
        };
    }

    /// No device has it open any more: the shrinker frees nothing of it. What this returns is
    /// dropped without locks.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn hide_from_shrinker(&self) -> Option<Target> {
        let state = self.state.lock();

        // A scan that is waited for does not take this lock.
        match state.users.is_empty() {
            true => self.victim.as_ref()?.end(),
            false => None,
        }
    }
}

impl LosesPlacement for AllocationMemory {
    fn lose_placement(&self) {
        self.leave_if(|state| {
            let class = self.facts(state).and_then(|facts| facts.class());

            class.is_some() && state.placement.is_some()
        });
    }
}
