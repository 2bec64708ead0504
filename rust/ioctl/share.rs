// SPDX-License-Identifier: GPL-2.0

//! ShareObjects: NT handles for objects (RES-32 to RES-37).

use super::{
    invalid_if,
    object_attributes,
    Call, //
};
use crate::{
    dxgk::{
        handle::Shareable,
        object::Object,
        share::{
            Hold,
            Members,
            NtHandle, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access::{
            self,
            Wanted, //
        },
        handle,
        name_mode::{
            self,
            Rule, //
        },
        sync_flags::Sharing, //
    },
    sys::{
        file::object_file::PendingFd,
        user, //
    },
    uapi::*, //
};
use kernel::prelude::*;

/// The set that these objects make, if it is a legal one, and the access that may be given away.
fn set(mut objects: KVec<Shareable>) -> DxgResult<(Members, u32)> {
    let refused = || Status::INVALID_PARAMETER;
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

        let shareable = header.sharing == Sharing::Nt && object.shareable.is_some();

        if !shareable || object.allocation.is_some() || elsewhere {
            return Err(refused().into());
        }
    }

    let mut next = || {
        objects
            .pop()
            .map(|last| (last.strong, last.shareable.unwrap_or(0)))
    };
    let (last, access) = next().ok_or_else(refused)?;

    match (next(), next()) {
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
        (Some((mutex, of_mutex)), Some((first, of_first)))
            if matches!(first.object(), Object::Resource(_))
                && matches!(mutex.object(), Object::KeyedMutex(_))
                && last.object().is_sync() =>
        {
            let bound = access::set::bound(access).ok_or(Status::ACCESS_DENIED)?;
            let guards = Some((mutex, last));

            Ok((Members { first, guards }, of_first & of_mutex & bound))
        }
        _ => Err(refused().into()),
    }
}

/// D3DKMTShareObjects (0x3f): an NT handle. A name is for its owner alone.
pub(super) fn share_objects(call: Call<'_>, args: &D3DKMT_SHAREOBJECTS) -> DxgResult {
    share(call, args, name_mode::PRIVATE)
}

/// DXG_IOCTL_SHARE_OBJECTS (0xaf): the same with a mode, which lets others open the name.
pub(super) fn share_objects_with_mode(call: Call<'_>, args: &opendxg_share_objects) -> DxgResult {
    invalid_if(args.reserved != 0 || !name_mode::is_valid(args.mode))?;
    share(call, &args.share, args.mode)
}

fn share(call: Call<'_>, args: &D3DKMT_SHAREOBJECTS, mode: u32) -> DxgResult {
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

    let (members, may) = set(objects)?;
    let ty = members.first.object().access_type();
    let wanted = Wanted::new(ty, args.DesiredAccess).ok_or(Status::INVALID_PARAMETER)?;
    let access = wanted.within(may).ok_or(Status::ACCESS_DENIED)?;
    let hold = Hold::first(members, attributes.name.clone())?;
    let share = hold.share().clone();
    let existing = match &attributes.name {
        None => None,
        Some(name) => call.driver.tables.names.reserve(
            &call.process.account,
            name,
            Rule { ty, mode, may },
            &share,
            attributes.open_if.then_some(wanted),
        )?,
    };
    let exists = existing.is_some();
    let (hold, access) = existing.unwrap_or((hold, access));
    let handle = NtHandle::new(hold, access)?;
    let fd = PendingFd::new(handle, handle::LAST_FD, !attributes.inherit)?;

    user::write(args.pSharedNtHandle, &u64::from(fd.fd()))?;
    fd.commit();
    if exists {
        return Err(Status::OBJECT_NAME_EXISTS.into());
    }
    if let Some(name) = share.name() {
        call.driver.tables.names.commit(name, &share);
    }
    Ok(())
}

/// D3DKMTShareObjectWithHost (0x44): there is no host to share with (RES-34).
pub(super) fn share_with_host(_call: Call<'_>, _args: &D3DKMT_SHAREOBJECTWITHHOST) -> DxgResult {
    Err(Status::NOT_SUPPORTED.into())
}
