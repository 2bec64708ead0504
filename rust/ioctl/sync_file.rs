// SPDX-License-Identifier: GPL-2.0

//! Sync files: what D3DKMT and the kernel's fences have in common (FEN-160 to FEN-166).

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit,
    queues::{
        QueueKind,
        Queues, //
    }, //
};
use crate::{
    dxgk::{
        object::Object,
        sched::new_item::NewItem,
        sync::exported_point::{
            self,
            ExportedPoint, //
        }, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::wait_rules::Refusal,
    sys::file::{
        object_file::NotOurs,
        sync_file, //
    },
    uapi::*, //
};

/// D3DKMTCreateSyncFile (0x45): a sync file that signals when a fence has a value, which must be
/// so already or queued (FEN-161).
pub(super) fn create(call: Call<'_>, args: &mut D3DKMT_CREATESYNCFILE) -> DxgResult<impl Commit> {
    let device = call.process.handles.device(args.hDevice)?;
    let opened = call.process.handles.sync_object(args.hMonitoredFence)?;
    let fence = match &opened.object {
        Object::Fence(fence) if fence.header.is_for(&device.adapter) => fence,
        _ => return Err(Refusal::Mismatch.into()),
    };

    if !opened.rights.wait {
        return Err(Refusal::Denied.into());
    }

    let fd = exported_point::export(&device, &call.process.holder, fence, args.FenceValue)?;

    args.hSyncFile = fd.fd().into();
    Ok(fd)
}

/// D3DKMTWaitSyncFile (0x46): a context waits for a sync file of any driver (FEN-165).
pub(super) fn wait(call: Call<'_>, args: &d3dkmt_waitsyncfile) -> DxgResult {
    invalid_if(args.reserved != 0)?;

    let queues = Queues::of(call, QueueKind::Contexts, &[args.context])?;
    let fence = sync_file::fence_of_slot(args.sync_file_handle)?;

    queues.push(|queue| NewItem::sync_file_wait(queue, call.process, fence.clone()))
}

/// D3DKMTOpenSyncObjectFromSyncFile (0x47): the fence behind a sync file of this module (FEN-166).
pub(super) fn open<'a>(
    call: Call<'a>,
    args: &mut d3dkmt_opensyncobjectfromsyncfile,
) -> DxgResult<impl Commit + 'a> {
    let parent = call.process.handles.parent(args.device)?;
    let fence = sync_file::fence_of_slot(args.sync_file_handle).map_err(|reason| match reason {
        NotOurs::Closed => DxgError::from(Status::INVALID_HANDLE),
        NotOurs::Mismatch => Status::INVALID_PARAMETER.into(),
    })?;
    let point = ExportedPoint::of(&fence).ok_or(Status::INVALID_PARAMETER)?;
    let opened = call.process.open_exported_point(&point, &parent)?;

    if let Some(addresses) = opened.addresses {
        args.fence_value_cpu_va = addresses.user_cpu;
        args.fence_value_gpu_va = addresses.process_gpu;
    }
    args.fence_value = point.value;
    args.syncobj = opened.reserved.handle();
    Ok(opened.reserved)
}
