// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings, and all results that weak memory allows, of small scenes with real code.
//!
//! Threads explored by loom; the code under test is `logic` with loom's atomics. Each scene ends
//! in silence: after the last signal nobody signals again, so a lost wake stays visible (FEN-83).
//! The `mutant_` tests leave one ordering or one step out and must fail; they show that the scene
//! above them would have noticed (FEN-171).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use loom::{
    sync::Arc,
    thread::{spawn, yield_now, JoinHandle},
};

use super::harness::{Fence, Glue, Handed, Wait};
use crate::{
    logic::{
        fence_value::NOBODY_WAITS,
        wait_set::{
            Mode::{self, All, Any},
            WaitEnd::{Cancelled, Orphaned, Satisfied},
        },
        waiters::BATCH,
    },
    platform::{load_acquire, mutation::without, word64, Part, Word64},
};

/// Explores `scene` without a bound.
fn explore(scene: impl Fn() + Send + Sync + 'static) {
    explore_within(None, scene);
}

/// Environment variable of a long run: how many preemptions more than a scene has by itself.
const MORE: &str = "OPENDXG_LOOM_MORE";

/// Explores `scene` with at most `bound` preemptions, and says how many executions there were.
pub(super) fn explore_within(bound: Option<usize>, scene: impl Fn() + Send + Sync + 'static) {
    let executions = std::sync::Arc::new(AtomicU64::new(0));
    let count = executions.clone();
    let more = std::env::var(MORE).map_or(0, |text| text.parse().expect("a number"));
    let bound = bound.map(|bound| bound + more);
    let mut builder = loom::model::Builder::new();

    builder.preemption_bound = bound;
    builder.max_branches = 20_000;
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        scene();
    });
    println!(
        "{} executions, preemption bound {}",
        executions.load(Relaxed),
        bound.map_or("none".into(), |bound| bound.to_string())
    );
}

fn signaller(fence: &Arc<Fence>, value: u64) -> JoinHandle<()> {
    let fence = fence.clone();

    spawn(move || {
        // Refused if another signaller was higher before; the waiters are served either way.
        let _ = fence.signal(value, false);
    })
}

/// Asserts that a wait ended well, was told once, and left nothing behind.
fn assert_satisfied(wait: &Wait, fences: &[&Arc<Fence>]) {
    assert_eq!(wait.outcome(), Some(Satisfied));
    assert_eq!(wait.deliveries(), 1, "FEN-80 (g): one wake for one wait");
    for fence in fences {
        assert_eq!(fence.queued(), 0, "FEN-80 (a)");
    }
}

/// The signal falls anywhere around the registration.
#[test]
fn one_waiter_one_signaller() {
    explore(|| {
        let fence = Fence::new(0);
        let signaller = signaller(&fence, 1);
        let wait = Wait::start(Any, &[(&fence, 1)]);

        signaller.join().unwrap();
        assert_satisfied(&wait, &[&fence]);
    });
}

/// The same, and the signal first tries to do without the waiters, in a hold of its own; meanwhile
/// a rewind may come.
#[test]
fn one_waiter_one_quick_signaller() {
    for rewound in [false, true] {
        explore(move || {
            let fence = Fence::new(0);
            let signaller = {
                let fence = fence.clone();

                spawn(move || fence.signal_quickly(1, false).unwrap())
            };
            let wait = Wait::start(Any, &[(&fence, 1)]);

            if rewound {
                fence.signal_quickly(0, true).unwrap();
            }
            signaller.join().unwrap();
            if wait.outcome().is_none() {
                assert!(rewound, "FEN-83: a wake-up is lost");
                fence.signal_quickly(1, false).unwrap();
            }
            assert_satisfied(&wait, &[&fence]);
        });
    }
}

