// SPDX-License-Identifier: GPL-2.0

//! A storage: the bytes of one or more allocations, and their dma-bufs. It is freed with its last
//! reference.

use super::backing::{
    is_passing,
    pages_of,
    Backing,
    Pages, //
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
    ddi::types::Place,
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    sys::{
        alloc::pin_arc,
        file::revocable_file::Source,
        mem::{
            dma_attachment::Attached,
            dma_slots::{
                DmaSlots,
                Exported,
                User, //
            },
            movable::{
                moving::{
                    CopyPages,
                    MoveError, //
                },
                Movable, //
            },
            pages::{
                Frame,
                PageSource, //
            },
            shmem::BadSection,
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
        atomic::{
            AtomicFlag,
            Full, //
        },
        Arc, //
    }, //
};

// With the counts of its `Arc` it takes 256 bytes; the next larger piece of memory is 512, all of
// which is zeroed where the kernel is set up so. Checks of locks need more.
#[cfg(not(any(
    CONFIG_LOCKDEP,
    CONFIG_DEBUG_SPINLOCK,
    CONFIG_DEBUG_MUTEXES,
    CONFIG_PREEMPT_RT
)))]
const _: () = assert!(size_of::<Storage>() <= 248);

/// The bytes of one or more allocations.
#[pin_data]
pub(crate) struct Storage {
    backing: Backing<PinnedStorage>,
    /// The pages. They move only if the backing may.
    #[pin]
    memory: Movable<Place>,
    #[pin]
    slots: DmaSlots,
    bytes: CountedBytes,
    claim: Claim,
}

