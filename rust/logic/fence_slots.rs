// SPDX-License-Identifier: GPL-2.0

//! Which places of a common page of fence values may be given to a fence (FEN-12).
//!
//! A place that had a fence is *stale*: a forked child may still read it, and the owner may have
//! moved the page somewhere else. It is used again after a check that neither is so. While a check
//! runs the places that it is for belong to it, so two checks at the same time never speak of the
//! same place.

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

    /// Whether any place waits for a check.
    pub fn has_stale(&self) -> bool {
        self.stale != 0
    }

    /// Begins a check of the page: the places that it is for, one bit each. None can be taken
    /// before [`Slots::end_check`].
    pub fn begin_check(&mut self) -> u64 {
        let checked = core::mem::take(&mut self.stale);

        self.taken |= checked;
        checked
    }

    /// Ends a check. If no other mapping shows the page, the places may be used.
    pub fn end_check(&mut self, checked: u64, is_alone: bool) {
        self.taken &= !checked;
        if !is_alone {
            self.stale |= checked;
        }
    }

    /// Another mapping shows the page now: the places that could be used wait for a check.
    pub fn rest(&mut self) {
        self.stale |= !self.taken;
    }
}
