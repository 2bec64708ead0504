// SPDX-License-Identifier: MIT OR Apache-2.0
//! Doorbells: how long it takes from a ring until an engine executes something, and what it costs
//! if there are fewer of them than queues.

use std::cell::Cell;
use std::time::{Duration, Instant};

use opendxg::pm4::Pm4;
use opendxg::{Context, Device, HwQueue, PagingQueue};
use rustix::time::{clock_gettime, ClockId};

use super::gpu::NODES;
use super::Bench;
use crate::adapter::SoftAdapter;
use crate::bell::{user_queue, Bell};
use crate::gpu::{Buffer, PAGE};
use crate::measure::{Participant, Plan, Runner, Subject};

/// The group of rings.
pub const START: &str = "doorbell-start";
/// The group of queues that share doorbells.
pub const SHARED: &str = "doorbells";
/// Numbers of queues.
pub const QUEUES: [u64; 4] = [2, 4, 16, 64];

/// Names of participants.
pub mod names_of_rings {
    /// The engine sleeps, and the ring is a page fault.
    pub const ASLEEP: &str = "engine asleep";
    /// Right behind other work of the queue, when the engine may still look at the ring.
    pub const AWAKE: &str = "right behind other work";
    /// The queues take one physical doorbell from each other.
    pub const ONE: &str = "one doorbell";
    /// Each queue has a physical doorbell.
    pub const EACH: &str = "a doorbell each";
}
use names_of_rings::*;

/// After this an engine with nothing to do sleeps.
const SLEEPS_AFTER: Duration = Duration::from_micros(200);

/// From just before the ring until the first packet stores the clock of the GPU, which is
/// CLOCK_MONOTONIC.
struct Start<'a> {
    bell: &'a Bell<'a>,
    clock: Buffer,
    is_asleep: bool,
    began: Cell<u64>,
}

/// The clock of the GPU.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Subject for Start<'_> {
    fn before(&mut self) {
        if self.is_asleep {
            let end = Instant::now() + SLEEPS_AFTER;
            while Instant::now() < end {
                std::thread::yield_now();
            }
        } else {
            // The engine looks for a while after it was found with something to do.
            self.bell.run_looking();
        }
    }

    fn run(&mut self) {
        let packets = Pm4::new().timestamp(self.clock.address);
        self.began.set(now_ns());
        self.bell.run_after(&packets);
    }

    fn own_ns(&mut self) -> Option<u64> {
        let bytes = self.clock.allocation.lock().expect("map the clock");
        let mut stored = [0; 8];
        bytes.read(0, &mut stored);
        Some(u64::from_le_bytes(stored).saturating_sub(self.began.get()))
    }
}

/// Measures the group `doorbell-start`.
pub fn start(runner: &mut Runner, bench: &Bench, plan: Plan) {
    let paging = bench.device.create_paging_queue();
    let paging = paging.expect("create a paging queue");
    let context = bench.device.create_hw_context(NODES[0]);
    let context = context.expect("create a HW context");
    let queues = [user_queue(&context), user_queue(&context)];
    let bells = [0, 1].map(|number| Bell::new(&paging, &queues[number]));
    let start = |number: usize, is_asleep| Start {
        bell: &bells[number],
        clock: Buffer::new(&paging, PAGE),
        is_asleep,
        began: 0.into(),
    };
    let all = vec![
        Participant::new(ASLEEP, start(0, true)),
        Participant::new(AWAKE, start(1, false)),
    ];
    runner.group(
        START,
        "from a store to a doorbell until an engine executes the first packet",
        plan,
        all,
    );
}

/// A device with a context of queues.
struct Work {
    paging: PagingQueue,
    context: Context,
}

impl Work {
    fn new(device: &Device) -> Self {
        let paging = device.create_paging_queue();
        let context = device.create_hw_context(NODES[0]);
        Self {
            paging: paging.expect("create a paging queue"),
            context: context.expect("create a HW context"),
        }
    }

    fn queues(&self, count: u64) -> Vec<HwQueue<'_>> {
        (0..count).map(|_| user_queue(&self.context)).collect()
    }
}

/// Measures the group `doorbells`.
pub fn shared(runner: &mut Runner, bench: &mut Bench, plan: Plan) {
    let one = [("doorbells", "1")];
    let Some((_adapter, few)) = SoftAdapter::new(&bench.dxg, "doorbells", &one) else {
        bench
            .missing
            .push("doorbells: no adapter with one doorbell can be made".into());
        return;
    };
    let works = [(ONE, Work::new(&few)), (EACH, Work::new(&bench.device))];
    let all_queues: Vec<_> = works
        .iter()
        .flat_map(|(name, work)| QUEUES.map(|count| (*name, work, work.queues(count))))
        .collect();
    let all = all_queues
        .iter()
        .map(|(name, work, queues)| {
            let bells: Vec<_> = queues
                .iter()
                .map(|queue| Bell::new(&work.paging, queue))
                .collect();
            let count = bells.len();
            let mut turn = 0;
            Participant::at(name, count as u64, move || {
                // The one that has rung longest ago.
                turn = (turn + 1) % count;
                bells[turn].run();
            })
        })
        .collect();
    runner.group(
        SHARED,
        "a packet of each of N queues in turn, until its end is known",
        plan,
        all,
    );
}
