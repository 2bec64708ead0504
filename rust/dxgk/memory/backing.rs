// SPDX-License-Identifier: GPL-2.0

//! What the pages of a storage are taken from: memory of this module or of the caller, a file, a
//! dma-buf of another driver, or another storage (RES-21, RES-22, RES-27, RES-87).
//!
//! Only memory of this module has a place that may change; everything else stays where it is.
//! `Documentation/memory.md` says who is charged for it.

use crate::dxgk::quota::holder::Holder;
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    sys::mem::{
        dma_import::Imported,
        pages::{
            Frame,
            PageSource, //
        },
        pinned::Pinned,
        shmem::{
            BadSection,
            Shmem, //
        }, //
    }, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// The kind of memory of a storage. `W` keeps another storage in place.
pub(super) enum Backing<W> {
    /// Memory of this module, in the place where it is now.
    Shmem,
    /// Memory of the process that made the allocation.
    User,
    /// A memfd or another shmem file.
    Section,
    /// A dma-buf of another driver. It has no parts.
    DmaBuf(Arc<Imported>),
    /// The first pages of another storage, which stays where it is meanwhile.
    Part(Arc<W>),
}

/// The pages of memory of this module that was given back: there are none (MEM-29).
pub(in crate::dxgk) struct NoPages(usize);

impl NoPages {
    /// None instead of so many.
    pub(in crate::dxgk) fn in_place_of(count: usize) -> DxgResult<Arc<dyn PageSource>> {
        Ok(Arc::new(Self(count), GFP_KERNEL_ACCOUNT)?)
    }
}

impl PageSource for NoPages {
    fn count(&self) -> usize {
        self.0
    }

    fn page(&self, _: usize) -> Result<Frame<'_>> {
        // Not ENOMEM: the kernel would retry the page fault for ever.
        Err(ENOSPC)
    }

    fn present(&self, _: usize) -> Option<Frame<'_>> {
        None
    }

    fn taken(&self) -> usize {
        0
    }
}

/// A backing, and its pages.
pub(super) type Pages<W> = (Backing<W>, Arc<dyn PageSource>);

impl<W: PageSource + 'static> Backing<W> {
    /// New zeroed memory. Its size is reserved; pages are taken when they are touched (MEM-6).
    pub(super) fn shmem(holder: &Arc<Holder>, count: usize) -> DxgResult<Pages<W>> {
        let pages = Shmem::new(count, holder.clone()).map_err(DxgError::from_errno)?;

        Ok((Self::Shmem, Arc::new(pages, GFP_KERNEL_ACCOUNT)?))
    }

    /// Memory of the caller, pinned where it is.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn user(
        holder: &Arc<Holder>,
        addr: u64,
        count: usize,
        write: bool,
    ) -> DxgResult<Pages<W>> {
        let addr = usize::try_from(addr).map_err(|_| Status::INVALID_PARAMETER)?;
        let pinned = match Pinned::new(addr, count, write) {
            // Retirements release pins, also one that has ended since.
            Err(error) if error == ENOMEM => {
                holder.account().wait_for_retirements();
                Pinned::new(addr, count, write)
            }
            other => other,
        }
        .map_err(|error| match error {
            error if is_passing(error) => DxgError::from_errno(error),
            // Not there, not writable, or not to be pinned.
            _ => Status::INVALID_PARAMETER.into(),
        })?;

        Ok((Self::User, Arc::new(pinned, GFP_KERNEL_ACCOUNT)?))
    }

    /// The first pages of a shmem file or of another driver's dma-buf.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn section(
        holder: &Arc<Holder>,
        fd: u32,
        count: usize,
        write: bool,
    ) -> DxgResult<Pages<W>> {
        match Imported::of_fd(fd, count, write) {
            Ok(buffer) => {
                let buffer = Arc::new(buffer, GFP_KERNEL_ACCOUNT)?;

                Ok((Self::DmaBuf(buffer.clone()), buffer))
            }
            Err(BadSection::Mismatch) => {
                let pages = Shmem::of_fd(fd, count, write, holder.clone())?;

                Ok((Self::Section, Arc::new(pages, GFP_KERNEL_ACCOUNT)?))
            }
            Err(bad) => Err(bad.into()),
        }
    }

    /// The pages of a storage, or the first ones of it.
    pub(super) fn part(whole: W) -> DxgResult<Pages<W>> {
        let whole = Arc::new(whole, GFP_KERNEL_ACCOUNT)?;

        Ok((Self::Part(whole.clone()), whole))
    }

    /// Its name in fdinfo. A part is shown as the whole.
    pub(super) fn name(&self) -> &'static CStr {
        match self {
            Self::Shmem => c"shmem",
            Self::User => c"user",
            Self::Section => c"section",
            Self::DmaBuf(_) => c"dma-buf",
            Self::Part(_) => c"part",
        }
    }
}

/// Whether an errno says nothing about the memory itself: the call may work at another time.
pub(super) fn is_passing(error: Error) -> bool {
    [ENOMEM, EINTR, ERESTARTSYS].contains(&error)
}

/// Whole pages, and at least one.
pub(super) fn pages_of(size: u64) -> DxgResult<usize> {
    // No file and no address space is longer than the largest signed number.
    let size = isize::try_from(size).map_err(|_| Status::INVALID_PARAMETER)?;
    let size = size.unsigned_abs();

    if size == 0 || size % PAGE_SIZE != 0 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    Ok(size / PAGE_SIZE)
}

impl From<BadSection> for DxgError {
    fn from(bad: BadSection) -> Self {
        match bad {
            BadSection::Closed => Status::INVALID_HANDLE.into(),
            BadSection::Mismatch => Status::OBJECT_TYPE_MISMATCH.into(),
            BadSection::TooShort => Status::INVALID_PARAMETER.into(),
            BadSection::Denied => Status::ACCESS_DENIED.into(),
            BadSection::Failed(error) => DxgError::from_errno(error),
        }
    }
}
