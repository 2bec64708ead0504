// SPDX-License-Identifier: MIT OR Apache-2.0

//! All interleavings of a process that rings once and is silent then, of an engine that looks at
//! the ring, and of somebody who takes the doorbell away, or sends the adapter to sleep (GPU-23,
//! GPU-28, GPU-32).
//!
//! The queue is the one of the module. What processors find at the address of the doorbell, and
//! what the thread of an engine does with its list, is told again here in a few lines; a lock
//! stands for what a change of mappings waits for. Each `mutant_` leaves one step out, and work is
//! lost.

use loom::{
    sync::{
        atomic::{fence, AtomicU64, Ordering::SeqCst},
        Arc, Mutex,
    },
    thread::spawn,
};

use super::interleavings::explore_within;
use crate::{
    ddi::{
        class::Passive,
        doorbell::{Disconnect, DoorbellCallbacks},
    },
    kmd::soft::{listed::List, queue::Queue},
    logic::{
        doorbell::DoorbellStatus::{Connected, Retry},
        power::Awake,
    },
    platform::{load_acquire, store_release, wakeup, word64, BoxedWakeup, Shared, Word64},
};

/// What is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// The look behind the trap.
    LookAfterTrap,
    /// The look behind a disconnection.
    LookAfterDisconnect,
    /// The look behind a connection.
    LookAfterConnect,
    /// The rotation comes before the status.
    Order,
    /// The look for work before D3.
    LookForWork,
    /// That look comes before the doorbell is disconnected.
    WorkBeforeDisconnect,
    /// A connection does not wake the adapter.
    Waking,
}

/// What is at the address of the doorbell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Nothing,
    /// The physical doorbell, in no mapping: an access traps.
    Absent,
    Present,
    /// A physical doorbell that the GPU sees by itself, some time after a store; whether it has
    /// seen the last one. It forgets that when the doorbell is taken away.
    Hardware {
        posted: bool,
    },
}

/// A doorbell, for its engine: the pages of it.
struct Pages(Arc<Mutex<Page>>);

impl DoorbellCallbacks for Pages {
    fn disconnect(&self, _: &Passive, _: Disconnect) {}

    fn trap(&self, _: &Passive) {
        let mut page = self.0.lock().unwrap();

        if *page == Page::Present {
            *page = Page::Absent;
        }
    }
}

struct Scene {
    missing: Missing,
    queue: Shared<Queue>,
    page: Arc<Mutex<Page>>,
    status: Word64,
    /// The write pointer, which the process stores without any order of its own.
    pointer: AtomicU64,
    /// How much the engine has done.
    done: Word64,
    listed: Mutex<List<Queue>>,
    wakeup: BoxedWakeup,
    /// Whether the adapter sleeps is looked at.
    power: bool,
    awake: Awake,
    /// `Power::turn` and `Ring::live`.
    turn: Mutex<()>,
    live: Mutex<()>,
    /// The engine runs nothing; held for a slice.
    is_off: Mutex<bool>,
}

impl Scene {
    fn new(missing: Missing, first: Page, power: bool) -> Arc<Self> {
        let page = Arc::new(Mutex::new(first));
        let queue = Queue::new(1, 0, None, true).unwrap();
        let doorbell: Shared<dyn DoorbellCallbacks> = Shared::new(Pages(page.clone()));

        drop(queue.set_doorbell(Some(doorbell)));
        if first != Page::Present {
            // The engine sleeps.
            drop(queue.begin_trap());
        }
        Arc::new(Self {
            missing,
            queue,
            page,
            status: word64(match first {
                Page::Nothing => Retry.word(),
                _ => Connected.word(),
            }),
            pointer: AtomicU64::new(0),
            done: word64(0),
            listed: Mutex::new(List::new()),
            wakeup: wakeup().unwrap(),
            power,
            awake: Awake::new(),
            turn: Mutex::new(()),
            live: Mutex::new(()),
            is_off: Mutex::new(false),
        })
    }

    /// What the process calls.
    fn connect_awake(&self) {
        if !self.power {
            return self.connect();
        }
        {
            let _live = self.live.lock().unwrap();

            if self.awake.is_awake() || self.missing == Missing::Waking {
                return self.connect();
            }
        }

        let _turn = self.turn.lock().unwrap();

        if !self.awake.is_awake() {
            self.switch(false);
            self.awake.awakes();
        }

        let _live = self.live.lock().unwrap();

        self.connect();
    }

    /// D0 to D3, unless there is work.
    fn power_down(&self) {
        let _turn = self.turn.lock().unwrap();

        self.awake.falls_asleep();
        self.switch(true);

        let before = self.is_idle();

        {
            let _live = self.live.lock().unwrap();

            self.disconnect();
        }

        let is_idle = match self.missing {
            Missing::LookForWork => true,
            Missing::WorkBeforeDisconnect => before,
            _ => self.is_idle(),
        };

        if !is_idle {
            self.awake.awakes();
            self.switch(false);
        }
    }

