// SPDX-License-Identifier: GPL-2.0

//! The bytes of an allocation: in memory of ours, in memory of the caller, in a file, or in a
//! buffer of another driver (RES-21, RES-22, RES-27, RES-87).
//!
//! Memory of ours has a place that may change; everything else stays where it is. A storage is
//! freed with its last reference. `Documentation/memory.md` says who is charged for it.

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
#[cfg(CONFIG_KUNIT = "y")]
use crate::sys::mem::movable::MoveError;
use crate::{
    ddi::types::Place,
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    sys::{
        file::revocable_file::Source,
        mem::{
            dma_export::Slots,
            dma_import::Imported,
            movable::Movable,
            pages::{
                Frame,
                PageSource, //
            },
            pinned::Pinned,
            shmem::{
                BadSection,
                Shmem, //
            },
            shown::{
                Memory,
                ShownFile, //
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
    /// Memory of ours, in the place where it is now.
    Own(Arc<Movable<Place>>),
    /// Memory of the process that made the allocation.
    User(Pinned),
    /// A memfd or another shmem file.
    Section(Shmem<Arc<Holder>>),
    /// A dma-buf of another driver.
    DmaBuf(Arc<Imported>),
    /// The first pages of another storage, which stays where it is meanwhile.
    Part(PinnedStorage),
}

/// The bytes of one or more allocations.
pub(crate) struct Storage {
    /// Pages; never changes.
    count: usize,
    backing: Backing,
    /// Its dma-bufs.
    exports: Arc<Slots>,
    bytes: CountedBytes,
    _claim: Claim,
}

impl Storage {
    /// A storage of `count` pages, charged by `claim` and counted in `stats`.
    fn new(backing: Backing, stats: OwnStats, claim: Claim, count: usize) -> DxgResult<Arc<Self>> {
        let own = match &backing {
            // Its bytes are counted already.
            Backing::Part(_) => 0,
            _ => count,
        };

        Ok(Arc::new(
            Self {
                count,
                backing,
                exports: Slots::new()?,
                // CAST: a usize fits 64 bits.
                bytes: CountedBytes::new(stats, own as u64 * PAGE_SIZE as u64),
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
        let memory = Movable::new(
            Place::SystemMemory,
            Arc::new(pages, GFP_KERNEL_ACCOUNT)? as Arc<dyn PageSource>,
        )?;

        Self::new(Backing::Own(memory), stats, claim, count)
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

        let claim = Self::claim(holder, count, 0)?;

        Self::new(Backing::User(pinned), stats, claim, count)
    }

    /// The first `size` bytes of a shmem file or of another driver's dma-buf.
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

        let claim = Self::claim(holder, count, 1)?;

        Self::new(Backing::Section(pages), stats, claim, count)
    }

    /// The first `size` bytes of this storage, for another allocation. Where this storage is may
    /// not suit the adapter of the other one, so it stays in place meanwhile.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn part(
        self: Arc<Self>,
        holder: &Arc<Holder>,
        stats: OwnStats,
        size: u64,
    ) -> DxgResult<Arc<Self>> {
        let count = pages_of(size)?;

        if count > self.count {
            return Err(BadSection::TooShort.into());
        }

        // A part of a part becomes a part of the whole, so parts do not nest.
        let whole = self.whole().clone().pin()?;

        Self::new(
            Backing::Part(whole),
            stats,
            Self::claim(holder, 0, 0)?,
            count,
        )
    }

    /// Keeps the bytes where they are as long as the result is there. Waits for a move.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn pin(self: Arc<Self>) -> DxgResult<PinnedStorage> {
        let pages = match &self.backing {
            Backing::Own(memory) => Some(memory.pin().map_err(DxgError::from_errno)?),
            _ => None,
        };

        Ok(PinnedStorage {
            storage: self,
            pages,
        })
    }

    /// Moves the bytes to another backing, or says why not and changes nothing. No KMD has a second
    /// place yet, so only tests do it.
    ///
    /// Context: may sleep, no locks held.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn move_to(
        &self,
        place: Place,
        pages: Arc<dyn PageSource>,
    ) -> core::result::Result<(), MoveError> {
        match &self.backing {
            Backing::Own(memory) => memory.move_to(place, pages),
            // The whole moves, once it has no parts.
            Backing::Part(_) => Err(MoveError::Pinned),
            Backing::User(_) | Backing::Section(_) | Backing::DmaBuf(_) => Err(MoveError::Fixed),
        }
    }

    /// The pages of a storage that cannot move.
    fn fixed(&self) -> Result<&dyn PageSource> {
        match &self.backing {
            Backing::User(pages) => Ok(pages),
            Backing::Section(pages) => Ok(pages),
            Backing::Part(whole) => whole.pages(),
            Backing::Own(_) | Backing::DmaBuf(_) => Err(EINVAL),
        }
    }

    /// The bytes, for showing them in a process.
    pub(crate) fn source(self: &Arc<Self>) -> Source {
        match (&self.backing, &self.whole().backing) {
            (Backing::DmaBuf(buffer), _) => Source::Buffer(buffer.clone()),
            (_, Backing::Own(memory)) => Source::Pages(memory.clone(), self.count),
            _ => Source::Pages(self.clone(), self.count),
        }
    }

    /// Where the bytes are now.
    pub(crate) fn place(self: &Arc<Self>) -> Place {
        match &self.whole().backing {
            Backing::Own(memory) => memory.place(),
            _ => Place::SystemMemory,
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

    /// The storage whose dma-bufs are those of this one: another one if this has all its bytes.
    pub(in crate::dxgk) fn exported(self: &Arc<Self>) -> &Arc<Self> {
        let whole = self.whole();

        if whole.count == self.count {
            whole
        } else {
            self
        }
    }

    /// Its dma-bufs.
    pub(in crate::dxgk) fn exports(&self) -> &Arc<Slots> {
        &self.exports
    }

    /// Whether there is a dma-buf of it.
    pub(super) fn is_exported(self: &Arc<Self>) -> bool {
        self.exported().exports.is_exported()
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        // CAST: a usize fits 64 bits.
        self.count as u64 * PAGE_SIZE as u64
    }

    /// Bytes that this keeps in memory now.
    pub(crate) fn resident(&self) -> u64 {
        let taken = match &self.backing {
            Backing::Own(memory) => memory.taken(),
            Backing::Section(pages) => pages.taken(),
            Backing::User(_) => self.count,
            Backing::DmaBuf(_) => 0,
            Backing::Part(whole) => return whole.storage.resident().min(self.size()),
        };

        // CAST: a usize fits 64 bits.
        taken as u64 * PAGE_SIZE as u64
    }

    /// How many pages its end frees, if at most `most` and nothing else shares them: no other
    /// driver, and no other user of the file or memory. Only tries locks.
    pub(in crate::dxgk) fn pages_at_most(self: &Arc<Self>, most: usize) -> Option<usize> {
        let whole = self.whole();

        match &whole.backing {
            // The table of pages goes too.
            Backing::Own(memory) if whole.count <= most * 64 => {
                memory.try_taken().filter(|taken| *taken <= most)
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
    fn whole(self: &Arc<Self>) -> &Arc<Self> {
        match &self.backing {
            Backing::Part(whole) => &whole.storage,
            _ => self,
        }
    }

    /// Prints where the bytes are, as words of a line.
    pub(crate) fn show(self: &Arc<Self>, m: &SeqFile) {
        let whole = self.whole();
        let backing = match &whole.backing {
            Backing::Part(_) | Backing::Own(_) => c"shmem",
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

/// The pages of a storage that cannot move. It need not know who shows them.
impl Memory for Storage {
    fn with_page(&self, index: usize, look: &mut dyn FnMut(&dyn PageSource)) -> Result {
        let pages = self.fixed()?;

        pages.page(index)?;
        look(pages);
        Ok(())
    }

    fn add_file(&self, _file: &ShownFile) -> Result {
        Ok(())
    }

    fn remove_file(&self, _file: &ShownFile) {}
}

/// A storage that stays where it is as long as this is there.
pub(super) struct PinnedStorage {
    storage: Arc<Storage>,
    /// The pages, if they could move otherwise. INVARIANT: the memory is pinned then.
    pages: Option<Arc<dyn PageSource>>,
}

impl PinnedStorage {
    fn pages(&self) -> Result<&dyn PageSource> {
        match &self.pages {
            Some(pages) => Ok(&**pages),
            None => self.storage.fixed(),
        }
    }
}

impl Drop for PinnedStorage {
    fn drop(&mut self) {
        if let (Backing::Own(memory), Some(_)) = (&self.storage.backing, &self.pages) {
            memory.unpin();
        }
    }
}

impl PageSource for PinnedStorage {
    fn count(&self) -> usize {
        self.storage.count
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

    fn taken(&self) -> usize {
        self.pages().map_or(0, PageSource::taken).min(self.count())
    }
}

/// Whether an errno says nothing about the memory itself: the call may work at another time.
fn is_passing(error: Error) -> bool {
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