/// GPU-110: two waiters for different values, two signallers (FEN-33).
#[test]
fn gpu_110_two_waiters_two_signallers() {
    explore_within(Some(3), || {
        let fence = Fence::new(0);
        let signallers = [signaller(&fence, 1), signaller(&fence, 2)];
        let other = {
            let fence = fence.clone();

            spawn(move || Wait::start(Any, &[(&fence, 2)]))
        };
        let first = Wait::start(Any, &[(&fence, 1)]);

        for signaller in signallers {
            signaller.join().unwrap();
        }

        let second = other.join().unwrap();
        assert_eq!(fence.current(), 2, "FEN-33: never down");
        assert_satisfied(&first, &[&fence]);
        assert_satisfied(&second, &[&fence]);
    });
}

/// FEN-85: cancel against signal, exactly one outcome.
#[test]
fn cancel_against_signal() {
    explore(|| {
        let fence = Fence::new(0);
        let wait = Wait::start(Any, &[(&fence, 1)]);
        let signaller = signaller(&fence, 1);
        let cancelled = wait.cancel();

        signaller.join().unwrap();
        match cancelled {
            true => assert_eq!(wait.outcome(), Some(Cancelled)),
            false => assert_eq!(wait.outcome(), Some(Satisfied)),
        }
        assert_eq!(wait.deliveries(), u32::from(!cancelled));
        assert_eq!(fence.queued(), 0, "FEN-86");
    });
}

/// The process ends while another thread of it is still registering a wait (FEN-89).
fn cancel_against_registration() {
    let fences = [Fence::new(0), Fence::new(0)];
    let wait = Wait::new(Glue::Complete, Any, 2);
    let owner = {
        let wait = wait.clone();

        spawn(move || wait.cancel())
    };

    Wait::register(&wait, &[(&fences[0], 1), (&fences[1], 1)]);
    assert!(owner.join().unwrap(), "nobody else ends it");
    assert_eq!((wait.outcome(), wait.deliveries()), (Some(Cancelled), 0));
    assert_eq!(fences.map(|fence| fence.queued()), [0, 0]);
}

#[test]
fn fen_89_cancel_against_registration() {
    explore(cancel_against_registration);
}

/// Two fences of one wait, both signalled, while the wait is being registered.
fn two_fences(mode: Mode) {
    let (a, b) = (Fence::new(0), Fence::new(0));
    let signallers = [signaller(&a, 1), signaller(&b, 1)];
    let wait = Wait::start(mode, &[(&a, 1), (&b, 1)]);

    for signaller in signallers {
        signaller.join().unwrap();
    }
    assert_satisfied(&wait, &[&a, &b]);
}

#[test]
fn fen_15_a_wait_over_two_signalled_fences() {
    explore(|| two_fences(Any));
    explore(|| two_fences(All));
}

/// The hand-over: one fence ends the wait, and the second party cleans the silent one.
fn silent_second_fence(glue: Glue) {
    let (a, b) = (Fence::new(0), Fence::new(0));
    let signaller = signaller(&a, 1);
    let wait = Wait::new(glue, Any, 2);

    Wait::register(&wait, &[(&a, 1), (&b, 1)]);

    signaller.join().unwrap();
    assert_satisfied(&wait, &[&a, &b]);
}

#[test]
fn hand_over_between_registration_and_ending() {
    explore(|| silent_second_fence(Glue::Complete));
}

#[test]
#[should_panic(expected = "FEN-80 (a)")]
fn mutant_registration_does_not_look_again() {
    explore(|| silent_second_fence(Glue::NoSecondLook));
}

