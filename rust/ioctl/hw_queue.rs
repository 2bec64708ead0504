// SPDX-License-Identifier: GPL-2.0

//! HW queues.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        handle::{
            HandleTarget,
            Reserved, //
        },
        hw_queue::{
            self,
            HwQueue, //
        }, //
    },
    error::DxgResult,
    logic::check_address,
    sys::user,
    uapi::*, //
};
use kernel::sync::Arc;

/// Bits of `D3DDDI_CREATEHWQUEUEFLAGS` that may be set. Those about broadcasts allow the KMD less
/// than it may do anyway. NativeProgressFence is an answer, which a client may hand in again with
/// the same argument.
const FLAGS: u32 = D3DDDI_CREATEHWQUEUEFLAGS_DisableGpuTimeout
    | D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission
    | D3DDDI_CREATEHWQUEUEFLAGS_NativeProgressFence
    | D3DDDI_CREATEHWQUEUEFLAGS_NoBroadcastSignal
    | D3DDDI_CREATEHWQUEUEFLAGS_NoBroadcastWait
    | D3DDDI_CREATEHWQUEUEFLAGS_NoKmdAccess;

/// A HW queue that cannot be found yet, and its progress fence. Fields are dropped in order: the
/// later number is given back first, so that both are (RES-4).
struct NewHwQueue<'a> {
    queue: Reserved<'a>,
    progress_fence: Reserved<'a>,
}

impl Commit for NewHwQueue<'_> {
    fn commit(self) {
        // If the context was destroyed meanwhile, so were they.
        let _published = self.progress_fence.commit() && self.queue.commit();
    }
}

/// D3DKMTCreateHwQueue (0x18): a HW queue and its progress fence (GPU-8, FEN-125).
/// NOT_SUPPORTED for one that its process fills, on a node where that is not possible (GPU-2).
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEHWQUEUE,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.Flags & !FLAGS != 0)?;
    check_address(args.pPrivateDriverData, args.PrivateDriverDataSize)?;

    let (context, parent) = call.process.handles.context_as_parent(args.hHwContext)?;

    invalid_if(!context.takes_hw_queues())?;

    // What the KMD does not look at is not read. CAST: 32 bits fit a usize.
    let size = args
        .PrivateDriverDataSize
        .min(context.adapter().caps.context_data_size) as usize;
    let private_data = user::read_bytes(args.pPrivateDriverData, size)?;
    let progress = call.process.create_progress_fence(&parent)?;
    let description = hw_queue::Description {
        disable_gpu_timeout: args.Flags & D3DDDI_CREATEHWQUEUEFLAGS_DisableGpuTimeout != 0,
        progress_fence: progress.addresses.process_gpu,
        private_data,
        progress_handle: progress.reserved.handle(),
        user_mode_submission: args.Flags & D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission != 0,
    };
    let queue = HwQueue::new(&context, &description, progress.kept)?;
    let reserved = call
        .process
        .handles
        .reserve(HandleTarget::HwQueue(queue), Some(&parent))?;

    args.Flags &= !D3DDDI_CREATEHWQUEUEFLAGS_NativeProgressFence;
    if progress.is_native {
        args.Flags |= D3DDDI_CREATEHWQUEUEFLAGS_NativeProgressFence;
    }
    args.hHwQueue = reserved.handle();
    args.hHwQueueProgressFence = progress.reserved.handle();
    args.HwQueueProgressFenceCPUVirtualAddress = progress.addresses.user_cpu;
    args.HwQueueProgressFenceGPUVirtualAddress = progress.addresses.process_gpu;
    Ok(NewHwQueue {
        queue: reserved,
        progress_fence: progress.reserved,
    })
}

/// D3DKMTDestroyHwQueue (0x1b): destroys a HW queue and its progress fence.
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYHWQUEUE) -> DxgResult {
    let handles = &call.process.handles;
    let queue = handles.hw_queue(args.hHwQueue)?;

    // Before its doorbell goes: what is in the ring is still done.
    queue.begin_to_leave();
    handles.destroy(
        args.hHwQueue,
        |item| matches!(item, HandleTarget::HwQueue(own) if Arc::ptr_eq(own, &queue)),
    )?;
    // With its context both may be gone by now.
    let _gone = handles.destroy(
        queue.progress_handle,
        |item| matches!(item, HandleTarget::Sync(open) if open.is_of_queue()),
    );
    Ok(())
}
