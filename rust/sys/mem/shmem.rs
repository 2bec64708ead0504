// SPDX-License-Identifier: GPL-2.0

//! Memory of a shmem file: a new one, or a memfd of a client.
//!
//! A page is taken from the file at its first touch and charged to the memory cgroup of the task
//! that touches it. A reference keeps it, and keeps it in place, until the [`Shmem`] is dropped.
//! [`Payer`] is charged for it as long.
//!
//! Several of them can have the same new file, one after the other: the bytes are in the file.
//! While none has a page, the kernel may swap them; otherwise the file says that this is in vain
//! (MEM-108).
//!
//! To make and to end a file costs more than all else that small memory needs. So a payer keeps the
//! last small one as a [`SpareFile`]. It has no pages then, and is as good as new for memory of the
//! same size.

use super::{
    page_slots::PageSlots,
    pages::{
        Frame,
        PageSource,
        MAX_PAGES, //
    }, //
};
use crate::sys::{
    alloc::pin_arc,
    ffi,
    task::sleep,
    work, //
};
use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
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
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        SetOnce,
        SpinLock,
        UniqueArc, //
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
pub(crate) trait Payer: Clone + Send + Sync + 'static {
    /// Where the file of memory that is gone waits for the next memory.
    fn spare(&self) -> &SpareFile;

    /// Charges one more page; false over the limit.
    fn take_page(&self) -> bool;

    /// Charges so many more pages, or none; false over the limit.
    fn take_pages(&self, pages: usize) -> bool;

    /// Releases the charge of so many pages.
    fn give_back(&self, pages: usize);
}

/// Pages of the largest file that is kept. They stay reserved.
const SPARE_PAGES: usize = 16;

/// A file without pages that nobody uses, and of how many pages it is. LOCK: leaf.
#[pin_data]
pub(crate) struct SpareFile {
    #[pin]
    file: SpinLock<Option<(usize, Pin<UniqueArc<ShmemFile>>)>>,
}

impl SpareFile {
    /// None yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            file <- new_spinlock!(None, "SpareFile::file"),
        })
    }

    /// Takes it, if it has so many pages.
    fn take(&self, count: usize) -> Option<Arc<ShmemFile>> {
        let (_, file) = self.file.lock().take_if(|(pages, _)| *pages == count)?;

        Some(file.into())
    }

    /// Keeps this one instead, which has so many pages, if it is small and this was the last user.
    ///
    /// Context: may sleep, no locks held.
    fn put(&self, file: Arc<ShmemFile>, count: usize) {
        let may_be_kept = file.is_new && count <= SPARE_PAGES;
        let Some(file) = Arc::into_unique_or_drop(file).filter(|_| may_be_kept) else {
            return;
        };

        if file.is_touched.xchg(false, Relaxed) {
            file.drop_bytes();
        }

        // Dropped after the lock.
        let _before = self.file.lock().replace((count, file));
    }
}

/// Pages that are given back at a time.
const BATCH: usize = 15;

/// Pages between two checks whether the caller was killed.
const STEP: usize = 512;

/// Over a limit.
// CAST: a small number.
const EDQUOT: i32 = bindings::EDQUOT as i32;

/// `FMODE_READ` of a file's mode.
const FMODE_READ: u32 = 1 << 0;

/// The right to write to a shmem file, which others could seal: until it is dropped they cannot.
struct WriteRight(ARef<File>);

impl WriteRight {
    /// Takes it; EACCES if the descriptor, a seal or the file forbids that.
    fn new(file: &ARef<File>) -> Result<Self> {
        // SAFETY: This is an open shmem file.
        to_result(unsafe { ffi::dxg_shmem_get_write(file.as_ptr()) })?;

        Ok(Self(file.clone()))
    }
}

impl Drop for WriteRight {
    fn drop(&mut self) {
        // SAFETY: `dxg_shmem_get_write` succeeded for this file.
        unsafe { ffi::dxg_shmem_put_write(self.0.as_ptr()) }
    }
}

/// A shmem file that we may write to, if that was asked for.
#[pin_data]
struct ShmemFile {
    file: ARef<File>,
    _write_right: Option<WriteRight>,
    /// It was made here, so that nobody else uses it.
    is_new: bool,
    /// It may have pages.
    is_touched: AtomicFlag,
    /// How many have pages of a new file. LOCK: leaf.
    #[pin]
    users: SpinLock<usize>,
}

impl ShmemFile {
    fn new(file: ARef<File>, write_right: Option<WriteRight>, is_new: bool) -> impl PinInit<Self> {
        pin_init!(Self {
            file,
            _write_right: write_right,
            is_new,
            is_touched: AtomicFlag::new(false),
            users <- new_spinlock!(0, "ShmemFile::users"),
        })
    }

    /// A file of zeros. Reserves so many pages.
    fn of_zeros(count: usize) -> Result<Arc<Self>> {
        let size = count.checked_mul(PAGE_SIZE).ok_or(ENOMEM)?;
        // SAFETY: May be called by any task; the result is an error or owns a reference.
        let file = from_err_ptr(unsafe { ffi::dxg_shmem_new(size as u64) })?;
        let file = NonNull::new(file).ok_or(ENOMEM)?;
        // SAFETY: We own the only reference to a new file.
        let file = unsafe { ARef::from_raw(file.cast()) };

        Ok(pin_arc(Self::new(file, None, true), GFP_KERNEL_ACCOUNT)?)
    }

    /// All its bytes become zeros, which take no memory.
    fn drop_bytes(&self) {
        // SAFETY: The file is an open shmem file.
        unsafe { ffi::dxg_shmem_drop(self.file.as_ptr()) }
    }

    /// Somebody has pages of it.
    fn add_user(&self) {
        let mut users = self.users.lock();

        *users += 1;
        self.set_unevictable(true);
    }

