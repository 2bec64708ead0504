// SPDX-License-Identifier: GPL-2.0

//! Room that comes back, as those know it who find none (MEM-18).
//!
//! Who gives room back does so first and says it here afterwards. Who wants some looks here first,
//! at the room afterwards, and here again before it is refused. So what has come back meanwhile is
//! seen, and so is what was about to.

use crate::platform::{
    self,
    Word32, //
};

/// What of some room has come back, and what is about to.
pub struct FreedRoom {
    /// How many have left it whose room is not back yet.
    leaving: Word32,
    /// How often some of it has come back; wraps.
    count: Word32,
}

/// A look at the room.
#[derive(Clone, Copy)]
pub struct Seen(u32);

/// What has become of the room since a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing: what was not found is not there.
    None,
    /// Some has come back.
    Came,
    /// Some is about to come back.
    Leaves,
}

impl FreedRoom {
    /// All of it is there.
    pub fn new() -> Self {
        Self {
            leaving: platform::word32(0),
            count: platform::word32(0),
        }
    }

    /// Somebody is about to give room back.
    pub fn leaves(&self) {
        platform::fetch_add(&self.leaving, 1);
    }

    /// Room was given back: others find it. `was_leaving` if that was said before.
    pub fn came_back(&self, was_leaving: bool) {
        // ORDERING: pairs with `look`: who sees this finds the room.
        platform::fetch_add(&self.count, 1);
        if was_leaving {
            // ORDERING: pairs with `since`: who does not see that it is leaving sees that it came.
            platform::fetch_sub(&self.leaving, 1);
        }
    }

    /// A look, before one at the room itself.
    pub fn look(&self) -> Seen {
        Seen(platform::load32_acquire(&self.count))
    }

    /// What has become of it since.
    pub fn since(&self, look: Seen) -> News {
        // In this order: it leaves first, and comes back then.
        if platform::load32_acquire(&self.leaving) != 0 {
            return News::Leaves;
        }
        match platform::load32_acquire(&self.count) == look.0 {
            true => News::None,
            false => News::Came,
        }
    }
}

impl Default for FreedRoom {
    fn default() -> Self {
        Self::new()
    }
}
