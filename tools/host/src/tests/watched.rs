// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of an engine that runs a queue, of the looks at it, and of its end (GPU-92,
//! GPU-94).
//!
//! The word is the one of the module. The worker with its delayed work, and the queue with its
//! lock, are told again here in a few lines. Each `mutant_` leaves one step out or changes two, and
//! then a run is not seen, a look comes after the end, or the end waits for itself.

use loom::{
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        Arc, Condvar, Mutex,
    },
    thread::spawn,
};

use super::interleavings::explore_within;
use crate::{
    logic::watched::Watched,
    platform::{mutation::without, Part},
};

/// What is left out, or in the wrong order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// The look does not say that it begins.
    LookBegins,
    /// It looks for work before it says that it is over.
    OrderOfLook,
    /// It is over, and queues the next one, without the lock of the queue.
    Lock,
    /// The end asks for a queued look before it says that the queue has ended.
    OrderOfEnd,
    /// The end does not take back what is queued.
    TakeBack,
    /// What has run is counted after the queue is watched.
    OrderOfRun,
}

/// What is under the lock of the queue.
#[derive(Default)]
struct State {
    ended: bool,
    /// What the last look has seen.
    seen: u64,
}

/// The delayed work.
#[derive(Default)]
struct Work {
    queued: bool,
    runs: bool,
    /// The worker ends when nothing is queued any more.
    stopped: bool,
    /// Nothing may be queued from now on.
    ended: bool,
    /// It was, or is.
    is_late: bool,
    /// It was queued although it was queued.
    is_double: bool,
    /// The end has waited for the look that it is in.
    waits_for_itself: bool,
}

struct Scene {
    missing: Missing,
    /// The first look finds that the queue hangs, and ends it.
    hangs: bool,
    watched: Watched,
    state: Mutex<State>,
    /// How much has run.
    busy: AtomicU64,
    work: Mutex<Work>,
    changed: Condvar,
}

impl Scene {
    fn new(missing: Missing, hangs: bool) -> Arc<Self> {
        Arc::new(Self {
            missing,
            hangs,
            watched: Watched::new(),
            state: Mutex::new(State::default()),
            busy: AtomicU64::new(0),
            work: Mutex::new(Work::default()),
            changed: Condvar::new(),
        })
    }

    /// The KMD tells that it has run.
    fn ran(&self) {
        if self.missing == Missing::OrderOfRun {
            self.watch();
            self.busy.fetch_add(1, Relaxed);
        } else {
            self.busy.fetch_add(1, Relaxed);
            self.watch();
        }
    }

    fn watch(&self) {
        if self.watched.begins() {
            self.queue_look();
        }
    }

    fn queue_look(&self) {
        let mut work = self.work.lock().unwrap();

        work.is_double |= core::mem::replace(&mut work.queued, true);
        work.is_late |= work.ended;
        self.changed.notify_all();
    }

    /// `Queue::look` and what follows from it.
    fn look(&self) {
        if self.missing != Missing::LookBegins {
            self.watched.look_begins();
        }

        let has_rested = {
            let mut state = self.state.lock().unwrap();
            let busy = self.busy.load(Relaxed);

            core::mem::replace(&mut state.seen, busy) == busy
        };

        if self.hangs {
            self.end(true);
        }

        let state = self.state.lock().unwrap();
        let wants = || !state.ended && (!has_rested || state.seen != self.busy.load(Relaxed));
        let again = match self.missing {
            Missing::OrderOfLook => {
                let wanted = wants();

                self.watched.look_ends(|| wanted)
            }
            Missing::Lock => {
                let wanted = wants();

                drop(state);
                if self.watched.look_ends(|| wanted) {
                    self.queue_look();
                }
                return;
            }
            _ => self.watched.look_ends(wants),
        };

        if again {
            self.queue_look();
        }
    }

