// SPDX-License-Identifier: GPL-2.0

//! Room of a segment that comes back, as those know it who find none.
//!
//! What has left a segment keeps its room until the last who has it drops it, without locks. And
//! between two looks at a segment somebody may have ended. So who is about to be refused asks here
//! first whether that is still right, some times: nobody knows how long processes map what is gone.

use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Relaxed,
            Release, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Who waits for room that is about to come back looks again after this.
const PAUSE: Delta = Delta::from_millis(1);

/// The room of one segment.
pub(super) struct Freed {
    /// How many allocations have left it whose room is not back yet.
    leaving: Atomic<usize>,
    /// How often some of it has come back.
    count: Atomic<usize>,
}

impl Freed {
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        Arc::new(
            Self {
                leaving: Atomic::new(0),
                count: Atomic::new(0),
            },
            GFP_KERNEL,
        )
    }
}

/// Room that is taken. It has come back when this is dropped.
pub(super) struct TakenRoom {
    freed: Arc<Freed>,
    /// It counts among what is about to come back.
    is_leaving: AtomicFlag,
}

impl TakenRoom {
    pub(super) fn new(freed: &Arc<Freed>) -> Self {
        Self {
            freed: freed.clone(),
            is_leaving: AtomicFlag::new(false),
        }
    }

    /// Its allocation does not need it any more. Who still has the bytes drops them soon, but for
    /// processes that have them mapped, and importers.
    pub(super) fn leave(&self) {
        if !self.is_leaving.xchg(true, Relaxed) {
            self.freed.leaving.add(1, Relaxed);
        }
    }
}

impl Drop for TakenRoom {
    fn drop(&mut self) {
        // ORDERING: pairs with `Look::take`: who finds this has the room to find as well.
        let _before = self.freed.count.fetch_add(1, Release);

        if self.is_leaving.load(Relaxed) {
            // ORDERING: pairs with `Look::is_outdated`: what has left is counted before.
            let _before = self.freed.leaving.fetch_sub(1, Release);
        }
    }
}

/// A look at the room of a segment.
pub(crate) struct Look {
    freed: Arc<Freed>,
    count: usize,
}

impl Look {
    /// What is free after this is not counted in it.
    pub(super) fn take(freed: &Arc<Freed>) -> Self {
        Self {
            freed: freed.clone(),
            count: freed.count.load(Acquire),
        }
    }

    /// Whether room has come back since, or is about to. In that case this sleeps for a moment.
    ///
    /// Context: may sleep.
    pub(super) fn is_outdated(&self) -> bool {
        if self.freed.leaving.load(Acquire) != 0 {
            fsleep(PAUSE);
            return true;
        }
        self.freed.count.load(Relaxed) != self.count
    }
}
