// SPDX-License-Identifier: MIT OR Apache-2.0

//! One thread at a time: the rules, a model, and real threads as a stress.

use std::thread::scope;

use proptest::prelude::*;

use super::*;

/// The wait that a busy mutex gives.
fn queued(mutex: &Shared, thread: u32, key: u64) -> Queued {
    mutex.start(thread, key).expect_err("busy")
}

/// RES-98, with two threads instead of time-outs.
#[test]
fn res_98_sequence() {
    let mutex = Shared::new(0);
    let wrong = queued(&mutex, 1, 0xdeadbeef);

    assert_eq!(mutex.give_up(&wrong), End::GaveUp);
    assert_eq!(mutex.start(1, 0).ok(), Some(End::Owns(0)));
    assert_eq!(mutex.release(1, 1, 1234), Ok(None));
    assert_eq!(mutex.release(1, 1, 1234), Err(NotOwner), "again");

    let old = queued(&mutex, 1, 0);

    assert_eq!(mutex.give_up(&old), End::GaveUp);
    assert_eq!(mutex.start(1, 1).ok(), Some(End::Owns(1234)));
    assert_eq!(mutex.release(1, 0, 0), Ok(None));
    assert_eq!(mutex.start(1, 0).ok(), Some(End::Owns(0)));
}

/// RES-97: neither others nor nobody; no recursion; key and fence stay.
#[test]
fn res_97_only_the_owner_releases() {
    let mutex = Shared::new(7);

    assert_eq!(mutex.release(1, 8, 9), Err(NotOwner), "not owned");
    assert_eq!(mutex.acquire(1, 7), End::Owns(0));
    assert_eq!(mutex.release(2, 8, 9), Err(NotOwner), "another thread");

    let again = queued(&mutex, 1, 7);

    assert_eq!(mutex.give_up(&again), End::GaveUp, "like any other");
    assert_eq!(mutex.pass_on(1), Ok(None));
    assert_eq!(
        mutex.acquire(2, 7),
        End::Owns(0),
        "key and fence are as before"
    );
}

/// RES-97: first come, first served, for each key; the others stay and are not woken.
#[test]
fn res_97_first_waiter_of_the_new_key() {
    let mutex = Shared::new(0);

    assert_eq!(mutex.acquire(1, 0), End::Owns(0));

    let waits = [(2, 5), (3, u64::MAX), (4, 5), (5, 0)].map(|(thread, key)| {
        let queued = queued(&mutex, thread, key);

        assert_eq!(mutex.owner(), Some(1));
        queued
    });

    assert_eq!(mutex.waiting(), 4);
    for (from, key, fence, to) in [
        (1, 5, 10, 2),
        (2, 5, 11, 4),
        (4, 0, 12, 5),
        (5, u64::MAX, 13, 3),
    ] {
        assert_eq!(mutex.release(from, key, fence), Ok(Some(to)));
        assert_eq!(mutex.owner(), Some(to), "owns before it runs");

        let wait = waits.iter().find(|wait| wait.waiter.owner == to).unwrap();

        assert_eq!(mutex.sleep(wait), End::Owns(fence));
    }
    assert_eq!(mutex.waiting(), 0);
    for wait in &waits {
        assert_eq!(
            wait.waiter.wakes.load(Relaxed),
            1,
            "one wake for one hand-over"
        );
    }
}

/// RES-99: every waiter of every key, and for ever.
#[test]
fn res_99_abandonment_is_sticky() {
    let mutex = Shared::new(0);

    assert_eq!(mutex.acquire(1, 0), End::Owns(0));

    let waits = [(2, 0), (3, 1)].map(|(thread, key)| queued(&mutex, thread, key));

    assert_eq!(mutex.abandon(), [2, 3]);
    for wait in &waits {
        assert_eq!(mutex.sleep(wait), End::Abandoned);
        assert_eq!(mutex.give_up(wait), End::Abandoned);
    }
    assert_eq!((mutex.owner(), mutex.waiting()), (None, 0));
    assert_eq!(mutex.acquire(4, 0), End::Abandoned);
    assert_eq!(mutex.acquire(4, 1), End::Abandoned);
    assert_eq!(mutex.release(1, 0, 0), Err(NotOwner));
    assert!(mutex.abandon().is_empty(), "once");
}

/// A free mutex can be abandoned too: its last handle goes.
#[test]
fn res_99_abandoned_without_an_owner() {
    let mutex = Shared::new(0);
    let other_key = queued(&mutex, 1, 1);

    assert_eq!(mutex.abandon(), [1]);
    assert_eq!(mutex.sleep(&other_key), End::Abandoned);
    assert_eq!(mutex.acquire(1, 0), End::Abandoned);
}

#[derive(Clone, Debug)]
enum Op {
    Acquire { thread: u32, key: u64 },
    Release { thread: u32, key: u64, fence: u64 },
    GiveUp(prop::sample::Index),
    PassOn,
    Abandon,
}

