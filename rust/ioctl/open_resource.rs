// SPDX-License-Identifier: GPL-2.0

//! Opening shared resources (RES-48 to RES-51).

use super::{
    call::{
        entries,
        invalid_if,
        Answer,
        Call, //
    },
    commit::Commit,
    keyed_mutex::read_first_data,
    object::number,
    resource::resource_handle, //
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
        memory::opening::Contents,
        object::Object,
        share::NtHandle, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        check_address,
        keyed_mutex_rules::PrivateData,
        open_rules::{
            Refusal,
            ResourceOpen,
            ResourceSizes, //
        }, //
    },
    sys::user,
    uapi::*, //
};

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
    /// How much room it gives.
    fn sizes(&self) -> ResourceSizes {
        ResourceSizes {
            count: self.count,
            runtime_data: self.runtime_data.size,
            driver_data: self.resource_driver_data.size,
            total_driver_data: self.total_driver_data.size,
        }
    }

    /// Compares with what the resource has (RES-48).
    fn check(&self, by_nt: bool, own: &ResourceSizes) -> DxgResult {
        let open = ResourceOpen {
            by_nt,
            has_infos: self.infos != 0,
            has_runtime_data: self.runtime_data.address != 0,
            has_total_driver_data: self.total_driver_data.address != 0,
            sizes: self.sizes(),
        };

        open.check(own).map_err(|refusal| {
            match refusal {
                Refusal::Invalid => Status::INVALID_PARAMETER,
                Refusal::TooSmall => Status::NO_MEMORY,
            }
            .into()
        })
    }

    /// Refuses room without an address.
    fn check_addresses(&self) -> DxgResult {
        check_address(self.infos, self.count)?;
        for buffer in [
            &self.runtime_data,
            &self.resource_driver_data,
            &self.total_driver_data,
        ] {
            check_address(buffer.address, buffer.size)?;
        }
        Ok(())
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
pub(super) fn by_global<'a>(
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
        |own| request.check(false, own),
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

    /// Opens the keyed mutex and the synchronisation object that were shared with a resource
    /// (RES-51). `data` are the address and the size of what the mutex is to get.
    fn open(
        call: Call<'_>,
        (address, data_size): (u64, u32),
        parent: &Parent,
        handle: &NtHandle,
        handles: &mut ReservedHandles<'_>,
    ) -> DxgResult<Self> {
        let Some((mutex, sync)) = &handle.share().members().others else {
            return Ok(Self::NONE);
        };
        let data = PrivateData::new(address, data_size)?;
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

        Ok(Self {
            mutex,
            sync,
            data_size,
            first,
        })
    }
}

/// Copies out what was opened, and gives the keyed mutex its data.
fn answer_open(
    request: &OpenResourceRequest,
    (contents, handles): (&Contents, &ReservedHandles<'_>),
    first: &FirstData,
    answer: impl Fn() -> DxgResult,
) -> DxgResult {
    until_applied(|| {
        let change = first.prepare()?;

        request.write(contents, handles.numbers().skip(1))?;
        answer()?;
        change.commit()
    })
}

/// D3DKMTOpenResourceFromNtHandle (0x42): opens a resource, and the keyed mutex and the
/// synchronisation object that were shared with it.
pub(super) fn by_nt<'a>(
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
        |own| request.check(true, own),
    )?;

    let data = (
        args.pKeyedMutexPrivateRuntimeData,
        args.KeyedMutexPrivateRuntimeDataSize,
    );
    let guards = Guards::open(call, data, &parent, &handle, &mut handles)?;
    let opened = D3DKMT_OPENRESOURCEFROMNTHANDLE {
        TotalPrivateDriverDataBufferSize: contents.sizes().total_driver_data,
        hResource: handles.first(),
        hKeyedMutex: guards.mutex,
        KeyedMutexPrivateRuntimeDataSize: guards.data_size,
        hSyncObject: guards.sync,
        ..*args
    };

    answer_open(&request, (&contents, &handles), &guards.first, || {
        answer.write(&opened)
    })?;
    Ok(handles)
}

/// The arguments with the sizes that the resource has.
fn with_sizes(args: &opendxg_open_resource, own: &ResourceSizes) -> opendxg_open_resource {
    opendxg_open_resource {
        allocation_count: own.count,
        runtime_data_size: own.runtime_data,
        driver_data_size: own.driver_data,
        total_driver_data_size: own.total_driver_data,
        ..*args
    }
}

/// DXG_IOCTL_OPEN_RESOURCE (0xce): QueryResourceInfo and OpenResource in one call. With too little
/// room only the sizes are written.
pub(super) fn at_once<'a>(
    call: Call<'a>,
    args: &mut opendxg_open_resource,
    answer: Answer<opendxg_open_resource>,
) -> DxgResult<impl Commit + 'a> {
    let request = OpenResourceRequest {
        count: args.allocation_count,
        infos: args.allocations,
        runtime_data: Buffer {
            address: args.runtime_data,
            size: args.runtime_data_size,
        },
        resource_driver_data: Buffer {
            address: args.driver_data,
            size: args.driver_data_size,
        },
        total_driver_data: Buffer {
            address: args.total_driver_data,
            size: args.total_driver_data_size,
        },
    };

    invalid_if(args.flags != 0 || args.reserved != 0)?;
    request.check_addresses()?;

    let parent = call.process.handles.parent(args.device)?;
    let handle = match args.handle_type {
        OPENDXG_HANDLE_GLOBAL => None,
        OPENDXG_HANDLE_NT => Some(resource_handle(args.handle)?),
        _ => return Err(Status::INVALID_PARAMETER.into()),
    };
    let (strong, access, origin) = match &handle {
        Some(handle) => (handle.strong()?, handle.access(), Origin::Opened),
        None => (
            call.open_global(number(args.handle)?)?,
            access::resource::ALL,
            Origin::OpenedByGlobal,
        ),
    };
    let found = parent.found_resource(strong)?;
    let (mut handles, contents) =
        parent.open_resource(call.process, found, access, origin, |own| {
            if !request.sizes().has_room_for(own) {
                *args = with_sizes(args, own);
                return Err(Status::BUFFER_TOO_SMALL.into());
            }
            Ok(())
        })?;

    let guards = match &handle {
        Some(handle) => {
            let data = (args.keyed_mutex_data, args.keyed_mutex_data_size);

            Guards::open(call, data, &parent, handle, &mut handles)?
        }
        None => Guards::NONE,
    };
    let opened = opendxg_open_resource {
        resource: handles.first(),
        keyed_mutex: guards.mutex,
        sync_object: guards.sync,
        ..with_sizes(args, &contents.sizes())
    };

    answer_open(&request, (&contents, &handles), &guards.first, || {
        answer.write(&opened)
    })?;
    Ok(handles)
}
