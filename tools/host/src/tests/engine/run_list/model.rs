// SPDX-License-Identifier: MIT OR Apache-2.0

//! Random calls, compared with a model that is lists (GPU-43, GPU-49 to GPU-52).

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::Engine;
use crate::engine::run_list::{
    ContextIndex, QueueIndex, Refused, Removal, Slice, State, Suspension, POLLS_AT_ONCE,
};

/// What happens to a run list.
#[derive(Clone, Debug)]
enum Act {
    Add(u32, u8),
    Work(u32),
    Wake(u32),
    Next,
    End(u32, Slice),
    Remove(u32),
    Suspend(u32),
    Resume(u32),
    Wait(u64),
}

fn acts(queues: u32, contexts: u32) -> impl Strategy<Value = Act> {
    let queue = 0..queues;
    let slice = prop_oneof![
        3 => Just(Slice::More),
        2 => Just(Slice::Empty),
        2 => (0..1_200_000_u64).prop_map(|poll_after_ns| Slice::Blocked { poll_after_ns, again: false }),
        1 => Just(Slice::Faulted),
    ];

    prop_oneof![
        6 => (queue.clone(), 0..4_u8).prop_map(|(queue, priority)| Act::Add(queue, priority * 9)),
        8 => queue.clone().prop_map(Act::Work),
        1 => queue.clone().prop_map(Act::Wake),
        8 => Just(Act::Next),
        12 => (queue.clone(), slice).prop_map(|(queue, slice)| Act::End(queue, slice)),
        2 => queue.prop_map(Act::Remove),
        1 => (0..contexts).prop_map(Act::Suspend),
        1 => (0..contexts).prop_map(Act::Resume),
        3 => (0..300_000_u64).prop_map(Act::Wait),
    ]
}

/// A queue of the model.
#[derive(Clone, Debug)]
struct Modelled {
    state: State,
    priority: u8,
    has_work: bool,
    leaves: bool,
    due_ns: u64,
}

/// The same by lists that are walked.
#[derive(Default)]
struct Model {
    queues: BTreeMap<u32, Modelled>,
    /// Ready queues, and when they became that. Those that were polled did so at the same time.
    ready: BTreeMap<u32, u64>,
    times: u64,
    suspended: BTreeSet<u32>,
}

const CONTEXTS: u32 = 3;

impl Model {
    fn state(&self, queue: u32) -> State {
        self.queues
            .get(&queue)
            .map_or(State::Gone, |queue| queue.state)
    }

    fn make_ready(&mut self, queue: u32) {
        self.queues.get_mut(&queue).unwrap().state = State::Ready;
        self.times += 1;
        self.ready.insert(queue, self.times);
    }

    fn of_context(&self, context: u32) -> Vec<u32> {
        self.queues
            .keys()
            .copied()
            .filter(|queue| queue % CONTEXTS == context)
            .collect()
    }

    /// Takes over a queue that was polled, and says whether it may have been.
    fn polled(&mut self, queue: u32, now_ns: u64) -> bool {
        let modelled = &self.queues[&queue];
        let is_due = modelled.state == State::Blocked && modelled.due_ns <= now_ns;

        self.queues.get_mut(&queue).unwrap().state = State::Ready;
        self.ready.insert(queue, self.times);
        is_due
    }
}

fn follow(queues: u32, acts: Vec<Act>) {
    follow_with(queues, Vec::new(), acts);
}

