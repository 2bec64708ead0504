// SPDX-License-Identifier: GPL-2.0

//! Whether a queue is looked at (gpu.md section 9): what becomes of the one look that may be
//! queued.
//!
//! ```text
//! unwatched --begins--> queued --look_begins--> looks --look_ends--> unwatched, or queued again
//! ```
//!
//! Who gives a queue work, or tells that it has run, says so first and calls [`Watched::begins`]
//! then. A look that ends calls the queue unwatched first, and looks for work then. So one of the
//! two sees the other.

use crate::platform::{
    self,
    full_fence,
    Word32, //
};

/// Nobody looks.
const UNWATCHED: u32 = 0;
/// A look is queued.
const QUEUED: u32 = 1;
/// A look is carried out.
const LOOKS: u32 = 2;

/// Whether a queue is looked at.
pub struct Watched(Word32);

impl Watched {
    /// It is not.
    pub fn new() -> Self {
        Self(platform::word32(UNWATCHED))
    }

    /// It is looked at from now on: true if the caller has to queue the look. For work that was
    /// counted before.
    pub fn begins(&self) -> bool {
        // ORDERING: pairs with that in `look_ends`: a look that does not see the work is over here.
        full_fence();
        platform::cmpxchg(&self.0, UNWATCHED, QUEUED)
    }

    /// The look that was queued begins. From here on the end of the queue does not wait for it: it
    /// may be what ends the queue.
    pub fn look_begins(&self) {
        platform::cmpxchg(&self.0, QUEUED, LOOKS);
    }

    /// The look ends. True if there is another one, which the caller has to queue: if `wants_more`
    /// says so and nobody else has queued it. Called with the lock under which the queue ends.
    pub fn look_ends(&self, wants_more: impl FnOnce() -> bool) -> bool {
        platform::cmpxchg(&self.0, LOOKS, UNWATCHED);
        // ORDERING: see `begins`.
        full_fence();
        wants_more() && self.begins()
    }

    /// Whether a look is queued, which the end of the queue takes back. Asked when all looks find
    /// that it has ended.
    pub fn is_queued(&self) -> bool {
        platform::load32_acquire(&self.0) == QUEUED
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self::new()
    }
}
