// SPDX-License-Identifier: MIT OR Apache-2.0

//! Waits until a value is another one (FEN-176), among waits for values.

use std::{cell::Cell, collections::BTreeMap, rc::Rc};

use proptest::prelude::*;

use crate::{
    logic::{
        sleepers::Woken,
        waiters::{ChangeResult, EnqueueResult, Sweep, WaitKey, WaitMap, Waiters},
    },
    platform::{word64, Word64},
};

/// A waiter: what it knows, and how often it was told.
#[derive(Clone, Default)]
struct Waiter(Rc<(Cell<u64>, Cell<u32>)>);

impl Waiter {
    fn told(&self) -> u32 {
        self.0 .1.get()
    }
}

/// Waiters in order.
#[derive(Default)]
struct Line(BTreeMap<WaitKey, Waiter>);

impl WaitMap for Line {
    type Node = (WaitKey, Waiter);
    type NewNode = Waiter;

    fn first(&self) -> Option<WaitKey> {
        self.0.keys().next().copied()
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        use std::ops::Bound::{Excluded, Unbounded};

        let mut above = self.0.range((Excluded(key), Unbounded));
        above.next().map(|(key, _)| *key)
    }

    fn known(&self) -> u64 {
        self.0.values().next().map_or(0, |waiter| waiter.0 .0.get())
    }

    fn take_first(&mut self) -> Option<Self::Node> {
        self.0.pop_first()
    }

    fn take(&mut self, key: &WaitKey) -> Option<Self::Node> {
        self.0.remove_entry(key)
    }

    fn put(&mut self, (key, waiter): Self::Node) {
        assert!(self.0.insert(key, waiter).is_none());
    }

    fn name(waiter: Waiter, key: WaitKey) -> Self::Node {
        (key, waiter)
    }
}

/// A fence, put together as in the module.
struct Fence {
    word: Word64,
    waiters: Waiters<Line>,
}

impl Fence {
    fn new(value: u64) -> Self {
        Self {
            word: word64(value),
            waiters: Waiters::new(Line::default()),
        }
    }

    fn value(&self) -> u64 {
        crate::platform::load_acquire(&self.word)
    }

    /// A wait for a change from the present value.
    fn change(&mut self) -> Waiter {
        let waiter = Waiter::default();
        self.queue(&waiter);
        waiter
    }

    fn queue(&mut self, waiter: &Waiter) -> WaitKey {
        loop {
            let value = self.value();
            waiter.0 .0.set(value);
            match self
                .waiters
                .enqueue_change(&self.word, value, waiter.clone())
            {
                ChangeResult::Queued(key) => return key,
                ChangeResult::Stale(_) => self.sample(),
                ChangeResult::Changed(_) | ChangeResult::Orphaned(_) => panic!("not queued"),
            }
        }
    }

    /// A wait for a value.
    fn wait(&mut self, value: u64) -> Waiter {
        let waiter = Waiter::default();
        match self.waiters.enqueue(&self.word, value, waiter.clone()) {
            EnqueueResult::Queued(_) => waiter,
            EnqueueResult::Satisfied(_) | EnqueueResult::Orphaned(_) => panic!("not queued"),
        }
    }

    fn release(&mut self, mut rest: Option<Sweep>) {
        while let Some(sweep) = rest {
            let mut due = Line::default();
            rest = self.waiters.sweep(sweep, &mut due, &mut Woken::new());
            for waiter in due.0.values() {
                waiter.0 .1.set(waiter.told() + 1);
            }
        }
    }

    fn signal(&mut self, value: u64) {
        if self.waiters.signal_alone(&self.word, value, true).unwrap() {
            return;
        }
        let sweep = self.waiters.signal(&self.word, value, true).unwrap();
        self.release(sweep);
    }

    fn sample(&mut self) {
        let sweep = self.waiters.sample(&self.word);
        self.release(sweep);
    }

    /// What an engine does.
    fn store(&self, value: u64) {
        crate::platform::store_release(&self.word, value);
    }
}

#[test]
fn fen_176_any_other_value_tells_and_the_same_one_does_not() {
    for (from, to) in [
        (5, 6),
        (5, u64::MAX),
        (5, 4),
        (5, 0),
        (0, 1),
        (u64::MAX, 0),
        (u64::MAX, u64::MAX - 1),
    ] {
        let mut fence = Fence::new(from);
        let change = fence.change();

        fence.signal(from);
        fence.sample();
        assert_eq!(change.told(), 0, "{from} again");
        fence.signal(to);
        assert_eq!(change.told(), 1, "{from} to {to}");
        fence.signal(from);
        fence.signal(to);
        assert_eq!(change.told(), 1, "once until it is queued again");
        assert_eq!(fence.waiters.queued(), 0);
    }
}

