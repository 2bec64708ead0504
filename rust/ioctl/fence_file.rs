// SPDX-License-Identifier: GPL-2.0

//! Descriptors of fences for event loops.

use super::{
    call::{
        invalid_if,
        Call, //
    },
    commit::Commit,
    wait::element_to_wait_for, //
};
use crate::{
    dxgk::{
        object::Object,
        sync::{
            event_signal::EventSignal,
            fence_stream::FenceStream, //
        }, //
    },
    error::DxgResult,
    logic::{
        handle,
        wait_rules::Refusal, //
    },
    sys::file::{
        event_watch::EventFile,
        object_file::PendingFd, //
    },
    uapi::*, //
};

/// DXG_IOCTL_FENCE_STREAM (0xb9): a descriptor that reads the values of a fence (FEN-176).
pub(super) fn create_stream(
    call: Call<'_>,
    args: &mut opendxg_fence_stream,
) -> DxgResult<impl Commit> {
    invalid_if(args.flags != 0 || args.reserved != 0)?;

    let opened = call.process.handles.sync_object(args.sync_object)?;
    let element = element_to_wait_for(opened, args.value)?;
    let stream = FenceStream::new(&call.process.waits, element.fence, element.value)?;
    let fd = PendingFd::new(stream, handle::LAST_FD, true)?;

    // CAST: below 2^30.
    args.fd = fd.fd() as i32;
    Ok(fd)
}

/// DXG_IOCTL_SIGNAL_ON_EVENT (0xba): signals a fence when the counter of an eventfd is not 0
/// (FEN-175).
pub(super) fn signal_on_event(call: Call<'_>, args: &opendxg_signal_on_event) -> DxgResult {
    invalid_if(args.flags & !OPENDXG_SIGNAL_ALLOW_REWIND != 0)?;

    let opened = call.process.handles.sync_object(args.sync_object)?;

    match &opened.object {
        Object::Fence(_) if opened.rights.signal => {}
        Object::Fence(_) => return Err(Refusal::Denied.into()),
        _ => return Err(Refusal::Mismatch.into()),
    }
    EventSignal::begin(
        &call.process.waits,
        &opened.object,
        args.value,
        args.flags & OPENDXG_SIGNAL_ALLOW_REWIND != 0,
        &EventFile::from_slot(args.event)?,
    )
}
