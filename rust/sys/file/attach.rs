// SPDX-License-Identifier: GPL-2.0

//! Files that users attach to an object (RES-63).
//!
//! Only files are accepted that cannot hold one of our objects in turn: dma-bufs of other drivers,
//! memory files, sync files, eventfds and drm_syncobjs. So no object can keep itself alive through
//! an attached file, unless the administrator names drivers whose files can hold anything.

use crate::{
    logic::driver_names,
    sys::{
        ffi,
        params, //
    }, //
};
use core::ptr::{
    null,
    NonNull, //
};
use kernel::{
    error::{
        code,
        from_err_ptr, //
    },
    fs::File,
    prelude::*,
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
    let mut driver = null();
    // SAFETY: Any number may be asked for; the result owns a reference or is an error. `driver` is
    // a place of this function.
    let file = unsafe { ffi::dxg_attachable(fd, &raw mut driver) };
    let file = from_err_ptr(file).map_err(|error| {
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
    let file = unsafe { ARef::from_raw(file.cast()) };

    if !driver.is_null() {
        // SAFETY: The name of the module of the file's operations, which stays as long as the file.
        let driver = unsafe { CStr::from_char_ptr(driver) };

        if !driver_names::has(params::attach_drivers().to_bytes(), driver.to_bytes()) {
            return Err(NotAttachable::Kind);
        }
    }
    Ok(file)
}
