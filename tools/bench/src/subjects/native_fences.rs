// SPDX-License-Identifier: MIT OR Apache-2.0
//! Native fences: what a signal of an engine costs while others wait for it, and how long it takes
//! until the client runs that waits (FEN-67, FEN-68, FEN-84).

use std::cell::Cell;

use opendxg::pm4::Pm4;
use opendxg::{Context, Counters, EventFd, MonitoredFence, NativeFence};

use super::gpu::{Work, NODES};
use super::Bench;
use crate::bell::{user_queue, Bell};
use crate::gpu::{one, Commands};
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::result::Count;

/// The group of signals that nobody is woken by.
pub const SIGNALS: &str = "native-signal";
/// The group of signals that somebody waits for.
pub const WAKE: &str = "native-wake";
/// The group of signals that a log tells of.
pub const LOGS: &str = "native-log";
/// Numbers of waiters for values that do not come.
pub const WAITERS: [u64; 2] = [0, 4096];

/// Names of participants.
pub mod names_of_native {
    /// ODX_SIGNAL_FENCE.
    pub const NATIVE: &str = "native fence";
    /// The same, with an entry in the log of its queue.
    pub const LOGGED: &str = "native fence, logged";
    /// RELEASE_MEM with an interrupt.
    pub const MONITORED: &str = "monitored fence";
}
use names_of_native::*;

/// Signals of one command buffer.
const BURST: u64 = 250;
/// Signals that a ring has room for, at a time.
const RING: u64 = 64;
/// Waiters wait for this value, and for those above it.
const FAR: u64 = 1 << 32;
/// Signals whose interrupts are counted.
const COUNTED: u64 = 1_000_000;

/// Signals in a row, which wake nobody.
struct Signals<'a> {
    context: &'a Context,
    commands: Commands,
    end: MonitoredFence,
    round: Cell<u64>,
}

impl<'a> Signals<'a> {
    fn new(work: &Work<'_>, context: &'a Context, signal: impl Fn(Pm4, u64) -> Pm4) -> Self {
        let packets = (1..=BURST).fold(Pm4::new(), signal);
        Self {
            context,
            commands: Commands::new(&work.paging, &packets),
            end: work.fence(),
            round: 0.into(),
        }
    }
}

impl Subject for Signals<'_> {
    fn run(&mut self) {
        let round = self.round.get() + 1;
        self.round.set(round);
        let Commands {
            address, length, ..
        } = self.commands;
        self.context.submit(address, length).expect("submit");
        let end = one(&self.end, round);
        self.context.signal(&end).expect("queue a signal");
        self.end.wait(round).expect("wait");
    }

    fn batch(&self) -> u32 {
        BURST as u32
    }
}

/// A signal, and a thread that waits for it.
struct Woken<'a> {
    context: &'a Context,
    fence: &'a MonitoredFence,
    commands: Commands,
}

impl<'a> Woken<'a> {
    fn new(work: &Work<'_>, context: &'a Context, fence: &'a MonitoredFence, signal: Pm4) -> Self {
        Self {
            context,
            fence,
            commands: Commands::new(&work.paging, &signal),
        }
    }
}

impl Subject for Woken<'_> {
    fn before(&mut self) {
        self.fence.signal_rewind(0).expect("rewind");
    }

    fn run(&mut self) {
        let Commands {
            address, length, ..
        } = self.commands;
        self.context.submit(address, length).expect("submit");
        self.fence.wait(1).expect("wait");
    }
}

/// Signals that a process writes to its ring. It looks until they are done.
struct InRing<'a> {
    bell: Bell<'a>,
    packets: Pm4,
}

impl Subject for InRing<'_> {
    fn run(&mut self) {
        self.bell.run_after(&self.packets);
    }

    fn batch(&self) -> u32 {
        RING as u32
    }
}

