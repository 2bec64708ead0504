// SPDX-License-Identifier: GPL-2.0

//! Doorbells: user-mode submission.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        doorbell::{
            ring::Description,
            Doorbell, //
        },
        handle::HandleTarget, //
    },
    error::DxgResult,
    logic::check_address,
    sys::user,
    uapi::*, //
};
use kernel::sync::Arc;

/// Bits of `D3DKMT_CREATE_DOORBELL_FLAGS` that there are.
const FLAGS: u32 = D3DKMT_CREATE_DOORBELL_FLAGS_RequireSecondaryCpuVA
    | D3DKMT_CREATE_DOORBELL_FLAGS_ResizeRingBufferOperation;

/// D3DKMTCreateDoorbell (0xe0): a doorbell for a HW queue with UserModeSubmission, disconnected
/// (GPU-19).
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATE_DOORBELL,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.Flags & !FLAGS != 0)?;
    check_address(args.PrivateDriverData, args.PrivateDriverDataSize)?;

    let handles = &call.process.handles;
    let (queue, parent) = handles.hw_queue_as_parent(args.hHwQueue)?;
    let ring = handles.allocation(args.hRingBuffer)?.what;
    let control = handles.allocation(args.hRingBufferControl)?.what;
    let adapter = &queue.device().adapter;
    // What the KMD does not look at is not read. CAST: 32 bits fit a usize.
    let size = args
        .PrivateDriverDataSize
        .min(adapter.caps.context_data_size) as usize;
    let description = Description {
        ring: &ring,
        control: &control,
        resizes_ring: args.Flags & D3DKMT_CREATE_DOORBELL_FLAGS_ResizeRingBufferOperation != 0,
        wants_secondary: args.Flags & D3DKMT_CREATE_DOORBELL_FLAGS_RequireSecondaryCpuVA != 0,
        private_data: user::read_bytes(args.PrivateDriverData, size)?,
    };

    invalid_if(!queue.queue.is_filled_by_process)?;
    invalid_if(!ring.is_of(queue.device()) || !control.is_of(queue.device()))?;

    let doorbell = Doorbell::new(&queue, &description)?;
    let addresses = doorbell.addresses();
    let reserved = handles.reserve(HandleTarget::Doorbell(doorbell), Some(&parent))?;

    // CAST: a usize fits 64 bits.
    args.DoorbellCPUVirtualAddress = addresses.doorbell as u64;
    args.DoorbellSecondaryCPUVirtualAddress = addresses.secondary as u64;
    args.DoorbellStatusCPUVirtualAddress = addresses.status as u64;
    args.HwQueueProgressFenceLastQueuedValueCPUVirtualAddress = addresses.last_queued as u64;
    args.hDoorbell = reserved.handle();
    Ok(reserved)
}

/// D3DKMTConnectDoorbell (0xe1): connects a doorbell to the GPU, until the status says something
/// else (GPU-21). DEVICE_REMOVED if the queue will not run any more.
pub(super) fn connect(call: Call<'_>, args: &D3DKMT_CONNECT_DOORBELL) -> DxgResult {
    invalid_if(args.Flags != 0)?;
    call.process.handles.doorbell(args.hDoorbell)?.connect()
}

/// D3DKMTDestroyDoorbell (0xe2): destroys a doorbell.
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROY_DOORBELL) -> DxgResult {
    invalid_if(args.Flags != 0)?;

    let handles = &call.process.handles;
    let doorbell = handles.doorbell(args.hDoorbell)?;

    handles.destroy(
        args.hDoorbell,
        |item| matches!(item, HandleTarget::Doorbell(own) if Arc::ptr_eq(own, &doorbell)),
    )
}

/// D3DKMTNotifyWorkSubmission (0xe3): tells the KMD that there is work, if the status of the
/// doorbell asks for that (GPU-25).
pub(super) fn notify(call: Call<'_>, args: &D3DKMT_NOTIFY_WORK_SUBMISSION) -> DxgResult {
    invalid_if(args.Flags != 0)?;
    call.process.handles.doorbell(args.hDoorbell)?.notify()
}
