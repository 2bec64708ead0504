// SPDX-License-Identifier: GPL-2.0

//! Querying shared resources, and who may open them (shared-resources.md section 7).

use super::call::{
    invalid_if,
    nt_handle,
    Call, //
};
use crate::{
    dxgk::{
        memory::opening::FoundResource,
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
    logic::handle,
    sys::{
        task::group::ThreadGroup,
        user, //
    },
    uapi::*, //
};
use kernel::sync::Arc;

/// The NT handle of a resource in a slot of the caller's struct.
pub(super) fn resource_handle(slot: u64) -> DxgResult<Arc<NtHandle>> {
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
