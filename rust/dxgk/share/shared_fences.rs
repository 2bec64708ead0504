// SPDX-License-Identifier: GPL-2.0

//! Fences that NT handles keep: with the local handles of all processes these are all fences that
//! somebody can still wait for, so that the end of an adapter finds them (FEN-105).
//!
//! LOCK: a leaf.

use crate::dxgk::{
    stats::next_id,
    sync::fence::Fence, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// The fences that are members of shares.
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

    /// Adds the fence of a share. What is returned takes it out again.
    pub(super) fn add(&self, fence: &Arc<Fence>) -> Result<u64, AllocError> {
        let key = next_id();
        let node =
            RBTreeNode::new(key, fence.clone(), GFP_KERNEL_ACCOUNT).map_err(|_| AllocError)?;

        // Keys are unique, so that nothing is replaced.
        let _nothing = self.fences.lock().insert(node);
        Ok(key)
    }

    /// Takes a fence out.
    pub(super) fn remove(&self, key: u64) {
        let node = self.fences.lock().remove_node(&key);

        drop(node);
    }

    /// The first fence whose key is above `seen`, and that key. Keys start at 1.
    pub(crate) fn after(&self, seen: u64) -> Option<(u64, Arc<Fence>)> {
        let fences = self.fences.lock();
        let next = fences.cursor_lower_bound(&seen.checked_add(1)?)?;
        let (key, fence) = next.current();

        Some((*key, fence.clone()))
    }
}
