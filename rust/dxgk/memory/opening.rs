// SPDX-License-Identifier: GPL-2.0

//! Opening a shared resource on a device, with what was shared with it (RES-47 to RES-51).

use super::{
    allocation::Allocation,
    resource::Resource, //
};
use crate::{
    dxgk::{
        handle::{
            open_resource::{
                OpenResource,
                Origin, //
            },
            reserved_handles::ReservedHandles,
            HandleTarget,
            Parent, //
        },
        info::attachments::Value,
        object::{
            Object,
            Strong, //
        },
        process::Process,
        small_vec::InlineVec, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        open_rules::ResourceSizes, //
    }, //
};
use kernel::sync::Arc;

/// A resource that was found for a device, with a reference of its own.
pub(crate) struct FoundResource {
    strong: Strong,
    resource: Arc<Resource>,
}

impl FoundResource {
    /// The sizes that an opener needs (RES-47).
    pub(crate) fn sizes(&self) -> ResourceSizes {
        let (count, total_driver_data) = self.resource.extent();

        // CAST: blobs and driver data have at most 64 KiB.
        ResourceSizes {
            count,
            runtime_data: self.resource.header.attachments().blob_size() as u32,
            driver_data: self.resource.description.driver_data().len() as u32,
            total_driver_data,
        }
    }
}

/// What an opener gets of a resource, taken at one moment.
pub(crate) struct Contents {
    resource: Arc<Resource>,
    /// Those that it had then.
    pub(crate) allocations: InlineVec<Arc<Allocation>>,
    runtime_data: Option<Arc<Value>>,
}

impl Contents {
    fn of(resource: Arc<Resource>) -> DxgResult<Self> {
        Ok(Self {
            allocations: resource.allocations()?,
            runtime_data: resource.header.attachments().blob(),
            resource,
        })
    }

    /// Private runtime data of the resource.
    pub(crate) fn runtime_data(&self) -> &[u8] {
        self.runtime_data
            .as_ref()
            .map_or(&[], |value| value.bytes())
    }

    /// Private driver data of the resource.
    pub(crate) fn driver_data(&self) -> &[u8] {
        self.resource.description.driver_data()
    }

    /// How large all that is.
    pub(crate) fn sizes(&self) -> ResourceSizes {
        let total = self
            .allocations
            .iter()
            .map(|allocation| allocation.description.driver_data.len())
            .fold(0, usize::saturating_add);

        // CAST: at most 4096 allocations and 64 KiB each.
        ResourceSizes {
            count: self.allocations.len() as u32,
            runtime_data: self.runtime_data().len() as u32,
            driver_data: self.driver_data().len() as u32,
            total_driver_data: total as u32,
        }
    }
}

impl Parent {
    /// The resource that `strong` refers to, if this device may use it.
    pub(crate) fn found_resource(&self, strong: Strong) -> DxgResult<FoundResource> {
        let Object::Resource(resource) = strong.object() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let resource = resource.clone();

        if !resource.header.is_for(&self.device.adapter) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        resource.header.check_adapter()?;
        Ok(FoundResource { strong, resource })
    }

    /// Opens a resource on this device, if `check` agrees to what it has: reserves its handle and
    /// those of its allocations. The first number is that of the resource.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_resource<'a>(
        &self,
        process: &'a Process,
        found: FoundResource,
        access: u32,
        origin: Origin,
        check: impl FnOnce(&ResourceSizes) -> DxgResult,
    ) -> DxgResult<(ReservedHandles<'a>, Contents)> {
        let contents = Contents::of(found.resource)?;

        check(&contents.sizes())?;

        let open_resource =
            OpenResource::new(found.strong, access, origin, true, &process.mappings)?;
        let mut handles = ReservedHandles::new(&process.handles, contents.allocations.len() + 1)?;

        handles.reserve_resource(&open_resource, &contents.allocations, Some(self))?;
        Ok((handles, contents))
    }

    /// Reserves the handles of the keyed mutex and the synchronisation object that were shared with
    /// a resource, and returns their numbers. `access` is that of the NT handle; who gives the
    /// mutex its first data must be allowed to write (RES-51).
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_guards(
        &self,
        process: &Process,
        handles: &mut ReservedHandles<'_>,
        (mutex, sync): (&Strong, &Strong),
        access: u32,
        gives_data: bool,
    ) -> DxgResult<(u32, u32)> {
        if gives_data && access & access::resource::WRITE == 0 {
            return Err(Status::ACCESS_DENIED.into());
        }

        let another = |strong: &Strong| strong.another().ok_or(Status::INVALID_HANDLE);
        let mutex = process.open_with(another(mutex)?, access, Some(self))?;
        let sync =
            process.open_with(another(sync)?, access::set::sync_access(access), Some(self))?;

        Ok((
            handles.reserve(HandleTarget::KeyedMutex(mutex), Some(self))?,
            handles.reserve(HandleTarget::Sync(sync), Some(self))?,
        ))
    }
}
