// SPDX-License-Identifier: GPL-2.0

//! The bytes of an allocation: in memory of ours, in memory of the caller, in a file, or in a
//! buffer of another driver (RES-21, RES-22, RES-27, RES-87).
//!
//! A storage is freed with its last reference, and does not move before. `Documentation/memory.md`
//! says who is charged for it.

use super::dma_buf::{
    Export,
    Exports, //
};
use crate::dxgk::{
    quota::holder::{
        Amounts,
        Claim,
        Holder, //
    },
    stats::{
        CountedBytes,
        CountedOn,
        OwnStats,
        Stats, //
    }, //
};
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    sys::{
        file::{
            object_file::NotOurs,
            revocable_file::Source, //
        },
        mem::{
            dma_export,
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
    }, //
};
use kernel::{
    fs::File,
    page::PAGE_SIZE,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

/// Where bytes live.
enum Backing {
    /// New memory.
    System(Shmem<Arc<Holder>>),
    /// Memory of the process that made the allocation.
    User(Pinned),
    /// A memfd or another shmem file.
    Section(Shmem<Arc<Holder>>),
    /// A dma-buf of another driver.
    DmaBuf(Arc<Imported>),
    /// The first pages of another storage.
    Part(Arc<Storage>, usize),
}

/// The bytes of one or more allocations.
pub(crate) struct Storage {
    backing: Backing,
    /// Its dma-bufs.
    exports: Exports,
    bytes: CountedBytes,
    _claim: Claim,
}

impl Storage {
    /// A storage with `pages` pages of its own, charged by `claim` and counted in `stats`.
    fn new(backing: Backing, stats: OwnStats, claim: Claim, pages: usize) -> DxgResult<Arc<Self>> {
        Ok(Arc::new(
            Self {
                backing,
                exports: Exports::new()?,
                // CAST: a usize fits 64 bits.
                bytes: CountedBytes::new(stats, pages as u64 * PAGE_SIZE as u64),
                _claim: claim,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Charges for pages, and for the file that they are in.
    fn claim(holder: &Arc<Holder>, pages: usize, files: u32) -> DxgResult<Claim> {
        Ok(holder.charge(Amounts {
            pages: u32::try_from(pages).map_err(|_| Status::NO_MEMORY)?,
            files,
            ..Amounts::default()
        })?)
    }

    /// New zeroed memory. Its size is reserved; pages are taken when they are touched (MEM-6).
    pub(crate) fn system(holder: &Arc<Holder>, stats: OwnStats, size: u64) -> DxgResult<Arc<Self>> {
        let count = pages_of(size)?;
        let claim = Self::claim(holder, count, 1)?;
        let pages = Shmem::new(count, holder.clone()).map_err(DxgError::from_errno)?;

        Self::new(Backing::System(pages), stats, claim, count)
    }

    /// Memory of the caller, pinned where it is and charged to `holder`.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn user(
        holder: &Arc<Holder>,
        stats: OwnStats,
        addr: u64,
        size: u64,
        write: bool,
    ) -> DxgResult<Arc<Self>> {
        let addr = usize::try_from(addr).map_err(|_| Status::INVALID_PARAMETER)?;
        let count = pages_of(size)?;
        let pinned = match Pinned::new(addr, count, write) {
            // Retirements may release pins.
            Err(error) if error == ENOMEM && holder.account().wait_for_retirements() => {
                Pinned::new(addr, count, write)
            }
            other => other,
        }
        .map_err(|error| match error {
            error if is_passing(error) => DxgError::from_errno(error),
            // Not there, not writable, or not to be pinned.
            _ => Status::INVALID_PARAMETER.into(),
        })?;

        Self::new(
            Backing::User(pinned),
            stats,
            Self::claim(holder, count, 0)?,
            count,
        )
    }

    /// The first `size` bytes of a shmem file or a dma-buf. A dma-buf of ours gives the storage
    /// that it was made of.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn section(
        holder: &Arc<Holder>,
        stats: OwnStats,
        fd: u32,
        size: u64,
        write: bool,
    ) -> DxgResult<Arc<Self>> {
        let count = pages_of(size)?;

        let own = dma_export::with(fd, |export: &Export, writable| {
            (export.storage().clone(), writable)
        });

        match own {
            Ok((_, false)) if write => return Err(BadSection::Denied.into()),
            Ok((storage, _)) => return storage.part(holder, stats, count),
            Err(NotOurs::Closed) => return Err(BadSection::Closed.into()),
            Err(NotOurs::Mismatch) => {}
        }
        match Imported::of_fd(fd, count, write) {
            Ok(buffer) => {
                let buffer = Arc::new(buffer, GFP_KERNEL_ACCOUNT)?;
                let claim = Self::claim(holder, count, 1)?;

                return Self::new(Backing::DmaBuf(buffer), stats, claim, count);
            }
            Err(BadSection::Mismatch) => {}
            Err(bad) => return Err(bad.into()),
        }

        let pages = Shmem::of_fd(fd, count, write, holder.clone())?;

        Self::new(
            Backing::Section(pages),
            stats,
            Self::claim(holder, count, 1)?,
            count,
        )
    }

    /// The first `count` pages of this storage; if these are all, the storage itself.
    fn part(
        self: Arc<Self>,
        holder: &Arc<Holder>,
        stats: OwnStats,
        count: usize,
    ) -> DxgResult<Arc<Self>> {
        if count > self.count() {
            return Err(BadSection::TooShort.into());
        }
        if count == self.count() {
            return Ok(self);
        }

        // Its bytes are counted already. A part of a part becomes a part of the whole, so parts do
        // not nest.
        let whole = match &self.backing {
            Backing::Part(whole, _) => whole.clone(),
            _ => self,
        };

        Self::new(
            Backing::Part(whole, count),
            stats,
            Self::claim(holder, 0, 0)?,
            0,
        )
    }

    /// The pages, unless they are another driver's.
    fn pages(&self) -> Result<&dyn PageSource> {
        match &self.backing {
            Backing::System(pages) | Backing::Section(pages) => Ok(pages),
            Backing::User(pages) => Ok(pages),
            Backing::DmaBuf(_) => Err(EINVAL),
            Backing::Part(whole, _) => Ok(&**whole),
        }
    }

    /// The bytes, for showing them in a process.
    pub(crate) fn source(self: &Arc<Self>) -> Source {
        match &self.backing {
            Backing::DmaBuf(buffer) => Source::Buffer(buffer.clone()),
            _ => Source::Pages(self.clone()),
        }
    }

    /// The status for an error of mapping. Exporters need not let processors reach a buffer
    /// (MEM-97).
    pub(crate) fn not_shown(&self, error: Error) -> DxgError {
        match (&self.backing, error) {
            (Backing::DmaBuf(_), error) if !is_passing(error) => Status::INVALID_PARAMETER.into(),
            (_, error) => DxgError::from_errno(error),
        }
    }

    /// The dma-buf of another driver that the bytes come from, if any. ACCESS_DENIED if it is
    /// larger than the storage, or writable and `read_only` is set.
    pub(crate) fn original(&self, read_only: bool) -> DxgResult<Option<ARef<File>>> {
        match &self.backing {
            Backing::DmaBuf(buffer) => match buffer.original(read_only) {
                None => Err(Status::ACCESS_DENIED.into()),
                original => Ok(original),
            },
            _ => Ok(None),
        }
    }

    /// Its dma-bufs.
    pub(crate) fn exports(&self) -> &Exports {
        &self.exports
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        // CAST: a usize fits 64 bits.
        self.count() as u64 * PAGE_SIZE as u64
    }

    /// Bytes that this keeps in memory now.
    pub(crate) fn resident(&self) -> u64 {
        match &self.backing {
            Backing::System(pages) | Backing::Section(pages) => {
                // CAST: a usize fits 64 bits.
                pages.taken() as u64 * PAGE_SIZE as u64
            }
            Backing::User(_) => self.size(),
            Backing::DmaBuf(_) => 0,
            Backing::Part(whole, _) => whole.resident().min(self.size()),
        }
    }

    /// How many pages its end frees, if at most `most` and nothing else shares them: no other
    /// driver, and no other user of the file or memory.
    pub(in crate::dxgk) fn pages_at_most(&self, most: usize) -> Option<usize> {
        match &self.whole().backing {
            // The table of pages goes too.
            Backing::System(pages) if pages.count() <= most * 64 => {
                Some(pages.taken()).filter(|taken| *taken <= most)
            }
            _ => None,
        }
    }

    /// Makes the bytes ready for processors to use. Bytes of ours always are; a buffer of another
    /// driver may have to wait for its devices.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn begin_cpu_access(self: &Arc<Self>) -> DxgResult<CpuAccess> {
        let done = match &self.whole().backing {
            Backing::DmaBuf(buffer) => buffer.begin_cpu_access(),
            _ => Ok(()),
        };

        done.map_err(|error| self.not_shown(error))?;
        Ok(CpuAccess(self.clone()))
    }

    /// The storage that this is a part of, or itself.
    fn whole(&self) -> &Self {
        match &self.backing {
            Backing::Part(whole, _) => whole,
            _ => self,
        }
    }

    /// Prints where the bytes are, as words of a line.
    pub(crate) fn show(&self, m: &SeqFile) {
        let whole = self.whole();
        let backing = match &whole.backing {
            Backing::Part(..) | Backing::System(_) => c"shmem",
            Backing::User(_) => c"user",
            Backing::Section(_) => c"section",
            Backing::DmaBuf(_) => c"dma-buf",
        };

        seq_print!(m, " backing={}", backing);
        if let Backing::DmaBuf(buffer) = &whole.backing {
            seq_print!(m, " exporter={}", buffer.exporter());
        }
        seq_print!(m, " size={} resident={}", self.size(), self.resident());
    }
}

impl CountedOn for Storage {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.bytes.stats()
    }
}

/// An access by processors, until this is dropped. Context of the drop: may sleep, no locks held.
pub(crate) struct CpuAccess(Arc<Storage>);

impl Drop for CpuAccess {
    fn drop(&mut self) {
        if let Backing::DmaBuf(buffer) = &self.0.whole().backing {
            buffer.end_cpu_access();
        }
    }
}

impl PageSource for Storage {
    fn count(&self) -> usize {
        match &self.backing {
            Backing::Part(_, count) => *count,
            Backing::DmaBuf(buffer) => buffer.count(),
            _ => self.pages().map_or(0, PageSource::count),
        }
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        if index >= self.count() {
            return Err(EINVAL);
        }
        self.pages()?.page(index)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        if index >= self.count() {
            return None;
        }
        self.pages().ok()?.present(index)
    }
}

/// Whether an errno says nothing about the memory itself: the call may work at another time.
fn is_passing(error: Error) -> bool {
    [ENOMEM, EINTR, ERESTARTSYS].contains(&error)
}

/// Whole pages, and at least one.
fn pages_of(size: u64) -> DxgResult<usize> {
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
