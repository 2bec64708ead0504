// SPDX-License-Identifier: GPL-2.0

//! Mapping a value page into the calling process, read-only for good.
//!
//! The page is inserted by our own `mmap` operation, which finds it by a token that only the
//! mapping call knows for as long as it runs; no VMA is ever looked up to insert something.

use super::{
    chardev,
    ffi,
    value_page::ValuePage, //
};
use kernel::{
    bindings,
    error::to_result,
    fs::File,
    mm::virt::VmaNew,
    page::PAGE_SIZE,
    prelude::*, //
};

/// Maps one page of the device `file` into the caller. The device's `mmap` operation is asked for
/// the page with this token.
///
/// Context: a system call, no locks held (takes the mmap lock).
pub(crate) fn map(file: &File, token: usize) -> Result<usize> {
    // SAFETY: `file` is an open file of our device; the call runs in the context of its user.
    let addr = unsafe { ffi::dxg_map_page(file.as_ptr(), token) };

    // The last page of the address space holds error values.
    if addr.wrapping_neg() < PAGE_SIZE {
        // CAST: the value is the negative errno as an unsigned long.
        to_result(addr as i32)?;
    }
    Ok(addr)
}

/// Removes a mapping made by [`map`] from the caller, unless the caller has put something else at
/// this address.
///
/// Context: a system call of the process that owns the mapping, no locks held.
pub(crate) fn unmap(addr: usize, token: usize) {
    // SAFETY: Called by the owner of the address space; the helper checks that the mapping is one
    // of our device with this token.
    let _ours = unsafe { ffi::dxg_unmap_page(chardev::operations(), addr, token) };
}

/// A mapping that is being set up by our `mmap` operation.
pub(super) struct NewMapping<'a>(&'a VmaNew);

impl NewMapping<'_> {
    /// # Safety
    ///
    /// `vma` is undergoing setup in an `mmap` operation for the whole lifetime.
    pub(super) unsafe fn from_raw<'a>(vma: *mut bindings::vm_area_struct) -> NewMapping<'a> {
        // SAFETY: By the caller's promise.
        NewMapping(unsafe { VmaNew::from_raw(vma) })
    }

    /// The token given to [`map`], or whatever a user gave as the offset.
    pub(super) fn token(&self) -> usize {
        // SAFETY: The VMA is valid and not yet visible to others.
        unsafe { ffi::dxg_vma_token(self.0.as_ptr()) }
    }

    /// Shows `page` here, never writable (FEN-8) and inherited by fork (FEN-11).
    pub(super) fn show(&self, page: &ValuePage) -> Result {
        let vma = self.0;

        // SAFETY: The VMA is valid and not yet visible to others.
        if !unsafe { ffi::dxg_vma_is_page(vma.as_ptr()) } {
            return Err(EINVAL);
        }
        vma.try_clear_maywrite()?;
        vma.try_clear_mayexec()?;
        vma.set_dontexpand();
        vma.set_dontdump();
        vma.set_mixedmap().vm_insert_page(vma.start(), page.page())
    }
}
