// SPDX-License-Identifier: GPL-2.0

//! Creating, opening and destroying synchronisation objects.

use super::{
    call::{
        nt_handle,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        adapter::Adapter,
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
        share::{
            global_table::ReservedGlobal,
            NtHandle, //
        },
        sync::{
            create::{
                Creation,
                Start, //
            },
            fence_binding::FenceAddresses,
            legacy::State, //
        }, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        access,
        sync_flags::{
            self,
            bits,
            types,
            Contents,
            Rights,
            Sharing,
            Unusable, //
        }, //
    },
    sys::file::eventfd::EventFd,
    uapi::*, //
};
use kernel::sync::Arc;

impl From<Unusable> for DxgError {
    fn from(refusal: Unusable) -> Self {
        match refusal {
            Unusable::Invalid => Status::INVALID_PARAMETER,
            Unusable::NotSupported => Status::NOT_SUPPORTED,
        }
        .into()
    }
}

/// What the caller describes. INVALID_PARAMETER if that is no type.
fn contents(info: &D3DDDI_SYNCHRONIZATIONOBJECTINFO2) -> DxgResult<Contents> {
    Ok(match info.Type {
        types::MUTEX => Contents::Mutex {
            owned: info.mutex().InitialState != 0,
        },
        types::SEMAPHORE => Contents::Semaphore {
            initial: info.semaphore().InitialCount,
            max: info.semaphore().MaxCount,
        },
        types::FENCE => Contents::Fence {
            value: info.fence().FenceValue,
        },
        types::CPU_NOTIFICATION => Contents::CpuNotification {
            event: info.cpu_notification().Event,
        },
        types::MONITORED_FENCE => Contents::MonitoredFence {
            value: info.monitored_fence().InitialFenceValue,
            engines: info.monitored_fence().EngineAffinity,
        },
        types::PERIODIC_MONITORED_FENCE => Contents::PeriodicFence {
            adapter: info.periodic().hAdapter,
            engines: info.periodic().EngineAffinity,
        },
        _ => return Err(Status::INVALID_PARAMETER.into()),
    })
}

/// What an object of the caller starts as, if everything about it is good.
fn start(call: Call<'_>, own: &Adapter, contents: Contents, flags: u32) -> DxgResult<Start> {
    let other = match contents {
        Contents::PeriodicFence { adapter, .. } => Some(call.process.handles.adapter(adapter)?),
        _ => None,
    };

    sync_flags::check_contents(contents, flags, |engines| {
        other.as_deref().unwrap_or(own).has_engines(engines)
    })?;
    Ok(match contents {
        Contents::MonitoredFence { value, .. } => Start::MonitoredFence(value),
        Contents::Mutex { owned } => Start::Legacy(State::Mutex { owned }),
        Contents::Semaphore { initial, max } => Start::Legacy(State::Semaphore { initial, max }),
        Contents::Fence { value } => Start::Legacy(State::Fence { value }),
        Contents::CpuNotification { event: slot } => Start::Legacy(State::CpuNotification {
            _event: EventFd::from_slot(slot)?,
        }),
        Contents::PeriodicFence { .. } => return Err(Status::NOT_SUPPORTED.into()),
    })
}

/// D3DKMTCreateSynchronizationObject2 (0x10): makes an object of any type (FEN-1 to FEN-7).
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATESYNCHRONIZATIONOBJECT2,
) -> DxgResult<impl Commit + 'a> {
    let info = &mut args.Info;
    let contents = contents(info)?;
    let sharing = sync_flags::check_create(info.Type, info.Flags)?;
    let parent = call.process.handles.parent(args.hDevice)?;
    let adapter = &parent.device.adapter;
    let start = start(call, adapter, contents, info.Flags)?;
    let creation = Creation {
        adapter,
        sharing,
        cross_adapter: info.Flags & bits::CROSS_ADAPTER != 0,
        keeps_value: info.Flags & bits::NO_SIGNAL_MAX_VALUE_ON_TDR != 0,
        globals: &call.driver.tables.globals,
        account: &call.process.account,
        pool: &call.process.fence_storage,
    };
    let strong = creation.sync_object(start)?;
    let global = match sharing {
        Sharing::Global => Some(strong.name_globally(&call.driver.tables.globals)?),
        Sharing::Private | Sharing::Nt => None,
    };
    let rights = Rights::from_flags(info.Flags);
    let (reserved, addresses) = open(call, strong, rights, access::ALL, Some(&parent))?;

    if info.Type == types::MONITORED_FENCE {
        info.set_addresses(addresses.user_cpu, addresses.process_gpu);
    }
    if info.Flags & bits::SHARED != 0 {
        info.SharedHandle = global.as_ref().map_or(0, ReservedGlobal::handle);
    }
    args.hSyncObject = reserved.handle();
    Ok((reserved, global))
}

