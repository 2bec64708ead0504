// SPDX-License-Identifier: GPL-2.0

//! What is queued. An item is one piece of memory in the list of its queue; it is charged to the
//! user of the process that has queued it, until it is through or discarded (FEN-45).

use super::{
    queue::Queue,
    queued_work::Epoch,
    signal::QueuedSignal,
    wait::QueuedWait, //
};
use crate::dxgk::{
    process::Process,
    quota::account::{
        Account,
        Exceeded,
        Limit, //
    },
    sync::{
        cpu_wait::Element,
        legacy::LegacySync, //
    }, //
};
use crate::{
    error::DxgResult,
    logic::submission_order::ItemKind,
    sys::alloc::tree_place, //
};
use core::mem::size_of;
use kernel::{
    prelude::*,
    rbtree::RBTreeNodeReservation,
    sync::Arc, //
};

/// Commands for the KMD.
pub(crate) struct Commands {
    /// GPU virtual address.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) length: u32,
    /// What the progress fence of a HW queue shows when they have retired.
    pub(crate) progress: Option<u64>,
}

/// Commands in a queue.
pub(super) struct QueuedCommands {
    pub(super) commands: Commands,
    /// Is over when these and all others from before are gone.
    _epoch: Arc<Epoch>,
}

/// What an item is.
pub(super) enum What {
    Commands(QueuedCommands),
    Signal(Arc<QueuedSignal>),
    Wait(QueuedWait),
}

impl What {
    /// As the order of the queue sees it.
    pub(super) fn kind(&self) -> ItemKind {
        match self {
            Self::Commands(_) => ItemKind::Submission,
            Self::Signal(signal) if signal.at_submission => ItemKind::SignalAtSubmission,
            Self::Signal(_) => ItemKind::Signal,
            Self::Wait(_) => ItemKind::Wait,
        }
    }
}

/// What a user is charged for an item, until this is dropped.
struct ItemCharge {
    account: Account,
    bytes: u32,
}

/// Bytes of one element of a wait or a signal, about: it has a node in an object and an entry in a
/// list.
const ELEMENT: usize = 128;

impl ItemCharge {
    fn new(account: &Account, elements: usize) -> Result<Self, Exceeded> {
        let bytes = elements
            .saturating_mul(ELEMENT)
            .saturating_add(size_of::<Item>());
        // A call has a few thousand elements at most.
        let bytes = u32::try_from(bytes).map_err(|_| Exceeded)?;

        account.take(Limit::QueuedItems, 1)?;
        account.take(Limit::QueuedBytes, bytes).inspect_err(|_| {
            account.give_back(Limit::QueuedItems, 1);
        })?;
        Ok(Self {
            account: account.clone(),
            bytes,
        })
    }
}

impl Drop for ItemCharge {
    fn drop(&mut self) {
        self.account.give_back(Limit::QueuedBytes, self.bytes);
        self.account.give_back(Limit::QueuedItems, 1);
    }
}

/// What is queued.
pub(super) struct Item {
    pub(super) what: What,
    _charge: ItemCharge,
}

/// An item for one queue that is not queued yet. Queueing it allocates nothing.
pub(crate) struct NewItem {
    pub(super) queue: Arc<Queue>,
    pub(super) item: Item,
    pub(super) place: RBTreeNodeReservation<u64, Item>,
}

impl NewItem {
    fn new(
        queue: &Arc<Queue>,
        process: &Process,
        elements: usize,
        what: impl FnOnce() -> DxgResult<What>,
    ) -> DxgResult<Self> {
        let charge = ItemCharge::new(&process.account, elements)?;

        Ok(Self {
            queue: queue.clone(),
            item: Item {
                what: what()?,
                _charge: charge,
            },
            place: tree_place()?,
        })
    }

    /// Commands for `queue`.
    ///
    /// Context: may sleep, no locks held, as all of these.
    pub(crate) fn commands(
        queue: &Arc<Queue>,
        process: &Process,
        commands: Commands,
    ) -> DxgResult<Self> {
        Self::new(queue, process, 0, || {
            Ok(What::Commands(QueuedCommands {
                commands,
                _epoch: queue.device.process.work.epoch(),
            }))
        })
    }

    /// A wait of `queue` for values of fences.
    pub(crate) fn fence_wait(
        queue: &Arc<Queue>,
        process: &Process,
        elements: &[Element],
    ) -> DxgResult<Self> {
        Self::new(queue, process, elements.len(), || {
            QueuedWait::for_fences(queue, &process.waits, elements).map(What::Wait)
        })
    }

    /// A wait of `queue` for one older object.
    pub(crate) fn legacy_wait(
        queue: &Arc<Queue>,
        process: &Process,
        object: &Arc<LegacySync>,
        value: u64,
    ) -> DxgResult<Self> {
        Self::new(queue, process, 1, || {
            QueuedWait::for_legacy(queue, object, value).map(What::Wait)
        })
    }

    /// The part of `queue` in a signal.
    pub(crate) fn signal(
        queue: &Arc<Queue>,
        process: &Process,
        elements: usize,
        signal: &Arc<QueuedSignal>,
    ) -> DxgResult<Self> {
        Self::new(queue, process, elements, || {
            Ok(What::Signal(signal.clone()))
        })
    }
}
