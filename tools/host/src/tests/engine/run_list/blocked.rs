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
        (1_600_001, 3_200_000),
        (u64::MAX, 12_800_000),
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
                again: false,
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

/// A queue that waits for so long, as a packet with this interval: when it is looked at.
fn looks(interval_ns: u64, until_ns: u64) -> Vec<u64> {
    const BEGIN: u64 = 7_000_000;

    let mut engine = Engine::new(1, 1);
    let mut looks = Vec::new();

    engine.now_ns = BEGIN;
    engine.add(0, 0, 0);
    engine.work(0);
    while engine.now_ns < BEGIN + until_ns {
        assert_eq!(engine.next(), Some(0));
        looks.push(engine.now_ns - BEGIN);
        engine.end(
            0,
            Slice::Blocked {
                poll_after_ns: interval_ns,
                again: looks.len() > 1,
            },
        );
        engine.now_ns = engine.list.next_poll_ns(&mut engine.nodes).unwrap();
    }
    looks
}

#[test]
fn gpu_43_who_waits_for_long_is_looked_at_seldom() {
    const MS: u64 = 1_000_000;

    for (until_ns, most) in [(MS, 10), (10 * MS, 33), (100 * MS, 59), (10_000 * MS, 833)] {
        let looks = looks(100_000, until_ns).len();

        assert!(looks <= most, "{looks} looks in {until_ns} ns");
    }
    for interval_ns in [100_000, 1_048_560] {
        for pair in looks(interval_ns, 1000 * MS).windows(2) {
            let time = pair[1] - pair[0];

            // Never sooner than the packet says, and not later by more than an eighth of the wait.
            assert!(time >= interval_ns);
            assert!(
                time <= interval_ns.next_multiple_of(100_000).max(pair[0] / 8),
                "{time} ns after {} ns",
                pair[0]
            );
        }
    }
}

/// A wait that comes after another begins with short times again.
#[test]
fn gpu_43_a_new_wait_is_looked_at_soon() {
    let mut engine = Engine::new(1, 1);

    engine.add(0, 0, 0);
    engine.work(0);

    let mut end = |again| {
        assert_eq!(engine.next(), Some(0));
        engine.end(
            0,
            Slice::Blocked {
                poll_after_ns: 100_000,
                again,
            },
        );

        let now_ns = engine.now_ns;

        engine.now_ns = engine.list.next_poll_ns(&mut engine.nodes).unwrap();
        engine.now_ns - now_ns
    };

    assert_eq!(end(false), 100_000);
    for _ in 0..100 {
        end(true);
    }
    assert!(end(true) > 1_000_000);
    assert_eq!(end(false), 100_000);
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
