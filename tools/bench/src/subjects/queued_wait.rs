// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines that release each other's waits: what that costs, and who is woken meanwhile.

use std::cell::Cell;
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{Context, MonitoredFence, NativeFence};

use super::across::{volley, Across};
use super::gpu::names_of_work::*;
use super::gpu::{Work, NODES};
use super::Bench;
use crate::gpu::{one, Buffer, Commands};
use crate::machine;
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::result::Count;
use crate::wakeups;

/// Times that a chain of waits goes from one engine to the other. Even.
const HOPS: u32 = 32;

/// A run of so many command buffers, or parts of them.
struct Hops<F>(F);

impl<F: FnMut()> Subject for Hops<F> {
    fn run(&mut self) {
        (self.0)();
    }

    fn batch(&self) -> u32 {
        HOPS
    }
}

/// Two engines that wait for each other in turn: each command buffer is behind a queued wait.
struct Chain<'a> {
    work: &'a Work<'a>,
    contexts: [Context; 2],
    fences: [MonitoredFence; 2],
    /// What adds 1 to the fence of each side, if a queued signal does not do it.
    stores: Option<[Commands; 2]>,
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
            stores: None,
            begin: work.fence(),
            round: 0.into(),
        }
    }

    /// One whose commands store to the fences.
    fn of_stores(work: &'a Work<'a>) -> Self {
        let mut chain = Self::new(work);
        chain.stores = Some(chain.fences.each_ref().map(|fence| {
            let add = Pm4::new().atomic(Atomic::Add, fence.gpu_address(), 1, 0);
            Commands::new(&work.paging, &add)
        }));
        chain
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
        // Each side has every other hop.
        let before = (round - 1) * u64::from(HOPS / 2);
        for hop in 1..=u64::from(HOPS) {
            let side = (hop % 2) as usize;
            let (own, other) = (&self.fences[side], &self.fences[1 - side]);
            let context = &self.contexts[side];
            // The first hop of a chain waits for the last one of the chain before.
            context
                .wait(&one(other, before + hop / 2))
                .expect("queue a wait");
            let commands = match &self.stores {
                Some(stores) => &stores[side],
                None => &self.work.nothing,
            };
            context
                .submit(commands.address, commands.length)
                .expect("submit");
            if self.stores.is_none() {
                let value = before + hop.div_ceil(2);
                context.signal(&one(own, value)).expect("queue a signal");
            }
        }
        (round, &self.fences[0], before + u64::from(HOPS / 2))
    }

    /// Queues a chain, lets it go and waits for its end.
    fn run(&self) {
        let (round, fence, value) = self.queue();
        self.begin.signal(round).expect("signal a fence");
        fence.wait(value).expect("wait");
    }
}

/// Two command buffers, one in each engine, and a fence for their end.
struct Pair<'a> {
    contexts: [Context; 2],
    sides: [Commands; 2],
    end: &'a MonitoredFence,
    round: Cell<u64>,
}

impl<'a> Pair<'a> {
    fn new(work: &Work<'_>, sides: [Pm4; 2], end: &'a MonitoredFence) -> Self {
        Self {
            contexts: NODES.map(|node| work.context(node)),
            sides: sides.map(|side| Commands::new(&work.paging, &side)),
            end,
            round: 0.into(),
        }
    }

    /// Submits both and waits until side `last` is done.
    fn run(&self, last: usize) {
        let round = self.round.get() + 1;
        self.round.set(round);
        for (context, commands) in self.contexts.iter().zip(&self.sides) {
            context
                .submit(commands.address, commands.length)
                .expect("submit");
        }
        self.contexts[last]
            .signal(&one(self.end, round))
            .expect("queue a signal");
        self.end.wait(round).expect("wait");
    }
}

/// Two command buffers, one in each engine, that hand a word to each other by packets which look at
/// it again and again. Nobody but the engines takes part.
struct Poll<'a> {
    pair: Pair<'a>,
    _word: Buffer,
}

impl<'a> Poll<'a> {
    fn new(work: &Work<'_>, end: &'a MonitoredFence) -> Self {
        let word = Buffer::new(&work.paging, 8);
        // The first side makes 1 of each 0, the second one 0 of each 1.
        let side = |from: u64| {
            let hand = Pm4::new().compare_swap_loop(word.address, 1 - from, from);
            (0..HOPS / 2).fold(Pm4::new(), |all, _| all.append(&hand))
        };
        Self {
            pair: Pair::new(work, [side(0), side(1)], end),
            _word: word,
        }
    }

    fn run(&self) {
        // The last hop is on the second side.
        self.pair.run(1);
    }
}

/// The same with native fences: who waits is told, and nobody looks meanwhile.
struct Native<'a> {
    pair: Pair<'a>,
    fences: [NativeFence; 2],
}

impl<'a> Native<'a> {
    fn new(work: &Work<'_>, end: &'a MonitoredFence) -> Self {
        let fence = |_| work.device.create_native_fence(0);
        let fences = NODES.map(|node| fence(node).expect("create a native fence"));
        let addresses = fences.each_ref().map(|fence| fence.gpu_address());
        Self {
            pair: Pair::new(work, volley(addresses, addresses, HOPS), end),
            fences,
        }
    }
}

