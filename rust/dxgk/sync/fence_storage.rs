// SPDX-License-Identifier: GPL-2.0

//! Where CurrentValue of a monitored fence lives.
//!
//! A shareable fence has a page of its own. The other fences of a process are packed into common
//! pages, 64 bytes apart, so that making one costs no mapping (FEN-13, FEN-61). Two processes never
//! share a common page.
//!
//! A common page is mapped in its process as long as the process has a handle of any fence in it,
//! even if other references keep the fence (FEN-12). Then it leaves the pool. A slot is free again
//! when the memory of its fence goes. Any task may do that; it unmaps nothing.

use super::fence_mappings::FenceMappings;
use crate::dxgk::stats::{
    Counted,
    PAGES, //
};
use crate::{
    error::DxgResult,
    platform::Word64,
    sys::mem::{
        mapping::Mapped,
        value_page::ValuePage, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// Bytes between two slots of a common page.
const STRIDE: usize = 64;
/// Slots in a common page: one bit each in [`StoragePage::taken`].
const SLOTS: u32 = 64;

/// A page, counted.
struct CountedPage {
    page: Arc<ValuePage>,
    _counted: Counted,
}

impl CountedPage {
    fn new() -> Result<Self, AllocError> {
        Ok(Self {
            page: Arc::new(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?,
            _counted: PAGES.enter(),
        })
    }
}

/// A common page, mapped in its process. LOCK: `taken` and `index` are only touched under
/// `FenceStoragePool::state`.
struct StoragePage {
    counted: CountedPage,
    mapped: Mapped,
    /// Bit n is set while slot n is taken.
    taken: Atomic<u64>,
    /// How many handles the process has of fences in it. The page leaves the pool with the last
    /// one. Goes up, and to 0, under the lock only.
    open: Atomic<u32>,
    /// Where the page is in `PoolState::pages`; [`NOWHERE`] once it has left.
    index: Atomic<usize>,
}

/// Instead of a place in the pool.
const NOWHERE: usize = usize::MAX;

impl StoragePage {
    /// Takes a free slot, if there is one.
    fn take(&self) -> Option<u32> {
        let taken = self.taken.load(Relaxed);
        let slot = taken.trailing_ones();

        (slot < SLOTS).then(|| {
            self.taken.store(taken | 1 << slot, Relaxed);
            slot
        })
    }

    /// Gives a slot back.
    fn put(&self, slot: u32) {
        let left = self.taken.load(Relaxed) & !(1 << (slot % SLOTS));

        self.taken.store(left, Relaxed);
    }

    /// Counts one more handle of the process.
    fn enter(&self) {
        // OVERFLOW: bounded by the handles of the process.
        self.open.add(1, Relaxed);
    }

    /// Counts one less, unless that is the last one.
    fn leave(&self) -> bool {
        let mut count = self.open.load(Relaxed);

        while count > 1 {
            match self.open.cmpxchg(count, count - 1, Full) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }
}

/// The common pages of one process.
#[pin_data]
pub(crate) struct FenceStoragePool {
    mappings: Arc<FenceMappings>,
    /// LOCK: leaf. Dropping the last reference to a fence takes it, so nothing sleeps under it.
    #[pin]
    state: SpinLock<PoolState>,
}

struct PoolState {
    /// Pages in any order.
    pages: KVec<Arc<StoragePage>>,
    /// No page before this one has a free slot.
    first_free: usize,
}

impl PoolState {
    /// Takes a free slot of a page that has one, for a handle of the process.
    fn take(&mut self) -> Option<(Arc<StoragePage>, u32)> {
        while let Some(page) = self.pages.get(self.first_free) {
            if let Some(slot) = page.take() {
                page.enter();
                return Some((page.clone(), slot));
            }
            self.first_free += 1;
        }
        None
    }

    /// Adds a page, if there is room, for which `more` may be a longer list than the present one.
    /// What is not needed is left in `more`, to be dropped without the lock.
    fn add(&mut self, page: &Arc<StoragePage>, more: &mut KVec<Arc<StoragePage>>) -> bool {
        if self.pages.len() == self.pages.capacity() && more.capacity() > self.pages.len() {
            core::mem::swap(&mut self.pages, more);
            for page in more.drain_all() {
                // There is more room than before.
                let _room = self.pages.push_within_capacity(page);
            }
        }

        let index = self.pages.len();
        let added = self.pages.push_within_capacity(page.clone()).is_ok();

        if added {
            page.index.store(index, Relaxed);
        }
        added
    }

    /// Gives a slot back, for which the page has room again if it is in the pool.
    fn put(&mut self, page: &StoragePage, slot: u32) {
        page.put(slot);
        self.first_free = self.first_free.min(page.index.load(Relaxed));
    }

    /// Adds a handle; false if the page has left the pool, so that it is no longer mapped.
    fn enter_again(&mut self, page: &StoragePage) -> bool {
        let mapped = page.index.load(Relaxed) != NOWHERE;

        if mapped {
            page.enter();
        }
        mapped
    }

    /// Removes a handle of the process; returns the page if that was the last one.
    fn leave(&mut self, page: &StoragePage) -> Option<Arc<StoragePage>> {
        if page.open.fetch_sub(1, Full) != 1 {
            return None;
        }

        let index = page.index.xchg(NOWHERE, Relaxed);

        self.first_free = self.first_free.min(index);
        // The last page takes the place of the one that goes.
        let last = self.pages.pop()?;

        match self.pages.get_mut(index) {
            Some(place) => {
                last.index.store(index, Relaxed);
                Some(core::mem::replace(place, last))
            }
            None => Some(last),
        }
    }
}

impl FenceStoragePool {
    /// The pool of the process behind `mappings`, empty.
    pub(crate) fn new(mappings: Arc<FenceMappings>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                mappings,
                state <- new_spinlock!(
                    PoolState {
                        pages: KVec::new(),
                        first_free: 0,
                    },
                    "FenceStoragePool::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// A slot that shows `value`, and its address in the process, which is about to open it.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn slot(self: &Arc<Self>, value: u64) -> DxgResult<(FenceStorage, usize)> {
        let taken = self.state.lock().take();
        let (page, index) = match taken {
            Some(found) => found,
            None => (self.grow()?, 0),
        };
        // CAST: a slot number is below 64.
        let offset = index as usize * STRIDE;
        let addr = page.mapped.addr + offset;
        let slot = FenceStorage {
            page: page.counted.page.clone(),
            word: offset / size_of::<u64>(),
            home: Home::Pool {
                pool: self.clone(),
                page,
                slot: index,
                first: Atomic::new(true),
            },
        };

        crate::platform::store_release(slot.word(), value);
        Ok((slot, addr))
    }

    /// Adds a page whose first slot is taken and opened.
    fn grow(&self) -> DxgResult<Arc<StoragePage>> {
        let counted = CountedPage::new()?;
        let mapped = self.mappings.map(&counted.page)?;
        let page = Arc::new(
            StoragePage {
                counted,
                mapped,
                taken: Atomic::new(1),
                open: Atomic::new(1),
                index: Atomic::new(NOWHERE),
            },
            GFP_KERNEL_ACCOUNT,
        );

        Ok(page
            .and_then(|page| self.add(&page).map(|()| page))
            .inspect_err(|_| self.mappings.unmap(mapped))?)
    }

    fn add(&self, page: &Arc<StoragePage>) -> Result<(), AllocError> {
        let mut more = KVec::new();

        loop {
            let room = {
                let mut state = self.state.lock();

                if state.add(page, &mut more) {
                    return Ok(());
                }
                state.pages.capacity()
            };

            more = KVec::with_capacity(room.saturating_mul(2).max(8), GFP_KERNEL_ACCOUNT)?;
        }
    }

    /// Removes a handle of a fence in `page`.
    ///
    /// Context: may sleep, no locks held.
    fn leave(&self, page: &StoragePage) {
        if page.leave() {
            return;
        }

        let unused = self.state.lock().leave(page);

        if let Some(page) = unused {
            self.mappings.unmap(page.mapped);
        }
    }
}

/// Where a slot belongs.
enum Home {
    /// A page of its own.
    Alone { _counted: CountedPage },
    /// A common page of a process.
    Pool {
        pool: Arc<FenceStoragePool>,
        page: Arc<StoragePage>,
        slot: u32,
        /// Whether the handle that it was made for is counted and was not made yet.
        first: Atomic<bool>,
    },
}

/// One CurrentValue word.
///
/// Written by its fence only, under the fence lock. Read at any time, also by processes through
/// their read-only mapping.
pub(crate) struct FenceStorage {
    page: Arc<ValuePage>,
    word: usize,
    home: Home,
}

impl FenceStorage {
    /// A slot in a page of its own that shows `value`, not mapped anywhere yet.
    pub(crate) fn alone(value: u64) -> Result<Self, AllocError> {
        let counted = CountedPage::new()?;
        let slot = Self {
            page: counted.page.clone(),
            word: 0,
            home: Home::Alone { _counted: counted },
        };

        crate::platform::store_release(slot.word(), value);
        Ok(slot)
    }

    /// The word.
    pub(crate) fn word(&self) -> &Word64 {
        self.page.word(self.word)
    }

    /// The page, if no other fence has a slot in it.
    pub(crate) fn own_page(&self) -> Option<&Arc<ValuePage>> {
        match self.home {
            Home::Alone { .. } => Some(&self.page),
            Home::Pool { .. } => None,
        }
    }
}

impl FenceStorage {
    /// Counts a handle in the process of `mappings`, if that is the process that has the slot
    /// mapped. True if so; then the handle calls [`FenceStorage::close`] at its end.
    pub(crate) fn open_in(&self, mappings: &Arc<FenceMappings>) -> bool {
        match &self.home {
            Home::Pool {
                pool, page, first, ..
            } if Arc::ptr_eq(&pool.mappings, mappings) => {
                first.xchg(false, Relaxed) || pool.state.lock().enter_again(page)
            }
            _ => false,
        }
    }

    /// Removes a handle in the process that has the slot mapped; the last one of all in the page
    /// unmaps it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        if let Home::Pool { pool, page, .. } = &self.home {
            pool.leave(page);
        }
    }
}

impl Drop for FenceStorage {
    /// Context: may sleep, no locks held; any task, unless no handle was ever made.
    fn drop(&mut self) {
        if let Home::Pool {
            pool,
            page,
            slot,
            first,
        } = &self.home
        {
            pool.state.lock().put(page, *slot);
            if first.load(Relaxed) {
                pool.leave(page);
            }
        }
    }
}
