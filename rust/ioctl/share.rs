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
    dxgk::share::{
        name_table::Reservation,
        Members,
        NtHandle,
        ShareRef, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access::Wanted,
        handle,
        name_mode::{
            self,
            Rule, //
        }, //
    },
    sys::{
        file::object_file::PendingFd,
        user, //
    },
    uapi::*, //
};
use kernel::prelude::*;

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
    invalid_if(
        !(1..=D3DKMT_MAX_OBJECTS_PER_HANDLE).contains(&args.ObjectCount)
            || args.ObjectHandleArray == 0
            || args.pSharedNtHandle == 0,
    )?;

    let attributes = object_attributes::for_share(args.pObjectAttributes)?;
    // CAST: at most 3.
    let count = args.ObjectCount as usize;
    let mut locals = [0u32; D3DKMT_MAX_OBJECTS_PER_HANDLE as usize];
    let locals = locals.get_mut(..count).unwrap_or_default();
    let mut objects = KVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.ObjectHandleArray, locals)?;
    for local in locals {
        objects.push(call.process.handles.shareable(*local)?, GFP_KERNEL_ACCOUNT)?;
    }

    let (members, may) = Members::of(objects)?;
    let ty = members.first.object().access_type();
    let wanted = Wanted::new(ty, args.DesiredAccess).ok_or(Status::INVALID_PARAMETER)?;
    let access = wanted.within(may).ok_or(Status::ACCESS_DENIED)?;
    let names = &call.driver.tables.names;
    let name = attributes.name.clone().map(|name| (name, names.clone()));
    let share = ShareRef::first(members, name)?;
    let reservation = match &attributes.name {
        None => None,
        Some(name) => Some(names.reserve(
            &call.process.account,
            name,
            Rule { ty, mode, may },
            &share,
            attributes.open_if.then_some(wanted),
        )?),
    };
    let (share, access, name, exists) = match reservation {
        None => (share, access, None, false),
        Some(Reservation::Reserved(name)) => (share, access, Some(name), false),
        Some(Reservation::Exists((share, access))) => (share, access, None, true),
    };
    let handle = NtHandle::new(share, access)?;
    let fd = PendingFd::new(handle, handle::LAST_FD, !attributes.inherit)?;

    user::write(args.pSharedNtHandle, &u64::from(fd.fd()))?;
    if exists {
        // A success with a status of its own.
        fd.commit();
        return Err(Status::OBJECT_NAME_EXISTS.into());
    }
    Ok((fd, name))
}

/// D3DKMTShareObjectWithHost (0x44): there is no host to share with (RES-34).
pub(super) fn share_with_host(_call: Call<'_>, _args: &D3DKMT_SHAREOBJECTWITHHOST) -> DxgResult {
    Err(Status::NOT_SUPPORTED.into())
}
