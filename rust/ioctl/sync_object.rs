// SPDX-License-Identifier: GPL-2.0

//! Creating, opening and destroying synchronisation objects.

use super::{
    commit::Commit,
    nt_handle,
    Call, //
};
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
            Strong, //
        },
        quota::account::Limit,
        share::{
            global_table::ReservedGlobal,
            NtHandle, //
        },
        stats::Kind,
        sync::{
            fence::Fence,
            fence_storage::FenceStorage,
            legacy::{
                LegacySync,
                State, //
            }, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        handle,
        sync_flags::{
            self,
            bits,
            types,
            Rights,
            Sharing, //
        }, //
    },
    sys::file::eventfd::EventFd,
    uapi::*, //
};
use kernel::sync::Arc;

/// An event HANDLE of an argument struct (FEN-21, CPU-3).
pub(super) fn event(slot: u64) -> DxgResult<EventFd> {
    let fd = handle::nt_fd(slot).ok_or(Status::INVALID_HANDLE)?;

    Ok(EventFd::from_fd(fd)?)
}

/// D3DKMTCreateSynchronizationObject2 (0x10): makes an object. A periodic fence is refused, because
/// it follows a display, and no adapter has one.
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATESYNCHRONIZATIONOBJECT2,
) -> DxgResult<impl Commit + 'a> {
    let info = &mut args.Info;

    if !(types::MUTEX..=types::PERIODIC_MONITORED_FENCE).contains(&info.Type) {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let sharing = sync_flags::check_create(info.Type, info.Flags)?;
    let parent = call.process.handles.parent(args.hDevice)?;
    let (strong, mut addr) = make(call, &parent, info, sharing)?;
    let global = match sharing {
        Sharing::Global => Some(strong.name_globally(&call.driver.tables.globals)?),
        Sharing::Private | Sharing::Nt => None,
    };
    let rights = Rights::from_flags(info.Flags);
    let (open, shared_addr) =
        OpenSyncObject::new(strong, rights, access::ALL, &call.process.mappings)?;
    let reserved = call
        .process
        .handles
        .reserve(HandleTarget::Sync(open), Some(&parent))?;

    if info.Type == types::MONITORED_FENCE {
        if sharing == Sharing::Nt {
            addr = shared_addr;
        }
        // There are no GPU addresses before there is a GPU address space.
        info.set_addresses(addr as u64, 0);
    }
    if info.Flags & bits::SHARED != 0 {
        info.SharedHandle = global.as_ref().map_or(0, ReservedGlobal::handle);
    }
    args.hSyncObject = reserved.handle();
    Ok((reserved, global))
}

/// Makes the object that `info` describes. Also returns where its value is mapped, if it is in a
/// common page of the process.
fn make(
    call: Call<'_>,
    parent: &Parent,
    info: &D3DDDI_SYNCHRONIZATIONOBJECTINFO2,
    sharing: Sharing,
) -> DxgResult<(Strong, usize)> {
    let header = |kind| -> DxgResult<_> {
        Ok(Header::new(
            kind,
            Some(parent.device.adapter.clone()),
            sharing,
            info.Flags & bits::CROSS_ADAPTER != 0,
            call.driver.tables.clone(),
            call.process.account.charge(Limit::Objects, 1)?,
        ))
    };
    let legacy = |kind, state| -> DxgResult<(Strong, usize)> {
        let object = LegacySync::new(header(kind)?, state)?;

        Ok((Strong::first(Object::Legacy(object)), 0))
    };

    match info.Type {
        types::MUTEX => {
            let owned = info.mutex().InitialState != 0;

            legacy(Kind::Mutex, State::Mutex { owned })
        }
        types::SEMAPHORE => {
            let semaphore = info.semaphore();

            if semaphore.InitialCount > semaphore.MaxCount {
                return Err(Status::INVALID_PARAMETER.into());
            }
            legacy(
                Kind::Semaphore,
                State::Semaphore {
                    initial: semaphore.InitialCount,
                    max: semaphore.MaxCount,
                },
            )
        }
        types::FENCE => {
            let value = info.fence().FenceValue;

            legacy(Kind::Fence, State::Fence { value })
        }
        types::CPU_NOTIFICATION => {
            if info.Flags & bits::SIGNAL_BY_KMD != 0 {
                // The adapter does not offer DXGK_FEATURE_KMD_SIGNAL_CPU_EVENT (CPU-6).
                return Err(Status::NOT_SUPPORTED.into());
            }

            let event = event(info.cpu_notification().Event)?;

            legacy(
                Kind::CpuNotification,
                State::CpuNotification { _event: event },
            )
        }
        types::MONITORED_FENCE => {
            let fence = info.monitored_fence();

            if !parent.device.adapter.has_engines(fence.EngineAffinity) {
                return Err(Status::INVALID_PARAMETER.into());
            }

            let (storage, addr) = match sharing {
                Sharing::Nt => (FenceStorage::alone(fence.InitialFenceValue)?, 0),
                _ => call.process.fence_storage.slot(fence.InitialFenceValue)?,
            };
            let object = Fence::new(header(Kind::MonitoredFence)?, storage)?;

            Ok((Strong::first(Object::Fence(object)), addr))
        }
        // Periodic fences follow a video present target, and this adapter has none (section 2.6).
        _ => {
            let periodic = info.periodic();

            let adapter = call.process.handles.adapter(periodic.hAdapter)?;

            if !adapter.has_engines(periodic.EngineAffinity) {
                return Err(Status::INVALID_PARAMETER.into());
            }
            Err(Status::NOT_SUPPORTED.into())
        }
    }
}

/// D3DKMTDestroySynchronizationObject (0x1d): destroys a local handle of an object.
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYSYNCHRONIZATIONOBJECT) -> DxgResult {
    call.process.handles.destroy(args.hSyncObject, |item| {
        matches!(item, HandleTarget::Sync(_))
    })
}

/// Gives the caller a handle for the object behind `strong`, and the address of its value.
fn open<'a>(
    call: Call<'a>,
    strong: Strong,
    rights: Rights,
    access: u32,
    parent: Option<&Parent>,
) -> DxgResult<(Reserved<'a>, usize)> {
    strong.object().header().check_adapter()?;

    let (open, addr) = OpenSyncObject::new(strong, rights, access, &call.process.mappings)?;
    let reserved = call
        .process
        .handles
        .reserve(HandleTarget::Sync(open), parent)?;

    Ok((reserved, addr))
}

/// D3DKMTOpenSynchronizationObject (0x29): opens an object by its global handle.
pub(super) fn open_global<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCHRONIZATIONOBJECT,
) -> DxgResult<impl Commit + 'a> {
    let strong = call.open_global(args.hSharedHandle)?;

    if !strong.object().is_sync() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    strong.object().header().check_adapter()?;

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

/// D3DKMTOpenSyncObjectFromNtHandle (0xa2): opens an object by NT handle, without a device.
pub(super) fn open_nt<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE,
) -> DxgResult<impl Commit + 'a> {
    let share = sync_handle(args.hNtHandle)?;
    let (reserved, _) = open(call, share.strong()?, share.rights(), share.access(), None)?;

    args.hSyncObject = reserved.handle();
    Ok(reserved)
}

/// D3DKMTOpenSyncObjectFromNtHandle2 (0x40): opens an object by NT handle on a device.
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
    let (reserved, addr) = open(call, share.strong()?, rights, share.access(), Some(&parent))?;

    if is_fence {
        args.set_addresses(addr as u64, 0);
    }
    args.hSyncObject = reserved.handle();
    Ok(reserved)
}
