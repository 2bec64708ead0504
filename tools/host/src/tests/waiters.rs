// SPDX-License-Identifier: MIT OR Apache-2.0

//! Waits and signals, one after the other, rule by rule.

use std::sync::Arc;

use super::harness::{Fence, Tree, Wait};
use crate::{
    logic::{
        fence_value::NOBODY_WAITS,
        sleepers::{News, Nobody, Woken, MAX_SLEEPERS},
        wait_set::{
            Mode::{All, Any},
            WaitEnd::{Cancelled, Orphaned, Satisfied},
        },
        waiters::{CurrentValue, WaitKey, Waiters, WouldRewind, BATCH, FEW},
    },
    platform::{load_acquire, word64},
};

/// A wait for one value of one fence.
fn wait_for(fence: &Arc<Fence>, value: u64) -> Arc<Wait> {
    Wait::start(Any, &[(fence, value)])
}

#[test]
fn fen_14_reached_values_are_satisfied_at_once_and_not_queued() {
    let fence = Fence::new(1);

    for value in [0, 1] {
        let wait = wait_for(&fence, value);

        assert_eq!(wait.outcome(), Some(Satisfied));
        assert_eq!(wait.deliveries(), 1);
        assert_eq!((fence.queued(), fence.monitored()), (0, NOBODY_WAITS));
    }

    let wait = wait_for(&fence, 2);
    assert_eq!((wait.outcome(), wait.deliveries()), (None, 0));
    assert_eq!((fence.queued(), fence.monitored()), (1, 1));
    assert!(wait.cancel());
}

#[test]
fn fen_16_an_element_stays_satisfied_after_a_rewind() {
    let (a, b) = (Fence::new(0), Fence::new(0));
    let wait = Wait::start(All, &[(&a, 1), (&b, 1)]);

    a.signal(1, false).unwrap();
    a.signal(0, true).unwrap();
    assert_eq!(wait.outcome(), None);
    b.signal(1, false).unwrap();
    assert_eq!(wait.outcome(), Some(Satisfied));
}

#[test]
fn fen_16_an_element_satisfied_at_the_call_stays_so() {
    let (a, b) = (Fence::new(1), Fence::new(0));
    let wait = Wait::start(All, &[(&a, 1), (&b, 1)]);

    a.signal(0, true).unwrap();
    b.signal(1, false).unwrap();
    assert_eq!(wait.outcome(), Some(Satisfied));
}

#[test]
fn fen_17_one_fence_twice() {
    let fence = Fence::new(0);
    let any = Wait::start(Any, &[(&fence, 3), (&fence, 5)]);
    let all = Wait::start(All, &[(&fence, 3), (&fence, 5)]);
    let same = Wait::start(All, &[(&fence, 5), (&fence, 5)]);

    fence.signal(3, false).unwrap();
    assert_eq!(any.outcome(), Some(Satisfied));
    assert_eq!((all.outcome(), same.outcome()), (None, None));
    assert_eq!(fence.queued(), 3, "the other element of `any` is gone");

    fence.signal(5, false).unwrap();
    assert_eq!(all.outcome(), Some(Satisfied));
    assert_eq!(same.outcome(), Some(Satisfied));
    assert_eq!(fence.queued(), 0);
    for wait in [any, all, same] {
        assert_eq!(wait.deliveries(), 1);
    }
}

#[test]
fn fen_22_any_distance_may_be_waited_for() {
    for value in [0x7fff_ffff_ffff_ffff, u64::MAX - 1, u64::MAX] {
        let fence = Fence::new(0);
        let wait = wait_for(&fence, value);

        assert_eq!(fence.monitored(), value - 1);
        fence.signal(value - 1, false).unwrap();
        assert_eq!(wait.outcome(), None);
        fence.signal(value, false).unwrap();
        assert_eq!(wait.outcome(), Some(Satisfied));
    }
}

#[test]
fn fen_23_a_higher_value_satisfies_lower_waits() {
    let fence = Fence::new(0);
    let waits = [1, 2, 2, 3].map(|value| wait_for(&fence, value));

    fence.signal(2, false).unwrap();
    let outcomes = waits.map(|wait| wait.outcome());
    assert_eq!(
        outcomes,
        [Some(Satisfied), Some(Satisfied), Some(Satisfied), None]
    );
    fence.orphan();
}