impl Storage {
    /// A storage of these pages, charged by `claim` and counted in `stats`.
    fn new(
        (backing, pages): Pages<PinnedStorage>,
        place: Place,
        stats: OwnStats,
        claim: Claim,
    ) -> DxgResult<Arc<Self>> {
        let counted = match &backing {
            // Its bytes are counted already.
            Backing::Part(_) => 0,
            _ => pages.count(),
        };

        Ok(pin_arc(
            pin_init!(Self {
                backing,
                memory <- Movable::new(place, pages),
                slots <- DmaSlots::new(),
                // CAST: a usize fits 64 bits.
                bytes: CountedBytes::new(stats, counted as u64 * PAGE_SIZE as u64),
                claim,
            }),
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

    /// New zeroed memory of this module.
    pub(crate) fn system(holder: &Arc<Holder>, stats: OwnStats, size: u64) -> DxgResult<Arc<Self>> {
        let count = pages_of(size)?;
        let claim = Self::claim(holder, count, 1)?;
        let pages = Backing::shmem(holder, count)?;

        Self::new(pages, Place::SystemMemory, stats, claim)
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
        let count = pages_of(size)?;
        let pages = Backing::user(holder, addr, count, write)?;
        let claim = Self::claim(holder, count, 0)?;

        Self::new(pages, Place::SystemMemory, stats, claim)
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
        let pages = Backing::section(holder, fd, count, write)?;
        let claim = Self::claim(holder, count, 1)?;

        Self::new(pages, Place::SystemMemory, stats, claim)
    }

    /// The first `size` bytes of this storage, for another allocation. Where this storage is may
    /// not suit the adapter of the other one, so it stays in place meanwhile.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn part(
        self: &Arc<Self>,
        holder: &Arc<Holder>,
        stats: OwnStats,
        size: u64,
    ) -> DxgResult<Arc<Self>> {
        let count = pages_of(size)?;

        if count > self.memory.count() {
            return Err(BadSection::TooShort.into());
        }

        // A part of a part becomes a part of the whole, so parts do not nest.
        let whole = PinnedStorage::new(self.whole(), count)?;
        let place = whole.storage.place();
        let pages = Backing::part(whole)?;

        Self::new(pages, place, stats, Self::claim(holder, 0, 0)?)
    }

    /// Keeps the bytes where they are as long as the result is there. Waits for a move.
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn pin(self: &Arc<Self>) -> DxgResult<PinnedStorage> {
        let mut pinned = PinnedStorage::new(self, self.memory.count())?;

        if let Backing::DmaBuf(buffer) = &self.backing {
            let attached = Attached::new(buffer.clone()).map_err(|error| self.not_shown(error))?;

            pinned.pages = Arc::new(attached, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(pinned)
    }

    /// Whether the bytes may be somewhere else, as long as nothing keeps them where they are.
    pub(crate) fn may_move(&self) -> bool {
        matches!(self.backing, Backing::Shmem)
    }

    /// How many pages it has.
    pub(crate) fn count(&self) -> usize {
        self.memory.count()
    }

    /// The pages now; during a move, those that the bytes come from.
    pub(crate) fn pages(&self) -> Arc<dyn PageSource> {
        self.memory.pages()
    }

    /// Moves the bytes to another backing, or says why not and changes nothing.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    pub(in crate::dxgk) fn move_to(
        &self,
        place: Place,
        pages: Arc<dyn PageSource>,
        by: &dyn CopyPages<Place>,
    ) -> core::result::Result<(), MoveError> {
        match &self.backing {
            Backing::Shmem => self.memory.move_to(place, pages, by),
            // The whole moves, once it has no parts.
            Backing::Part(_) => Err(MoveError::Pinned),
            Backing::User | Backing::Section | Backing::DmaBuf(_) => Err(MoveError::Fixed),
        }
    }

    /// Has the bytes of another backing instead of its own, which are dropped. It fails as
    /// [`Storage::move_to`] does.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    pub(in crate::dxgk) fn replace_by(
        &self,
        place: Place,
        pages: Arc<dyn PageSource>,
    ) -> core::result::Result<(), MoveError> {
        match &self.backing {
            Backing::Shmem => self.memory.replace_by(place, pages),
            // Nothing but the former was ever moved.
            _ => Err(MoveError::Fixed),
        }
    }

    /// Gives the pages of system memory back that the module keeps, so that the kernel may swap
    /// them (MEM-108). Says how many; `None` if something keeps them, or may do so now.
    ///
    /// Context: as for [`Movable::try_let_go`].
    pub(in crate::dxgk) fn try_let_go(&self) -> Option<usize> {
        self.may_move().then(|| self.memory.try_let_go(true))?
    }

    /// The same, and the bytes are zeros.
    ///
    /// Context: as above.
    pub(in crate::dxgk) fn try_drop_bytes(&self) -> Option<usize> {
        self.may_move().then(|| self.memory.try_let_go(false))?
    }

    /// Has system memory of zeros again, after `NoPages`; NO_MEMORY if there is none.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    pub(in crate::dxgk) fn commit(&self) -> DxgResult {
        let holder = self.claim.holder();
        let (_, pages) = Backing::<PinnedStorage>::shmem(holder, self.count())?;

        self.replace_by(Place::SystemMemory, pages)
            .map_err(|_| Status::NO_MEMORY.into())
    }

    /// Whether the bytes are in a buffer of another driver.
    pub(in crate::dxgk) fn is_imported(&self) -> bool {
        matches!(self.backing, Backing::DmaBuf(_))
    }

    /// The bytes, for showing them in a process.
    pub(crate) fn source(self: &Arc<Self>) -> Source {
        match &self.backing {
            Backing::DmaBuf(buffer) => Source::Buffer(buffer.clone()),
            _ => Source::Pages(self.clone()),
        }
    }

    /// Where the bytes are now.
    pub(crate) fn place(&self) -> Place {
        self.memory.place()
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
    fn exported(self: &Arc<Self>) -> &Arc<Self> {
        let whole = self.whole();

        if whole.memory.count() == self.memory.count() {
            whole
        } else {
            self
        }
    }

    /// Adds a user of the storage whose dma-bufs are those of this one.
    pub(in crate::dxgk) fn add_user(self: &Arc<Self>) -> User<Self> {
        User::new(self.exported().clone())
    }

    /// Whether there is a dma-buf of it.
    pub(super) fn is_exported(self: &Arc<Self>) -> bool {
        self.exported().slots.is_exported()
    }

    /// Drops the dma-bufs that nobody has any more; says how many.
    pub(super) fn drop_unused_exports(self: &Arc<Self>) -> u32 {
        self.exported().slots.drop_unused()
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        // CAST: a usize fits 64 bits.
        self.memory.count() as u64 * PAGE_SIZE as u64
    }

    /// Bytes that this keeps in memory now.
    pub(crate) fn resident(&self) -> u64 {
        // CAST: a usize fits 64 bits.
        self.memory.taken() as u64 * PAGE_SIZE as u64
    }

    /// How many pages its end frees, if at most `most` and nothing else shares them: no other
    /// driver, and no other user of the file or memory. Only tries locks.
    pub(in crate::dxgk) fn pages_at_most(self: &Arc<Self>, most: usize) -> Option<usize> {
        let whole = self.whole();

        match &whole.backing {
            // The table of pages goes too.
            Backing::Shmem if whole.memory.count() <= most * 64 => {
                whole.memory.try_taken().filter(|taken| *taken <= most)
            }
            _ => None,
        }
    }

    /// Makes the bytes ready for processors to use. Bytes of this module always are; a buffer of
    /// another driver may have to wait for its devices.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn begin_cpu_access(self: &Arc<Self>) -> DxgResult<CpuAccess> {
        if let Backing::DmaBuf(buffer) = &self.backing {
            buffer
                .begin_cpu_access()
                .map_err(|error| self.not_shown(error))?;
        }
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
        seq_print!(m, " backing={}", self.whole().backing.name());
        if let Backing::DmaBuf(buffer) = &self.backing {
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

impl Exported for Storage {
    fn slots(&self) -> &DmaSlots {
        &self.slots
    }
}

/// Processes see the pages where they are.
impl Memory for Storage {
    fn count(&self) -> usize {
        self.memory.count()
    }

    fn with_page(&self, index: usize, look: &mut dyn FnMut(&dyn PageSource)) -> Result {
        self.memory.with_page(index, look)
    }

    fn add_file(&self, file: &ShownFile) -> Result {
        self.memory.add_file(file)
    }

    fn remove_file(&self, file: &ShownFile) {
        self.memory.remove_file(file);
    }
}

/// An access by processors, until this is dropped. Context of the drop: may sleep, no locks held.
pub(crate) struct CpuAccess(Arc<Storage>);

impl Drop for CpuAccess {
    fn drop(&mut self) {
        if let Backing::DmaBuf(buffer) = &self.0.backing {
            buffer.end_cpu_access();
        }
    }
}

/// The first pages of a storage, which stays where it is as long as this is there: something has
/// addresses of its pages outside of page tables (MEM-27).
pub(in crate::dxgk) struct PinnedStorage {
    storage: Arc<Storage>,
    count: usize,
    /// INVARIANT: the pages of `storage`, whose memory this has pinned, unless it was unpinned. A
    /// dma-buf of another driver is attached as long as these are there.
    pages: Arc<dyn PageSource>,
    is_pinned: AtomicFlag,
}

impl PinnedStorage {
    /// The first `count` pages of `storage`. Waits for a move.
    ///
    /// Context: a system call, no locks held.
    fn new(storage: &Arc<Storage>, count: usize) -> DxgResult<Self> {
        Ok(Self {
            pages: storage.memory.pin().map_err(DxgError::from_errno)?,
            storage: storage.clone(),
            count,
            is_pinned: AtomicFlag::new(true),
        })
    }
}

impl PinnedStorage {
    /// Lets the storage move from here on. The pages are used no longer. False if this was called
    /// before.
    pub(in crate::dxgk) fn unpin(&self) -> bool {
        let was_pinned = self.is_pinned.xchg(false, Full);

        if was_pinned {
            self.storage.memory.unpin();
        }
        was_pinned
    }
}

impl Drop for PinnedStorage {
    fn drop(&mut self) {
        let _was_pinned = self.unpin();
    }
}

impl PageSource for PinnedStorage {
    fn count(&self) -> usize {
        self.count
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        if index >= self.count {
            return Err(EINVAL);
        }
        self.pages.page(index)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        if index >= self.count {
            return None;
        }
        self.pages.present(index)
    }

    fn taken(&self) -> usize {
        self.pages.taken().min(self.count)
    }
}
