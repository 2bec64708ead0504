// SPDX-License-Identifier: MIT OR Apache-2.0

//! Waits and signals, one after the other: tables for the rules, and sequences of operations
//! against a model that is a list and a counter.

use std::sync::Arc;

use proptest::prelude::*;

use super::harness::{Fence, Wait};
use crate::logic::{
    fence_value::NOBODY_WAITS,
    wait_set::{
        Mode::{self, All, Any},
        Outcome::{self, Cancelled, Orphaned, Satisfied},
    },
    waiters::{WouldRewind, BATCH},
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
        assert_eq!(fence.touched(), before + 1, "one look");
    }
    assert!(waits.iter().all(|wait| wait.outcome().is_none()));

    // Each of 200 is looked at and taken, and looks for itself as it ends; one look at the next.
    let before = fence.touched();

    fence.signal(1199, false).unwrap();
    assert_eq!(fence.touched(), before + 3 * 200 + 1);

    let released = waits.iter().filter(|wait| wait.outcome().is_some());
    assert_eq!(released.count(), 200);
    fence.orphan();
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
        assert_eq!(holds, count / BATCH + 1);
        assert!(waits.iter().all(|wait| wait.outcome() == Some(Satisfied)));
    }
}

/// FEN-34, FEN-80 (c): between two holds the fence is rewound and new waits arrive. The signal goes
/// on to release everybody who was there, and nobody who came after it.
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
    assert_eq!(fence.touched(), before + 1, "equal: waiters re-evaluated");
    assert_eq!((fence.current(), wait.outcome()), (7, None));
    assert!(wait.cancel());
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

// ---- sequences against the model ----

const FENCES: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Wait(Mode, Vec<(usize, u64)>),
    Signal {
        fence: usize,
        value: u64,
        rewind: bool,
    },
    Cancel(prop::sample::Index),
    /// The last handle of a fence goes; a new fence takes its place.
    Destroy(usize),
}

/// Small values, so that they meet, and the edges.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..6, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)]
}

fn op() -> impl Strategy<Value = Op> {
    let element = (0..FENCES, value());
    let mode = prop_oneof![Just(Any), Just(All)];

    prop_oneof![
        4 => (mode, prop::collection::vec(element, 1..5))
            .prop_map(|(mode, elements)| Op::Wait(mode, elements)),
        6 => (0..FENCES, value(), any::<bool>())
            .prop_map(|(fence, value, rewind)| Op::Signal { fence, value, rewind }),
        1 => any::<prop::sample::Index>().prop_map(Op::Cancel),
        1 => (0..FENCES).prop_map(Op::Destroy),
    ]
}

/// What the model knows of an element.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    Waiting,
    Reached,
    Hopeless,
}

struct ModelWait {
    mode: Mode,
    elements: Vec<(usize, u64, Element)>,
    outcome: Option<Outcome>,
}

impl ModelWait {
    /// Applies `change` to every element that still waits, then decides.
    fn update(&mut self, change: impl Fn(usize, u64) -> Element) {
        if self.outcome.is_some() {
            return;
        }
        for (fence, value, element) in &mut self.elements {
            if *element == Element::Waiting {
                *element = change(*fence, *value);
            }
        }

        let all = |wanted| {
            self.elements
                .iter()
                .all(|(_, _, element)| *element == wanted)
        };
        let one = |wanted| {
            self.elements
                .iter()
                .any(|(_, _, element)| *element == wanted)
        };
        let (met, hopeless) = match self.mode {
            Any => (one(Element::Reached), all(Element::Hopeless)),
            All => (all(Element::Reached), one(Element::Hopeless)),
        };

        if met {
            self.outcome = Some(Satisfied);
        } else if hopeless {
            self.outcome = Some(Orphaned);
        }
    }
}

/// The specification without any data structure: fences are counters, waits are a list.
#[derive(Default)]
struct Model {
    /// Value of a fence, and whether somebody can still signal it.
    fences: Vec<u64>,
    waits: Vec<ModelWait>,
}

impl Model {
    /// The values that pending waits still need of `fence`.
    fn wanted(&self, fence: usize) -> Vec<u64> {
        self.waits
            .iter()
            .filter(|wait| wait.outcome.is_none())
            .flat_map(|wait| &wait.elements)
            .filter(|(on, _, element)| *on == fence && *element == Element::Waiting)
            .map(|(_, value, _)| *value)
            .collect()
    }
}

