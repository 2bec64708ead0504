// SPDX-License-Identifier: MIT OR Apache-2.0
//! An event loop with a thousand pending waits for values of one fence: the descriptors that it
//! takes, and the work.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use opendxg::{EventFd, FencePoint, FenceStream, MonitoredFence};
use rustix::event::epoll;

use super::waiters::Timed;
use super::Bench;
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::result::Count;

/// How many waits are pending.
pub const WAITS: u64 = 1_000;
/// The group in which all of them end at once.
pub const ALL: &str = "pending-waits";
/// The group in which one ends after the other.
pub const NEXT: &str = "pending-event";

/// Names of participants.
pub mod names_of_waits {
    /// One descriptor tells the values.
    pub const STREAM: &str = "opendxg stream";
    /// Asynchronous waits that share an eventfd.
    pub const OURS_SHARED: &str = "opendxg, one eventfd";
    /// A descriptor for each value.
    pub const OURS_EACH: &str = "opendxg, a point each";
    /// Points that share an eventfd; then the timeline is asked for its point.
    pub const DRM_SHARED: &str = "drm_syncobj, one eventfd";
    /// An eventfd for each point.
    pub const DRM_EACH: &str = "drm_syncobj, an eventfd each";
}
use names_of_waits::*;

/// Waits for values of one object, as a program keeps them.
trait Waits {
    /// Waits for one more value, which is higher than the others.
    fn add(&mut self, value: u64);
    /// Gives the object this value.
    fn signal(&mut self, value: u64);
    /// Takes what the descriptor of this number tells. How many waits are over by it.
    fn told(&mut self, number: u64) -> u64;
}

fn event() -> EventFd {
    EventFd::new().expect("make an eventfd")
}

/// Adds a descriptor to the set of the loop.
fn watch(set: &OwnedFd, fd: impl AsFd, number: u64) {
    let data = epoll::EventData::new_u64(number);
    epoll::add(set, fd, data, epoll::EventFlags::IN).expect("add to an epoll set");
}

/// Takes the values that are reached, and says how many they were.
fn take(values: &mut BTreeSet<u64>, reached: u64) -> u64 {
    let mut count = 0;
    while values.first().is_some_and(|&value| value <= reached) {
        values.pop_first();
        count += 1;
    }
    count
}

/// One stream tells all values: the waits are numbers of the program.
struct Stream {
    fence: MonitoredFence,
    stream: FenceStream,
    values: BTreeSet<u64>,
}

impl Stream {
    fn new(fence: MonitoredFence, set: &OwnedFd) -> Self {
        let stream = fence.stream(0).expect("a stream");
        watch(set, &stream, 0);
        Self {
            fence,
            stream,
            values: BTreeSet::new(),
        }
    }
}

impl Waits for Stream {
    fn add(&mut self, value: u64) {
        self.values.insert(value);
    }

    fn signal(&mut self, value: u64) {
        self.fence.signal(value).expect("signal a fence");
    }

    fn told(&mut self, _number: u64) -> u64 {
        let value = self.stream.try_read().expect("read a stream");
        value.map_or(0, |value| take(&mut self.values, value))
    }
}

/// One eventfd is signalled for all values. It says how often, so the object is asked.
struct Shared<T> {
    object: T,
    event: EventFd,
    values: BTreeSet<u64>,
}

impl<T: Timed> Shared<T> {
    fn new(object: T, set: &OwnedFd) -> Self {
        let event = event();
        watch(set, &event, 0);
        Self {
            object,
            event,
            values: BTreeSet::new(),
        }
    }
}

impl<T: Timed> Waits for Shared<T> {
    fn add(&mut self, value: u64) {
        self.object.notify(value, &self.event);
        self.values.insert(value);
    }

    fn signal(&mut self, value: u64) {
        self.object.signal(value);
    }

    fn told(&mut self, _number: u64) -> u64 {
        self.event.take().expect("read an eventfd");
        take(&mut self.values, self.object.value())
    }
}

/// An eventfd for each value. Its number says which; it serves another value when it was signalled.
struct Each<T> {
    object: T,
    set: Rc<OwnedFd>,
    events: Vec<EventFd>,
    free: Vec<usize>,
}

impl<T: Timed> Waits for Each<T> {
    fn add(&mut self, value: u64) {
        let number = self.free.pop().unwrap_or_else(|| {
            let event = event();
            watch(&self.set, &event, self.events.len() as u64);
            self.events.push(event);
            self.events.len() - 1
        });
        self.object.notify(value, &self.events[number]);
    }

    fn signal(&mut self, value: u64) {
        self.object.signal(value);
    }

    fn told(&mut self, number: u64) -> u64 {
        let number = number as usize;
        let count = self.events[number].take().expect("read an eventfd");
        assert_eq!(count, 1, "wake-ups of a wait");
        self.free.push(number);
        1
    }
}

/// A fence point for each value.
struct Points {
    fence: MonitoredFence,
    set: Rc<OwnedFd>,
    points: Vec<Option<FencePoint>>,
    free: Vec<usize>,
}

