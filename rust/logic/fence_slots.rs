// SPDX-License-Identifier: GPL-2.0

//! Which places of a common page of fence values may be given to a fence (FEN-12).
//!
//! A place that had a fence is *stale*: a forked child may still read it, and the owner may
//! have moved the page somewhere else. It is used again after a check that neither is so.
//! Places that were given back after that look stay stale.

/// Places in a page: one bit each.
pub const SLOTS: u32 = u64::BITS;

/// The places of one page.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    taken: u64,
    stale: u64,
}

impl Slots {
    /// Those of a new page, whose first place is taken.
    pub const fn with_first_taken() -> Self {
        Self { taken: 1, stale: 0 }
    }

    /// Takes a place that may be used, if there is one.
    pub fn take(&mut self) -> Option<u32> {
        let slot = (self.taken | self.stale).trailing_ones();

        (slot < SLOTS).then(|| {
            self.taken |= 1 << slot;
            slot
        })
    }

    /// Gives a place back.
    pub fn put(&mut self, slot: u32) {
        let bit = 1 << (slot % SLOTS);

        self.taken &= !bit;
        self.stale |= bit;
    }

    /// The places that may be used once no other mapping shows the page, one bit each.
    pub fn stale(&self) -> u64 {
        self.stale
    }

    /// No other mapping shows the page: those of `seen`, which were stale before the look, may be
    /// used.
    pub fn refresh(&mut self, seen: u64) {
        self.stale &= !seen;
    }
}
