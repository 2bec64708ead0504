// SPDX-License-Identifier: GPL-2.0

//! An item that is about to be queued, with all memory that queueing it takes.

use super::{
    item::{
        self,
        Commands,
        Item,
        QueuedCommands,
        What, //
    },
    queue::{
        Place,
        Queue, //
    },
    signal::QueuedSignal,
    wait::QueuedWait, //
};
use crate::{
    dxgk::{
        process::Process,
        sync::{
            cpu_wait::Element,
            legacy::LegacySync, //
        }, //
    },
    error::DxgResult,
    sys::{
        alloc::tree_place,
        dma_fence::DmaFence,
        trace, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// An item for one queue that is not queued yet. Queueing it allocates nothing.
pub(crate) struct NewItem {
    queue: Arc<Queue>,
    item: Item,
    place: Place,
}

impl NewItem {
    fn new(
        queue: &Arc<Queue>,
        process: &Process,
        elements: usize,
        what: impl FnOnce() -> DxgResult<What>,
    ) -> DxgResult<Self> {
        let charge = item::charge(&process.account, elements)?;

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
            QueuedWait::for_fences(queue.id, queue.clone(), &process.waits, elements)
                .map(What::Wait)
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
            QueuedWait::for_legacy(queue.clone(), object, value).map(What::Wait)
        })
    }

    /// A wait of `queue` for the fence of a sync file.
    pub(crate) fn sync_file_wait(
        queue: &Arc<Queue>,
        process: &Process,
        fence: DmaFence,
    ) -> DxgResult<Self> {
        Self::new(queue, process, 1, || {
            Ok(What::Wait(QueuedWait::for_sync_file(queue.clone(), fence)?))
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

    /// Tells that it is about to be queued, unless it is refused.
    fn tell_queued(&self) {
        if trace::shows_fence_operations() && self.queue.check_open().is_ok() {
            self.item.what.tell_queued(self.queue.id);
        }
    }

    /// Queues it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn push(self) -> DxgResult {
        // Before: who has the turn may get to it at once.
        self.tell_queued();

        let Self { queue, item, place } = self;

        queue.push(item, place)
    }

    /// Queues all of these in this order, or none (FEN-54). A queue that ends in the middle of that
    /// discards its own, as if it had ended after it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn push_all(items: KVVec<Self>) -> DxgResult {
        if items.len() == 1 {
            return items.into_iter().try_for_each(Self::push);
        }
        items.iter().try_for_each(|item| item.queue.check_open())?;
        for item in items {
            item.tell_queued();

            let Self { queue, item, place } = item;

            queue.push_checked(item, place);
        }
        Ok(())
    }
}