impl Waits for Points {
    fn add(&mut self, value: u64) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.points.push(None);
            self.points.len() - 1
        });
        let point = self.fence.point(value).expect("a fence point");
        watch(&self.set, &point, number as u64);
        self.points[number] = Some(point);
    }

    fn signal(&mut self, value: u64) {
        self.fence.signal(value).expect("signal a fence");
    }

    fn told(&mut self, number: u64) -> u64 {
        let number = number as usize;
        // Closed by this, and gone from the set.
        self.points[number] = None;
        self.free.push(number);
        1
    }
}

/// An event loop, and what it waits for.
struct EventLoop<'a> {
    waits: Box<dyn Waits + 'a>,
    set: Rc<OwnedFd>,
    ready: Vec<epoll::Event>,
}

/// Makes the waits of a participant for the loop with this set.
type Make<'a> = &'a dyn Fn(&Rc<OwnedFd>) -> Box<dyn Waits + 'a>;

impl<'a> EventLoop<'a> {
    fn new(make: Make<'a>) -> Self {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("make an epoll set");
        let set = Rc::new(set);
        Self {
            waits: make(&set),
            set,
            ready: Vec::with_capacity(64),
        }
    }

    /// One with all waits, for the values from 1 on.
    fn full(make: Make<'a>) -> Self {
        let mut this = Self::new(make);
        (1..=WAITS).for_each(|value| this.waits.add(value));
        this
    }

    /// Signals a value, and goes round until so many waits are over.
    fn signal(&mut self, value: u64, expected: u64) {
        self.waits.signal(value);
        let mut over = 0;
        while over < expected {
            self.ready.clear();
            let space = rustix::buffer::spare_capacity(&mut self.ready);
            epoll::wait(&self.set, space, None).expect("wait for an epoll set");
            for event in &self.ready {
                over += self.waits.told(event.data.u64());
            }
        }
        assert_eq!(over, expected, "waits that are over");
    }
}

/// All waits are made, end at once, and go.
struct All<'a>(Make<'a>);

impl Subject for All<'_> {
    fn run(&mut self) {
        EventLoop::full(self.0).signal(WAITS, WAITS);
    }
}

/// One wait of many ends, and the loop waits for one more value.
struct Next<'a> {
    make: Make<'a>,
    waiting: Option<EventLoop<'a>>,
    value: u64,
}

impl Subject for Next<'_> {
    fn begin(&mut self, _operations: usize) {
        self.waiting = Some(EventLoop::full(self.make));
        self.value = 0;
    }

    fn run(&mut self) {
        self.value += 1;
        if let Some(waiting) = &mut self.waiting {
            waiting.signal(self.value, 1);
            waiting.waits.add(self.value + WAITS);
        }
    }

    fn end(&mut self) {
        self.waiting = None;
    }
}

/// How many descriptors the waits take, besides the epoll set.
fn descriptors(name: &str, make: Make<'_>) -> Count {
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let before = open();
    let full = EventLoop::full(make);
    let found = open() - before - 1;
    drop(full);
    Count {
        what: format!("descriptors for {WAITS} pending waits, {name}"),
        of: WAITS,
        found,
        expected: (name == STREAM).then_some(1),
    }
}

/// Measures both groups, and counts the descriptors.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) -> Vec<Count> {
    let fence = || bench.device.create_fence(0).expect("create a fence");
    let stream = |set: &Rc<OwnedFd>| -> Box<dyn Waits> { Box::new(Stream::new(fence(), set)) };
    let shared = |set: &Rc<OwnedFd>| -> Box<dyn Waits> { Box::new(Shared::new(fence(), set)) };
    let each = |set: &Rc<OwnedFd>| -> Box<dyn Waits> {
        Box::new(Points {
            fence: fence(),
            set: Rc::clone(set),
            points: Vec::new(),
            free: Vec::new(),
        })
    };
    let timeline = || {
        let drm = bench.drm.as_ref().expect("a DRM device with timelines");
        drm.timeline().expect("make a timeline")
    };
    let drm_shared =
        |set: &Rc<OwnedFd>| -> Box<dyn Waits> { Box::new(Shared::new(timeline(), set)) };
    let drm_each = |set: &Rc<OwnedFd>| -> Box<dyn Waits> {
        Box::new(Each {
            object: timeline(),
            set: Rc::clone(set),
            events: Vec::new(),
            free: Vec::new(),
        })
    };
    let mut all: Vec<(&str, Make<'_>)> = vec![
        (STREAM, &stream),
        (OURS_SHARED, &shared),
        (OURS_EACH, &each),
    ];
    if bench.drm.is_some() {
        all.push((DRM_SHARED, &drm_shared));
        all.push((DRM_EACH, &drm_each));
    }
    let whole = |&(name, make): &(&str, _)| Participant::new(name, All(make));
    let next = |&(name, make): &(&str, _)| {
        let (waiting, value) = (None, 0);
        Participant::new(
            name,
            Next {
                make,
                waiting,
                value,
            },
        )
    };
    runner.group(
        ALL,
        "1 000 waits are made, end by one signal, and an event loop takes them",
        Plan {
            operations: (plan.operations / 10).max(1),
            ..plan
        },
        all.iter().map(whole).collect(),
    );
    runner.group(
        NEXT,
        "one of 1 000 waits ends, an event loop takes it, and waits for one more value",
        plan,
        all.iter().map(next).collect(),
    );
    all.iter()
        .map(|&(name, make)| descriptors(name, make))
        .collect()
}
