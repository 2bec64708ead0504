// SPDX-License-Identifier: GPL-2.0

//! Pages that an owner keeps in place.

use crate::sys::{
    ffi,
    task::sleep, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    ffi::{
        c_uint,
        c_ulong, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// How processors keep the bytes of a frame in their caches.
///
/// This is what the owner asks for. Where an architecture knows better, because the same memory is
/// mapped elsewhere, the kernel decides: x86 looks at its table of memory types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// What is not cached comes with the first adapter that has such memory.
#[cfg_attr(not(CONFIG_KUNIT = "y"), allow(dead_code))]
pub(crate) enum Caching {
    /// As any memory.
    Cached,
    /// Writes are collected, reads are slow.
    WriteCombined,
    /// Not at all.
    Uncached,
}

/// A page frame number, as page tables have it, and how the frame is cached. It is valid while the
/// object that owns the page is alive. Memory behind a bus has no `struct page`.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    number: c_ulong,
    caching: Caching,
    /// INVARIANT: the page of this number, if it has one that the kernel's functions may use.
    page: Option<NonNull<bindings::page>>,
    _keeper: PhantomData<&'a ()>,
}

impl Frame<'_> {
    /// The frame of a page of the kernel.
    ///
    /// # Safety
    ///
    /// The page must stay allocated and in place for the lifetime of the result.
    pub(in crate::sys) unsafe fn of_page(page: NonNull<bindings::page>) -> Self {
        Self {
            // SAFETY: The page is allocated.
            number: unsafe { ffi::dxg_page_number(page.as_ptr()) },
            caching: Caching::Cached,
            page: Some(page),
            _keeper: PhantomData,
        }
    }

    /// A frame without a `struct page`, or with one that only its owner may use.
    ///
    /// # Safety
    ///
    /// For the lifetime of the result processes and engines may use whatever is at this number,
    /// with this caching.
    pub(in crate::sys) unsafe fn of_number(number: c_ulong, caching: Caching) -> Self {
        Self {
            number,
            caching,
            page: None,
            _keeper: PhantomData,
        }
    }

    /// Its number in page tables.
    pub(in crate::sys) fn number(self) -> c_ulong {
        self.number
    }

    /// Its address, as page tables of the GPU have it.
    pub(crate) fn physical(self) -> u64 {
        // CAST: a page frame number has at most 52 bits.
        (self.number as u64) * (PAGE_SIZE as u64)
    }

    /// How it is cached, as the C half says it.
    pub(in crate::sys) fn caching(self) -> ffi::dxg_caching {
        match self.caching {
            Caching::Cached => ffi::dxg_caching_DXG_CACHED,
            Caching::WriteCombined => ffi::dxg_caching_DXG_WRITE_COMBINED,
            Caching::Uncached => ffi::dxg_caching_DXG_UNCACHED,
        }
    }

    /// Whether it has a `struct page`.
    pub(in crate::sys) fn has_page(self) -> bool {
        self.page.is_some()
    }

    /// The page, for functions of the kernel that need one: EOPNOTSUPP for memory behind a bus.
    fn page(self) -> Result<NonNull<bindings::page>> {
        self.page.ok_or_else(|| Error::from_errno(-EOPNOTSUPP))
    }

    /// Where the kernel has it: EOPNOTSUPP for memory behind a bus, or that it has nowhere. Valid
    /// as long as the page is there.
    pub(in crate::sys) fn address(self) -> Result<NonNull<u8>> {
        let page = self.page()?;
        // SAFETY: The page is allocated; without a place in the direct map the result is null.
        let address = unsafe { ffi::dxg_page_address(page.as_ptr()) };

        NonNull::new(address.cast()).ok_or_else(|| Error::from_errno(-EOPNOTSUPP))
    }

    /// Fills it with zeros: EOPNOTSUPP if it has no `struct page`. Does not sleep, and fails for no
    /// other reason.
    pub(crate) fn clear(self) -> Result {
        let page = self.page()?;

        // SAFETY: The page is allocated for the lifetime of its frame. C writes to it, so that
        // others may use it meanwhile.
        unsafe { ffi::dxg_page_clear(page.as_ptr()) };
        Ok(())
    }

    /// Copies its bytes to another page: EOPNOTSUPP if one of them has no `struct page`. Does not
    /// sleep, and fails for no other reason.
    pub(in crate::sys) fn copy_to(self, to: Frame<'_>) -> Result {
        let (from, to) = (self.page()?, to.page()?);

        // SAFETY: Both pages are allocated for the lifetime of their frames. C copies them, so that
        // others may use them meanwhile.
        unsafe { ffi::dxg_page_copy(to.as_ptr(), from.as_ptr()) };
        Ok(())
    }
}

/// There is no such operation for this kind of memory.
// CAST: a small number.
const EOPNOTSUPP: i32 = bindings::EOPNOTSUPP as i32;

