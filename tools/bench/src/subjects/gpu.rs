// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work for engines: how long it takes from its submission to its end, and how fast they move
//! bytes.

use std::cell::{Cell, RefCell};
use std::hint::black_box;

use opendxg::pm4::Pm4;
use opendxg::{Context, Device, HwQueue, MonitoredFence, PagingQueue};

use super::balls::Socket;
use super::ping_pong::PingPong;
use super::{names, Bench};
use crate::bell::{user_queue, Bell};
use crate::gpu::{one, Buffer, Commands};
use crate::machine;
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::peer::{Peer, Place};
use crate::virtgpu::{Job, VirtGpu};

/// Numbers of queues that are alive.
pub const QUEUES: [u64; 3] = [10, 1_000, 10_000];
/// The group whose operations move bytes.
pub const BANDWIDTH: &str = "bandwidth";
/// Bytes that an engine copies or fills.
pub const SIZES: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Nodes with an engine each.
pub(super) const NODES: [u32; 2] = [0, 1];

/// Names of participants.
pub mod names_of_work {
    /// SubmitCommand, SignalSynchronizationObjectFromGpu, and a wait for it.
    pub const COMMAND: &str = "SubmitCommand";
    /// SubmitCommandToHwQueue, and a wait for its progress fence.
    pub const HW_QUEUE: &str = "SubmitCommandToHwQueue";
    /// A packet in a ring, a doorbell, and a wait for its progress fence.
    pub const DOORBELL: &str = "doorbell";
    /// The same, and looking at the value of the progress fence.
    pub const DOORBELL_LOOKING: &str = "doorbell, looking at the value";
    /// A resource of virtio-gpu, until its fence is signalled.
    pub const VIRTGPU: &str = "virtio-gpu resource";
    /// The same without waiting for the fence.
    pub const VIRTGPU_CALL: &str = "virtio-gpu resource, not waited for";
    /// A signal that is queued behind a command buffer releases the next one in another engine.
    pub const HOP: &str = "another engine, queued signal";
    /// A store of a command buffer releases the next one in another engine.
    pub const STORE: &str = "another engine, its own store";
    /// Two command buffers that wait for each other by their packets.
    pub const POLL: &str = "another engine, waiting packets";
    /// The same with packets of native fences, which look once.
    pub const NATIVE_HOP: &str = "another engine, native fences";
    /// The same with an engine of another adapter, which is rung.
    pub const RUNG_HOP: &str = "another adapter, doorbells";
    /// The same with one that is told by the OS part.
    pub const TOLD_HOP: &str = "another adapter, told by the OS part";
    /// Two threads on two processors that hand a word to each other.
    pub const BOUNCE: &str = "two processors, one word";
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
pub(super) struct Work<'a> {
    pub(super) device: &'a Device,
    pub(super) paging: PagingQueue,
    /// A buffer with one packet that does nothing.
    pub(super) nothing: Commands,
}

impl<'a> Work<'a> {
    pub(super) fn new(bench: &'a Bench) -> Self {
        Self::on(&bench.device)
    }

    pub(super) fn on(device: &'a Device) -> Self {
        let paging = device.create_paging_queue().expect("create a paging queue");
        let nothing = Commands::new(&paging, &Pm4::new().nop(0));
        Self {
            device,
            paging,
            nothing,
        }
    }

    pub(super) fn context(&self, node: u32) -> Context {
        self.device.create_context(node).expect("create a context")
    }

    pub(super) fn fence(&self) -> MonitoredFence {
        self.device.create_fence(0).expect("create a fence")
    }
}

/// A hardware queue whose work is waited for.
pub(super) struct Line<'a> {
    queue: HwQueue<'a>,
    last: Cell<u64>,
}

impl<'a> Line<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        Self {
            queue: context.create_hw_queue().expect("create a HW queue"),
            last: 0.into(),
        }
    }

    /// Submits commands and waits until they are done.
    pub(super) fn run(&self, commands: &Commands) {
        let value = self.last.get() + 1;
        self.last.set(value);
        self.queue
            .submit(value, commands.address, commands.length)
            .expect("submit to a HW queue");
        self.queue.progress().wait(value).expect("wait");
    }
}

/// A command of virtio-gpu. That the resource goes is not timed.
struct VirtGpuJob<'a> {
    device: &'a VirtGpu,
    job: Option<Job<'a>>,
    waits: bool,
}

impl Subject for VirtGpuJob<'_> {
    fn run(&mut self) {
        let job = self.device.make().expect("make a resource of virtio-gpu");
        if self.waits {
            job.wait().expect("wait for virtio-gpu");
        }
        self.job = Some(job);
    }

    fn after(&mut self) {
        let job = self.job.take().expect("just made");
        // The next one begins when nothing is in progress.
        job.wait().expect("wait for virtio-gpu");
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
    let queues = [user_queue(&hw_context), user_queue(&hw_context)];
    let [bell, looked_at] = [0, 1].map(|number| Bell::new(&work.paging, &queues[number]));
    let mut value = 0;
    let mut all = vec![
        Participant::new(COMMAND, || {
            value += 1;
            context
                .submit(work.nothing.address, work.nothing.length)
                .expect("submit");
            context.signal(&one(&fence, value)).expect("queue a signal");
            fence.wait(value).expect("wait");
        }),
        Participant::new(HW_QUEUE, || line.run(&work.nothing)),
        Participant::new(DOORBELL, || bell.run()),
        Participant::new(DOORBELL_LOOKING, || looked_at.run_looking()),
        Participant::new(names::SOCKETPAIR, PingPong::new(&peer, Socket::new())),
    ];
    if let Some(device) = &bench.virtgpu {
        let job = |waits| VirtGpuJob {
            device,
            job: None,
            waits,
        };
        all.push(Participant::new(VIRTGPU, job(true)));
        all.push(Participant::new(VIRTGPU_CALL, job(false)));
    }
    runner.group(
        "submit",
        "command buffer, until its end is known",
        plan,
        all,
    );
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
        BANDWIDTH,
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
