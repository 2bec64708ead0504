// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of this module's memory, for other drivers and for programs (RES-86).
//!
//! A dma-buf owns the object that it was made of. All its pages exist before it does, because its
//! operations may fail for want of memory only. While the object has users, its
//! [`DmaSlots`](super::dma_slots::DmaSlots) keep the dma-buf.

use super::dma_slots::User;
use crate::sys::file::object_file::NotOurs;
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        code,
        from_err_ptr, //
    },
    ffi::c_int,
    fs::File,
    prelude::*,
    sync::aref::ARef, //
};
use operations::Table;

pub(crate) use operations::Buffer;

mod operations;

/// The file of the dma-buf of the object that `user` uses, or of a new one that owns the result of
/// `make`, which is made of that object.
///
/// Context: may sleep, no locks held.
pub(crate) fn export<T: Buffer, E>(
    user: &User<T::Object>,
    write: bool,
    make: impl FnOnce() -> Result<T, E>,
    refused: impl FnOnce(Error) -> E,
) -> Result<ARef<File>, E> {
    if let Some(file) = user.kept(write) {
        return Ok(file);
    }

    let fresh = Table::export(make()?, write).map_err(refused)?;

    // Another thread may have been faster; then the fresh one is dropped.
    Ok(user.keep(fresh, write))
}

/// A user of the object of the dma-buf of kind `T` behind a descriptor, and whether the dma-buf is
/// for writing. The dma-buf is kept for the user.
///
/// Context: a system call.
pub(crate) fn imported<T: Buffer>(fd: u32) -> Result<(User<T::Object>, bool), NotOurs> {
    let fd = c_int::try_from(fd).map_err(|_| NotOurs::Closed)?;
    // SAFETY: Any number may be asked for; the result is an error or owns a reference.
    let buf = match from_err_ptr(unsafe { bindings::dma_buf_get(fd) }) {
        Ok(buf) => buf,
        Err(error) if error == code::EBADF => return Err(NotOurs::Closed),
        Err(_) => return Err(NotOurs::Mismatch),
    };
    // SAFETY: The reference is one to the file of the dma-buf, and we own it.
    let file = unsafe {
        let file = NonNull::new((*buf).file).ok_or(NotOurs::Mismatch)?;

        ARef::<File>::from_raw(file.cast())
    };

    // SAFETY: The reference keeps the dma-buf; a table does not change. The private data of a
    // dma-buf with our table is what the table says.
    let private = unsafe {
        if !Table::<T>::is((*buf).ops) {
            return Err(NotOurs::Mismatch);
        }

        Table::<T>::private(buf)
    };
    let write = private.write;
    let user = User::new(private.buffer.object().clone());

    drop(user.keep(file, write));
    Ok((user, write))
}