/// Memory in pages.
pub(crate) trait PageSource: Send + Sync {
    /// How many pages it has; never changes.
    fn count(&self) -> usize;

    /// The page at an index, taken now if it was not there yet. May sleep and fail, even below
    /// [`PageSource::count`]: a file may have been truncated.
    fn page(&self, index: usize) -> Result<Frame<'_>>;

    /// The page at an index, if it is there already. Does not sleep.
    fn present(&self, index: usize) -> Option<Frame<'_>>;

    /// Where a page is for a device, if it is there already: its physical address, or the offset in
    /// memory of the device. Does not sleep.
    fn device_address(&self, index: usize) -> Option<u64> {
        self.device_run(index, 1).map(|(address, _)| address)
    }

    /// The same, and how many pages from there on follow each other for the device: with that one,
    /// at most `most`.
    fn device_run(&self, index: usize, most: usize) -> Option<(u64, usize)> {
        let first = self.present(index)?.physical();
        let next = (first..).step_by(PAGE_SIZE);
        let present = (index..self.count()).map(|index| self.present(index).map(Frame::physical));
        let follow = present.zip(next).take(most);

        Some((
            first,
            follow.take_while(|(at, next)| *at == Some(*next)).count(),
        ))
    }

    /// Whether all pages are there, each with a `struct page`, and stay. Does not sleep.
    fn is_complete(&self) -> bool {
        false
    }

    /// How many pages are there. Counts a page soon after it is there.
    fn taken(&self) -> usize;

    /// Pays for all pages that are not there yet, where somebody pays for each: until they are
    /// taken, or [`PageSource::pay_back`]. All or nothing. So whoever wants many pages is refused
    /// before the first of them is taken.
    fn pay_ahead(&self) -> Result {
        Ok(())
    }

    /// Ends what was paid for and not taken.
    fn pay_back(&self) {}

    /// Takes all pages whose bytes may be other than zeros, where they can be there without being
    /// taken. May sleep and fail.
    fn take_used(&self) -> Result {
        Ok(())
    }

    /// The same bytes, of which no page is taken yet. Takes no memory. `None` if the pages stay
    /// until the end, or none is taken.
    fn untaken(&self) -> Option<Arc<dyn PageSource>> {
        None
    }

    /// All bytes are zeros from now on, and take no memory. No page is taken, and none is being
    /// taken. False if that is not possible.
    ///
    /// Context: may sleep, where memory is short.
    fn drop_bytes(&self) -> bool {
        false
    }
}

/// The most pages that one array describes. The kernel's allocator of large arrays ends at 2^31
/// bytes, and warns above.
pub(crate) const MAX_PAGES: usize = (1 << 30) / size_of::<usize>();

/// Pages between two checks whether the caller was killed.
const BATCH: usize = 512;

/// All pages of a memory, and the memory that keeps them: in the form that the kernel's functions
/// take.
pub(crate) struct Whole {
    /// INVARIANT: the pages of `keeper`, which keeps each of them where it is.
    pages: KVVec<*mut bindings::page>,
    _keeper: Arc<dyn PageSource>,
}

// SAFETY: The array does not change, and pages may be used by any thread.
unsafe impl Send for Whole {}
// SAFETY: As above.
unsafe impl Sync for Whole {}

impl Whole {
    /// Takes all pages of `keeper`: EINTR if the caller is killed meanwhile, EOPNOTSUPP for memory
    /// without `struct page`. The pages must stay where they are as long as `keeper`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(keeper: Arc<dyn PageSource>) -> Result<Self> {
        let count = keeper.count();

        if count > MAX_PAGES {
            return Err(ENOMEM);
        }

        let mut pages = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

        for index in 0..count {
            if index % BATCH == 0 && sleep::is_killed() {
                return Err(EINTR);
            }
            let page = keeper.page(index)?.page()?;

            pages.push(page.as_ptr(), GFP_KERNEL_ACCOUNT)?;
        }
        // INVARIANT: By the requirement of this function.
        Ok(Self {
            pages,
            _keeper: keeper,
        })
    }

    /// The array and its length, for functions that only read it.
    pub(in crate::sys) fn as_raw(&self) -> (*mut *mut bindings::page, c_uint) {
        // CAST: at most `MAX_PAGES`.
        (self.pages.as_ptr().cast_mut(), self.pages.len() as c_uint)
    }
}

impl PageSource for Whole {
    fn count(&self) -> usize {
        self.pages.len()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        let page = self.pages.get(index).copied().and_then(NonNull::new)?;

        // SAFETY: By the invariant of `pages`, as long as `self` keeps the keeper.
        Some(unsafe { Frame::of_page(page) })
    }

    fn taken(&self) -> usize {
        self.pages.len()
    }
}