/// Measures the group of logs.
fn logs(runner: &mut Runner, work: &Work<'_>, plan: Plan) {
    let context = work.device.create_hw_context(NODES[0]);
    let context = context.expect("create a HW context");
    let queues = [user_queue(&context), user_queue(&context)];
    let fence = native(work);
    let (address, handle) = (fence.gpu_address(), fence.handle());
    let packets = [
        (1..=RING).fold(Pm4::new(), |all, value| all.signal_native(address, value)),
        (1..=RING).fold(Pm4::new(), |all, value| {
            all.signal_native_logged(address, value, handle)
        }),
    ];
    let [plain, logged] = [0, 1].map(|number| InRing {
        bell: Bell::new(&work.paging, &queues[number]),
        packets: packets[number].clone(),
    });
    runner.group(
        LOGS,
        "a signal, one of 64 in the ring of a queue that its process fills",
        plan,
        vec![
            Participant::new(NATIVE, plain),
            Participant::new(LOGGED, logged),
        ],
    );
}

fn native(work: &Work<'_>) -> NativeFence {
    let fence = work.device.create_native_fence(0);
    fence.expect("create a native fence")
}

/// Measures the groups, and counts interrupts.
pub fn measure(runner: &mut Runner, bench: &Bench, plan: Plan) -> Vec<Count> {
    let work = Work::new(bench);
    let context = work.context(NODES[0]);
    let (fence, monitored) = (native(&work), work.fence());
    let of_native = |all: Pm4, value| all.signal_native(fence.gpu_address(), value);
    let of_monitored = |all: Pm4, value| all.signal(monitored.gpu_address(), value);
    let mut all = Vec::new();
    for count in WAITERS {
        all.push(Participant::at(
            NATIVE,
            count,
            Signals::new(&work, &context, of_native),
        ));
        all.push(Participant::at(
            MONITORED,
            count,
            Signals::new(&work, &context, of_monitored),
        ));
    }
    let event = EventFd::new().expect("make an eventfd");
    let mut waiting = 0;
    runner.staged_group(
        SIGNALS,
        "a signal of an engine, while N waits for higher values exist",
        plan,
        all,
        |count| {
            for value in waiting..count {
                for fence in [&*fence, &monitored] {
                    fence.wait_async(FAR + value, &event).expect("wait");
                }
            }
            waiting = waiting.max(count);
        },
    );
    let counts = interrupts_of(&work, &context);
    logs(runner, &work, plan);
    let (fence, monitored) = (native(&work), work.fence());
    let signals = [
        Pm4::new().signal_native(fence.gpu_address(), 1),
        Pm4::new().signal(monitored.gpu_address(), 1),
    ];
    let [first, second] = signals;
    let all = vec![
        Participant::new(NATIVE, Woken::new(&work, &context, &fence, first)),
        Participant::new(MONITORED, Woken::new(&work, &context, &monitored, second)),
    ];
    runner.group(
        WAKE,
        "a command buffer that signals a fence, until the thread runs that waits for it",
        plan,
        all,
    );
    counts
}

/// Interrupts of signals that nobody waits for (FEN-68).
fn interrupts_of(work: &Work<'_>, context: &Context) -> Vec<Count> {
    let luid = work.device.adapter().luid();
    let counted = |name: &str| Counters::of_native_fences(luid).ok()?.get(name).copied();
    let (fence, monitored) = (native(work), work.fence());
    let run = |name: &str, signal: &dyn Fn(Pm4, u64) -> Pm4| {
        let before = counted(name)?;
        let mut signals = Signals::new(work, context, signal);
        for _ in 0..COUNTED / BURST {
            signals.run();
        }
        Some(counted(name)? - before)
    };
    let native = run("interrupts", &|all, value| {
        all.signal_native(fence.gpu_address(), value)
    });
    let monitored = run("legacy-interrupts", &|all, value| {
        all.signal(monitored.gpu_address(), value)
    });
    let count = |what: &str, found: Option<u64>, expected| {
        found.map(|found| Count {
            what: what.into(),
            of: COUNTED,
            found,
            expected,
        })
    };
    let what = "interrupts of native fences that nobody waits for";
    let native = count(what, native, Some(0));
    let what = "interrupts of monitored fences that nobody waits for";
    let monitored = count(what, monitored, Some(COUNTED));
    native.into_iter().chain(monitored).collect()
}
