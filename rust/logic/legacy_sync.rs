// SPDX-License-Identifier: GPL-2.0

//! Mutexes and semaphores: what queued work waits for and takes (fences.md section 2.6).
//!
//! The caller owns the lock and the memory of the nodes; this file decides. Waits are served in the
//! order in which they came, because each takes something away. A legacy fence takes nothing away:
//! its waits are those of [`Waiters`](super::waiters::Waiters).

use super::waiters::{
    EnqueueResult,
    WaitKey,
    WaitMap,
    BATCH, //
};

/// What an object has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// One owner at a time.
    Mutex {
        /// Whether somebody has it.
        owned: bool,
    },
    /// A semaphore; `count` is at most `max`.
    Semaphore {
        /// How many waits it satisfies now.
        count: u32,
        /// How far signals raise it.
        max: u32,
    },
}

impl Supply {
    /// Takes what a wait takes; false if it is not there.
    fn take(&mut self) -> bool {
        match self {
            Self::Mutex { owned } => !core::mem::replace(owned, true),
            Self::Semaphore { count, .. } => match count.checked_sub(1) {
                Some(fewer) => {
                    *count = fewer;
                    true
                }
                None => false,
            },
        }
    }

    /// A signal: a mutex is free, the count of a semaphore goes up by one unless it is at its
    /// maximum.
    fn put(&mut self) {
        match self {
            Self::Mutex { owned } => *owned = false,
            Self::Semaphore { count, max } => *count = count.saturating_add(1).min(*max),
        }
    }
}

/// The waits for one object. Protected by its lock.
pub struct SupplyWaiters<M> {
    supply: Supply,
    map: M,
    /// How many are in the map.
    queued: u32,
    next_seq: u64,
    orphaned: bool,
}

impl<M: WaitMap> SupplyWaiters<M> {
    /// No waits; `map` must be empty.
    pub const fn new(supply: Supply, map: M) -> Self {
        Self {
            supply,
            map,
            queued: 0,
            next_seq: 0,
            orphaned: false,
        }
    }

    /// What there is now.
    pub fn supply(&self) -> Supply {
        self.supply
    }

    /// How many waits are queued.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// Queues a wait, unless it is satisfied now. Nobody overtakes: what those before could have,
    /// they have got.
    pub fn enqueue(&mut self, new_node: M::NewNode) -> EnqueueResult<M::NewNode> {
        if self.map.first().is_none() && self.supply.take() {
            return EnqueueResult::Satisfied(new_node);
        }
        if self.orphaned {
            return EnqueueResult::Orphaned(new_node);
        }

        let key = WaitKey {
            value: 0,
            seq: self.next_seq,
        };

        // OVERFLOW: 2^64 waits for one object take longer than any machine runs; wrapping is total.
        self.next_seq = self.next_seq.wrapping_add(1);
        // OVERFLOW: each takes memory, and users have limits.
        self.queued = self.queued.saturating_add(1);
        self.map.put(M::name(new_node, key));
        EnqueueResult::Queued(key)
    }

    /// Signals the object. The caller goes on with [`SupplyWaiters::release`].
    pub fn signal(&mut self) {
        self.supply.put();
    }

    /// Moves the next waits that get something into `due`; true if there may be more. The lock may
    /// be dropped before it is called again.
    pub fn release(&mut self, due: &mut M) -> bool {
        for _ in 0..BATCH {
            if self.map.first().is_none() || !self.supply.take() {
                return false;
            }
            if let Some(node) = self.map.take_first() {
                self.queued = self.queued.saturating_sub(1);
                due.put(node);
            }
        }
        true
    }

    /// Takes one wait out again; `None` if it is not queued any more. Then it has got something,
    /// unless the object has retired.
    pub fn cancel(&mut self, key: &WaitKey) -> Option<M::Node> {
        let node = self.map.take(key)?;

        self.queued = self.queued.saturating_sub(1);
        Some(node)
    }

    /// Nobody can signal any more: refuses new waits and hands out those that are queued (FEN-28).
    pub fn orphan(&mut self, empty: M) -> M {
        self.orphaned = true;
        self.queued = 0;
        core::mem::replace(&mut self.map, empty)
    }
}
