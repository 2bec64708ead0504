// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins of traces that are made up.

mod common;

use common::{at, entry, signal, wait};
use opendxg_timeline::builder::{Flow, Gap, Spot, Timeline};
use opendxg_timeline::event::{Event, Key, Record, HW_QUEUE};
use proptest::prelude::*;

const MINUTE: u64 = 60_000_000_000;

/// When each piece of work of a queue was queued and done.
fn work(timeline: &Timeline, queue: u64) -> Vec<(Key, Option<u64>, Option<u64>)> {
    let work = timeline.queues[&queue].work.iter();
    work.map(|work| (work.key, work.queued, work.done))
        .collect()
}

#[test]
fn gpu_90_a_box_is_from_queued_to_done() {
    let (key, other) = (wait(1, 9, 5), signal(2, 9, 5));
    let timeline = Timeline::of(&[
        at(10, Event::Queued(key)),
        at(20, Event::Queued(other)),
        entry(90, other, 60),
        entry(91, key, 70),
    ]);
    assert_eq!(work(&timeline, 1), [(key, Some(10), Some(70))]);
    assert_eq!(work(&timeline, 2), [(other, Some(20), Some(60))]);
    // GPU-91: from the signal to the wait that it released.
    let spot = |queue| Spot::Work { queue, index: 0 };
    let flow = Flow {
        from: spot(2),
        to: spot(1),
    };
    assert_eq!(timeline.flows, [flow]);
    assert_eq!((timeline.begin, timeline.end), (10, 91));
}

#[test]
fn gpu_90_a_list_recorded_minutes_before_and_out_of_order() {
    let (early, late) = (signal(1, 9, 2), signal(1, 9, 1));
    let timeline = Timeline::of(&[
        // The list with the higher value was recorded first, and submitted last.
        at(100, Event::Queued(early)),
        at(5 * MINUTE, Event::Queued(late)),
        // The log is read late, and not in the order of what happened.
        entry(5 * MINUTE + 900, early, 5 * MINUTE + 300),
        entry(5 * MINUTE + 901, late, 5 * MINUTE + 200),
    ]);
    assert_eq!(
        work(&timeline, 1),
        [
            (early, Some(100), Some(5 * MINUTE + 300)),
            (late, Some(5 * MINUTE), Some(5 * MINUTE + 200)),
        ]
    );
}

#[test]
fn gpu_90_equal_keys_are_first_in_first_out() {
    let key = wait(1, 9, 5);
    let timeline = Timeline::of(&[
        at(10, Event::Queued(key)),
        at(20, Event::Queued(key)),
        entry(100, key, 50),
        entry(101, key, 60),
    ]);
    let expected = [(key, Some(10), Some(50)), (key, Some(20), Some(60))];
    assert_eq!(work(&timeline, 1), expected);
}

#[test]
fn gpu_90_submitted_twice_is_a_box_and_a_point() {
    let key = signal(1, 9, 5);
    let twice = [
        at(10, Event::Queued(key)),
        entry(100, key, 50),
        entry(101, key, 60),
    ];
    let expected = [(key, Some(10), Some(50)), (key, None, Some(60))];
    assert_eq!(work(&Timeline::of(&twice), 1), expected);
}

#[test]
fn gpu_90_unmatched_starts_stay_open() {
    let key = wait(1, 9, 5);
    // The same fence and value, but another queue, operation or value.
    let others = [wait(2, 9, 5), signal(1, 9, 5), wait(1, 9, 6), wait(1, 8, 5)];
    let mut records = vec![at(10, Event::Queued(key))];
    records.extend(others.map(|other| entry(100, other, 50)));
    let timeline = Timeline::of(&records);
    assert_eq!(work(&timeline, 1)[0], (key, Some(10), None));
    let points = work(&timeline, 1).split_off(1);
    assert!(points
        .iter()
        .all(|(_, queued, done)| (*queued, *done) == (None, Some(50))));
    assert_eq!(
        (points.len(), work(&timeline, 2)),
        (3, vec![(others[0], None, Some(50))])
    );
}

#[test]
fn gpu_90_an_end_from_before_its_start_is_a_point() {
    let key = wait(1, 9, 5);
    let timeline = Timeline::of(&[
        // Its own start was before the trace.
        entry(100, key, 40),
        at(110, Event::Queued(key)),
        entry(200, key, 150),
    ]);
    let expected = [(key, None, Some(40)), (key, Some(110), Some(150))];
    assert_eq!(work(&timeline, 1), expected);
}

#[test]
fn gpu_90_lost_entries_are_a_gap_over_their_queue() {
    let key = signal(1, 9, 5);
    let timeline = Timeline::of(&[
        at(10, Event::Queued(key)),
        at(11, Event::Queued(signal(2, 9, 6))),
        entry(100, key, 50),
        at(200, Event::EntriesLost { queue: 1, count: 7 }),
    ]);
    let gap = Gap {
        begin: 50,
        end: 200,
        count: 7,
    };
    assert_eq!(timeline.queues[&1].gaps, [gap]);
    assert_eq!(timeline.queues[&2].gaps, []);
}

#[test]
fn gpu_90_what_the_tracer_lost_may_be_of_any_queue() {
    let lost = Event::Lost {
        since: 20,
        count: 3,
    };
    let timeline = Timeline::of(&[
        at(10, Event::Queued(signal(1, 9, 5))),
        at(20, Event::Queued(signal(2, 9, 6))),
        at(30, lost),
    ]);
    let gap = Gap {
        begin: 20,
        end: 30,
        count: 3,
    };
    assert_eq!(timeline.queues[&1].gaps, [gap]);
    assert_eq!(timeline.queues[&2].gaps, [gap]);
    assert_eq!(timeline.lost, 3);
}