    fn switch(&self, is_off: bool) {
        *self.is_off.lock().unwrap() = is_off;
        self.wakeup.ring();
    }

    fn is_idle(&self) -> bool {
        let _core = self.is_off.lock().unwrap();

        self.pointer.load(loom::sync::atomic::Ordering::Relaxed) == load_acquire(&self.done)
    }

    fn tell(&self, is_new: bool) {
        if is_new {
            self.listed.lock().unwrap().push(&self.queue);
            self.wakeup.ring();
        }
    }

    /// A store of the process to the doorbell.
    fn ring(&self) {
        let mut page = self.page.lock().unwrap();

        match *page {
            Page::Absent => {
                self.tell(self.queue.ring());
                *page = Page::Present;
            }
            Page::Hardware { .. } => *page = Page::Hardware { posted: true },
            Page::Nothing | Page::Present => {}
        }
    }

    /// The GPU sees what was stored to a doorbell.
    fn see(&self) {
        let mut page = self.page.lock().unwrap();

        if *page == (Page::Hardware { posted: true }) {
            *page = Page::Hardware { posted: false };
            self.tell(self.queue.ring());
        }
    }

    /// Processors find something else at the address on return. They may ring between that and the
    /// status.
    fn rotate(&self, page: Page) {
        *self.page.lock().unwrap() = page;
    }

    fn connect(&self) {
        self.rotate(Page::Absent);
        Connected.say(&self.status);
        if self.missing != Missing::LookAfterConnect {
            self.tell(self.queue.ring());
        }
    }

    fn disconnect(&self) {
        if self.missing == Missing::Order {
            fence(SeqCst);
            self.tell(self.queue.look());
        }
        self.rotate(Page::Nothing);
        Retry.say(&self.status);
        if !matches!(self.missing, Missing::LookAfterDisconnect | Missing::Order) {
            self.tell(self.queue.look());
        }
    }

    /// What the process does for one submission.
    fn submit(&self, written: u64) {
        // ORDERING: nothing but the steps below makes it visible.
        self.pointer
            .store(written, loom::sync::atomic::Ordering::Relaxed);
        loop {
            self.ring();
            fence(SeqCst);
            if load_acquire(&self.status) != Retry.word() {
                return;
            }
            self.connect_awake();
        }
    }

    /// The thread of the engine, until it is stopped and has nothing to look at.
    fn run(&self) {
        loop {
            // Before the list: what was told before the stop is looked at.
            let is_stopped = self.wakeup.is_stopped();
            let core = self.power.then(|| self.is_off.lock().unwrap());
            let is_off = core.as_ref().is_some_and(|core| **core);
            // What is listed stays there while the engine is off.
            let listed = match is_off {
                true => None,
                false => self.listed.lock().unwrap().pop(),
            };

            if listed.is_none() {
                drop(core);
                if is_stopped {
                    return;
                }
                self.wakeup.wait(None);
                continue;
            }

            let written = self.pointer.load(loom::sync::atomic::Ordering::Relaxed);

            fence(SeqCst);
            store_release(&self.done, written);
            drop(core);
            if !self.queue.traps() {
                if let Some(doorbell) = self.queue.begin_trap() {
                    doorbell.trap(&Passive::here());
                }
                if self.missing != Missing::LookAfterTrap {
                    self.tell(self.queue.look());
                }
            }
        }
    }
}

/// What somebody else does meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Nothing,
    /// Takes the doorbell away.
    Takes,
    /// Connects it.
    Connects,
    /// The GPU sees a store, before or after which the doorbell is taken away.
    SeesAndTakes,
    /// Sends the adapter to sleep.
    PowersDown,
}

/// Rings, and silence after the last one.
fn silence(missing: Missing, first: Page, other: Other, rings: u64) {
    // One less where there are more steps.
    let bound = if other == Other::PowersDown { 2 } else { 3 };

    explore_within(Some(bound), move || {
        let scene = Scene::new(missing, first, other == Other::PowersDown);
        let engine = {
            let scene = scene.clone();

            spawn(move || scene.run())
        };
        let process = {
            let scene = scene.clone();

            spawn(move || (1..=rings).for_each(|written| scene.submit(written)))
        };

        if first == Page::Present {
            // The engine looks by itself, and is about to stop doing so.
            scene.tell(scene.queue.look());
        }
        match other {
            Other::Nothing => {}
            Other::Takes => scene.disconnect(),
            Other::Connects => scene.connect(),
            Other::PowersDown => scene.power_down(),
            Other::SeesAndTakes => {
                scene.see();
                scene.disconnect();
            }
        }
        process.join().unwrap();
        scene.see();
        scene.wakeup.stop();
        engine.join().unwrap();
        assert_eq!(load_acquire(&scene.done), rings, "a ring was lost");
    });
}

