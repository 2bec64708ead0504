// SPDX-License-Identifier: GPL-2.0

//! Making and destroying paging queues (MEM-10, MEM-11, MEM-15).

use super::paging_queue::PagingQueue;
use crate::{
    dxgk::{
        handle::{
            open_sync_object::OpenSyncObject,
            HandleTarget,
            Parent,
            Reserved, //
        },
        object::{
            Header,
            Object,
            Strong,
            Traits, //
        },
        process::Process,
        quota::account::ObjectCharge,
        stats::ObjectKind,
        sync::{
            fence::Fence,
            native_fence::Words, //
        },
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        paging_rules::Priority,
        sync_flags::{
            Rights,
            Sharing, //
        }, //
    }, //
};

/// A paging queue that cannot be found yet. Its fence has a handle of its own, the later one.
pub(crate) struct NewPagingQueue<'a> {
    fence: Reserved<'a>,
    queue: Reserved<'a>,
    /// Where the process sees the value of the fence.
    pub(crate) value_address: u64,
}

impl NewPagingQueue<'_> {
    /// The handle of the queue.
    pub(crate) fn handle(&self) -> u32 {
        self.queue.handle()
    }

    /// Names its fence in the process that creates it.
    pub(crate) fn fence_handle(&self) -> u32 {
        self.fence.handle()
    }

    /// Makes both usable.
    pub(crate) fn commit(self) {
        // If the device was destroyed meanwhile, so were they.
        let _published = self.fence.commit() && self.queue.commit();
    }
}

impl Process {
    /// Makes a paging queue of a device and reserves its handles.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn create_paging_queue(
        &self,
        parent: &Parent,
        priority: Priority,
    ) -> DxgResult<NewPagingQueue<'_>> {
        // Without GPU addresses there is nothing to page.
        parent.device.space()?;

        let strong = self.paging_fence(parent)?;
        let another = strong.another().ok_or(Status::INVALID_PARAMETER)?;
        let rights = Rights {
            wait: true,
            signal: false,
        };
        // No GPU sees it.
        let (open, addresses) = OpenSyncObject::new(another, rights, access::WAIT, &self.viewer)?;
        let queue = PagingQueue::new(parent.device.clone(), priority, strong)?;
        let reserved = self
            .handles
            .reserve(HandleTarget::PagingQueue(queue.clone()), Some(parent))?;
        let fence = self
            .handles
            .reserve(HandleTarget::Sync(open.of_queue()), Some(parent))?;

        queue.set_fence_handle(fence.handle());
        Ok(NewPagingQueue {
            fence,
            queue: reserved,
            value_address: addresses.user_cpu,
        })
    }

    fn paging_fence(&self, parent: &Parent) -> DxgResult<Strong> {
        let storage = self.fence_storage.slot(0, None)?;
        let header = Header::new(
            ObjectKind::MonitoredFence,
            Some((*parent.device.adapter).clone()),
            Sharing::Private,
            Traits::NONE,
            ObjectCharge::new(&self.account)?,
        );
        let fence = Fence::new(header, Words::Monitored(storage), false)?;

        Ok(Strong::first(Object::Fence(fence)))
    }

    /// DestroyPagingQueue: waits for what is queued, then destroys the queue with its fence. A
    /// caller that is killed does not wait.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn destroy_paging_queue(&self, local: u32) -> DxgResult {
        let queue = self.handles.any_paging_queue(local)?.what;

        queue.drain()?;

        // The end of the device may have taken either of them.
        let _gone = self.handles.destroy(
            queue.fence_handle(),
            |item| matches!(item, HandleTarget::Sync(open) if queue.has_fence(open.object())),
        );
        let _gone = self.handles.destroy(
            local,
            |item| matches!(item, HandleTarget::PagingQueue(own) if own.id() == queue.id()),
        );

        Ok(())
    }
}