/// Compares the list with the model after each of `acts`, which come after those of `before`.
fn follow_with(queues: u32, before: Vec<Act>, acts: Vec<Act>) {
    let mut engine = Engine::new(queues as usize, CONTEXTS as usize);
    let mut model = Model::default();
    let unseen = before.len();

    for (number, act) in before.into_iter().chain(acts).enumerate() {
        match act.clone() {
            Act::Add(queue, priority) => {
                let added = engine.list.add(
                    &mut engine.nodes,
                    QueueIndex(queue),
                    ContextIndex(queue % CONTEXTS),
                    priority,
                );

                assert_eq!(added.is_ok(), model.state(queue) == State::Gone);
                if added.is_ok() {
                    let state = if model.suspended.contains(&(queue % CONTEXTS)) {
                        State::Suspended
                    } else {
                        State::Empty
                    };

                    model.queues.insert(
                        queue,
                        Modelled {
                            state,
                            priority,
                            has_work: false,
                            leaves: false,
                            due_ns: 0,
                        },
                    );
                }
            }
            Act::Work(queue) => {
                let result = engine.list.work(&mut engine.nodes, QueueIndex(queue));
                let state = model.state(queue);

                assert_eq!(
                    result.is_err(),
                    matches!(state, State::Gone | State::Faulted)
                );
                match state {
                    State::Empty => model.make_ready(queue),
                    State::Running | State::Suspended => {
                        model.queues.get_mut(&queue).unwrap().has_work = true;
                    }
                    _ => {}
                }
            }
            Act::Wake(queue) => {
                let _ = engine.list.wake(&mut engine.nodes, QueueIndex(queue));

                if model.state(queue) == State::Blocked {
                    model.make_ready(queue);
                }
            }
            Act::Next => {
                let next = engine.next();

                // All that are due are ready now, as long as there are fewer than at once.
                let due: Vec<u32> = model
                    .queues
                    .iter()
                    .filter(|(_, queue)| {
                        queue.state == State::Blocked && queue.due_ns <= engine.now_ns
                    })
                    .map(|(queue, _)| *queue)
                    .collect();
                let polled: Vec<u32> = due
                    .iter()
                    .copied()
                    .filter(|queue| engine.nodes.state(*queue) != State::Blocked)
                    .collect();

                assert_eq!(polled.len(), due.len().min(POLLS_AT_ONCE as usize));
                model.times += 1;
                for queue in polled {
                    assert!(model.polled(queue, engine.now_ns));
                }
                assert_eq!(next.is_some(), !model.ready.is_empty());
                if let Some(next) = next {
                    let modelled = model.queues.get_mut(&next).unwrap();

                    assert_eq!(modelled.state, State::Ready);
                    modelled.state = State::Running;
                    modelled.has_work = false;

                    // First come, first served within its priority.
                    let priority = modelled.priority;
                    let time = model.ready.remove(&next).unwrap();

                    for (other, other_time) in &model.ready {
                        assert!(
                            *other_time >= time || model.queues[other].priority != priority,
                            "{next} before {other}"
                        );
                    }
                }
            }
            Act::End(queue, slice) => {
                // Mostly one that runs.
                let running: Vec<u32> = model
                    .queues
                    .iter()
                    .filter(|(_, queue)| queue.state == State::Running)
                    .map(|(queue, _)| *queue)
                    .collect();
                let queue = match queue as usize % (running.len() + 1) {
                    0 => queue,
                    number => running[number - 1],
                };
                let ended = engine.list.slice_ended(
                    &mut engine.nodes,
                    QueueIndex(queue),
                    slice,
                    engine.now_ns,
                );

                assert_eq!(ended.is_ok(), model.state(queue) == State::Running);
                if let Ok(ended) = ended {
                    let is_suspended = model.suspended.contains(&(queue % CONTEXTS));
                    let modelled = model.queues.get_mut(&queue).unwrap();

                    modelled.has_work |= matches!(slice, Slice::More | Slice::Blocked { .. });
                    assert_eq!(ended.is_gone, modelled.leaves);
                    if modelled.leaves {
                        model.queues.remove(&queue);
                    } else if slice == Slice::Faulted {
                        modelled.state = State::Faulted;
                    } else if is_suspended {
                        modelled.state = State::Suspended;
                    } else if let Slice::Blocked { poll_after_ns, .. } = slice {
                        modelled.state = State::Blocked;
                        modelled.due_ns =
                            engine.now_ns + poll_after_ns.max(1).next_multiple_of(100_000);
                    } else if modelled.has_work {
                        model.make_ready(queue);
                    } else {
                        modelled.state = State::Empty;
                    }
                }
            }
            Act::Remove(queue) => {
                let removed = engine.remove(queue);

                match model.state(queue) {
                    State::Gone => assert_eq!(removed, Err(Refused)),
                    State::Running => {
                        assert_eq!(removed, Ok(Removal::Pending));
                        model.queues.get_mut(&queue).unwrap().leaves = true;
                    }
                    _ => {
                        assert_eq!(removed, Ok(Removal::Gone));
                        model.ready.remove(&queue);
                        model.queues.remove(&queue);
                    }
                }
            }
            Act::Suspend(context) => {
                let suspension = engine.suspend(context, 1);
                let queues = model.of_context(context);
                let runs = queues
                    .iter()
                    .any(|queue| model.state(*queue) == State::Running);

                assert_eq!(suspension == Suspension::Pending, runs);
                model.suspended.insert(context);
                for queue in queues {
                    let modelled = model.queues.get_mut(&queue).unwrap();

                    if matches!(modelled.state, State::Ready | State::Blocked) {
                        modelled.has_work = true;
                        modelled.state = State::Suspended;
                        model.ready.remove(&queue);
                    } else if modelled.state == State::Empty {
                        modelled.state = State::Suspended;
                    }
                }
            }
            Act::Resume(context) => {
                engine.resume(context);
                model.suspended.remove(&context);
                model.times += 1;
                for queue in model.of_context(context) {
                    let modelled = model.queues.get_mut(&queue).unwrap();

                    if modelled.state != State::Suspended {
                        continue;
                    }
                    if modelled.has_work {
                        // All at the same time.
                        modelled.state = State::Ready;
                        model.ready.insert(queue, model.times);
                    } else {
                        modelled.state = State::Empty;
                    }
                }
            }
            Act::Wait(ns) => engine.now_ns += ns,
        }

        if number < unseen {
            continue;
        }
        for (queue, modelled) in &model.queues {
            assert_eq!(
                engine.nodes.state(*queue),
                modelled.state,
                "queue {queue} after {act:?}"
            );
        }
        let blocked = model.queues.values();
        let blocked = blocked.filter(|queue| queue.state == State::Blocked);

        assert_eq!(engine.list.ready() as usize, model.ready.len());
        assert_eq!(engine.list.blocked() as usize, blocked.count());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn gpu_50_a_few_queues_follow_the_model(
        acts in prop::collection::vec(acts(5, CONTEXTS), 0..300),
    ) {
        follow(5, acts);
    }

    #[test]
    fn gpu_50_64_queues_follow_the_model(
        acts in prop::collection::vec(acts(64, CONTEXTS), 0..600),
    ) {
        follow(64, acts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn gpu_50_10000_queues_follow_the_model(
        acts in prop::collection::vec(acts(10_000, CONTEXTS), 200..500),
    ) {
        // All are there, and have something to do.
        let all = (0..10_000).flat_map(|queue| {
            [Act::Add(queue, (queue % 4) as u8 * 9), Act::Work(queue)]
        });
        let all: Vec<Act> = all.collect();

        follow_with(10_000, all, acts);
    }
}
