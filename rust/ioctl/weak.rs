// SPDX-License-Identifier: GPL-2.0

//! Weak references and watches (shared-resources.md section 10).

use super::{
    call::{
        by_descriptor,
        invalid_if,
        Call, //
    },
    commit::Commit,
    target::Receiver, //
};
use crate::{
    dxgk::{
        info::watch::{
            self,
            Watch, //
        },
        object::{
            Object,
            Strong, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    file::weak::WeakFile,
    logic::handle,
    sys::{
        file::{
            eventfd::EventFd,
            object_file::PendingFd, //
        },
        user, //
    },
    uapi::*, //
};

/// DXG_IOCTL_OPEN_WEAK (0xa8): a weak reference to an object.
pub(super) fn open(from: impl Receiver, args: &mut opendxg_open_weak) -> DxgResult<impl Commit> {
    invalid_if(args.flags != 0 || args.reserved != 0)?;

    let target = from.target(args.handle, args.handle_type)?;
    let weak = WeakFile::new(target.object(), target.access())?;
    let fd = PendingFd::new(weak, handle::LAST_FD, true)?;

    // CAST: below 2^30.
    args.fd = fd.fd() as i32;
    Ok(fd)
}

/// A descriptor as the slot of a D3DKMT struct would hold it.
fn slot(fd: i32) -> DxgResult<u64> {
    u64::try_from(fd).map_err(|_| Status::INVALID_HANDLE.into())
}

/// DXG_IOCTL_RESOLVE_WEAK (0xa9): a local handle of the object, if it is alive.
pub(super) fn resolve<'a>(
    call: Call<'a>,
    args: &mut opendxg_resolve_weak,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.flags != 0)?;

    let parent = match args.device {
        0 => None,
        device => Some(call.process.handles.parent(device)?),
    };
    let weak = by_descriptor::<WeakFile>(slot(args.fd)?)?;
    let strong = Strong::of_weak(weak.weak_target()).ok_or(Status::NOT_FOUND)?;
    let handles = call
        .process
        .open_object(strong, weak.access(), parent.as_ref())?;

    args.handle = handles.first();
    Ok(handles)
}

/// DXG_IOCTL_WATCH (0xaa): a descriptor that becomes readable when the object changes or ends.
pub(super) fn watch(from: impl Receiver, args: &mut opendxg_watch) -> DxgResult<impl Commit> {
    let known = watch::DESTROY | watch::CHANGE;

    invalid_if(
        args.flags != 0 || args.reserved != 0 || args.events == 0 || args.events & !known != 0,
    )?;

    let target = from.target(args.handle, args.handle_type)?;
    let event = EventFd::from_slot(slot(args.event_fd)?)?;
    let weak_target = target.object().weak_target()?;
    let accounts = target.header().accounts();
    let watch = Watch::new(accounts, weak_target, event, args.events, args.cookie)?;
    let fd = PendingFd::new(watch, handle::LAST_FD, true)?;

    // CAST: below 2^30.
    args.fd = fd.fd() as i32;
    Ok(fd)
}

/// DXG_IOCTL_WATCH_STATE (0xab) on a watch: returns and clears the events. If they cannot be copied
/// out, they stay.
pub(super) fn watch_state(watch: &Watch<Object>, arg: u64) -> DxgResult {
    let mut args = user::read::<opendxg_watch_state>(arg)?;

    invalid_if(args.reserved != 0)?;

    let seen = watch.take_seen();

    args.cookie = watch.cookie();
    args.object_id = watch.weak_target().object_id();
    args.generation = seen.generation;
    args.events = seen.events;
    user::write(arg, &args).inspect_err(|_| watch.put_back(seen.events))?;
    Ok(())
}
