// SPDX-License-Identifier: GPL-2.0

//! Room of a segment that comes back, as those know it who find none.
//!
//! What has left a segment keeps its room until the last who has it drops it, without locks. And
//! between two looks at a segment somebody may have ended. So who is about to be refused asks here
//! first whether that is still right, some times: nobody knows how long processes map what is gone.

use crate::logic::freed_room::{
    FreedRoom,
    News,
    Seen, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
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
pub(super) struct Freed(FreedRoom);

impl Freed {
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        Arc::new(Self(FreedRoom::new()), GFP_KERNEL)
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
            self.freed.0.leaves();
        }
    }
}

impl Drop for TakenRoom {
    fn drop(&mut self) {
        self.freed.0.came_back(self.is_leaving.load(Relaxed));
    }
}

/// A look at the room of a segment.
pub(crate) struct Look {
    freed: Arc<Freed>,
    seen: Seen,
}

impl Look {
    /// What is free after this is not counted in it.
    pub(super) fn take(freed: &Arc<Freed>) -> Self {
        Self {
            freed: freed.clone(),
            seen: freed.0.look(),
        }
    }

    /// Whether room has come back since, or is about to. In that case this sleeps for a moment.
    ///
    /// Context: may sleep.
    pub(super) fn is_outdated(&self) -> bool {
        match self.freed.0.since(self.seen) {
            News::None => false,
            News::Came => true,
            News::Leaves => {
                fsleep(PAUSE);
                true
            }
        }
    }
}
