// SPDX-License-Identifier: GPL-2.0

//! The run list of one engine: which of its queues runs next (GPU-43, GPU-49 to GPU-52).
//!
//! ```text
//!   add          work           next           slice_ended
//! GONE --> EMPTY -----> READY <--------> RUNNING --> EMPTY, BLOCKED, FAULTED, GONE
//!                         ^ poll, wake
//!                       BLOCKED            any but FAULTED <--> SUSPENDED
//! ```
//!
//! Nodes of queues and contexts are the shell's, which finds them by index ([`Arena`]); here are
//! the heads of lists through them. Every call takes as long whatever the number of queues is, but
//! for suspending and resuming a context, which take as long as it has queues. Queues that have
//! nothing to do cost nothing.
//!
//! LOCK: the shell's, around each call.

/// How many priorities there are. 0 is the lowest.
pub const PRIORITIES: usize = 32;

/// Of so many slices, one is for a priority below the highest one that is ready.
pub const LOWER_EVERY: u32 = 8;

/// Blocked queues are looked at after whole multiples of this.
const POLL_UNIT_NS: u64 = 100_000;
/// How many multiples there are. The longest interval of a packet needs 11.
const POLL_CLASSES: usize = 16;

/// How many blocked queues become ready in one call, at most.
pub const POLLS_AT_ONCE: u32 = 64;

/// Names a queue in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueIndex(pub u32);

/// Names a context in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextIndex(pub u32);

/// The state of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Not in the list.
    #[default]
    Gone,
    /// Nothing to do.
    Empty,
    /// Waits for its turn.
    Ready,
    /// An engine runs it.
    Running,
    /// Waits for a word in memory.
    Blocked,
    /// Its context is suspended.
    Suspended,
    /// A fault has stopped it.
    Faulted,
}

/// Which state may follow which.
const LEGAL: [(State, State); 20] = {
    use State::{
        Blocked,
        Empty,
        Faulted,
        Gone,
        Ready,
        Running,
        Suspended, //
    };

    [
        (Gone, Empty),
        (Empty, Ready),
        (Empty, Suspended),
        (Empty, Gone),
        (Ready, Running),
        (Ready, Suspended),
        (Ready, Gone),
        (Running, Ready),
        (Running, Empty),
        (Running, Blocked),
        (Running, Suspended),
        (Running, Faulted),
        (Running, Gone),
        (Blocked, Ready),
        (Blocked, Suspended),
        (Blocked, Gone),
        (Suspended, Empty),
        (Suspended, Ready),
        (Suspended, Gone),
        (Faulted, Gone),
    ]
};

impl State {
    /// Whether a queue in this state may go to another one.
    pub fn may_become(self, next: Self) -> bool {
        LEGAL.contains(&(self, next))
    }
}

/// What the run list remembers of a queue. In the arena.
#[derive(Clone, Debug, Default)]
pub struct QueueNode {
    state: State,
    priority: u8,
    context: Option<ContextIndex>,
    /// There is something to do, while the state does not say so: found while running, or
    /// suspended.
    has_work: bool,
    /// To be [`State::Gone`] when its slice ends.
    leaves: bool,
    /// In the list of its priority, or in one of blocked queues.
    turn: Links,
    /// In the list of its context.
    sibling: Links,
    /// When to look again, and in which list of blocked queues it is for that.
    poll_at_ns: u64,
    poll_class: usize,
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

    /// Goes to another state; refused if that is not legal (GPU-49).
    fn go_to(&mut self, next: State) -> Result<(), Refused> {
        if !self.state.may_become(next) {
            return Err(Refused);
        }
        self.state = next;
        Ok(())
    }
}

/// What the run list remembers of a context. In the arena.
#[derive(Clone, Debug, Default)]
pub struct ContextNode {
    queues: List,
    is_suspended: bool,
    /// How many of its queues run.
    running: u32,
    /// The request that has not been completed, because one of them does.
    request: Option<u64>,
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
}

/// The call makes no sense in this state of the queue or context, or names nothing. Nothing has
/// been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// How the slice of a queue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// There is more to do.
    More,
    /// There is nothing to do.
    Empty,
    /// It waits for a word, at which to look again after this time.
    Blocked {
        /// Nanoseconds, as in `Outcome::Blocked`. More than 1.6 ms count as that.
        poll_after_ns: u64,
    },
    /// A fault stopped it.
    Faulted,
}

