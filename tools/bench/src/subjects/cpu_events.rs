// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long it takes from a trap of the GPU until the client runs that waits for it, and whether
//! that depends on how many others wait for theirs (CPU-27).

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::EventClass;
use opendxg::{Context, CpuEvent, Device, EventFd};

use super::doorbells::now_ns;
use super::gpu::{Work, NODES};
use super::{names, Bench};
use crate::gpu::{Buffer, Commands, PAGE};
use crate::measure::{Participant, Plan, Runner, Subject};

/// The group.
pub const GROUP: &str = "cpu-event";
/// Numbers of events of others.
pub const OTHERS: [u64; 2] = [0, 10_000];
/// Events of one device of others: fewer than there may be.
const OF_A_DEVICE: u64 = 1_000;

/// Names of participants.
pub mod names_of_events {
    /// A trap, and a thread that waits for the eventfd of its CPU event.
    pub const TRAP: &str = "CPU event";
    /// A store, and a thread that looks at the memory all the time.
    pub const LOOKING: &str = "looking at memory";
}
use names_of_events::*;

/// A packet that stores the clock of the GPU, which is CLOCK_MONOTONIC, and one behind it.
struct Told<'a> {
    context: &'a Context,
    clock: Buffer,
    commands: Commands,
    /// Signalled by the driver, or nothing if the client looks.
    event: Option<(EventFd, CpuEvent)>,
    woken: Cell<u64>,
}

impl<'a> Told<'a> {
    fn new(work: &Work<'a>, context: &'a Context, is_told: bool) -> Self {
        let clock = Buffer::new(&work.paging, PAGE);
        let mut packets = Pm4::new().timestamp(clock.address);
        let event = is_told.then(|| {
            let fd = EventFd::new().expect("make an eventfd");
            let event = work.device.create_cpu_event(&fd);
            let event = event.expect("create a CPU event");
            let usage = EventClass::Trap.usage(0);
            event.set_usage(usage).expect("say what it is for");
            (fd, event)
        });
        if event.is_some() {
            packets = packets.trap(1, 1);
        }
        Self {
            context,
            clock,
            commands: Commands::new(&work.paging, &packets),
            event,
            woken: 0.into(),
        }
    }

    fn stored(&self) -> u64 {
        let bytes = self.clock.allocation.lock().expect("map the clock");
        let mut stored = [0; 8];
        bytes.read(0, &mut stored);
        u64::from_le_bytes(stored)
    }
}

impl Subject for Told<'_> {
    fn run(&mut self) {
        let before = self.stored();
        let Commands {
            address, length, ..
        } = self.commands;
        self.context.submit(address, length).expect("submit");
        match &self.event {
            Some((fd, _)) => drop(fd.wait(None).expect("wait for the event")),
            None => {
                while self.stored() == before {
                    std::hint::spin_loop();
                }
            }
        }
        self.woken.set(now_ns());
    }

    fn own_ns(&mut self) -> Option<u64> {
        Some(self.woken.get().saturating_sub(self.stored()))
    }
}

/// Another thread that writes to an eventfd, and says when it begins to.
struct Peer {
    ask: Arc<EventFd>,
    answer: Arc<EventFd>,
    began: Arc<AtomicU64>,
    woken: u64,
}

impl Peer {
    fn new() -> Self {
        let event = || Arc::new(EventFd::new().expect("make an eventfd"));
        let (ask, answer, began) = (event(), event(), Arc::new(AtomicU64::new(0)));
        let peer = (ask.clone(), answer.clone(), began.clone());
        thread::spawn(move || {
            let (ask, answer, began) = peer;
            while ask.wait(None).is_ok() {
                began.store(now_ns(), Ordering::Release);
                answer.signal().expect("answer");
            }
        });
        Self {
            ask,
            answer,
            began,
            woken: 0,
        }
    }
}

impl Subject for Peer {
    fn run(&mut self) {
        self.ask.signal().expect("ask");
        self.answer.wait(None).expect("wait for the answer");
        self.woken = now_ns();
    }

    fn own_ns(&mut self) -> Option<u64> {
        Some(
            self.woken
                .saturating_sub(self.began.load(Ordering::Acquire)),
        )
    }
}

/// Events of others, which nothing happens to.
struct Others(Vec<(Device, Vec<CpuEvent>)>);

impl Others {
    fn set(&mut self, bench: &Bench, fd: &EventFd, count: u64) {
        self.0.clear();
        for _ in 0..count / OF_A_DEVICE {
            let device = bench.device.adapter().create_device();
            let device = device.expect("create a device");
            let events = (0..OF_A_DEVICE).map(|_| {
                let event = device.create_cpu_event(fd).expect("create a CPU event");
                let usage = EventClass::Any.usage(0);
                event.set_usage(usage).expect("say what it is for");
                event
            });
            let events = events.collect();
            self.0.push((device, events));
        }
    }
}

/// Measures the group.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let work = Work::new(bench);
    let context = work.context(NODES[0]);
    let mut all = Vec::new();
    for count in OTHERS {
        all.push(Participant::at(
            TRAP,
            count,
            Told::new(&work, &context, true),
        ));
        let looking = Told::new(&work, &context, false);
        all.push(Participant::at(LOOKING, count, looking));
        all.push(Participant::at(names::EVENTFD, count, Peer::new()));
    }
    let fd = EventFd::new().expect("make an eventfd");
    let mut others = Others(Vec::new());
    runner.staged_group(
        GROUP,
        "from a store of the GPU until the client runs, while N events of others exist",
        plan,
        all,
        |count| others.set(bench, &fd, count),
    );
}