impl Subject for Native<'_> {
    fn before(&mut self) {
        for fence in &self.fences {
            fence.signal_rewind(0).expect("rewind");
        }
    }

    fn run(&mut self) {
        // The last hop is on the second side, and the first one waits for it.
        self.pair.run(0);
    }

    fn batch(&self) -> u32 {
        HOPS
    }
}

/// Two threads that hand a word to each other, each by a store that the other one looks for. What
/// is the least that it takes two processors.
struct Bounce {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// How often the other thread has been woken up.
    round: u64,
}

/// What the two threads have.
#[derive(Default)]
struct Shared {
    /// The round that the other thread is to be ready for, and the one that it is ready for.
    /// `u64::MAX` is its end.
    wanted: AtomicU64,
    ready: AtomicU64,
    word: AtomicU64,
}

impl Shared {
    /// Looks until a word has a value.
    fn until(word: &AtomicU64, value: u64) {
        while word.load(Ordering::Acquire) != value {
            hint::spin_loop();
        }
    }

    /// The other thread: each odd value becomes the next even one.
    fn answer(&self) {
        let mut seen = 0;
        loop {
            let round = self.wanted.load(Ordering::Acquire);
            if round == u64::MAX {
                return;
            }
            if round == seen {
                thread::park();
                continue;
            }
            seen = round;
            self.ready.store(round, Ordering::Release);
            for hop in (1..u64::from(HOPS)).step_by(2) {
                Self::until(&self.word, hop);
                self.word.store(hop + 1, Ordering::Release);
            }
        }
    }
}

impl Bounce {
    fn new() -> Self {
        let shared = Arc::new(Shared::default());
        let others = shared.clone();
        let thread = thread::spawn(move || others.answer());
        Self {
            shared,
            thread: Some(thread),
            round: 0,
        }
    }

    /// Tells the other thread what it is to do next.
    fn want(&self, round: u64) {
        self.shared.wanted.store(round, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Subject for Bounce {
    fn before(&mut self) {
        self.round += 1;
        self.shared.word.store(0, Ordering::Release);
        self.want(self.round);
        Shared::until(&self.shared.ready, self.round);
    }

    fn run(&mut self) {
        for hop in (1..u64::from(HOPS)).step_by(2) {
            self.shared.word.store(hop, Ordering::Release);
            Shared::until(&self.shared.word, hop + 1);
        }
    }

    fn batch(&self) -> u32 {
        HOPS
    }
}

impl Drop for Bounce {
    fn drop(&mut self) {
        self.want(u64::MAX);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

/// Measures the group `queued-wait`, and counts who is woken.
pub fn measure(runner: &mut Runner, bench: &mut Bench, plan: Plan) -> Vec<Count> {
    let mut across = Vec::new();
    for (name, fence_doorbells) in [(RUNG_HOP, "1"), (TOLD_HOP, "0")] {
        match Across::new(&bench.dxg, fence_doorbells, HOPS) {
            Some(subject) => across.push(Participant::new(name, subject)),
            None => bench
                .missing
                .push(format!("{name}: no two adapters can be made")),
        }
    }
    let bench = &*bench;
    let work = Work::new(bench);
    let (signals, stores) = (Chain::new(&work), Chain::of_stores(&work));
    let end = work.fence();
    let native_end = work.fence();
    let poll = Poll::new(&work, &end);
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
    let mut all = vec![
        Participant::new(HOP, Hops(|| signals.run())),
        Participant::new(STORE, Hops(|| stores.run())),
        Participant::new(POLL, Hops(|| poll.run())),
        Participant::new(NATIVE_HOP, Native::new(&work, &native_end)),
        Participant::new(NEXT, next),
    ];
    all.extend(across);
    // With one processor they would look for each other until the scheduler comes.
    if machine::cpus() > 1 {
        all.push(Participant::new(BOUNCE, Bounce::new()));
    }
    runner.group(
        "queued-wait",
        "command buffer behind the signal of the one before",
        plan,
        all,
    );
    let mut counts = wakeups_of(&signals, HOP);
    counts.extend(wakeups_of(&stores, STORE));
    counts
}

/// Lets a chain run that was queued before, while this process sleeps until its end.
fn wakeups_of(chain: &Chain<'_>, how: &str) -> Vec<Count> {
    let (round, fence, value) = chain.queue();
    let woken = wakeups::during(|| {
        chain.begin.signal(round).expect("signal a fence");
        fence.wait(value).expect("wait");
    });
    let woken = woken.expect("trace the scheduler");
    let count = |who: &str, found, expected| Count {
        what: format!("{who} woken, {how}"),
        of: HOPS.into(),
        found,
        expected,
    };
    vec![
        // The end wakes this one, unless it has come before the wait for it.
        count("processes", woken.processes.saturating_sub(1), Some(0)),
        count("threads of engines", woken.engines, None),
        count("workers of the kernel", woken.workers, None),
    ]
}
