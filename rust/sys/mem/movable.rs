// SPDX-License-Identifier: GPL-2.0

//! Memory in a place that can change while processes use it.
//!
//! The backing, that is the pages and the place where they are, stands behind a lock. A page fault
//! takes its page without the lock, so that it keeps nobody from theirs, and then reads the backing
//! and inserts the page under the lock. A move prepares the new backing before it takes
//! the lock for the first time, and then goes on in steps (`logic::moving`). Each step, under the
//! lock, takes the pages out of all mappings, copies them, and makes faults read the new backing
//! from then on. The old backing is dropped after the last step, with no lock held.
//!
//! What has addresses of pages outside of page tables, such as a dma-buf, pins the memory: it does
//! not move meanwhile.
//!
//! Pages of system memory need not stay while nobody pins the memory: they can be let go of, so
//! that the kernel may swap them, or be emptied. Mappings fault then. A shrinker does this, so it
//! only tries the lock, and who holds the lock allocates nothing that makes a shrinker run
//! (MEM-111).

use super::{
    pages::{
        Frame,
        PageSource, //
    },
    shown::{
        Memory,
        ShownFile, //
    },
    shrinker::NoReclaim, //
};
use crate::{
    logic::moving::{
        Progress,
        Side, //
    },
    sys::alloc::tree_node, //
};
use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        CondVar,
        Mutex, //
    }, //
};

pub(crate) mod moving;

/// Pages, and where they are.
struct Placed<P> {
    place: P,
    pages: Arc<dyn PageSource>,
}

/// A move to another backing.
struct Moving<P> {
    to: Placed<P>,
    /// `None` while the new backing is being prepared. Until then nothing has changed.
    progress: Option<Progress>,
}

struct State<P> {
    /// The backing; during a move, the old one.
    now: Placed<P>,
    /// Boxed, because it is rare.
    moving: Option<KBox<Moving<P>>>,
    /// Faults that take pages at this moment, without the lock. INVARIANT: while it is not 0, no
    /// move starts to copy, and no page is let go of. So the old backing gets no page after that,
    /// and a page is taken from the backing that has it in the end.
    taking: usize,
    /// INVARIANT: every file that has a mapping with pages of this memory, by its key.
    files: RBTree<usize, ShownFile>,
}

/// Memory that can move.
///
/// # Invariants
///
/// While `state` is not locked, an entry for page `i` in a mapping leads to the page that
/// `State::page(i)` answers. For: entries are made by faults only, which make them under the lock
/// for what it answers. The answer for a page changes in one place, `Movable::step`, which under
/// the lock takes the page out of all mappings before it changes the answer. A fault that waits for
/// the lock meanwhile has read nothing yet. So the old backing can be freed after the last step.
///
/// The answer does not change while there are pins.
#[pin_data]
pub(crate) struct Movable<P> {
    count: usize,
    /// How often it is pinned. Pins are added under `state`, while nothing is being copied.
    pins: Atomic<usize>,
    /// LOCK: taken by page faults, inside the mmap lock and `Revocable::state`. No page is taken
    /// under it. Mappings are invalidated under it, which takes no mmap lock. Memory is allocated
    /// under it only as `NoReclaim` says.
    #[pin]
    state: Mutex<State<P>>,
    /// A move has ended.
    #[pin]
    moved: CondVar,
}

impl<P: Copy + Send + Unpin> Movable<P> {
    /// Memory whose pages are these.
    pub(crate) fn new(place: P, pages: Arc<dyn PageSource>) -> impl PinInit<Self> {
        // INVARIANT: There is no file yet, and so no mapping.
        pin_init!(Self {
            count: pages.count(),
            pins: Atomic::new(0),
            state <- new_mutex!(
                State {
                    now: Placed { place, pages },
                    moving: None,
                    taking: 0,
                    files: RBTree::new(),
                },
                "Movable::state"
            ),
            moved <- new_condvar!("Movable::moved"),
        })
    }

    /// Where the bytes are; during a move, where they come from.
    pub(crate) fn place(&self) -> P {
        self.state.lock().now.place
    }

    /// How many pages it keeps in memory; during a move, in both backings.
    pub(crate) fn taken(&self) -> usize {
        self.state.lock().taken()
    }

    /// The same, if no lock and no move has to be waited for.
    pub(crate) fn try_taken(&self) -> Option<usize> {
        self.state
            .try_lock()
            .filter(|state| state.moving.is_none())
            .map(|state| state.taken())
    }

