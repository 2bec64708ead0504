// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals of an object that others wait for, at values that are not reached: what a signal costs,
//! and whom it wakes.

use std::cell::RefCell;
use std::rc::Rc;

use opendxg::{Device, EventFd, MonitoredFence};

use super::{names, Bench};
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::result::Count;
use crate::syncobj::{Drm, Timeline};

/// Numbers of waiters on higher values.
pub const WAITERS: [u64; 7] = [1, 4, 16, 64, 256, 1024, 4096];

/// The first value that is not reached.
const FAR: u64 = 1 << 40;

/// A value that somebody can wait for with an eventfd.
pub(super) trait Timed {
    /// Has an eventfd signalled when the value is there.
    fn notify(&self, value: u64, event: &EventFd);
    /// Gives the object this value.
    fn signal(&self, value: u64);
    /// The value that it has.
    fn value(&self) -> u64;
}

impl Timed for MonitoredFence {
    fn notify(&self, value: u64, event: &EventFd) {
        self.wait_async(value, event).expect("asynchronous wait");
    }

    fn signal(&self, value: u64) {
        MonitoredFence::signal(self, value).expect("signal a fence");
    }

    fn value(&self) -> u64 {
        MonitoredFence::value(self)
    }
}

impl Timed for Timeline {
    fn notify(&self, value: u64, event: &EventFd) {
        Timeline::notify(self, value, event).expect("asynchronous wait");
    }

    fn signal(&self, value: u64) {
        Timeline::signal(self, value).expect("signal a point");
    }

    fn value(&self) -> u64 {
        self.query().expect("ask a timeline for its point")
    }
}

/// Who was woken.
#[derive(Default)]
struct Tally {
    waits: u64,
    spurious: u64,
    lost: u64,
}

/// What all subjects of these groups share: they run one after the other.
#[derive(Clone)]
struct Shared {
    /// Empty before and after every block.
    events: Rc<Vec<EventFd>>,
    tally: Rc<RefCell<Tally>>,
}

/// An object with waiters. Each waits with an eventfd of its own.
struct Waited<T, F> {
    create: F,
    object: Option<T>,
    waiters: usize,
    value: u64,
    /// Somebody also waits for the next value; woken by every signal.
    next: Option<EventFd>,
    shared: Shared,
}

impl<T: Timed, F: Fn() -> T> Subject for Waited<T, F> {
    fn begin(&mut self, _operations: usize) {
        let object = (self.create)();
        // Not in the order of their values.
        let step = self.waiters / 2 + 1;
        for (index, event) in self.shared.events[..self.waiters].iter().enumerate() {
            let place = (index * step) % self.waiters;
            object.notify(FAR + place as u64, event);
        }
        self.object = Some(object);
        self.value = 0;
    }

    fn before(&mut self) {
        self.value += 1;
        if let (Some(object), Some(event)) = (&self.object, &self.next) {
            object.notify(self.value, event);
        }
    }

    fn run(&mut self) {
        if let Some(object) = &self.object {
            object.signal(self.value);
        }
    }

    fn after(&mut self) {
        if let Some(event) = &self.next {
            let count = event.take().expect("read an eventfd");
            assert_eq!(count, 1, "wake-ups of a satisfied wait");
        }
    }

    /// Nobody was woken so far; the last signal wakes everybody once.
    fn end(&mut self) {
        let mut tally = self.shared.tally.borrow_mut();
        let events = &self.shared.events[..self.waiters];
        tally.waits += events.len() as u64;
        for event in events {
            tally.spurious += event.take().expect("read an eventfd");
        }
        if let Some(object) = self.object.take() {
            object.signal(FAR + self.waiters as u64);
        }
        for event in events {
            match event.take().expect("read an eventfd") {
                0 => tally.lost += 1,
                count => tally.spurious += count - 1,
            }
        }
    }
}

/// Measures both groups and returns what was counted.
pub fn measure(runner: &mut Runner, bench: &Bench, signal: Plan, wake: Plan) -> Vec<Count> {
    let most = WAITERS[WAITERS.len() - 1];
    let events = (0..most).map(|_| EventFd::new().expect("make an eventfd"));
    let events = Rc::new(events.collect());
    let shared = || Shared {
        events: Rc::clone(&events),
        tally: Rc::default(),
    };
    let (ours, theirs) = (shared(), shared());
    runner.group(
        "waiters",
        "signal while W others wait for higher values",
        signal,
        participants(bench, false, &ours, &theirs),
    );
    runner.group(
        "wake",
        "signal that wakes one waiter while W others wait for higher values",
        wake,
        participants(bench, true, &ours, &theirs),
    );
    let tally = ours.tally.borrow();
    let count = |what: &str, found| Count {
        what: what.into(),
        of: tally.waits,
        found,
        expected: Some(0),
    };
    vec![
        count(
            "spurious wake-ups of waiters on higher values",
            tally.spurious,
        ),
        count("wake-ups that were lost", tally.lost),
    ]
}

fn participants<'a>(
    bench: &'a Bench,
    wakes: bool,
    ours: &Shared,
    theirs: &Shared,
) -> Vec<Participant<'a>> {
    let mut all = Vec::new();
    for waiters in WAITERS {
        let fence = |device: &'a Device| move || device.create_fence(0).expect("create a fence");
        let subject = waited(fence(&bench.device), waiters, wakes, ours);
        all.push(Participant::at(names::OPENDXG, waiters, subject));
        if let Some(drm) = &bench.drm {
            let timeline = |drm: &'a Drm| move || drm.timeline().expect("make a timeline");
            let subject = waited(timeline(drm), waiters, wakes, theirs);
            all.push(Participant::at(names::SYNCOBJ, waiters, subject));
        }
    }
    all
}

fn waited<T: Timed, F: Fn() -> T>(
    create: F,
    waiters: u64,
    wakes: bool,
    shared: &Shared,
) -> Waited<T, F> {
    Waited {
        create,
        object: None,
        waiters: waiters as usize,
        value: 0,
        next: wakes.then(|| EventFd::new().expect("make an eventfd")),
        shared: shared.clone(),
    }
}
