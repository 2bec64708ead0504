// SPDX-License-Identifier: GPL-2.0

//! The fences of an adapter that NT handles may keep. With the local handles of all processes
//! these are all its fences that somebody can still wait for, so the end of the adapter finds them
//! (FEN-105).
//!
//! LOCK: a leaf.

use crate::sys::alloc::tree_node;
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

/// A fence as the list knows it.
pub(in crate::dxgk) trait SharedFence: Send + Sync {
    /// The adapter that it was made on is removed.
    ///
    /// Context: may sleep, no locks held.
    fn adapter_removed(self: Arc<Self>);
}

/// The fences of an adapter that may be members of shares, from their creation until they retire.
#[pin_data]
pub(crate) struct SharedFences {
    #[pin]
    fences: SpinLock<RBTree<u64, Arc<dyn SharedFence>>>,
}

impl SharedFences {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            fences <- new_spinlock!(RBTree::new(), "SharedFences::fences"),
        })
    }

    /// Adds the fence with this id, which has to be taken out when it retires.
    pub(in crate::dxgk) fn add(
        &self,
        id: u64,
        fence: Arc<dyn SharedFence>,
    ) -> Result<(), AllocError> {
        let node = tree_node(id, fence)?;

        // Ids are unique, so that nothing is replaced.
        let _nothing = self.fences.lock().insert(node);
        Ok(())
    }

    /// Takes the fence with this id out, if it was added. The caller has a reference to it.
    pub(in crate::dxgk) fn remove(&self, id: u64) {
        let node = self.fences.lock().remove_node(&id);

        drop(node);
    }

    /// Tells all fences that their adapter is removed. Nothing is added any more.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn adapter_removed(&self) {
        let mut seen = 0;

        while let Some((id, fence)) = self.after(seen) {
            fence.adapter_removed();
            seen = id;
        }
    }

    /// The first fence whose id is above `seen`, and its id. Ids start at 1.
    fn after(&self, seen: u64) -> Option<(u64, Arc<dyn SharedFence>)> {
        let fences = self.fences.lock();
        let next = fences.cursor_lower_bound(&seen.checked_add(1)?)?;
        let (id, fence) = next.current();

        Some((*id, fence.clone()))
    }
}
