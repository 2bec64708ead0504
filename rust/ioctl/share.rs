// SPDX-License-Identifier: GPL-2.0

//! ShareObjects: NT handles for objects (RES-32 to RES-37).

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit,
    object_attributes, //
};
use crate::{
    dxgk::share::creation::{
        NewName,
        ShareRequest, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        name_mode,
        share_rules::{
            self,
            MAX_OBJECTS, //
        }, //
    },
    sys::user,
    uapi::*, //
};

/// D3DKMTShareObjects (0x3f): an NT handle. A name is for its owner alone.
pub(super) fn share_objects<'a>(
    call: Call<'a>,
    args: &D3DKMT_SHAREOBJECTS,
) -> DxgResult<impl Commit + 'a> {
    share(call, args, name_mode::PRIVATE)
}

/// DXG_IOCTL_SHARE_OBJECTS (0xaf): an NT handle whose name has a mode, so that others may
/// open it (RES-45).
pub(super) fn share_objects_with_mode<'a>(
    call: Call<'a>,
    args: &opendxg_share_objects,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.reserved != 0 || !name_mode::is_valid(args.mode))?;
    share(call, &args.share, args.mode)
}

fn share<'a>(call: Call<'a>, args: &D3DKMT_SHAREOBJECTS, mode: u32) -> DxgResult<impl Commit + 'a> {
    share_rules::check_arguments(
        args.ObjectCount,
        args.ObjectHandleArray,
        args.pSharedNtHandle,
    )?;

    let attributes = object_attributes::for_share(args.pObjectAttributes)?;
    let mut locals = [0; MAX_OBJECTS];
    let request = ShareRequest {
        locals: read_locals(args, &mut locals)?,
        desired: args.DesiredAccess,
        name: attributes.name.map(|name| NewName {
            name,
            mode,
            open_if: attributes.open_if,
        }),
        inherit: attributes.inherit,
    };
    let shared = call
        .process
        .share_objects(&call.driver.tables.names, request)?;

    user::write(args.pSharedNtHandle, &u64::from(shared.fd.fd()))?;
    if shared.exists {
        // A success with a status of its own.
        shared.fd.commit();
        return Err(Status::OBJECT_NAME_EXISTS.into());
    }
    Ok((shared.fd, shared.name))
}

/// The local handles of the objects, whose number was checked.
fn read_locals<'a>(
    args: &D3DKMT_SHAREOBJECTS,
    locals: &'a mut [u32; MAX_OBJECTS],
) -> DxgResult<&'a [u32]> {
    // CAST: at most 3.
    let locals = locals
        .get_mut(..args.ObjectCount as usize)
        .ok_or(Status::INVALID_PARAMETER)?;

    user::read_slice(args.ObjectHandleArray, locals)?;
    Ok(locals)
}

/// D3DKMTShareObjectWithHost (0x44): there is no host to share with (RES-34).
pub(super) fn share_with_host(_call: Call<'_>, _args: &D3DKMT_SHAREOBJECTWITHHOST) -> DxgResult {
    Err(Status::NOT_SUPPORTED.into())
}
