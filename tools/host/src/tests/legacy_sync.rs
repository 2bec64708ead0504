// SPDX-License-Identifier: MIT OR Apache-2.0

//! Mutexes and semaphores, one call after the other, and compared with a model.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use crate::logic::{
    legacy_sync::{
        Supply::{self, Mutex, Semaphore},
        SupplyWaiters,
    },
    waiters::{EnqueueResult, WaitKey, WaitMap, BATCH},
};

/// Waits by key, each with its name.
#[derive(Default)]
struct Waits(BTreeMap<WaitKey, u32>);

impl WaitMap for Waits {
    type Node = (WaitKey, u32);
    type NewNode = u32;

    fn first(&self) -> Option<WaitKey> {
        self.0.keys().next().copied()
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        self.0.keys().find(|own| *own > key).copied()
    }

    fn take_first(&mut self) -> Option<Self::Node> {
        self.0.pop_first()
    }

    fn take(&mut self, key: &WaitKey) -> Option<Self::Node> {
        self.0.remove_entry(key)
    }

    fn put(&mut self, (key, name): Self::Node) {
        assert!(self.0.insert(key, name).is_none(), "key is new");
    }

    fn name(name: u32, key: WaitKey) -> Self::Node {
        (key, name)
    }
}

/// An object whose signals release all that they can.
struct Object(SupplyWaiters<Waits>);

impl Object {
    fn new(supply: Supply) -> Self {
        Self(SupplyWaiters::new(supply, Waits::default()))
    }

    fn wait(&mut self, name: u32) -> Option<WaitKey> {
        match self.0.enqueue(name) {
            EnqueueResult::Queued(key) => Some(key),
            EnqueueResult::Satisfied(own) => {
                assert_eq!(own, name);
                None
            }
            EnqueueResult::Orphaned(_) => panic!("it has not retired"),
        }
    }

    fn signal(&mut self) -> Vec<u32> {
        let mut due = Waits::default();

        self.0.signal();
        while self.0.release(&mut due) {}
        due.0.into_values().collect()
    }
}

#[test]
fn fen_50_a_mutex_has_one_owner_and_is_handed_on_in_order() {
    let mut mutex = Object::new(Mutex { owned: false });

    assert!(mutex.wait(1).is_none());
    assert!(mutex.wait(2).is_some());
    assert!(mutex.wait(3).is_some());
    assert_eq!(mutex.signal(), [2]);
    assert_eq!(mutex.signal(), [3]);
    assert!(mutex.signal().is_empty());
    assert_eq!(mutex.0.supply(), Mutex { owned: false });
}

/// A signal of what nobody owns is kept once.
#[test]
fn fen_50_a_mutex_that_starts_owned_is_released_by_a_signal() {
    let mut mutex = Object::new(Mutex { owned: true });

    assert!(mutex.wait(1).is_some());
    assert_eq!(mutex.signal(), [1]);
    assert!(mutex.signal().is_empty());
    assert!(mutex.signal().is_empty());
    assert!(mutex.wait(2).is_none());
    assert!(mutex.wait(3).is_some());
}

#[test]
fn fen_50_a_semaphore_counts_up_to_its_maximum() {
    let mut semaphore = Object::new(Semaphore { count: 1, max: 2 });

    assert!(semaphore.wait(1).is_none());
    for _ in 0..5 {
        assert!(semaphore.signal().is_empty());
    }
    assert_eq!(semaphore.0.supply(), Semaphore { count: 2, max: 2 });
    assert!(semaphore.wait(2).is_none());
    assert!(semaphore.wait(3).is_none());
    assert!(semaphore.wait(4).is_some());
    assert_eq!(semaphore.signal(), [4]);
}

/// 0/0 is legal (fences.md section 2.6): nothing ever gets it.
#[test]
fn fen_50_a_semaphore_of_nothing() {
    let mut semaphore = Object::new(Semaphore { count: 0, max: 0 });

    assert!(semaphore.wait(1).is_some());
    assert!(semaphore.signal().is_empty());
    assert_eq!(semaphore.0.queued(), 1);
}

#[test]
fn fen_28_nobody_waits_for_an_object_that_retires() {
    let mut mutex = Object::new(Mutex { owned: true });
    let key = mutex.wait(1).unwrap();
    let orphans = mutex.0.orphan(Waits::default());

    assert_eq!(orphans.0.into_values().collect::<Vec<_>>(), [1]);
    assert!(mutex.0.cancel(&key).is_none());
    assert!(matches!(mutex.0.enqueue(2), EnqueueResult::Orphaned(2)));
    assert_eq!(mutex.0.queued(), 0);
}

/// The lock is dropped after so many, and who comes meanwhile does not overtake.
#[test]
fn fen_39_nobody_overtakes_while_a_signal_is_at_work() {
    let count = BATCH + 1;
    let mut semaphore = Object::new(Semaphore {
        count: 0,
        max: 1000,
    });
    let keys: Vec<_> = (0..count)
        .map(|name| semaphore.wait(name).unwrap())
        .collect();

    // Enough for all who wait, but nobody is given anything yet.
    for _ in 0..count + 1 {
        semaphore.0.signal();
    }

    let mut due = Waits::default();

    assert!(semaphore.0.release(&mut due));
    assert_eq!(due.0.len(), BATCH as usize);
    assert!(semaphore.wait(count).is_some(), "one waits before it");
    while semaphore.0.release(&mut due) {}
    assert!(due.0.into_values().eq(0..=count));
    assert!(keys.iter().all(|key| semaphore.0.cancel(key).is_none()));
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Wait,
    Signal,
    /// Gives the n-th wait up.
    Cancel(usize),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(
        prop_oneof![
            3 => Just(Action::Wait),
            3 => Just(Action::Signal),
            1 => (0usize..40).prop_map(Action::Cancel),
        ],
        0..100,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// FEN-50: who gets it is what a list and a number say.
    #[test]
    fn fen_50_as_a_list_and_a_number(
        actions in actions(),
        is_mutex in any::<bool>(),
        count in 0u32..3,
        room in 0u32..3,
    ) {
        let max = if is_mutex { 1 } else { count + room };
        let mut free = if is_mutex { count.min(1) } else { count };
        let mut object = Object::new(if is_mutex {
            Mutex { owned: free == 0 }
        } else {
            Semaphore { count: free, max }
        });
        let mut queue = VecDeque::new();
        let mut keys = Vec::new();

        for (name, action) in (0u32..).zip(actions) {
            match action {
                Action::Wait => {
                    let key = object.wait(name);

                    if free > 0 {
                        prop_assert!(key.is_none());
                        free -= 1;
                    } else {
                        prop_assert!(key.is_some());
                        queue.push_back(name);
                    }
                    keys.extend(key.map(|key| (name, key)));
                }
                Action::Signal => {
                    let expected: Vec<_> = if max == 0 {
                        Vec::new()
                    } else {
                        queue.pop_front().into_iter().collect()
                    };

                    if expected.is_empty() {
                        free = (free + 1).min(max);
                    }
                    prop_assert_eq!(object.signal(), expected);
                }
                Action::Cancel(which) => {
                    if let Some((name, key)) = keys.get(which) {
                        let is_queued = queue.contains(name);

                        queue.retain(|own| own != name);
                        prop_assert_eq!(object.0.cancel(key).is_some(), is_queued);
                    }
                }
            }
            prop_assert_eq!(object.0.queued() as usize, queue.len());
        }
    }
}
