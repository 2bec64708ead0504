// SPDX-License-Identifier: GPL-2.0

//! Querying and opening shared resources (shared-resources.md section 7).

use super::{
    commit::Commit,
    entries,
    invalid_if,
    keyed_mutex::{
        self,
        Data, //
    },
    nt_handle,
    Answer,
    Call, //
};
use crate::{
    dxgk::{
        handle::{
            open_resource::{
                OpenResource,
                Origin, //
            },
            open_sync_object::OpenSyncObject,
            reserved_handles::ReservedHandles,
            HandleTarget,
            Parent, //
        },
        info::attachments::{
            PreparedChange,
            Value, //
        },
        keyed_mutex::creation::FirstData,
        memory::{
            allocation::Allocation,
            resource::Resource, //
        },
        object::{
            Object,
            Strong, //
        },
        share::{
            global_table::may_group_open,
            NtHandle, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        global_access::OpenPolicy,
        handle, //
    },
    sys::{
        task::group::ThreadGroup,
        user, //
    },
    uapi::*, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A resource that was found for a device, with a reference of its own.
struct Found {
    strong: Strong,
    resource: Arc<Resource>,
}

impl Found {
    /// The resource of `strong`, if a device of `parent` may use it.
    fn new(strong: Strong, parent: &Parent) -> DxgResult<Self> {
        let Object::Resource(resource) = strong.object() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let resource = resource.clone();

        invalid_if(!resource.header.is_for(&parent.device.adapter))?;
        resource.header.check_adapter()?;
        Ok(Self { strong, resource })
    }

    /// By global handle.
    fn by_global(call: Call<'_>, parent: &Parent, global: u32) -> DxgResult<Self> {
        Self::new(call.open_global(global)?, parent)
    }
}

/// The NT handle of a resource in a slot of the caller's struct.
fn resource_handle(slot: u64) -> DxgResult<Arc<NtHandle>> {
    let handle = nt_handle(slot)?;

    match handle.object() {
        Object::Resource(_) => Ok(handle),
        _ => Err(Status::OBJECT_TYPE_MISMATCH.into()),
    }
}

/// Writes the sizes that an opener needs. Both structs name the members alike.
macro_rules! write_sizes {
    ($args:ident, $resource:expr) => {{
        let resource: &Resource = $resource;
        let (allocations, total_driver_data) = resource.extent();

        // CAST: blobs and driver data have at most 64 KiB.
        $args.PrivateRuntimeDataSize = resource.header.attachments.blob_size() as u32;
        $args.TotalPrivateDriverDataSize = total_driver_data;
        $args.ResourcePrivateDriverDataSize = resource.description.driver_data.len() as u32;
        $args.NumAllocations = allocations;
    }};
}

/// D3DKMTQueryResourceInfo (0x2b): the sizes that an opener needs. The runtime data itself is
/// never written (RES-47).
pub(super) fn query(call: Call<'_>, args: &mut D3DKMT_QUERYRESOURCEINFO) -> DxgResult {
    let parent = call.process.handles.parent(args.hDevice)?;
    let found = Found::by_global(call, &parent, args.hGlobalShare)?;

    write_sizes!(args, &found.resource);
    Ok(())
}

/// D3DKMTQueryResourceInfoFromNtHandle (0x41): the same by NT handle.
pub(super) fn query_nt(
    call: Call<'_>,
    args: &mut D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE,
) -> DxgResult {
    let parent = call.process.handles.parent(args.hDevice)?;
    let handle = resource_handle(args.hNtHandle)?;
    let found = Found::new(handle.strong()?, &parent)?;

    write_sizes!(args, &found.resource);
    Ok(())
}

/// Buffer of the caller.
struct Buffer {
    address: u64,
    size: u32,
}

impl Buffer {
    /// Copies out, unless the caller does not want it.
    fn write(&self, bytes: &[u8]) -> DxgResult {
        if self.address != 0 && self.size != 0 && !bytes.is_empty() {
            user::write_slice(self.address, bytes)?;
        }
        Ok(())
    }
}

/// The arguments that both open calls have.
struct OpenRequest {
    count: u32,
    infos: u64,
    runtime_data: Buffer,
    resource_driver_data: Buffer,
    total_driver_data: Buffer,
}

/// What is copied out, taken at one moment.
struct Contents {
    resource: Arc<Resource>,
    allocations: KVVec<Arc<Allocation>>,
    runtime_data: Option<Arc<Value>>,
    total_driver_data: u32,
}

impl Contents {
    fn runtime_data(&self) -> &[u8] {
        self.runtime_data
            .as_ref()
            .map_or(&[], |value| value.bytes())
    }
}

/// Both structs name the members alike, except the array.
macro_rules! open_request {
    ($args:ident, $infos:expr) => {
        OpenRequest {
            count: $args.NumAllocations,
            infos: $infos,
            runtime_data: Buffer {
                address: $args.pPrivateRuntimeData,
                size: $args.PrivateRuntimeDataSize,
            },
            resource_driver_data: Buffer {
                address: $args.pResourcePrivateDriverData,
                size: $args.ResourcePrivateDriverDataSize,
            },
            total_driver_data: Buffer {
                address: $args.pTotalPrivateDriverDataBuffer,
                size: $args.TotalPrivateDriverDataBufferSize,
            },
        }
    };
}

impl OpenRequest {
    /// Checks the sizes (RES-48). `exact`: the NT variant, which cannot leave data out.
    fn check(&self, resource: &Arc<Resource>, exact: bool) -> DxgResult<Contents> {
        let allocations = resource.allocations()?;
        let runtime_data = resource.header.attachments.blob();
        let total = allocations
            .iter()
            .map(|allocation| allocation.description.driver_data.len())
            .fold(0, usize::saturating_add);
        let contents = Contents {
            resource: resource.clone(),
            // CAST: 4096 times 64 KiB fit.
            total_driver_data: total as u32,
            allocations,
            runtime_data,
        };
        let size = self.runtime_data.size;

        // CAST: 32 bits fit a usize.
        invalid_if(
            self.count as usize != contents.allocations.len()
                || self.infos == 0 && self.count != 0
                || size as usize != contents.runtime_data().len() && (exact || size != 0)
                || exact && self.runtime_data.address == 0
                || self.resource_driver_data.size as usize
                    != resource.description.driver_data.len()
                || exact && self.total_driver_data.address == 0,
        )?;
        if self.total_driver_data.size < contents.total_driver_data {
            return Err(Status::NO_MEMORY.into());
        }
        Ok(contents)
    }

    /// Copies everything out but the argument struct itself. `numbers` are the handles of the
    /// allocations.
    fn write(&self, contents: &Contents, numbers: impl Iterator<Item = u32>) -> DxgResult {
        let mut place = self.total_driver_data.address;

        for ((info, number), allocation) in entries::<D3DDDI_OPENALLOCATIONINFO2>(self.infos)
            .zip(numbers)
            .zip(&contents.allocations)
        {
            let data = &allocation.description.driver_data;
            let mut entry = user::zeroed::<D3DDDI_OPENALLOCATIONINFO2>();

            entry.hAllocation = number;
            // CAST: at most 64 KiB.
            entry.PrivateDriverDataSize = data.len() as u32;
            if place != 0 {
                entry.pPrivateDriverData = place;
                user::write_slice(place, data)?;
                // CAST: as above.
                place = place.wrapping_add(data.len() as u64);
            }
            user::write(info, &entry)?;
        }
        self.runtime_data.write(contents.runtime_data())?;
        self.resource_driver_data
            .write(&contents.resource.description.driver_data)
    }
}

/// Opens a resource: reserves the handle of the resource and those of its allocations. The first
/// number is that of the resource.
fn open<'a>(
    call: Call<'a>,
    parent: &Parent,
    found: Found,
    access: u32,
    origin: Origin,
    request: &OpenRequest,
) -> DxgResult<(ReservedHandles<'a>, Contents)> {
    let exact = origin != Origin::OpenedByGlobal;
    let contents = request.check(&found.resource, exact)?;
    let open_resource =
        OpenResource::new(found.strong, access, origin, true, &call.process.mappings)?;
    // Room for the keyed mutex and the synchronisation object too.
    let mut handles = ReservedHandles::new(&call.process.handles, contents.allocations.len() + 3)?;

    handles.reserve_resource(open_resource, &contents.allocations, Some(parent))?;
    Ok((handles, contents))
}

/// D3DKMTOpenResource2 (0x28): opens a resource by its global handle, with handles for its
/// allocations.
pub(super) fn open_global<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENRESOURCE,
) -> DxgResult<impl Commit + 'a> {
    let parent = call.process.handles.parent(args.hDevice)?;
    let found = Found::by_global(call, &parent, args.hGlobalShare)?;
    let request = open_request!(args, args.infos());
    let all = access::resource::ALL;
    let (handles, contents) = open(call, &parent, found, all, Origin::OpenedByGlobal, &request)?;

    request.write(&contents, handles.numbers().skip(1))?;
    args.TotalPrivateDriverDataBufferSize = contents.total_driver_data;
    args.hResource = handles.first();
    Ok(handles)
}

