// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which queue runs next (GPU-43, GPU-49 to GPU-52).

mod blocked;
mod fences;
mod model;
mod states;
mod suspension;
mod turns;

use std::collections::BTreeMap;

use crate::engine::fences::FenceIndex;
use crate::engine::run_list::{
    Arena, ContextIndex, ContextNode, Ended, List, QueueIndex, QueueNode, Refused, Removal,
    RunList, Slice, State, Suspension,
};

/// Nodes, and how often they were looked at.
#[derive(Default)]
struct Nodes {
    queues: Vec<QueueNode>,
    contexts: Vec<ContextNode>,
    /// The queues that wait for a native fence, as words.
    waiting: BTreeMap<FenceIndex, u64>,
    looks: usize,
}

impl Nodes {
    fn new(queues: usize, contexts: usize) -> Self {
        Self {
            queues: vec![QueueNode::default(); queues],
            contexts: vec![ContextNode::default(); contexts],
            waiting: BTreeMap::new(),
            looks: 0,
        }
    }

    fn state(&self, queue: u32) -> State {
        self.queues[queue as usize].state()
    }
}

impl Arena for Nodes {
    fn queue(&mut self, index: QueueIndex) -> Option<&mut QueueNode> {
        self.looks += 1;
        self.queues.get_mut(index.0 as usize)
    }

    fn context(&mut self, index: ContextIndex) -> Option<&mut ContextNode> {
        self.looks += 1;
        self.contexts.get_mut(index.0 as usize)
    }

    fn waiting_for(&mut self, fence: FenceIndex) -> List {
        List::from_word(self.waiting.get(&fence).copied().unwrap_or(0))
    }

    fn set_waiting_for(&mut self, fence: FenceIndex, queues: List) {
        self.waiting.insert(fence, queues.to_word());
    }
}

/// A run list with its nodes and a clock, by numbers.
struct Engine {
    list: RunList,
    nodes: Nodes,
    now_ns: u64,
}

impl Engine {
    fn new(queues: usize, contexts: usize) -> Self {
        Self {
            list: RunList::new(),
            nodes: Nodes::new(queues, contexts),
            now_ns: 0,
        }
    }

    fn add(&mut self, queue: u32, context: u32, priority: u8) {
        self.list
            .add(
                &mut self.nodes,
                QueueIndex(queue),
                ContextIndex(context),
                priority,
            )
            .unwrap();
    }

    fn work(&mut self, queue: u32) {
        self.list.work(&mut self.nodes, QueueIndex(queue)).unwrap();
    }

    fn next(&mut self) -> Option<u32> {
        self.list
            .next(&mut self.nodes, self.now_ns)
            .map(|index| index.0)
    }

    fn end(&mut self, queue: u32, slice: Slice) -> Ended {
        self.list
            .slice_ended(&mut self.nodes, QueueIndex(queue), slice, self.now_ns)
            .unwrap()
    }

    fn suspend(&mut self, context: u32, fence_id: u64) -> Suspension {
        self.list
            .suspend(&mut self.nodes, ContextIndex(context), fence_id)
            .unwrap()
    }

    fn resume(&mut self, context: u32) {
        self.list
            .resume(&mut self.nodes, ContextIndex(context))
            .unwrap();
    }

    fn remove(&mut self, queue: u32) -> Result<Removal, Refused> {
        self.list.remove(&mut self.nodes, QueueIndex(queue))
    }

    /// Runs the next queue for a slice. Which one it was.
    fn slice(&mut self, slice: Slice) -> Option<u32> {
        let queue = self.next()?;

        self.end(queue, slice);
        Some(queue)
    }

    /// The next queues, each with more to do.
    fn order(&mut self, slices: usize) -> Vec<u32> {
        (0..slices)
            .map(|_| self.slice(Slice::More).unwrap())
            .collect()
    }
}

const BLOCKED: Slice = Slice::Blocked {
    poll_after_ns: 100_000,
    again: false,
};

const STATES: [State; 7] = [
    State::Gone,
    State::Empty,
    State::Ready,
    State::Running,
    State::Blocked,
    State::Suspended,
    State::Faulted,
];

/// An engine whose queue 0 is in a state.
fn in_state(state: State) -> Engine {
    let mut engine = Engine::new(1, 1);

    if state == State::Gone {
        return engine;
    }
    engine.add(0, 0, 5);
    if state == State::Suspended {
        engine.suspend(0, 1);
    }
    if matches!(
        state,
        State::Ready | State::Running | State::Blocked | State::Faulted
    ) {
        engine.work(0);
    }
    if matches!(state, State::Running | State::Blocked | State::Faulted) {
        assert_eq!(engine.next(), Some(0));
    }
    match state {
        State::Blocked => drop(engine.end(0, BLOCKED)),
        State::Faulted => drop(engine.end(0, Slice::Faulted)),
        _ => {}
    }
    assert_eq!(engine.nodes.state(0), state);
    engine
}
