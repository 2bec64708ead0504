// SPDX-License-Identifier: GPL-2.0

//! A paging queue (MEM-10 to MEM-16). It has a monitored fence, which clients may wait for and
//! nothing else. What it has to do is in [`super::device_queues`].

use super::device_queues::{
    Operation,
    Progress, //
};
use crate::{
    dxgk::{
        device::Device,
        object::{
            Object,
            Strong, //
        },
        stats::{
            Counted,
            CountedOn,
            ObjectId,
            ObjectKind,
            OwnStats,
            Stats,
            OBJECTS, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        paging_log::{
            Action,
            Kind,
            Operation as Logged, //
        },
        paging_rules::Priority, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// A paging queue: what MakeResident and updates of a device's process are queued on.
pub(crate) struct PagingQueue {
    identified: ObjectId,
    counted: Counted<OwnStats, OBJECTS>,
    /// What it was made on.
    pub(crate) device: Arc<Device>,
    progress: Arc<Progress>,
    /// The queue signals its fence, as long as it lives.
    _strong: Strong,
    /// The handle of its fence. Set once, before the queue can be found.
    fence_handle: Atomic<u32>,
    /// It is being destroyed.
    closing: AtomicFlag,
}

impl CountedOn for PagingQueue {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.counted.stats()
    }
}

impl PagingQueue {
    /// A new queue of `device`, which shows its progress by `strong`, a monitored fence.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        device: Arc<Device>,
        priority: Priority,
        strong: Strong,
    ) -> DxgResult<Arc<Self>> {
        let Object::Fence(fence) = strong.object().clone() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let identified = ObjectId::new(ObjectKind::PagingQueue);
        let progress = Progress::new(identified.id, priority, device.clone(), fence)?;
        let queue = Arc::new(
            Self {
                identified,
                counted: Counted::new(OwnStats::of(&*device)),
                device,
                progress,
                _strong: strong,
                fence_handle: Atomic::new(0),
                closing: AtomicFlag::new(false),
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        queue.device.paging.add(&queue.progress)?;
        Ok(queue)
    }

    /// Its number.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }

    /// The handle of its fence goes with it.
    pub(crate) fn set_fence_handle(&self, handle: u32) {
        self.fence_handle.store(handle, Relaxed);
    }

    /// Names its fence in the process; 0 before that is known.
    pub(crate) fn fence_handle(&self) -> u32 {
        self.fence_handle.load(Relaxed)
    }

    /// Whether it shows its progress by this object.
    pub(crate) fn has_fence(&self, object: &Object) -> bool {
        matches!(object, Object::Fence(fence) if Arc::ptr_eq(fence, &self.progress.fence))
    }

    /// INVALID_PARAMETER if it is being destroyed; DEVICE_REMOVED if its device is gone or in
    /// error.
    pub(crate) fn check(&self) -> DxgResult {
        if self.closing.load(Acquire) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        self.device.check()
    }

    /// A MakeResident of so many allocations has this result, and this value says when it is done.
    pub(super) fn log_made_resident(&self, count: usize, status: Status, value: u64) {
        self.device.adapter.memory.log.write(|| Action {
            kind: Kind::Return,
            operation: Logged::MakeResident,
            device: self.device.id(),
            process: self.device.process.id,
            queue: self.id(),
            value,
            // CAST: a usize fits 64 bits.
            count: count as u64,
            status: status.number(),
            ..Action::default()
        });
    }

    /// Leaves an operation to the worker, see `DeviceQueues::submit`.
    pub(super) fn submit(&self, operation: Operation) -> DxgResult<u64> {
        self.device
            .paging
            .submit(&self.progress, self.device.owner.account(), operation)
    }

    /// Something was done in its call: the value that says so to who waits for it, or 0.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn done(&self) -> DxgResult<u64> {
        self.device
            .paging
            .done(&self.progress, self.device.owner.account())
    }

    /// Whether an operation would be the first to run.
    pub(super) fn is_idle(&self) -> bool {
        self.progress.is_idle()
    }

    /// Nothing new is taken; INVALID_PARAMETER if that is so already. Waits until what was taken is
    /// done, or the caller is killed (MEM-15).
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn drain(&self) -> DxgResult {
        if self.closing.xchg(true, Full) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        self.progress.wait();
        Ok(())
    }

    /// Its handle is gone: what it still has to do is dropped.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn close(&self) {
        self.device.paging.remove(&self.progress);
    }
}