/// D3DKMTOpenResourceFromNtHandle (0x42): opens a resource, and the keyed mutex and the
/// synchronisation object that were shared with it.
pub(super) fn open_nt<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENRESOURCEFROMNTHANDLE,
    answer: Answer<D3DKMT_OPENRESOURCEFROMNTHANDLE>,
) -> DxgResult<impl Commit + 'a> {
    let parent = call.process.handles.parent(args.hDevice)?;
    let handle = resource_handle(args.hNtHandle)?;
    let found = Found::new(handle.strong()?, &parent)?;
    let request = open_request!(args, args.pOpenAllocationInfo2);
    let (mut handles, contents) = open(
        call,
        &parent,
        found,
        handle.access(),
        Origin::Opened,
        &request,
    )?;

    let mut filled = D3DKMT_OPENRESOURCEFROMNTHANDLE {
        TotalPrivateDriverDataBufferSize: contents.total_driver_data,
        hResource: handles.first(),
        ..*args
    };
    let first = match &handle.share().members().guards {
        Some((mutex, sync)) => {
            let data = Data::new(
                args.pKeyedMutexPrivateRuntimeData,
                args.KeyedMutexPrivateRuntimeDataSize,
            )?;
            let guards = (mutex, sync);
            let access = handle.access();
            let opened = open_guards(&mut handles, call, &parent, guards, access, data)?;

            (filled.hKeyedMutex, filled.hSyncObject) = (opened.mutex, opened.sync);
            opened.first
        }
        None => {
            (filled.hKeyedMutex, filled.hSyncObject) = (0, 0);
            filled.KeyedMutexPrivateRuntimeDataSize = 0;
            None
        }
    };

    loop {
        let change = keyed_mutex::prepare(&first)?;

        request.write(&contents, handles.numbers().skip(1))?;
        answer.write(&filled)?;
        if change.map_or(Ok(true), PreparedChange::commit)? {
            return Ok(handles);
        }
    }
}

