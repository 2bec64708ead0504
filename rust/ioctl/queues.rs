// SPDX-License-Identifier: GPL-2.0

//! The queues that a call puts something into: contexts of packets, or HW queues.

use super::call::{
    invalid_if,
    Call, //
};
use crate::{
    dxgk::{
        adapter::Adapter,
        sched::{
            new_item::NewItem,
            queue::Queue, //
        }, //
        small_vec::InlineVec,
    },
    error::{
        DxgResult,
        Status, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Which kind of handle queues are named by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueKind {
    /// Contexts of packets.
    Contexts,
    HwQueues,
}

/// The queues of one call: at least one, and all of one device.
pub(super) struct Queues(InlineVec<Arc<Queue>>);

impl Queues {
    /// Looks queues up. INVALID_PARAMETER for one that is none, or is of another device than the
    /// first.
    pub(super) fn of(call: Call<'_>, kind: QueueKind, locals: &[u32]) -> DxgResult<Self> {
        let mut queues = InlineVec::<Arc<Queue>>::with_capacity(locals.len())?;

        for local in locals {
            let queue = match kind {
                QueueKind::Contexts => call
                    .process
                    .handles
                    .context(*local)?
                    .queue()
                    .cloned()
                    .ok_or(Status::INVALID_PARAMETER)?,
                QueueKind::HwQueues => call.process.handles.hw_queue(*local)?.queue.clone(),
            };

            queue.check_takes_items()?;
            if let Some(first) = queues.iter().next() {
                invalid_if(!Arc::ptr_eq(&first.device, &queue.device))?;
            }
            queues.push(queue);
        }
        Ok(Self(queues))
    }

    /// The one that a wait or a signal of a single queue is for.
    pub(super) fn first(&self) -> DxgResult<&Arc<Queue>> {
        self.0.iter().next().ok_or(Status::INVALID_PARAMETER.into())
    }

    /// The adapter of all of them.
    pub(super) fn adapter(&self) -> DxgResult<&Arc<Adapter>> {
        Ok(self.first()?.adapter())
    }

    /// How many they are.
    pub(super) fn count(&self) -> u32 {
        // CAST: at most 65.
        self.0.iter().count() as u32
    }

    /// DEVICE_REMOVED if their device is in error (GPU-12).
    pub(super) fn check(&self) -> DxgResult {
        self.first()?.device.check()
    }

    /// Queues what `make` makes for each of them: in all, or in none.
    pub(super) fn push(&self, make: impl FnMut(&Arc<Queue>) -> DxgResult<NewItem>) -> DxgResult {
        let mut items = KVVec::with_capacity(self.0.iter().count(), GFP_KERNEL_ACCOUNT)?;

        self.check()?;
        self.make(&mut items, make)?;
        NewItem::push_all(items)
    }

    /// Adds what `make` makes for each of them.
    pub(super) fn make(
        &self,
        items: &mut KVVec<NewItem>,
        mut make: impl FnMut(&Arc<Queue>) -> DxgResult<NewItem>,
    ) -> DxgResult {
        for queue in self.0.iter() {
            items.push(make(queue)?, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(())
    }
}
