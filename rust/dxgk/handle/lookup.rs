// SPDX-License-Identifier: GPL-2.0

//! Looks local handles up by the kind of their target.

use super::{
    entry::{
        Entry,
        Found,
        HandleTarget,
        Parent,
        Shareable, //
    },
    open_allocation::OpenAllocation,
    open_resource::OpenResource,
    open_sync_object::{
        OpenSyncObject,
        SyncLookup, //
    },
    HandleTable,
    State, //
};
use crate::dxgk::{
    adapter::Adapter,
    context::Context,
    device::Device,
    doorbell::Doorbell,
    hw_queue::HwQueue,
    keyed_mutex::{
        open::OpenKeyedMutex,
        KeyedMutex, //
    },
    object::{
        Object,
        Strong, //
    },
    sync::fence::Fence,
    vidmm::paging_queue::PagingQueue, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        handle,
        sync_flags::Rights, //
    }, //
};
use kernel::sync::{
    lock::{
        spinlock::SpinLockBackend,
        Guard, //
    },
    Arc, //
};

impl HandleTable {
    /// Starts lookups under one hold of the lock. Nothing may be dropped, allocated or slept on
    /// while the result lives.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup(self.state.lock())
    }

    /// The adapter behind a handle.
    pub(crate) fn adapter(&self, local: u32) -> DxgResult<Arc<Adapter>> {
        self.lookup().find(local, |entry| match &entry.item {
            HandleTarget::Adapter(adapter) => Some(adapter.clone()),
            _ => None,
        })
    }

    /// The device behind a handle.
    pub(crate) fn device(&self, local: u32) -> DxgResult<Arc<Device>> {
        self.lookup().find(local, |entry| match &entry.item {
            HandleTarget::Device(device) => Some(device.clone()),
            _ => None,
        })
    }

    /// The device behind a handle; DEVICE_REMOVED if its adapter is removed, or it is in error.
    pub(crate) fn running_device(&self, local: u32) -> DxgResult<Arc<Device>> {
        let device = self.device(local)?;

        device.check()?;
        Ok(device)
    }

    /// The device behind a handle, as the parent of new handles. DEVICE_REMOVED if its adapter is
    /// removed, or it is in error (GPU-12).
    pub(crate) fn parent(&self, local: u32) -> DxgResult<Parent> {
        self.parent_if(local, |item| matches!(item, HandleTarget::Device(_)))
    }

    /// The paging queue behind a handle. DEVICE_REMOVED if its adapter is removed or its device is
    /// in error; INVALID_PARAMETER if it is being destroyed.
    pub(crate) fn paging_queue(&self, local: u32) -> DxgResult<Found<Arc<PagingQueue>>> {
        let found = self.any_paging_queue(local)?;

        found.what.check()?;
        Ok(found)
    }

    /// The paging queue behind a handle, whatever has become of it.
    pub(crate) fn any_paging_queue(&self, local: u32) -> DxgResult<Found<Arc<PagingQueue>>> {
        self.lookup().find_placed(local, |item| match item {
            HandleTarget::PagingQueue(queue) => Some(queue.clone()),
            _ => None,
        })
    }

    /// What a handle was made on, as the parent of a handle beside it. DEVICE_REMOVED as for
    /// [`HandleTable::parent`].
    pub(super) fn parent_beside(&self, parent: u32) -> DxgResult<Parent> {
        self.parent_if(parent, |_| true)
    }

    /// What is behind a handle, as the parent of new handles, if `accept` agrees with it.
    fn parent_if(
        &self,
        local: u32,
        accept: impl FnOnce(&HandleTarget) -> bool,
    ) -> DxgResult<Parent> {
        let (device, id) = self.lookup().find(local, |entry| {
            let (device, id) = entry.item.as_parent()?;

            accept(&entry.item).then(|| (device.clone(), id))
        })?;

        device.check()?;
        Ok(Parent {
            device,
            index: handle::local_index(local).ok_or(Status::INVALID_PARAMETER)?,
            id,
        })
    }

    /// The context behind a handle.
    pub(crate) fn context(&self, local: u32) -> DxgResult<Arc<Context>> {
        self.lookup().find(local, |entry| match &entry.item {
            HandleTarget::Context(context) => Some(context.clone()),
            _ => None,
        })
    }

    /// The context behind a handle, and as the parent of new handles. DEVICE_REMOVED as for
    /// [`HandleTable::parent`].
    pub(crate) fn context_as_parent(&self, local: u32) -> DxgResult<(Arc<Context>, Parent)> {
        let context = self.context(local)?;
        let parent = self.parent_if(
            local,
            |item| matches!(item, HandleTarget::Context(own) if Arc::ptr_eq(own, &context)),
        )?;

        Ok((context, parent))
    }

    /// The HW queue behind a handle.
    pub(crate) fn hw_queue(&self, local: u32) -> DxgResult<Arc<HwQueue>> {
        self.lookup().find(local, |entry| match &entry.item {
            HandleTarget::HwQueue(queue) => Some(queue.clone()),
            _ => None,
        })
    }

    /// The HW queue behind a handle, and as the parent of new handles. DEVICE_REMOVED as for
    /// [`HandleTable::parent`].
    pub(crate) fn hw_queue_as_parent(&self, local: u32) -> DxgResult<(Arc<HwQueue>, Parent)> {
        let queue = self.hw_queue(local)?;
        let parent = self.parent_if(
            local,
            |item| matches!(item, HandleTarget::HwQueue(own) if Arc::ptr_eq(own, &queue)),
        )?;

        Ok((queue, parent))
    }

    /// The doorbell behind a handle.
    pub(crate) fn doorbell(&self, local: u32) -> DxgResult<Arc<Doorbell>> {
        self.lookup().find(local, |entry| match &entry.item {
            HandleTarget::Doorbell(doorbell) => Some(doorbell.clone()),
            _ => None,
        })
    }

    /// The synchronisation object behind a handle, see [`Lookup::sync_object`].
    pub(crate) fn sync_object(&self, local: u32) -> DxgResult<SyncLookup> {
        Ok(self.lookup().sync_object(local)?.cloned())
    }

    /// The keyed mutex behind a handle, and the identity of that handle.
    pub(crate) fn keyed_mutex(
        &self,
        local: u32,
    ) -> DxgResult<(Arc<KeyedMutex>, Arc<OpenKeyedMutex>)> {
        self.lookup().find(local, |entry| match &entry.item {
            HandleTarget::KeyedMutex(open) => open.keyed_mutex(),
            _ => None,
        })
    }

    /// The open resource behind the handle of a resource.
    pub(crate) fn resource(&self, local: u32) -> DxgResult<Found<Arc<OpenResource>>> {
        self.lookup().find_placed(local, |item| match item {
            HandleTarget::Resource(open_resource) => Some(open_resource.clone()),
            _ => None,
        })
    }

    /// What the handle of an allocation stands for.
    pub(crate) fn allocation(&self, local: u32) -> DxgResult<Found<Arc<OpenAllocation>>> {
        self.lookup().find_placed(local, |item| match item {
            HandleTarget::Allocation(opened) => Some(opened.clone()),
            _ => None,
        })
    }

    /// What the handle of a shareable object stands for, with a reference of its own.
    pub(crate) fn shareable(&self, local: u32) -> DxgResult<Shareable> {
        self.lookup().find(local, Entry::shareable)
    }

    /// The rights of the open handle behind a handle, for another open handle of the same object.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn duplicate_opening(
        &self,
        local: u32,
        strong: Strong,
    ) -> DxgResult<OpenSyncObject> {
        let like = self.lookup().find(local, |entry| match &entry.item {
            HandleTarget::Sync(open) | HandleTarget::KeyedMutex(open) => Some(open.grant()),
            _ => None,
        })?;

        OpenSyncObject::granted(strong, &like)
    }
}

