// SPDX-License-Identifier: GPL-2.0

//! Paging queues, residency and GPU virtual addresses (memory.md sections 2, 3 and 6).

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        memory::allocation::NewSize,
        object::Object,
        vidmm::{
            address_space::AddressSpace,
            opened::Opened,
            resident_list::{
                Evicted,
                MadeResident,
                NotResident, //
            },
            taken::Taken,
            update::{
                Step,
                Steps, //
            }, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::PAGE,
        gpu_va_rules::{
            self,
            Map,
            Protection,
            Reserve,
            Update,
            UpdateBytes,
            Wish, //
        },
        paging_rules::{
            self,
            Priority, //
        }, //
    },
    sys::user,
    uapi::*, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The status of an operation that is complete when a paging fence shows `value`.
pub(super) fn status_of(value: u64) -> Status {
    match value {
        0 => Status::SUCCESS,
        _ => Status::PENDING,
    }
}

/// D3DKMTCreatePagingQueue (0x07): a queue of a device, and its fence (MEM-10).
pub(super) fn create_paging_queue<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEPAGINGQUEUE,
) -> DxgResult<impl Commit + 'a> {
    let priority = Priority::new(args.Priority)?;
    let parent = call.process.handles.parent(args.hDevice)?;

    invalid_if(args.PhysicalAdapterIndex >= parent.device.adapter.caps.physical_adapters)?;

    let new = call.process.create_paging_queue(&parent, priority)?;

    args.hPagingQueue = new.handle();
    args.hSyncObject = new.fence_handle();
    args.FenceValueCPUVirtualAddress = new.value_address;
    Ok(new)
}

/// D3DKMTDestroyPagingQueue (0x1c): waits for what is queued (MEM-15).
pub(super) fn destroy_paging_queue(call: Call<'_>, args: &D3DDDI_DESTROYPAGINGQUEUE) -> DxgResult {
    call.process.destroy_paging_queue(args.hPagingQueue)
}

/// The opens of the allocations in a list, all of `device` itself.
fn read_list(
    call: Call<'_>,
    device: u32,
    list: u64,
    count: usize,
) -> DxgResult<KVVec<Arc<Opened>>> {
    let mut locals = KVVec::from_elem(0u32, count, GFP_KERNEL_ACCOUNT)?;
    let mut opened = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(list, &mut locals)?;
    for local in &locals {
        let found = call.process.handles.allocation(*local)?;

        invalid_if(found.device != Some(device))?;
        opened.push(found.what.opened()?.clone(), GFP_KERNEL_ACCOUNT)?;
    }
    Ok(opened)
}

/// D3DKMTMakeResident (0x0b): counts each mention, all or none (MEM-19 to MEM-21).
pub(super) fn make_resident(
    call: Call<'_>,
    args: &mut D3DDDI_MAKERESIDENT,
) -> DxgResult<(Option<impl Commit>, Status)> {
    let queue = call.process.handles.paging_queue(args.hPagingQueue)?;
    let count =
        paging_rules::check_make_resident(args.NumAllocations, args.AllocationList, args.Flags)?;
    let device = queue.device.ok_or(Status::INVALID_PARAMETER)?;
    let list = read_list(call, device, args.AllocationList, count)?;

    args.PagingFenceValue = 0;
    args.NumBytesToTrim = 0;
    match MadeResident::new(&queue.what, list, args.Flags) {
        Ok(made) => {
            args.PagingFenceValue = made.value;

            let status = status_of(made.value);

            Ok((Some(made), status))
        }
        Err(NotResident::OverBudget(bytes)) => {
            args.NumAllocations = 0;
            args.NumBytesToTrim = bytes.next_multiple_of(PAGE);
            Ok((None, Status::NO_MEMORY))
        }
        Err(NotResident::Failed(error)) => Err(error),
    }
}

/// D3DKMTEvict (0x1e): counts each mention back, all or none (MEM-23). The process is never over
/// its budget, so there is nothing left to trim.
pub(super) fn evict(call: Call<'_>, args: &mut D3DKMT_EVICT) -> DxgResult<impl Commit> {
    let device = call.process.handles.running_device(args.hDevice)?;
    let count = paging_rules::check_evict(args.NumAllocations, args.AllocationList, args.Flags)?;
    let list = read_list(call, args.hDevice, args.AllocationList, count)?;
    let evicted = Evicted::new(device, list, args.Flags)?;

    args.NumBytesToTrim = 0;
    Ok(evicted)
}