/// The handles of the keyed mutex and the synchronisation object that were shared with a resource,
/// and the data that the mutex gets.
struct Guards {
    mutex: u32,
    sync: u32,
    first: Option<FirstData>,
}

/// Opens the keyed mutex and the synchronisation object that were shared with a resource. A mutex
/// without data gets `data` (RES-51).
fn open_guards(
    handles: &mut ReservedHandles<'_>,
    call: Call<'_>,
    parent: &Parent,
    guards: (&Strong, &Strong),
    access: u32,
    data: Data,
) -> DxgResult<Guards> {
    let may_write = access & access::resource::WRITE != 0;
    let (mutex, sync) = guards;
    let first = match mutex.object() {
        Object::KeyedMutex(mutex) => data.read_first(call, mutex)?,
        _ => None,
    };

    if first.is_some() && !may_write {
        return Err(Status::ACCESS_DENIED.into());
    }

    let open = |strong: &Strong, access| -> DxgResult<OpenSyncObject> {
        let strong = strong.another().ok_or(Status::INVALID_HANDLE)?;
        let rights = access::rights(access);

        Ok(OpenSyncObject::new(strong, rights, access, &call.process.mappings)?.0)
    };
    let mutex_opening = open(mutex, access)?;
    let sync_opening = open(sync, access::set::sync_access(access))?;

    Ok(Guards {
        mutex: handles.reserve(HandleTarget::KeyedMutex(mutex_opening), Some(parent))?,
        sync: handles.reserve(HandleTarget::Sync(sync_opening), Some(parent))?,
        first,
    })
}

