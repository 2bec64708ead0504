// SPDX-License-Identifier: GPL-2.0

//! Duplicates local handles (RES-17, RES-78).

use super::{
    open_allocation::OpenAllocation,
    open_resource::{
        OpenResource,
        Origin, //
    },
    open_sync_object::OpenSyncObject,
    reserved_handles::ReservedHandles,
    HandleTarget,
    Parent,
    Reserved, //
};
use crate::{
    dxgk::{
        object::{
            Object,
            Strong, //
        },
        process::Process, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::access, //
};
use kernel::sync::Arc;

/// What another handle is made for.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// What the first handle stands for.
    Whole,
    /// The allocation at this index of the resource that the first handle stands for.
    Allocation(u32),
}

impl Process {
    /// Reserves a new local handle, with the handles of its allocations for a resource. The first
    /// number is that of the object. The device of `parent` must be one that may use it.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_object(
        &self,
        strong: Strong,
        access: u32,
        parent: Option<&Parent>,
    ) -> DxgResult<ReservedHandles<'_>> {
        if parent.is_some_and(|parent| !strong.object().header().is_for(&parent.device.adapter)) {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let mut handles = ReservedHandles::new(&self.handles, 1)?;

        match strong.object().clone() {
            Object::Fence(_) | Object::Legacy(_) => {
                let open = self.open_with(strong, access, parent)?;

                handles.reserve(HandleTarget::Sync(open), parent)?;
            }
            Object::KeyedMutex(_) => {
                let open = self.open_with(strong, access, parent)?;

                handles.reserve(HandleTarget::KeyedMutex(open), parent)?;
            }
            Object::Resource(resource) => {
                let standalone = resource.description.standalone;
                let open_resource =
                    OpenResource::new(strong, access, Origin::Opened, !standalone, &self.mappings)?;
                let allocations = resource.allocations()?;

                if standalone {
                    handles.reserve_allocations(&open_resource, &allocations, parent)?;
                } else {
                    handles.reserve_resource(&open_resource, &allocations, parent)?;
                }
            }
        }
        Ok(handles)
    }

    /// An open of a synchronisation object or keyed mutex with the rights that this access gives,
    /// for a device if there is one.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_with(
        &self,
        strong: Strong,
        access: u32,
        parent: Option<&Parent>,
    ) -> DxgResult<OpenSyncObject> {
        let rights = access::rights(access);
        let viewer = parent.map_or(&self.viewer, |parent| &parent.device.viewer);
        let (open, _) = OpenSyncObject::new(strong, rights, access, viewer)?;

        Ok(open)
    }

    /// Reserves another handle of what `local` stands for, or of one of its allocations.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn duplicate(&self, local: u32, part: Part) -> DxgResult<Reserved<'_>> {
        let found = self.handles.shareable(local)?;
        let parent = self.parent(found.parent)?;
        let item = match (found.strong.object().clone(), found.allocation) {
            (Object::Resource(resource), allocation) => {
                let allocation = match (allocation, part) {
                    (Some(opened), Part::Whole) => Some(opened.allocation.clone()),
                    (None, Part::Whole) => None,
                    (None, Part::Allocation(index)) => Some(
                        resource
                            .allocation(index)
                            .ok_or(Status::INVALID_PARAMETER)?,
                    ),
                    (Some(_), Part::Allocation(_)) => return Err(Status::INVALID_PARAMETER.into()),
                };
                let whole = allocation.is_none();
                let open_resource = self.open_duplicate(found.strong, found.access, whole)?;

                match allocation {
                    Some(allocation) => {
                        let device = parent.as_ref().map(|parent| &*parent.device);

                        HandleTarget::Allocation(OpenAllocation::new(
                            &open_resource,
                            &allocation,
                            device,
                        )?)
                    }
                    None => HandleTarget::Resource(open_resource),
                }
            }
            (object, _) => {
                if let Part::Allocation(_) = part {
                    return Err(Status::INVALID_PARAMETER.into());
                }

                let open = self.handles.duplicate_opening(local, found.strong)?;

                match object {
                    Object::KeyedMutex(_) => HandleTarget::KeyedMutex(open),
                    _ => HandleTarget::Sync(open),
                }
            }
        };

        self.handles.reserve(item, parent.as_ref())
    }

    /// Reserves a handle of the resource that an allocation belongs to, or of a standalone
    /// allocation itself.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_container(&self, allocation: u32) -> DxgResult<Reserved<'_>> {
        let found = self.handles.allocation(allocation)?;
        let open_resource = &found.what.open_resource;

        if open_resource.resource().description.standalone {
            return self.duplicate(allocation, Part::Whole);
        }

        let parent = self.parent(found.parent)?;
        let strong = open_resource.another_strong()?;
        let container = self.open_duplicate(strong, open_resource.access, true)?;

        self.handles
            .reserve(HandleTarget::Resource(container), parent.as_ref())
    }

    /// The parent of a handle that is made beside one with this parent.
    fn parent(&self, parent: Option<u32>) -> DxgResult<Option<Parent>> {
        parent
            .map(|parent| self.handles.parent_beside(parent))
            .transpose()
    }

    /// The open resource of one handle, made from another one.
    fn open_duplicate(
        &self,
        strong: Strong,
        access: u32,
        has_resource_handle: bool,
    ) -> DxgResult<Arc<OpenResource>> {
        let origin = Origin::Duplicated;

        OpenResource::new(strong, access, origin, has_resource_handle, &self.mappings)
    }
}