/// D3DKMTDestroySynchronizationObject (0x1d): destroys a handle (FEN-2, FEN-52).
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYSYNCHRONIZATIONOBJECT) -> DxgResult {
    call.process.handles.destroy(args.hSyncObject, |item| {
        matches!(item, HandleTarget::Sync(_))
    })
}

/// Gives the caller a handle for the object behind `strong`, and says where its value is seen.
fn open<'a>(
    call: Call<'a>,
    strong: Strong,
    rights: Rights,
    access: u32,
    parent: Option<&Parent>,
) -> DxgResult<(Reserved<'a>, FenceAddresses)> {
    let (open, addresses) = OpenSyncObject::new(strong, rights, access, &call.process.mappings)?;
    let reserved = call
        .process
        .handles
        .reserve(HandleTarget::Sync(open), parent)?;

    Ok((reserved, addresses))
}

/// D3DKMTOpenSynchronizationObject (0x29): opens a global handle.
pub(super) fn open_global<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCHRONIZATIONOBJECT,
) -> DxgResult<impl Commit + 'a> {
    let strong = call.open_global(args.hSharedHandle)?;

    if !strong.object().is_sync() {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let rights = Rights::from_flags(0);
    let (open, _) = OpenSyncObject::new(strong, rights, access::ALL, &call.process.mappings)?;
    let item = HandleTarget::Sync(open.found_by_global());
    let reserved = call.process.handles.reserve(item, None)?;

    args.hSyncObject = reserved.handle();
    Ok(reserved)
}

/// The NT handle of a synchronisation object in a slot of the caller's struct.
fn sync_handle(slot: u64) -> DxgResult<Arc<NtHandle>> {
    let handle = nt_handle(slot)?;

    if handle.object().is_sync() {
        Ok(handle)
    } else {
        Err(Status::OBJECT_TYPE_MISMATCH.into())
    }
}

/// D3DKMTOpenSyncObjectFromNtHandle (0xa2): opens an NT handle, for no device.
pub(super) fn open_nt<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE,
) -> DxgResult<impl Commit + 'a> {
    let share = sync_handle(args.hNtHandle)?;
    let strong = share.strong()?;
    let (reserved, _) = open(call, strong, share.rights(), share.access(), None)?;

    args.hSyncObject = reserved.handle();
    Ok(reserved)
}

/// D3DKMTOpenSyncObjectFromNtHandle2 (0x40): opens an NT handle on a device, with the rights that
/// flags leave.
pub(super) fn open_nt2<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2,
) -> DxgResult<impl Commit + 'a> {
    sync_flags::check_open(args.Flags)?;

    let parent = call.process.handles.parent(args.hDevice)?;
    let share = sync_handle(args.hNtHandle)?;

    if !share.object().header().is_for(&parent.device.adapter) {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let is_fence = matches!(share.object(), Object::Fence(_));

    if is_fence && !parent.device.adapter.has_engines(args.engine_affinity()) {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let rights = Rights::from_flags(args.Flags).and(share.rights());
    let strong = share.strong()?;
    let (reserved, addresses) = open(call, strong, rights, share.access(), Some(&parent))?;

    if is_fence {
        args.set_addresses(addresses.user_cpu, addresses.process_gpu);
    }
    args.hSyncObject = reserved.handle();
    Ok(reserved)
}
