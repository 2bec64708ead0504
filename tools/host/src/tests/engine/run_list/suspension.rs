// SPDX-License-Identifier: MIT OR Apache-2.0

//! Contexts that are suspended and resumed (GPU-51, GPU-52).

use super::{Engine, BLOCKED};
use crate::engine::run_list::{ContextIndex, Ended, Slice, State, SuspendCompleted, Suspension};

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
