// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of other drivers as memory (RES-87).
//!
//! A buffer is only referenced: its exporter decides where its bytes are, how they are cached and
//! when they move. Processors reach it by mappings that the exporter makes. While engines use it,
//! it is attached (`dma_attachment.rs`).

use super::{
    pages::{
        Frame,
        PageSource, //
    },
    shmem::BadSection, //
};
use crate::compat::dma;
use crate::sys::ffi;
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        code,
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    fs::File,
    page::PAGE_SIZE,
    prelude::*,
    sync::aref::ARef, //
};

/// `FMODE_WRITE` of a file's mode.
const FMODE_WRITE: u32 = 1 << 1;

/// A reference to a dma-buf of another driver, of which the first pages are used.
pub(crate) struct Imported {
    /// INVARIANT: referenced.
    pub(super) buf: NonNull<bindings::dma_buf>,
    pub(super) count: usize,
    pub(super) write: bool,
}

// SAFETY: All functions of dma-bufs take the locks they need.
unsafe impl Send for Imported {}
// SAFETY: As above; nothing here changes.
unsafe impl Sync for Imported {}

impl Imported {
    /// The first `count` pages of the dma-buf behind a descriptor of the caller.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn of_fd(
        fd: u32,
        count: usize,
        write: bool,
    ) -> core::result::Result<Self, BadSection> {
        let fd = c_int::try_from(fd).map_err(|_| BadSection::Closed)?;
        // SAFETY: Any number may be asked for; the result is an error or owns a reference.
        let buf = match from_err_ptr(unsafe { bindings::dma_buf_get(fd) }) {
            // INVARIANT: This owns the reference from here on.
            Ok(buf) => Self {
                buf: NonNull::new(buf).ok_or(BadSection::Closed)?,
                count,
                write,
            },
            Err(error) if error == code::EBADF => return Err(BadSection::Closed),
            Err(_) => return Err(BadSection::Mismatch),
        };

        if count > buf.size() / PAGE_SIZE {
            return Err(BadSection::TooShort);
        }
        if write && !buf.is_writable() {
            return Err(BadSection::Denied);
        }
        Ok(buf)
    }

    /// Its bytes, all of them.
    fn size(&self) -> usize {
        // SAFETY: By the type invariant the dma-buf is there; its size never changes.
        unsafe { (*self.buf.as_ptr()).size }
    }

    fn file(&self) -> &File {
        // SAFETY: By the type invariant the dma-buf is there, and so is its file; dma-bufs have no
        // position that is shared.
        unsafe { File::from_raw_file((*self.buf.as_ptr()).file) }
    }

    /// Whether descriptors of it are for writing.
    fn is_writable(&self) -> bool {
        // SAFETY: The file is open; its mode never changes.
        unsafe { (*self.file().as_ptr()).f_mode & FMODE_WRITE != 0 }
    }

    /// The dma-buf itself, unless it gives more than `self`: bytes beyond it, or with `read_only`
    /// the right to write.
    pub(crate) fn original(&self, read_only: bool) -> Option<ARef<File>> {
        let wider = self.count < self.size().div_ceil(PAGE_SIZE) || read_only && self.is_writable();

        (!wider).then(|| self.file().into())
    }

    /// Lets the exporter set up a new mapping, which is not one of our file afterwards.
    ///
    /// # Safety
    ///
    /// `vma` must be a new mapping of a file of this module, in that file's `mmap` operation.
    pub(in crate::sys) unsafe fn show(
        &self,
        vma: *mut bindings::vm_area_struct,
        write: bool,
    ) -> Result<ARef<File>> {
        // SAFETY: By the caller's promise, and by the type invariant the dma-buf is there.
        to_result(unsafe { ffi::dxg_show_dma_buf(vma, self.count, write, self.buf.as_ptr()) })?;

        // SAFETY: The mapping is set up and holds its file.
        Ok(unsafe { File::from_raw_file((*vma).vm_file) }.into())
    }

    /// The direction of what processors do with the buffer.
    fn direction(&self) -> dma::Direction {
        if self.write {
            dma::BIDIRECTIONAL
        } else {
            dma::FROM_DEVICE
        }
    }

    /// Waits until devices have written, and makes the result visible to processors. A signal
    /// interrupts this with ERESTARTSYS.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn begin_cpu_access(&self) -> Result {
        // SAFETY: By the type invariant the dma-buf is there, and no lock of it is held.
        to_result(unsafe {
            bindings::dma_buf_begin_cpu_access(self.buf.as_ptr(), self.direction())
        })
    }

    /// Makes what processors have written visible to devices.
    ///
    /// Context: as [`Imported::begin_cpu_access`].
    pub(crate) fn end_cpu_access(&self) {
        // SAFETY: As above. There is nothing to do about a failure.
        let _best_effort =
            unsafe { bindings::dma_buf_end_cpu_access(self.buf.as_ptr(), self.direction()) };
    }

    /// The name of the driver that the buffer came from.
    pub(crate) fn exporter(&self) -> &CStr {
        // SAFETY: The name of a dma-buf's exporter is a string that lives as long as the dma-buf.
        unsafe { CStr::from_char_ptr((*self.buf.as_ptr()).exp_name) }
    }
}

/// Nobody here knows its pages: the exporter makes its mappings.
impl PageSource for Imported {
    fn count(&self) -> usize {
        self.count
    }

    fn page(&self, _index: usize) -> Result<Frame<'_>> {
        Err(EINVAL)
    }

    fn present(&self, _index: usize) -> Option<Frame<'_>> {
        None
    }

    fn taken(&self) -> usize {
        0
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: By the type invariant we own a reference, and give it back once.
        unsafe { bindings::dma_buf_put(self.buf.as_ptr()) }
    }
}
