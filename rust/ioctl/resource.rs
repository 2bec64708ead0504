// SPDX-License-Identifier: GPL-2.0

//! Querying and opening shared resources (shared-resources.md section 7).

use super::{
    call::{
        entries,
        invalid_if,
        nt_handle,
        Answer,
        Call, //
    },
    commit::Commit,
    keyed_mutex::read_first_data, //
};
use crate::{
    dxgk::{
        handle::{
            open_resource::Origin,
            reserved_handles::ReservedHandles,
            Parent, //
        },
        info::attachments::until_applied,
        keyed_mutex::creation::FirstData,
        memory::opening::{
            Contents,
            FoundResource, //
        },
        object::Object,
        share::{
            global_access::may_group_open,
            NtHandle, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        handle,
        keyed_mutex_rules::PrivateData,
        open_rules::{
            ResourceOpen,
            ResourceSizes, //
        }, //
    },
    sys::{
        task::group::ThreadGroup,
        user, //
    },
    uapi::*, //
};
use kernel::sync::Arc;

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
    ($args:ident, $found:expr) => {{
        let sizes = FoundResource::sizes(&$found);

        $args.PrivateRuntimeDataSize = sizes.runtime_data;
        $args.TotalPrivateDriverDataSize = sizes.total_driver_data;
        $args.ResourcePrivateDriverDataSize = sizes.driver_data;
        $args.NumAllocations = sizes.count;
    }};
}

/// D3DKMTQueryResourceInfo (0x2b): the sizes that an opener needs. The runtime data itself is
/// never written (RES-47).
pub(super) fn query(call: Call<'_>, args: &mut D3DKMT_QUERYRESOURCEINFO) -> DxgResult {
    let parent = call.process.handles.parent(args.hDevice)?;
    let found = parent.found_resource(call.open_global(args.hGlobalShare)?)?;

    write_sizes!(args, found);
    Ok(())
}

/// D3DKMTQueryResourceInfoFromNtHandle (0x41): the sizes that an opener by NT handle needs.
pub(super) fn query_nt(
    call: Call<'_>,
    args: &mut D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE,
) -> DxgResult {
    let parent = call.process.handles.parent(args.hDevice)?;
    let handle = resource_handle(args.hNtHandle)?;
    let found = parent.found_resource(handle.strong()?)?;

    write_sizes!(args, found);
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
struct OpenResourceRequest {
    count: u32,
    infos: u64,
    runtime_data: Buffer,
    resource_driver_data: Buffer,
    total_driver_data: Buffer,
}

/// Both structs name the members alike, except the array.
macro_rules! open_request {
    ($args:ident, $infos:expr) => {
        OpenResourceRequest {
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

impl OpenResourceRequest {
    /// The request as the rules see it.
    fn rules(&self, by_nt: bool) -> ResourceOpen {
        ResourceOpen {
            by_nt,
            has_infos: self.infos != 0,
            has_runtime_data: self.runtime_data.address != 0,
            has_total_driver_data: self.total_driver_data.address != 0,
            sizes: ResourceSizes {
                count: self.count,
                runtime_data: self.runtime_data.size,
                driver_data: self.resource_driver_data.size,
                total_driver_data: self.total_driver_data.size,
            },
        }
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
        self.resource_driver_data.write(contents.driver_data())
    }
}

/// D3DKMTOpenResource2 (0x28): opens a resource by its global handle, with handles for its
/// allocations.
pub(super) fn open_global<'a>(
    call: Call<'a>,
    args: &mut D3DKMT_OPENRESOURCE,
) -> DxgResult<impl Commit + 'a> {
    let parent = call.process.handles.parent(args.hDevice)?;
    let found = parent.found_resource(call.open_global(args.hGlobalShare)?)?;
    let request = open_request!(args, args.infos());
    let (handles, contents) = parent.open_resource(
        call.process,
        found,
        access::resource::ALL,
        Origin::OpenedByGlobal,
        &request.rules(false),
    )?;

    request.write(&contents, handles.numbers().skip(1))?;
    args.TotalPrivateDriverDataBufferSize = contents.sizes().total_driver_data;
    args.hResource = handles.first();
    Ok(handles)
}

/// The handles of what was shared with a resource, and the data that the keyed mutex gets.
struct Guards {
    mutex: u32,
    sync: u32,
    data_size: u32,
    first: FirstData,
}

impl Guards {
    /// Of a resource that was shared alone.
    const NONE: Self = Self {
        mutex: 0,
        sync: 0,
        data_size: 0,
        first: FirstData::NONE,
    };
}

/// Opens the keyed mutex and the synchronisation object that were shared with a resource (RES-51).
fn open_guards(
    call: Call<'_>,
    args: &D3DKMT_OPENRESOURCEFROMNTHANDLE,
    parent: &Parent,
    handle: &NtHandle,
    handles: &mut ReservedHandles<'_>,
) -> DxgResult<Guards> {
    let Some((mutex, sync)) = &handle.share().members().others else {
        return Ok(Guards::NONE);
    };
    let data_size = args.KeyedMutexPrivateRuntimeDataSize;
    let data = PrivateData::new(args.pKeyedMutexPrivateRuntimeData, data_size)?;
    let first = match mutex.object() {
        Object::KeyedMutex(mutex) => read_first_data(call, data, mutex)?,
        _ => FirstData::NONE,
    };
    let (mutex, sync) = parent.open_guards(
        call.process,
        handles,
        (mutex, sync),
        handle.access(),
        first.is_some(),
    )?;

    Ok(Guards {
        mutex,
        sync,
        data_size,
        first,
    })
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
    let found = parent.found_resource(handle.strong()?)?;
    let request = open_request!(args, args.pOpenAllocationInfo2);
    let (mut handles, contents) = parent.open_resource(
        call.process,
        found,
        handle.access(),
        Origin::Opened,
        &request.rules(true),
    )?;

    let guards = open_guards(call, args, &parent, &handle, &mut handles)?;
    let opened = D3DKMT_OPENRESOURCEFROMNTHANDLE {
        TotalPrivateDriverDataBufferSize: contents.sizes().total_driver_data,
        hResource: handles.first(),
        hKeyedMutex: guards.mutex,
        KeyedMutexPrivateRuntimeDataSize: guards.data_size,
        hSyncObject: guards.sync,
        ..*args
    };

    until_applied(|| {
        let change = guards.first.prepare()?;

        request.write(&contents, handles.numbers().skip(1))?;
        answer.write(&opened)?;
        change.commit()
    })?;
    Ok(handles)
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

    let blob = strong.object().header().attachments().blob();
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

    found.check_device(args.hDevice)?;
    found.what.check_may_admit()?;

    let fd = handle::nt_fd(args.hProcess).ok_or(Status::INVALID_HANDLE)?;
    let group = ThreadGroup::by_pidfd(fd).ok_or(Status::INVALID_HANDLE)?;

    found
        .what
        .resource()
        .set_access(group, args.AllowAccess != 0)
}
