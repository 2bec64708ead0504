// SPDX-License-Identifier: GPL-2.0

//! Creating and destroying allocations and resources (shared-resources.md sections 3 and 4).

use super::{
    call::{
        entries,
        invalid_if,
        Call, //
    },
    commit::Commit, //
};
use crate::{
    dxgk::{
        handle::open_resource::{
            OpenResource,
            Origin, //
        },
        memory::creation::{
            CreateAllocationsRequest,
            Destination,
            NewAllocation, //
        },
        share::global_table::ReservedGlobal,
        small_vec::InlineVec, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        allocation_lists,
        allocation_rules::{
            self,
            Creation,
            Existing,
            Source,
            Standard, //
        }, //
    },
    sys::{
        sort,
        user, //
    },
    uapi::*, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// The standard allocation that a call describes, if it does.
fn read_standard(
    args: &D3DKMT_CREATEALLOCATION,
    creation: &Creation,
    infos: &[D3DDDI_ALLOCATIONINFO2],
) -> DxgResult<Option<Standard>> {
    if !creation.describes_standard(args.description())? {
        return Ok(None);
    }

    let given = user::read::<D3DKMT_CREATESTANDARDALLOCATION>(args.description())?;

    Ok(Some(Standard {
        driver_data_size: args.PrivateDriverDataSize,
        count: args.NumAllocations,
        kind: given.Type,
        size: given.ExistingHeapData.Size,
        flags: given.Flags,
        existing: infos.first().map(D3DDDI_ALLOCATIONINFO2::existing),
    }))
}

/// The array of a call.
fn read_infos(
    args: &D3DKMT_CREATEALLOCATION,
    creation: &Creation,
) -> DxgResult<InlineVec<D3DDDI_ALLOCATIONINFO2>> {
    if !creation.has_readable_infos() {
        return Ok(InlineVec::new());
    }
    // CAST: bounded by the rule.
    Ok(InlineVec::read(args.infos(), args.NumAllocations as usize)?)
}

/// The open resource of the resource that allocations are added to (RES-24).
fn existing(
    call: Call<'_>,
    args: &D3DKMT_CREATEALLOCATION,
    creation: &Creation,
) -> DxgResult<Option<Arc<OpenResource>>> {
    if args.hResource == 0 {
        return Ok(None);
    }

    let found = call.process.handles.resource(args.hResource);
    // The only call for which a number that is not a resource is a bad handle.
    let found = found.map_err(|stop| match stop.is(Status::INVALID_PARAMETER) {
        true => Status::INVALID_HANDLE.into(),
        false => stop,
    })?;

    creation.check_existing(Existing {
        same_device: found.device == Some(args.hDevice),
        is_whole: found.what.origin == Origin::Opened,
        shared: found.what.resource().description.shared,
    })?;
    Ok(Some(found.what))
}

/// Private data, whose size was checked, if there is any.
fn read_data(address: u64, size: u32) -> DxgResult<Option<KVVec<u8>>> {
    Ok(match size {
        0 => None,
        // CAST: bounded by the rules.
        size => Some(user::read_bytes(address, size as usize)?),
    })
}

/// Private driver data; that of the caller is ignored for a standard allocation (RES-26).
fn read_driver_data(creation: &Creation, address: u64, size: u32) -> DxgResult<Option<KVVec<u8>>> {
    match &creation.standard {
        Some(_) => Ok(None),
        None => read_data(address, size),
    }
}

/// What the allocations belong to: `existing`, a new resource, or none.
fn read_destination(
    args: &D3DKMT_CREATEALLOCATION,
    creation: &Creation,
    existing: Option<Arc<OpenResource>>,
) -> DxgResult<Destination> {
    let driver_data = read_driver_data(creation, args.description(), args.PrivateDriverDataSize)?;

    if let Some(open_resource) = existing {
        return Ok(Destination::Existing(open_resource));
    }
    if !creation.creates_resource() {
        return Ok(Destination::Standalone { driver_data });
    }
    Ok(Destination::New {
        driver_data,
        runtime_data: read_data(args.pPrivateRuntimeData, args.PrivateRuntimeDataSize)?,
    })
}

/// The allocations that the entries of the array describe.
fn read_allocations(
    creation: &Creation,
    infos: &[D3DDDI_ALLOCATIONINFO2],
) -> DxgResult<InlineVec<NewAllocation>> {
    let mut allocations = InlineVec::with_capacity(infos.len())?;

    for info in infos {
        let size = info.PrivateDriverDataSize;

        Creation::check_entry(info.Flags, info.Reserved == [0; 5], size)?;
        allocations.push(NewAllocation {
            driver_data: read_driver_data(creation, info.pPrivateDriverData, size)?,
            // CAST: a usize fits 64 bits.
            source: Source::new(creation.flags, info.existing(), PAGE_SIZE as u64)?,
            priority: info.priority(),
            primary: Creation::is_primary(info.Flags),
        });
    }
    Ok(allocations)
}

/// Copies the arguments of a creation and checks them, in the order of RES-19.
fn read_creation(
    call: Call<'_>,
    args: &D3DKMT_CREATEALLOCATION,
) -> DxgResult<CreateAllocationsRequest> {
    let mut creation = Creation {
        flags: args.Flags,
        count: args.NumAllocations,
        has_infos: args.infos() != 0,
        driver_data_size: args.PrivateDriverDataSize,
        runtime_data_size: args.PrivateRuntimeDataSize,
        standard: None,
    };

    creation.check_flags()?;

    let infos = read_infos(args, &creation)?;

    creation.standard = read_standard(args, &creation, &infos)?;

    let describes_callers =
        |info: &D3DDDI_ALLOCATIONINFO2| info.existing() != 0 && info.PrivateDriverDataSize != 0;
    let has_data = !infos.is_empty() && infos.iter().all(describes_callers);

    // CAST: a usize fits 64 bits.
    creation.check_standard(PAGE_SIZE as u64, has_data)?;

    let existing = existing(call, args, &creation)?;

    creation.check_sizes()?;
    Ok(CreateAllocationsRequest {
        destination: read_destination(args, &creation, existing)?,
        allocations: read_allocations(&creation, &infos)?,
        creation,
    })
}

/// D3DKMTCreateAllocation2 (0x06): allocations, alone or in a resource, which may be a new one.
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEALLOCATION,
) -> DxgResult<impl Commit + 'a> {
    let parent = call.process.handles.parent(args.hDevice)?;
    let request = read_creation(call, args)?;
    let creates_resource = request.creation.creates_resource();
    let zeroed = request.is_zeroed();
    let handles = parent.create_allocations(call.process, &call.driver.tables, request)?;

    if creates_resource {
        args.hResource = handles.first();
    }

    let numbers = handles.numbers().skip(usize::from(creates_resource));

    // Each entry begins with its handle.
    for (entry, number) in entries::<D3DDDI_ALLOCATIONINFO2>(args.infos()).zip(numbers) {
        user::write(entry, &number)?;
    }
    args.hGlobalShare = handles.global.as_ref().map_or(0, ReservedGlobal::handle);
    args.Flags = allocation_rules::answered_flags(args.Flags, zeroed);
    Ok(handles)
}

/// D3DKMTDestroyAllocation2 (0x13): a resource with its allocations, or a list of allocations,
/// all or none of them.
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYALLOCATION2) -> DxgResult {
    let table = &call.process.handles;

    allocation_lists::check_destroy_flags(args.Flags)?;
    table.device(args.hDevice)?;
    if args.hResource != 0 {
        return table.destroy_resource(args.hDevice, args.hResource, args.Flags);
    }

    let count = allocation_lists::check_destroy_list(args.phAllocationList, args.AllocationCount)?;

    if count == 0 {
        return Ok(());
    }

    let mut list = InlineVec::<u32>::read(args.phAllocationList, count)?;

    sort::sort(list.as_mut_slice());
    invalid_if(!allocation_lists::are_different(&list))?;
    table.destroy_allocations(args.hDevice, &list, args.Flags)
}