/// D3DKMTReserveGpuVirtualAddress (0x08): keeps addresses (MEM-41). The first member is a paging
/// queue, or in the older form an adapter.
pub(super) fn reserve(
    call: Call<'_>,
    args: &mut D3DDDI_RESERVEGPUVIRTUALADDRESS,
) -> DxgResult<(impl Commit, Status)> {
    let handles = &call.process.handles;
    let queue = match handles.paging_queue(args.queue_or_adapter()) {
        Ok(found) => Some(found.what),
        // It may be an adapter.
        Err(error) if error.is(Status::INVALID_PARAMETER) => None,
        Err(error) => return Err(error),
    };
    let kind = args.reservation_type();
    let wish = Wish {
        base: args.BaseAddress,
        minimum: args.MinimumAddress,
        maximum: args.MaximumAddress,
    };
    let (space, kind) = match &queue {
        Some(queue) => (queue.device.space()?.clone(), kind),
        None => {
            let adapter = handles.adapter(args.queue_or_adapter())?;

            adapter.check()?;
            invalid_if(args.has_reserved())?;
            (
                call.process.gpu_processes.space_on(&adapter)?,
                gpu_va_rules::reservation::NO_ACCESS,
            )
        }
    };
    let request = Reserve::new(space.clients, wish, args.Size, kind)?;
    let taken = Taken::reserve(&space, &request)?;
    let value = queue.map_or(Ok(0), |queue| queue.done())?;

    args.VirtualAddress = taken.address;
    args.set_fence_value(value);
    Ok((taken, status_of(value)))
}

/// D3DKMTMapGpuVirtualAddress (0x0c): shows pages of an allocation at addresses, or nothing
/// (MEM-43).
pub(super) fn map(
    call: Call<'_>,
    args: &mut D3DDDI_MAPGPUVIRTUALADDRESS,
) -> DxgResult<(impl Commit, Status)> {
    let queue = call.process.handles.paging_queue(args.hPagingQueue)?;
    let space = queue.what.device.space()?.clone();

    invalid_if(args.Reserved0 != 0 || args.Reserved1 != 0)?;

    let wish = Wish {
        base: args.BaseAddress,
        minimum: args.MinimumAddress,
        maximum: args.MaximumAddress,
    };
    let request = Map {
        driver_protection: args.DriverProtection,
        ..Map::new(
            space.clients,
            wish,
            (args.OffsetInPages, args.SizeInPages),
            args.Protection,
            args.hAllocation != 0,
        )?
    };
    let mut new_size = None;
    let opened = match args.hAllocation {
        0 => None,
        local => {
            let found = call.process.handles.allocation(local)?;
            let opened = found.what.opened()?.clone();

            invalid_if(found.device != queue.device)?;
            if opened.memory.size() == 0 && request.offset == 0 {
                new_size = found.what.allocation.new_size(request.pages)?;
            }
            Some(opened)
        }
    };

    if let Some(opened) = &opened {
        let known = opened.memory.size() / PAGE;
        let whole = new_size.as_ref().map_or(known, NewSize::pages);
        let writes = matches!(request.protection, Protection::Pages { write: true, .. });

        gpu_va_rules::check_part(request.offset, request.pages, whole)?;
        if writes && !opened.write {
            return Err(Status::ACCESS_DENIED.into());
        }
    }

    let taken = Taken::map(&space, &request, opened.as_deref().map(Opened::opening))?;
    let value = queue.what.done()?;

    args.VirtualAddress = taken.address;
    args.PagingFenceValue = value;
    Ok(((taken, new_size), status_of(value)))
}

/// D3DKMTFreeGpuVirtualAddress (0x20): takes addresses back at once (MEM-49).
pub(super) fn free(call: Call<'_>, args: &D3DKMT_FREEGPUVIRTUALADDRESS) -> DxgResult {
    let adapter = call.process.handles.adapter(args.hAdapter)?;
    let space = call.process.gpu_processes.space_on(&adapter)?;
    let (first, end) = gpu_va_rules::check_free(space.clients, args.BaseAddress, args.Size)?;

    space.free(first, end)
}

/// One operation of an update, as the caller describes it.
fn update_of(
    operation: &D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION,
) -> DxgResult<(UpdateBytes, u32)> {
    Ok(match operation.OperationType {
        D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP => {
            let map = operation.map();

            (
                UpdateBytes::Map {
                    base: map.BaseAddress,
                    size: map.SizeInBytes,
                    offset: map.AllocationOffsetInBytes,
                    part: map.AllocationSizeInBytes,
                    protection: gpu_va_rules::protection::WRITE,
                    driver_protection: 0,
                },
                map.hAllocation,
            )
        }
        D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP_PROTECT => {
            let map = operation.map_protect();

            (
                UpdateBytes::Map {
                    base: map.BaseAddress,
                    size: map.SizeInBytes,
                    offset: map.AllocationOffsetInBytes,
                    part: map.AllocationSizeInBytes,
                    protection: map.Protection,
                    driver_protection: map.DriverProtection,
                },
                map.hAllocation,
            )
        }
        D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP => {
            let unmap = operation.unmap();

            (
                UpdateBytes::Unmap {
                    base: unmap.BaseAddress,
                    size: unmap.SizeInBytes,
                    protection: unmap.Protection,
                },
                0,
            )
        }
        D3DDDI_UPDATEGPUVIRTUALADDRESS_COPY => {
            let copy = operation.copy();

            (
                UpdateBytes::Copy {
                    source: copy.SourceAddress,
                    size: copy.SizeInBytes,
                    destination: copy.DestAddress,
                },
                0,
            )
        }
        _ => return Err(Status::INVALID_PARAMETER.into()),
    })
}

