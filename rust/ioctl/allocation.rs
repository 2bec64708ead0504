// SPDX-License-Identifier: GPL-2.0

//! Creating and destroying allocations and resources (shared-resources.md sections 3 and 4).

use super::{
    commit::Commit,
    entries,
    handles::Handles,
    invalid_if,
    shortage,
    Call, //
};
use crate::{
    dxgk::{
        destruction::Destruction,
        handle::{
            open_allocation::OpenAllocation,
            open_resource::{
                OpenResource,
                Origin,
                PendingAllocations, //
            },
            HandleTarget,
            Parent, //
        },
        info::attachments::Value,
        memory::{
            allocation::{
                self,
                Allocation,
                AllocationDescription, //
            },
            backing::Storage,
            resource::{
                Resource,
                ResourceDescription, //
            }, //
        },
        object::{
            Header,
            Object,
            Strong, //
        },
        quota::{
            account::Limit,
            holder::Amounts, //
        },
        share::global_table::ReservedGlobal,
        stats::Kind, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        allocation_rules::{
            self,
            bits,
            Source,
            Standard,
            MAX_ALLOCATIONS,
            MAX_PRIVATE_DATA, //
        },
        global_access::OpenPolicy,
        handle,
        sync_flags::Sharing, //
    },
    sys::{
        sort,
        task::group::ThreadGroup,
        user, //
    },
    uapi::*, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// What a call creates, after all checks of its arguments.
struct Request<'a> {
    call: Call<'a>,
    parent: Parent,
    flags: u32,
    /// The description of a standard allocation.
    standard: Option<Standard>,
    /// Private driver data of the resource.
    driver_data: KVVec<u8>,
}

impl Request<'_> {
    fn has(&self, mask: u32) -> bool {
        self.flags & mask != 0
    }

    fn sharing(&self) -> Sharing {
        match (
            self.has(bits::CREATE_SHARED),
            self.has(bits::NT_SECURITY_SHARING),
        ) {
            (false, _) => Sharing::Private,
            (true, false) => Sharing::Global,
            (true, true) => Sharing::Nt,
        }
    }

    /// The memory of an allocation.
    fn storage(&self, info: &D3DDDI_ALLOCATIONINFO2, size: u64) -> DxgResult<Arc<Storage>> {
        let write = !self.has(bits::READ_ONLY);
        let holder = &self.call.process.holder;

        match source(self.flags, info)? {
            Source::New => Storage::system(holder, size),
            Source::Caller(address) => Storage::user(holder, address, size, write),
            Source::Section(value) => {
                let fd = handle::nt_fd(value).ok_or(Status::INVALID_HANDLE)?;

                Storage::section(holder, fd, size, write)
            }
        }
    }

    /// Whether devices of other adapters may open what is made.
    fn is_cross_adapter(&self) -> bool {
        self.has(bits::CROSS_ADAPTER)
            || self
                .standard
                .as_ref()
                .is_some_and(Standard::is_cross_adapter)
    }

    /// Makes the allocation that an entry of the array describes.
    fn allocation(&self, info: &D3DDDI_ALLOCATIONINFO2) -> DxgResult<Arc<Allocation>> {
        invalid_if(
            info.Flags & D3DDDI_ALLOCATIONINFO2_Flags_Reserved != 0
                || info.Reserved != [0; 5]
                || info.PrivateDriverDataSize > MAX_PRIVATE_DATA,
        )?;

        let adapter = &self.parent.device.adapter;
        let driver_data = match &self.standard {
            // Driver data of the caller is ignored (RES-26).
            Some(standard) => adapter.standard_allocation_data(standard.size)?,
            // CAST: bounded above.
            None => user::read_bytes(info.pPrivateDriverData, info.PrivateDriverDataSize as usize)?,
        };
        let kmd = allocation::described(adapter, &driver_data)?;
        let size = kmd.info.size;
        let description = AllocationDescription {
            size,
            read_only: self.has(bits::READ_ONLY),
            driver_data,
        };
        let claim = self.call.process.holder.charge(Amounts {
            allocations: 1,
            ..Amounts::default()
        })?;
        let storage = self.storage(info, size)?;

        Ok(Allocation::new(
            claim,
            description,
            kmd,
            info.priority(),
            storage,
        )?)
    }

    /// Makes the resource of these allocations and an open resource of it.
    fn container(
        &mut self,
        alone: bool,
        allocations: KVVec<Arc<Allocation>>,
    ) -> DxgResult<Arc<OpenResource>> {
        let header = Header::new(
            if alone {
                Kind::Allocation
            } else {
                Kind::Resource
            },
            Some(self.parent.device.adapter.clone()),
            self.sharing(),
            self.is_cross_adapter(),
            self.call.driver.tables.clone(),
            self.call.process.account.charge(Limit::Objects, 1)?,
        );
        let description = ResourceDescription {
            shared: self.has(bits::CREATE_SHARED),
            alone,
            audience: if self.has(bits::RESTRICT_SHARED_ACCESS) {
                OpenPolicy::Restricted
            } else if self.has(bits::NON_SECURE) {
                OpenPolicy::World
            } else {
                OpenPolicy::Default
            },
            back_buffer: self.has(bits::SWAP_CHAIN_BACK_BUFFER),
            creator: ThreadGroup::of_caller(),
            driver_data: core::mem::take(&mut self.driver_data),
        };
        let resource = Resource::new(header, description, allocations)?;
        let strong = Strong::first(Object::Resource(resource));

        OpenResource::new(
            strong,
            access::resource::ALL,
            Origin::Opened,
            !alone,
            &self.call.process.mappings,
        )
    }
}

