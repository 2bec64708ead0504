// SPDX-License-Identifier: GPL-2.0

//! The shrinker of an adapter: what the kernel asks for system memory when that is short (MEM-111).
//!
//! It has a list for each class of `logic::reclaim_rules`, in each a list for each memory cgroup.
//! A [`Reclaimable`] stands for an allocation there. What has no placement is freed at once, by
//! whoever is short of memory. What has one needs page tables, the TLB, perhaps the paging node, so
//! it is left to the adapter's worker.
//!
//! A scan takes two locks: `Reclaimable::state`, under which nobody allocates, and
//! `Movable::state`, which it tries. Instead of taking `AllocationMemory::turn` it says that it is
//! there: whoever has the turn waits for that first, and then no scan begins until the turn is
//! over. So between turns an allocation may lose pages, or bytes that are offered, and during one
//! it does not.
//!
//! LOCK: `Reclaimable::state` is a spinlock and a leaf.

use super::paging_worker::PagingWorker;
use crate::{
    dxgk::memory::storage::Storage,
    logic::reclaim_rules::{
        shares,
        Class,
        Facts, //
    },
    sys::{
        alloc::pin_arc,
        mem::shrinker::{
            Item,
            Pass,
            Reclaim,
            Shrinker, //
        }, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_condvar,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// What the kernel asks for memory of the allocations of one adapter.
pub(crate) type AdapterShrinker = Shrinker<Scanner>;

/// The place of an allocation in its lists.
pub(super) type ReclaimItem = Item<Scanner>;

/// Something with a placement.
pub(super) trait LosesPlacement: Send + Sync {
    /// Gives its placement up, if nobody needs it.
    ///
    /// Context: may sleep, no locks held.
    fn lose_placement(&self);
}

/// What is freed.
pub(super) struct Target {
    what: Arc<dyn LosesPlacement>,
    storage: Arc<Storage>,
}

struct State {
    /// `None` while no device has the allocation open.
    target: Option<Target>,
    /// Why it may be freed, and whether it has a placement.
    listed: Option<(Class, bool)>,
    /// Somebody has the turn of the allocation.
    is_held: bool,
    /// A scan frees it at this moment.
    is_scanned: bool,
    /// Its bytes were dropped since the last turn.
    was_dropped: bool,
}

/// An allocation, as the shrinker knows it.
#[pin_data]
pub(crate) struct Reclaimable {
    #[pin]
    state: SpinLock<State>,
    /// A scan has ended.
    #[pin]
    scanned: CondVar,
    #[pin]
    work: Work<Reclaimable>,
}

impl_has_work! {
    impl HasWork<Self> for Reclaimable { self.work }
}

impl Reclaimable {
    /// One that is not used yet.
    ///
    /// Context: may sleep.
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                state <- new_spinlock!(
                    State {
                        target: None,
                        listed: None,
                        is_held: false,
                        is_scanned: false,
                        was_dropped: false,
                    },
                    "Reclaimable::state"
                ),
                scanned <- new_condvar!("Reclaimable::scanned"),
                work <- new_work!("Reclaimable::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// What it stands for, until [`Reclaimable::end`].
    pub(super) fn begin(&self, what: Arc<dyn LosesPlacement>, storage: Arc<Storage>) {
        // Dropped after the lock.
        let target = Target { what, storage };
        let _before = self.state.lock().target.replace(target);
    }

    /// It stands for nothing any more. Returns what it stood for.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn end(&self) -> Option<Target> {
        let mut state = self.state.lock();

        while state.is_scanned {
            self.scanned.wait(&mut state);
        }
        state.target.take()
    }

    /// Says why its memory may be freed. Returns the list that it belongs to, if that is another
    /// one than before.
    pub(super) fn set(&self, facts: Option<Facts>) -> Option<Option<usize>> {
        let class = facts.as_ref().and_then(Facts::class);
        let listed = class.zip(facts.as_ref().map(Facts::is_placed));
        let before = core::mem::replace(&mut self.state.lock().listed, listed);

        (before.map(|(class, _)| class) != class).then(|| class.map(|class| class as usize))
    }

    /// Somebody has the turn of the allocation: nothing of it is freed until
    /// [`Reclaimable::release`]. Whether its bytes were dropped since the last turn.
    ///
    /// Context: may sleep; `AllocationMemory::turn`.
    pub(super) fn hold(&self) -> bool {
        let mut state = self.state.lock();

        state.is_held = true;
        while state.is_scanned {
            self.scanned.wait(&mut state);
        }
        core::mem::take(&mut state.was_dropped)
    }

    /// The turn is over.
    pub(super) fn release(&self) {
        self.state.lock().is_held = false;
    }

    /// Frees its memory if that is still right, and says how many pages. `None` if it has to lose
    /// its placement first.
    ///
    /// Context: as [`Reclaim::scan`].
    fn free(&self) -> Option<usize> {
        let mut state = self.state.lock();

        if state.is_held || state.is_scanned {
            return Some(0);
        }

        let (Some(target), Some((class, is_placed))) = (&state.target, state.listed) else {
            return Some(0);
        };

        if is_placed {
            return None;
        }

        let storage = target.storage.clone();

        state.is_scanned = true;
        drop(state);

        let freed = match class {
            Class::Offered => storage.try_drop_bytes(),
            Class::Unwanted | Class::Idle => storage.try_let_go(),
        };

        // Not the last one: `end` waits.
        drop(storage);
        state = self.state.lock();
        state.is_scanned = false;
        state.was_dropped |= class == Class::Offered && freed.is_some();
        drop(state);
        self.scanned.notify_all();
        Some(freed.unwrap_or(0))
    }
}

impl WorkItem for Reclaimable {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let what = {
            let state = this.state.lock();

            state.target.as_ref().map(|target| target.what.clone())
        };

        if let Some(what) = what {
            what.lose_placement();
        }
        let _pages = this.free();
    }
}

/// Frees memory of the allocations of an adapter.
pub(crate) struct Scanner {
    worker: Arc<PagingWorker>,
}

impl Scanner {
    /// With this worker.
    pub(super) fn new(worker: &Arc<PagingWorker>) -> Self {
        Self {
            worker: worker.clone(),
        }
    }
}

impl Reclaim for Scanner {
    type Owner = Reclaimable;

    const LISTS: usize = Class::ALL.len();

    fn scan(&self, pass: &Pass<'_, Reclaimable>, most: usize) -> usize {
        let counts = Class::ALL.map(|class| pass.count(class as usize));
        let mut pages = 0usize;

        for (class, share) in Class::ALL.into_iter().zip(shares(counts, most)) {
            for _ in 0..share {
                let Some(one) = pass.next(class as usize) else {
                    break;
                };

                match one.free() {
                    Some(freed) => pages = pages.saturating_add(freed),
                    None => self.worker.leave(one),
                }
                // If this was the last reference, it stands for nothing any more, and its end is
                // that of a piece of memory.
            }
        }
        pages
    }
}