/// The allocation of a map, if its pages are there and may be used so.
fn mapped(call: Call<'_>, device: u32, local: u32, update: &Update) -> DxgResult<Arc<Opened>> {
    let found = call.process.handles.allocation(local)?;
    let opened = found.what.opened()?.clone();

    invalid_if(found.device != Some(device))?;
    if let Update::Map {
        offset,
        part,
        write,
        ..
    } = *update
    {
        gpu_va_rules::check_part(offset, part, opened.memory.size() / PAGE)?;
        // Without a protection of its own a map has the rights of its handle.
        if write && !opened.write {
            return Err(Status::ACCESS_DENIED.into());
        }
    }
    Ok(opened)
}

/// The operations of an update, all of them good (MEM-45).
fn read_updates(
    call: Call<'_>,
    space: &AddressSpace,
    args: &D3DKMT_UPDATEGPUVIRTUALADDRESS,
) -> DxgResult<Steps> {
    invalid_if(
        args.Operations == 0
            || args.NumOperations == 0
            || args.NumOperations > gpu_va_rules::MAX_UPDATES,
    )?;

    // CAST: bounded above.
    let count = args.NumOperations as usize;
    let mut operations = KVVec::from_elem(
        user::zeroed::<D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION>(),
        count,
        GFP_KERNEL_ACCOUNT,
    )?;
    let mut list = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;
    let mut common = None;
    let mut copied = None;

    user::read_slice(args.Operations, &mut operations)?;
    for operation in &operations {
        let (bytes, allocation) = update_of(operation)?;
        let update = Update::new(space.clients, bytes)?;
        let (first, end) = update.destination();
        let own = space.zero_reservation(first, end)?;

        invalid_if(*common.get_or_insert(own) != own)?;
        if let Some((first, end)) = update.source() {
            let own = space.zero_reservation(first, end)?;

            invalid_if(*copied.get_or_insert(own) != own)?;
        }

        let opened = match update {
            Update::Map { .. } => Some(mapped(call, args.hDevice, allocation, &update)?),
            _ => None,
        };

        let kept = opened.as_ref().and_then(Opened::keep);
        let step = Step {
            update,
            opened,
            _kept: kept,
        };

        list.push(step, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(Steps {
        list,
        destination: common.ok_or(Status::INVALID_PARAMETER)?,
        source: copied,
    })
}

/// D3DKMTUpdateGpuVirtualAddress (0x39): changes reserved addresses when a fence has reached a
/// value, and then signals the next one (MEM-45, MEM-46).
pub(super) fn update(call: Call<'_>, args: &D3DKMT_UPDATEGPUVIRTUALADDRESS) -> DxgResult {
    let handles = &call.process.handles;
    let device = handles.running_device(args.hDevice)?;
    let flags = args.Flags;

    device.check()?;
    invalid_if(args.Reserved0 != 0 || args.Reserved1 != 0 || flags & !DO_NOT_WAIT != 0)?;

    let context = handles.context(args.hContext)?;

    invalid_if(context.device().id() != device.id())?;

    let lookup = handles.lookup();
    let found = lookup.sync_object(args.hFenceObject)?;
    let is_for = lookup.is_for(&found, args.hDevice);
    let found = found.cloned();

    drop(lookup);
    invalid_if(!is_for? || found.of_queue)?;

    let Object::Fence(fence) = found.object else {
        return Err(Status::INVALID_PARAMETER.into());
    };

    if !found.rights.wait || !found.rights.signal {
        return Err(Status::ACCESS_DENIED.into());
    }

    let steps = read_updates(call, device.space()?, args)?;
    let do_not_wait = flags & DO_NOT_WAIT != 0;

    context.updates.submit(
        &call.process.waits,
        &device,
        steps,
        fence,
        args.FenceValue,
        do_not_wait,
    )
}

/// The flag of an update that does not wait for its fence.
const DO_NOT_WAIT: u32 = 1 << 0;
