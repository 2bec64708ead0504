// SPDX-License-Identifier: GPL-2.0

//! Memory of a shmem file: a new one, or a memfd of a client.
//!
//! A page is taken from the file at its first touch and charged to the memory cgroup of the task
//! that touches it. A reference keeps it, and keeps it in place, until the memory is freed.
//! [`Payer`] is charged for it as long.

use super::{
    page_slots::PageSlots,
    pages::{
        Frame,
        PageSource,
        MAX_PAGES, //
    }, //
};
use crate::sys::{
    ffi,
    work, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        from_err_ptr,
        to_result, //
    },
    fs::{
        File,
        LocalFile, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        }, //
    },
    types::ScopeGuard, //
};

/// Why a descriptor cannot back an allocation.
pub(crate) enum BadSection {
    /// Not open.
    Closed,
    /// Not a shmem file.
    Mismatch,
    /// Shorter than what is asked for.
    TooShort,
    /// The descriptor or the file does not allow reading, or writing.
    Denied,
    /// The kernel is out of a resource.
    Failed(Error),
}

impl From<Error> for BadSection {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What pages are charged to while they are taken.
pub(crate) trait Payer: Send + Sync {
    /// Charges one more page; false over the limit.
    fn take_page(&self) -> bool;

    /// Charges so many more pages, or none; false over the limit.
    fn take_pages(&self, pages: usize) -> bool;

    /// Releases the charge of so many pages.
    fn give_back(&self, pages: usize);
}

/// Pages between two pauses of the end of a memory.
const BATCH: usize = 512;

/// Over a limit.
// CAST: a small number.
const EDQUOT: i32 = bindings::EDQUOT as i32;

/// `FMODE_READ` of a file's mode.
const FMODE_READ: u32 = 1 << 0;

/// A shmem file that we may write to, if that was asked for.
struct ShmemFile {
    file: ARef<File>,
    /// The right to write was taken: others can seal the file.
    has_write_right: bool,
}

impl Drop for ShmemFile {
    fn drop(&mut self) {
        if self.has_write_right {
            // SAFETY: `dxg_shmem_get_write` succeeded for this file.
            unsafe { ffi::dxg_shmem_put_write(self.file.as_ptr()) }
        }
    }
}

/// The pages of a shmem file.
///
/// # Invariants
///
/// Each page of `slots` has a reference for its slot, and is paid for. There are `taken` of them,
/// unless one is being taken. `prepaid` more pages are paid for.
pub(crate) struct Shmem<P: Payer> {
    slots: PageSlots,
    taken: Atomic<usize>,
    prepaid: Atomic<usize>,
    payer: P,
    file: ShmemFile,
}

impl<P: Payer> Shmem<P> {
    /// Zeroed memory. Takes no pages yet, but makes sure that there will be enough.
    pub(crate) fn new(count: usize, payer: P) -> Result<Self> {
        let size = count.checked_mul(PAGE_SIZE).ok_or(ENOMEM)?;
        // SAFETY: May be called by any task; the result is an error or owns a reference.
        let file = from_err_ptr(unsafe { ffi::dxg_shmem_new(size as u64) })?;
        let file = NonNull::new(file).ok_or(ENOMEM)?;
        // SAFETY: We own the only reference to a new file.
        let file = unsafe { ARef::from_raw(file.cast()) };

        Self::over(
            ShmemFile {
                file,
                has_write_right: false,
            },
            count,
            payer,
        )
    }

    /// The first pages of the shmem file behind a descriptor of the caller.
    ///
    /// Context: a system call.
    pub(crate) fn of_fd(
        fd: u32,
        count: usize,
        write: bool,
        payer: P,
    ) -> core::result::Result<Self, BadSection> {
        let file = LocalFile::fget(fd).map_err(|_| BadSection::Closed)?;

        // SAFETY: The file is open.
        if !unsafe { ffi::dxg_is_shmem(file.as_ptr()) } {
            return Err(BadSection::Mismatch);
        }

        // Every user of an allocation reads it, also if it is made to be written to.
        // SAFETY: The file is open, and its mode does not change.
        if unsafe { (*file.as_ptr()).f_mode } & FMODE_READ == 0 {
            return Err(BadSection::Denied);
        }

        // SAFETY: As above.
        let size = unsafe { ffi::dxg_file_size(file.as_ptr()) };
        if count as u64 > size / PAGE_SIZE as u64 {
            return Err(BadSection::TooShort);
        }
        if write {
            // SAFETY: This is an open shmem file; `ShmemFile` gives the right back.
            to_result(unsafe { ffi::dxg_shmem_get_write(file.as_ptr()) })
                .map_err(|_| BadSection::Denied)?;
        }

        // SAFETY: We never use the position of the file.
        let file = unsafe { LocalFile::assume_no_fdget_pos(file) };
        let file = ShmemFile {
            file,
            has_write_right: write,
        };

        Ok(Self::over(file, count, payer)?)
    }