#[test]
fn gpu_91_who_wakes_the_cpu() {
    let key = signal(1, 9, 5);
    let begins = |value, waiter| Event::WaitBegins {
        fence: 9,
        value,
        waiter,
    };
    let wake = |waiter, outcome| Event::Wake { waiter, outcome };
    let timeline = Timeline::of(&[
        at(1000, begins(5, 70)),
        at(1000, begins(9, 71)),
        at(2000, Event::Stored { fence: 9, value: 4 }),
        // The OS part learns later what the GPU has done; that is no signal of its own.
        entry(4000, key, 3100),
        at(4000, Event::Stored { fence: 9, value: 5 }),
        at(4000, wake(70, 1)),
        at(5000, wake(71, 3)),
    ]);
    let flow = Flow {
        from: Spot::Work { queue: 1, index: 0 },
        to: Spot::Wake(0),
    };
    assert_eq!(timeline.flows, [flow]);
    assert_eq!(timeline.wakes[0].fences, [(9, 5)]);
    assert_eq!(
        (timeline.wakes[0].begin, timeline.time_of(flow.from)),
        (Some(1000), 3100)
    );
}

#[test]
fn commands_and_blocks_of_kernel_mode_queues() {
    let queue = 1;
    let timeline = Timeline::of(&[
        at(
            1,
            Event::Create {
                object: queue,
                kind: HW_QUEUE,
            },
        ),
        at(
            2,
            Event::Create {
                object: 2,
                kind: HW_QUEUE,
            },
        ),
        at(10, Event::Run { queue, number: 1 }),
        at(11, Event::Run { queue, number: 2 }),
        at(20, Event::Complete { queue, number: 1 }),
        at(
            21,
            Event::Block {
                queue,
                object: 9,
                value: 5,
            },
        ),
        at(30, Event::Unblock { queue }),
        at(31, Event::Run { queue, number: 3 }),
        at(40, Event::Complete { queue, number: 3 }),
    ]);
    // The other queue did nothing.
    assert_eq!(timeline.queues.len(), 1);
    let it = &timeline.queues[&queue];
    let spans = |spans: &[opendxg_timeline::builder::Span]| -> Vec<_> {
        spans.iter().map(|span| (span.begin, span.end)).collect()
    };
    let commands = [(10, Some(20)), (11, Some(40)), (31, Some(40))];
    assert_eq!(spans(&it.commands), commands);
    assert_eq!(spans(&it.blocked), [(21, Some(30))]);
    assert_eq!(it.thread, Some(41));
}

#[test]
fn gpu_88_a_wait_of_a_kernel_mode_queue_is_blocked_from_then_on() {
    let (first, second) = (wait(1, 9, 5), wait(1, 9, 6));
    let done = |key| Event::Done {
        key,
        observed: None,
        end: None,
    };
    let block = Event::Block {
        queue: 1,
        object: 9,
        value: 5,
    };
    let timeline = Timeline::of(&[
        at(10, Event::Queued(first)),
        at(20, Event::Queued(second)),
        at(30, block),
        at(40, done(first)),
        at(40, Event::Unblock { queue: 1 }),
        at(41, done(second)),
    ]);
    let observed = timeline.queues[&1].work.iter().map(|work| work.observed);
    assert_eq!(observed.collect::<Vec<_>>(), [Some(30), None]);
}

/// Starts of few keys, and the ends of some of them, in any order.
fn traces() -> impl Strategy<Value = Vec<Record>> {
    let record = (0..3u64, 0..2u64, 0..2u64, 0..60u64, 0..60u64, any::<bool>());
    let record = record.prop_map(|(queue, fence, value, time, end, is_start)| {
        let key = wait(queue, fence, value);
        match is_start {
            true => at(time, Event::Queued(key)),
            false => entry(time, key, end),
        }
    });
    prop::collection::vec(record, 0..60)
}

proptest! {
    /// Every start and every end is drawn once, no box is turned round, boxes with one key do not
    /// overtake each other, and no point could have been the end of a start that stays open.
    #[test]
    fn gpu_90_any_trace(records in traces()) {
        let timeline = Timeline::of(&records);
        let mut drawn: Vec<(Key, Option<u64>, Option<u64>)> = Vec::new();
        for queue in timeline.queues.keys() {
            drawn.extend(work(&timeline, *queue));
        }
        let mut starts: Vec<_> = drawn.iter().filter_map(|(key, start, _)| Some((*key, (*start)?))).collect();
        let mut ends: Vec<_> = drawn.iter().filter_map(|(key, _, end)| Some((*key, (*end)?))).collect();
        let (mut queued, mut done) = (Vec::new(), Vec::new());
        for record in &records {
            match record.event {
                Event::Queued(key) => queued.push((key, record.time)),
                Event::Done { key, end, .. } => done.push((key, end.unwrap())),
                _ => unreachable!(),
            }
        }
        for list in [&mut starts, &mut ends, &mut queued, &mut done] {
            list.sort();
        }
        prop_assert_eq!(starts, queued);
        prop_assert_eq!(ends, done);
        for (key, start, end) in &drawn {
            if let (Some(start), Some(end)) = (start, end) {
                prop_assert!(start <= end);
            }
            for (other, other_start, other_end) in drawn.iter().filter(|(other, ..)| other == key) {
                prop_assert_eq!(other, key);
                match (start, end, other_start, other_end) {
                    (Some(start), Some(end), Some(other_start), Some(other_end)) => {
                        prop_assert!(start >= other_start || end <= other_end);
                    }
                    // Open, and a point that is not before it.
                    (Some(start), None, None, Some(other_end)) => prop_assert!(other_end < start),
                    _ => (),
                }
            }
        }
    }
}