#[test]
fn fen_24_after_a_rewind_the_value_has_to_be_reached_again() {
    let fence = Fence::new(2);

    fence.signal(1, true).unwrap();
    let wait = wait_for(&fence, 2);
    assert_eq!(wait.outcome(), None);
    fence.signal(2, false).unwrap();
    assert_eq!(wait.outcome(), Some(Satisfied));
}

#[test]
fn fen_28_an_orphaned_fence_releases_its_waiters_and_takes_no_new_ones() {
    let (fence, other) = (Fence::new(3), Fence::new(0));
    let alone = wait_for(&fence, 5);
    let any = Wait::start(Any, &[(&fence, 5), (&other, 1)]);
    let all = Wait::start(All, &[(&fence, 5), (&other, 1)]);

    fence.orphan();
    assert_eq!(alone.outcome(), Some(Orphaned));
    assert_eq!(any.outcome(), None, "the other fence can still do it");
    assert_eq!(all.outcome(), Some(Orphaned));
    assert_eq!(other.queued(), 1, "`all` has left the other fence");

    assert_eq!(wait_for(&fence, 5).outcome(), Some(Orphaned));
    assert_eq!(wait_for(&fence, 3).outcome(), Some(Satisfied));

    other.signal(1, false).unwrap();
    assert_eq!(any.outcome(), Some(Satisfied));
    assert_eq!(
        [alone, any, all].map(|wait| wait.deliveries()),
        [1, 1, 1],
        "each owner was told once"
    );
}

#[test]
fn fen_28_waiting_for_any_of_nothing_left_is_orphaned() {
    let fences = [Fence::new(0), Fence::new(0)];
    let wait = Wait::start(Any, &[(&fences[0], 1), (&fences[1], 1)]);

    fences[0].orphan();
    assert_eq!(wait.outcome(), None);
    fences[1].orphan();
    assert_eq!(wait.outcome(), Some(Orphaned));
}

/// 4096 waiters on higher values: a signal looks at one of them and wakes none.
#[test]
fn fen_30_a_signal_touches_what_it_releases_and_one_more() {
    let fence = Fence::new(0);
    let waits: Vec<_> = (0..4096)
        .map(|value| wait_for(&fence, 1000 + value))
        .collect();

    for value in 1..1000 {
        let before = fence.touched();

        fence.signal(value, false).unwrap();
        assert_eq!(fence.touched(), before, "no look");
    }
    assert!(waits.iter().all(|wait| wait.outcome().is_none()));

    // Each of 200 is looked at and taken, and looks for itself as it ends; then a look at the
    // next, and one at the first to see whether there is anything to do.
    let before = fence.touched();

    fence.signal(1199, false).unwrap();
    assert!(fence.touched() <= before + 3 * 200 + 2);

    let released = waits.iter().filter(|wait| wait.outcome().is_some());
    assert_eq!(released.count(), 200);
    fence.orphan();
}

/// The same of threads that sleep in memory of their own; those who find no place are queued by
/// nodes, and a place that was left is taken again.
#[test]
fn fen_30_a_few_threads_sleep_without_nodes() {
    let fence = Fence::new(0);
    let start = |value| Wait::start_on_stack(All, &[(&fence, value)]);
    let most = MAX_SLEEPERS as u64;
    let mut waits: Vec<_> = (1..=most + 2).rev().map(start).collect();

    assert_eq!(fence.sleeping(), MAX_SLEEPERS as u32);
    assert_eq!((fence.counted(), fence.queued()), (6, 6));
    assert_eq!(fence.monitored(), 0, "a node");
    assert!(waits[1].cancel());
    waits.push(start(1));
    assert_eq!((fence.sleeping(), fence.counted()), (4, 6));

    for value in 1..=most + 2 {
        // Nobody waits for 5 any more.
        assert_eq!(fence.monitored(), value - u64::from(value != 5));
        fence.signal(value, false).unwrap();
        for (wait, own) in waits.iter().zip([6, 5, 4, 3, 2, 1, 1]) {
            let expected = match own {
                5 => Cancelled,
                _ => Satisfied,
            };

            assert_eq!(
                wait.outcome(),
                (own <= value || own == 5).then_some(expected)
            );
            wait.leave_if_ended();
        }
    }
    assert_eq!((fence.sleeping(), fence.counted()), (0, 0));
    assert_eq!(fence.monitored(), NOBODY_WAITS);
}

