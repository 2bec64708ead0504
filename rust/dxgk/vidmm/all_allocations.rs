// SPDX-License-Identifier: GPL-2.0

//! All allocations of an adapter, for those who look at one after the other: spaces that take
//! turns, and tests that move everything.
//!
//! LOCK: `state` is a spinlock and a leaf. Nothing is dropped under it.

use super::{
    freed::Look,
    seat::Seat, //
};
use crate::sys::alloc::pin_arc;
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

/// An allocation of an adapter.
pub(crate) trait Relocate: Send + Sync {
    /// Moves it to another place, unless it has to stay where it is.
    ///
    /// Context: may sleep, no locks held.
    fn move_elsewhere(self: Arc<Self>);

    /// Loses its placement, if that is in this segment, and if only suspended spaces want it.
    ///
    /// Context: may sleep, no locks held but `Rotation::hand`.
    fn leave(&self, segment: u32, requester: &Arc<Seat>) -> Leaves;

    /// Gets a placement, if the space wants it and it has none.
    ///
    /// Context: as [`Relocate::leave`].
    fn come_back(self: Arc<Self>, seat: &Arc<Seat>) -> Returned;

    /// The same in system memory, if it may be there; false if it may not, or there is none.
    ///
    /// Context: as [`Relocate::leave`].
    fn come_back_elsewhere(self: Arc<Self>, seat: &Arc<Seat>) -> bool;
}

/// Whether an allocation has left a segment.
pub(crate) enum Leaves {
    /// It has lost its placement there.
    Left,
    /// A space that runs wants it, and is not the one that lacks room.
    IsUsedBy(Arc<Seat>),
    /// Soon it is somewhere else, or where a space that runs wants it.
    Comes,
    /// It is not there, or has to stay.
    Stays,
}

/// Whether an allocation has come back.
pub(crate) enum Returned {
    /// It has a placement, or it is not wanted.
    Done,
    /// There was no room in this segment.
    LacksRoom(u32, Look),
    /// Something else is missing.
    Failed,
}

/// All allocations of one adapter.
#[pin_data]
pub(crate) struct AllAllocations {
    /// By the number of the allocation.
    #[pin]
    state: SpinLock<RBTree<u64, Arc<dyn Relocate>>>,
}

/// An allocation is among them, as long as this is there.
pub(super) struct Among {
    all: Arc<AllAllocations>,
    number: u64,
}

/// Memory for the place of an allocation.
pub(super) type AmongPlace = RBTreeNodeReservation<u64, Arc<dyn Relocate>>;

impl AllAllocations {
    /// None.
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                state <- new_spinlock!(RBTree::new(), "AllAllocations::state"),
            }),
            GFP_KERNEL,
        )
    }

    /// Whoever has the number is among them, as long as the result is kept, once it is
    /// [added](AllAllocations::add).
    pub(super) fn among(self: &Arc<Self>, number: u64) -> Among {
        Among {
            all: self.clone(),
            number,
        }
    }

    /// Adds the one with this number.
    pub(super) fn add(&self, place: AmongPlace, number: u64, memory: Arc<dyn Relocate>) {
        let node = place.into_node(number, memory);
        // Numbers are different.
        let _nothing = self.state.lock().insert(node);
    }

    /// The first one whose number is above this one, and its number.
    pub(super) fn after(&self, number: u64) -> Option<(u64, Arc<dyn Relocate>)> {
        let state = self.state.lock();
        let next = state.cursor_lower_bound(&number.checked_add(1)?)?;
        let (number, memory) = next.current();

        Some((*number, memory.clone()))
    }
}

impl Drop for Among {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let node = self.all.state.lock().remove_node(&self.number);

        drop(node);
    }
}
