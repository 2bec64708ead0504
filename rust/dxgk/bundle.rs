// SPDX-License-Identifier: GPL-2.0

//! A bundle: one open of a resource in one process, that is the handle of the resource together with
//! those of its allocations, or one handle that was made by duplication (RES-78). It is one strong
//! reference, however many handles it has.

use super::{
    address_space::AddressSpace,
    allocation::Allocation,
    object::{
        Object,
        Strong, //
    },
    resource::Resource, //
};
use crate::{
    logic::access::resource as resource_access,
    uapi::status::{
        Outcome,
        Status, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    types::ScopeGuard, //
};

/// Where a bundle comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Creation, or an open: it has the handles of all allocations.
    Opened,
    /// The same, by a global handle.
    OpenedByGlobal,
    /// Duplication of one handle.
    Duplicated,
}

/// See the module.
#[pin_data(PinnedDrop)]
pub(crate) struct Bundle {
    strong: Strong,
    resource: Arc<Resource>,
    space: Arc<AddressSpace>,
    /// Access of its handles.
    pub(crate) access: u32,
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// Whether it has the handle of the container; handles of allocations then are part of it.
    pub(crate) has_resource_handle: bool,
    /// Whether it is still one of the process's bundles: 1, or 0 once its handles are gone.
    counted: Atomic<u32>,
    /// The handles of its allocations; none once the bundle is being destroyed. LOCK: the handle
    /// table is not touched under it.
    #[pin]
    handles: Mutex<Option<KVVec<u32>>>,
}

impl Bundle {
    /// A bundle of the resource that `strong` refers to, without handles.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        strong: Strong,
        access: u32,
        origin: Origin,
        has_resource_handle: bool,
        space: &Arc<AddressSpace>,
    ) -> Outcome<Arc<Self>> {
        let Object::Resource(resource) = strong.object() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let resource = resource.clone();
        let key = space.identity.key();

        resource.enter(key)?;
        resource.header.openings.add(1, Relaxed);

        // If the bundle is not made, its drop does not run.
        let undo = ScopeGuard::new_with_data(resource.clone(), |resource| end(&resource, key));
        let bundle = Arc::pin_init(
            pin_init!(Self {
                strong,
                resource,
                space: space.clone(),
                access,
                origin,
                has_resource_handle,
                counted: Atomic::new(1),
                handles <- new_mutex!(Some(KVVec::new()), "Bundle::handles"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        drop(undo.dismiss());
        Ok(bundle)
    }

    /// The container, as an object.
    pub(crate) fn object(&self) -> &Object {
        self.strong.object()
    }

    /// The container.
    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Gives the container a global handle, which still has to be published.
    pub(crate) fn name_globally(&self) -> Result<u32> {
        self.strong.name_globally()
    }

    /// One more reference to the container.
    pub(crate) fn another_strong(&self) -> Outcome<Strong> {
        // The own reference keeps the count above 0.
        self.strong
            .another()
            .ok_or(Status::INVALID_PARAMETER.into())
    }

    /// Whether its handles may write (RES-35).
    pub(crate) fn may_write(&self) -> bool {
        self.access & resource_access::WRITE != 0
    }

    /// Handles of its allocations were made.
    pub(crate) fn add_handles(&self, more: &[u32]) -> Outcome {
        match &mut *self.handles.lock() {
            Some(handles) => Ok(handles.extend_from_slice(more, GFP_KERNEL_ACCOUNT)?),
            None => Err(Status::INVALID_PARAMETER.into()),
        }
    }

    /// These handles, in increasing order, are gone.
    pub(crate) fn forget_handles(&self, sorted: &[u32]) {
        if let Some(handles) = &mut *self.handles.lock() {
            handles.retain(|handle| sorted.binary_search(handle).is_err());
        }
    }

    /// Its last handle is gone: the process has one bundle less, although a call in progress may use
    /// it a little longer (RES-76).
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn leave(&self) {
        if self.counted.xchg(0, Relaxed) != 0 {
            end(&self.resource, self.space.identity.key());
        }
    }

    /// Takes the handles, because the bundle is destroyed; none if that has begun already.
    pub(crate) fn take_handles(&self) -> Option<KVVec<u32>> {
        self.handles.lock().take()
    }
}

/// Allocations that are about to be added to a resource, which has room for them. Nobody finds them
/// there before (RES-3).
pub(crate) struct Added {
    bundle: Arc<Bundle>,
    allocations: KVVec<Arc<Allocation>>,
    done: bool,
}

impl Added {
    /// Makes room for these allocations in the resource of `bundle`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(bundle: Arc<Bundle>, allocations: &[Arc<Allocation>]) -> Outcome<Self> {
        let mut all = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;

        all.extend_from_slice(allocations, GFP_KERNEL_ACCOUNT)?;
        bundle.resource().make_room(all.len())?;
        Ok(Self {
            bundle,
            allocations: all,
            done: false,
        })
    }

    /// Adds them. Cannot fail.
    pub(crate) fn add(&mut self) {
        let (resource, all) = (self.bundle.resource(), &self.allocations);

        resource.add(all, all.len());
        self.done = true;
    }

    /// Whether the bundle is being destroyed, or was.
    pub(crate) fn is_too_late(&self) -> bool {
        self.bundle.handles.lock().is_none()
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        if !self.done {
            self.bundle.resource().add(&[], self.allocations.len());
        }
    }
}

/// What a bundle has counted is counted back.
fn end(resource: &Resource, key: (usize, usize)) {
    resource.header.openings.fetch_sub(1, Relaxed);
    resource.leave(key);
}

#[pinned_drop]
impl PinnedDrop for Bundle {
    /// Context: may sleep, no locks held.
    fn drop(self: Pin<&mut Self>) {
        self.leave();
    }
}
