// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of small scenes (RES-102). A thread that sleeps looks at its wake-up only, so
//! a lost one never ends and loom reports it.

use loom::thread::{spawn, JoinHandle};

use super::*;
use crate::tests::interleavings::explore_within;

/// Preemptions per execution; scenes of two or three threads.
const BOUND: Option<usize> = Some(3);

fn spawned<T: 'static>(
    mutex: &Arc<Shared>,
    act: impl FnOnce(&Shared) -> T + 'static,
) -> JoinHandle<T> {
    let mutex = mutex.clone();

    spawn(move || act(&mutex))
}

/// Two waiters for two keys: the owner releases to one, who releases to the other.
#[test]
fn res_102_chain_over_two_keys() {
    explore_within(BOUND, || {
        let mutex = Shared::new(0);

        assert_eq!(mutex.acquire(0, 0), End::Owns(0));

        let first = spawned(&mutex, |mutex| {
            assert_eq!(mutex.acquire(1, 1), End::Owns(10));
            mutex.release(1, 2, 20).unwrap();
        });
        let second = spawned(&mutex, |mutex| {
            assert_eq!(mutex.acquire(2, 2), End::Owns(20));
            mutex.release(2, 0, 30).unwrap();
        });

        mutex.release(0, 1, 10).unwrap();
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(mutex.acquire(0, 0), End::Owns(30));
    });
}

/// Two waiters for one key and one release: one of them owns, the other one still waits.
#[test]
fn res_102_no_double_hand_over() {
    explore_within(BOUND, || {
        let mutex = Shared::new(0);

        assert_eq!(mutex.acquire(0, 0), End::Owns(0));

        let waiters = [1, 2].map(|thread| {
            spawned(&mutex, move |mutex| match mutex.start(thread, 1) {
                Ok(end) => end,
                Err(queued) => mutex.give_up(&queued),
            })
        });

        mutex.release(0, 1, 10).unwrap();

        let ends = waiters.map(|waiter| waiter.join().unwrap());
        let owners = ends.iter().filter(|end| **end == End::Owns(10)).count();

        assert!(owners <= 1);
        assert_eq!(mutex.owner().is_some(), owners == 1);
        assert_eq!(mutex.waiting(), 0);
    });
}

/// A time-out or a signal against a release: the mutex is owned by the waiter or free, never lost.
#[test]
fn res_102_giving_up_against_release() {
    explore_within(None, || {
        let mutex = Shared::new(0);

        assert_eq!(mutex.acquire(0, 0), End::Owns(0));

        let queued = mutex.start(1, 1).err().unwrap();
        let waiter = spawned(&mutex, move |mutex| {
            (mutex.give_up(&queued), queued.waiter.wakes.load(Relaxed))
        });

        mutex.release(0, 1, 10).unwrap();
        match waiter.join().unwrap().0 {
            End::GaveUp => assert_eq!(mutex.acquire(2, 1), End::Owns(10)),
            End::Owns(10) => assert_eq!(mutex.owner(), Some(1)),
            other => panic!("{other:?}"),
        }
    });
}

/// A killed waiter that has got the mutex passes it on, unchanged, to the next one.
#[test]
fn res_102_killed_waiter_passes_on() {
    explore_within(BOUND, || {
        let mutex = Shared::new(0);

        assert_eq!(mutex.acquire(0, 0), End::Owns(0));

        let killed = mutex.start(1, 1).err().unwrap();
        let killed = spawned(&mutex, move |mutex| match mutex.give_up(&killed) {
            End::GaveUp => {}
            End::Owns(10) => {
                mutex.pass_on(1).unwrap();
            }
            other => panic!("{other:?}"),
        });
        let next = spawned(&mutex, |mutex| {
            assert_eq!(mutex.acquire(2, 1), End::Owns(10));
        });

        mutex.release(0, 1, 10).unwrap();
        killed.join().unwrap();
        next.join().unwrap();
        assert_eq!((mutex.owner(), mutex.waiting()), (Some(2), 0));
    });
}

/// The owner's thread exits while one waiter sleeps and another one gives up.
#[test]
fn res_102_owner_exit_against_waiters() {
    explore_within(BOUND, || {
        let mutex = Shared::new(0);

        assert_eq!(mutex.acquire(0, 0), End::Owns(0));

        let sleeper = spawned(&mutex, |mutex| {
            assert_eq!(mutex.acquire(1, 1), End::Abandoned);
        });
        let leaver = spawned(&mutex, |mutex| match mutex.start(2, 2) {
            Ok(end) => assert_eq!(end, End::Abandoned),
            Err(queued) => {
                let end = mutex.give_up(&queued);

                assert!(matches!(end, End::GaveUp | End::Abandoned));
            }
        });

        mutex.abandon();
        sleeper.join().unwrap();
        leaver.join().unwrap();
        assert_eq!((mutex.owner(), mutex.waiting()), (None, 0));
    });
}

/// The owner releases in one thread while its handle is destroyed in another.
#[test]
fn res_102_release_against_abandonment() {
    explore_within(BOUND, || {
        let mutex = Shared::new(0);

        assert_eq!(mutex.acquire(0, 0), End::Owns(0));

        let queued = mutex.start(1, 1).err().unwrap();
        let closer = spawned(&mutex, |mutex| {
            mutex.abandon();
        });
        let released = mutex.release(0, 1, 10);
        let end = mutex.sleep(&queued);

        closer.join().unwrap();
        assert_eq!(queued.waiter.wakes.load(Relaxed), 1);
        match released {
            Ok(next) => assert_eq!((next, end), (Some(1), End::Owns(10))),
            Err(NotOwner) => assert_eq!(end, End::Abandoned),
        }
        assert_eq!(mutex.acquire(2, 1), End::Abandoned);
    });
}
