// SPDX-License-Identifier: GPL-2.0

//! What interrupts have told of, until a worker looks at it (FEN-100).
//!
//! Telling is wait-free and allocates nothing: a number goes into one of a fixed number of places.
//! If the places that may have it are taken, everything is to be looked at instead, so that nothing
//! is lost. Who tells has the worker queued then. The worker takes a number out before it looks at
//! what the number names: whatever comes later is told again.

use crate::platform::{
    self,
    Word32, //
};

/// How many numbers there are at a time (GPU-59).
pub const PLACES: usize = 64;

/// How many places a number may have.
pub const TRIES: usize = 8;

/// What was told of, by numbers that are not 0.
pub struct InterruptRecord {
    /// 0 where there is none.
    places: [Word32; PLACES],
    /// 1 if there was more.
    is_full: Word32,
}

impl InterruptRecord {
    /// Nothing.
    pub fn new() -> Self {
        Self {
            places: core::array::from_fn(|_| platform::word32(0)),
            is_full: platform::word32(0),
        }
    }

    /// Tells of a number. In any context.
    pub fn post(&self, number: u32) {
        // CAST: 32 bits fit a usize.
        let first = number as usize;
        let is_noted = (0..TRIES).any(|turn| {
            let place = self.places.get(first.wrapping_add(turn) % PLACES);

            // ORDERING: full: the worker that takes it sees what was stored before (FEN-101).
            place.is_some_and(|place| platform::cmpxchg(place, 0, number))
        });

        if !is_noted {
            self.post_all();
        }
    }

    /// Tells of everything. In any context.
    pub fn post_all(&self) {
        // ORDERING: as in `post`.
        platform::cmpxchg(&self.is_full, 0, 1);
    }

    /// Takes what was told of. True if that is everything. The worker alone calls it.
    pub fn take(&self, mut each: impl FnMut(u32)) -> bool {
        for place in &self.places {
            let number = platform::load32_acquire(place);

            // ORDERING: full: what the number names is looked at after this (FEN-101). Nobody else
            // takes it out.
            if number != 0 && platform::cmpxchg(place, number, 0) {
                each(number);
            }
        }
        platform::cmpxchg(&self.is_full, 1, 0)
    }
}

impl Default for InterruptRecord {
    fn default() -> Self {
        Self::new()
    }
}
