// SPDX-License-Identifier: GPL-2.0

//! Opening shared objects by name (RES-43).

use super::{
    call::Call,
    commit::Commit,
    object_attributes, //
};
use crate::{
    dxgk::share::NtHandle,
    error::DxgResult,
    logic::access::Type,
    sys::file::object_file::PendingFd,
    uapi::*, //
};

/// D3DKMTOpenNtHandleFromName (0xa0): an NT handle of the resource that has a name.
pub(super) fn open_resource(
    call: Call<'_>,
    args: &mut D3DKMT_OPENNTHANDLEFROMNAME,
) -> DxgResult<impl Commit> {
    args.hNtHandle = 0;

    let fd = open(call, Type::Resource, args.dwDesiredAccess, args.pObjAttrib)?;

    args.hNtHandle = fd.fd().into();
    Ok(fd)
}

/// D3DKMTOpenSyncObjectNtHandleFromName (0xa1): an NT handle of the synchronisation object
/// that has a name.
pub(super) fn open_sync_object(
    call: Call<'_>,
    args: &mut D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME,
) -> DxgResult<impl Commit> {
    args.hNtHandle = 0;

    let fd = open(
        call,
        Type::SyncObject,
        args.dwDesiredAccess,
        args.pObjAttrib,
    )?;

    args.hNtHandle = fd.fd().into();
    Ok(fd)
}

fn open(call: Call<'_>, ty: Type, desired: u32, attributes: u64) -> DxgResult<PendingFd> {
    let (name, inherit) = object_attributes::for_open(attributes)?;

    NtHandle::open_by_name(&call.driver.tables.names, &name, ty, desired, inherit)
}
