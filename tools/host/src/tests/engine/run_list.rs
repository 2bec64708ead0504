// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which queue runs next (GPU-43, GPU-49 to GPU-52).

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::engine::run_list::{
    Arena, ContextIndex, ContextNode, Ended, QueueIndex, QueueNode, Refused, Removal, RunList,
    Slice, State, SuspendCompleted, Suspension, LOWER_EVERY, POLLS_AT_ONCE, PRIORITIES,
};

/// Nodes, and how often they were looked at.
#[derive(Default)]
struct Nodes {
    queues: Vec<QueueNode>,
    contexts: Vec<ContextNode>,
    looks: usize,
}

impl Nodes {
    fn new(queues: usize, contexts: usize) -> Self {
        Self {
            queues: vec![QueueNode::default(); queues],
            contexts: vec![ContextNode::default(); contexts],
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

#[test]
fn gpu_49_the_legal_transitions() {
    use State::*;

    for from in STATES {
        for to in STATES {
            let expected = match from {
                Gone => matches!(to, Empty),
                Empty => matches!(to, Ready | Suspended | Gone),
                Ready => matches!(to, Running | Suspended | Gone),
                Running => matches!(to, Ready | Empty | Blocked | Suspended | Faulted | Gone),
                Blocked => matches!(to, Ready | Suspended | Gone),
                Suspended => matches!(to, Empty | Ready | Gone),
                Faulted => matches!(to, Gone),
            };

            assert_eq!(from.may_become(to), expected, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn gpu_49_every_call_in_every_state() {
    use State::*;

    type Call = fn(&mut Engine) -> bool;

    let calls: [(&str, Call, [State; 7]); 7] = [
        // What becomes of each of STATES; the same if it is refused or nothing happens.
        (
            "add",
            |engine| {
                engine
                    .list
                    .add(&mut engine.nodes, QueueIndex(0), ContextIndex(0), 5)
                    .is_ok()
            },
            [Empty, Empty, Ready, Running, Blocked, Suspended, Faulted],
        ),
        (
            "work",
            |engine| engine.list.work(&mut engine.nodes, QueueIndex(0)).is_ok(),
            [Gone, Ready, Ready, Running, Blocked, Suspended, Faulted],
        ),
        (
            "wake",
            |engine| engine.list.wake(&mut engine.nodes, QueueIndex(0)).is_ok(),
            [Gone, Empty, Ready, Running, Ready, Suspended, Faulted],
        ),
        (
            "next",
            |engine| engine.next().is_some(),
            [Gone, Empty, Running, Running, Blocked, Suspended, Faulted],
        ),
        (
            "suspend",
            |engine| engine.suspend(0, 2) == Suspension::Suspended,
            [
                Gone, Suspended, Suspended, Running, Suspended, Suspended, Faulted,
            ],
        ),
        (
            "resume",
            |engine| {
                engine.resume(0);
                true
            },
            [Gone, Empty, Ready, Running, Blocked, Empty, Faulted],
        ),
        (
            "remove",
            |engine| engine.remove(0) == Ok(Removal::Gone),
            [Gone, Gone, Gone, Running, Gone, Gone, Gone],
        ),
    ];

    for (name, call, after) in calls {
        for (state, expected) in STATES.into_iter().zip(after) {
            let mut engine = in_state(state);

            call(&mut engine);
            assert_eq!(engine.nodes.state(0), expected, "{name} when {state:?}");
        }
    }
    for (slice, expected) in [
        (Slice::More, Ready),
        (Slice::Empty, Empty),
        (BLOCKED, Blocked),
        (Slice::Faulted, Faulted),
    ] {
        for state in STATES {
            let mut engine = in_state(state);
            let ended = engine
                .list
                .slice_ended(&mut engine.nodes, QueueIndex(0), slice, 0);

            if state == Running {
                assert_eq!(ended, Ok(Ended::default()));
                assert_eq!(engine.nodes.state(0), expected);
            } else {
                assert_eq!(ended, Err(Refused), "{state:?}");
                assert_eq!(engine.nodes.state(0), state);
            }
        }
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    let mut list = RunList::new();
    let mut nodes = Nodes::new(1, 1);
    let (none, no_context) = (QueueIndex(1), ContextIndex(1));
    let (queue, context) = (QueueIndex(0), ContextIndex(0));

    assert_eq!(list.add(&mut nodes, none, context, 0), Err(Refused));
    assert_eq!(list.add(&mut nodes, queue, no_context, 0), Err(Refused));
    assert_eq!(
        list.add(&mut nodes, queue, context, PRIORITIES as u8),
        Err(Refused)
    );
    assert_eq!(list.work(&mut nodes, none), Err(Refused));
    assert_eq!(list.wake(&mut nodes, none), Err(Refused));
    assert_eq!(list.remove(&mut nodes, none), Err(Refused));
    assert_eq!(list.suspend(&mut nodes, no_context, 1), Err(Refused));
    assert_eq!(list.resume(&mut nodes, no_context), Err(Refused));
    assert_eq!(list.next(&mut nodes, 0), None);
    assert_eq!(list.next_poll_ns(&mut nodes), None);
    assert!(nodes.contexts[0].is_empty());
}

#[test]
fn gpu_50_round_robin_within_a_priority() {
    let mut engine = Engine::new(4, 1);

    for queue in 0..4 {
        engine.add(queue, 0, 7);
    }
    for queue in [2, 0, 3, 1] {
        engine.work(queue);
    }
    assert_eq!(engine.order(8), [2, 0, 3, 1, 2, 0, 3, 1]);
}

#[test]
fn gpu_50_higher_first_but_lower_ones_get_turns() {
    let mut engine = Engine::new(4, 1);

    for (queue, priority) in [(0, 31), (1, 20), (2, 10), (3, 0)] {
        engine.add(queue, 0, priority);
        engine.work(queue);
    }

    let order = engine.order(6 * LOWER_EVERY as usize);
    let mut expected = Vec::new();

    for lower in [1, 2, 3, 1, 2, 3] {
        expected.extend(vec![0; LOWER_EVERY as usize - 1]);
        expected.push(lower);
    }
    assert_eq!(order, expected);
}

#[test]
fn gpu_50_64_queues_all_make_progress() {
    let mut engine = Engine::new(64, 4);

    for queue in 0..64 {
        engine.add(queue, queue % 4, (queue % 4) as u8 * 8);
        engine.work(queue);
    }

    // 16 of each of four priorities.
    const SLICES: usize = 16 * 3 * LOWER_EVERY as usize;
    let order = engine.order(4 * SLICES);

    for round in order.chunks(SLICES) {
        let had_turns: BTreeSet<u32> = round.iter().copied().collect();

        assert_eq!(had_turns.len(), 64);
    }
    // One of the highest priority runs at least every 16 slices, and one for lower ones every 7.
    let bound = 16 + 16_usize.div_ceil(LOWER_EVERY as usize - 1) + 1;

    for queue in (3..64).step_by(4) {
        let turns: Vec<usize> = (0..order.len()).filter(|i| order[*i] == queue).collect();

        assert!(turns[0] <= bound);
        for pair in turns.windows(2) {
            assert!(pair[1] - pair[0] <= bound, "queue {queue}: {pair:?}");
        }
    }
}

#[test]
fn gpu_50_the_cost_does_not_depend_on_the_number_of_queues() {
    const MANY: u32 = 10_000;

    // Two busy queues alone, and among many others that have nothing to do, or are blocked, or are
    // suspended.
    let cost = |others: Option<Slice>| {
        let mut engine = Engine::new(MANY as usize + 2, 3);

        engine.add(MANY, 0, 3);
        engine.add(MANY + 1, 0, 3);
        if let Some(slice) = others {
            for queue in 0..MANY {
                engine.add(queue, 1 + queue % 2, 3);
                engine.work(queue);
                assert_eq!(engine.slice(slice), Some(queue));
            }
            engine.suspend(2, 1);
        }
        engine.work(MANY);
        engine.work(MANY + 1);
        engine.nodes.looks = 0;
        for _ in 0..1000 {
            assert!(engine.slice(Slice::More) >= Some(MANY));
        }
        assert!(engine.remove(MANY).is_ok());
        engine.nodes.looks
    };
    let alone = cost(None);

    assert!(alone <= 1000 * 20, "{alone} looks");
    assert_eq!(cost(Some(Slice::Empty)), alone);
    // Two looks at the first of those that are blocked, each time, are all.
    let among_blocked = cost(Some(BLOCKED));

    assert!(
        among_blocked <= alone + 2100,
        "{among_blocked} against {alone}"
    );
}

#[test]
fn gpu_43_a_blocked_queue_is_looked_at_when_its_time_has_come() {
    for (after_ns, due_ns) in [
        (0, 100_000),
        (1, 100_000),
        (100_000, 100_000),
        (100_001, 200_000),
        (1_048_560, 1_100_000),
        (1_600_000, 1_600_000),
        (u64::MAX, 1_600_000),
    ] {
        let mut engine = Engine::new(1, 1);

        engine.now_ns = 5_000_000;
        engine.add(0, 0, 0);
        engine.work(0);
        assert_eq!(engine.next(), Some(0));
        engine.end(
            0,
            Slice::Blocked {
                poll_after_ns: after_ns,
            },
        );
        assert_eq!(
            engine.list.next_poll_ns(&mut engine.nodes),
            Some(5_000_000 + due_ns)
        );
        assert!(!engine.list.has_ready());

        engine.now_ns = 5_000_000 + due_ns - 1;
        assert_eq!(engine.next(), None, "after {after_ns}");
        engine.now_ns += 1;
        assert_eq!(engine.next(), Some(0));
        assert_eq!(engine.list.next_poll_ns(&mut engine.nodes), None);
    }
}

#[test]
fn gpu_43_a_blocked_queue_leaves_the_engine_to_others() {
    let mut engine = Engine::new(3, 1);

    for queue in 0..3 {
        engine.add(queue, 0, 0);
        engine.work(queue);
    }
    assert_eq!(engine.slice(BLOCKED), Some(0));
    assert_eq!(engine.order(4), [1, 2, 1, 2]);
    // Work does not wake it; an event does.
    engine.work(0);
    assert_eq!(engine.order(2), [1, 2]);
    engine.list.wake(&mut engine.nodes, QueueIndex(0)).unwrap();
    assert_eq!(engine.order(3), [1, 2, 0]);
}

#[test]
fn a_call_makes_only_so_many_blocked_queues_ready() {
    const MANY: u32 = 1000;
    let mut engine = Engine::new(MANY as usize, 1);

    for queue in 0..MANY {
        engine.add(queue, 0, 0);
        engine.work(queue);
        assert_eq!(engine.slice(BLOCKED), Some(queue));
    }
    engine.now_ns = 1_000_000;
    for round in 0..MANY {
        engine.nodes.looks = 0;
        assert_eq!(engine.slice(Slice::Empty), Some(round));
        assert!(engine.nodes.looks < 20 * POLLS_AT_ONCE as usize);
    }
    assert_eq!(engine.next(), None);
}

#[test]
fn work_that_comes_while_a_queue_runs_is_not_lost() {
    let mut engine = Engine::new(1, 1);

    engine.add(0, 0, 0);
    engine.work(0);
    assert_eq!(engine.next(), Some(0));
    engine.work(0);
    engine.end(0, Slice::Empty);
    assert_eq!(engine.slice(Slice::Empty), Some(0));
    assert_eq!(engine.next(), None);
}

#[test]
fn gpu_51_suspension_completes_when_no_queue_of_the_context_runs() {
    let mut engine = Engine::new(3, 2);

    engine.add(0, 0, 0);
    engine.add(1, 0, 0);
    engine.add(2, 1, 0);
    for queue in 0..3 {
        engine.work(queue);
    }
    assert_eq!(engine.next(), Some(0));
    assert_eq!(engine.suspend(0, 10), Suspension::Pending);
    // The latest request is the one that is completed.
    assert_eq!(engine.suspend(0, 11), Suspension::Pending);
    assert_eq!(engine.nodes.state(1), State::Suspended);
    assert_eq!(
        engine.end(0, Slice::More),
        Ended {
            suspended: Some(SuspendCompleted {
                context: ContextIndex(0),
                fence_id: 11,
            }),
            is_gone: false,
        }
    );
    assert_eq!(engine.nodes.state(0), State::Suspended);
    assert_eq!(engine.suspend(0, 12), Suspension::Suspended);
    // Others run.
    assert_eq!(engine.order(3), [2, 2, 2]);
    // GPU-11: what is submitted meanwhile runs afterwards.
    engine.work(1);
    engine.resume(0);
    assert_eq!(engine.order(4), [2, 0, 1, 2]);
}

#[test]
fn gpu_52_a_resumed_queue_looks_again() {
    let mut engine = Engine::new(2, 1);

    engine.add(0, 0, 0);
    engine.add(1, 0, 0);
    engine.work(0);
    assert_eq!(engine.slice(BLOCKED), Some(0));
    engine.suspend(0, 1);
    // Not even when its time has come.
    engine.now_ns = 10_000_000;
    assert_eq!(engine.next(), None);
    engine.resume(0);
    assert_eq!(engine.slice(Slice::Empty), Some(0));
    // The other one has nothing to do.
    assert_eq!(engine.next(), None);
    assert_eq!(engine.nodes.state(1), State::Empty);
}

#[test]
fn gpu_51_a_request_that_was_taken_back_is_not_completed() {
    let mut engine = Engine::new(1, 1);

    engine.add(0, 0, 0);
    engine.work(0);
    assert_eq!(engine.next(), Some(0));
    assert_eq!(engine.suspend(0, 1), Suspension::Pending);
    engine.resume(0);
    assert_eq!(engine.end(0, Slice::More), Ended::default());
    assert_eq!(engine.slice(Slice::More), Some(0));
}

#[test]
fn a_queue_added_to_a_suspended_context_is_suspended() {
    let mut engine = Engine::new(1, 1);

    engine.suspend(0, 1);
    engine.add(0, 0, 0);
    engine.work(0);
    assert_eq!(engine.next(), None);
    engine.resume(0);
    assert_eq!(engine.next(), Some(0));
}

#[test]
fn a_queue_that_runs_goes_at_the_end_of_its_slice() {
    for slice in [Slice::More, Slice::Empty, BLOCKED, Slice::Faulted] {
        for suspended in [false, true] {
            let mut engine = Engine::new(2, 1);

            engine.add(0, 0, 0);
            engine.add(1, 0, 0);
            engine.work(0);
            assert_eq!(engine.next(), Some(0));
            assert_eq!(engine.remove(0), Ok(Removal::Pending));
            if suspended {
                assert_eq!(engine.suspend(0, 4), Suspension::Pending);
            }

            let ended = engine.end(0, slice);

            assert!(ended.is_gone);
            assert_eq!(ended.suspended.is_some(), suspended);
            assert_eq!(engine.nodes.state(0), State::Gone);
            assert_eq!(engine.remove(0), Err(Refused));
            assert_eq!(engine.remove(1), Ok(Removal::Gone));
            assert!(engine.nodes.contexts[0].is_empty());
            // The index may be used again.
            engine.resume(0);
            engine.add(0, 0, 0);
            engine.work(0);
            assert_eq!(engine.next(), Some(0));
        }
    }
}

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
        2 => (0..1_200_000_u64).prop_map(|poll_after_ns| Slice::Blocked { poll_after_ns }),
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
                    } else if let Slice::Blocked { poll_after_ns } = slice {
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
        assert_eq!(engine.list.has_ready(), !model.ready.is_empty());
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
