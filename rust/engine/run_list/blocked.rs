// SPDX-License-Identifier: GPL-2.0

//! Queues that wait for a word in memory, by when it is to be looked at again (GPU-43).

use super::node::{
    by_turn,
    Arena,
    List,
    QueueIndex, //
};

/// Blocked queues are looked at after whole multiples of this.
const UNIT_NS: u64 = 100_000;
/// How many multiples there are. The longest interval of a packet needs 11.
const CLASSES: usize = 16;

/// Blocked queues by the time after which they are looked at again. All of one list wait for the
/// same time, so each list is in the order of when that is.
pub(super) struct Blocked {
    lists: [List; CLASSES],
    /// How many there are in all of them.
    count: u32,
}

impl Blocked {
    pub(super) const EMPTY: Self = Self {
        lists: [List::EMPTY; CLASSES],
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
        let units = poll_after_ns.div_ceil(UNIT_NS);
        let class = usize::try_from(units.saturating_sub(1))
            .unwrap_or(usize::MAX)
            .min(CLASSES - 1);

        if let Some(node) = arena.queue(index) {
            // CAST: to a wider type.
            node.poll_at_ns = now_ns.saturating_add((class as u64 + 1) * UNIT_NS);
            node.poll_class = class;
        }
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
