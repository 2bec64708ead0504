// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues that wait for a word in memory (GPU-43).

use super::{Engine, BLOCKED};
use crate::engine::run_list::{QueueIndex, Slice, POLLS_AT_ONCE};

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
        assert_eq!((engine.list.ready(), engine.list.blocked()), (0, 1));

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