/// A full list of one of several fences: the thread leaves the others, and waits by nodes.
#[test]
fn fen_30_a_wait_for_a_fence_with_many_sleepers() {
    let (quiet, crowded) = (Fence::new(0), Fence::new(0));
    let crowd = [(); MAX_SLEEPERS].map(|()| Wait::start_on_stack(All, &[(&crowded, 1)]));
    let wait = Wait::start_on_stack(All, &[(&quiet, 1), (&crowded, 1)]);

    assert_eq!((quiet.sleeping(), quiet.counted()), (0, 1));
    assert_eq!(crowded.counted(), MAX_SLEEPERS as u32 + 1);
    quiet.signal(1, false).unwrap();
    crowded.signal(1, false).unwrap();
    for wait in crowd.iter().chain([&wait]) {
        assert_eq!((wait.outcome(), wait.deliveries()), (Some(Satisfied), 1));
    }
}

#[test]
fn threads_are_woken_in_the_order_of_all_waiters() {
    let key = |value| WaitKey { value, seq: 1 };
    let mut woken = Woken::new();

    woken.add(key(1), News::Satisfied, Some("first"));
    woken.add(key(2), News::Satisfied, None);
    woken.add(key(3), News::Orphaned, Some("last"));
    assert_eq!((woken.satisfied(), woken.orphaned()), (2, 1));
    assert_eq!(woken.next_before(Some(&key(1))), None);
    assert_eq!(woken.next_before(Some(&key(2))), Some("first"));
    assert_eq!(woken.next_before(Some(&key(2))), None);
    assert_eq!(woken.next_before(None), Some("last"));
    assert_eq!(woken.next_before(None), None);
}

/// FEN-34: a thread that sleeps in memory of its own runs a signal handler between two parts of a
/// signal, and the fence is rewound. The signal goes on to release its wait, whose turn is kept.
#[test]
fn fen_34_a_wait_that_leaves_the_stack_keeps_its_turn() {
    let fence = Fence::new(0);
    let many: Vec<_> = (0..2 * BATCH).map(|_| wait_for(&fence, 10)).collect();
    let wait = Wait::start_on_stack(All, &[(&fence, 10)]);
    let sweep = fence.begin_signal(10, false).unwrap().expect("more to do");
    let rewind = fence.begin_signal(3, true).unwrap().expect("more to do");

    let late = Wait::start_on_stack(All, &[(&fence, 10)]);
    let [wait, late] = [wait, late].map(|wait| wait.interrupt().expect("it goes on"));

    assert_eq!((fence.sleeping(), fence.counted()), (0, 2));
    assert_eq!(fence.continue_signal(sweep), None);
    assert_eq!((wait.outcome(), wait.deliveries()), (Some(Satisfied), 1));
    assert_eq!(fence.continue_signal(rewind), None);
    assert_eq!(late.outcome(), None);
    assert!(many.iter().all(|wait| wait.outcome() == Some(Satisfied)));
    assert!(late.cancel());
}

#[test]
fn fen_28_a_fence_without_waiters_retires_without_a_look_at_them() {
    let fence = Fence::new(3);
    let wait = wait_for(&fence, 5);

    assert!(!fence.orphan_alone());
    assert_eq!(wait.outcome(), None, "nothing was done");
    assert_eq!(wait_for(&fence, 3).outcome(), Some(Satisfied));
    assert!(wait.cancel());
    assert!(fence.orphan_alone());
    assert_eq!(wait_for(&fence, 5).outcome(), Some(Orphaned));
    assert_eq!(
        Wait::start_on_stack(All, &[(&fence, 5)]).outcome(),
        Some(Orphaned)
    );
    assert_eq!(wait_for(&fence, 3).outcome(), Some(Satisfied));
}

/// FEN-28: what a signal has left to the worker releases a thread that sleeps in memory of its own.
#[test]
fn fen_28_an_orphaned_fence_tells_those_who_sleep() {
    let fence = Fence::new(0);
    let due = Wait::start_on_stack(All, &[(&fence, 2)]);
    let other = Wait::start_on_stack(All, &[(&fence, 3)]);

    fence.store(2);
    fence.orphan();
    assert_eq!((due.outcome(), due.deliveries()), (Some(Satisfied), 1));
    assert_eq!((other.outcome(), other.deliveries()), (Some(Orphaned), 1));
    assert_eq!((fence.sleeping(), fence.queued()), (0, 0));
}