#[test]
fn fen_176_waits_for_values_are_not_disturbed() {
    let mut fence = Fence::new(5);
    let (far, change, near) = (fence.wait(9), fence.change(), fence.wait(6));

    // The same value: only a wait for it would be due, and there is none.
    assert_eq!(fence.waiters.signal_alone(&fence.word, 5, false), Ok(true));
    assert_eq!(fence.waiters.signal_alone(&fence.word, 6, false), Ok(false));
    fence.signal(6);
    assert_eq!((far.told(), change.told(), near.told()), (0, 1, 1));
    fence.queue(&change);
    fence.signal(5);
    assert_eq!((far.told(), change.told()), (0, 2), "a rewind");
    fence.queue(&change);
    fence.signal(9);
    assert_eq!((far.told(), change.told()), (1, 3));
}

#[test]
fn fen_176_stores_of_engines_are_told_when_somebody_looks() {
    let mut fence = Fence::new(5);
    let change = fence.change();

    fence.store(0);
    fence.sample();
    assert_eq!(change.told(), 1);

    // The signal takes back what nobody has seen: that is no change, unless somebody else waits
    // for the value.
    fence.queue(&change);
    fence.store(7);
    fence.signal(0);
    assert_eq!(change.told(), 1);
    let reached = fence.wait(7);
    fence.store(7);
    fence.signal(0);
    assert_eq!((change.told(), reached.told()), (2, 1));

    // One who comes later and knows another value makes the earlier ones be told.
    fence.queue(&change);
    fence.store(8);
    let late = fence.change();
    assert_eq!((change.told(), late.told()), (3, 0));
    fence.sample();
    assert_eq!(late.told(), 0);
    fence.signal(9);
    assert_eq!((change.told(), late.told()), (3, 1));
}

#[test]
fn fen_176_the_last_value_and_the_end() {
    let mut fence = Fence::new(5);
    let change = fence.change();

    fence.waiters.always_signal(&fence.word).unwrap().unwrap();
    assert_eq!(change.told(), 0, "the caller sweeps");
    fence.sample();
    assert_eq!(change.told(), 1, "AlwaysSignaled");

    let mut fence = Fence::new(5);
    let (change, wait) = (fence.change(), fence.wait(6));
    let key = fence.queue(&Waiter::default());

    assert!(fence.waiters.is_queued(&key));
    fence.store(6);
    let left = fence
        .waiters
        .orphan(&fence.word, Line::default(), &mut Woken::new());
    let satisfied: Vec<_> = left
        .map
        .0
        .keys()
        .map(|key| (key.value, left.is_satisfied(key)))
        .collect();
    assert_eq!(satisfied, [(0, false), (0, false), (6, true)]);
    assert!(!fence.waiters.is_queued(&key));
    assert!(matches!(
        fence.waiters.enqueue_change(&fence.word, 6, change),
        ChangeResult::Orphaned(_)
    ));
    assert_eq!(wait.told(), 0);
}

/// What is left to the worker includes those who wait for a change.
#[test]
fn fen_176_changes_that_are_left_to_the_worker() {
    let mut fence = Fence::new(5);
    let change = fence.change();
    let sweep = fence.waiters.signal(&fence.word, 6, false).unwrap();

    assert!(fence.waiters.defer(sweep.unwrap()).is_none());
    // Its place is kept, so one who knows the new value is queued beside it.
    let late = fence.change();
    let mut due = Line::default();
    assert!(fence
        .waiters
        .catch_up(None, &mut due, &mut Woken::new())
        .is_none());
    assert_eq!(due.0.len(), 1);
    fence.signal(7);
    assert_eq!((change.told(), late.told()), (0, 1));
}

proptest! {
    /// Against a list that is looked through after each step.
    #[test]
    fn fen_176_a_model(steps in prop::collection::vec((0..6, 0..4u64), 1..60)) {
        let mut fence = Fence::new(1);
        // A waiter, the value that it knows, and how often it should have been told.
        let mut model: Vec<(Waiter, Option<u64>, u32)> = Vec::new();

        for (step, value) in steps {
            match step {
                0 => {
                    let waiter = fence.change();
                    // Making it may have told others.
                    look(&mut model, fence.value());
                    model.push((waiter, Some(fence.value()), 0));
                }
                1 => {
                    if let Some((waiter, known @ None, _)) = model.first_mut() {
                        fence.queue(waiter);
                        *known = Some(fence.value());
                        look(&mut model, fence.value());
                    }
                }
                2 => fence.store(value),
                3 => {
                    fence.sample();
                    look(&mut model, fence.value());
                }
                _ => {
                    fence.signal(value);
                    look(&mut model, value);
                }
            }
            for (waiter, _, told) in &model {
                prop_assert_eq!(waiter.told(), *told);
            }
        }
    }
}

/// Somebody has looked at this value.
fn look(model: &mut [(Waiter, Option<u64>, u32)], value: u64) {
    for (_, known, told) in model {
        if known.is_some_and(|known| known != value) {
            *known = None;
            *told += 1;
        }
    }
}
