// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work for engines: how long it takes from its submission to its end, what engines do for each
//! other without a processor, and how fast they move bytes.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use opendxg::pm4::Pm4;
use opendxg::{Context, Device, HwQueue, MonitoredFence, PagingQueue};

use super::balls::Socket;
use super::ping_pong::PingPong;
use super::{names, Bench};
use crate::gpu::{engine_time, one, wakeups, Buffer, Commands};
use crate::machine;
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::peer::{Peer, Place};
use crate::result::Count;

/// Numbers of queues that are alive.
pub const QUEUES: [u64; 3] = [10, 1_000, 10_000];
/// Bytes that an engine copies or fills.
pub const SIZES: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Nodes with an engine each.
const NODES: [u32; 2] = [0, 1];
/// Times that a chain of waits goes from one engine to the other.
const HOPS: u32 = 32;
/// How long nothing must happen.
const A_WHILE: Duration = Duration::from_secs(1);
/// Nothing takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Names of participants.
pub mod names_of_work {
    /// SubmitCommand, SignalSynchronizationObjectFromGpu, and a wait for it.
    pub const COMMAND: &str = "SubmitCommand";
    /// SubmitCommandToHwQueue, and a wait for its progress fence.
    pub const HW_QUEUE: &str = "SubmitCommandToHwQueue";
    /// A signal of one engine releases the next command buffer of another one.
    pub const HOP: &str = "another engine";
    /// The next command buffer of the same queue.
    pub const NEXT: &str = "same queue";
    /// An engine copies.
    pub const COPY: &str = "engine copy";
    /// A thread copies.
    pub const MEMCPY: &str = "memcpy";
    /// An engine fills.
    pub const FILL: &str = "engine fill";
    /// A thread fills.
    pub const MEMSET: &str = "memset";
}
use names_of_work::*;

/// What the groups have in common.
struct Work<'a> {
    device: &'a Device,
    paging: PagingQueue,
    /// A buffer with one packet that does nothing.
    nothing: Commands,
}

impl<'a> Work<'a> {
    fn new(bench: &'a Bench) -> Self {
        let device = &bench.device;
        let paging = device.create_paging_queue().expect("create a paging queue");
        let nothing = Commands::new(&paging, &Pm4::new().nop(0));
        Self {
            device,
            paging,
            nothing,
        }
    }

    fn context(&self, node: u32) -> Context {
        self.device.create_context(node).expect("create a context")
    }

    fn fence(&self) -> MonitoredFence {
        self.device.create_fence(0).expect("create a fence")
    }
}

/// A hardware queue whose work is waited for.
struct Line<'a> {
    queue: HwQueue<'a>,
    last: Cell<u64>,
}

impl<'a> Line<'a> {
    fn new(context: &'a Context) -> Self {
        Self {
            queue: context.create_hw_queue().expect("create a HW queue"),
            last: 0.into(),
        }
    }

    /// Submits commands and waits until they are done.
    fn run(&self, commands: &Commands) {
        let value = self.last.get() + 1;
        self.last.set(value);
        self.queue
            .submit(value, commands.address, commands.length)
            .expect("submit to a HW queue");
        self.queue.progress().wait(value).expect("wait");
    }
}

/// Measures the group `submit`.
pub fn submit(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let work = Work::new(bench);
    let place = match machine::cpus() {
        0 | 1 => Place::SameProcessor,
        _ => Place::AnotherProcessor,
    };
    let peer = Peer::start(place);
    let (context, fence) = (work.context(NODES[0]), work.fence());
    let hw_context = work.device.create_hw_context(NODES[0]);
    let hw_context = hw_context.expect("create a HW context");
    let line = Line::new(&hw_context);
    let mut value = 0;
    let all = vec![
        Participant::new(COMMAND, || {
            value += 1;
            context
                .submit(work.nothing.address, work.nothing.length)
                .expect("submit");
            context.signal(&one(&fence, value)).expect("queue a signal");
            fence.wait(value).expect("wait");
        }),
        Participant::new(HW_QUEUE, || line.run(&work.nothing)),
        Participant::new(names::SOCKETPAIR, PingPong::new(&peer, Socket::new())),
    ];
    runner.group(
        "submit",
        "command buffer, until its end is known",
        plan,
        all,
    );
}

