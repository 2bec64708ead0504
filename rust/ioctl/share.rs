// SPDX-License-Identifier: GPL-2.0

//! ShareObjects: NT handles for objects (RES-32 to RES-37).

use super::{
    Call,
    Publish, //
};
use crate::{
    dxgk::share::Share,
    logic::{
        access,
        handle,
        sync_flags::Sharing, //
    },
    sys::{
        object_file::PendingFd,
        user, //
    },
    uapi::{
        status::{
            Outcome,
            Status, //
        },
        *, //
    }, //
};

/// `OBJ_INHERIT`: the descriptor stays open across exec.
const OBJ_INHERIT: u32 = 0x2;
/// Attribute bits that exist (RES-38).
const OBJ_KNOWN: u32 = 0x1ff2;

/// What OBJECT_ATTRIBUTES asks for: whether the handle is inherited.
fn attributes(addr: u64) -> Outcome<bool> {
    if addr == 0 {
        return Ok(false);
    }

    let attributes = user::read::<OBJECT_ATTRIBUTES>(addr)?;

    // CAST: 48 bytes.
    if attributes.Length != size_of::<OBJECT_ATTRIBUTES>() as u32
        || attributes.Attributes & !OBJ_KNOWN != 0
    {
        return Err(Status::INVALID_PARAMETER.into());
    }
    if attributes.ObjectName != 0 || attributes.RootDirectory != 0 {
        // There is no name space yet.
        return Err(Status::NOT_SUPPORTED.into());
    }
    Ok(attributes.Attributes & OBJ_INHERIT != 0)
}

/// nr 0x3f. The one legal set so far is a single synchronisation object that was made for sharing
/// by NT handle.
pub(super) fn share_objects<'a>(
    call: Call<'a>,
    args: &D3DKMT_SHAREOBJECTS,
) -> Outcome<Publish<'a>> {
    if !(1..=D3DKMT_MAX_OBJECTS_PER_HANDLE).contains(&args.ObjectCount)
        || args.ObjectHandleArray == 0
        || args.pSharedNtHandle == 0
    {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let access = access::grant(args.DesiredAccess).ok_or(Status::INVALID_PARAMETER)?;

    if args.ObjectCount != 1 {
        return Err(Status::INVALID_PARAMETER.into());
    }

    let inherit = attributes(args.pObjectAttributes)?;
    let local = user::read::<u32>(args.ObjectHandleArray)?;
    let (strong, may) = call.process.handles.strong(local)?;

    if strong.object().header().sharing != Sharing::Nt {
        return Err(Status::INVALID_PARAMETER.into());
    }

    if !access::is_part_of(access, may) {
        return Err(Status::ACCESS_DENIED.into());
    }

    let share = Share::new(strong, access)?;
    let fd = PendingFd::new(share, handle::LAST_FD, !inherit)?;

    user::write(args.pSharedNtHandle, &u64::from(fd.fd()))?;
    Ok(Publish::Fd(fd))
}