    /// The pages now; during a move, the old ones.
    pub(crate) fn pages(&self) -> Arc<dyn PageSource> {
        self.state.lock().now.pages.clone()
    }

    /// Keeps the memory where it is until [`Movable::unpin`], and returns its pages. Waits for a
    /// move: EINTR if a signal interrupts this.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn pin(&self) -> Result<Arc<dyn PageSource>> {
        let mut state = self.state.lock();

        while state.is_copying() {
            if self.moved.wait_interruptible(&mut state) {
                return Err(EINTR);
            }
        }
        self.pins.fetch_add(1, Relaxed);
        Ok(state.now.pages.clone())
    }

    /// Gives the pages back that were taken, so that the kernel may swap them; or drops the bytes,
    /// so that they are zeros, if not `keep`. The next touch of a page takes it again. Says how
    /// many pages that are. `None` if the memory is pinned, moves, is in use at this moment, or has
    /// pages that stay.
    ///
    /// Context: may sleep, where memory is short; no locks held.
    pub(crate) fn try_let_go(&self, keep: bool) -> Option<usize> {
        let mut state = self.state.try_lock()?;

        // ORDERING: pairs with `unpin`.
        if state.moving.is_some() || state.taking != 0 || self.pins.load(Acquire) != 0 {
            return None;
        }

        let taken = state.now.pages.taken();

        if taken != 0 {
            let untaken = state.now.pages.untaken()?;

            for (_, file) in state.files.iter() {
                file.invalidate(0..self.count);
            }
            // INVARIANT: No mapping has these pages any more. Dropped under the lock, so that
            // nobody takes them again before the file says that they can be swapped.
            drop(core::mem::replace(&mut state.now.pages, untaken));
        }
        if !keep && !state.now.pages.drop_bytes() {
            return None;
        }
        Some(taken)
    }

    /// Takes one pin back. The caller uses the pages no longer. May be called anywhere.
    pub(crate) fn unpin(&self) {
        // ORDERING: what the owner of the pin did to the pages is over before it is gone.
        self.pins.fetch_sub(1, Full);
    }
}

impl<P> State<P> {
    fn taken(&self) -> usize {
        let to = self
            .moving
            .as_ref()
            .map_or(0, |moving| moving.to.pages.taken());

        self.now.pages.taken().saturating_add(to)
    }

    /// Whether bytes are in two places.
    fn is_copying(&self) -> bool {
        self.moving
            .as_ref()
            .is_some_and(|moving| moving.progress.is_some())
    }

    /// The backing that has the bytes of a page.
    fn side(&self, index: usize) -> &Arc<dyn PageSource> {
        if let Some(Moving {
            to,
            progress: Some(progress),
            ..
        }) = self.moving.as_deref()
        {
            let present = self.now.pages.present(index).is_some();

            if progress.side(index, present) == Side::New {
                return &to.pages;
            }
        }
        &self.now.pages
    }
}

impl<P: Send + Sync> PageSource for State<P> {
    fn count(&self) -> usize {
        self.now.pages.count()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.side(index).page(index)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        self.side(index).present(index)
    }

    fn taken(&self) -> usize {
        State::taken(self)
    }
}

impl<P: Send + Sync + Unpin> Memory for Movable<P> {
    fn count(&self) -> usize {
        self.count
    }

    fn with_page(&self, index: usize, look: &mut dyn FnMut(&dyn PageSource)) -> Result {
        let mut state = self.state.lock();

        if state.present(index).is_none() {
            let pages = state.side(index).clone();

            state.taking += 1;
            drop(state);

            let taken = pages.page(index).map(|_| ());

            drop(pages);
            state = self.state.lock();
            state.taking -= 1;
            if taken.is_err() {
                drop(state);
                return taken;
            }
            // The page is there: no move has started to copy meanwhile, and nobody has let go of
            // it. If a move was copying before, the page is in its new backing, because the old
            // one does not have it.
        }

        // It may need a page table, which it has, unless that has just gone.
        let _no_reclaim = NoReclaim::here();

        look(&*state);
        Ok(())
    }

    fn add_file(&self, file: &ShownFile) -> Result {
        let node = tree_node(file.key(), file.clone())?;
        let known = self.state.lock().files.insert(node);

        drop(known);
        Ok(())
    }

    fn remove_file(&self, file: &ShownFile) {
        let node = self.state.lock().files.remove_node(&file.key());

        drop(node);
    }
}
