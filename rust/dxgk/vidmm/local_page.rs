// SPDX-License-Identifier: GPL-2.0

//! A page of fence values in a segment, and how it goes home to system memory when others want its
//! place (FEN-64).
//!
//! Neither a value nor an address changes by that, and nobody waits for longer than an engine takes
//! to stop. The page is in one of three states:
//!
//! ```text
//! Local   engines see the page of the segment; stores go there
//! Both    the words were copied home; stores go to both, and page tables change meanwhile
//! Home    engines see the page of system memory; stores go there
//! ```
//!
//! What the OS part stores is MonitoredValue, which no engine of a process stores. While page
//! tables change an engine may find either page, so both have what was stored when the store
//! returns: its barrier is good for both, and no wake-up is lost (FEN-73). The copy and each store
//! are under `state`, so that no store is between the copy and the state that follows it.
//!
//! CurrentValue is stored by engines. While such a page moves, no context of its process runs: from
//! before the copy until no engine uses the old translation.
//!
//! LOCK: `turn` is a mutex: who moves the page holds it, and takes `AddressSpace::moves` and
//! `AddressSpace::state` inside. `state` is a spinlock, inside the lock of a fence and
//! `AddressSpace::state`; the KMD is called under it. `listed` is a spinlock,
//! outside `IdleList::state`.

use super::{
    idle::{
        Idle,
        IdlePlace,
        Key, //
    },
    paging_log::LogAbout,
    pinned_pages::take_pages,
    segment::{
        LocalPages,
        Segment, //
    },
    shows_fences::ShowsFences, //
};
use crate::{
    ddi::segments::SYSTEM_MEMORY,
    error::{
        DxgError,
        DxgResult, //
    },
    logic::{
        gpu_ranges::PAGE,
        offer_rules::Rank, //
    },
    platform::{
        load_acquire,
        store_release,
        Word64, //
    },
    sys::{
        alloc::pin_arc,
        mem::{
            blocks::Layout,
            page_words::PageWords,
            value_page::{
                ValuePage,
                WORDS, //
            }, //
        }, //
    }, //
};
use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    }, //
};

/// Who sees a page.
pub(super) struct Seen {
    /// The address space of its process.
    pub(super) space: Arc<dyn ShowsFences>,
    /// The paging process of the adapter, if it has one.
    pub(super) paging: Option<Arc<dyn ShowsFences>>,
    /// Engines of the process store to it.
    pub(super) engines_store: bool,
}

/// The page of the segment, which counts as memory that its process uses.
struct Held {
    words: PageWords<LocalPages>,
    space: Arc<dyn ShowsFences>,
    group: usize,
}

impl Held {
    fn new(
        pages: Arc<LocalPages>,
        segment: &Segment,
        space: &Arc<dyn ShowsFences>,
    ) -> Result<Self> {
        let held = Self {
            words: PageWords::new(pages)?,
            space: space.clone(),
            group: usize::from(!segment.is_local_group),
        };

        held.space.count_fence_page(held.group, true);
        Ok(held)
    }

    fn place(&self) -> (u32, u64) {
        let pages = self.words.keeper();

        // There is a first page.
        (pages.segment(), pages.offset(0).unwrap_or(0))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.space.count_fence_page(self.group, false);
    }
}

/// Where the page is.
enum State {
    Local(Held),
    Both(Held),
    Home,
}

/// A page of fence values that is in a segment, or was.
#[pin_data]
pub(super) struct LocalPage {
    home: Arc<ValuePage>,
    seen: Seen,
    segment: Arc<Segment>,
    #[pin]
    turn: Mutex<()>,
    #[pin]
    state: SpinLock<State>,
    /// Its place in the list of what gives way in the segment.
    #[pin]
    listed: SpinLock<Option<Key>>,
}

