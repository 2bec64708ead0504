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
        atomic::Relaxed,
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
    /// The one allocation whose handle was duplicated.
    single: Option<Arc<Allocation>>,
    /// The handles of its allocations; none once the bundle is being destroyed. LOCK: the handle
    /// table is not touched under it.
    #[pin]
    handles: Mutex<Option<KVVec<u32>>>,
}

impl Bundle {
    /// A bundle of the resource that `strong` refers to, without handles. `single` is the allocation
    /// that it is a duplicate of, if it is one.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        strong: Strong,
        access: u32,
        origin: Origin,
        single: Option<Arc<Allocation>>,
        space: &Arc<AddressSpace>,
    ) -> Outcome<Arc<Self>> {
        let Object::Resource(resource) = strong.object() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let resource = resource.clone();
        let key = space.identity.key();

        resource.enter(key)?;
        if let Some(allocation) = &single {
            resource
                .count_duplicate(allocation)
                .inspect_err(|_| resource.leave(key))?;
        }
        resource.header.openings.add(1, Relaxed);

        // If this fails the fields are dropped one by one, not as a bundle.
        let undo =
            ScopeGuard::new_with_data((resource.clone(), single.clone()), |(resource, single)| {
                end(&resource, single.as_deref(), key);
            });
        let bundle = Arc::pin_init(
            pin_init!(Self {
                strong,
                resource,
                space: space.clone(),
                access,
                origin,
                single,
                handles <- new_mutex!(Some(KVVec::new()), "Bundle::handles"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        undo.dismiss();
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

    /// Whether it has the handle of the container; a handle of an allocation then is part of it.
    pub(crate) fn has_resource_handle(&self) -> bool {
        self.single.is_none() && !self.resource.description.alone
    }

    /// Handles of its allocations were made.
    pub(crate) fn add_handles(&self, more: &[u32]) -> Outcome {
        match &mut *self.handles.lock() {
            Some(handles) => Ok(handles.extend_from_slice(more, GFP_KERNEL_ACCOUNT)?),
            None => Err(Status::INVALID_PARAMETER.into()),
        }
    }

    /// The handle of an allocation is gone.
    pub(crate) fn forget_handle(&self, handle: u32) {
        if let Some(handles) = &mut *self.handles.lock() {
            handles.retain(|other| *other != handle);
        }
    }

    /// Takes the handles, because the bundle is destroyed; none if that has begun already.
    pub(crate) fn take_handles(&self) -> Option<KVVec<u32>> {
        self.handles.lock().take()
    }
}

/// What a bundle has counted is counted back.
fn end(resource: &Resource, single: Option<&Allocation>, key: (usize, usize)) {
    if let Some(allocation) = single {
        allocation.end_duplicate();
    }
    resource.header.openings.fetch_sub(1, Relaxed);
    resource.leave(key);
}

#[pinned_drop]
impl PinnedDrop for Bundle {
    /// Context: may sleep, no locks held.
    fn drop(self: Pin<&mut Self>) {
        end(
            &self.resource,
            self.single.as_deref(),
            self.space.identity.key(),
        );
    }
}