/// A run of this many command buffers.
struct Hops<F>(F);

impl<F: FnMut()> Subject for Hops<F> {
    fn run(&mut self) {
        (self.0)();
    }

    fn batch(&self) -> u32 {
        HOPS
    }
}

/// Two engines that wait for each other in turn.
struct Chain<'a> {
    work: &'a Work<'a>,
    contexts: [Context; 2],
    fences: [MonitoredFence; 2],
    begin: MonitoredFence,
    /// Chains that were queued.
    round: Cell<u64>,
}

impl<'a> Chain<'a> {
    fn new(work: &'a Work<'a>) -> Self {
        Self {
            work,
            contexts: NODES.map(|node| work.context(node)),
            fences: [work.fence(), work.fence()],
            begin: work.fence(),
            round: 0.into(),
        }
    }

    /// Queues a chain, which begins when `begin` has its number; returns the number, the fence
    /// that ends it and the value of that.
    fn queue(&self) -> (u64, &MonitoredFence, u64) {
        let round = self.round.get() + 1;
        self.round.set(round);
        // The first hop is on this side.
        self.contexts[1]
            .wait(&one(&self.begin, round))
            .expect("queue a wait");
        let mut end = (&self.fences[0], 0);
        let before = (round - 1) * u64::from(HOPS);
        for hop in 1..=u64::from(HOPS) {
            let side = (hop % 2) as usize;
            let (own, other) = (&self.fences[side], &self.fences[1 - side]);
            // The first hop of a chain waits for the last one of the chain before.
            self.contexts[side]
                .wait(&one(other, before + hop - 1))
                .expect("queue a wait");
            self.contexts[side]
                .submit(self.work.nothing.address, self.work.nothing.length)
                .expect("submit");
            self.contexts[side]
                .signal(&one(own, before + hop))
                .expect("queue a signal");
            end = (own, before + hop);
        }
        (round, end.0, end.1)
    }

    /// Queues a chain, lets it go and waits for its end.
    fn run(&self) {
        let (round, fence, value) = self.queue();
        self.begin.signal(round).expect("signal a fence");
        fence.wait(value).expect("wait");
    }
}

/// Measures the group `queued-wait`, and how often a processor was woken in between.
pub fn queued_wait(runner: &mut Runner, bench: &Bench, plan: Plan) -> Vec<Count> {
    let work = Work::new(bench);
    let chain = Chain::new(&work);
    let (context, fence) = (work.context(NODES[0]), work.fence());
    let mut value = 0;
    let next = Hops(|| {
        for _ in 0..HOPS {
            value += 1;
            context
                .submit(work.nothing.address, work.nothing.length)
                .expect("submit");
            context.signal(&one(&fence, value)).expect("queue a signal");
        }
        fence.wait(value).expect("wait");
    });
    let all = vec![
        Participant::new(HOP, Hops(|| chain.run())),
        Participant::new(NEXT, next),
    ];
    runner.group(
        "queued-wait",
        "command buffer behind the signal of the one before",
        plan,
        all,
    );
    count_wakeups(&chain)
}

/// Lets a chain run while this thread only looks at its value.
fn count_wakeups(chain: &Chain<'_>) -> Vec<Count> {
    let (round, fence, value) = chain.queue();
    chain.begin.signal(round).expect("signal a fence");
    let (began, before) = (Instant::now(), wakeups());
    while !fence.is_reached(value) {
        assert!(began.elapsed() < PATIENCE, "engines do not wake each other");
        yield_now();
    }
    vec![Count {
        what: "CPU wake-ups while engines wake each other".into(),
        of: HOPS.into(),
        found: wakeups() - before,
        expected: 0,
    }]
}

