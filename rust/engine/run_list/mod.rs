// SPDX-License-Identifier: GPL-2.0

//! The run list of one engine: which of its queues runs next (GPU-43, GPU-49 to GPU-52).
//!
//! ```text
//!   add          work           next           slice_ended
//! GONE --> EMPTY -----> READY <--------> RUNNING --> EMPTY, BLOCKED, FAULTED, GONE
//!                         ^ poll, wake, fence_stored
//!                       BLOCKED            any but FAULTED <--> SUSPENDED
//! ```
//!
//! Nodes of queues and contexts are the shell's, which finds them by index ([`Arena`]); here are
//! the heads of lists through them. Every call takes as long whatever the number of queues is, but
//! for suspending and resuming a context, which take as long as it has queues. Queues that have
//! nothing to do cost nothing.
//!
//! LOCK: the shell's, around each call.

mod blocked;
mod fence_waits;
mod node;
pub mod ready;
mod state;
mod suspension;

use super::fences::FenceIndex;
use blocked::Blocked;
use fence_waits::FenceWaits;
use node::by_context;
pub use node::{
    Arena,
    ContextIndex,
    ContextNode,
    List,
    QueueIndex,
    QueueNode,
    Refused, //
};
use ready::Ready;
pub use ready::PRIORITIES;
pub use state::State;

/// How many blocked queues become ready in one call, at most.
pub const POLLS_AT_ONCE: u32 = 64;

/// How the slice of a queue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// There is more to do.
    More,
    /// There is nothing to do.
    Empty,
    /// It waits for a word, at which to look again after this time, or later: see `blocked.rs`.
    Blocked {
        /// Nanoseconds, as in `Outcome::Blocked`.
        poll_after_ns: u64,
        /// It has waited for the same word before this slice.
        again: bool,
    },
    /// It waits for a native fence.
    BlockedOnFence(FenceIndex),
    /// A fault stopped it.
    Faulted,
}

/// What the end of a slice led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// To be reported (GPU-51).
    pub suspended: Option<SuspendCompleted>,
    /// The queue is not in the list any more, as [`RunList::remove`] wanted.
    pub is_gone: bool,
}

/// A request to suspend a context is complete: none of its queues runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendCompleted {
    /// Whose queues they are.
    pub context: ContextIndex,
    /// The suspend fence id of the latest request.
    pub fence_id: u64,
}

/// What became of a request to suspend a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// None of its queues runs.
    Suspended,
    /// One does. The end of its slice completes the request.
    Pending,
}

/// What became of a request to remove a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Its index may be used again.
    Gone,
    /// It runs. It goes when its slice ends.
    Pending,
}

/// The run list of one engine.
pub struct RunList {
    ready: Ready,
    blocked: Blocked,
    fence_waits: FenceWaits,
}

impl Default for RunList {
    fn default() -> Self {
        Self::new()
    }
}