/// A request to suspend a context is complete: none of its queues runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendCompleted {
    /// Whose queues they are.
    pub context: ContextIndex,
    /// The suspend fence id of the latest request.
    pub fence_id: u64,
}

/// What the end of a slice led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// To be reported (GPU-51).
    pub suspended: Option<SuspendCompleted>,
    /// The queue is not in the list any more, as [`RunList::remove`] wanted.
    pub is_gone: bool,
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

/// The neighbours of a queue in a list.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    before: Option<QueueIndex>,
    after: Option<QueueIndex>,
}

/// A list of queues, first in, first out.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    first: Option<QueueIndex>,
    last: Option<QueueIndex>,
}

/// Which links of its queues a list goes through.
type Way = fn(&mut QueueNode) -> &mut Links;

fn by_turn(node: &mut QueueNode) -> &mut Links {
    &mut node.turn
}

fn by_context(node: &mut QueueNode) -> &mut Links {
    &mut node.sibling
}

impl List {
    const EMPTY: Self = Self {
        first: None,
        last: None,
    };

    /// Puts a queue behind all others.
    fn push(&mut self, arena: &mut impl Arena, way: Way, index: QueueIndex) {
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
    fn take(&mut self, arena: &mut impl Arena, way: Way, index: QueueIndex) {
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

/// The run list of one engine.
pub struct RunList {
    /// Ready queues of each priority.
    ready: [List; PRIORITIES],
    /// One bit for each priority that has any.
    ready_mask: u32,
    /// Blocked queues by the time after which they are looked at again, each list by when that is.
    blocked: [List; POLL_CLASSES],
    /// Slices since one was for a lower priority.
    slices: u32,
    /// The lower priority that had it.
    lower: u32,
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
            ready: [List::EMPTY; PRIORITIES],
            ready_mask: 0,
            blocked: [List::EMPTY; POLL_CLASSES],
            slices: 0,
            lower: 0,
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
                self.push_ready(arena, index, priority);
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

    /// The queue that runs now, until [`RunList::slice_ended`]; `None` if none is ready.
    pub fn next(&mut self, arena: &mut impl Arena, now_ns: u64) -> Option<QueueIndex> {
        self.poll(arena, now_ns);

        let priority = self.choose()?;
        let index = self.list_mut(priority)?.first?;

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
        self.blocked
            .iter()
            .filter_map(|list| Some(arena.queue(list.first?)?.poll_at_ns))
            .min()
    }

    /// Whether a queue is ready.
    pub fn has_ready(&self) -> bool {
        self.ready_mask != 0
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
        node.has_work |= matches!(slice, Slice::More | Slice::Blocked { .. });

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
        } else if let Slice::Blocked { poll_after_ns } = slice {
            self.block(arena, index, poll_after_ns, now_ns)?;
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

    /// SuspendContext: no queue of the context runs from now on, or from the end of a slice on
    /// (GPU-51).
    ///
    /// A later request takes the place of one that is not complete.
    pub fn suspend(
        &mut self,
        arena: &mut impl Arena,
        context: ContextIndex,
        fence_id: u64,
    ) -> Result<Suspension, Refused> {
        let node = arena.context(context).ok_or(Refused)?;
        let is_new = !node.is_suspended;
        let is_running = node.running != 0;
        let mut at = node.queues.first;

        node.is_suspended = true;
        node.request = is_running.then_some(fence_id);

        while let (Some(index), true) = (at, is_new) {
            let Some(queue) = arena.queue(index) else {
                break;
            };

            at = queue.sibling.after;
            match queue.state {
                State::Ready | State::Blocked => {
                    queue.has_work = true;
                    self.take_out(arena, index);
                    self.set(arena, index, State::Suspended)?;
                }
                State::Empty => self.set(arena, index, State::Suspended)?,
                State::Running | State::Suspended | State::Faulted | State::Gone => {}
            }
        }
        Ok(if is_running {
            Suspension::Pending
        } else {
            Suspension::Suspended
        })
    }

    /// ResumeContext: the queues of the context run again. Those that were blocked look again
    /// (GPU-52). A request that is not complete is forgotten.
    pub fn resume(&mut self, arena: &mut impl Arena, context: ContextIndex) -> Result<(), Refused> {
        let node = arena.context(context).ok_or(Refused)?;
        let mut at = node.queues.first;

        node.is_suspended = false;
        node.request = None;

        while let Some(index) = at {
            let Some(queue) = arena.queue(index) else {
                break;
            };

            at = queue.sibling.after;
            if queue.state == State::Suspended {
                if queue.has_work {
                    self.make_ready(arena, index)?;
                } else {
                    self.set(arena, index, State::Empty)?;
                }
            }
        }
        Ok(())
    }

    /// Makes blocked queues ready whose time has come, at most [`POLLS_AT_ONCE`].
    fn poll(&mut self, arena: &mut impl Arena, now_ns: u64) {
        let mut left = POLLS_AT_ONCE;

        for class in 0..POLL_CLASSES {
            while left != 0 {
                let Some(first) = self.blocked.get(class).and_then(|list| list.first) else {
                    break;
                };
                let is_due = arena
                    .queue(first)
                    .is_some_and(|node| node.poll_at_ns <= now_ns);

                if !is_due || self.wake(arena, first).is_err() {
                    break;
                }
                left = left.saturating_sub(1);
            }
        }
    }

    /// The priority whose turn it is.
    fn choose(&mut self) -> Option<u8> {
        let highest = self.ready_mask.checked_ilog2()?;
        let others = self.ready_mask & !(1 << highest);

        self.slices = self.slices.saturating_add(1);

        let chosen = if self.slices >= LOWER_EVERY && others != 0 {
            // The next one below the last one, then round again from the top.
            let below = others & !u32::MAX.wrapping_shl(self.lower);

            self.slices = 0;
            self.lower = below.checked_ilog2().or(others.checked_ilog2())?;
            self.lower
        } else {
            highest
        };

        u8::try_from(chosen).ok()
    }

    fn list_mut(&mut self, priority: u8) -> Option<&mut List> {
        self.ready.get_mut(usize::from(priority))
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
        self.push_ready(arena, index, priority);
        Ok(())
    }

    /// Puts a ready queue that is in no list of turns behind all others of its priority.
    fn push_ready(&mut self, arena: &mut impl Arena, index: QueueIndex, priority: u8) {
        if let Some(list) = self.list_mut(priority) {
            list.push(arena, by_turn, index);
            self.ready_mask |= 1_u32.wrapping_shl(priority.into());
        }
    }

    /// Puts a queue that ran with those that wait.
    fn block(
        &mut self,
        arena: &mut impl Arena,
        index: QueueIndex,
        poll_after_ns: u64,
        now_ns: u64,
    ) -> Result<(), Refused> {
        let units = poll_after_ns.div_ceil(POLL_UNIT_NS);
        let class = usize::try_from(units.saturating_sub(1))
            .unwrap_or(usize::MAX)
            .min(POLL_CLASSES - 1);
        let node = arena.queue(index).ok_or(Refused)?;

        node.go_to(State::Blocked)?;
        // All in one list wait for the same time, so it is in the order of their times.
        // CAST: to a wider type.
        node.poll_at_ns = now_ns.saturating_add((class as u64 + 1) * POLL_UNIT_NS);
        node.poll_class = class;
        if let Some(list) = self.blocked.get_mut(class) {
            list.push(arena, by_turn, index);
        }
        Ok(())
    }

    /// Takes a queue out of the list of turns that it is in, if it is in one.
    fn take_out(&mut self, arena: &mut impl Arena, index: QueueIndex) {
        let Some(node) = arena.queue(index) else {
            return;
        };
        let (priority, class) = (node.priority, node.poll_class);

        match node.state {
            State::Ready => {
                if let Some(list) = self.list_mut(priority) {
                    list.take(arena, by_turn, index);
                    if list.first.is_none() {
                        self.ready_mask &= !1_u32.wrapping_shl(priority.into());
                    }
                }
            }
            State::Blocked => {
                if let Some(list) = self.blocked.get_mut(class) {
                    list.take(arena, by_turn, index);
                }
            }
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
