// SPDX-License-Identifier: GPL-2.0

//! The waits of one process.
//!
//! Asynchronous waits are listed, because they end with their process (FEN-89). A fence point ends
//! with its descriptor, which may be in another process, and is only counted. Both count against
//! the limit of the process that made them. A wait of a sleeping thread ends with the thread; it is
//! kept while a signal handler interrupts it.
//!
//! The elements of all of them are charged to the user (RES-105), because they are what a wait
//! costs.

use super::{
    interrupted_waits::InterruptedWaits,
    waiter::{
        Pending,
        Waiter, //
    },
    wake::SignalEvent, //
};
use crate::dxgk::quota::account::{
    Account,
    Exceeded,
    Limit, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    sys::alloc::tree_node,
    sys::params, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// The waits of one process.
#[pin_data]
pub(crate) struct PendingWaits {
    /// How many waits count.
    count: Atomic<u32>,
    /// The account that their elements are charged to.
    account: Account,
    /// Waits whose threads run signal handlers.
    #[pin]
    pub(crate) interrupted: InterruptedWaits,
    /// Asynchronous waits by id. LOCK: leaf.
    #[pin]
    listed: SpinLock<Listed>,
}

struct Listed {
    waits: RBTree<u64, Arc<Waiter<SignalEvent>>>,
    closed: bool,
}

impl PendingWaits {
    /// No waits.
    pub(crate) fn new(account: Account) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                count: Atomic::new(0),
                account,
                interrupted <- InterruptedWaits::new(),
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
        Ok(Pending::new(self.clone(), elements, true))
    }

    /// The same for the wait of a sleeping thread.
    pub(crate) fn reserve_sleeping(self: &Arc<Self>, elements: u32) -> DxgResult<Pending> {
        self.charge(elements)?;
        Ok(Pending::new(self.clone(), elements, false))
    }

    fn charge(&self, elements: u32) -> core::result::Result<(), Exceeded> {
        self.account.take(Limit::WaitElements, elements)
    }

    /// Removes a wait.
    pub(in crate::dxgk) fn release(&self, elements: u32, is_asynchronous: bool) {
        self.account.give_back(Limit::WaitElements, elements);
        if is_asynchronous {
            self.count.fetch_sub(1, Relaxed);
        }
    }

    /// Lists a wait that is about to be registered, so that it ends with the process.
    /// INVALID_PARAMETER if the process has ended, as for its handles.
    pub(in crate::dxgk) fn list(&self, waiter: &Arc<Waiter<SignalEvent>>) -> DxgResult {
        let node = tree_node(waiter.id, waiter.clone())?;
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

        drop(node);
    }

    /// Ends every listed or interrupted wait silently. Called when the process is gone.
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
        self.interrupted.close();
    }
}