/// Where the bytes of an entry of the array are.
fn source(flags: u32, info: &D3DDDI_ALLOCATIONINFO2) -> DxgResult<Source> {
    // CAST: a usize fits 64 bits.
    Ok(Source::new(flags, info.existing(), PAGE_SIZE as u64)?)
}

/// The standard allocation that a call describes, if it does.
fn standard(
    args: &D3DKMT_CREATEALLOCATION,
    infos: &[D3DDDI_ALLOCATIONINFO2],
) -> DxgResult<Option<Standard>> {
    if args.Flags & bits::STANDARD_ALLOCATION == 0 {
        invalid_if(args.Flags & (bits::EXISTING_SYS_MEM | bits::EXISTING_SECTION) != 0)?;
        return Ok(None);
    }
    invalid_if(args.description() == 0)?;

    let given = user::read::<D3DKMT_CREATESTANDARDALLOCATION>(args.description())?;
    let first = infos.first();
    let standard = Standard {
        driver_data_size: args.PrivateDriverDataSize,
        count: args.NumAllocations,
        kind: given.Type,
        size: given.ExistingHeapData.Size,
        flags: given.Flags,
        existing: first.map_or(0, D3DDDI_ALLOCATIONINFO2::existing),
    };

    standard.check(args.Flags)?;
    // The address is checked before the resource (RES-19).
    source(args.Flags, first.ok_or(Status::INVALID_PARAMETER)?)?;
    Ok(Some(standard))
}

/// The array of a call, copied.
fn read_infos(args: &D3DKMT_CREATEALLOCATION) -> DxgResult<KVVec<D3DDDI_ALLOCATIONINFO2>> {
    if args.NumAllocations > MAX_ALLOCATIONS || args.infos() == 0 {
        // Refused later, in the order of checks.
        return Ok(KVVec::new());
    }

    // CAST: bounded above.
    let count = args.NumAllocations as usize;
    let mut infos = KVVec::from_elem(user::zeroed(), count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.infos(), &mut infos)?;
    Ok(infos)
}

/// The open resource that allocations are added to (RES-24), after the checks that come before it.
fn existing(
    call: Call<'_>,
    args: &D3DKMT_CREATEALLOCATION,
) -> DxgResult<Option<Arc<OpenResource>>> {
    if args.hResource == 0 {
        return Ok(None);
    }

    let found = call
        .process
        .handles
        .resource(args.hResource)
        .map_err(|_| Status::INVALID_HANDLE)?;
    let open_resource = found.what;

    invalid_if(
        args.Flags & (bits::CREATE_RESOURCE | bits::STANDARD_ALLOCATION) != 0
            || found.device != Some(args.hDevice)
            || open_resource.origin != Origin::Opened
            || open_resource.resource().description.shared,
    )?;
    Ok(Some(open_resource))
}

