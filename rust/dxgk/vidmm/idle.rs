// SPDX-License-Identifier: GPL-2.0

//! Allocations that stay where they are until their room is wanted for others: those that are
//! offered, and those that nobody wants to be resident (MEM-23, MEM-27).
//!
//! Their page tables stay valid, so that who wants one again has nothing to do. Each segment and
//! each aperture has a list of those that are in it. A process has a list of what it has offered
//! together with the system memory that backs it (MEM-33).
//!
//! LOCK: `IdleList::state` is a spinlock and a leaf, inside `AllocationMemory::state`. Nothing is
//! dropped under it for good.

use super::paging_switches::PagingSwitches;
use crate::{
    logic::offer_rules::Rank,
    sys::{
        alloc::{
            pin_arc,
            tree_place, //
        },
        task::sleep, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// Something that is in a list.
pub(crate) trait Idle: Send + Sync {
    /// Gives its room back, unless it is in the list no more. On return it is not.
    ///
    /// Context: may sleep, no locks held.
    fn give_way(&self);

    /// Gives the system memory back that backs it, unless somebody needs it. Only if its bytes were
    /// dropped before, if `only_discarded`. Says how many bytes that are.
    ///
    /// Context: may sleep, no locks held.
    fn decommit(&self, only_discarded: bool) -> Option<u64>;
}

/// A place in a list: those with the lowest rank go first, of those the ones with the lowest
/// eviction priority, and of those what was added first.
pub(super) type Key = (Rank, u32, u64);

/// What is at a place.
struct Entry {
    what: Arc<dyn Idle>,
    bytes: u64,
}

/// Memory for a place in a list.
pub(super) struct IdlePlace(RBTreeNodeReservation<Key, Entry>);

impl IdlePlace {
    /// Context: may sleep.
    pub(super) fn new() -> Result<Self, AllocError> {
        tree_place().map(Self)
    }
}

struct State {
    list: RBTree<Key, Entry>,
    /// How many were added so far.
    added: u64,
    /// How many were taken out.
    removed: u64,
    /// Bytes of all that is there.
    bytes: u64,
}

/// What can give way in one segment or aperture, or of one process.
#[pin_data]
pub(crate) struct IdleList {
    /// What tests want to give way.
    switches: Option<Arc<PagingSwitches>>,
    #[pin]
    state: SpinLock<State>,
}

impl IdleList {
    /// Nothing.
    pub(in crate::dxgk) fn new(
        switches: Option<Arc<PagingSwitches>>,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                switches,
                state <- new_spinlock!(
                    State {
                        list: RBTree::new(),
                        added: 0,
                        removed: 0,
                        bytes: 0,
                    },
                    "IdleList::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Adds something of so many bytes; says where it is.
    pub(super) fn add(
        &self,
        place: IdlePlace,
        (rank, priority): (Rank, u32),
        bytes: u64,
        what: Arc<dyn Idle>,
    ) -> Key {
        let mut state = self.state.lock();

        // OVERFLOW: 2^64 of them take longer than any machine runs.
        state.added = state.added.wrapping_add(1);

        let key = (rank, priority, state.added);
        // No other has this number.
        let _nothing = state
            .list
            .insert(place.0.into_node(key, Entry { what, bytes }));

        state.bytes = state.bytes.saturating_add(bytes);
        key
    }

    /// Takes out what is there. Somebody else keeps it.
    pub(super) fn remove(&self, key: Key) -> Option<IdlePlace> {
        let mut state = self.state.lock();
        let bytes = state.list.get(&key)?.bytes;
        let node = state.list.remove_node(&key)?;

        // OVERFLOW: as above.
        state.removed = state.removed.wrapping_add(1);
        state.bytes = state.bytes.saturating_sub(bytes);
        Some(IdlePlace(node.into_reservation()))
    }

    /// Has the one that goes first give its room back, or another one if tests want that; false if
    /// there is none.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn make_room(&self) -> bool {
        let first = {
            let state = self.state.lock();
            let switches = self.switches.as_ref();
            let turn = switches.map_or(0, |switches| switches.victim(|| state.list.iter().count()));
            let victim = state.list.iter().nth(turn);

            victim.map(|(_, victim)| victim.what.clone())
        };

        if let Some(first) = &first {
            first.give_way();
        }
        first.is_some()
    }

    /// Bytes of all that is there, and a number that changes when the list does.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let state = self.state.lock();

        // OVERFLOW: as in `add`.
        (state.bytes, state.added.wrapping_add(state.removed))
    }

    /// Has one after the other give back the system memory that backs it, until so many bytes are
    /// back or there is nothing more. Only what has lost its bytes already, if `only_discarded`.
    /// Says how many bytes are back.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn decommit(&self, wanted: u64, only_discarded: bool) -> u64 {
        let mut bytes = 0u64;
        let mut next: Option<Key> = None;

        while bytes < wanted && !sleep::is_killed() {
            let (key, what) = {
                let state = self.state.lock();
                let first = match &next {
                    Some(key) => state.list.cursor_lower_bound(key),
                    None => state.list.cursor_front(),
                };
                let Some(first) = first else {
                    break;
                };
                let (key, entry) = first.current();

                (*key, entry.what.clone())
            };
            let freed = what.decommit(only_discarded).unwrap_or(0);

            bytes = bytes.saturating_add(freed);
            // OVERFLOW: as in `add`.
            next = Some((key.0, key.1, key.2.wrapping_add(1)));
        }
        bytes
    }
}