#[test]
#[should_panic]
fn mutant_ending_does_not_wait_for_the_registration() {
    explore(|| silent_second_fence(Glue::NoHandOver));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_relaxed_hand_over() {
    without(Part::FullAdd, || explore(cancel_against_registration));
}

/// FEN-19: a thread that sleeps in the call cleans up after itself.
#[test]
fn fen_19_a_sleeping_thread_takes_its_elements_out() {
    explore(|| {
        let (a, b) = (Fence::new(0), Fence::new(0));
        let signaller = signaller(&a, 1);
        let wait = Wait::new(Glue::Sleeper, Any, 2);

        Wait::register(&wait, &[(&a, 1), (&b, 1)]);
        while wait.outcome().is_none() {
            yield_now();
        }
        wait.unlink();
        signaller.join().unwrap();
        assert_satisfied(&wait, &[&a, &b]);
    });
}

/// FEN-19, FEN-86: a sleeping thread is interrupted while the signal comes.
#[test]
fn fen_19_an_interrupted_sleeper_leaves_nothing_behind() {
    explore(|| {
        let fence = Fence::new(0);
        let signaller = signaller(&fence, 1);
        let wait = Wait::new(Glue::Sleeper, Any, 1);

        Wait::register(&wait, &[(&fence, 1)]);

        let cancelled = wait.cancel();

        wait.unlink();
        signaller.join().unwrap();
        assert_eq!(wait.outcome() == Some(Cancelled), cancelled);
        assert_eq!(fence.queued(), 0);
    });
}

/// A thread sleeps in memory of its own until its wait has ended, and leaves.
fn sleep_on_stack(wait: &Wait) {
    while wait.outcome().is_none() {
        yield_now();
    }
    wait.leave();
}

/// The hand-over of the memory: a signal tells the thread and lets go of its place, and only then
/// the thread uses the memory for something else. It may look at any time, not only when woken.
fn one_sleeper_on_stack(glue: Glue) {
    let fence = Fence::new(0);
    let signaller = signaller(&fence, 1);
    let wait = Wait::new(glue, All, 1);

    assert!(Wait::register_on_stack(&wait, &[(&fence, 1)]));
    sleep_on_stack(&wait);
    signaller.join().unwrap();
    assert_satisfied(&wait, &[&fence]);
}

#[test]
fn fen_30_a_signal_lets_go_of_the_memory_of_a_sleeping_thread() {
    explore(|| one_sleeper_on_stack(Glue::OnStack));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_sleeping_thread_does_not_look_whether_it_may_go() {
    explore(|| one_sleeper_on_stack(Glue::NoLastLook));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_letting_go_is_relaxed() {
    without(Part::Release32, || {
        explore(|| one_sleeper_on_stack(Glue::OnStack));
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_the_look_whether_it_may_go_is_relaxed() {
    without(Part::Acquire32, || {
        explore(|| one_sleeper_on_stack(Glue::OnStack));
    });
}

/// FEN-15: two fences tell one sleeping thread at the same time, each under its own lock.
#[test]
fn fen_15_two_signals_and_the_memory_of_a_sleeping_thread() {
    for mode in [Any, All] {
        explore_within(Some(3), move || {
            let (a, b) = (Fence::new(0), Fence::new(0));
            let signallers = [signaller(&a, 1), signaller(&b, 1)];
            let wait = Wait::new(Glue::OnStack, mode, 2);

            assert!(Wait::register_on_stack(&wait, &[(&a, 1), (&b, 1)]));
            sleep_on_stack(&wait);
            for signaller in signallers {
                signaller.join().unwrap();
            }
            assert_satisfied(&wait, &[&a, &b]);
        });
    }
}

/// FEN-19, FEN-85: a thread that sleeps in memory of its own gives up while the signal comes.
#[test]
fn fen_85_a_sleeping_thread_leaves_against_a_signal() {
    explore(|| {
        let fence = Fence::new(0);
        let signaller = signaller(&fence, 1);
        let wait = Wait::new(Glue::OnStack, All, 1);

        assert!(Wait::register_on_stack(&wait, &[(&fence, 1)]));

        let outcome = wait.leave();

        signaller.join().unwrap();
        assert!(matches!(outcome, Some(Satisfied | Cancelled)));
        assert_eq!(wait.outcome(), outcome, "it stands");
        assert_eq!(wait.deliveries(), u32::from(outcome == Some(Satisfied)));
        assert_eq!(fence.queued(), 0, "FEN-86");
    });
}

/// FEN-28: the last handle goes while a thread sleeps in memory of its own.
#[test]
fn fen_28_orphan_against_a_sleeping_thread() {
    explore(|| {
        let fence = Fence::new(0);
        let destroyer = {
            let fence = fence.clone();

            spawn(move || fence.orphan())
        };
        let wait = Wait::new(Glue::OnStack, All, 1);

        assert!(Wait::register_on_stack(&wait, &[(&fence, 1)]));
        sleep_on_stack(&wait);
        destroyer.join().unwrap();
        assert_eq!((wait.outcome(), wait.deliveries()), (Some(Orphaned), 1));
    });
}

/// FEN-16, FEN-34: a thread that sleeps in memory of its own runs a signal handler, while fences
/// are signalled and rewound. Its wait misses nothing, and what it has seen counts.
fn interrupted_on_stack(mode: Mode) {
    let (a, b) = (Fence::new(0), Fence::new(0));
    let pulse = {
        let a = a.clone();

        spawn(move || {
            a.signal(1, false).unwrap();
            a.signal(0, true).unwrap();
        })
    };
    let wait = Wait::new(Glue::OnStack, mode, 2);

    assert!(Wait::register_on_stack(&wait, &[(&a, 1), (&b, 1)]));

    let moved = wait.move_off_stack();

    pulse.join().unwrap();

    let wait = moved.as_ref().unwrap_or(&wait);

    if wait.outcome().is_none() {
        // All need the other one, too. Otherwise the pulse was over before the wait began.
        b.signal(1, false).unwrap();
    }
    if wait.outcome().is_none() {
        assert_eq!(mode, All);
        a.signal(1, false).unwrap();
    }
    assert_satisfied(wait, &[&a, &b]);
}

#[test]
fn fen_34_a_sleeping_thread_runs_a_handler_during_a_pulse() {
    for mode in [Any, All] {
        explore_within(Some(3), move || interrupted_on_stack(mode));
    }
}

/// The same where the wait began before the pulse: no signal after it is needed.
#[test]
fn fen_34_a_wait_that_leaves_the_stack_has_the_pulse() {
    explore(|| {
        let (a, b) = (Fence::new(0), Fence::new(0));
        let wait = Wait::new(Glue::OnStack, All, 2);

        assert!(Wait::register_on_stack(&wait, &[(&a, 1), (&b, 1)]));

        let pulse = {
            let a = a.clone();

            spawn(move || {
                a.signal(1, false).unwrap();
                a.signal(0, true).unwrap();
            })
        };
        let moved = wait.move_off_stack().expect("b is not there");

        pulse.join().unwrap();
        assert_eq!(moved.outcome(), None);
        b.signal(1, false).unwrap();
        assert_satisfied(&moved, &[&a, &b]);
    });
}

/// FEN-17: the same fence twice in one wait, reached by two signals.
#[test]
fn one_fence_twice() {
    explore(|| {
        let fence = Fence::new(0);
        let signaller = {
            let fence = fence.clone();

            spawn(move || {
                fence.signal(1, false).unwrap();
                fence.signal(2, false).unwrap();
            })
        };
        let any = Wait::start(Any, &[(&fence, 1), (&fence, 2)]);
        let all = Wait::start(All, &[(&fence, 1), (&fence, 2)]);

        signaller.join().unwrap();
        assert_satisfied(&any, &[&fence]);
        assert_satisfied(&all, &[&fence]);
    });
}

/// FEN-34: a queued waiter is released by a pulse, also while another signaller rewinds;
/// the last store wins.
#[test]
fn pulse_against_another_signaller() {
    explore(|| {
        let fence = Fence::new(0);
        let wait = Wait::start(Any, &[(&fence, 10)]);
        let pulse = {
            let fence = fence.clone();

            spawn(move || {
                fence.signal(10, false).unwrap();
                fence.signal(3, true).unwrap();
            })
        };

        fence.signal(4, true).unwrap();
        pulse.join().unwrap();
        assert!(matches!(fence.current(), 3 | 4));
        assert_satisfied(&wait, &[&fence]);
    });
}

/// A signal with more waiters than one hold of the lock releases, against a rewind and a new wait.
#[test]
fn fen_34_rewind_and_new_wait_between_batches() {
    explore_within(Some(3), || {
        let fence = Fence::new(0);
        let many: Vec<_> = (0..=BATCH)
            .map(|_| Wait::start(Any, &[(&fence, 10)]))
            .collect();
        let signaller = {
            let fence = fence.clone();

            spawn(move || fence.signal(10, false).unwrap())
        };

        fence.signal(3, true).unwrap();

        let late = Wait::start(Any, &[(&fence, 5)]);

        signaller.join().unwrap();
        for wait in many {
            assert_eq!((wait.outcome(), wait.deliveries()), (Some(Satisfied), 1));
        }

        // Released if, and only if, 10 was stored last: the late wait saw it or was there for it.
        assert_eq!(late.outcome().is_some(), fence.current() == 10);
        fence.signal(5, true).unwrap();
        assert_satisfied(&late, &[&fence]);
    });
}

/// FEN-24: a wait that registers around a pulse is released by it or by the next reach.
#[test]
fn registration_around_a_pulse() {
    explore(|| {
        let fence = Fence::new(0);
        let pulse = {
            let fence = fence.clone();

            spawn(move || {
                fence.signal(10, false).unwrap();
                fence.signal(3, true).unwrap();
            })
        };
        let wait = Wait::start(Any, &[(&fence, 10)]);

        pulse.join().unwrap();
        assert_eq!(u32::from(wait.outcome().is_none()), fence.queued());
        fence.signal(10, false).unwrap();
        assert_satisfied(&wait, &[&fence]);
    });
}

/// FEN-28: the last handle goes while a wait registers and a signal is under way.
#[test]
fn orphan_against_signal_and_registration() {
    explore_within(Some(3), || {
        let fence = Fence::new(0);
        let signaller = signaller(&fence, 1);
        let destroyer = {
            let fence = fence.clone();

            spawn(move || fence.orphan())
        };
        let wait = Wait::start(Any, &[(&fence, 1)]);

        signaller.join().unwrap();
        destroyer.join().unwrap();
        assert!(matches!(wait.outcome(), Some(Satisfied | Orphaned)));
        assert_eq!((wait.deliveries(), fence.queued()), (1, 0));
    });
}

/// FEN-28: the last handle goes while a wait registers, and nobody is left to signal.
#[test]
fn fen_28_orphan_against_registration() {
    explore(|| {
        let fence = Fence::new(0);
        let destroyer = {
            let fence = fence.clone();

            spawn(move || fence.orphan())
        };
        let wait = Wait::start(Any, &[(&fence, 1)]);

        destroyer.join().unwrap();
        assert_eq!((wait.outcome(), wait.deliveries()), (Some(Orphaned), 1));
    });
}

/// FEN-71, FEN-76, FEN-80: an engine stores CurrentValue without the lock and interrupts only if
/// it is above MonitoredValue, while a wait is queued, MonitoredValue is lowered and the word is
/// looked at again.
fn an_engine_signals(barriers: [bool; 2]) {
    let fence = Fence::new(0);
    let monitored = Arc::new(word64(NOBODY_WAITS));
    let engine = {
        let (fence, monitored) = (fence.clone(), monitored.clone());

        spawn(move || fence.engine_signal(&monitored, 1, barriers[0]))
    };
    let wait = Wait::start(Any, &[(&fence, 1)]);

    fence.monitor(&monitored, barriers[1]);
    engine.join().unwrap();
    assert_satisfied(&wait, &[&fence]);
    assert_eq!(load_acquire(&monitored), NOBODY_WAITS, "FEN-80 (e)");
}

/// FEN-72: nobody is left behind.
#[test]
fn fen_71_fen_76_fen_77_an_engine_against_a_registration() {
    explore(|| an_engine_signals([true, true]));
}

/// FEN-77: without the barrier of the engine.
#[test]
#[should_panic]
fn mutant_fen_77_the_engine_has_no_barrier() {
    explore(|| an_engine_signals([false, true]));
}

/// FEN-77: without the one between MonitoredValue and the second look.
#[test]
#[should_panic]
fn mutant_fen_77_the_second_look_has_no_barrier() {
    explore(|| an_engine_signals([true, false]));
}

/// FEN-73: an engine decides before its store has left the store buffer, which may be after
/// MonitoredValue was changed. `redecides`: it looks at MonitoredValue again then.
fn an_engine_stores_late(redecides: bool) {
    let fence = Fence::new(0);
    let monitored = Arc::new(word64(NOBODY_WAITS));
    let engine = {
        let (fence, monitored) = (fence.clone(), monitored.clone());

        spawn(move || fence.engine_signal_late(&monitored, 1, redecides))
    };
    let wait = Wait::start(Any, &[(&fence, 1)]);

    fence.monitor(&monitored, true);
    engine.join().unwrap();
    assert_satisfied(&wait, &[&fence]);
}

#[test]
fn fen_73_a_store_that_is_late_is_decided_again() {
    explore(|| an_engine_stores_late(true));
}

/// FEN-73: a store that UpdateMonitoredValues has not waited for, decided by the old value.
#[test]
#[should_panic]
fn mutant_fen_73_a_store_that_is_late_is_not_decided_again() {
    explore(|| an_engine_stores_late(false));
}

/// FEN-72: two engines and a wait that is queued between them.
#[test]
fn fen_72_two_engine_signals_against_a_registration() {
    explore(|| {
        let fence = Fence::new(0);
        let monitored = Arc::new(word64(NOBODY_WAITS));
        let engine = {
            let (fence, monitored) = (fence.clone(), monitored.clone());

            spawn(move || {
                fence.engine_signal(&monitored, 1, true);
                fence.engine_signal(&monitored, 2, true);
            })
        };
        let waits = [2, 1].map(|value| {
            let wait = Wait::start(Any, &[(&fence, value)]);

            fence.monitor(&monitored, true);
            wait
        });

        engine.join().unwrap();
        for wait in &waits {
            assert_satisfied(wait, &[&fence]);
        }
    });
}

/// M1, M2, M8, M16: two waits against two engines, each in a thread of its own unless `by_one`,
/// which registers both waits one after the other.
fn two_waits_two_engines(by_one: bool) {
    let fence = Fence::new(0);
    let monitored = Arc::new(word64(NOBODY_WAITS));
    let engines = [1, 2].map(|value| {
        let (fence, monitored) = (fence.clone(), monitored.clone());

        spawn(move || fence.engine_signal(&monitored, value, true))
    });
    let start = {
        let (fence, monitored) = (fence.clone(), monitored.clone());

        move |value| {
            let wait = Wait::start(Any, &[(&fence, value)]);

            fence.monitor(&monitored, true);
            wait
        }
    };
    let waits = if by_one {
        [start(2), start(1)]
    } else {
        let other = {
            let start = start.clone();

            spawn(move || start(2))
        };
        let own = start(1);

        [other.join().unwrap(), own]
    };

    for engine in engines {
        engine.join().unwrap();
    }
    // The last store may be the lower one: then who waits for 2 has seen the other one, or waits
    // on, and the engine knows it.
    if fence.current() == 2 {
        assert_satisfied(&waits[0], &[&fence]);
    }
    assert_satisfied_or_waits(&waits, &fence, &monitored);
}

/// FEN-80 (a), (d), (e), when nothing happens any more.
fn assert_satisfied_or_waits(waits: &[Arc<Wait>; 2], fence: &Fence, monitored: &Word64) {
    let left = [2, 1]
        .into_iter()
        .zip(waits)
        .filter(|(_, wait)| wait.outcome().is_none())
        .map(|(value, _)| value)
        .min();

    for (value, wait) in [2, 1].into_iter().zip(waits) {
        match wait.outcome() {
            Some(outcome) => assert_eq!((outcome, wait.deliveries()), (Satisfied, 1)),
            None => assert!(fence.current() < value, "FEN-80 (a)"),
        }
    }
    let wanted = left.map_or(NOBODY_WAITS, |lowest| lowest - 1);
    assert_eq!(load_acquire(monitored), wanted, "FEN-80 (d), (e)");
    for wait in waits.iter().filter(|wait| wait.outcome().is_none()) {
        wait.cancel();
    }
}

#[test]
fn fen_71_m2_two_waits_one_after_the_other_against_two_engines() {
    explore_within(Some(3), || two_waits_two_engines(true));
}

#[test]
fn fen_71_m2_two_waiters_against_two_engines() {
    explore_within(Some(2), || two_waits_two_engines(false));
}

/// FEN-85, FEN-86, M8, M14: a wait is given up, which raises MonitoredValue, while an engine stores
/// what another one waits for.
#[test]
fn fen_86_a_cancelled_wait_against_an_engine() {
    explore_within(Some(3), || {
        let fence = Fence::new(0);
        let monitored = Arc::new(word64(NOBODY_WAITS));
        let waits = [1, 2].map(|value| {
            let wait = Wait::start(Any, &[(&fence, value)]);

            fence.monitor(&monitored, true);
            wait
        });
        let engine = {
            let (fence, monitored) = (fence.clone(), monitored.clone());

            spawn(move || fence.engine_signal(&monitored, 2, true))
        };

        waits[0].cancel();
        fence.monitor(&monitored, true);
        engine.join().unwrap();
        assert_satisfied(&waits[1], &[&fence]);
        assert_eq!(load_acquire(&monitored), NOBODY_WAITS, "FEN-80 (e)");
    });
}

/// The last waiter gives up while an engine stores less than it waits for. `updates`:
/// MonitoredValue follows.
fn the_last_waiter_leaves(updates: bool) {
    let fence = Fence::new(0);
    let monitored = Arc::new(word64(NOBODY_WAITS));
    let wait = Wait::start(Any, &[(&fence, 5)]);

    fence.monitor(&monitored, true);

    let engine = {
        let (fence, monitored) = (fence.clone(), monitored.clone());

        spawn(move || fence.engine_signal(&monitored, 2, true))
    };

    wait.cancel();
    if updates {
        fence.monitor(&monitored, true);
    }
    engine.join().unwrap();
    assert_eq!(load_acquire(&monitored), NOBODY_WAITS, "FEN-80 (e)");
}

#[test]
fn fen_80_the_last_waiter_leaves() {
    explore(|| the_last_waiter_leaves(true));
}

/// FEN-86: without the update by who leaves.
#[test]
#[should_panic(expected = "FEN-80 (e)")]
fn mutant_fen_86_a_waiter_that_leaves_changes_nothing() {
    explore(|| the_last_waiter_leaves(false));
}

/// Both fences of a wait for any go at once: the wait ends exactly once.
#[test]
fn fen_28_both_fences_orphaned_at_once() {
    explore(|| {
        let (a, b) = (Fence::new(0), Fence::new(0));
        let wait = Wait::start(Any, &[(&a, 1), (&b, 1)]);
        let destroyer = {
            let a = a.clone();

            spawn(move || a.orphan())
        };

        b.orphan();
        destroyer.join().unwrap();
        assert_eq!((wait.outcome(), wait.deliveries()), (Some(Orphaned), 1));
    });
}

/// FEN-10 through the mapped value: who reads the value sees what was written before the signal.
fn publish_by_value() {
    let fence = Fence::new(0);
    let message = Arc::new(Handed::new());
    let signaller = {
        let (fence, message) = (fence.clone(), message.clone());

        spawn(move || {
            message.put(42);
            fence.signal(1, false).unwrap();
        })
    };

    while fence.current() < 1 {
        yield_now();
    }
    assert_eq!(message.take(), 42);
    signaller.join().unwrap();
}

#[test]
fn fen_10_publish_by_value() {
    explore(publish_by_value);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_relaxed_store_of_the_value() {
    without(Part::Release64, || explore(publish_by_value));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_relaxed_load_of_the_value() {
    without(Part::Acquire64, || explore(publish_by_value));
}

/// FEN-10 through a wait: who sees the outcome sees what was written before the signal.
fn publish_by_wait() {
    let fence = Fence::new(0);
    let message = Arc::new(Handed::new());
    let wait = Wait::start(Any, &[(&fence, 1)]);
    let signaller = {
        let (fence, message) = (fence.clone(), message.clone());

        spawn(move || {
            message.put(42);
            fence.signal(1, false).unwrap();
        })
    };

    while wait.outcome().is_none() {
        yield_now();
    }
    assert_eq!(message.take(), 42);
    signaller.join().unwrap();
}

#[test]
fn fen_10_publish_by_wait() {
    explore(publish_by_wait);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_relaxed_ending() {
    without(Part::FullCmpxchg, || explore(publish_by_wait));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_relaxed_look_at_the_outcome() {
    without(Part::Acquire32, || explore(publish_by_wait));
}

/// FEN-10 through a wait for all: the last element publishes what the first signaller wrote.
fn publish_by_wait_for_all() {
    let (a, b) = (Fence::new(0), Fence::new(0));
    let message = Arc::new(Handed::new());
    let wait = Wait::start(All, &[(&a, 1), (&b, 1)]);
    let first = {
        let message = message.clone();

        spawn(move || {
            message.put(42);
            a.signal(1, false).unwrap();
        })
    };
    let second = signaller(&b, 1);

    while wait.outcome().is_none() {
        yield_now();
    }
    assert_eq!(message.take(), 42);
    first.join().unwrap();
    second.join().unwrap();
}

#[test]
fn fen_10_publish_by_wait_for_all() {
    explore_within(Some(3), publish_by_wait_for_all);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_relaxed_count_of_missing_elements() {
    without(Part::FullAdd, || {
        explore_within(Some(3), publish_by_wait_for_all)
    });
}

/// A thread that leaves its wait for a signal handler and comes back, while somebody ends the
/// wait.
fn away_and_back() {
    use crate::logic::wait_set::WaitSet;

    let set = Arc::new(WaitSet::new(All, 1));
    let waker = {
        let set = set.clone();

        spawn(move || set.satisfy() && set.is_there())
    };
    let stays = !set.leave();

    if !stays {
        set.come_back();
    }

    // Awake: it looks at the state once more before it sleeps.
    let has_seen = set.outcome().is_some();
    let was_woken = waker.join().unwrap();

    assert!(!stays || has_seen);
    assert!(has_seen || was_woken, "it sleeps for ever");
}

#[test]
fn a_thread_that_was_away_is_woken_or_sees_the_end() {
    explore(away_and_back);
}

#[test]
#[should_panic = "it sleeps for ever"]
fn mutant_leaving_and_coming_back_without_ordering() {
    without(Part::FullCmpxchg, || explore(away_and_back));
}

#[test]
#[should_panic = "it sleeps for ever"]
fn mutant_a_look_at_who_is_away_without_ordering() {
    without(Part::FullAdd, || explore(away_and_back));
}