impl RunList {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            ready: Ready::EMPTY,
            blocked: Blocked::EMPTY,
            fence_waits: FenceWaits::NONE,
        }
    }

    /// Adds a queue, with nothing to do. Its node must be one that is [`State::Gone`].
    ///
    /// # Arguments
    ///
    /// * `context` - if that is suspended, so is the queue.
    /// * `priority` - less than [`PRIORITIES`].
    pub fn add(
        &mut self,
        arena: &mut impl Arena,
        index: QueueIndex,
        context: ContextIndex,
        priority: u8,
    ) -> Result<(), Refused> {
        let is_suspended = arena.context(context).ok_or(Refused)?.is_suspended;
        let node = arena.queue(index).ok_or(Refused)?;

        if usize::from(priority) >= PRIORITIES || node.state != State::Gone {
            return Err(Refused);
        }
        *node = QueueNode {
            priority,
            context: Some(context),
            ..QueueNode::default()
        };
        node.go_to(State::Empty)?;
        if is_suspended {
            node.go_to(State::Suspended)?;
        }
        self.in_context(arena, context, |list, arena| {
            list.push(arena, by_context, index);
        });
        Ok(())
    }

    /// The queues of a context have another priority from now on, less than [`PRIORITIES`]. Ready
    /// ones go behind the others of that priority.
    pub fn set_priority(
        &mut self,
        arena: &mut impl Arena,
        context: ContextIndex,
        priority: u8,
    ) -> Result<(), Refused> {
        let mut at = arena.context(context).ok_or(Refused)?.queues.first;

        if usize::from(priority) >= PRIORITIES {
            return Err(Refused);
        }
        while let Some(index) = at {
            let Some(queue) = arena.queue(index) else {
                break;
            };
            let is_ready = queue.state == State::Ready;

            at = queue.sibling.after;
            if is_ready {
                self.take_out(arena, index);
            }
            if let Some(queue) = arena.queue(index) {
                queue.priority = priority;
            }
            if is_ready {
                self.ready.push(arena, index, priority);
            }
        }
        Ok(())
    }

    /// The queue has something to do, for example a submission.
    pub fn work(&mut self, arena: &mut impl Arena, index: QueueIndex) -> Result<(), Refused> {
        let node = arena.queue(index).ok_or(Refused)?;

        match node.state {
            State::Empty => self.make_ready(arena, index),
            State::Running | State::Suspended => {
                node.has_work = true;
                Ok(())
            }
            // It is known to have something to do.
            State::Ready | State::Blocked => Ok(()),
            State::Faulted | State::Gone => Err(Refused),
        }
    }

    /// A blocked queue is to look again, because what it waits for may have come.
    pub fn wake(&mut self, arena: &mut impl Arena, index: QueueIndex) -> Result<(), Refused> {
        if arena.queue(index).ok_or(Refused)?.state == State::Blocked {
            self.take_out(arena, index);
            self.make_ready(arena, index)?;
        }
        Ok(())
    }

    /// CurrentValue of a native fence was stored: the queues that wait for it look again, or this
    /// many of them. False if there are more. Queues that wait for others are not touched (GPU-54).
    pub fn fence_stored(&mut self, arena: &mut impl Arena, fence: FenceIndex, most: u32) -> bool {
        for _ in 0..most {
            let Some(index) = arena.waiting_for(fence).first else {
                return true;
            };

            // It is blocked, because it is in this list.
            if self.wake(arena, index).is_err() {
                return true;
            }
        }
        arena.waiting_for(fence).first.is_none()
    }

    /// The queue that runs now, until [`RunList::slice_ended`]; `None` if none is ready.
    pub fn next(&mut self, arena: &mut impl Arena, now_ns: u64) -> Option<QueueIndex> {
        self.poll(arena, now_ns);

        let index = self.ready.next()?;

        self.take_out(arena, index);

        let node = arena.queue(index)?;

        node.go_to(State::Running).ok()?;
        node.has_work = false;

        let context = node.context?;
        let context = arena.context(context)?;

        // OVERFLOW: bounded by the number of queues.
        context.running = context.running.saturating_add(1);
        Some(index)
    }

    /// When [`RunList::next`] may have a queue that it does not have now: the earliest poll of a
    /// blocked queue. `None` if there is none.
    pub fn next_poll_ns(&self, arena: &mut impl Arena) -> Option<u64> {
        self.blocked.next_ns(arena)
    }

    /// How many queues are ready.
    pub fn ready(&self) -> u32 {
        self.ready.count()
    }

    /// How many queues are blocked.
    pub fn blocked(&self) -> u32 {
        // OVERFLOW: as many as there are numbers of queues, at most.
        self.blocked.count().wrapping_add(self.fence_waits.count())
    }

    /// The queue that ran does not run any more.
    pub fn slice_ended(
        &mut self,
        arena: &mut impl Arena,
        index: QueueIndex,
        slice: Slice,
        now_ns: u64,
    ) -> Result<Ended, Refused> {
        let node = arena.queue(index).ok_or(Refused)?;
        let context_index = node.context.ok_or(Refused)?;

        if node.state != State::Running {
            return Err(Refused);
        }
        node.has_work |= matches!(
            slice,
            Slice::More | Slice::Blocked { .. } | Slice::BlockedOnFence(_)
        );

        let (has_work, leaves) = (node.has_work, node.leaves);
        let context = arena.context(context_index).ok_or(Refused)?;
        let is_suspended = context.is_suspended;
        let suspended = {
            context.running = context.running.saturating_sub(1);
            if context.running == 0 {
                context.request.take()
            } else {
                None
            }
        };

        if leaves {
            self.leave(arena, index)?;
        } else if slice == Slice::Faulted {
            self.set(arena, index, State::Faulted)?;
        } else if is_suspended {
            self.set(arena, index, State::Suspended)?;
        } else if let Slice::Blocked {
            poll_after_ns,
            again,
        } = slice
        {
            self.set(arena, index, State::Blocked)?;
            if !again {
                arena.queue(index).ok_or(Refused)?.waits_since_ns = now_ns;
            }
            self.blocked.push(arena, index, poll_after_ns, now_ns);
        } else if let Slice::BlockedOnFence(fence) = slice {
            self.set(arena, index, State::Blocked)?;
            self.fence_waits.push(arena, index, fence);
        } else if has_work {
            self.make_ready(arena, index)?;
        } else {
            self.set(arena, index, State::Empty)?;
        }
        Ok(Ended {
            suspended: suspended.map(|fence_id| SuspendCompleted {
                context: context_index,
                fence_id,
            }),
            is_gone: leaves,
        })
    }

    /// No queue of the context runs any more, as if each had faulted. None of them runs now.
    pub fn stop_context(
        &mut self,
        arena: &mut impl Arena,
        context: ContextIndex,
    ) -> Result<(), Refused> {
        let mut at = arena.context(context).ok_or(Refused)?.queues.first;

        while let Some(index) = at {
            let Some(queue) = arena.queue(index) else {
                break;
            };

            at = queue.sibling.after;
            if !matches!(queue.state, State::Running | State::Faulted | State::Gone) {
                self.take_out(arena, index);
                self.set(arena, index, State::Faulted)?;
            }
        }
        Ok(())
    }

    /// A queue of the context: the first one that has something to do, or the first one.
    pub fn first_of(&self, arena: &mut impl Arena, context: ContextIndex) -> Option<QueueIndex> {
        let first = arena.context(context)?.queues.first?;
        let mut at = Some(first);

        while let Some(index) = at {
            let queue = arena.queue(index)?;

            if matches!(queue.state, State::Ready | State::Blocked | State::Running) {
                return Some(index);
            }
            at = queue.sibling.after;
        }
        Some(first)
    }

    /// Takes a queue out of the list, for good.
    pub fn remove(
        &mut self,
        arena: &mut impl Arena,
        index: QueueIndex,
    ) -> Result<Removal, Refused> {
        let node = arena.queue(index).ok_or(Refused)?;

        match node.state {
            State::Gone => Err(Refused),
            State::Running => {
                node.leaves = true;
                Ok(Removal::Pending)
            }
            _ => {
                self.take_out(arena, index);
                self.leave(arena, index)?;
                Ok(Removal::Gone)
            }
        }
    }

    /// Makes blocked queues ready whose time has come, at most [`POLLS_AT_ONCE`].
    fn poll(&mut self, arena: &mut impl Arena, now_ns: u64) {
        for _ in 0..POLLS_AT_ONCE {
            let Some(due) = self.blocked.due(arena, now_ns) else {
                break;
            };

            if self.wake(arena, due).is_err() {
                break;
            }
        }
    }

    /// Changes the state of a queue that is in no list of turns.
    fn set(
        &mut self,
        arena: &mut impl Arena,
        index: QueueIndex,
        state: State,
    ) -> Result<(), Refused> {
        arena.queue(index).ok_or(Refused)?.go_to(state)
    }

    /// Puts a queue that is in no list of turns behind all ready ones of its priority.
    fn make_ready(&mut self, arena: &mut impl Arena, index: QueueIndex) -> Result<(), Refused> {
        let node = arena.queue(index).ok_or(Refused)?;
        let priority = node.priority;

        node.go_to(State::Ready)?;
        self.ready.push(arena, index, priority);
        Ok(())
    }

    /// Takes a queue out of the list of turns that it is in, if it is in one.
    fn take_out(&mut self, arena: &mut impl Arena, index: QueueIndex) {
        let Some(node) = arena.queue(index) else {
            return;
        };
        let priority = node.priority;

        match (node.state, node.fence) {
            (State::Ready, _) => self.ready.take(arena, index, priority),
            (State::Blocked, Some(fence)) => self.fence_waits.take(arena, index, fence),
            (State::Blocked, None) => self.blocked.take(arena, index),
            _ => {}
        }
    }

    /// Takes a queue that is in no list of turns out of its context.
    fn leave(&mut self, arena: &mut impl Arena, index: QueueIndex) -> Result<(), Refused> {
        let node = arena.queue(index).ok_or(Refused)?;
        let context = node.context.ok_or(Refused)?;

        node.go_to(State::Gone)?;
        self.in_context(arena, context, |list, arena| {
            list.take(arena, by_context, index);
        });
        Ok(())
    }

    /// Changes the list of a context.
    fn in_context<A: Arena>(
        &mut self,
        arena: &mut A,
        context: ContextIndex,
        change: impl FnOnce(&mut List, &mut A),
    ) {
        let Some(mut list) = arena.context(context).map(|node| node.queues) else {
            return;
        };

        change(&mut list, arena);
        if let Some(node) = arena.context(context) {
            node.queues = list;
        }
    }
}
