// SPDX-License-Identifier: GPL-2.0

//! ShareObjects: NT handles for objects (RES-32 to RES-37).

use super::{
    Call,
    Publish, //
};
use crate::{
    dxgk::{
        handle_table::Shareable,
        object::Object,
        share::{
            Members,
            NtHandle,
            Share, //
        }, //
    },
    logic::{
        access::Wanted,
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
use kernel::prelude::*;

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

/// The set that these objects make, if it is a legal one, and the access that may be given away.
fn set(mut objects: KVec<Shareable>) -> Outcome<(Members, u32)> {
    let refused = || Status::INVALID_PARAMETER;
    let mut access = u32::MAX;
    let adapter = objects
        .first()
        .and_then(|first| first.strong.object().header().adapter.clone());

    for object in &objects {
        let header = object.strong.object().header();
        let elsewhere = header
            .adapter
            .as_ref()
            .zip(adapter.as_ref())
            .is_some_and(|(own, first)| own.luid != first.luid);

        if header.sharing != Sharing::Nt || object.allocation.is_some() || elsewhere {
            return Err(refused().into());
        }
        access &= object.shareable.ok_or_else(refused)?;
    }

    let last = objects.pop().ok_or_else(refused)?.strong;
    let middle = objects.pop().map(|object| object.strong);
    let first = objects.pop().map(|object| object.strong);

    match (first, middle) {
        (None, None) => {
            if matches!(last.object(), Object::KeyedMutex(_)) {
                return Err(refused().into());
            }

            let first = last;

            Ok((
                Members {
                    first,
                    guards: None,
                },
                access,
            ))
        }
        (Some(first), Some(mutex))
            if matches!(first.object(), Object::Resource(_))
                && matches!(mutex.object(), Object::KeyedMutex(_))
                && last.object().is_sync() =>
        {
            let guards = Some((mutex, last));

            Ok((Members { first, guards }, access))
        }
        _ => Err(refused().into()),
    }
}

/// nr 0x3f.
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

    let inherit = attributes(args.pObjectAttributes)?;
    // CAST: at most 3.
    let count = args.ObjectCount as usize;
    let mut locals = [0u32; D3DKMT_MAX_OBJECTS_PER_HANDLE as usize];
    let locals = locals.get_mut(..count).unwrap_or_default();
    let mut objects = KVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(args.ObjectHandleArray, locals)?;
    for local in locals {
        objects.push(call.process.handles.shareable(*local)?, GFP_KERNEL_ACCOUNT)?;
    }

    let (members, may) = set(objects)?;
    let ty = members.first.object().access_type();
    let access = Wanted::new(ty, args.DesiredAccess)
        .ok_or(Status::INVALID_PARAMETER)?
        .within(may)
        .ok_or(Status::ACCESS_DENIED)?;

    let handle = NtHandle::new(Share::new(members)?, access)?;
    let fd = PendingFd::new(handle, handle::LAST_FD, !inherit)?;

    user::write(args.pSharedNtHandle, &u64::from(fd.fd()))?;
    Ok(Publish::Fd(fd))
}