/// The real thing and the model, side by side. Fences are numbered as they are created; `slots`
/// says which of them the operations mean at present.
struct Pair {
    fences: Vec<Arc<Fence>>,
    waits: Vec<Arc<Wait>>,
    slots: [usize; FENCES],
    model: Model,
}

impl Pair {
    fn new() -> Self {
        let mut pair = Self {
            fences: Vec::new(),
            waits: Vec::new(),
            slots: [0; FENCES],
            model: Model::default(),
        };

        for slot in 0..FENCES {
            pair.create(slot);
        }
        pair
    }

    fn create(&mut self, slot: usize) {
        self.slots[slot] = self.fences.len();
        self.fences.push(Fence::new(0));
        self.model.fences.push(0);
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Wait(mode, elements) => self.wait(*mode, elements),
            Op::Signal {
                fence,
                value,
                rewind,
            } => self.signal(self.slots[*fence], *value, *rewind),
            Op::Cancel(which) => {
                if !self.waits.is_empty() {
                    self.cancel(which.index(self.waits.len()));
                }
            }
            Op::Destroy(slot) => self.destroy(*slot),
        }
    }

    fn wait(&mut self, mode: Mode, elements: &[(usize, u64)]) {
        let elements: Vec<_> = elements
            .iter()
            .map(|(slot, value)| (self.slots[*slot], *value))
            .collect();
        let arguments: Vec<_> = elements
            .iter()
            .map(|(fence, value)| (&self.fences[*fence], *value))
            .collect();

        self.waits.push(Wait::start(mode, &arguments));

        let values = &self.model.fences;
        let mut wait = ModelWait {
            mode,
            elements: elements
                .into_iter()
                .map(|(fence, value)| (fence, value, Element::Waiting))
                .collect(),
            outcome: None,
        };

        wait.update(|fence, value| match values[fence] >= value {
            true => Element::Reached,
            false => Element::Waiting,
        });
        self.model.waits.push(wait);
    }

    fn signal(&mut self, fence: usize, value: u64, rewind: bool) {
        let result = self.fences[fence].signal(value, rewind);
        let allowed = value >= self.model.fences[fence] || rewind;

        assert_eq!(result.is_ok(), allowed, "FEN-32");
        if allowed {
            self.model.fences[fence] = value;
            for wait in &mut self.model.waits {
                wait.update(|on, wanted| match on == fence && value >= wanted {
                    true => Element::Reached,
                    false => Element::Waiting,
                });
            }
        }
    }

    fn cancel(&mut self, index: usize) {
        let wait = &mut self.model.waits[index];

        assert_eq!(self.waits[index].cancel(), wait.outcome.is_none(), "FEN-85");
        wait.outcome.get_or_insert(Cancelled);
    }

    fn destroy(&mut self, slot: usize) {
        let fence = self.slots[slot];

        self.fences[fence].orphan();
        for wait in &mut self.model.waits {
            wait.update(|on, _| match on == fence {
                true => Element::Hopeless,
                false => Element::Waiting,
            });
        }
        self.create(slot);
    }

    fn check(&self) {
        for (wait, expected) in self.waits.iter().zip(&self.model.waits) {
            let told = matches!(expected.outcome, Some(Satisfied | Orphaned));

            assert_eq!(wait.outcome(), expected.outcome);
            assert_eq!(wait.deliveries(), u32::from(told), "told exactly once");
        }
        for (index, fence) in self.fences.iter().enumerate() {
            let wanted = self.model.wanted(index);
            let lowest = wanted.iter().min();

            assert_eq!(fence.current(), self.model.fences[index]);
            assert_eq!(fence.queued() as usize, wanted.len(), "FEN-86");
            assert_eq!(
                fence.monitored(),
                lowest.map_or(NOBODY_WAITS, |value| value - 1),
                "FEN-55"
            );
        }
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 2000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    /// FEN-14 to 18, 22 to 24, 28, 30 to 34, 85, 86: after every operation each wait has the
    /// outcome of the model, was told at most once, and each fence has exactly the waiters that
    /// still need it.
    #[test]
    fn any_sequence_matches_the_model(ops in prop::collection::vec(op(), 0..60)) {
        let mut pair = Pair::new();

        for op in &ops {
            pair.apply(op);
            pair.check();
        }
    }
}