/// What is known of the smallest value that is waited for follows who comes and who leaves.
#[test]
fn fen_30_a_signal_looks_once_after_the_first_waiter_has_left() {
    for on_stack in [false, true] {
        let fence = Fence::new(0);
        let wait = |value| match on_stack {
            true => Wait::start_on_stack(All, &[(&fence, value)]),
            false => wait_for(&fence, value),
        };
        let looks = |value| {
            let before = fence.touched();

            fence.signal(value, false).unwrap();
            fence.touched() - before
        };
        let (low, high) = (wait(10), wait(100));

        assert_eq!(looks(9), 0);
        assert!(low.cancel());
        assert_eq!((looks(10), looks(11), looks(99)), (1, 0, 0));

        let lower = wait(100);

        assert_eq!(looks(99), 0);
        assert!(looks(100) > 0);
        assert_eq!(high.outcome(), Some(Satisfied));
        assert_eq!(lower.outcome(), Some(Satisfied));
        // Nobody is left.
        assert_eq!((looks(101), looks(102), looks(u64::MAX - 1)), (1, 0, 0));

        let last = wait(u64::MAX);

        assert!(looks(u64::MAX) > 0);
        assert_eq!(last.outcome(), Some(Satisfied));
    }
}

/// A signal that releases many waiters does so in several holds of the lock.
#[test]
fn fen_31_many_waiters_are_released_in_batches() {
    for count in [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 2 * BATCH + 1] {
        let fence = Fence::new(0);
        let waits: Vec<_> = (0..count).map(|_| wait_for(&fence, 1)).collect();
        let mut rest = fence.begin_signal(1, false).unwrap();
        let mut holds = 1;

        while let Some(sweep) = rest {
            assert_eq!(fence.queued(), count - holds * BATCH);
            rest = fence.continue_signal(sweep);
            holds += 1;
        }
        assert_eq!(holds, count.div_ceil(BATCH));
        assert!(waits.iter().all(|wait| wait.outcome() == Some(Satisfied)));
    }
}

/// The call about one fence releases a few of them first, in the order of their values, nodes and
/// threads that sleep in memory of their own, and goes on with the others.
#[test]
fn fen_31_the_first_few_are_released_before_the_others() {
    for count in 1..=2 * FEW {
        for first_sleeps in 0..2 {
            let fence = Fence::new(0);
            let waits: Vec<_> = (1..=count)
                .map(|value| {
                    let how = [Wait::start, Wait::start_on_stack];

                    how[((value + first_sleeps) % 2) as usize](Any, &[(&fence, value.into())])
                })
                .collect();
            let later = wait_for(&fence, u64::from(count) + 1);
            let (taken, mut rest) = fence.begin_few(count.into(), false).unwrap();
            let done = |wait: &Arc<Wait>| wait.outcome() == Some(Satisfied);

            assert_eq!(taken, count.min(FEW));
            assert_eq!(rest.is_some(), count >= FEW);
            assert_eq!(
                waits.iter().take_while(|wait| done(wait)).count() as u32,
                taken
            );
            assert_eq!(waits.iter().filter(|wait| done(wait)).count() as u32, taken);
            while let Some(sweep) = rest {
                rest = fence.continue_signal(sweep);
            }
            for wait in &waits {
                assert_eq!((wait.outcome(), wait.deliveries()), (Some(Satisfied), 1));
            }
            assert_eq!((later.outcome(), fence.current()), (None, count.into()));
            for wait in waits {
                wait.leave_if_ended();
            }
            assert!(later.cancel());
        }
    }
}

/// FEN-34, FEN-80 (c): between two holds the fence is rewound and new waits arrive. The signal
/// goes on to release everybody who was there, and nobody who came after it.
#[test]
fn fen_34_a_rewind_between_batches() {
    let fence = Fence::new(0);
    let old: Vec<_> = (0..3 * BATCH).map(|_| wait_for(&fence, 10)).collect();
    let sweep = fence.begin_signal(10, false).unwrap().expect("more to do");

    fence.signal(3, true).unwrap();

    // Before the remaining old ones in the queue, behind them, and more than one batch of them.
    let new: Vec<_> = (0..2 * BATCH)
        .flat_map(|_| [5, 10].map(|value| wait_for(&fence, value)))
        .collect();
    let mut rest = fence.continue_signal(sweep);

    while let Some(sweep) = rest {
        rest = fence.continue_signal(sweep);
    }
    assert!(old.iter().all(|wait| wait.outcome() == Some(Satisfied)));
    assert!(new.iter().all(|wait| wait.outcome().is_none()));
    assert_eq!(fence.queued(), 4 * BATCH);

    fence.signal(10, false).unwrap();
    assert!(new.iter().all(|wait| wait.outcome() == Some(Satisfied)));
}

