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
    let mut locals = [0; MAX_OBJECTS];
    let request = read_request(args, mode, &mut locals)?;
    let names = &call.driver.tables.names;
    let shared = call.process.share_objects(names, request)?;

    user::write(args.pSharedNtHandle, &u64::from(shared.fd.fd()))?;
    if shared.exists {
        // A success with a status of its own.
        shared.fd.commit();
        return Err(Status::OBJECT_NAME_EXISTS.into());
    }
    Ok((shared.fd, shared.name))
}

/// Reads what to share; `locals` is room for the handles of the objects.
fn read_request<'a>(
    args: &D3DKMT_SHAREOBJECTS,
    mode: u32,
    locals: &'a mut [u32; MAX_OBJECTS],
) -> DxgResult<ShareRequest<'a>> {
    let (count, handles) = (args.ObjectCount, args.ObjectHandleArray);

    share_rules::check_arguments(count, handles, args.pSharedNtHandle)?;

    let attributes = object_attributes::for_share(args.pObjectAttributes)?;
    let open_if = attributes.open_if;
    let new_name = |name| NewName {
        name,
        mode,
        open_if,
    };
    // CAST: at most 3.
    let locals = locals.get_mut(..count as usize).unwrap_or_default();

    user::read_slice(handles, locals)?;
    Ok(ShareRequest {
        locals,
        desired: args.DesiredAccess,
        name: attributes.name.map(new_name),
        inherit: attributes.inherit,
    })
}

/// D3DKMTShareObjectWithHost (0x44): there is no host to share with (RES-34).
pub(super) fn share_with_host(_call: Call<'_>, _args: &D3DKMT_SHAREOBJECTWITHHOST) -> DxgResult {
    Err(Status::NOT_SUPPORTED.into())
}
