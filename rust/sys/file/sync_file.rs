// SPDX-License-Identifier: GPL-2.0

//! Sync files: descriptors of fences of the kernel.

use super::object_file::{
    is_open,
    NotOurs, //
};
use crate::{
    logic::handle,
    sys::{
        dma_fence::DmaFence,
        ffi, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    alloc::AllocError,
    fs::File,
    sync::aref::ARef, //
};

/// A new sync file of `fence`, whose reference it gets.
///
/// Context: may sleep.
pub(crate) fn new(fence: &DmaFence) -> Result<ARef<File>, AllocError> {
    // SAFETY: We own a reference to the fence; the result owns one to the file.
    let file = NonNull::new(unsafe { ffi::dxg_sync_file_new(fence.as_ptr()) }).ok_or(AllocError)?;

    // SAFETY: We own the only reference to a new file that nobody can seek.
    Ok(unsafe { ARef::from_raw(file.cast()) })
}

/// The fence behind the sync file in the slot of an argument struct. The kernel looks at the kind
/// of the file before anything in it.
///
/// Context: a system call.
pub(crate) fn fence_of_slot(slot: u64) -> Result<DmaFence, NotOurs> {
    let fd = handle::nt_fd(slot).ok_or(NotOurs::Closed)?;
    // SAFETY: Any number may be asked for; the result owns a reference.
    // CAST: below 2^30.
    let fence = NonNull::new(unsafe { ffi::dxg_sync_file_fence(fd as i32) });

    match fence {
        // SAFETY: As above.
        Some(fence) => Ok(unsafe { DmaFence::from_raw(fence) }),
        None if is_open(fd) => Err(NotOurs::Mismatch),
        None => Err(NotOurs::Closed),
    }
}
