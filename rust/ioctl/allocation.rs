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
        destruction::Destruction,
        handle::{
            open_resource::{
                OpenResource,
                Origin, //
            },
            HandleTarget, //
        },
        memory::creation::{
            CreateRequest,
            Destination,
            NewAllocation, //
        },
        share::global_table::ReservedGlobal, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::allocation_rules::{
        self,
        bits,
        Creation,
        Existing,
        Source,
        Standard,
        MAX_PRIVATE_DATA, //
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

/// Where the bytes of an entry of the array are.
fn source(flags: u32, info: &D3DDDI_ALLOCATIONINFO2) -> DxgResult<Source> {
    // CAST: a usize fits 64 bits.
    Ok(Source::new(flags, info.existing(), PAGE_SIZE as u64)?)
}

/// The standard allocation that a call describes, if it does.
fn read_standard(
    args: &D3DKMT_CREATEALLOCATION,
    infos: &[D3DDDI_ALLOCATIONINFO2],
) -> DxgResult<Option<Standard>> {
    if args.Flags & bits::STANDARD_ALLOCATION == 0 {
        return Ok(None);
    }
    invalid_if(args.description() == 0)?;

    let given = user::read::<D3DKMT_CREATESTANDARDALLOCATION>(args.description())?;

    Ok(Some(Standard {
        driver_data_size: args.PrivateDriverDataSize,
        count: args.NumAllocations,
        kind: given.Type,
        size: given.ExistingHeapData.Size,
        flags: given.Flags,
        existing: infos.first().map_or(0, D3DDDI_ALLOCATIONINFO2::existing),
    }))
}

/// The array of a call.
fn read_infos(
    args: &D3DKMT_CREATEALLOCATION,
    creation: &Creation,
) -> DxgResult<KVVec<D3DDDI_ALLOCATIONINFO2>> {
    if !creation.has_readable_infos() {
        return Ok(KVVec::new());
    }

    // CAST: bounded by the rule.
    let count = args.NumAllocations as usize;
    let mut infos = KVVec::from_elem(user::zeroed(), count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.infos(), &mut infos)?;
    Ok(infos)
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
    // The one call for which a number that is no resource is a bad handle.
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

/// The allocation that an entry of the array describes.
fn read_allocation(creation: &Creation, info: &D3DDDI_ALLOCATIONINFO2) -> DxgResult<NewAllocation> {
    invalid_if(
        info.Flags & D3DDDI_ALLOCATIONINFO2_Flags_Reserved != 0
            || info.Reserved != [0; 5]
            || info.PrivateDriverDataSize > MAX_PRIVATE_DATA,
    )?;

    let driver_data = match &creation.standard {
        // Driver data of the caller is ignored (RES-26).
        Some(_) => KVVec::new(),
        // CAST: bounded above.
        None => user::read_bytes(info.pPrivateDriverData, info.PrivateDriverDataSize as usize)?,
    };

    Ok(NewAllocation {
        driver_data,
        source: source(creation.flags, info)?,
        priority: info.priority(),
    })
}

/// Copies the arguments of a creation and checks them, in the order of RES-19.
fn read_creation(call: Call<'_>, args: &D3DKMT_CREATEALLOCATION) -> DxgResult<CreateRequest> {
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

    creation.standard = read_standard(args, &infos)?;
    creation.check_standard()?;
    if creation.standard.is_some() {
        // The address is checked before the resource.
        source(args.Flags, infos.first().ok_or(Status::INVALID_PARAMETER)?)?;
    }

    let existing = existing(call, args, &creation)?;

    creation.check_sizes()?;

    // CAST: both are bounded by the rules.
    let driver_data = match &creation.standard {
        Some(_) => KVVec::new(),
        None => user::read_bytes(args.description(), args.PrivateDriverDataSize as usize)?,
    };
    let runtime_data = match creation.creates_resource() {
        true => user::read_bytes(
            args.pPrivateRuntimeData,
            args.PrivateRuntimeDataSize as usize,
        )?,
        false => KVVec::new(),
    };
    let mut allocations = KVVec::with_capacity(infos.len(), GFP_KERNEL_ACCOUNT)?;

    for info in &infos {
        allocations.push(read_allocation(&creation, info)?, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(CreateRequest {
        creation,
        allocations,
        destination: match existing {
            Some(open_resource) => Destination::Existing(open_resource),
            None if creation.creates_resource() => Destination::New {
                driver_data,
                runtime_data,
            },
            None => Destination::Standalone { driver_data },
        },
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
    // Whether every entry has new memory, which is zero.
    let zeroed = request
        .allocations
        .iter()
        .all(|new| new.source == Source::New);
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

/// Most handles of one DestroyAllocation.
const MAX_DESTROYED: u32 = 65536;

/// D3DKMTDestroyAllocation2 (0x13): a resource with its allocations, or a list of allocations,
/// all or none of them.
pub(super) fn destroy(call: Call<'_>, args: &D3DKMT_DESTROYALLOCATION2) -> DxgResult {
    let known = D3DDDICB_DESTROYALLOCATION2FLAGS_AssumeNotInUse
        | D3DDDICB_DESTROYALLOCATION2FLAGS_SynchronousDestroy;
    let table = &call.process.handles;

    invalid_if(args.Flags & !known != 0)?;
    table.device(args.hDevice)?;
    if args.hResource != 0 {
        return destroy_resource(call, args);
    }
    if args.AllocationCount == 0 {
        return Ok(());
    }
    invalid_if(args.phAllocationList == 0 || args.AllocationCount > MAX_DESTROYED)?;

    // CAST: bounded above.
    let count = args.AllocationCount as usize;
    let mut list = KVVec::from_elem(0u32, count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.phAllocationList, &mut list)?;
    sort::sort(&mut list);
    invalid_if(
        list.windows(2)
            .any(|pair| matches!(pair, [one, next] if one == next)),
    )?;
    destroy_list(call, args.hDevice, &list)
}

/// Destroys these handles of allocations, all or none. They are different and in increasing order.
fn destroy_list(call: Call<'_>, device: u32, sorted: &[u32]) -> DxgResult {
    // Nothing may fail any more once the handles are taken.
    let destruction = Destruction::new(sorted.len())?;
    // The resource that all allocations must belong to, except standalone ones (RES-28).
    let mut common = None;
    let claimed = call.process.handles.claim(sorted, |own, item| {
        let HandleTarget::Allocation(opened) = item else {
            return false;
        };
        let resource = opened.open_resource.resource();
        let same = resource.description.alone
            || *common.get_or_insert(resource.header.id()) == resource.header.id();

        same && own.is_none_or(|own| own == device)
    })?;

    destruction.run(&claimed, sorted);
    Ok(())
}

/// Destroys the handle of a resource and those of its allocations.
fn destroy_resource(call: Call<'_>, args: &D3DKMT_DESTROYALLOCATION2) -> DxgResult {
    let table = &call.process.handles;
    let found = table.resource(args.hResource)?;

    found.check_device(args.hDevice)?;

    // The call that takes the list destroys the resource.
    let handles = found.what.take_handles().ok_or(Status::INVALID_PARAMETER)?;

    for local in handles.iter().rev() {
        // Some may have been destroyed one by one.
        let _gone = table.destroy(*local, |item| {
            matches!(item, HandleTarget::Allocation(opened) if Arc::ptr_eq(&opened.open_resource, &found.what))
        });
    }
    table.destroy(
        args.hResource,
        |item| matches!(item, HandleTarget::Resource(open_resource) if Arc::ptr_eq(open_resource, &found.what)),
    )
}
