// SPDX-License-Identifier: GPL-2.0

//! Queues that wait for their turn, and whose it is (GPU-50).

use super::node::{
    by_turn,
    Arena,
    List,
    QueueIndex, //
};

/// How many priorities there are. 0 is the lowest.
pub const PRIORITIES: usize = 32;

/// Of so many slices, one is for a priority below the highest one that is ready.
pub const LOWER_EVERY: u32 = 8;

/// Ready queues by priority, each list in the order of their turns.
pub(super) struct Ready {
    lists: [List; PRIORITIES],
    /// One bit for each priority that has any.
    mask: u32,
    /// How many there are of all priorities.
    count: u32,
    /// Slices since one was for a lower priority.
    slices: u32,
    /// The lower priority that had it.
    lower: u32,
}

impl Ready {
    pub(super) const EMPTY: Self = Self {
        lists: [List::EMPTY; PRIORITIES],
        mask: 0,
        count: 0,
        slices: 0,
        lower: 0,
    };

    /// How many queues are ready.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Puts a queue behind all others of its priority.
    pub(super) fn push(&mut self, arena: &mut impl Arena, index: QueueIndex, priority: u8) {
        if let Some(list) = self.lists.get_mut(usize::from(priority)) {
            list.push(arena, by_turn, index);
            self.mask |= 1_u32.wrapping_shl(priority.into());
            // OVERFLOW: as many as there are numbers of queues, at most.
            self.count = self.count.wrapping_add(1);
        }
    }

    /// Takes a queue out, which is in the list of this priority.
    pub(super) fn take(&mut self, arena: &mut impl Arena, index: QueueIndex, priority: u8) {
        if let Some(list) = self.lists.get_mut(usize::from(priority)) {
            list.take(arena, by_turn, index);
            self.count = self.count.wrapping_sub(1);
            if list.first.is_none() {
                self.mask &= !1_u32.wrapping_shl(priority.into());
            }
        }
    }

    /// The queue whose turn it is; it stays where it is.
    pub(super) fn next(&mut self) -> Option<QueueIndex> {
        let priority = self.choose()?;

        // CAST: to a wider type.
        self.lists.get(priority as usize)?.first
    }

    /// The priority whose turn it is.
    fn choose(&mut self) -> Option<u32> {
        let highest = self.mask.checked_ilog2()?;
        let others = self.mask & !1_u32.wrapping_shl(highest);

        self.slices = self.slices.saturating_add(1);
        if self.slices < LOWER_EVERY || others == 0 {
            return Some(highest);
        }

        // The next one below the last one, then round again from the top.
        let below = others & !u32::MAX.wrapping_shl(self.lower);

        self.slices = 0;
        self.lower = below.checked_ilog2().or(others.checked_ilog2())?;
        Some(self.lower)
    }
}
