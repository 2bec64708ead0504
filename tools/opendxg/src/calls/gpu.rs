// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of paging, submission and queued synchronisation that take addresses.
//!
//! Where the GPU writes is memory of allocations and values of fences, which this crate reads
//! atomically. So no command buffer can break what the types promise.

use super::{buffer, call_with_addresses, count, input, parallel};
use crate::node::Node;
use crate::raw::Argument;
use crate::uapi::*;
use crate::value::FenceValue;
use crate::{Error, Result, Status};

/// Address of a list, 0 for none.
fn list<T>(entries: &[T]) -> u64 {
    match entries {
        [] => 0,
        entries => entries.as_ptr() as u64,
    }
}

/// CreatePagingQueue; also returns where the value of its fence is mapped.
pub(crate) fn create_paging_queue(
    node: &Node,
    arg: &mut D3DKMT_CREATEPAGINGQUEUE,
) -> Result<FenceValue> {
    // SAFETY: the call takes no address.
    unsafe { call_with_addresses(node, arg) }?;
    // SAFETY: the driver mapped the value there for as long as the queue lives, and the caller
    // keeps both together.
    let value = unsafe { FenceValue::at(arg.FenceValueCPUVirtualAddress) };
    value.ok_or(Error::Protocol("paging queue without a value mapping"))
}

