// SPDX-License-Identifier: GPL-2.0

//! Queues that wait for native fences, each in the list of its fence (GPU-43, GPU-53, GPU-55).
//! Nobody looks at them before the fence is stored to.

use super::node::{
    by_turn,
    Arena,
    QueueIndex, //
};
use crate::engine::fences::FenceIndex;

/// How many there are.
pub(super) struct FenceWaits(u32);

impl FenceWaits {
    pub(super) const NONE: Self = Self(0);

    /// How many queues wait for a fence.
    pub(super) fn count(&self) -> u32 {
        self.0
    }

    /// Puts a queue with those that wait for the same fence.
    pub(super) fn push(&mut self, arena: &mut impl Arena, index: QueueIndex, fence: FenceIndex) {
        let Some(node) = arena.queue(index) else {
            return;
        };

        node.fence = Some(fence);

        let mut queues = arena.waiting_for(fence);

        queues.push(arena, by_turn, index);
        arena.set_waiting_for(fence, queues);
        // OVERFLOW: as many as there are numbers of queues, at most.
        self.0 = self.0.wrapping_add(1);
    }

    /// Takes a queue out, which waits for this fence.
    pub(super) fn take(&mut self, arena: &mut impl Arena, index: QueueIndex, fence: FenceIndex) {
        if let Some(node) = arena.queue(index) {
            node.fence = None;
        }

        let mut queues = arena.waiting_for(fence);

        queues.take(arena, by_turn, index);
        arena.set_waiting_for(fence, queues);
        self.0 = self.0.wrapping_sub(1);
    }
}
