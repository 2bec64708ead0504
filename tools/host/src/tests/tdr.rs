// SPDX-License-Identifier: MIT OR Apache-2.0

//! When work has taken too long.

use proptest::prelude::*;

use crate::logic::tdr::{look_after_ms, Look, RecentResets, Verdict, Watch, MIN_DELAY_MS};

const LIMIT: u64 = 1000;

/// Work that has not gone on, which has spent all of the time.
fn look(now: u64) -> Look {
    Look {
        now_ns: now,
        limit_ns: LIMIT,
        reached: Some(7),
        spent_ns: now,
        obeyed: 0,
        is_idle: false,
        is_stopped: false,
    }
}

/// A watch that has asked the engine to yield, by number 1 at `LIMIT`.
fn asked(spent_ns: u64) -> Watch {
    let mut watch = Watch::new();

    assert_eq!(watch.look(&look(0)), Verdict::Wait);
    assert_eq!(
        watch.look(&Look {
            spent_ns,
            ..look(LIMIT)
        }),
        Verdict::Preempt
    );
    watch.asked(1, LIMIT);
    watch
}

#[test]
fn gpu_92_work_that_took_too_long_is_asked_to_yield_before_anything_else() {
    let mut watch = Watch::new();

    for now in [0, LIMIT / 2, LIMIT - 1] {
        assert_eq!(watch.look(&look(now)), Verdict::Wait);
    }
    assert_eq!(watch.look(&look(LIMIT)), Verdict::Preempt);
}

#[test]
fn gpu_92_an_engine_that_yields_does_not_hang_and_its_queue_does() {
    let mut watch = asked(LIMIT);
    let yields = Look {
        obeyed: 1,
        ..look(LIMIT + 1)
    };

    assert_eq!(watch.look(&yields), Verdict::QueueHangs);
}

#[test]
fn gpu_92_an_engine_that_does_not_yield_in_time_hangs() {
    let mut watch = asked(LIMIT);

    for _ in 0..10 {
        assert_eq!(watch.look(&look(2 * LIMIT - 1)), Verdict::Wait);
    }
    assert_eq!(watch.look(&look(2 * LIMIT)), Verdict::EngineHangs);
}

/// A machine that stood still for a while has given its engine no time to yield.
#[test]
fn gpu_92_one_late_look_is_no_hang() {
    let mut watch = asked(LIMIT);

    for _ in 0..4 {
        assert_eq!(watch.look(&look(100 * LIMIT)), Verdict::Wait);
    }
    assert_eq!(watch.look(&look(100 * LIMIT)), Verdict::EngineHangs);
}

#[test]
fn gpu_92_an_answer_to_an_earlier_request_is_none() {
    let mut watch = asked(LIMIT);

    watch.asked(2, LIMIT);

    let early = Look {
        obeyed: 1,
        ..look(2 * LIMIT)
    };

    for _ in 0..4 {
        assert_eq!(watch.look(&early), Verdict::Wait);
    }
    assert_eq!(watch.look(&early), Verdict::EngineHangs);
}

#[test]
fn gpu_93_waiting_for_a_turn_does_not_count() {
    let mut watch = Watch::new();
    let mut number = 0;

    // It gets a tenth of the engine: ten times as long is not too long.
    for now in (0..9 * LIMIT).step_by(100) {
        let verdict = watch.look(&Look {
            spent_ns: now / 10,
            obeyed: number,
            ..look(now)
        });

        match verdict {
            Verdict::Preempt => {
                number += 1;
                watch.asked(number, now);
            }
            verdict => assert_eq!(verdict, Verdict::Wait, "at {now}"),
        }
    }
    assert!(number >= 8, "the engine was asked {number} times");
}

