// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues that wait for native fences (GPU-43, GPU-52 to GPU-55).

use super::Engine;
use crate::engine::fences::FenceIndex;
use crate::engine::run_list::{List, QueueIndex, Slice, State};

const FENCE: FenceIndex = FenceIndex(5);
const OTHER: FenceIndex = FenceIndex(6);
const MANY: u32 = 100;

/// Queues of a context of their own each, the first ones waiting for FENCE and so many for OTHER.
fn waiting(first: u32, others: u32) -> Engine {
    let count = first + others;
    let mut engine = Engine::new(count as usize, count as usize);

    for queue in 0..count {
        engine.add(queue, queue, 0);
        engine.work(queue);
    }
    for queue in 0..count {
        let fence = if queue < first { FENCE } else { OTHER };

        assert_eq!(engine.slice(Slice::BlockedOnFence(fence)), Some(queue));
    }
    engine
}

fn stored(engine: &mut Engine, fence: FenceIndex, most: u32) -> bool {
    engine.list.fence_stored(&mut engine.nodes, fence, most)
}

#[test]
fn gpu_43_time_wakes_nobody() {
    let mut engine = waiting(1, 1);

    assert_eq!((engine.list.ready(), engine.list.blocked()), (0, 2));
    assert_eq!(engine.list.next_poll_ns(&mut engine.nodes), None);
    engine.now_ns = u64::MAX;
    assert_eq!(engine.next(), None);
}

#[test]
fn gpu_54_a_store_wakes_those_who_wait_for_it_and_no_others() {
    let mut engine = waiting(3, MANY);

    engine.nodes.looks = 0;
    assert!(stored(&mut engine, FENCE, 64));
    // As few as if nobody waited for the other one.
    assert!(engine.nodes.looks < 60, "{}", engine.nodes.looks);
    assert_eq!((engine.list.ready(), engine.list.blocked()), (3, MANY));
    // In the order in which they came; they wait again, and are found again.
    for queue in 0..3 {
        assert_eq!(engine.slice(Slice::BlockedOnFence(FENCE)), Some(queue));
    }
    assert_eq!(engine.next(), None);
    assert!(stored(&mut engine, FENCE, 64));
    assert_eq!(engine.list.ready(), 3);
    // Nobody is left.
    assert!(stored(&mut engine, FENCE, 64));
    assert_eq!(engine.list.ready(), 3);
}

#[test]
fn gpu_53_many_are_woken_in_parts() {
    let mut engine = waiting(MANY, 0);

    assert!(!stored(&mut engine, FENCE, 64));
    assert_eq!((engine.list.ready(), engine.list.blocked()), (64, 36));
    assert!(stored(&mut engine, FENCE, 64));
    assert_eq!((engine.list.ready(), engine.list.blocked()), (100, 0));
    assert!(stored(&mut engine, FENCE, 64));
}

#[test]
fn gpu_52_a_context_that_is_resumed_looks_again() {
    let mut engine = waiting(2, 1);

    engine.suspend(0, 1);
    assert_eq!(engine.nodes.state(0), State::Suspended);
    assert_eq!(engine.list.blocked(), 2);
    // A store while it is suspended reaches the others.
    assert!(stored(&mut engine, FENCE, 64));
    assert_eq!(engine.next(), Some(1));
    engine.end(1, Slice::Empty);
    engine.resume(0);
    assert_eq!(engine.next(), Some(0));
    engine.end(0, Slice::BlockedOnFence(FENCE));
    assert!(stored(&mut engine, FENCE, 64));
    assert_eq!(engine.next(), Some(0));
}

#[test]
fn gpu_49_a_queue_that_goes_waits_for_nothing() {
    let mut engine = waiting(3, 0);

    // The one in the middle is removed, the first one is stopped.
    engine.remove(1).unwrap();
    engine
        .list
        .stop_context(&mut engine.nodes, crate::engine::run_list::ContextIndex(0))
        .unwrap();
    assert_eq!(engine.list.blocked(), 1);
    assert!(stored(&mut engine, FENCE, 64));
    assert_eq!(engine.next(), Some(2));
    engine.end(2, Slice::Empty);
    assert_eq!(engine.next(), None);
}

/// A queue that is woken otherwise, for what it waited for had come when it was put in the list.
#[test]
fn gpu_53_a_queue_leaves_when_the_value_is_there() {
    let mut engine = waiting(2, 0);

    engine.list.wake(&mut engine.nodes, QueueIndex(0)).unwrap();
    assert_eq!(engine.next(), Some(0));
    engine.end(0, Slice::Empty);
    assert!(stored(&mut engine, FENCE, 64));
    assert_eq!(engine.next(), Some(1));
}

#[test]
fn a_list_is_a_word() {
    assert_eq!(List::EMPTY.to_word(), 0);
    assert_eq!(List::from_word(0).to_word(), 0);

    let word = (1 << 32) | 7;

    assert_eq!(List::from_word(word).to_word(), word);
}