/// D3DKMTCreateAllocation2 (0x06): allocations, alone or in a resource, which may be a new one.
pub(super) fn create<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_CREATEALLOCATION,
) -> DxgResult<impl Commit + 'a> {
    let parent = call.process.handles.parent(args.hDevice)?;
    let creates_resource = args.Flags & bits::CREATE_RESOURCE != 0;

    allocation_rules::check_flags(args.Flags)?;

    let infos = read_infos(args)?;
    let standard = standard(args, &infos)?;
    let existing = existing(call, args)?;

    invalid_if(
        args.Flags & bits::CREATE_SHARED != 0 && !creates_resource
            // CAST: 32 bits fit a usize.
            || infos.len() != args.NumAllocations as usize
            || infos.is_empty() && !creates_resource
            || args.PrivateRuntimeDataSize > MAX_PRIVATE_DATA
            || args.PrivateDriverDataSize > MAX_PRIVATE_DATA,
    )?;

    // CAST: both were bounded above.
    let driver_data = match &standard {
        Some(_) => KVVec::new(),
        None => user::read_bytes(args.description(), args.PrivateDriverDataSize as usize)?,
    };
    let runtime_data = match creates_resource {
        true => user::read_bytes(
            args.pPrivateRuntimeData,
            args.PrivateRuntimeDataSize as usize,
        )?,
        false => KVVec::new(),
    };
    let mut request = Request {
        call,
        parent,
        flags: args.Flags,
        standard,
        driver_data,
    };
    let mut allocations = KVVec::with_capacity(infos.len(), GFP_KERNEL_ACCOUNT)?;
    let mut handles = Handles::new(call, infos.len() + 1)?;

    for info in &infos {
        allocations.push(request.allocation(info)?, GFP_KERNEL_ACCOUNT)?;
    }
    match existing {
        Some(open_resource) => {
            let numbers = reserve(
                &mut handles,
                Some(&request.parent),
                &open_resource,
                &allocations,
            )?;

            handles.added = Some(PendingAllocations::to_known(
                open_resource,
                numbers,
                allocations,
            )?);
        }
        None if creates_resource => {
            let mut all = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;

            all.extend_from_slice(&allocations, GFP_KERNEL_ACCOUNT)?;

            let open_resource = request.container(false, all)?;

            if !runtime_data.is_empty() {
                let value = shortage(Value::new(&call.driver.tables, runtime_data))?;

                shortage(open_resource.resource().header.attachments.set_blob(value))?;
            }
            if request.sharing() == Sharing::Global {
                handles.global = Some(open_resource.name_globally(&call.driver.tables.globals)?);
            }
            args.hResource = handles.reserve(
                HandleTarget::Resource(open_resource.clone()),
                Some(&request.parent),
            )?;

            let numbers = reserve(
                &mut handles,
                Some(&request.parent),
                &open_resource,
                &allocations,
            )?;

            handles.added = Some(PendingAllocations::to_new(open_resource, numbers)?);
        }
        None => {
            for allocation in &allocations {
                let mut alone = KVVec::new();

                alone.push(allocation.clone(), GFP_KERNEL_ACCOUNT)?;

                let open_resource = request.container(true, alone)?;
                let one = core::slice::from_ref(allocation);

                reserve(&mut handles, Some(&request.parent), &open_resource, one)?;
            }
        }
    }

    let first = usize::from(creates_resource);

    // Each entry begins with its handle.
    for (entry, number) in
        entries::<D3DDDI_ALLOCATIONINFO2>(args.infos()).zip(handles.numbers().skip(first))
    {
        user::write(entry, &number)?;
    }
    args.hGlobalShare = handles.global.as_ref().map_or(0, ReservedGlobal::handle);

    // Whether all memory is new, and so zero.
    let zeroed = infos
        .iter()
        .all(|info| matches!(source(args.Flags, info), Ok(Source::New)));

    args.Flags = allocation_rules::answered_flags(args.Flags, zeroed);
    Ok(handles)
}

/// Reserves the handles of these allocations of an open resource, and returns their numbers. An
/// open resource that has the handle of the resource still has to get them.
pub(super) fn reserve(
    handles: &mut Handles<'_>,
    parent: Option<&Parent>,
    open_resource: &Arc<OpenResource>,
    allocations: &[Arc<Allocation>],
) -> DxgResult<KVVec<u32>> {
    let mut numbers = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;
    let device = parent.map(|parent| &*parent.device);

    for allocation in allocations {
        let opened = OpenAllocation::new(open_resource, allocation, device)?;
        let number = handles.reserve(HandleTarget::Allocation(opened), parent)?;

        numbers.push(number, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(numbers)
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