    /// The end of the queue, which the KMD does not run any more; perhaps by a look at it.
    fn end(&self, by_look: bool) {
        let early = self.watched.is_queued();

        self.state.lock().unwrap().ended = true;

        let is_queued = match self.missing {
            Missing::OrderOfEnd => early,
            Missing::TakeBack => false,
            _ => self.watched.is_queued(),
        };

        if is_queued {
            self.cancel(by_look);
        }

        let mut work = self.work.lock().unwrap();

        work.ended = true;
        work.is_late |= work.queued;
    }

    /// Takes the work back, or waits until it has run.
    fn cancel(&self, by_look: bool) {
        let mut work = self.work.lock().unwrap();

        work.queued = false;
        work.waits_for_itself |= by_look;
        while work.runs && !by_look {
            work = self.changed.wait(work).unwrap();
        }
    }

    /// The worker, until it is stopped and has nothing to do.
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
                work.runs = true;
            }
            self.look();
            self.work.lock().unwrap().runs = false;
            self.changed.notify_all();
        }
    }

    fn stop(&self) {
        self.work.lock().unwrap().stopped = true;
        self.changed.notify_all();
    }

    /// At the end of the scene: nobody has done what must not be done.
    fn check(&self) {
        let work = self.work.lock().unwrap();
        let (is_late, is_double, waits) = (work.is_late, work.is_double, work.waits_for_itself);

        drop(work);
        assert!(!is_double, "two looks are queued");
        assert!(!waits, "the end waits for itself");
        assert!(!is_late, "a look after the end");
    }
}

/// The queue runs while it is looked at, and then no more.
fn runs(missing: Missing) {
    explore_within(Some(3), move || {
        let scene = Scene::new(missing, false);
        let [worker, engine] = [Scene::work, Scene::ran].map(|body| {
            let scene = scene.clone();

            spawn(move || body(&scene))
        });

        scene.ran();
        engine.join().unwrap();
        scene.stop();
        worker.join().unwrap();

        scene.check();

        let seen = scene.state.lock().unwrap().seen;

        assert_eq!(seen, 2, "nobody has looked at what has run");
        assert!(!scene.watched.is_queued());
    });
}

/// The queue ends while it is looked at, or by a look.
fn ends(missing: Missing, by_look: bool) {
    explore_within(Some(3), move || {
        let scene = Scene::new(missing, by_look);
        let worker = {
            let scene = scene.clone();

            spawn(move || scene.work())
        };

        scene.ran();
        if !by_look {
            scene.end(false);
        }
        scene.stop();
        worker.join().unwrap();
        scene.check();
    });
}

#[test]
fn gpu_94_what_has_run_is_looked_at() {
    runs(Missing::Nothing);
}

#[test]
fn gpu_94_no_look_comes_after_the_end() {
    ends(Missing::Nothing, false);
}

#[test]
fn gpu_92_a_look_ends_the_queue() {
    ends(Missing::Nothing, true);
}

#[test]
#[should_panic(expected = "nobody has looked")]
fn mutant_gpu_94_work_is_looked_for_before_the_look_is_over() {
    runs(Missing::OrderOfLook);
}

#[test]
#[should_panic(expected = "nobody has looked")]
fn mutant_gpu_94_a_run_is_counted_after_the_watch() {
    runs(Missing::OrderOfRun);
}

#[test]
#[should_panic(expected = "nobody has looked")]
fn mutant_gpu_94_without_barriers() {
    without(Part::FullFence, || runs(Missing::Nothing));
}

#[test]
#[should_panic(expected = "a look after the end")]
fn mutant_gpu_94_a_look_is_queued_without_the_lock() {
    ends(Missing::Lock, false);
}

#[test]
#[should_panic(expected = "a look after the end")]
fn mutant_gpu_94_the_end_asks_before_it_has_begun() {
    ends(Missing::OrderOfEnd, false);
}

#[test]
#[should_panic(expected = "a look after the end")]
fn mutant_gpu_94_the_end_takes_nothing_back() {
    ends(Missing::TakeBack, false);
}

#[test]
#[should_panic(expected = "the end waits for itself")]
fn mutant_gpu_92_the_end_waits_for_the_look_that_it_is_in() {
    ends(Missing::LookBegins, true);
}
