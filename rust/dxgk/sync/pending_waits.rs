// SPDX-License-Identifier: GPL-2.0

//! The waits of one process.
//!
//! Asynchronous waits are listed, because they end with their process (FEN-89). A fence point ends
//! with its descriptor, which may be in another process, and is only counted. So is a fence stream.
//! A signal that waits for an eventfd is listed (FEN-175). All of these count against the limit of
//! the process that made them. A wait of a sleeping thread ends with the thread.
//!
//! The elements of all of them are charged to the user (RES-105), because they are what a wait
//! costs.

use crate::dxgk::{
    quota::account::{
        Account,
        Exceeded,
        Limit, //
    },
    stats::{
        Counted,
        Module,
        WAITERS, //
    }, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    sys::alloc::tree_place,
    sys::params, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
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

/// A wait counts against its process and its user until it ends.
pub(crate) struct Pending {
    /// The waits of its process.
    pub(crate) waits: Arc<PendingWaits>,
    /// The elements that its user was charged for.
    elements: u32,
    /// There unless a thread sleeps in it.
    asynchronous: Option<Counted<Module, WAITERS>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.waits
            .release(self.elements, self.asynchronous.is_some());
    }
}

/// An asynchronous wait, as the list of its process knows it.
pub(in crate::dxgk) trait ListedWait: Send + Sync {
    /// The process is gone: the wait ends, and nobody is told.
    ///
    /// Context: may sleep, no locks held.
    fn cancel(&self);
}

/// The waits of one process.
#[pin_data]
pub(crate) struct PendingWaits {
    /// How many waits count.
    count: Atomic<u32>,
    /// How many rewinds by events were refused (FEN-175).
    refused_rewinds: Atomic<u32>,
    /// The account that their elements are charged to.
    account: Account,
    /// Asynchronous waits by id. LOCK: leaf.
    #[pin]
    listed: SpinLock<Listed>,
}

/// A place in the list that is not used.
type Place = RBTreeNodeReservation<u64, Arc<dyn ListedWait>>;

struct Listed {
    waits: RBTree<u64, Arc<dyn ListedWait>>,
    /// That of the last wait that has ended, so that one wait after the other takes no memory.
    spare: Option<Place>,
    closed: bool,
}

impl PendingWaits {
    /// No waits.
    pub(crate) fn new(account: Account) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                count: Atomic::new(0),
                refused_rewinds: Atomic::new(0),
                account,
                listed <- new_spinlock!(
                    Listed {
                        waits: RBTree::new(),
                        spare: None,
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

    /// How many signals by events were refused because they would have rewound a fence.
    pub(crate) fn refused_rewinds(&self) -> u32 {
        self.refused_rewinds.load(Relaxed)
    }

    /// One more.
    pub(in crate::dxgk) fn count_refused_rewind(&self) {
        self.refused_rewinds.fetch_add(1, Relaxed);
    }

    /// Counts a wait without a sleeping thread and charges its elements, up to the limits (NM,
    /// FEN-45).
    pub(crate) fn reserve(self: &Arc<Self>, elements: u32) -> DxgResult<Pending> {
        if self.count.fetch_add(1, Relaxed) >= params::max_waiters() {
            self.count.fetch_sub(1, Relaxed);
            return Err(Status::NO_MEMORY.into());
        }
        self.charge(elements).inspect_err(|_| {
            self.count.fetch_sub(1, Relaxed);
        })?;
        Ok(self.pending(elements, true))
    }

    /// The same for the wait of a sleeping thread.
    pub(crate) fn reserve_sleeping(self: &Arc<Self>, elements: u32) -> DxgResult<Pending> {
        self.charge(elements)?;
        Ok(self.pending(elements, false))
    }

    /// A wait that was charged.
    fn pending(self: &Arc<Self>, elements: u32, is_asynchronous: bool) -> Pending {
        Pending {
            waits: self.clone(),
            elements,
            asynchronous: is_asynchronous.then(|| Counted::new(Module)),
        }
    }

    fn charge(&self, elements: u32) -> core::result::Result<(), Exceeded> {
        self.account.take(Limit::WaitElements, elements)
    }

    /// Removes a wait.
    fn release(&self, elements: u32, is_asynchronous: bool) {
        self.account.give_back(Limit::WaitElements, elements);
        if is_asynchronous {
            self.count.fetch_sub(1, Relaxed);
        }
    }

    /// Lists a wait with this id that is about to be registered, so that it ends with the process.
    /// INVALID_PARAMETER if the process has ended, as for its handles.
    pub(in crate::dxgk) fn list(&self, id: u64, wait: Arc<dyn ListedWait>) -> DxgResult {
        let spare = self.listed.lock().spare.take();
        let place = match spare {
            Some(place) => place,
            None => tree_place()?,
        };
        let node = place.into_node(id, wait);
        let mut listed = self.listed.lock();

        if listed.closed {
            drop(listed);
            drop(node);
            return Err(Status::INVALID_PARAMETER.into());
        }
        listed.waits.insert(node);
        Ok(())
    }

    /// Takes a wait off the list, if it is there.
    pub(in crate::dxgk) fn forget(&self, id: u64) {
        let node = self.listed.lock().waits.remove_node(&id);
        // Its reference goes without the lock.
        let place = node.map(RBTreeNode::into_reservation);
        let before = place.and_then(|place| self.listed.lock().spare.replace(place));

        drop(before);
    }

    /// Ends every listed wait silently. Called when the process is gone.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        let waits = {
            let mut listed = self.listed.lock();

            listed.closed = true;
            core::mem::take(&mut listed.waits)
        };

        for wait in waits.values() {
            wait.cancel();
        }
    }
}
