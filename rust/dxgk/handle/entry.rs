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
    doorbell::Doorbell,
    hw_queue::HwQueue,
    object::Strong,
    stats::{
        self,
        CountedOn,
        Stats,
        HANDLES, //
    },
    vidmm::paging_queue::PagingQueue, //
};
use crate::error::{
    DxgResult,
    Status, //
};
use crate::logic::{
    handle,
    handle_tree::{
        ChildLinks,
        Node,
        Stage, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What a local handle can stand for.
pub(crate) enum HandleTarget {
    Adapter(Arc<Adapter>),
    Device(Arc<Device>),
    Context(Arc<Context>),
    HwQueue(Arc<HwQueue>),
    Doorbell(Arc<Doorbell>),
    PagingQueue(Arc<PagingQueue>),
    /// A synchronisation object.
    Sync(OpenSyncObject),
    KeyedMutex(OpenSyncObject),
    Resource(Arc<OpenResource>),
    /// An allocation, in a resource or by itself.
    Allocation(Arc<OpenAllocation>),
}

impl HandleTarget {
    /// The adapter of the object that it is an open of, if any.
    pub(super) fn adapter(&self) -> Option<&Arc<Adapter>> {
        let object = match self {
            Self::Sync(open) | Self::KeyedMutex(open) => open.object(),
            Self::Resource(open_resource) => open_resource.object(),
            Self::Allocation(opened) => opened.open_resource.object(),
            Self::Adapter(_)
            | Self::Device(_)
            | Self::Context(_)
            | Self::HwQueue(_)
            | Self::Doorbell(_)
            | Self::PagingQueue(_) => {
                return None;
            }
        };

        object.header().adapter.as_ref()
    }

    /// The adapter that it belongs to, if any.
    pub(super) fn home(&self) -> Option<&Arc<Adapter>> {
        match self {
            Self::Adapter(adapter) => Some(adapter),
            Self::Device(device) => Some(&device.adapter),
            Self::Context(context) => Some(context.adapter()),
            Self::HwQueue(queue) => Some(&queue.device().adapter),
            Self::Doorbell(doorbell) => Some(&doorbell.queue().device().adapter),
            Self::PagingQueue(queue) => Some(&queue.device.adapter),
            _ => self.adapter(),
        }
    }

    /// What other handles can be children of: its device, and its id.
    pub(super) fn as_parent(&self) -> Option<(&Arc<Device>, u64)> {
        match self {
            Self::Device(device) => Some((device, device.id())),
            Self::Context(context) => Some((context.device(), context.id())),
            Self::HwQueue(queue) => Some((queue.device(), queue.id())),
            _ => None,
        }
    }
}

impl CountedOn for HandleTarget {
    /// A handle is counted where its target is.
    fn stats(&self) -> Option<&Arc<Stats>> {
        match self {
            Self::Adapter(adapter) => adapter.stats(),
            Self::Device(device) => device.stats(),
            Self::Context(context) => context.stats(),
            Self::HwQueue(queue) => queue.stats(),
            Self::Doorbell(doorbell) => doorbell.stats(),
            Self::PagingQueue(queue) => queue.stats(),
            Self::Sync(open) | Self::KeyedMutex(open) => open.object().header().stats(),
            Self::Resource(open_resource) => open_resource.resource().header.stats(),
            Self::Allocation(opened) => opened.open_resource.resource().header.stats(),
        }
    }
}

/// One handle. It takes a line of the processor's cache.
pub(super) struct Entry {
    /// What it stands for.
    pub(super) item: HandleTarget,
    /// Its parent, its children, and whether it resolves.
    links: ChildLinks,
}

const _: () = assert!(size_of::<Option<Entry>>() <= 64);

impl Node for Entry {
    fn links(&self) -> &ChildLinks {
        &self.links
    }

    fn links_mut(&mut self) -> &mut ChildLinks {
        &mut self.links
    }
}

impl Entry {
    /// A reserved handle, without relatives yet.
    pub(super) fn new(item: HandleTarget) -> Self {
        stats::add::<HANDLES>(&item, 1);
        Self {
            item,
            links: ChildLinks::default(),
        }
    }

    /// Whether it resolves.
    pub(super) fn is_published(&self) -> bool {
        self.links.stage() == Stage::Published
    }

    /// The handle of what it was made on.
    pub(super) fn parent(&self) -> Option<u32> {
        self.links.parent().map(handle::local)
    }

    /// The same, if that is a device. See [`State::device_of`](super::State::device_of) for what is
    /// further below.
    pub(super) fn parent_device(&self) -> Option<u32> {
        self.links.parent_if_root().map(handle::local)
    }

    /// Whether it resolves, to what has this id and can have children.
    pub(super) fn is_parent(&self, id: u64) -> bool {
        self.is_published() && self.item.as_parent().is_some_and(|(_, own)| own == id)
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
            parent: self.parent(),
        })
    }
}

impl Drop for Entry {
    /// The handle is gone, although a call in progress may use what it stood for a little longer.
    ///
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        stats::sub::<HANDLES>(&self.item, 1);
        match &self.item {
            HandleTarget::Allocation(opened) => opened.leave(),
            HandleTarget::Resource(open_resource) => open_resource.leave(),
            HandleTarget::Context(context) => context.leave(),
            HandleTarget::HwQueue(queue) => queue.leave(),
            HandleTarget::Doorbell(doorbell) => doorbell.leave(),
            HandleTarget::PagingQueue(queue) => queue.close(),
            _ => {}
        }
    }
}

/// What a lookup found, and its place in the tree.
pub(crate) struct Found<T> {
    /// What the handle stands for.
    pub(crate) what: T,
    /// The handle of what it was made on, if anything.
    pub(super) parent: Option<u32>,
    /// The handle of the device that it is below, at any depth, if any.
    pub(crate) device: Option<u32>,
}

impl<T> Found<T> {
    /// INVALID_PARAMETER if it is below another device than `device`.
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
    /// The handle of what it was made on, if anything.
    pub(super) parent: Option<u32>,
}

/// What new handles become children of, and the device that it is or belongs to.
pub(crate) struct Parent {
    /// The one they are made on.
    pub(crate) device: Arc<Device>,
    /// The handle.
    pub(super) index: u32,
    /// What the handle stood for when it was looked up.
    pub(super) id: u64,
}