/// Measures the group `bandwidth`.
pub fn bandwidth(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let work = Work::new(bench);
    let context = work.device.create_hw_context(NODES[0]);
    let context = context.expect("create a HW context");
    let line = Line::new(&context);
    let most = SIZES[SIZES.len() - 1];
    let (source, target) = (
        Buffer::new(&work.paging, most),
        Buffer::new(&work.paging, most),
    );
    let threads = RefCell::new((vec![1_u8; most as usize], vec![2_u8; most as usize]));
    let mut all = Vec::new();
    for bytes in SIZES {
        let copy = Pm4::new().copy(target.address, source.address, bytes);
        let copy = Commands::new(&work.paging, &copy);
        let fill = Pm4::new().fill(target.address, 0x5a5a_5a5a, bytes);
        let fill = Commands::new(&work.paging, &fill);
        let (line, threads, count) = (&line, &threads, bytes as usize);
        all.push(Participant::at(COPY, bytes, move || line.run(&copy)));
        all.push(Participant::at(FILL, bytes, move || line.run(&fill)));
        all.push(Participant::at(MEMCPY, bytes, move || {
            let (from, to) = &mut *threads.borrow_mut();
            black_box(&mut to[..count]).copy_from_slice(black_box(&from[..count]));
        }));
        all.push(Participant::at(MEMSET, bytes, move || {
            black_box(&mut threads.borrow_mut().1[..count]).fill(black_box(0x5a));
        }));
    }
    runner.group(
        "bandwidth",
        "bytes moved, submission and wait included",
        plan,
        all,
    );
}

/// Measures the group `queues`.
pub fn queues(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let work = Work::new(bench);
    let context = work.device.create_hw_context(NODES[0]);
    let context = context.expect("create a HW context");
    let (line, work) = (Line::new(&context), &work);
    let mut all = Vec::new();
    for count in QUEUES {
        let (line, fence) = (&line, work.fence());
        let (packets, mut value) = (work.context(NODES[0]), 0);
        all.push(Participant::at(HW_QUEUE, count, move || {
            line.run(&work.nothing)
        }));
        all.push(Participant::at(COMMAND, count, move || {
            value += 1;
            packets
                .submit(work.nothing.address, work.nothing.length)
                .expect("submit");
            packets.signal(&one(&fence, value)).expect("queue a signal");
            fence.wait(value).expect("wait");
        }));
        let no_op = || bench.dxg.no_op().expect("no-op");
        all.push(Participant::at(names::NO_OP, count, no_op));
    }
    let mut others = Vec::new();
    runner.staged_group(
        "queues",
        "command buffer, until its end is known, while N queues exist",
        plan,
        all,
        |count| {
            others.resize_with(count as usize, || {
                context.create_hw_queue().expect("create a HW queue")
            });
        },
    );
}

/// What engines without work and queues that wait cost: nothing must run.
pub fn idle(bench: &Bench) -> Vec<Count> {
    let work = Work::new(bench);
    let begin = work.fence();
    let mut counts = vec![time_of("ns of engine threads in 1 s without work")];
    let contexts: Vec<Context> = (0..100).map(|_| work.context(NODES[0])).collect();
    for context in &contexts {
        context.wait(&one(&begin, 1)).expect("queue a wait");
        context
            .submit(work.nothing.address, work.nothing.length)
            .expect("submit");
    }
    counts.push(time_of("ns of engine threads in 1 s, 100 queues waiting"));
    begin.signal(1).expect("signal a fence");
    counts
}

/// How long the threads of the GPU run while nothing is to be done.
fn time_of(what: &str) -> Count {
    // What has just ended may need a moment to come to rest.
    sleep(A_WHILE / 4);
    let (before, threads) = engine_time();
    sleep(A_WHILE);
    let (after, _) = engine_time();
    assert!(threads > 0, "no threads of engines");
    Count {
        what: what.into(),
        of: A_WHILE.as_nanos() as u64,
        found: after - before,
        expected: 0,
    }
}