/// D3DKMTGetSharedResourceAdapterLuid (0x23): the adapter that a resource was made on.
pub(super) fn adapter_luid(
    call: Call<'_>,
    args: &mut D3DKMT_GETSHAREDRESOURCEADAPTERLUID,
) -> DxgResult {
    invalid_if((args.hGlobalShare == 0) == (args.hNtHandle == 0))?;

    let strong = match args.hGlobalShare {
        0 => resource_handle(args.hNtHandle)?.strong()?,
        global => call.open_global(global)?,
    };
    let Object::Resource(resource) = strong.object() else {
        return Err(Status::INVALID_PARAMETER.into());
    };
    let adapter = resource
        .header
        .adapter
        .as_ref()
        .ok_or(Status::INVALID_PARAMETER)?;

    args.AdapterLuid.LowPart = adapter.luid.low;
    args.AdapterLuid.HighPart = adapter.luid.high;
    Ok(())
}

/// D3DKMTGetRuntimeData (0xca): the runtime data of a resource by its global handle.
pub(super) fn runtime_data(call: Call<'_>, args: &D3DKMT_GETRUNTIMEDATA) -> DxgResult {
    call.process.handles.adapter(args.hAdapter)?;

    let strong = call.open_global(args.hGlobalShare)?;

    invalid_if(!matches!(strong.object(), Object::Resource(_)))?;

    let blob = strong.object().header().attachments.blob();
    let bytes = blob.as_ref().map_or(&[][..], |value| value.bytes());

    // CAST: 32 bits fit a usize.
    invalid_if(args.RuntimeDataSize as usize != bytes.len())?;
    if !bytes.is_empty() {
        user::write_slice(args.pRuntimeData, bytes)?;
    }
    Ok(())
}

/// D3DKMTCheckSharedResourceAccess (0xc8): whether a process may open a resource by its global
/// handle (RES-103).
pub(super) fn check_access(call: Call<'_>, args: &D3DKMT_CHECKSHAREDRESOURCEACCESS) -> DxgResult {
    let open_resource = call.process.handles.resource(args.hResource)?.what;
    let group = ThreadGroup::by_number(args.ClientPid).ok_or(Status::INVALID_PARAMETER)?;

    invalid_if(
        !open_resource.resource().description.shared
            || !may_group_open(open_resource.resource(), &group),
    )
}

/// D3DKMTConfigureSharedResource (0xc9): allows a process, named by a pidfd, to open a resource
/// of restricted access. Only the process that made the resource may.
pub(super) fn configure(call: Call<'_>, args: &D3DKMT_CONFIGURESHAREDRESOURCE) -> DxgResult {
    invalid_if(args.IsDwm != 0 || args.AllowAccess > 1)?;
    call.process.handles.device(args.hDevice)?;

    let found = call.process.handles.resource(args.hResource)?;
    let resource = found.what.resource();

    found.check_device(args.hDevice)?;
    invalid_if(resource.description.audience != OpenPolicy::Restricted)?;
    if resource.description.creator != ThreadGroup::of_caller() {
        return Err(Status::ACCESS_DENIED.into());
    }

    let fd = handle::nt_fd(args.hProcess).ok_or(Status::INVALID_HANDLE)?;
    let group = ThreadGroup::by_pidfd(fd).ok_or(Status::INVALID_HANDLE)?;

    resource.set_access(group, args.AllowAccess != 0)
}
