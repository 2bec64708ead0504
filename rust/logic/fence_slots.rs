// SPDX-License-Identifier: GPL-2.0

//! Which places of a common page of fence values may be given to a fence (FEN-12).
//!
//! A place that had a fence is *stale*: a forked child may still read it, and the owner may have
//! moved the page somewhere else, or unmapped it. It is used again after a check that none of this
//! is so. While a check runs the places that it is for belong to it, so two checks at the same time
//! never speak of the same place.
//!
//! The page counts how often its mapping was copied, by a fork or a move, or removed. After that
//! nothing that was found out before counts: all free places become stale.

/// Most places in a page: one bit each.
pub const SLOTS: u32 = u64::BITS;

/// The places of one page.
#[derive(Clone, Copy, Debug)]
pub struct FenceSlots {
    taken: u64,
    stale: u64,
    /// How often the mapping had changed when the free places were found to be free.
    changes: u64,
}

/// A check that has begun, with the places that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    places: u64,
    changes: u64,
}

impl FenceSlots {
    /// Those of a new page with so many places, whose first one is taken.
    pub const fn with_first_taken(places: u32) -> Self {
        let missing = match u64::MAX.checked_shl(places) {
            Some(missing) => missing,
            None => 0,
        };

        Self {
            // What is not there counts as taken for ever.
            taken: missing | 1,
            stale: 0,
            changes: 0,
        }
    }

    /// Takes a place that may be used, if there is one. `changes` is how often the mapping of the
    /// page has changed until now.
    pub fn take(&mut self, changes: u64) -> Option<u32> {
        self.look(changes);

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

    /// Whether any place may be used, as far as is known.
    pub fn has_free(&self) -> bool {
        self.taken | self.stale != u64::MAX
    }

    /// Whether any place waits for a check.
    pub fn has_stale(&self) -> bool {
        self.stale != 0
    }

    /// Begins a check of the page for all places that wait for one. None of them can be taken
    /// before [`FenceSlots::end_check`].
    pub fn begin_check(&mut self, changes: u64) -> Check {
        self.look(changes);

        let places = core::mem::take(&mut self.stale);

        self.taken |= places;
        Check { places, changes }
    }

    /// Ends a check. If no other mapping shows the page, and it has not changed since the check
    /// began, its places may be used.
    pub fn end_check(&mut self, check: Check, is_alone: bool) {
        self.taken &= !check.places;
        if !is_alone || check.changes != self.changes {
            self.stale |= check.places;
        }
    }

    /// Another mapping may show the page since the free places were found to be free.
    fn look(&mut self, changes: u64) {
        if changes != self.changes {
            self.changes = changes;
            self.stale |= !self.taken;
        }
    }
}
