// SPDX-License-Identifier: GPL-2.0

//! Allocations that nobody wants to be resident, and that stay where they are until their room is
//! wanted for others (MEM-23, MEM-27).
//!
//! Their page tables stay valid, so that who wants one again has nothing to do. Each segment and
//! each aperture has a list of those that are in it.
//!
//! LOCK: `IdleList::state` is a spinlock and a leaf, inside `AllocationMemory::state`. Nothing is
//! dropped under it for good.

use crate::sys::alloc::{
    pin_arc,
    tree_place, //
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
pub(super) trait Idle: Send + Sync {
    /// Gives its room back, unless it is in the list no more. On return it is not.
    ///
    /// Context: may sleep, no locks held.
    fn give_way(&self);
}

/// A place in a list: those with the lowest priority go first, and of those that were added first.
pub(super) type Key = (u32, u64);

/// Memory for a place in a list.
pub(super) struct IdlePlace(RBTreeNodeReservation<Key, Arc<dyn Idle>>);

impl IdlePlace {
    /// Context: may sleep.
    pub(super) fn new() -> Result<Self, AllocError> {
        tree_place().map(Self)
    }
}

struct State {
    list: RBTree<Key, Arc<dyn Idle>>,
    /// How many were added so far.
    added: u64,
}

/// What can give way in one segment or aperture.
#[pin_data]
pub(super) struct IdleList {
    #[pin]
    state: SpinLock<State>,
}

impl IdleList {
    /// Nothing.
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                state <- new_spinlock!(
                    State {
                        list: RBTree::new(),
                        added: 0,
                    },
                    "IdleList::state"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds something; says where it is.
    pub(super) fn add(&self, place: IdlePlace, priority: u32, what: Arc<dyn Idle>) -> Key {
        let mut state = self.state.lock();

        // OVERFLOW: 2^64 of them take longer than any machine runs.
        state.added = state.added.wrapping_add(1);

        let key = (priority, state.added);
        // No other has this number.
        let _nothing = state.list.insert(place.0.into_node(key, what));

        key
    }

    /// Takes out what is there. Somebody else keeps it.
    pub(super) fn remove(&self, key: Key) -> Option<IdlePlace> {
        let mut state = self.state.lock();
        let node = state.list.remove_node(&key)?;

        Some(IdlePlace(node.into_reservation()))
    }

    /// Has the one that goes first give its room back; false if there is none.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn make_room(&self) -> bool {
        let first = {
            let state = self.state.lock();

            state.list.iter().next().map(|(_, first)| first.clone())
        };

        if let Some(first) = &first {
            first.give_way();
        }
        first.is_some()
    }
}