impl LocalPage {
    /// A page of zeros in a segment, and one of system memory that it can go to, charged to the
    /// caller. `None` if the segment has no room.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn new(
        segment: &Arc<Segment>,
        seen: Seen,
        log: &LogAbout,
    ) -> DxgResult<Option<Arc<Self>>> {
        let layout = Layout {
            contiguous: false,
            alignment: PAGE,
        };
        let pages = match segment.take(1, layout, Some(log)) {
            Err(error) if error == ENOSPC => return Ok(None),
            pages => pages.map_err(DxgError::from_errno)?,
        };

        take_pages(&*pages)?;
        pages.clear(0..1).map_err(DxgError::from_errno)?;

        let held = Held::new(pages, segment, &seen.space).map_err(DxgError::from_errno)?;
        let home = Arc::new(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?;
        let place = IdlePlace::new()?;
        let page = pin_arc(
            pin_init!(Self {
                home,
                seen,
                segment: segment.clone(),
                turn <- new_mutex!((), "LocalPage::turn"),
                state <- new_spinlock!(State::Local(held), "LocalPage::state"),
                listed <- new_spinlock!(None, "LocalPage::listed"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        // After all that could be used better: nothing is lost by it, but engines see it less soon.
        let rank = (Rank::FenceValues, 0);
        let mut listed = page.listed.lock();

        // Who finds it in the list at once finds its place here, too.
        *listed = Some(segment.idle.add(place, rank, PAGE, page.clone()));
        drop(listed);
        Ok(Some(page))
    }

    /// Its page of system memory.
    pub(super) fn home(&self) -> &Arc<ValuePage> {
        &self.home
    }

    /// As [`FencePage::load`](super::fence_page::FencePage::load).
    pub(super) fn load(&self, index: usize) -> u64 {
        match &*self.state.lock() {
            State::Local(held) | State::Both(held) => load_acquire(held.words.word(index)),
            State::Home => load_acquire(self.home.word(index)),
        }
    }

    /// As [`FencePage::store_by`](super::fence_page::FencePage::store_by).
    pub(super) fn store_by(&self, index: usize, value: u64, store: impl FnOnce(&Word64)) {
        let state = self.state.lock();

        match &*state {
            State::Local(held) => store(held.words.word(index)),
            State::Both(held) => {
                let word = held.words.word(index);

                // A KMD may reach the word by page tables, which lead to one of the two, and looks
                // whether both are the same word.
                store_release(self.home.word(index), value);
                store_release(word, value);
                store(word);
            }
            State::Home => store(self.home.word(index)),
        }
    }

    /// Where page tables lead, or are about to.
    pub(super) fn place(&self) -> (u32, u64) {
        match &*self.state.lock() {
            State::Local(held) => held.place(),
            State::Both(_) | State::Home => (SYSTEM_MEMORY, self.home.physical()),
        }
    }

    /// As [`FencePage::end`](super::fence_page::FencePage::end).
    pub(super) fn end(&self) {
        let _place = self.unlist();
    }

    /// Takes it out of the list; `None` if it is not there.
    fn unlist(&self) -> Option<IdlePlace> {
        let key = self.listed.lock().take()?;

        self.segment.idle.remove(key)
    }

    /// The words are in system memory, too, from now on.
    fn copy_home(&self) {
        let mut state = self.state.lock();

        *state = match core::mem::replace(&mut *state, State::Home) {
            State::Local(held) => {
                for index in 0..WORDS {
                    store_release(self.home.word(index), load_acquire(held.words.word(index)));
                }
                State::Both(held)
            }
            other => other,
        };
    }

    /// The words are in system memory only. The rest is dropped without the lock.
    fn leave_segment(&self) -> impl Sized {
        core::mem::replace(&mut *self.state.lock(), State::Home)
    }

    /// Copies the words, and has all page tables lead there. On return no engine uses the page of
    /// the segment.
    fn move_home(&self) {
        self.copy_home();
        if let Some(paging) = &self.seen.paging {
            paging.refresh_fence_page(self.home.physical());
        }
        self.seen.space.refresh_fence_page(self.home.physical());
    }
}

impl Idle for LocalPage {
    fn give_way(&self) {
        let turn = self.turn.lock();
        let place = self.unlist();

        if place.is_none() {
            return;
        }
        match self.seen.engines_store {
            true => self.seen.space.while_stopped(&mut || self.move_home()),
            false => self.move_home(),
        }

        let left = self.leave_segment();

        drop(turn);
        drop((left, place));
    }

    /// It has no bytes that anybody could do without.
    fn decommit(&self, _: bool) -> Option<u64> {
        None
    }
}
