// SPDX-License-Identifier: GPL-2.0

//! What is queued. An item is one piece of memory in the list of its queue; it is charged to the
//! user of the process that has queued it, until it is through or discarded (FEN-45).

use super::{
    queued_work::Epoch,
    signal::QueuedSignal,
    wait::QueuedWait, //
};
use crate::{
    dxgk::quota::{
        account::{
            Account,
            Exceeded, //
        },
        queued::QueuedCharge, //
    },
    logic::submission_order::ItemKind,
    sys::trace::{
        self,
        FenceOperation, //
    }, //
};
use core::mem::size_of;
use kernel::{
    prelude::*,
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
    pub(super) _epoch: Arc<Epoch>,
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
            Self::Signal(signal) => ItemKind::Signal(signal.moment),
            Self::Wait(_) => ItemKind::Wait,
        }
    }
}

impl What {
    /// Tells that it is about to be queued.
    ///
    /// Context: no lock but that of the queue.
    pub(super) fn tell_queued(&self, queue: u64) {
        match self {
            Self::Commands(_) => {}
            Self::Signal(signal) => {
                for (fence, value) in signal.fences() {
                    trace::fence_queued(queue, fence, value, FenceOperation::Signal);
                }
            }
            Self::Wait(wait) => wait.tell_queued(),
        }
    }
}

/// Bytes of one element of a wait or a signal, about: it has a node in an object and an entry in a
/// list.
const ELEMENT: usize = 128;

/// Charges `account` for an item with so many elements, until the result is dropped.
pub(super) fn charge(account: &Account, elements: usize) -> Result<QueuedCharge, Exceeded> {
    let bytes = elements
        .saturating_mul(ELEMENT)
        .saturating_add(size_of::<Item>());

    QueuedCharge::new(account, bytes)
}

/// What is queued.
pub(super) struct Item {
    pub(super) what: What,
    pub(super) _charge: QueuedCharge,
}