fn op() -> impl Strategy<Value = Op> {
    let key = || prop_oneof![6 => 0u64..3, 1 => Just(u64::MAX)];

    prop_oneof![
        8 => (0u32..6, key()).prop_map(|(thread, key)| Op::Acquire { thread, key }),
        8 => (0u32..6, key(), any::<u64>())
            .prop_map(|(thread, key, fence)| Op::Release { thread, key, fence }),
        2 => any::<prop::sample::Index>().prop_map(Op::GiveUp),
        2 => Just(Op::PassOn),
        1 => Just(Op::Abandon),
    ]
}

/// A mutex without any data structure: waiters are a list in order of arrival.
struct Model {
    key: u64,
    fence: u64,
    owner: Option<u32>,
    abandoned: bool,
    waits: Vec<(Queued, u64, Option<End>)>,
}

impl Model {
    /// Releases; returns who has it then.
    fn release(&mut self, key: u64, fence: u64) -> Option<u32> {
        let next = self
            .waits
            .iter_mut()
            .find(|(_, wanted, end)| end.is_none() && *wanted == key);

        (self.key, self.fence, self.owner) = (key, fence, None);
        if let Some((queued, _, end)) = next {
            self.owner = Some(queued.waiter.owner);
            *end = Some(End::Owns(fence));
        }
        self.owner
    }

    /// Everybody knows what the model says, and was woken for a decision of others only.
    fn compare(&self, mutex: &Shared) {
        let pending = self
            .waits
            .iter()
            .filter(|(_, _, end)| end.is_none())
            .count();

        assert_eq!(mutex.owner(), self.owner);
        assert_eq!(mutex.waiting() as usize, pending);
        for (queued, _, end) in &self.waits {
            let wakes = queued.waiter.wakes.load(Relaxed);

            match end {
                None | Some(End::GaveUp) => assert_eq!(wakes, 0),
                Some(decided) => {
                    assert_eq!(wakes, 1);
                    assert_eq!(mutex.sleep(queued), *decided);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 2000 }, ..ProptestConfig::default() })]

    /// RES-95 to RES-99: after every step each thread has what the model says.
    #[test]
    fn res_95_to_99_against_a_model(ops in prop::collection::vec(op(), 1..60)) {
        let mutex = Shared::new(0);
        let mut model = Model { key: 0, fence: 0, owner: None, abandoned: false, waits: Vec::new() };

        for op in ops {
            match op {
                Op::Acquire { thread, key } => match mutex.start(thread, key) {
                    Ok(End::Owns(fence)) => {
                        prop_assert!(!model.abandoned && model.owner.is_none() && model.key == key);
                        prop_assert_eq!(fence, model.fence);
                        model.owner = Some(thread);
                    }
                    Ok(end) => {
                        prop_assert_eq!(end, End::Abandoned);
                        prop_assert!(model.abandoned);
                    }
                    Err(queued) => {
                        prop_assert!(!model.abandoned);
                        prop_assert!(model.owner.is_some() || model.key != key);
                        model.waits.push((queued, key, None));
                    }
                },
                Op::Release { thread, key, fence } => {
                    let released = mutex.release(thread, key, fence);

                    match model.owner == Some(thread) {
                        true => prop_assert_eq!(released, Ok(model.release(key, fence))),
                        false => prop_assert_eq!(released, Err(NotOwner)),
                    }
                }
                Op::GiveUp(index) if !model.waits.is_empty() => {
                    let (queued, _, end) = index.get(&model.waits);
                    let got = mutex.give_up(queued);
                    let index = index.index(model.waits.len());

                    // Giving up twice is no call of the module.
                    if *end != Some(End::GaveUp) {
                        prop_assert_eq!(got, end.unwrap_or(End::GaveUp));
                        model.waits[index].2.get_or_insert(End::GaveUp);
                    }
                }
                Op::PassOn => {
                    if let Some(owner) = model.owner {
                        let next = model.release(model.key, model.fence);

                        prop_assert_eq!(mutex.pass_on(owner), Ok(next));
                    }
                }
                Op::Abandon => {
                    mutex.abandon();
                    model.abandoned = true;
                    model.owner = None;
                    for (_, _, end) in &mut model.waits {
                        end.get_or_insert(End::Abandoned);
                    }
                }
                Op::GiveUp(_) => {}
            }
            model.compare(&mutex);
        }
    }
}

/// RES-102: threads hand a mutex around in a ring; a lost hand-over would hang, a double one is
/// seen in the counter.
#[test]
fn res_102_ring_of_threads() {
    const THREADS: u32 = 4;
    const ROUNDS: u64 = if cfg!(miri) { 10 } else { 500 };

    let mutex = Shared::new(0);
    let inside = AtomicU32::new(0);

    scope(|scope| {
        for thread in 0..THREADS {
            let (mutex, inside) = (&mutex, &inside);

            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let End::Owns(fence) = mutex.acquire(thread, thread.into()) else {
                        panic!("nobody abandons");
                    };

                    assert_eq!(fence, round * u64::from(THREADS) + u64::from(thread));
                    assert_eq!(inside.fetch_add(1, Relaxed), 0, "alone");
                    inside.fetch_sub(1, Relaxed);
                    mutex
                        .release(thread, ((thread + 1) % THREADS).into(), fence + 1)
                        .unwrap();
                }
            });
        }
    });
    assert_eq!((mutex.owner(), mutex.waiting()), (None, 0));
}