/// Two signals take turns at the lock: each waiter is told once.
#[test]
fn two_signals_interleave_their_batches() {
    let fence = Fence::new(0);
    let waits: Vec<_> = (0..4 * BATCH).map(|_| wait_for(&fence, 1)).collect();
    let mut first = fence.begin_signal(1, false).unwrap();
    let mut second = fence.begin_signal(2, false).unwrap();

    while first.is_some() || second.is_some() {
        first = first.and_then(|sweep| fence.continue_signal(sweep));
        second = second.and_then(|sweep| fence.continue_signal(sweep));
    }
    for wait in waits {
        assert_eq!((wait.outcome(), wait.deliveries()), (Some(Satisfied), 1));
    }
}

#[test]
fn fen_32_a_rewind_without_leave_changes_nothing() {
    let fence = Fence::new(7);
    let wait = wait_for(&fence, 8);

    assert_eq!(fence.signal(6, false), Err(WouldRewind));
    assert_eq!((fence.current(), wait.outcome()), (7, None));

    let before = fence.touched();
    assert_eq!(fence.signal(7, false), Ok(()));
    assert_eq!(fence.touched(), before, "equal: nobody waits for so little");
    assert_eq!((fence.current(), wait.outcome()), (7, None));
    assert!(wait.cancel());
}

#[test]
fn fen_31_a_signal_alone_does_all_or_nothing() {
    for (value, rewind) in [(0, false), (0, true), (3, true), (6, false), (7, false)] {
        // Fences at 5, on which somebody waits for `awaited`.
        for awaited in [None, Some(6), Some(7), Some(8), Some(u64::MAX)] {
            let (fence, other) = (Fence::new(5), Fence::new(5));
            let wait = |fence| awaited.map(|awaited| wait_for(fence, awaited));
            let (wait, expected) = (wait(&fence), wait(&other));
            let answer = fence.signal_alone(value, rewind);
            let is_due = awaited.is_some_and(|awaited| awaited <= value);
            let refused = value < 5 && !rewind;

            match answer {
                Err(WouldRewind) => assert!(refused),
                Ok(is_done) => assert_eq!((refused, is_done), (false, !is_due)),
            }
            assert_eq!(wait.as_ref().and_then(|wait| wait.outcome()), None);
            if refused || is_due {
                assert_eq!(fence.current(), 5, "nothing was done");
            }

            // Both ways come to the same.
            assert_eq!(
                fence.signal_quickly(value, rewind),
                other.signal(value, rewind)
            );
            assert_eq!(fence.current(), other.current());
            for (wait, expected) in wait.iter().zip(&expected) {
                assert_eq!(wait.outcome(), expected.outcome());
            }
            fence.orphan();
            other.orphan();
        }
    }
}

/// Somebody waits for what an engine has stored, and the signal is the only one that looks.
#[test]
fn fen_82_a_signal_alone_sees_the_value_that_it_takes_back() {
    let fence = Fence::new(0);
    let wait = wait_for(&fence, 5);

    fence.store(5);
    assert_eq!(fence.signal_alone(3, true), Ok(false));
    assert_eq!((fence.current(), wait.outcome()), (5, None));
    fence.signal_quickly(3, true).unwrap();
    assert_eq!((fence.current(), wait.outcome()), (3, Some(Satisfied)));
}

/// Signals do nothing any more.
#[test]
fn fen_104_a_signal_alone_after_the_adapter_is_gone() {
    let fence = Fence::new(0);

    fence.always_signal();
    assert_eq!(fence.signal_alone(3, false), Ok(true));
    assert_eq!(fence.current(), u64::MAX);
}

#[test]
fn fen_34_a_pulse_releases_the_waiter() {
    let fence = Fence::new(0);
    let wait = wait_for(&fence, 10);

    fence.signal(10, false).unwrap();
    fence.signal(3, true).unwrap();
    assert_eq!(wait.outcome(), Some(Satisfied));
    assert_eq!(fence.current(), 3);
}

#[test]
fn fen_85_a_cancelled_wait_leaves_no_trace() {
    let fences = [Fence::new(0), Fence::new(0)];
    let wait = Wait::start(All, &[(&fences[0], 1), (&fences[1], 1)]);

    fences[0].signal(1, false).unwrap();
    assert!(wait.cancel());
    assert!(!wait.cancel(), "once");
    fences[1].signal(1, false).unwrap();
    assert_eq!((wait.outcome(), wait.deliveries()), (Some(Cancelled), 0));
    assert_eq!(fences.map(|fence| fence.queued()), [0, 0]);
}

