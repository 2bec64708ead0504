// SPDX-License-Identifier: GPL-2.0

//! The waits of one process that no thread sleeps in: asynchronous waits and fence points.
//!
//! Asynchronous waits are listed, because they end with their process (FEN-89). A fence point ends
//! with its descriptor, which may have gone to another process, and is only counted. Both count
//! against the limit of the process that made them.

use super::waiter::{
    Pending,
    Waiter, //
};
use crate::{
    sys::params,
    uapi::status::{
        Outcome,
        Status, //
    }, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// See the module.
#[pin_data]
pub(crate) struct PendingWaits {
    /// How many waits count.
    count: Atomic<u32>,
    /// Asynchronous waits by id. LOCK: leaf.
    #[pin]
    listed: SpinLock<Listed>,
}

struct Listed {
    waits: RBTree<u64, Arc<Waiter>>,
    closed: bool,
}

impl PendingWaits {
    /// No waits.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                count: Atomic::new(0),
                listed <- new_spinlock!(
                    Listed {
                        waits: RBTree::new(),
                        closed: false,
                    },
                    "PendingWaits::listed"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// How many waits are pending.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// Counts one more wait, up to the limit (NM, FEN-45).
    pub(crate) fn admit(self: &Arc<Self>) -> Outcome<Pending> {
        if self.count.fetch_add(1, Relaxed) >= params::max_waiters() {
            self.release();
            return Err(Status::NO_MEMORY.into());
        }
        Ok(Pending::new(self.clone()))
    }

    /// One wait less.
    pub(super) fn release(&self) {
        self.count.fetch_sub(1, Relaxed);
    }

    /// Lists a wait that is about to be registered, so that it ends with the process. Fails if that
    /// has ended already.
    pub(super) fn list(&self, waiter: &Arc<Waiter>) -> Result {
        let node = RBTreeNode::new(waiter.id, waiter.clone(), GFP_KERNEL_ACCOUNT)?;
        let mut listed = self.listed.lock();

        if listed.closed {
            drop(listed);
            drop(node);
            return Err(ESRCH);
        }
        listed.waits.insert(node);
        Ok(())
    }

    /// Takes a wait off the list, if it is there.
    pub(super) fn forget(&self, id: u64) {
        let node = self.listed.lock().waits.remove_node(&id);

        drop(node);
    }

    /// Ends every listed wait without telling anybody: the process is gone.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        let waits = {
            let mut listed = self.listed.lock();

            listed.closed = true;
            core::mem::take(&mut listed.waits)
        };

        for waiter in waits.values() {
            waiter.cancel();
        }
    }
}