/// CreateHwQueue; also returns where the value of its progress fence is mapped.
pub(crate) fn create_hw_queue(
    node: &Node,
    arg: &mut D3DKMT_CREATEHWQUEUE,
    driver_data: &mut [u8],
) -> Result<FenceValue> {
    (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = buffer(driver_data)?;
    // SAFETY: the address and the size are those of the borrowed slice.
    unsafe { call_with_addresses(node, arg) }?;
    // SAFETY: as in `create_paging_queue`.
    let value = unsafe { FenceValue::at(arg.HwQueueProgressFenceCPUVirtualAddress) };
    value.ok_or(Error::Protocol("hardware queue without a value mapping"))
}

/// CreateDoorbell without private driver data; also returns where the status is mapped.
pub(crate) fn create_doorbell(node: &Node, arg: &mut D3DKMT_CREATE_DOORBELL) -> Result<FenceValue> {
    (arg.PrivateDriverData, arg.PrivateDriverDataSize) = (0, 0);
    // SAFETY: the call takes no address.
    unsafe { call_with_addresses(node, arg) }?;
    // SAFETY: as in `create_paging_queue`.
    let status = unsafe { FenceValue::at(arg.DoorbellStatusCPUVirtualAddress) };
    status.ok_or(Error::Protocol("doorbell without a status mapping"))
}

/// MakeResident of allocations; the outputs stay in the argument.
pub(crate) fn make_resident(
    node: &Node,
    arg: &mut D3DDDI_MAKERESIDENT,
    allocations: &[u32],
) -> Result<Status> {
    arg.NumAllocations = count(allocations.len())?;
    arg.AllocationList = list(allocations);
    // SAFETY: the address is 0 or that of the borrowed slice, only read.
    unsafe { call_with_addresses(node, arg) }
}

/// Evict of allocations; the outputs stay in the argument.
pub(crate) fn evict(node: &Node, arg: &mut D3DKMT_EVICT, allocations: &[u32]) -> Result<Status> {
    arg.NumAllocations = count(allocations.len())?;
    arg.AllocationList = list(allocations);
    // SAFETY: the address is 0 or that of the borrowed slice, only read.
    unsafe { call_with_addresses(node, arg) }
}

/// UpdateGpuVirtualAddress with a list of operations.
pub(crate) fn update_gpu_addresses(
    node: &Node,
    arg: &mut D3DKMT_UPDATEGPUVIRTUALADDRESS,
    operations: &[D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION],
) -> Result<Status> {
    arg.NumOperations = count(operations.len())?;
    arg.Operations = list(operations);
    // SAFETY: the address is 0 or that of the borrowed slice, only read.
    unsafe { call_with_addresses(node, arg) }
}

/// SubmitCommand with private driver data and without history buffers.
pub(crate) fn submit_command(
    node: &Node,
    arg: &mut D3DKMT_SUBMITCOMMAND,
    driver_data: &[u8],
) -> Result<Status> {
    (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = input(driver_data)?;
    (arg.HistoryBufferArray, arg.NumHistoryBuffers) = (0, 0);
    // SAFETY: the address and the size are those of the borrowed slice, only read.
    unsafe { call_with_addresses(node, arg) }
}

/// SubmitCommandToHwQueue with private driver data and without primaries.
pub(crate) fn submit_command_to_hw_queue(
    node: &Node,
    arg: &mut D3DKMT_SUBMITCOMMANDTOHWQUEUE,
    driver_data: &[u8],
) -> Result<Status> {
    (arg.pPrivateDriverData, arg.PrivateDriverDataSize) = input(driver_data)?;
    (arg.WrittenPrimaries, arg.NumPrimaries) = (0, 0);
    // SAFETY: the address and the size are those of the borrowed slice, only read.
    unsafe { call_with_addresses(node, arg) }
}

/// SignalSynchronizationObjectFromGpu.
pub(crate) fn signal_from_gpu(
    node: &Node,
    context: u32,
    (objects, values): (&[u32], &[u64]),
) -> Result<Status> {
    let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU::zeroed();
    arg.hContext = context;
    arg.ObjectCount = parallel(objects, values)?;
    arg.ObjectHandleArray = list(objects);
    arg.__bindgen_anon_1.MonitoredFenceValueArray = list(values);
    // SAFETY: both addresses are those of borrowed slices of `ObjectCount` entries, only read.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// WaitForSynchronizationObjectFromGpu.
pub(crate) fn wait_from_gpu(
    node: &Node,
    context: u32,
    (objects, values): (&[u32], &[u64]),
) -> Result<Status> {
    let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU::zeroed();
    arg.hContext = context;
    arg.ObjectCount = parallel(objects, values)?;
    arg.ObjectHandleArray = list(objects);
    arg.__bindgen_anon_1.MonitoredFenceValueArray = list(values);
    // SAFETY: both addresses are those of borrowed slices of `ObjectCount` entries, only read.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// What SignalSynchronizationObjectFromGpu2 signals.
pub(crate) enum Signalled<'a> {
    /// Monitored fences, each with its value.
    Fences(&'a [u32], &'a [u64]),
    /// An eventfd, as a slot.
    Event(u64),
}

/// SignalSynchronizationObjectFromGpu2.
pub(crate) fn signal_from_gpu2(
    node: &Node,
    contexts: &[u32],
    signalled: Signalled<'_>,
    flags: u32,
) -> Result<Status> {
    let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2::zeroed();
    arg.Flags = flags;
    arg.BroadcastContextCount = count(contexts.len())?;
    arg.BroadcastContextArray = list(contexts);
    match signalled {
        Signalled::Fences(objects, values) => {
            arg.ObjectCount = parallel(objects, values)?;
            arg.ObjectHandleArray = list(objects);
            arg.__bindgen_anon_1.MonitoredFenceValueArray = list(values);
        }
        Signalled::Event(event) => {
            arg.Flags |= D3DDDICB_SIGNALFLAGS_EnqueueCpuEvent;
            arg.__bindgen_anon_1.CpuEventHandle = event;
        }
    }
    // SAFETY: the addresses are those of borrowed slices of the counts beside them, only read. An
    // eventfd in the place of one of them comes with the flag that says so.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// SubmitSignalSyncObjectsToHwQueue.
pub(crate) fn signal_in_hw_queues(
    node: &Node,
    queues: &[u32],
    (objects, values): (&[u32], &[u64]),
    flags: u32,
) -> Result<Status> {
    let mut arg = D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE::zeroed();
    arg.Flags = flags;
    arg.BroadcastHwQueueCount = count(queues.len())?;
    arg.BroadcastHwQueueArray = list(queues);
    arg.ObjectCount = parallel(objects, values)?;
    arg.ObjectHandleArray = list(objects);
    arg.FenceValueArray = list(values);
    // SAFETY: the addresses are those of borrowed slices of the counts beside them, only read.
    unsafe { call_with_addresses(node, &mut arg) }
}

/// SubmitWaitForSyncObjectsToHwQueue.
pub(crate) fn wait_in_hw_queue(
    node: &Node,
    queue: u32,
    (objects, values): (&[u32], &[u64]),
) -> Result<Status> {
    let mut arg = D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE::zeroed();
    arg.hHwQueue = queue;
    arg.ObjectCount = parallel(objects, values)?;
    arg.ObjectHandleArray = list(objects);
    arg.FenceValueArray = list(values);
    // SAFETY: both addresses are those of borrowed slices of `ObjectCount` entries, only read.
    unsafe { call_with_addresses(node, &mut arg) }
}
