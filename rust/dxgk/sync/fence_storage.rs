// SPDX-License-Identifier: GPL-2.0

//! Where CurrentValue of a monitored fence lives.
//!
//! A shareable fence has a page of its own. The other fences of a process are packed into common
//! pages, 64 bytes apart, so that making one costs no mapping (FEN-13). A GPU may want another
//! distance for native fences (FEN-61). Two processes never share a common page.
//!
//! A common page is mapped in its process as long as the process has a handle of any fence in it,
//! even if other references keep the fence (FEN-12). Then it is *idle*. The pool keeps the last
//! page that became idle, mapped, until the process closes the device, so that a process whose only
//! fence comes and goes maps nothing. Each other one leaves the pool.
//!
//! A slot comes back when the memory of its fence goes. Any task may do that; it unmaps nothing.
//! Before the slot is used again the page is checked: a child that was forked meanwhile, or a place
//! that the owner has moved the page to, would show another fence than before, and where the owner
//! has unmapped it there is nothing. One check is good for all slots that came back before it,
//! until the mapping of the page is copied or removed again. A page that has a child is checked
//! again when another of its slots comes back, and in turn before a new page is taken.

use super::fence_mappings::FenceMappings;
use crate::dxgk::{
    stats::{
        self,
        Counted,
        Module,
        PAGES, //
    },
    vidmm::{
        fence_memory::FenceMemory,
        fence_page::FencePage, //
    }, //
};
use crate::{
    ddi::fence_storage::FenceWord,
    error::DxgResult,
    logic::{
        classes::{
            Classes,
            PageClass, //
        },
        fence_slots::{
            Check,
            FenceSlots,
            SLOTS, //
        },
        fence_value::NOBODY_WAITS, //
    },
    platform::{
        load_acquire,
        store_release,
        Word64, //
    },
    sys::{
        mem::{
            mapping::Mapped,
            value_page::ValuePage, //
        },
        strong_count::StrongCount, //
    }, //
};
use core::ptr;
use kernel::{
    alloc::AllocError,
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// Bytes between two slots of a common page, unless a GPU wants another distance.
pub(super) const STRIDE: usize = 64;
/// Pages that one creation checks for slots before it takes a new page.
const CHECKS: u32 = 4;

/// A page and its place in the stats.
pub(crate) struct CountedPage {
    pub(super) page: FencePage,
    _counted: Counted<Module, PAGES>,
}

impl CountedPage {
    pub(super) fn new() -> Result<Self, AllocError> {
        Ok(Self::of(FencePage::new()?))
    }

    fn of(page: FencePage) -> Self {
        Self {
            page,
            _counted: Counted::new(Module),
        }
    }

    /// No fence is in it: it does not count.
    fn rest(&self) {
        stats::sub::<PAGES>(&Module, 1);
    }

    /// Ends what [`CountedPage::rest`] began.
    fn resume(&self) {
        stats::add::<PAGES>(&Module, 1);
    }
}

impl Drop for CountedPage {
    fn drop(&mut self) {
        self.page.end();
    }
}

/// The same of a fence alone, which is in system memory for good.
pub(crate) struct OwnPage {
    page: Arc<ValuePage>,
    _counted: Counted<Module, PAGES>,
}

impl OwnPage {
    fn new() -> Result<Self, AllocError> {
        Ok(Self {
            page: Arc::new(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?,
            _counted: Counted::new(Module),
        })
    }
}

/// A common page, mapped in its process. LOCK: `index` is only touched under
/// `FenceStoragePool::state`.
pub(crate) struct StoragePage {
    pool: Arc<FenceStoragePool>,
    counted: CountedPage,
    /// The page of MonitoredValue, in the same slots, if these are native fences (FEN-60, FEN-61).
    monitored: Option<CountedPage>,
    /// Where the process sees it; `None` if only its GPU does.
    mapped: Option<Mapped>,
    /// How many handles the process has of fences in it; 1 if it is idle. Goes up under the lock
    /// only.
    open: StrongCount,
    /// Where the page is in `PoolState::pages`; [`NOWHERE`] once it has left.
    index: Atomic<usize>,
}

impl StoragePage {
    /// No fence is in it: it does not count.
    fn rest(&self) {
        self.counted.rest();
        if let Some(monitored) = &self.monitored {
            monitored.rest();
        }
    }

    /// Ends what [`StoragePage::rest`] began.
    fn resume(&self) {
        self.counted.resume();
        if let Some(monitored) = &self.monitored {
            monitored.resume();
        }
    }
}

/// Instead of a place in the pool.
const NOWHERE: usize = usize::MAX;

/// What the fences of a pool are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolKind {
    /// Monitored fences.
    Monitored,
    /// Native ones, that CPUs and engines use.
    Native,
    /// Native ones, that packets alone use: the process does not see them (FEN-130).
    IntraGpu,
}

/// The common pages of one process.
#[pin_data]
pub(crate) struct FenceStoragePool {
    mappings: Arc<FenceMappings>,
    /// Bytes between two slots: a power of two from 8 to 4096.
    stride: usize,
    kind: PoolKind,
    /// LOCK: leaf. Dropping the last reference to a fence takes it, so nothing sleeps under it.
    #[pin]
    state: SpinLock<PoolState>,
}

/// A page in the pool.
struct Pooled {
    page: Arc<StoragePage>,
    slots: FenceSlots,
}

struct PoolState {
    /// Pages in the order of `classes`.
    pages: KVec<Pooled>,
    classes: Classes,
    /// Where the search for a page whose child is gone goes on.
    in_turn: usize,
    /// The page that is kept without a handle.
    idle: Option<Arc<StoragePage>>,
    /// Whether the process has closed the device: then no page is kept.
    is_closed: bool,
}

/// Exchanges two pages in the list.
fn exchange(pages: &mut [Pooled], one: usize, other: usize) {
    pages.swap(one, other);
    for index in [one, other] {
        if let Some(Pooled { page, .. }) = pages.get(index) {
            page.index.store(index, Relaxed);
        }
    }
}

impl PoolState {
    /// Puts a page into the class that its slots make of it. `came_back`: stale slots came back
    /// since it was checked.
    fn sort(&mut self, index: usize, came_back: bool) {
        let Some(Pooled { slots, .. }) = self.pages.get(index) else {
            return;
        };
        let class = if slots.has_free() {
            PageClass::Free
        } else if came_back && slots.has_stale() {
            PageClass::Stale
        } else {
            PageClass::Rest
        };

        self.move_to(index, class);
    }

    /// Puts a page into a class; returns its new index.
    fn move_to(&mut self, index: usize, class: PageClass) -> usize {
        let pages = &mut self.pages;

        self.classes
            .sort(index, class, |from, to| exchange(pages, from, to))
    }

    /// Takes a slot of a page that has one, for a handle of the process. Looks at a few pages only:
    /// after a fork none of them may have any more.
    fn take(&mut self) -> Option<(Arc<StoragePage>, u32)> {
        for _ in 0..CHECKS {
            let index = self.classes.first(PageClass::Free)?;
            let Pooled { page, slots } = self.pages.get_mut(index)?;
            let slot = slots.take(page.counted.page.home().changes());
            let page = page.clone();

            self.sort(index, true);
            if let Some(slot) = slot {
                self.enter(&page);
                return Some((page, slot));
            }
        }
        None
    }

    /// Begins the check of a page.
    fn begin_check(&mut self) -> Option<(Arc<StoragePage>, Check)> {
        let index = self
            .classes
            .first(PageClass::Stale)
            .or_else(|| self.next_in_turn())?;
        let Pooled { page, slots } = self.pages.get_mut(index)?;
        let check = slots.begin_check(page.counted.page.home().changes());
        let page = page.clone();

        self.sort(index, false);
        Some((page, check))
    }

    /// The next page with stale slots, of those that had a child when they were checked.
    fn next_in_turn(&mut self) -> Option<usize> {
        let first = self.classes.first(PageClass::Rest)?;

        for _ in 0..CHECKS {
            let index = self.in_turn.max(first);
            let Some(Pooled { slots, .. }) = self.pages.get(index) else {
                self.in_turn = 0;
                return None;
            };

            self.in_turn = index + 1;
            if slots.has_stale() {
                return Some(index);
            }
        }
        None
    }

    /// Ends the check of a page, if the page is still in the pool.
    fn end_check(&mut self, page: &StoragePage, check: Check, is_alone: bool) {
        let index = page.index.load(Relaxed);
        let came_back = self.classes.of(index) == PageClass::Stale;

        if let Some(Pooled { slots, .. }) = self.pages.get_mut(index) {
            slots.end_check(check, is_alone);
            self.sort(index, came_back);
        }
    }

    /// Adds a page with so many slots, if there is room, for which `more` may be a longer list than
    /// the present one. What is not needed is left in `more`, to be dropped without the lock.
    fn add(&mut self, page: &Arc<StoragePage>, slots: u32, more: &mut KVec<Pooled>) -> bool {
        if self.pages.len() == self.pages.capacity() && more.capacity() > self.pages.len() {
            core::mem::swap(&mut self.pages, more);
            for page in more.drain_all() {
                // There is more room than before.
                let _room = self.pages.push_within_capacity(page);
            }
        }

        let index = self.pages.len();
        let pooled = Pooled {
            page: page.clone(),
            slots: FenceSlots::with_first_taken(slots),
        };
        let added = self.pages.push_within_capacity(pooled).is_ok();

        if added {
            page.index.store(index, Relaxed);
            self.sort(index, false);
        }
        added
    }

    /// Gives a slot back, to be used again if the page is in the pool.
    fn put(&mut self, page: &StoragePage, slot: u32) {
        let index = page.index.load(Relaxed);

        if let Some(Pooled { slots, .. }) = self.pages.get_mut(index) {
            slots.put(slot);
            self.sort(index, true);
        }
    }

    /// Adds a handle of a fence in a page of the pool.
    fn enter(&mut self, page: &StoragePage) {
        // The list has a reference as well, so nothing is freed here.
        match self.idle.take_if(|idle| ptr::eq(&raw const **idle, page)) {
            Some(idle) => idle.resume(),
            None => page.open.inc(),
        }
    }

    /// The same; false if the page has left the pool, so that it is no longer mapped.
    fn enter_again(&mut self, page: &StoragePage) -> bool {
        let mapped = page.index.load(Relaxed) != NOWHERE;

        if mapped {
            self.enter(page);
        }
        mapped
    }

    /// Removes a handle of the process. If it was the last one, the page is idle. Returns the page
    /// that leaves the pool: the one that was idle before, or this one if no page is kept any more.
    fn leave(&mut self, page: &StoragePage) -> Option<Arc<StoragePage>> {
        if page.open.dec_not_one() {
            return None;
        }
        if self.is_closed {
            return self.remove(page);
        }

        let index = page.index.load(Relaxed);
        let idle = self.pages.get(index)?.page.clone();

        idle.rest();

        let before = self.idle.replace(idle)?;

        before.resume();
        self.remove(&before)
    }

    /// Keeps no page from now on; returns the one that was kept.
    fn close(&mut self) -> Option<Arc<StoragePage>> {
        self.is_closed = true;

        let idle = self.idle.take()?;

        idle.resume();
        self.remove(&idle)
    }

    /// Takes a page out.
    fn remove(&mut self, page: &StoragePage) -> Option<Arc<StoragePage>> {
        // Behind all others, so that the order stays.
        let index = page.index.load(Relaxed);
        let index = self.move_to(index, PageClass::Rest);
        let last = self.pages.len().checked_sub(1)?;

        exchange(&mut self.pages, index, last);
        page.index.store(NOWHERE, Relaxed);

        let gone = self.pages.pop()?;

        Some(gone.page)
    }
}

impl FenceStoragePool {
    /// The pool of the process behind `mappings`, empty, with `stride` bytes between two fences, a
    /// power of two from 8 to 4096.
    pub(crate) fn new(
        mappings: Arc<FenceMappings>,
        stride: usize,
        kind: PoolKind,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                mappings,
                stride,
                kind,
                state <- new_spinlock!(
                    PoolState {
                        pages: KVec::new(),
                        classes: Classes::new(),
                        in_turn: 0,
                        idle: None,
                        is_closed: false,
                    },
                    "FenceStoragePool::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// A slot that shows `value`, in the process, which is about to open it. New pages are of
    /// `memory`, or else of the system.
    ///
    /// Context: a system call of the process, no locks held.
    pub(in crate::dxgk) fn slot(
        self: &Arc<Self>,
        value: u64,
        memory: Option<&FenceMemory<'_>>,
    ) -> DxgResult<FenceStorage> {
        let (page, slot) = self.take(memory)?;
        let storage = FenceStorage::Pooled {
            page,
            // CAST: below 64.
            slot: slot as u8,
            // CAST: a page has 512 words.
            word: self.word_of(slot) as u16,
            first: Atomic::new(true),
        };

        storage.begin(value);
        Ok(storage)
    }

    /// The pool of monitored fences of a process.
    pub(crate) fn monitored(mappings: Arc<FenceMappings>) -> Result<Arc<Self>> {
        Self::new(mappings, STRIDE, PoolKind::Monitored)
    }

    /// How many slots a page has: some space is left if there could be more of them.
    fn slots(&self) -> u32 {
        let all = PAGE_SIZE.checked_div(self.stride).unwrap_or(1);

        // CAST: at most 64.
        all.clamp(1, SLOTS as usize) as u32
    }

    /// Where a slot is in its page, in bytes.
    fn offset(&self, slot: u32) -> usize {
        // CAST: a slot number is below 64.
        (slot as usize).saturating_mul(self.stride)
    }

    /// The word of a slot in its page.
    fn word_of(&self, slot: u32) -> usize {
        self.offset(slot) / size_of::<u64>()
    }

    /// Takes a slot, of a new page if there is none.
    fn take(
        self: &Arc<Self>,
        memory: Option<&FenceMemory<'_>>,
    ) -> DxgResult<(Arc<StoragePage>, u32)> {
        for _ in 0..CHECKS {
            let found = {
                let mut state = self.state.lock();

                if let Some(found) = state.take() {
                    return Ok(found);
                }
                state.begin_check()
            };
            let Some((page, check)) = found else {
                break;
            };
            // What is nowhere mapped cannot be copied to a child.
            let is_alone = page
                .mapped
                .is_none_or(|mapped| self.mappings.is_alone(mapped, page.counted.page.home()));
            let mut state = self.state.lock();

            state.end_check(&page, check, is_alone);
            if let Some(found) = state.take() {
                return Ok(found);
            }
        }
        Ok((self.grow(memory)?, 0))
    }

    /// Adds a page whose first slot is taken and opened.
    fn grow(self: &Arc<Self>, memory: Option<&FenceMemory<'_>>) -> DxgResult<Arc<StoragePage>> {
        let page = |word| -> DxgResult<CountedPage> {
            Ok(match memory {
                Some(memory) => CountedPage::of(memory.page(word)?),
                None => CountedPage::new()?,
            })
        };
        let counted = page(FenceWord::CurrentValue)?;
        let monitored = match self.kind {
            PoolKind::Monitored => None,
            PoolKind::Native | PoolKind::IntraGpu => Some(page(FenceWord::MonitoredValue)?),
        };
        let mapped = match self.kind {
            // What the process sees is in system memory for good.
            PoolKind::Monitored | PoolKind::Native => Some(self.mappings.map(counted.page.home())?),
            PoolKind::IntraGpu => None,
        };
        let page = Arc::new(
            StoragePage {
                pool: self.clone(),
                counted,
                monitored,
                mapped,
                open: StrongCount::new(),
                index: Atomic::new(NOWHERE),
            },
            GFP_KERNEL_ACCOUNT,
        );

        Ok(page
            .and_then(|page| self.add(&page).map(|()| page))
            .inspect_err(|_| self.unmap_at(mapped))?)
    }

    fn add(&self, page: &Arc<StoragePage>) -> Result<(), AllocError> {
        let mut more = KVec::new();

        loop {
            let room = {
                let mut state = self.state.lock();

                if state.add(page, self.slots(), &mut more) {
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
        if page.open.dec_not_one() {
            return;
        }

        let unused = self.state.lock().leave(page);

        self.unmap(unused);
    }

    /// Keeps no page mapped that has no handle: the process has closed the device.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        let unused = self.state.lock().close();

        self.unmap(unused);
    }

    /// Unmaps a page that has left the pool.
    fn unmap(&self, page: Option<Arc<StoragePage>>) {
        self.unmap_at(page.and_then(|page| page.mapped));
    }

    fn unmap_at(&self, mapped: Option<Mapped>) {
        if let Some(mapped) = mapped {
            self.mappings.unmap(mapped);
        }
    }
}

/// One CurrentValue word.
///
/// Written by its fence only, under the fence lock. Read at any time, also by processes through
/// their read-only mapping.
pub(crate) enum FenceStorage {
    /// That of a fence that may be shared: the first word of a page of its own, mapped wherever the
    /// fence is open.
    Own {
        counted: OwnPage,
        /// The processes see it, and not only their GPUs.
        is_mapped: bool,
        /// The number of the fence's binding.
        binding: Atomic<u32>,
    },
    /// A slot of a common page of a process.
    Pooled {
        page: Arc<StoragePage>,
        /// Its place in the page.
        slot: u8,
        /// Which word of the page that is.
        word: u16,
        /// Whether the handle that it was made for is counted and was not made yet.
        first: Atomic<bool>,
    },
}

impl FenceStorage {
    /// A page of its own that shows `value`, not mapped anywhere yet.
    pub(crate) fn own(value: u64) -> Result<Self, AllocError> {
        Self::own_page(value, true)
    }

    /// The same, which processes do not see, but only their GPUs (FEN-130).
    pub(super) fn own_of_gpu(value: u64) -> Result<Self, AllocError> {
        Self::own_page(value, false)
    }

    fn own_page(value: u64, is_mapped: bool) -> Result<Self, AllocError> {
        let storage = Self::Own {
            counted: OwnPage::new()?,
            is_mapped,
            binding: Atomic::new(0),
        };

        storage.begin(value);
        Ok(storage)
    }

    /// Nobody waits for it, and it shows `value` (FEN-66).
    fn begin(&self, value: u64) {
        if let Self::Pooled { page, word, .. } = self {
            if let Some(monitored) = &page.monitored {
                monitored.page.store((*word).into(), NOBODY_WAITS);
            }
        }
        self.store_by(value, |word| store_release(word, value));
    }

    /// CurrentValue now, with acquire ordering.
    #[inline(always)]
    pub(super) fn load(&self) -> u64 {
        match self {
            Self::Own { counted, .. } => load_acquire(counted.page.word(0)),
            Self::Pooled { page, word, .. } => page.counted.page.load((*word).into()),
        }
    }

    /// Stores CurrentValue where it is now, as [`FencePage::store_by`]. The fence lock is held.
    #[inline(always)]
    pub(super) fn store_by(&self, value: u64, store: impl FnOnce(&Word64)) {
        match self {
            Self::Own { counted, .. } => store(counted.page.word(0)),
            Self::Pooled { page, word, .. } => {
                page.counted.page.store_by((*word).into(), value, store);
            }
        }
    }

    /// Its place in the page of MonitoredValue, if it is in a common page of native fences.
    pub(super) fn common_monitored(&self) -> Option<&CountedPage> {
        match self {
            Self::Pooled { page, .. } => page.monitored.as_ref(),
            _ => None,
        }
    }

    /// CurrentValue in the kernel's mapping, of a fence that is not for packets alone: that of all
    /// others is in system memory for good.
    #[inline(always)]
    pub(crate) fn word(&self) -> &Word64 {
        match self {
            Self::Own { counted, .. } => counted.page.word(0),
            Self::Pooled { page, word, .. } => page.counted.page.word((*word).into()),
        }
    }

    /// The page that CurrentValue is in.
    pub(super) fn page(&self) -> FencePage {
        match self {
            Self::Own { counted, .. } => FencePage::of(counted.page.clone()),
            Self::Pooled { page, .. } => page.counted.page.clone(),
        }
    }

    /// The page of system memory that it is in, or goes to: no other one is.
    pub(super) fn home(&self) -> &Arc<ValuePage> {
        match self {
            Self::Own { counted, .. } => &counted.page,
            Self::Pooled { page, .. } => page.counted.page.home(),
        }
    }

    /// Whether the processes that have it open see it, and not only their GPUs.
    pub(super) fn is_mapped(&self) -> bool {
        match self {
            Self::Own { is_mapped, .. } => *is_mapped,
            Self::Pooled { page, .. } => page.mapped.is_some(),
        }
    }

    /// Whether other fences of its process are in the same page.
    pub(super) fn is_common(&self) -> bool {
        match self {
            Self::Own { .. } => false,
            Self::Pooled { .. } => true,
        }
    }

    /// Its place in the page.
    pub(super) fn slot(&self) -> u32 {
        match self {
            Self::Own { .. } => 0,
            Self::Pooled { slot, .. } => (*slot).into(),
        }
    }

    /// The same in bytes.
    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Own { .. } => 0,
            // CAST: a usize fits 64 bits.
            Self::Pooled { page, slot, .. } => page.pool.offset((*slot).into()) as u64,
        }
    }

    /// Where a fence that may be shared has the number of its binding; `None` for a private one.
    pub(crate) fn binding(&self) -> Option<&Atomic<u32>> {
        match self {
            Self::Own { binding, .. } => Some(binding),
            Self::Pooled { .. } => None,
        }
    }

    /// Counts one more handle in the process of `mappings` of the fence with this id, and says
    /// where it is mapped there, 0 if only the GPU sees it. `None` if it is in a page of another
    /// process. The handle calls [`FenceStorage::close_in`] at its end otherwise.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_in(
        &self,
        id: u64,
        mappings: &Arc<FenceMappings>,
    ) -> DxgResult<Option<usize>> {
        match self {
            Self::Own {
                is_mapped: false, ..
            } => Ok(Some(0)),
            Self::Own { counted, .. } => mappings.map_shared(id, &counted.page).map(Some),
            Self::Pooled {
                page, slot, first, ..
            } => {
                let pool = &page.pool;
                let is_open = Arc::ptr_eq(&pool.mappings, mappings)
                    && (first.xchg(false, Relaxed) || pool.state.lock().enter_again(page));

                let addr = page
                    .mapped
                    .map_or(0, |mapped| mapped.addr + pool.offset((*slot).into()));

                Ok(is_open.then_some(addr))
            }
        }
    }

    /// One handle less in the process of `mappings`, where the value is mapped. The last one of
    /// those in the page makes it idle.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close_in(&self, id: u64, mappings: &FenceMappings) {
        match self {
            Self::Own {
                is_mapped: false, ..
            } => {}
            Self::Own { .. } => mappings.unmap_shared(id),
            Self::Pooled { page, .. } => page.pool.leave(page),
        }
    }
}

impl Drop for FenceStorage {
    /// Context: may sleep, no locks held; any task, unless no handle was ever made.
    fn drop(&mut self) {
        if let Self::Pooled {
            page, slot, first, ..
        } = self
        {
            page.pool.state.lock().put(page, (*slot).into());
            if first.load(Relaxed) {
                page.pool.leave(page);
            }
        }
    }
}
