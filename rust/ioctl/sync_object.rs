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
        handle::HandleTarget,
        object::ReservedGlobal,
        sync::opening::OpenSyncRequest, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        open_rules,
        sync_flags::{
            types,
            Contents,
            Creation, //
        }, //
    },
    uapi::*, //
};

/// What the caller describes. INVALID_PARAMETER if its type does not exist.
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

/// D3DKMTCreateSynchronizationObject2 (0x10): makes an object of any type (FEN-1 to FEN-7).
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATESYNCHRONIZATIONOBJECT2,
) -> DxgResult<impl Commit + 'a> {
    let info = &mut args.Info;
    let creation = Creation::new(contents(info)?, info.Flags)?;
    let parent = call.process.handles.parent(args.hDevice)?;
    let new = call
        .process
        .create_sync_object(&call.driver.tables, &parent, &creation)?;

    if let Some(addresses) = new.opened.addresses {
        info.set_addresses(addresses.user_cpu, addresses.process_gpu);
    }
    if creation.is_shared() {
        info.SharedHandle = new.global.as_ref().map_or(0, ReservedGlobal::handle);
    }
    args.hSyncObject = new.opened.reserved.handle();
    Ok((new.opened.reserved, new.global))
}

/// D3DKMTDestroySynchronizationObject (0x1d): destroys a handle (FEN-2, FEN-52).
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYSYNCHRONIZATIONOBJECT) -> DxgResult {
    let handles = &call.process.handles;

    handles.look_at_logs(args.hSyncObject);
    handles.destroy(
        args.hSyncObject,
        |item| matches!(item, HandleTarget::Sync(open) if !open.is_of_queue()),
    )
}

/// D3DKMTOpenSynchronizationObject (0x29): opens a global handle.
pub(super) fn open_global<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCHRONIZATIONOBJECT,
) -> DxgResult<impl Commit + 'a> {
    let strong = call.open_global(args.hSharedHandle)?;
    let reserved = call.process.open_global_sync_object(strong)?;

    args.hSyncObject = reserved.handle();
    Ok(reserved)
}

/// D3DKMTOpenSyncObjectFromNtHandle (0xa2): opens an NT handle, for no device.
pub(super) fn open_nt<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE,
) -> DxgResult<impl Commit + 'a> {
    let shared = nt_handle(args.hNtHandle)?;
    let request = OpenSyncRequest::default();
    let opened = call.process.open_shared_sync_object(&shared, &request)?;

    args.hSyncObject = opened.reserved.handle();
    Ok(opened.reserved)
}

/// D3DKMTOpenSyncObjectFromNtHandle2 (0x40): opens an NT handle on a device, with the rights that
/// flags leave.
pub(super) fn open_nt2<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2,
) -> DxgResult<impl Commit + 'a> {
    open_rules::check_sync_flags(args.Flags)?;

    let parent = call.process.handles.parent(args.hDevice)?;
    let shared = nt_handle(args.hNtHandle)?;
    let request = OpenSyncRequest {
        parent: Some(&parent),
        flags: args.Flags,
        engines: args.engine_affinity(),
    };
    let opened = call.process.open_shared_sync_object(&shared, &request)?;

    if let Some(addresses) = opened.addresses {
        args.set_addresses(addresses.user_cpu, addresses.process_gpu);
    }
    args.hSyncObject = opened.reserved.handle();
    Ok(opened.reserved)
}
