// SPDX-License-Identifier: GPL-2.0

//! What a local handle stands for.

use super::{
    open_allocation::OpenAllocation,
    open_resource::{
        OpenResource,
        Origin, //
    },
    open_sync_object::OpenSyncObject, //
};
use crate::dxgk::{
    adapter::Adapter,
    context::Context,
    device::Device,
    object::Strong,
    stats::CountedHandle, //
};
use crate::error::{
    DxgResult,
    Status, //
};
use crate::logic::{
    handle,
    siblings::{
        Kin,
        Related, //
    }, //
};
use core::num::NonZero;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What a local handle can stand for.
pub(crate) enum HandleTarget {
    /// An adapter.
    Adapter(Arc<Adapter>),
    /// A device.
    Device(Arc<Device>),
    /// A context.
    Context(Arc<Context>),
    /// A synchronisation object.
    Sync(OpenSyncObject),
    /// A keyed mutex.
    KeyedMutex(OpenSyncObject),
    /// A resource.
    Resource(Arc<OpenResource>),
    /// An allocation, in a resource or by itself.
    Allocation(Arc<OpenAllocation>),
}

/// One handle. It takes a line of the processor's cache.
pub(super) struct Entry {
    /// What it stands for.
    pub(super) item: HandleTarget,
    /// The index of the device that it goes with.
    device: Option<NonZero<u32>>,
    /// Its place among the handles that go with the same device. That of a device has those that go
    /// with it.
    kin: Kin,
    /// Whether it resolves.
    pub(super) published: bool,
    _counted: CountedHandle,
}

const _: () = assert!(size_of::<Option<Entry>>() <= 64);

impl Related for Entry {
    fn kin(&mut self) -> &mut Kin {
        &mut self.kin
    }
}

impl Entry {
    /// A reserved handle, which may go with that of the device at an index.
    pub(super) fn new(item: HandleTarget, device: Option<u32>) -> Self {
        Self {
            item,
            device: device.and_then(NonZero::new),
            kin: Kin::alone(0),
            published: false,
            _counted: CountedHandle::enter(),
        }
    }

    /// Its place among the handles that go with the same device.
    pub(super) fn place(&self) -> &Kin {
        &self.kin
    }

    /// The youngest of those that go with this one, which is at `index`.
    pub(super) fn youngest(&self, index: u32) -> Option<u32> {
        match self.item {
            HandleTarget::Device(_) => self.kin.youngest(index),
            _ => None,
        }
    }

    /// The handle of the device that this one goes with.
    pub(super) fn device(&self) -> Option<u32> {
        self.device.map(|index| handle::local(index.get()))
    }

    /// Whether it resolves, and to this device.
    pub(super) fn resolves_to(&self, device: &Arc<Device>) -> bool {
        self.published
            && matches!(&self.item, HandleTarget::Device(own) if Arc::ptr_eq(own, device))
    }

    /// What a lookup hands out.
    pub(super) fn found<T>(&self, what: T) -> Found<T> {
        Found {
            what,
            device: self.device(),
        }
    }

    /// The shareable object, with a reference of its own.
    pub(super) fn shareable(&self) -> Option<Shareable> {
        let (object, access, shareable) = match &self.item {
            HandleTarget::Sync(open) | HandleTarget::KeyedMutex(open) => {
                (open.object(), open.access(), open.shareable_access())
            }
            HandleTarget::Resource(open_resource) => (
                open_resource.object(),
                open_resource.access,
                (open_resource.origin != Origin::OpenedByGlobal).then_some(open_resource.access),
            ),
            HandleTarget::Allocation(opened) => (
                opened.open_resource.object(),
                opened.open_resource.access,
                None,
            ),
            _ => return None,
        };

        Some(Shareable {
            strong: Strong::upgrade(object)?,
            access,
            shareable,
            allocation: match &self.item {
                HandleTarget::Allocation(opened) => Some(opened.clone()),
                _ => None,
            },
            device: self.device(),
        })
    }
}

impl Drop for Entry {
    /// The handle is gone, although a call in progress may use what it stood for a little longer.
    ///
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        match &self.item {
            HandleTarget::Allocation(opened) => opened.leave(),
            HandleTarget::Resource(open_resource) => open_resource.leave(),
            _ => {}
        }
    }
}

/// What a lookup found, and the handle of the device it goes with.
pub(crate) struct Found<T> {
    /// What the handle stands for.
    pub(crate) what: T,
    /// The handle of the device that it was made on, if any.
    pub(crate) device: Option<u32>,
}

impl<T> Found<T> {
    /// INVALID_PARAMETER if it was made on another device than `device`.
    pub(crate) fn check_device(&self, device: u32) -> DxgResult {
        match self.device {
            Some(own) if own != device => Err(Status::INVALID_PARAMETER.into()),
            _ => Ok(()),
        }
    }
}

/// A shareable object that was found by a local handle.
pub(crate) struct Shareable {
    /// A reference of its own.
    pub(crate) strong: Strong,
    /// What the handle may do.
    pub(crate) access: u32,
    /// The access that an NT handle may get; `None` if there may be no NT handle.
    pub(crate) shareable: Option<u32>,
    /// The allocation, if the handle is of one; the object is its container.
    pub(crate) allocation: Option<Arc<OpenAllocation>>,
    /// The handle of the device that it was made on, if any.
    pub(crate) device: Option<u32>,
}