#[test]
fn fen_85_a_cancel_after_the_end_is_refused() {
    let fence = Fence::new(0);
    let wait = wait_for(&fence, 1);

    fence.signal(1, false).unwrap();
    assert!(!wait.cancel());
    assert_eq!((wait.outcome(), wait.deliveries()), (Some(Satisfied), 1));
}

#[test]
fn waiters_are_counted_and_not_looked_for() {
    let fence = Fence::new(0);
    let is_right = || assert_eq!(fence.counted(), fence.queued());
    let waits: Vec<_> = (1..=u64::from(3 * BATCH))
        .map(|value| {
            let wait = wait_for(&fence, value);

            is_right();
            wait
        })
        .collect();

    assert_eq!(fence.counted(), 3 * BATCH);
    assert!(waits[7].cancel());
    is_right();

    // Two holds of the lock, and a waiter in between that is passed over.
    let mut rest = fence.begin_signal(u64::from(2 * BATCH), false).unwrap();

    is_right();
    fence.signal(0, true).unwrap();

    let late = wait_for(&fence, 1);

    while let Some(sweep) = rest {
        rest = fence.continue_signal(sweep);
        is_right();
    }
    assert_eq!(fence.counted(), BATCH + 1);
    fence.orphan();
    is_right();
    assert_eq!(fence.counted(), 0);
    assert_eq!(late.outcome(), Some(Orphaned));

    // The nodes are gone; those that were not queued any more are not counted twice.
    late.unlink();
    waits[7].unlink();
    is_right();
}

/// Waits for 1 to `count`, and a signal of `value` that has released one batch and left the rest.
fn left_over(fence: &Arc<Fence>, count: u32, value: u32) -> Vec<Arc<Wait>> {
    let waits = (1..=u64::from(count))
        .map(|value| wait_for(fence, value))
        .collect();
    let rest = fence.begin_signal(value.into(), false).unwrap().unwrap();

    assert_eq!(fence.defer(rest), None);
    waits
}

fn satisfied(waits: &[Arc<Wait>]) -> usize {
    waits
        .iter()
        .filter(|wait| wait.outcome() == Some(Satisfied))
        .count()
}

#[test]
fn the_worker_releases_what_a_signal_has_left() {
    let fence = Fence::new(0);
    let waits = left_over(&fence, 5 * BATCH, 4 * BATCH);

    assert_eq!(satisfied(&waits), BATCH as usize);
    // FEN-34: a pulse loses nobody, and does not count for one that comes after it.
    fence.signal(0, true).unwrap();

    let late = wait_for(&fence, 2 * u64::from(BATCH));

    while fence.catch_up() {}
    assert_eq!(satisfied(&waits), 4 * BATCH as usize);
    assert_eq!((late.outcome(), fence.counted()), (None, BATCH + 1));
    fence.signal(2 * u64::from(BATCH), false).unwrap();
    assert_eq!(late.outcome(), Some(Satisfied));
}

#[test]
fn a_signal_that_finds_a_backlog_looks_at_one_waiter() {
    let fence = Fence::new(0);
    let waits = left_over(&fence, 9 * BATCH, 4 * BATCH);
    let before = fence.touched();

    // A lower one is part of it, a higher one joins it.
    fence.signal(u64::from(3 * BATCH), true).unwrap();
    fence.signal(u64::from(8 * BATCH), false).unwrap();
    assert!(
        fence.touched() - before <= 4,
        "{}",
        fence.touched() - before
    );
    assert_eq!(satisfied(&waits), BATCH as usize);
    while fence.catch_up() {}
    assert_eq!(satisfied(&waits), 8 * BATCH as usize);
}

#[test]
fn fen_82_a_signal_sees_the_value_that_it_takes_back() {
    let fence = Fence::new(0);
    let (reached, higher) = (wait_for(&fence, 5), wait_for(&fence, 6));

    // As an engine does, of which nobody is told.
    fence.store(5);
    fence.signal(3, true).unwrap();
    assert_eq!(reached.outcome(), Some(Satisfied));
    assert_eq!(higher.outcome(), None);
}

