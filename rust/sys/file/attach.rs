// SPDX-License-Identifier: GPL-2.0

//! Files that users attach to an object (RES-63).
//!
//! Only files are accepted that cannot hold one of our objects in turn: dma-bufs of other drivers,
//! memory files and sync files. So no object can keep itself alive through an attached file.

use crate::sys::ffi;
use core::ptr::NonNull;
use kernel::{
    error::{
        code,
        from_err_ptr, //
    },
    fs::File,
    sync::aref::ARef, //
};

/// Why a descriptor cannot be attached.
pub(crate) enum NotAttachable {
    /// Not open.
    Closed,
    /// Another kind of file.
    Kind,
    /// Out of memory.
    NoMemory,
}

/// A reference to the file behind a descriptor of the caller.
///
/// Context: an ioctl.
pub(crate) fn get(fd: i32) -> core::result::Result<ARef<File>, NotAttachable> {
    // SAFETY: Any number may be asked for; the result owns a reference or is an error.
    let file = from_err_ptr(unsafe { ffi::dxg_attachable(fd) }).map_err(|error| {
        if error == code::EBADF {
            NotAttachable::Closed
        } else if error == code::ENOMEM {
            NotAttachable::NoMemory
        } else {
            NotAttachable::Kind
        }
    })?;
    let file = NonNull::new(file).ok_or(NotAttachable::Closed)?;

    // SAFETY: We own the reference. This thread runs an ioctl, which does not hold the position of
    // any file.
    Ok(unsafe { ARef::from_raw(file.cast()) })
}
