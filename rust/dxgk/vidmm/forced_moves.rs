// SPDX-License-Identifier: GPL-2.0

//! Moves all that is in the segments of an adapter again and again, for tests (MEM-107): each
//! allocation to other pages of its segment, while processors and engines use it. The paging worker
//! does it, between operations of paging queues.

use super::{
    all_allocations::AllAllocations,
    paging_worker::PagingWorker, //
};
use crate::sys::{
    alloc::pin_arc,
    work, //
};
use kernel::{
    alloc::AllocError,
    impl_has_delayed_work,
    new_delayed_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        DelayedWork,
        WorkItem, //
    }, //
};

/// The adapter is removed: nothing moves any more.
const ENDED: u32 = u32::MAX;

/// The moves of one adapter.
#[pin_data]
pub(crate) struct ForcedMoves {
    all: Arc<AllAllocations>,
    worker: Arc<PagingWorker>,
    /// Milliseconds from the end of one round to the next; 0 if there is none, or [`ENDED`].
    interval: Atomic<u32>,
    #[pin]
    next: DelayedWork<ForcedMoves>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for ForcedMoves { self.next }
}

impl ForcedMoves {
    /// None yet.
    pub(super) fn new(
        all: &Arc<AllAllocations>,
        worker: &Arc<PagingWorker>,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                all: all.clone(),
                worker: worker.clone(),
                interval: Atomic::new(0),
                next <- new_delayed_work!("ForcedMoves::next"),
            }),
            GFP_KERNEL,
        )
    }

    /// Moves everything every so many milliseconds from now on, unless the adapter is removed.
    /// Nothing if it is 0: on return nothing moves.
    ///
    /// Context: may sleep, no locks held; not the worker.
    pub(super) fn every(self: &Arc<Self>, interval: u32) {
        let mut before = self.interval.load(Relaxed);

        while before != ENDED {
            match self
                .interval
                .cmpxchg(before, interval.min(ENDED - 1), Relaxed)
            {
                Ok(_) => break,
                Err(now) => before = now,
            }
        }
        // A round that is queued after the interval was longer comes too late.
        work::cancel::<_, 0>(self);
        self.again();
    }

    /// The adapter is removed.
    ///
    /// Context: as [`ForcedMoves::every`].
    pub(in crate::dxgk) fn end(self: &Arc<Self>) {
        self.interval.store(ENDED, Relaxed);
        work::cancel::<_, 0>(self);
    }

    fn is_on(&self) -> bool {
        !matches!(self.interval.load(Relaxed), 0 | ENDED)
    }

    fn again(self: &Arc<Self>) {
        if self.is_on() {
            let after = msecs_to_jiffies(self.interval.load(Relaxed));

            self.worker.enqueue_delayed(self.clone(), after);
        }
    }
}

impl WorkItem for ForcedMoves {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut seen = 0;

        while let Some((number, memory)) = this.all.after(seen) {
            if !this.is_on() {
                return;
            }
            memory.move_elsewhere();
            seen = number;
            work::breathe();
        }
        this.again();
    }
}
