// SPDX-License-Identifier: GPL-2.0

//! Memory of a shmem file: one of our own, or a memfd of somebody.
//!
//! A page is taken from the file when it is touched first, is charged to the memory cgroup of
//! whoever touches it, and stays pinned until the memory goes.

use super::{
    ffi,
    pages::{
        PageRef,
        PageSource,
        MAX_PAGES, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
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
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        }, //
    }, //
};

/// Why a descriptor is no memory that we take.
pub(crate) enum BadSection {
    /// Not open.
    Closed,
    /// Something else.
    Mismatch,
    /// Shorter than what is asked for.
    TooShort,
    /// The descriptor, or the file, does not allow to read it, or to write to it.
    Denied,
    /// The kernel is short of something.
    Failed(Error),
}

impl From<Error> for BadSection {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// `FMODE_READ` of a file's mode.
const FMODE_READ: u32 = 1 << 0;

/// A shmem file that we may write to, if that was asked for.
struct Backing {
    file: ARef<File>,
    /// The right to write was claimed from a file that others can seal.
    claimed: bool,
}

impl Drop for Backing {
    fn drop(&mut self) {
        if self.claimed {
            // SAFETY: `dxg_shmem_get_write` succeeded for this file.
            unsafe { ffi::dxg_shmem_put_write(self.file.as_ptr()) }
        }
    }
}

/// See the module.
///
/// # Invariants
///
/// A slot is 0, or the exposed address of a `struct page` that is pinned once for the slot. It
/// changes from 0 to a page once and never again.
pub(crate) struct Shmem {
    slots: KVVec<Atomic<usize>>,
    taken: Atomic<usize>,
    backing: Backing,
}

impl Shmem {
    /// Zeroed memory. Takes no pages yet, but makes sure that there will be enough.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let size = count.checked_mul(PAGE_SIZE).ok_or(ENOMEM)?;
        // SAFETY: May be called by any task; the result is an error or owns a reference.
        let file = from_err_ptr(unsafe { ffi::dxg_shmem_new(size as u64) })?;
        let file = NonNull::new(file).ok_or(ENOMEM)?;
        // SAFETY: We own the only reference to a new file.
        let file = unsafe { ARef::from_raw(file.cast()) };

        Self::over(
            Backing {
                file,
                claimed: false,
            },
            count,
        )
    }

    /// The first pages of the shmem file behind a descriptor of the caller.
    ///
    /// Context: a system call.
    pub(crate) fn of_fd(
        fd: u32,
        count: usize,
        write: bool,
    ) -> core::result::Result<Self, BadSection> {
        let file = LocalFile::fget(fd).map_err(|_| BadSection::Closed)?;

        // SAFETY: The file is open.
        if !unsafe { ffi::dxg_is_shmem(file.as_ptr()) } {
            return Err(BadSection::Mismatch);
        }

        // Whoever has an allocation reads it, also what is made to be written to.
        // SAFETY: As above; the mode never changes.
        if unsafe { (*file.as_ptr()).f_mode } & FMODE_READ == 0 {
            return Err(BadSection::Denied);
        }

        // SAFETY: As above.
        let size = unsafe { ffi::dxg_file_size(file.as_ptr()) };
        if count as u64 > size / PAGE_SIZE as u64 {
            return Err(BadSection::TooShort);
        }
        if write {
            // SAFETY: This is an open shmem file; `Backing` gives the right back.
            to_result(unsafe { ffi::dxg_shmem_get_write(file.as_ptr()) })
                .map_err(|_| BadSection::Denied)?;
        }

        // SAFETY: We never use the position of the file.
        let file = unsafe { LocalFile::assume_no_fdget_pos(file) };
        let backing = Backing {
            file,
            claimed: write,
        };

        Ok(Self::over(backing, count)?)
    }

    fn over(backing: Backing, count: usize) -> Result<Self> {
        if count > MAX_PAGES {
            return Err(ENOMEM);
        }

        let mut slots = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

        for _ in 0..count {
            slots.push(Atomic::new(0), GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Self {
            slots,
            taken: Atomic::new(0),
            backing,
        })
    }

    /// How many pages have been taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    /// Takes a page from the file and puts it into its empty slot.
    fn take(&self, index: usize, slot: &Atomic<usize>) -> Result<NonNull<bindings::page>> {
        // SAFETY: The file is an open shmem file; the result is an error or owns a pin.
        let fresh = unsafe { ffi::dxg_shmem_pin(self.backing.file.as_ptr(), index) };
        let fresh = NonNull::new(from_err_ptr(fresh)?).ok_or(EINVAL)?;

        // INVARIANT: The slot was empty and takes the pin over.
        match slot.cmpxchg(0, fresh.as_ptr().expose_provenance(), Full) {
            Ok(_) => {
                self.taken.fetch_add(1, Relaxed);
                Ok(fresh)
            }
            Err(known) => {
                // SAFETY: The pin is ours, and nobody has seen it.
                unsafe { ffi::dxg_shmem_unpin(fresh.as_ptr()) };
                page_at(known).ok_or(EINVAL)
            }
        }
    }
}

fn page_at(slot: usize) -> Option<NonNull<bindings::page>> {
    NonNull::new(ptr::with_exposed_provenance_mut(slot))
}

impl PageSource for Shmem {
    fn count(&self) -> usize {
        self.slots.len()
    }

    fn page(&self, index: usize) -> Result<PageRef<'_>> {
        let slot = self.slots.get(index).ok_or(EINVAL)?;

        if let Some(page) = self.present(index) {
            return Ok(page);
        }

        let page = self.take(index, slot)?;

        // SAFETY: By the type invariant the page stays pinned as long as `self` lives.
        Ok(unsafe { PageRef::new(page) })
    }

    fn present(&self, index: usize) -> Option<PageRef<'_>> {
        // ORDERING: pairs with the exchange in `take`; the page was made ready before.
        let page = page_at(self.slots.get(index)?.load(Acquire))?;

        // SAFETY: By the type invariant the page stays pinned as long as `self` lives.
        Some(unsafe { PageRef::new(page) })
    }
}

impl Drop for Shmem {
    fn drop(&mut self) {
        for slot in &self.slots {
            if let Some(page) = page_at(slot.load(Relaxed)) {
                // SAFETY: By the type invariant the slot owns a pin; nobody looks at it again.
                unsafe { ffi::dxg_shmem_unpin(page.as_ptr()) };
            }
        }
    }
}
