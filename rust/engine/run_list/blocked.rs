// SPDX-License-Identifier: GPL-2.0

//! Queues that wait for a word in memory, by when it is to be looked at again (GPU-43).
//!
//! The time between two looks is that of the packet, and not less than an eighth of how long the
//! queue has waited already. So whoever has to wait for a short time is late by little, and whoever
//! waits for a long time is looked at seldom: 33 times in the first 10 ms, 59 times in the
//! first 100 ms, and 78 times in each second after that.

use super::node::{
    by_turn,
    Arena,
    List,
    QueueIndex, //
};

/// Blocked queues are looked at after multiples of this.
const UNIT_NS: u64 = 100_000;

/// The multiples that there are. The longest interval of a packet is 11.
const CLASSES: [u64; 19] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 32, 64, 128,
];

/// Which part of the time that a queue has waited it waits at least before the next look.
const LATE_BY: u64 = 8;

/// The class whose time is not less than this, or the last one.
fn class_from(units: u64) -> usize {
    CLASSES
        .partition_point(|class| *class < units)
        .min(CLASSES.len() - 1)
}

/// The last class whose time is not more than this, or the first one.
fn class_within(units: u64) -> usize {
    CLASSES
        .partition_point(|class| *class <= units)
        .saturating_sub(1)
}

/// Blocked queues by the time after which they are looked at again. All of one list wait for the
/// same time, so each list is in the order of when that is.
pub(super) struct Blocked {
    lists: [List; CLASSES.len()],
    /// How many there are in all of them.
    count: u32,
}

impl Blocked {
    pub(super) const EMPTY: Self = Self {
        lists: [List::EMPTY; CLASSES.len()],
        count: 0,
    };

    /// How many queues are blocked.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Puts a queue with those that wait as long, from now on.
    pub(super) fn push(
        &mut self,
        arena: &mut impl Arena,
        index: QueueIndex,
        poll_after_ns: u64,
        now_ns: u64,
    ) {
        let Some(node) = arena.queue(index) else {
            return;
        };
        let waited_ns = now_ns.saturating_sub(node.waits_since_ns);
        let class = class_from(poll_after_ns.div_ceil(UNIT_NS))
            .max(class_within(waited_ns / LATE_BY / UNIT_NS));
        let units = CLASSES.get(class).copied().unwrap_or(1);

        node.poll_at_ns = now_ns.saturating_add(units * UNIT_NS);
        node.poll_class = class;
        if let Some(list) = self.lists.get_mut(class) {
            list.push(arena, by_turn, index);
            // OVERFLOW: as many as there are numbers of queues, at most.
            self.count = self.count.wrapping_add(1);
        }
    }

    /// Takes a queue out, which is here.
    pub(super) fn take(&mut self, arena: &mut impl Arena, index: QueueIndex) {
        let class = arena.queue(index).map(|node| node.poll_class);

        if let Some(list) = class.and_then(|class| self.lists.get_mut(class)) {
            list.take(arena, by_turn, index);
            self.count = self.count.wrapping_sub(1);
        }
    }

    /// A queue whose time has come; it stays where it is.
    pub(super) fn due(&self, arena: &mut impl Arena, now_ns: u64) -> Option<QueueIndex> {
        let mut firsts = self.lists.iter().filter_map(|list| list.first);

        firsts.find(|first| {
            arena
                .queue(*first)
                .is_some_and(|node| node.poll_at_ns <= now_ns)
        })
    }

    /// When the first one has to be looked at; `None` if there is none.
    pub(super) fn next_ns(&self, arena: &mut impl Arena) -> Option<u64> {
        let firsts = self.lists.iter().filter_map(|list| list.first);

        firsts
            .filter_map(|first| Some(arena.queue(first)?.poll_at_ns))
            .min()
    }
}
