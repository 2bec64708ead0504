// SPDX-License-Identifier: GPL-2.0

//! When a value of a monitored fence may become a fence of the kernel (FEN-160, FEN-161).
//!
//! A fence of the kernel signals within a bounded time, whatever users do. So one is given out only
//! for a signal that is queued already, and only if everything before it in its queue ends by
//! itself. What users signal with a CPU, by a store of an engine, or in a queue that they fill
//! themselves is never found here, because none of it is an item of a queue.

/// An item of a queue, as far as that is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Commands for an engine.
    Commands,
    /// A signal. `reaches`: it will give the fence the value, or a larger one, and nothing but its
    /// turn in this queue is missing.
    Signal { reaches: bool },
    /// Something that holds back what is behind it, until it ends in this way.
    Wait(End),
}

/// How a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself: it waits for a fence of the kernel, or is over.
    Bounded,
    /// Its condition holds now. Users may take that back before it is its turn.
    HoldsNow,
    /// When values of monitored fences come, which may be queued themselves.
    WithFences,
    /// Users decide.
    Unbounded,
}

/// What becomes of an export when it comes to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It looks at the next item.
    GoOn,
    /// The same, and the wait is over from now on, whatever becomes of its condition.
    Latch,
    /// It looks at what the wait waits for: if all of that can be exported, the wait can be
    /// bounded.
    Blocked,
    /// This is the signal.
    Found,
    /// There is none, or users can delay it: NOT_SUPPORTED.
    Refused,
}

/// What an export has seen of a queue so far. Items are shown to it in their order.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Whether the engine takes commands of the queue away when they take too long.
    has_timeout: bool,
}

impl Way {
    /// The queue has begun so many commands that have not completed. `None` if they may take for
    /// ever.
    pub fn new(has_timeout: bool, in_flight: u64) -> Option<Self> {
        (has_timeout || in_flight == 0).then_some(Self { has_timeout })
    }

    /// The next item.
    pub fn see(&self, item: Item) -> Verdict {
        match item {
            Item::Signal { reaches: true } => Verdict::Found,
            Item::Signal { reaches: false } | Item::Wait(End::Bounded) => Verdict::GoOn,
            Item::Commands if self.has_timeout => Verdict::GoOn,
            Item::Wait(End::HoldsNow) => Verdict::Latch,
            Item::Wait(End::WithFences) => Verdict::Blocked,
            Item::Commands | Item::Wait(End::Unbounded) => Verdict::Refused,
        }
    }
}
