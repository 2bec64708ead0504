// SPDX-License-Identifier: GPL-2.0

//! Fences that NT handles may keep. With the local handles of all processes these are all fences
//! that somebody can still wait for, so that the end of an adapter finds them (FEN-105).
//!
//! LOCK: a leaf.

use crate::{
    dxgk::sync::fence::Fence,
    sys::alloc::tree_node, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// The fences that may be members of shares, from their creation until they retire.
#[pin_data]
pub(crate) struct SharedFences {
    #[pin]
    fences: SpinLock<RBTree<u64, Arc<Fence>>>,
}

impl SharedFences {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            fences <- new_spinlock!(RBTree::new(), "SharedFences::fences"),
        })
    }

    /// Adds a fence, which has to be taken out when it retires.
    pub(in crate::dxgk) fn add(&self, fence: &Arc<Fence>) -> Result<(), AllocError> {
        let node = tree_node(fence.header.id(), fence.clone())?;

        // Ids are unique, so that nothing is replaced.
        let _nothing = self.fences.lock().insert(node);
        Ok(())
    }

    /// Takes a fence out, if it was added. The caller has a reference to it.
    pub(in crate::dxgk) fn remove(&self, fence: &Fence) {
        let node = self.fences.lock().remove_node(&fence.header.id());

        drop(node);
    }

    /// The first fence whose id is above `seen`, and its id. Ids start at 1.
    pub(in crate::dxgk) fn after(&self, seen: u64) -> Option<(u64, Arc<Fence>)> {
        let fences = self.fences.lock();
        let next = fences.cursor_lower_bound(&seen.checked_add(1)?)?;
        let (id, fence) = next.current();

        Some((*id, fence.clone()))
    }
}
