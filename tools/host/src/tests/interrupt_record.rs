// SPDX-License-Identifier: MIT OR Apache-2.0

//! What interrupts have told of, with a worker that is stopped, and in all interleavings.

use crate::logic::interrupt_record::InterruptRecord;

#[cfg(not(loom))]
mod stopped {
    use super::InterruptRecord;
    use crate::logic::interrupt_record::{PLACES, TRIES};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn take(record: &InterruptRecord) -> (Vec<u32>, bool) {
        let mut numbers = Vec::new();
        let is_all = record.take(|number| numbers.push(number));

        (numbers, is_all)
    }

    #[test]
    fn gpu_59_as_many_numbers_as_there_are_places() {
        let record = InterruptRecord::new();

        for number in 1..=PLACES as u32 {
            record.post(number);
        }

        let (mut numbers, is_all) = take(&record);

        numbers.sort_unstable();
        assert!(!is_all);
        assert!(numbers.into_iter().eq(1..=PLACES as u32));
        assert_eq!(take(&record), (vec![], false));
    }

    #[test]
    fn fen_100_more_than_a_record_names() {
        let record = InterruptRecord::new();

        for number in 1..=PLACES as u32 + 1 {
            record.post(number);
        }
        assert!(take(&record).1);
        // Once.
        assert_eq!(take(&record), (vec![], false));
        // The places of one number are taken.
        for turn in 0..=TRIES as u32 {
            record.post(5 + turn * PLACES as u32);
        }

        let (numbers, is_all) = take(&record);

        assert_eq!((numbers.len(), is_all), (TRIES, true));
        record.post_all();
        assert_eq!(take(&record), (vec![], true));
    }

    #[test]
    fn fen_100_100_000_records_with_the_worker_stopped() {
        let record = InterruptRecord::new();

        for turn in 0..100_000_u32 {
            record.post(turn % 7 + 1);
        }

        let (numbers, is_all) = take(&record);

        // The same number may be there more than once, and nothing is lost.
        assert!(is_all || BTreeSet::from_iter(numbers) == BTreeSet::from_iter(1..=7));
    }

    proptest! {
        #[test]
        fn fen_100_nothing_is_lost(
            turns in prop::collection::vec(prop::collection::vec(1..500_u32, 0..90), 1..8),
        ) {
            let record = InterruptRecord::new();

            for posted in turns {
                for number in &posted {
                    record.post(*number);
                }

                let (numbers, is_all) = take(&record);

                prop_assert!(numbers.iter().all(|number| posted.contains(number)));
                if !is_all {
                    prop_assert!(posted.iter().all(|number| numbers.contains(number)));
                }
            }
        }
    }
}

#[cfg(loom)]
mod beside_the_worker {
    use super::InterruptRecord;
    use crate::tests::interleavings::explore_within;
    use loom::{
        sync::{
            atomic::{AtomicU64, Ordering::Relaxed},
            Arc, Condvar, Mutex,
        },
        thread::spawn,
    };

    /// What is different from the module.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Mutant {
        None,
        /// The worker looks at the value before it takes the number out.
        LooksFirst,
        /// The engine tells before it stores.
        TellsFirst,
    }

    /// The work of the worker: whether it is queued, and whether none comes any more.
    #[derive(Default)]
    struct Work {
        queued: bool,
        stopped: bool,
    }

    struct Scene {
        mutant: Mutant,
        record: InterruptRecord,
        /// CurrentValue, and the last one that the worker has seen.
        current: AtomicU64,
        seen: AtomicU64,
        work: Mutex<Work>,
        changed: Condvar,
    }

    impl Scene {
        /// An engine stores a value and interrupts.
        fn signal(&self, value: u64) {
            if self.mutant == Mutant::TellsFirst {
                self.tell();
                self.current.fetch_max(value, Relaxed);
            } else {
                self.current.fetch_max(value, Relaxed);
                self.tell();
            }
        }

        fn tell(&self) {
            self.record.post(1);
            self.work.lock().unwrap().queued = true;
            self.changed.notify_all();
        }

        fn look(&self) {
            let early = self.current.load(Relaxed);

            self.record.take(|_| {
                let now = match self.mutant {
                    Mutant::LooksFirst => early,
                    _ => self.current.load(Relaxed),
                };

                self.seen.fetch_max(now, Relaxed);
            });
        }

        /// The worker, until it is stopped and nothing is queued.
        fn work(&self) {
            loop {
                {
                    let mut work = self.work.lock().unwrap();

                    while !work.queued && !work.stopped {
                        work = self.changed.wait(work).unwrap();
                    }
                    if !work.queued {
                        return;
                    }
                    work.queued = false;
                }
                self.look();
            }
        }
    }

    /// Two engines signal, and then there is silence.
    fn explore(mutant: Mutant) {
        explore_within(Some(2), move || {
            let scene = Arc::new(Scene {
                mutant,
                record: InterruptRecord::new(),
                current: AtomicU64::new(0),
                seen: AtomicU64::new(0),
                work: Mutex::default(),
                changed: Condvar::new(),
            });
            let start = |body: fn(&Scene)| {
                let scene = scene.clone();

                spawn(move || body(&scene))
            };
            let worker = start(Scene::work);
            let other = start(|scene| scene.signal(1));

            scene.signal(2);
            other.join().unwrap();
            scene.work.lock().unwrap().stopped = true;
            scene.changed.notify_all();
            worker.join().unwrap();
            assert_eq!(scene.seen.load(Relaxed), 2, "a signal is lost");
        });
    }

    #[test]
    fn fen_101_m11_a_record_is_looked_at_after_it_is_taken() {
        explore(Mutant::None);
    }

    #[test]
    #[should_panic(expected = "a signal is lost")]
    fn mutant_fen_101_the_worker_looks_before_it_takes_the_record() {
        explore(Mutant::LooksFirst);
    }

    #[test]
    #[should_panic(expected = "a signal is lost")]
    fn mutant_fen_101_an_engine_tells_before_it_stores() {
        explore(Mutant::TellsFirst);
    }
}
