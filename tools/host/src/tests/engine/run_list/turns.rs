// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whose turn it is (GPU-50).

use std::collections::BTreeSet;

use super::{Engine, BLOCKED};
use crate::engine::run_list::ready::LOWER_EVERY;
use crate::engine::run_list::Slice;

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
