// SPDX-License-Identifier: GPL-2.0

//! What a run list remembers of a queue and of a context, in memory of the shell, and the lists
//! that go through it.

use super::state::State;
use crate::engine::fences::FenceIndex;

/// Names a queue in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueIndex(pub u32);

/// Names a context in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextIndex(pub u32);

/// What the run list remembers of a queue. In the arena.
#[derive(Clone, Debug, Default)]
pub struct QueueNode {
    pub(super) state: State,
    pub(super) priority: u8,
    pub(super) context: Option<ContextIndex>,
    /// There is something to do, while the state does not say so: found while running, or
    /// suspended.
    pub(super) has_work: bool,
    /// To be [`State::Gone`] when its slice ends.
    pub(super) leaves: bool,
    /// What it waits for, if that is a native fence.
    pub(super) fence: Option<FenceIndex>,
    /// In the list of its priority, or in one of blocked queues.
    pub(super) turn: Links,
    /// In the list of its context.
    pub(super) sibling: Links,
    /// When it began to wait for a word, if it does.
    pub(super) waits_since_ns: u64,
    /// When to look again, and in which list of blocked queues it is for that.
    pub(super) poll_at_ns: u64,
    pub(super) poll_class: usize,
}

impl QueueNode {
    /// The state of the queue.
    pub fn state(&self) -> State {
        self.state
    }

    /// The context of the queue.
    pub fn context(&self) -> Option<ContextIndex> {
        self.context
    }

    /// When a queue that is blocked is looked at again.
    pub fn poll_at_ns(&self) -> u64 {
        self.poll_at_ns
    }

    /// Goes to another state. No call leads to one that is not legal: that would be a mistake of
    /// the run list or of its arena, which builds for tests end with, and others refuse (GPU-49).
    pub(super) fn go_to(&mut self, next: State) -> Result<(), Refused> {
        if !self.state.may_become(next) {
            debug_assert!(false, "a queue that is {:?} becomes {next:?}", self.state);
            return Err(Refused);
        }
        self.state = next;
        Ok(())
    }
}

/// What the run list remembers of a context. In the arena.
#[derive(Clone, Debug, Default)]
pub struct ContextNode {
    pub(super) queues: List,
    pub(super) is_suspended: bool,
    /// How many of its queues run.
    pub(super) running: u32,
    /// The request that has not been completed, because one of them does.
    pub(super) request: Option<u64>,
}

impl ContextNode {
    /// Whether it is suspended, or going to be.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Whether it has no queue in the run list.
    pub fn is_empty(&self) -> bool {
        self.queues.first.is_none()
    }
}

/// Where the nodes are. `None` for an index that names nothing.
///
/// The same index finds the same node as long as the queue is in the run list.
pub trait Arena {
    /// The node of a queue.
    fn queue(&mut self, index: QueueIndex) -> Option<&mut QueueNode>;

    /// The node of a context.
    fn context(&mut self, index: ContextIndex) -> Option<&mut ContextNode>;

    /// The queues of this engine that wait for a native fence. Who stores its CurrentValue has to
    /// see whether there are any, so the list is a word that others may load at any time.
    fn waiting_for(&mut self, _fence: FenceIndex) -> List {
        List::EMPTY
    }

    /// Changes that list.
    fn set_waiting_for(&mut self, _fence: FenceIndex, _queues: List) {}
}

/// The call makes no sense in this state of the queue or context, or names nothing. Nothing has
/// been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// The neighbours of a queue in a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    pub(super) before: Option<QueueIndex>,
    pub(super) after: Option<QueueIndex>,
}

/// A list of queues, first in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct List {
    pub(super) first: Option<QueueIndex>,
    last: Option<QueueIndex>,
}

/// Which links of its queues a list goes through.
pub(super) type Way = fn(&mut QueueNode) -> &mut Links;

pub(super) fn by_turn(node: &mut QueueNode) -> &mut Links {
    &mut node.turn
}

pub(super) fn by_context(node: &mut QueueNode) -> &mut Links {
    &mut node.sibling
}

impl List {
    /// No queues.
    pub const EMPTY: Self = Self {
        first: None,
        last: None,
    };

    /// The same as a word, which is 0 if it is empty.
    pub fn to_word(self) -> u64 {
        // OVERFLOW: no arena has that many queues.
        let half = |index: Option<QueueIndex>| {
            index.map_or(0, |QueueIndex(number)| u64::from(number.saturating_add(1)))
        };

        (half(self.first) << 32) | half(self.last)
    }

    /// The list that [`List::to_word`] made a word of.
    pub fn from_word(word: u64) -> Self {
        // CAST: the two halves.
        let half = |half: u64| (half as u32).checked_sub(1).map(QueueIndex);

        Self {
            first: half(word >> 32),
            last: half(word),
        }
    }

    /// Puts a queue behind all others.
    pub(super) fn push(&mut self, arena: &mut impl Arena, way: Way, index: QueueIndex) {
        let Some(node) = arena.queue(index) else {
            return;
        };

        *way(node) = Links {
            before: self.last,
            after: None,
        };
        match self.last.and_then(|last| arena.queue(last)) {
            Some(last) => way(last).after = Some(index),
            None => self.first = Some(index),
        }
        self.last = Some(index);
    }

    /// Takes a queue out, which is in this list.
    pub(super) fn take(&mut self, arena: &mut impl Arena, way: Way, index: QueueIndex) {
        let Some(node) = arena.queue(index) else {
            return;
        };
        let links = core::mem::take(way(node));

        match links.before.and_then(|before| arena.queue(before)) {
            Some(before) => way(before).after = links.after,
            None => self.first = links.after,
        }
        match links.after.and_then(|after| arena.queue(after)) {
            Some(after) => way(after).before = links.before,
            None => self.last = links.before,
        }
    }
}