    fn over(file: ShmemFile, count: usize, payer: P) -> Result<Self> {
        if count > MAX_PAGES {
            return Err(ENOMEM);
        }
        Ok(Self {
            slots: PageSlots::new(count, GFP_KERNEL_ACCOUNT)?,
            taken: Atomic::new(0),
            prepaid: Atomic::new(0),
            payer,
            file,
        })
    }

    /// Uses one of the pages that are paid for already; false if there are none.
    fn use_prepaid(&self) -> bool {
        let mut left = self.prepaid.load(Relaxed);

        while let Some(less) = left.checked_sub(1) {
            match self.prepaid.cmpxchg(left, less, Relaxed) {
                Ok(_) => return true,
                Err(now) => left = now,
            }
        }
        false
    }

    /// Takes a page from the file and puts it into its slot, which is empty as far as we know.
    fn take(&self, index: usize) -> Result<NonNull<bindings::page>> {
        if !self.use_prepaid() && !self.payer.take_page() {
            // Not ENOMEM: the kernel would retry the page fault for ever.
            return Err(Error::from_errno(-EDQUOT));
        }

        let unpaid = ScopeGuard::new(|| self.payer.give_back(1));
        // SAFETY: The file is an open shmem file; the result is an error or owns a reference.
        let fresh = unsafe { ffi::dxg_shmem_get_page(self.file.file.as_ptr(), index) };
        let fresh = NonNull::new(from_err_ptr(fresh)?).ok_or(EINVAL)?;
        // INVARIANT: The slot takes the reference over, which is paid for.
        let placed = self.slots.put(index, fresh);

        if !matches!(placed, Ok(Ok(()))) {
            // SAFETY: This owns the reference, and nobody has seen the page here.
            unsafe { ffi::dxg_shmem_put_page(fresh.as_ptr()) };
        }
        match placed? {
            Ok(()) => {
                unpaid.dismiss();
                self.taken.fetch_add(1, Relaxed);
                Ok(fresh)
            }
            Err(known) => Ok(known),
        }
    }
}

impl<P: Payer> PageSource for Shmem<P> {
    fn count(&self) -> usize {
        self.slots.count()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        if index >= self.count() {
            return Err(EINVAL);
        }
        if let Some(page) = self.present(index) {
            return Ok(page);
        }

        let page = self.take(index)?;

        // SAFETY: By the type invariant a reference keeps the page as long as `self` lives.
        Ok(unsafe { Frame::of_page(page) })
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        let page = self.slots.get(index)?;

        // SAFETY: By the type invariant a reference keeps the page as long as `self` lives.
        Some(unsafe { Frame::of_page(page) })
    }

    fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    fn pay_ahead(&self) -> Result {
        let there = self.taken().saturating_add(self.prepaid.load(Relaxed));
        let missing = self.count().saturating_sub(there);

        // INVARIANT: They are paid for from here on.
        if missing != 0 {
            if !self.payer.take_pages(missing) {
                return Err(Error::from_errno(-EDQUOT));
            }
            self.prepaid.fetch_add(missing, Relaxed);
        }
        Ok(())
    }

    fn pay_back(&self) {
        // INVARIANT: None is any more.
        let left = self.prepaid.xchg(0, Relaxed);

        if left != 0 {
            self.payer.give_back(left);
        }
    }
}

impl<P: Payer> Drop for Shmem<P> {
    fn drop(&mut self) {
        let mut given_back = 0;

        for page in self.slots.pages() {
            // SAFETY: By the type invariant the slot owns a reference; nobody looks at it again.
            unsafe { ffi::dxg_shmem_put_page(page.as_ptr()) };
            given_back += 1;
            if given_back % BATCH == 0 {
                work::breathe();
            }
        }
        self.payer.give_back(given_back);
        self.pay_back();
    }
}
