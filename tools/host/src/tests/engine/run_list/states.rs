// SPDX-License-Identifier: MIT OR Apache-2.0

//! States of a queue, and what every call makes of them (GPU-49).

use super::{in_state, Engine, Nodes, BLOCKED, STATES};
use crate::engine::run_list::{
    Arena, ContextIndex, ContextNode, Ended, QueueIndex, QueueNode, Refused, Removal, RunList,
    Slice, State, Suspension, PRIORITIES,
};

#[test]
fn gpu_49_the_legal_transitions() {
    use State::*;

    for from in STATES {
        for to in STATES {
            let expected = match from {
                Gone => matches!(to, Empty),
                Empty => matches!(to, Ready | Suspended | Faulted | Gone),
                Ready => matches!(to, Running | Suspended | Faulted | Gone),
                Running => matches!(to, Ready | Empty | Blocked | Suspended | Faulted | Gone),
                Blocked => matches!(to, Ready | Suspended | Faulted | Gone),
                Suspended => matches!(to, Empty | Ready | Faulted | Gone),
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

    let calls: [(&str, Call, [State; 7]); 8] = [
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
            "stop_context",
            |engine| {
                engine
                    .list
                    .stop_context(&mut engine.nodes, ContextIndex(0))
                    .is_ok()
            },
            // One that runs is stopped at the end of its slice: nobody does that to an engine.
            [Gone, Faulted, Faulted, Running, Faulted, Faulted, Faulted],
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

/// An arena that shows another node from some look on.
struct Lies {
    nodes: Nodes,
    looks: usize,
}

impl Arena for Lies {
    fn queue(&mut self, index: QueueIndex) -> Option<&mut QueueNode> {
        match self.looks.checked_sub(1) {
            Some(left) => {
                self.looks = left;
                self.nodes.queue(index)
            }
            None => self.nodes.queue(QueueIndex(1)),
        }
    }

    fn context(&mut self, index: ContextIndex) -> Option<&mut ContextNode> {
        self.nodes.context(index)
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic = "a queue that is Gone becomes Ready"]
fn gpu_49_builds_for_tests_end_with_an_illegal_transition() {
    let mut list = RunList::new();
    let mut lies = Lies {
        nodes: Nodes::new(2, 1),
        looks: usize::MAX,
    };

    list.add(&mut lies, QueueIndex(0), ContextIndex(0), 0)
        .unwrap();
    // The one that is looked at is EMPTY, and the one that is changed is not in the list.
    lies.looks = 1;
    let _ = list.work(&mut lies, QueueIndex(0));
}