#[test]
fn a_signal_that_does_not_go_with_the_backlog_is_handed_back() {
    let fence = Fence::new(0);
    let _old = left_over(&fence, 8 * BATCH, 8 * BATCH);

    // Below the backlog, after a rewind, with a waiter that the backlog does not have.
    fence.signal(0, true).unwrap();

    let late = wait_for(&fence, 3);
    let rest = fence
        .begin_signal(u64::from(7 * BATCH), false)
        .unwrap()
        .unwrap();
    let rest = fence.defer(rest).expect("it has another waiter");
    let mut rest = Some(rest);

    while let Some(sweep) = rest {
        rest = fence.continue_signal(sweep);
    }
    assert_eq!(late.outcome(), Some(Satisfied));
    while fence.catch_up() {}
    assert_eq!(fence.counted(), 0);
}

#[test]
fn fen_28_orphans_that_a_signal_has_reached_are_satisfied() {
    let fence = Fence::new(0);
    let waits = left_over(&fence, 3 * BATCH, 2 * BATCH);

    fence.signal(0, true).unwrap();

    let late = wait_for(&fence, 1);

    fence.orphan();
    assert!(!fence.catch_up());
    assert_eq!(satisfied(&waits), 2 * BATCH as usize);
    assert_eq!(late.outcome(), Some(Orphaned));
    assert_eq!(waits[3 * BATCH as usize - 1].outcome(), Some(Orphaned));
}

/// FEN-17: the rule of `cpu_wait` for elements of one fence, against waits that have all of them.
#[test]
fn fen_17_one_value_decides_for_each_fence() {
    for (values, any, all) in [([3, 5], 3, 5), ([5, 3], 3, 5), ([4, 4], 4, 4)] {
        let fence = Fence::new(0);
        let elements = values.map(|value| (&fence, value));

        for (mode, decides) in [(Any, any), (All, all)] {
            let whole = Wait::start(mode, &elements);
            let part = Wait::start(mode, &[(&fence, decides)]);

            for value in 1..=5 {
                fence.signal(value, false).unwrap();
                assert_eq!(
                    whole.outcome(),
                    part.outcome(),
                    "{mode:?} {values:?} at {value}"
                );
            }
            fence.signal(0, true).unwrap();
        }
    }
}

/// The worker gets past more waiters than one hold of the lock looks at, which came after the
/// signal.
#[test]
fn the_worker_gets_past_who_came_later() {
    let fence = Fence::new(0);
    let waits = left_over(&fence, 3 * BATCH, 3 * BATCH);

    fence.signal(0, true).unwrap();

    let late: Vec<_> = (0..3 * BATCH).map(|_| wait_for(&fence, 1)).collect();
    let steps = (0..100).take_while(|_| fence.catch_up()).count();

    assert!(steps < 10, "{steps}");
    assert_eq!(satisfied(&waits), 3 * BATCH as usize);
    assert_eq!((satisfied(&late), fence.counted()), (0, 3 * BATCH));
    fence.orphan();
}

/// What is left to the worker beside releases is done once.
#[test]
fn the_end_that_is_left_to_the_worker_is_taken_once() {
    let word = word64(0);
    let mut waiters = Waiters::new(Tree::default());

    assert!(!waiters.take_cleanup());
    waiters.leave_cleanup();
    assert!(waiters.sample(&word).is_none());
    assert_eq!(
        [waiters.take_cleanup(), waiters.take_cleanup()],
        [true, false]
    );
}

/// FEN-72: somebody stores the word without the lock, and the next one to look releases who is due.
#[test]
fn fen_72_a_look_at_the_word_releases_who_is_due() {
    let fence = Fence::new(0);
    let waits = [3, 5, 7].map(|value| wait_for(&fence, value));
    let monitored = word64(0);

    assert_eq!(fence.sample(), None);
    assert!(waits.iter().all(|wait| wait.outcome().is_none()));

    fence.store(5);
    assert_eq!(fence.sample(), None, "all in one look");
    let outcomes = waits.each_ref().map(|wait| wait.outcome());
    assert_eq!(outcomes, [Some(Satisfied), Some(Satisfied), None]);
    assert_eq!(fence.monitored(), 6);

    // FEN-55, FEN-67: only a value above MonitoredValue is looked at.
    fence.monitor(&monitored, true);
    assert_eq!(load_acquire(&monitored), 6);
    fence.engine_signal(&monitored, 6, true);
    assert_eq!(load_acquire(&monitored), 6);
    fence.engine_signal(&monitored, 7, true);
    assert_eq!(waits[2].outcome(), Some(Satisfied));
    assert_eq!(load_acquire(&monitored), NOBODY_WAITS);
    assert_eq!(waits.map(|wait| wait.deliveries()), [1, 1, 1]);
}

