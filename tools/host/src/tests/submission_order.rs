// SPDX-License-Identifier: MIT OR Apache-2.0

//! The order of queued work, compared with a reference queue.

use proptest::prelude::*;

use crate::logic::submission_order::{
    ItemKind::{self, Signal, Submission, Wait},
    Moment::{Completed, Fetched, Submitted},
    SubmissionOrder,
};

#[test]
fn gpu_9_no_more_than_the_most_are_in_flight() {
    for most in [1, 2, 4] {
        let mut order = SubmissionOrder::new(most);

        for number in 1..=u64::from(most) {
            assert!(order.may_begin(Submission));
            assert_eq!(order.submit(), number);
        }
        assert!(!order.may_begin(Submission));
        order.complete(1);
        assert!(order.may_begin(Submission));
        assert_eq!(order.in_flight(), u64::from(most) - 1);
    }
}

#[test]
fn gpu_9_a_queue_that_may_have_none_in_flight_does_not_stand_still() {
    assert!(SubmissionOrder::new(0).may_begin(Submission));
}

#[test]
fn fen_41_a_signal_waits_until_the_commands_before_it_are_so_far() {
    let mut order = SubmissionOrder::new(4);

    for kind in [Signal(Completed), Signal(Fetched), Signal(Submitted), Wait] {
        assert!(order.may_begin(kind));
    }
    order.submit();
    order.submit();
    assert!(order.may_begin(Signal(Submitted)));
    for completed in [0, 1] {
        order.complete(completed);
        order.fetch(1);
        for kind in [Signal(Completed), Signal(Fetched), Wait] {
            assert!(!order.may_begin(kind), "{kind:?}");
        }
    }
    order.fetch(2);
    assert!(order.may_begin(Signal(Fetched)));
    assert!(!order.may_begin(Signal(Completed)));
    assert!(!order.may_begin(Wait));
    order.complete(2);
    assert!(order.may_begin(Signal(Completed)));
    assert!(order.may_begin(Wait));
}

/// What has completed has been fetched, whether the KMD has said so or not.
#[test]
fn fen_41_a_driver_need_not_tell_what_was_fetched() {
    let mut order = SubmissionOrder::new(4);

    order.submit();
    assert!(!order.may_begin(Signal(Fetched)));
    // It cannot be the next one already.
    order.fetch(2);
    order.submit();
    assert!(!order.may_begin(Signal(Fetched)));
    order.complete(2);
    assert!(order.may_begin(Signal(Fetched)));
    order.submit();
    assert!(!order.may_begin(Signal(Fetched)));
}

/// A KMD that tells more than it got, or goes back, changes nothing for the worse.
#[test]
fn gpu_104_a_number_that_cannot_be_is_not_believed() {
    let mut order = SubmissionOrder::new(2);

    order.complete(7);
    assert_eq!((order.completed(), order.in_flight()), (0, 0));
    order.submit();
    order.submit();
    order.complete(u64::MAX);
    assert_eq!((order.completed(), order.in_flight()), (2, 0));
    order.submit();
    order.complete(1);
    assert_eq!((order.completed(), order.in_flight()), (2, 1));
}

/// What happens to a queue: the KMD completes its oldest submission, or has read all, or a wait at
/// the head is satisfied.
#[derive(Clone, Copy, Debug)]
enum Event {
    Complete,
    Fetch,
    Satisfy,
}

/// What a program does and what happens.
#[derive(Clone, Copy, Debug)]
enum Action {
    Queue(ItemKind),
    Happens(Event),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(
        prop_oneof![
            4 => Just(Action::Queue(Submission)),
            2 => Just(Action::Queue(Signal(Completed))),
            1 => Just(Action::Queue(Signal(Fetched))),
            1 => Just(Action::Queue(Signal(Submitted))),
            2 => Just(Action::Queue(Wait)),
            6 => Just(Action::Happens(Event::Complete)),
            2 => Just(Action::Happens(Event::Fetch)),
            4 => Just(Action::Happens(Event::Satisfy)),
        ],
        0..120,
    )
}

/// A queue as the module runs it: it begins items while it may.
struct Queue {
    order: SubmissionOrder,
    items: Vec<(usize, ItemKind)>,
    /// The wait at the head was looked at.
    satisfied: bool,
    in_flight: Vec<usize>,
    /// Items in the order in which they began, and in which they ended.
    began: Vec<usize>,
    ended: Vec<usize>,
}

impl Queue {
    fn advance(&mut self) {
        while let Some((name, kind)) = self.items.first().copied() {
            if !self.order.may_begin(kind) {
                return;
            }
            match kind {
                Submission => {
                    self.order.submit();
                    self.in_flight.push(name);
                }
                Signal(_) => self.ended.push(name),
                Wait if self.satisfied => {
                    self.satisfied = false;
                    self.ended.push(name);
                }
                Wait => return,
            }
            self.began.push(name);
            self.items.remove(0);
        }
    }

    fn complete(&mut self) {
        if !self.in_flight.is_empty() {
            self.ended.push(self.in_flight.remove(0));
            self.order.complete(self.order.completed() + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// FEN-39: items begin in the order in which they were queued, and end in it too, except those
    /// signals that do not wait for completion. Nothing is lost.
    #[test]
    fn fen_39_items_are_done_in_order(actions in actions(), most in 1u32..5) {
        let mut queue = Queue {
            order: SubmissionOrder::new(most),
            items: Vec::new(),
            satisfied: false,
            in_flight: Vec::new(),
            began: Vec::new(),
            ended: Vec::new(),
        };
        let mut queued = Vec::new();

        for action in actions {
            match action {
                Action::Queue(kind) => {
                    queue.items.push((queued.len(), kind));
                    queued.push(kind);
                }
                Action::Happens(Event::Complete) => queue.complete(),
                Action::Happens(Event::Fetch) => queue.order.fetch(u64::MAX),
                Action::Happens(Event::Satisfy) => {
                    let is_waiting = queue.items.first().is_some_and(|(_, kind)| *kind == Wait);

                    queue.satisfied = is_waiting && queue.order.may_begin(Wait);
                }
            }
            queue.advance();
            prop_assert!(queue.in_flight.len() <= most as usize);
            prop_assert_eq!(queue.order.in_flight(), queue.in_flight.len() as u64);
        }

        // What the reference queue says: the order of the program.
        prop_assert!(queue.began.iter().copied().eq(0..queue.began.len()));

        let in_order: Vec<_> = queue
            .ended
            .iter()
            .copied()
            .filter(|name| ![Signal(Submitted), Signal(Fetched)].contains(&queued[*name]))
            .collect();

        prop_assert!(in_order.windows(2).all(|pair| pair[0] < pair[1]));
        // An unsatisfied wait, and what is in flight, hold everything else back and lose nothing.
        prop_assert_eq!(
            queue.ended.len() + queue.in_flight.len() + queue.items.len(),
            queued.len()
        );
    }
}
