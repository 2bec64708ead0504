// SPDX-License-Identifier: GPL-2.0

//! Using allocations: CPU mappings, priorities, residency, dma-bufs.

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
            chosen_allocations::ChosenAllocations,
            open_allocation::OpenAllocation, //
        },
        memory::dma_buf, //
    },
    error::DxgResult,
    logic::{
        allocation_lists::NamedAllocations,
        residency, //
    },
    sys::user,
    uapi::*, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The allocation behind a handle that was made on `device`, or on none; DEVICE_REMOVED if the
/// adapter of the device is removed.
fn find(call: Call<'_>, device: u32, allocation: u32) -> DxgResult<Arc<OpenAllocation>> {
    call.process.handles.running_device(device)?;
    call.process.handles.allocation_of(device, allocation)
}

/// D3DKMTLock2 (0x25): maps an allocation into the caller's address space.
pub(super) fn lock(call: Call<'_>, args: &mut D3DKMT_LOCK2) -> DxgResult<impl Commit> {
    invalid_if(args.Flags != 0)?;

    let allocation = find(call, args.hDevice, args.hAllocation)?;
    let (address, locked) = allocation.lock(&call.process.holder)?;

    // CAST: an address has at most 64 bits.
    args.pData = address as u64;
    Ok(locked)
}

/// D3DKMTUnlock2 (0x37): removes one lock; the last one unmaps. Works after the adapter was
/// removed.
pub(super) fn unlock(call: Call<'_>, args: &D3DKMT_UNLOCK2) -> DxgResult {
    let table = &call.process.handles;

    table.device(args.hDevice)?;
    table
        .allocation_of(args.hDevice, args.hAllocation)?
        .unlock()
}

/// D3DKMTInvalidateCache (0x24): our memory is coherent for every device. The exporter of a foreign
/// dma-buf is asked to make it so.
pub(super) fn invalidate_cache(call: Call<'_>, args: &D3DKMT_INVALIDATECACHE) -> DxgResult {
    let allocation = find(call, args.hDevice, args.hAllocation)?;
    let end = args.Offset.checked_add(args.Length);

    invalid_if(end.is_none_or(|end| end > allocation.allocation.size()))?;
    drop(allocation.allocation.storage()?.begin_cpu_access()?);
    Ok(())
}

/// The allocations that a resource or a list names (MEM-9).
fn chosen(
    call: Call<'_>,
    device: u32,
    resource: u32,
    list: u64,
    count: u32,
) -> DxgResult<ChosenAllocations> {
    let table = &call.process.handles;

    table.running_device(device)?;
    match NamedAllocations::new(resource, list, count)? {
        NamedAllocations::Resource(local) => table.allocations_of_resource(device, local),
        NamedAllocations::List(count) => {
            let mut locals = KVVec::from_elem(0u32, count, GFP_KERNEL_ACCOUNT)?;

            user::read_slice(list, &mut locals)?;
            table.allocations_of_list(device, &locals)
        }
    }
}

/// D3DKMTSetAllocationPriority (0x2e): a resource has one priority for all its allocations. It
/// affects other users, so it needs the right to write.
pub(super) fn set_priority(call: Call<'_>, args: &D3DKMT_SETALLOCATIONPRIORITY) -> DxgResult {
    let chosen = chosen(
        call,
        args.hDevice,
        args.hResource,
        args.phAllocationList,
        args.AllocationCount,
    )?;

    invalid_if(args.pPriorities == 0)?;
    chosen.check_may_write()?;

    let mut priorities = KVVec::from_elem(0u32, chosen.count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.pPriorities, &mut priorities)?;
    for (allocation, priority) in chosen.allocations.iter().zip(priorities.iter().cycle()) {
        allocation.memory.set_priority(*priority);
    }
    Ok(())
}

/// D3DKMTGetAllocationPriority (0x3c): a resource has one answer, that of its first allocation.
pub(super) fn priority(call: Call<'_>, args: &D3DKMT_GETALLOCATIONPRIORITY) -> DxgResult {
    let ChosenAllocations {
        allocations, count, ..
    } = chosen(
        call,
        args.hDevice,
        args.hResource,
        args.phAllocationList,
        args.AllocationCount,
    )?;
    let mut priorities = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

    // A resource whose allocations are all destroyed (RES-82) has none to answer for it.
    invalid_if(args.pPriorities == 0 || allocations.is_empty())?;
    for allocation in allocations.iter().take(count) {
        priorities.push(allocation.memory.priority(), GFP_KERNEL_ACCOUNT)?;
    }
    user::write_slice(args.pPriorities, &priorities)?;
    Ok(())
}

/// D3DKMTQueryAllocationResidency (0x2a): says where the bytes are. A resource has one answer.
pub(super) fn residency(call: Call<'_>, args: &D3DKMT_QUERYALLOCATIONRESIDENCY) -> DxgResult {
    let ChosenAllocations { allocations, .. } = chosen(
        call,
        args.hDevice,
        args.hResource,
        args.phAllocationList,
        args.AllocationCount,
    )?;
    let mut statuses = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;

    for allocation in &allocations {
        statuses.push(allocation.residency(), GFP_KERNEL_ACCOUNT)?;
    }
    invalid_if(args.pResidencyStatus == 0)?;
    if args.hResource != 0 {
        let status = residency::of_resource(statuses.iter().copied());

        return Ok(user::write_slice(args.pResidencyStatus, &[status])?);
    }
    user::write_slice(args.pResidencyStatus, &statuses)?;
    Ok(())
}

/// DXG_IOCTL_EXPORT_DMABUF (0xae): a dma-buf of an allocation.
pub(super) fn export_dmabuf(
    call: Call<'_>,
    args: &mut opendxg_export_dmabuf,
) -> DxgResult<impl Commit> {
    invalid_if(args.flags & !OPENDXG_EXPORT_READ_ONLY != 0 || args.reserved != 0)?;

    let opened = call.process.handles.allocation(args.allocation)?.what;

    opened.open_resource.object().header().check_adapter()?;

    let read_only = args.flags & OPENDXG_EXPORT_READ_ONLY != 0 || !opened.open_resource.may_write();
    let fd = dma_buf::export(&opened.allocation, &call.process.holder, read_only, || {
        opened.open_resource.another_strong()
    })?;

    // CAST: descriptors fit an int.
    args.fd = fd.fd() as i32;
    Ok(fd)
}