/// FEN-82: a value that was there and went down again before anybody looked is not seen.
#[test]
fn fen_82_a_pulse_that_nobody_samples_releases_nobody() {
    let fence = Fence::new(0);
    let wait = wait_for(&fence, 10);

    fence.store(10);
    fence.store(3);
    assert_eq!((fence.sample(), wait.outcome()), (None, None));
    fence.store(10);
    assert_eq!(fence.sample(), None);
    assert_eq!(wait.outcome(), Some(Satisfied));
}

/// A look joins what a signal has left to the worker if it covers that, and does its own work
/// otherwise.
#[test]
fn fen_72_a_look_and_what_is_left_to_the_worker() {
    for (stored, joins) in [(2 * BATCH, true), (3 * BATCH, true), (BATCH + 1, false)] {
        let fence = Fence::new(0);
        let waits = left_over(&fence, 4 * BATCH, 2 * BATCH);
        let before = satisfied(&waits);

        fence.store(u64::from(stored));

        let mut rest = fence.sample();

        if joins {
            assert_eq!((rest, satisfied(&waits)), (None, before), "{stored}");
        }
        while let Some(sweep) = rest {
            rest = fence.continue_signal(sweep);
        }
        while fence.catch_up() {}
        assert_eq!(satisfied(&waits), stored.max(2 * BATCH) as usize);
        fence.orphan();
    }
}

/// FEN-28: the last look is that of the end.
#[test]
fn fen_28_a_value_that_nobody_has_looked_at_satisfies_orphans() {
    let fence = Fence::new(0);
    let waits = [1, 2, 3].map(|value| wait_for(&fence, value));

    fence.store(2);
    fence.orphan();
    assert_eq!(
        waits.map(|wait| wait.outcome()),
        [Some(Satisfied), Some(Satisfied), Some(Orphaned)]
    );
}

#[test]
fn fen_104_always_signaled_releases_everybody_and_stays() {
    let fence = Fence::new(7);
    let waits: Vec<_> = (8..8 + 2 * u64::from(BATCH))
        .chain([u64::MAX])
        .map(|value| wait_for(&fence, value))
        .collect();

    fence.always_signal();
    assert_eq!(satisfied(&waits), waits.len());
    assert_eq!((fence.queued(), fence.monitored()), (0, NOBODY_WAITS));

    // Signals do nothing, also those that may rewind, and are not refused.
    for (value, rewind) in [(0, true), (3, false), (u64::MAX, false)] {
        fence.signal(value, rewind).unwrap();
        assert_eq!(wait_for(&fence, u64::MAX).outcome(), Some(Satisfied));
    }
    fence.always_signal();
    assert_eq!(wait_for(&fence, u64::MAX).outcome(), Some(Satisfied));
}

/// An engine that stores 0 at once, because it does not know yet.
struct Beside<'a>(&'a Fence);

impl CurrentValue for Beside<'_> {
    fn load(&self) -> u64 {
        self.0.current()
    }

    fn store(&self, value: u64) {
        self.0.store(value);
        self.0.store(0);
    }
}

/// M23: everybody is released, whatever the word is until the engine has looked again.
#[test]
fn fen_104_an_engine_that_stores_beside_always_signaled_holds_nobody() {
    let fence = Fence::new(3);
    let waits = [5, u64::MAX].map(|value| wait_for(&fence, value));

    fence.always_signal_by(&Beside(&fence));
    assert_eq!((fence.current(), satisfied(&waits)), (0, 2));
    assert_eq!(wait_for(&fence, 1).outcome(), Some(Satisfied));
}

#[test]
fn fen_104_always_signaled_goes_over_what_a_signal_has_left() {
    let fence = Fence::new(0);
    let waits = left_over(&fence, 3 * BATCH, 2 * BATCH);

    fence.always_signal();
    while fence.catch_up() {}
    assert_eq!(satisfied(&waits), waits.len());
}

#[test]
fn fen_104_a_fence_may_keep_its_value() {
    let word = word64(3);
    let mut waiters = Waiters::with(Tree::default(), Nobody, true);

    assert!(waiters.always_signal(&word).is_none());
    assert_eq!(load_acquire(&word), 3);
    assert!(waiters.signal(&word, 4, false).is_ok());
    assert_eq!(load_acquire(&word), 4);
}