const HARDWARE: Page = Page::Hardware { posted: false };

#[test]
fn gpu_32_a_ring_is_seen_by_an_engine_that_sleeps() {
    silence(Missing::Nothing, Page::Absent, Other::Nothing, 1);
}

#[test]
fn gpu_32_a_ring_is_seen_by_an_engine_that_is_about_to_sleep() {
    silence(Missing::Nothing, Page::Present, Other::Nothing, 1);
}

#[test]
fn gpu_32_two_rings_of_which_the_engine_sees_the_last() {
    silence(Missing::Nothing, Page::Present, Other::Nothing, 2);
}

#[test]
fn gpu_23_a_ring_is_seen_although_the_doorbell_is_taken_away() {
    silence(Missing::Nothing, Page::Absent, Other::Takes, 1);
}

#[test]
fn gpu_23_a_ring_is_seen_although_a_watched_doorbell_is_taken_away() {
    silence(Missing::Nothing, Page::Present, Other::Takes, 1);
}

#[test]
fn gpu_23_a_ring_is_seen_although_the_gpu_forgets_it() {
    silence(Missing::Nothing, HARDWARE, Other::SeesAndTakes, 1);
}

#[test]
fn gpu_21_a_ring_is_seen_that_came_before_the_connection() {
    silence(Missing::Nothing, Page::Nothing, Other::Connects, 1);
}

#[test]
fn gpu_28_a_ring_is_seen_although_the_adapter_is_sent_to_sleep() {
    silence(Missing::Nothing, Page::Absent, Other::PowersDown, 1);
}

#[test]
fn gpu_28_a_ring_is_seen_although_a_watched_adapter_is_sent_to_sleep() {
    silence(Missing::Nothing, Page::Present, Other::PowersDown, 1);
}

#[test]
fn gpu_28_a_ring_that_finds_no_doorbell_wakes_the_adapter() {
    silence(Missing::Nothing, Page::Nothing, Other::PowersDown, 1);
}

#[test]
#[should_panic(expected = "a ring was lost")]
fn mutant_gpu_28_it_sleeps_with_work() {
    silence(Missing::LookForWork, Page::Absent, Other::PowersDown, 1);
}

#[test]
#[should_panic(expected = "a ring was lost")]
fn mutant_gpu_28_work_is_looked_for_before_the_doorbell_is_disconnected() {
    silence(
        Missing::WorkBeforeDisconnect,
        Page::Absent,
        Other::PowersDown,
        1,
    );
}

#[test]
#[should_panic(expected = "a ring was lost")]
fn mutant_gpu_28_a_connection_does_not_wake() {
    silence(Missing::Waking, Page::Nothing, Other::PowersDown, 1);
}

/// Work that is submitted while the adapter is sent to sleep; `looks` says whether it is awake.
fn submission(looks: fn(&Awake) -> bool) {
    explore_within(None, move || {
        let scene = Arc::new((Awake::new(), AtomicU64::new(0)));
        let submits = {
            let scene = scene.clone();

            spawn(move || {
                // ORDERING: nothing but the look below makes it visible.
                scene.1.store(1, loom::sync::atomic::Ordering::Relaxed);
                !looks(&scene.0)
            })
        };

        scene.0.falls_asleep();

        let sleeps = scene.1.load(loom::sync::atomic::Ordering::Relaxed) == 0;
        let wakes = submits.join().unwrap();

        assert!(wakes || !sleeps, "it sleeps with work");
    });
}

#[test]
fn gpu_28_a_submission_wakes_the_adapter() {
    submission(Awake::is_awake_for_work);
}

#[test]
#[should_panic(expected = "it sleeps with work")]
fn mutant_gpu_28_a_look_without_a_barrier() {
    submission(Awake::is_awake);
}

#[test]
#[should_panic(expected = "a ring was lost")]
fn mutant_gpu_32_no_look_after_the_trap() {
    silence(Missing::LookAfterTrap, Page::Present, Other::Nothing, 1);
}

#[test]
#[should_panic(expected = "a ring was lost")]
fn mutant_gpu_23_no_look_after_the_disconnection() {
    silence(Missing::LookAfterDisconnect, HARDWARE, Other::Takes, 1);
}

#[test]
#[should_panic(expected = "a ring was lost")]
fn mutant_gpu_23_the_look_comes_before_the_rotation() {
    silence(Missing::Order, HARDWARE, Other::Takes, 1);
}

#[test]
#[should_panic(expected = "a ring was lost")]
fn mutant_gpu_21_no_look_after_the_connection() {
    silence(Missing::LookAfterConnect, Page::Nothing, Other::Connects, 1);
}
