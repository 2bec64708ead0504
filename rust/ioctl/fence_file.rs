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
    dxgk::sync::fence_stream::FenceStream,
    error::DxgResult,
    logic::handle,
    sys::file::object_file::PendingFd,
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