#[test]
fn gpu_93_what_was_spent_counts_although_others_had_their_turns() {
    let mut watch = asked(LIMIT / 2);
    let yields = Look {
        obeyed: 1,
        spent_ns: LIMIT / 2,
        ..look(LIMIT + 1)
    };

    assert_eq!(watch.look(&yields), Verdict::Wait);
    // The other half of the time.
    let over = Look {
        obeyed: 1,
        spent_ns: LIMIT,
        ..look(LIMIT + 600)
    };

    assert_eq!(watch.look(&over), Verdict::Preempt);
}

#[test]
fn gpu_93_an_engine_that_somebody_has_stopped_does_not_hang() {
    let mut watch = asked(LIMIT);
    let stopped = Look {
        is_stopped: true,
        ..look(5 * LIMIT)
    };

    assert_eq!(watch.look(&stopped), Verdict::Wait);
    // The time begins anew.
    assert_eq!(watch.look(&look(6 * LIMIT - 1)), Verdict::Wait);
}

#[test]
fn gpu_98_work_of_which_the_end_was_not_told_is_lost() {
    let mut watch = asked(0);
    let idle = Look {
        obeyed: 1,
        spent_ns: 0,
        is_idle: true,
        ..look(LIMIT + 1)
    };

    assert_eq!(watch.look(&idle), Verdict::QueueHangs);
}

#[test]
fn gpu_94_progress_begins_the_time_anew() {
    let mut watch = Watch::new();

    for now in (0..10 * LIMIT).step_by(500) {
        let verdict = watch.look(&Look {
            reached: Some(now),
            ..look(now)
        });

        assert_eq!(verdict, Verdict::Wait);
    }
    assert_eq!(
        watch.look(&Look {
            reached: None,
            ..look(11 * LIMIT)
        }),
        Verdict::Rest
    );
}

#[test]
fn gpu_96_a_sixth_reset_in_a_minute_is_one_too_many() {
    const SECOND: u64 = 1_000_000_000;
    let mut resets = RecentResets::new();

    for number in 0..5 {
        assert!(resets.add(number * SECOND));
    }
    assert!(!resets.add(59 * SECOND));
    // The first one does not count any more, and the refused one never did.
    assert!(resets.add(60 * SECOND));
    assert!(!resets.add(60 * SECOND));
}

#[test]
fn gpu_92_the_shortest_time_has_more_than_one_look() {
    assert!((1..MIN_DELAY_MS).contains(&look_after_ms(MIN_DELAY_MS)));
    assert_eq!(look_after_ms(2000), 500);
}

proptest! {
    /// Whatever the engine says, nothing hangs that goes on, and a hang comes after a request.
    #[test]
    fn gpu_92_no_verdict_without_a_request(
        steps in prop::collection::vec((1_u64..LIMIT, any::<bool>(), any::<bool>(), any::<bool>()), 1..100)
    ) {
        let mut watch = Watch::new();
        let (mut now, mut spent, mut reached, mut number, mut asked) = (0, 0, 0, 0, None);

        for (passes, runs, goes_on, obeys) in steps {
            now += passes;
            spent += if runs { passes } else { 0 };
            reached += u64::from(goes_on);
            if goes_on {
                asked = None;
            }

            let verdict = watch.look(&Look {
                now_ns: now,
                limit_ns: LIMIT,
                reached: Some(reached),
                spent_ns: spent,
                obeyed: if obeys { number } else { 0 },
                is_idle: false,
                is_stopped: false,
            });

            match verdict {
                Verdict::Preempt => {
                    number += 1;
                    watch.asked(number, now);
                    asked = Some(now);
                }
                Verdict::QueueHangs => {
                    prop_assert!(asked.is_some() && obeys);
                    asked = None;
                }
                Verdict::EngineHangs => {
                    prop_assert!(asked.is_some_and(|at| now - at >= LIMIT) && !obeys);
                    asked = None;
                }
                Verdict::Wait => {
                    if obeys {
                        asked = None;
                    }
                }
                Verdict::Rest => prop_assert!(false),
            }
        }
    }
}
