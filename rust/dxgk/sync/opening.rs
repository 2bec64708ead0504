// SPDX-License-Identifier: GPL-2.0

//! Opening synchronisation objects in a process (RES-52, RES-53, FEN-25).

use super::{
    exported_point::ExportedPoint,
    fence_binding::FenceAddresses, //
};
use crate::{
    ddi::native_fence::PrivateData,
    dxgk::{
        handle::{
            open_sync_object::OpenSyncObject,
            HandleTarget,
            Parent,
            Reserved, //
        },
        object::{
            Object,
            Strong, //
        },
        process::Process,
        share::NtHandle, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        access,
        open_rules::{
            SyncOpen,
            SyncRefusal, //
        },
        sync_flags::{
            self,
            Rights, //
        }, //
    }, //
};

impl From<SyncRefusal> for DxgError {
    fn from(refusal: SyncRefusal) -> Self {
        match refusal {
            SyncRefusal::Invalid => Status::INVALID_PARAMETER,
            SyncRefusal::Mismatch => Status::OBJECT_TYPE_MISMATCH,
        }
        .into()
    }
}

/// How an NT handle is opened.
#[derive(Default)]
pub(crate) struct OpenSyncRequest<'a> {
    /// The device, if it is opened on one.
    pub(crate) parent: Option<&'a Parent>,
    /// Flags that were checked. They restrict what the handle may do.
    pub(crate) flags: u32,
    /// Which physical adapters use it (FEN-5).
    pub(crate) engines: u32,
}

/// A handle of a synchronisation object that does not resolve yet.
pub(crate) struct ReservedSync<'a> {
    pub(crate) reserved: Reserved<'a>,
    /// Where the value of a fence is seen.
    pub(crate) addresses: Option<FenceAddresses>,
}

impl Process {
    /// Reserves a handle of the synchronisation object behind an NT handle.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_shared_sync_object(
        &self,
        shared: &NtHandle,
        request: &OpenSyncRequest<'_>,
    ) -> DxgResult<ReservedSync<'_>> {
        let object = shared.object();
        let adapter = request.parent.map(|parent| &parent.device.adapter);

        // Only a device has something of a fence that packets alone use (FEN-130).
        if let (None, Object::Fence(fence)) = (adapter, object) {
            if fence.is_intra_gpu() {
                return Err(Status::INVALID_PARAMETER.into());
            }
        }
        // A native fence has a call of its own. Where there are no such fences it is a monitored
        // one (FEN-141).
        if let (Some(adapter), Object::Fence(fence)) = (adapter, object) {
            if fence.is_native() && adapter.has_native_fences() {
                return Err(Status::INVALID_PARAMETER.into());
            }
        }
        SyncOpen {
            is_sync: object.is_sync(),
            is_for_device: adapter.is_none_or(|adapter| object.header().is_for(adapter)),
            is_fence: matches!(object, Object::Fence(_)),
            has_engines: adapter.is_none_or(|adapter| adapter.has_engines(request.engines)),
        }
        .check()?;

        let rights = Rights::from_flags(request.flags).and(shared.rights());

        self.open_sync_object(
            shared.strong()?,
            rights,
            shared.access(),
            request.parent,
            sync_flags::has_gpu_access(request.flags),
        )
    }

    /// Reserves a handle of the native fence behind an NT handle, on a device, or of a monitored
    /// fence that becomes native there (FEN-142). The KMD answers the client's data in place.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_shared_native_fence(
        &self,
        shared: &NtHandle,
        request: &OpenSyncRequest<'_>,
        private_data: &mut PrivateData,
    ) -> DxgResult<ReservedSync<'_>> {
        let object = shared.object();
        let parent = request.parent.ok_or(Status::INVALID_PARAMETER)?;
        let adapter = &parent.device.adapter;
        let is_native = match object {
            Object::Fence(fence) => fence.is_native() || fence.cross_adapter().is_some(),
            _ => false,
        };

        if !adapter.has_native_fences() {
            return Err(Status::NOT_SUPPORTED.into());
        }
        SyncOpen {
            is_sync: object.is_sync(),
            is_for_device: is_native && object.header().is_for(adapter),
            is_fence: true,
            has_engines: request.engines != 0 && adapter.has_engines(request.engines),
        }
        .check()?;

        let rights = Rights::from_flags(request.flags).and(shared.rights());

        self.open_native_fence(
            shared.strong()?,
            rights,
            shared.access(),
            parent,
            private_data,
        )
    }

    /// Reserves a handle of a native fence with these rights on a device.
    ///
    /// Context: a system call of the process, no locks held.
    pub(super) fn open_native_fence(
        &self,
        strong: Strong,
        rights: Rights,
        access: u32,
        parent: &Parent,
        private_data: &mut PrivateData,
    ) -> DxgResult<ReservedSync<'_>> {
        let viewer = &parent.device.viewer;
        let (open, addresses) =
            OpenSyncObject::with_data(strong, rights, access, viewer, Some(private_data))?;

        Ok(ReservedSync {
            reserved: self
                .handles
                .reserve(HandleTarget::Sync(open), Some(parent))?,
            addresses: Some(addresses),
        })
    }

    /// Reserves a handle of the fence behind a sync file, which may only be waited for: who hands a
    /// sync file out means no more by it (FEN-166). INVALID_PARAMETER if the fence has retired, is
    /// for another adapter, or may not be shared and is one of another process.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_exported_point(
        &self,
        point: &ExportedPoint,
        parent: &Parent,
    ) -> DxgResult<ReservedSync<'_>> {
        let strong = point.strong().ok_or(Status::INVALID_PARAMETER)?;

        if !strong.object().header().is_for(&parent.device.adapter) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        strong.object().header().check_adapter()?;

        let access = access::Type::SyncObject.read();
        let gpu_access = sync_flags::has_gpu_access(0);

        let opened = self.open_sync_object(
            strong,
            access::rights(access),
            access,
            Some(parent),
            gpu_access,
        )?;

        // One that may not be shared is for its process alone: others do not see its value.
        match opened.addresses {
            Some(addresses) if addresses.user_cpu != 0 => Ok(opened),
            _ => Err(Status::INVALID_PARAMETER.into()),
        }
    }

    /// Reserves a handle of a synchronisation object that was found by its global handle.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_global_sync_object(&self, strong: Strong) -> DxgResult<Reserved<'_>> {
        if !strong.object().is_sync() {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let rights = Rights::from_flags(0);
        let (open, _) = OpenSyncObject::new(strong, rights, access::ALL, &self.viewer)?;

        self.handles
            .reserve(HandleTarget::Sync(open.found_by_global()), None)
    }

    /// Reserves a handle with these rights. `access` is what it may grant to others. With
    /// `gpu_access` the GPU of the device sees the value of a fence (FEN-6).
    ///
    /// Context: a system call of the process, no locks held.
    pub(super) fn open_sync_object(
        &self,
        strong: Strong,
        rights: Rights,
        access: u32,
        parent: Option<&Parent>,
        gpu_access: bool,
    ) -> DxgResult<ReservedSync<'_>> {
        let is_fence = matches!(strong.object(), Object::Fence(_));
        let viewer = parent
            .filter(|_| gpu_access)
            .map_or(&self.viewer, |parent| &parent.device.viewer);
        let (open, addresses) = OpenSyncObject::new(strong, rights, access, viewer)?;

        Ok(ReservedSync {
            reserved: self.handles.reserve(HandleTarget::Sync(open), parent)?,
            addresses: is_fence.then_some(addresses),
        })
    }
}