/// Lookups under one hold of the table's lock.
pub(crate) struct Lookup<'a>(Guard<'a, State, SpinLockBackend>);

impl Lookup<'_> {
    /// Applies `look` to the entry of a handle. INVALID_PARAMETER if there is none or `look` gives
    /// `None`.
    #[inline(always)]
    pub(super) fn find<'a, T>(
        &'a self,
        local: u32,
        look: impl FnOnce(&'a Entry) -> Option<T>,
    ) -> DxgResult<T> {
        self.0
            .find(local)
            .and_then(look)
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// The same for the target of a handle, with its place in the tree.
    fn find_placed<T>(
        &self,
        local: u32,
        look: impl FnOnce(&HandleTarget) -> Option<T>,
    ) -> DxgResult<Found<T>> {
        self.find(local, |entry| {
            Some(Found {
                what: look(&entry.item)?,
                parent: entry.parent(),
                device: self.0.device_of(entry),
            })
        })
    }

    /// Whether an object that was looked up may be used with the device behind a handle (FEN-26).
    #[inline(always)]
    pub(crate) fn is_for(&self, opened: &SyncLookup<&Object>, device: u32) -> DxgResult<bool> {
        // Most objects are used with the device they were made on: that one exists, and they fit.
        // What was made on a child of a device takes the long way.
        if opened.device == Some(device) {
            return Ok(true);
        }
        self.find(device, |entry| match &entry.item {
            HandleTarget::Device(device) => Some(opened.object.header().is_for(&device.adapter)),
            _ => None,
        })
    }

    /// The fence behind a handle that nothing is to be said about: it was opened on this device
    /// itself, is no fence of a queue, and `may` agrees with the rights. `None` may be anything
    /// else, see [`Lookup::sync_object`].
    #[inline(always)]
    pub(crate) fn plain_fence(
        &self,
        local: u32,
        device: u32,
        may: impl Fn(Rights) -> bool,
    ) -> Option<&Arc<Fence>> {
        let entry = self.0.find(local)?;

        match &entry.item {
            HandleTarget::Sync(open) if entry.parent_device() == Some(device) => {
                open.plain_fence().filter(|_| may(open.rights()))
            }
            _ => None,
        }
    }

    /// The synchronisation object behind a handle, for a call that waits for it or signals it.
    /// INVALID_PARAMETER if only packets do (FEN-130).
    #[inline(always)]
    pub(crate) fn sync_object(&self, local: u32) -> DxgResult<SyncLookup<&Object>> {
        self.find(local, |entry| match &entry.item {
            HandleTarget::Sync(open) if !open.is_intra_gpu() => {
                Some(open.opened(entry.parent_device()))
            }
            _ => None,
        })
    }

    /// The synchronisation object behind a handle, whoever uses it.
    pub(super) fn any_sync_object(&self, local: u32) -> DxgResult<SyncLookup<&Object>> {
        self.find(local, |entry| match &entry.item {
            HandleTarget::Sync(open) => Some(open.opened(entry.parent_device())),
            _ => None,
        })
    }
}