    /// Somebody is about to give all pages back.
    fn remove_user(&self) {
        let mut users = self.users.lock();

        *users -= 1;
        self.set_unevictable(*users != 0);
    }

    fn set_unevictable(&self, unevictable: bool) {
        // SAFETY: The file is an open shmem file.
        unsafe { ffi::dxg_shmem_set_unevictable(self.file.as_ptr(), unevictable) }
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
    /// There until the drop.
    file: ManuallyDrop<Arc<ShmemFile>>,
    /// There were others before it, so that pages may have bytes that are not taken.
    is_used: bool,
    /// The one that may come after it. INVARIANT: it is there if a page of a new file is, and this
    /// is a user of the file then.
    untaken: SetOnce<Arc<Self>>,
}

impl<P: Payer> Shmem<P> {
    /// Zeroed memory. Takes no pages yet, but makes sure that there will be enough.
    pub(crate) fn new(count: usize, payer: P) -> Result<Self> {
        let file = match payer.spare().take(count) {
            Some(spare) => spare,
            None => ShmemFile::of_zeros(count)?,
        };

        Self::of_file(file, count, payer, false)
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

        // SAFETY: We never use the position of the file.
        let file = unsafe { LocalFile::assume_no_fdget_pos(file) };
        let write_right = match write {
            true => Some(WriteRight::new(&file).map_err(|_| BadSection::Denied)?),
            false => None,
        };
        let file = pin_arc(ShmemFile::new(file, write_right, false), GFP_KERNEL_ACCOUNT)
            .map_err(|_| BadSection::Failed(ENOMEM))?;

        Ok(Self::of_file(file, count, payer, false)?)
    }

    fn of_file(file: Arc<ShmemFile>, count: usize, payer: P, is_used: bool) -> Result<Self> {
        if count > MAX_PAGES {
            return Err(ENOMEM);
        }
        Ok(Self {
            slots: PageSlots::new(count, GFP_KERNEL_ACCOUNT)?,
            taken: Atomic::new(0),
            prepaid: Atomic::new(0),
            payer,
            file: ManuallyDrop::new(file),
            is_used,
            untaken: SetOnce::new(),
        })
    }

    /// Makes what takes the place of this when the pages are given back: then there may be no
    /// memory for it.
    fn make_untaken(&self) -> Result {
        if !self.file.is_new || self.untaken.as_ref().is_some() {
            return Ok(());
        }

        let file = Arc::clone(&self.file);
        let untaken = Self::of_file(file, self.count(), self.payer.clone(), true)?;
        let untaken = Arc::new(untaken, GFP_KERNEL_ACCOUNT)?;

        if self.untaken.populate(untaken) {
            self.file.add_user();
        }
        Ok(())
    }

    /// Gives references of pages back.
    fn put(&self, pages: &mut [*mut bindings::page]) {
        // SAFETY: The caller owns a reference to each page, and there are as many as the helper
        // takes.
        unsafe { ffi::dxg_shmem_put_pages(pages.as_mut_ptr(), pages.len() as u32) };
    }

    /// The first page from an index on that may have other bytes than zeros.
    fn next_used(&self, index: usize) -> Option<usize> {
        // SAFETY: The file is an open shmem file.
        let next = unsafe { ffi::dxg_shmem_next_used(self.file.file.as_ptr(), index) };

        usize::try_from(next)
            .ok()
            .filter(|next| *next < self.count())
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
        self.make_untaken()?;
        self.file.is_touched.store(true, Relaxed);
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
            // Nobody has seen the page here.
            self.put(&mut [fresh.as_ptr()]);
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

    fn device_run(&self, index: usize, most: usize) -> Option<(u64, usize)> {
        let (page, count) = self.slots.following(index, most)?;
        // SAFETY: As in `present`.
        let first = unsafe { Frame::of_page(page) };

        Some((first.physical(), count))
    }

    fn is_complete(&self) -> bool {
        self.taken() == self.count()
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
    fn take_used(&self) -> Result {
        let mut next = if self.is_used {
            self.next_used(0)
        } else {
            None
        };
        let mut seen = 0usize;

        while let Some(index) = next {
            self.page(index)?;
            seen = seen.wrapping_add(1);
            if seen % STEP == 0 {
                if sleep::is_killed() {
                    return Err(EINTR);
                }
                work::breathe();
            }
            next = self.next_used(index.saturating_add(1));
        }
        Ok(())
    }

    fn untaken(&self) -> Option<Arc<dyn PageSource>> {
        let untaken: Arc<dyn PageSource> = self.untaken.as_ref()?.clone();

        Some(untaken)
    }

    fn drop_bytes(&self) -> bool {
        if self.file.is_new {
            self.file.drop_bytes();
        }
        self.file.is_new
    }
}

impl<P: Payer> Drop for Shmem<P> {
    fn drop(&mut self) {
        let mut batch = [ptr::null_mut(); BATCH];
        let mut given_back = 0;

        if self.untaken.as_ref().is_some() {
            self.file.remove_user();
        }

        // By the type invariant each slot owns a reference; nobody looks at it again.
        for page in self.slots.pages() {
            if let Some(place) = batch.get_mut(given_back % BATCH) {
                *place = page.as_ptr();
            }
            given_back += 1;
            if given_back % BATCH == 0 {
                self.put(&mut batch);
                work::breathe();
            }
        }
        if let Some(rest) = batch.get_mut(..given_back % BATCH) {
            self.put(rest);
        }
        self.payer.give_back(given_back);
        self.pay_back();

        // SAFETY: Nobody uses it after this.
        let file = unsafe { ManuallyDrop::take(&mut self.file) };

        self.payer.spare().put(file, self.count());
    }
}
