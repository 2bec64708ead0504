// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: what it has, and in which order its work is done.
//!
//! Queues run side by side, but every submission waits for the one before and signals a fence
//! behind itself. So the model can do at once what the engines do some time.

use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, Context, Device, Dxg, FenceValues, GpuMap, MonitoredFence, PagingQueue,
    ResidentFlags, Status,
};
use selftests::gpu::{one, reaches, Commands, Gpu, PAGE, READ_WRITE};
use selftests::rounds::Dice;
use selftests::{ensure, ensure_eq, fails_with, TestResult};

use super::memory::Memory;

/// What a thing costs in handles.
#[derive(Clone, Copy, Default)]
struct Costs {
    allocation: u64,
    context: u64,
    paging: u64,
}

/// Who else is in the process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbours {
    /// Nobody: all handles are those of the program.
    None,
    /// Other programs, on the same device.
    Threads,
}

/// A program.
pub(crate) struct Program {
    neighbours: Neighbours,
    pub(crate) dice: Dice,
    pub(crate) memories: Vec<Memory>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) queues: Vec<PagingQueue>,
    /// Paging that nobody has waited for: the queue, and the value.
    unpaged: Vec<(usize, u64)>,
    /// Command buffers of work that may still run.
    commands: Vec<Commands>,
    /// Reaches the number of a submission when that is done.
    order: MonitoredFence,
    submitted: u64,
    /// Held back until it has reached this value.
    gate: MonitoredFence,
    gated: u64,
    pub(crate) gpu: Gpu,
    dxg: Dxg,
    costs: Costs,
    /// Handles of everything that is not counted by cost.
    others: u64,
}

impl Program {
    pub(crate) fn new(device: &Device, seed: u64, neighbours: Neighbours) -> TestResult<Self> {
        let dxg = Dxg::open()?;
        let gpu = Gpu::on(device, 0)?;
        let mut program = Self {
            neighbours,
            dice: Dice::new(seed),
            memories: Vec::new(),
            contexts: Vec::new(),
            queues: Vec::new(),
            unpaged: Vec::new(),
            commands: Vec::new(),
            order: device.create_fence(0)?,
            submitted: 0,
            gate: device.create_fence(0)?,
            gated: 0,
            others: 0,
            costs: Costs::default(),
            gpu,
            dxg,
        };
        if neighbours == Neighbours::None {
            program.others = program.handles()?;
            program.costs = Costs {
                allocation: program.cost_of(|program| program.gpu.allocate(PAGE))?,
                context: program
                    .cost_of(|program| Ok(program.gpu.device().create_context(0)?))?,
                paging: program
                    .cost_of(|program| Ok(program.gpu.device().create_paging_queue()?))?,
            };
        }
        program.contexts.push(device.create_context(1)?);
        program.queues.push(device.create_paging_queue()?);
        program.count()?;
        Ok(program)
    }

    /// The handles of this process.
    fn handles(&self) -> TestResult<u64> {
        Ok(self.dxg.counters()?.process_handles)
    }

    fn cost_of<T>(&self, make: impl FnOnce(&Self) -> TestResult<T>) -> TestResult<u64> {
        let before = self.handles()?;
        let thing = make(self)?;
        let cost = self.handles()? - before;
        ensure!(cost > 0, "a handle costs nothing");
        drop(thing);
        ensure_eq!(self.handles()?, before);
        Ok(cost)
    }

    /// Compares the number of handles with the model, where nobody else has any.
    pub(crate) fn count(&self) -> TestResult {
        if self.neighbours != Neighbours::None {
            return Ok(());
        }
        let number = |count: usize| count as u64;
        let allocations = number(self.memories.len() + self.commands.len());
        let expected = self.others
            + allocations * self.costs.allocation
            + number(self.contexts.len()) * self.costs.context
            + number(self.queues.len()) * self.costs.paging;
        ensure_eq!(self.handles()?, expected, "handles");
        Ok(())
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The limits are small.
        u64::from(self.dice.below(limit as u32))
    }

    /// One of so many things.
    pub(crate) fn pick(&mut self, count: usize) -> usize {
        self.dice.below(count as u32) as usize
    }

    pub(crate) fn allocate(&mut self, pages: u64) -> TestResult<Allocation> {
        match self.below(2) {
            0 => self.gpu.allocate(pages * PAGE),
            _ => self.gpu.allocate_local(pages * PAGE),
        }
    }

    /// Remembers paging, or waits for it.
    pub(crate) fn paged(&mut self, queue: usize, value: u64) -> TestResult {
        match self.below(2) {
            0 => reaches(self.queues[queue].fence(), value),
            _ => {
                self.unpaged.push((queue, value));
                Ok(())
            }
        }
    }

    /// Waits for all paging.
    pub(crate) fn all_paged(&mut self) -> TestResult {
        for (queue, value) in core::mem::take(&mut self.unpaged) {
            reaches(self.queues[queue].fence(), value)?;
        }
        Ok(())
    }

    /// Submits commands behind all others.
    pub(crate) fn submit(&mut self, commands: &Pm4) -> TestResult {
        let commands = self.gpu.commands(commands)?;
        let number = self.pick(self.contexts.len());
        let context = &self.contexts[number];
        let mut before = FenceValues::new().with(&self.order, self.submitted);
        for (queue, value) in self.unpaged.drain(..) {
            before.push(self.queues[queue].fence(), value);
        }
        context.wait(&before)?;
        context.submit(commands.address(), commands.length())?;
        self.submitted += 1;
        context.signal(&one(&self.order, self.submitted))?;
        // What runs keeps it.
        if self.below(2) == 0 {
            self.commands.push(commands);
        }
        Ok(())
    }

    /// Holds back one of the contexts, and by that all that is submitted later to any of them.
    pub(crate) fn close_gate(&mut self) -> TestResult {
        let number = self.pick(self.contexts.len());
        let context = &self.contexts[number];
        self.gated += 1;
        context.wait(&one(&self.order, self.submitted))?;
        context.wait(&one(&self.gate, self.gated))?;
        self.submitted += 1;
        Ok(context.signal(&one(&self.order, self.submitted))?)
    }

    pub(crate) fn open_gate(&mut self) -> TestResult {
        Ok(self.gate.signal(self.gated)?)
    }

    /// Waits until all that was submitted is done.
    #[track_caller]
    pub(crate) fn settle(&mut self) -> TestResult {
        self.open_gate()?;
        reaches(&self.order, self.submitted)?;
        self.all_paged()?;
        self.commands.clear();
        self.gpu.works()
    }

    /// Work in a hardware queue, behind all others.
    pub(crate) fn in_hw_queue(&mut self, commands: &Pm4) -> TestResult {
        self.settle()?;
        let node = self.dice.below(3);
        let commands = self.gpu.commands(commands)?;
        let context = self.gpu.device().create_hw_context(node)?;
        let queue = context.create_hw_queue()?;
        queue.wait(&one(&self.order, self.submitted))?;
        queue.submit(7, commands.address(), commands.length())?;
        fails_with(
            queue.submit(7, commands.address(), commands.length()),
            Status::INVALID_PARAMETER,
        )?;
        self.submitted += 1;
        queue.signal(&one(&self.order, self.submitted))?;
        reaches(&self.order, self.submitted)?;
        ensure_eq!(queue.progress().value(), 7);
        queue.destroy()?;
        Ok(context.destroy()?)
    }

    /// Calls that are refused and change nothing.
    pub(crate) fn refused(&mut self) -> TestResult {
        const IP: Status = Status::INVALID_PARAMETER;
        let number = self.pick(self.contexts.len());
        let (context, paging) = (&self.contexts[number], &self.queues[0]);
        fails_with(context.submit(PAGE + 2, 4), IP)?;
        fails_with(context.submit(PAGE, 6), IP)?;
        fails_with(context.submit(PAGE, 0), IP)?;
        fails_with(paging.make_resident(&[], ResidentFlags::empty()), IP)?;
        let map = GpuMap {
            base: 1,
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        if let Some(memory) = self.memories.first() {
            fails_with(paging.map(Some(&memory.allocation), &map), IP)?;
        }
        let adapter = self.gpu.device().adapter();
        fails_with(adapter.free_gpu_range(0x6000_0000_0000, PAGE), IP)?;
        self.count()
    }

    /// Ends everything in a random order, and compares what is left.
    pub(crate) fn end(mut self) -> TestResult {
        self.settle()?;
        for memory in &self.memories {
            memory.check()?;
        }
        // Work is under way again while it ends.
        self.submit(&Pm4::new().delay(100))?;
        self.open_gate()?;
        while !(self.memories.is_empty() && self.contexts.is_empty() && self.queues.is_empty()) {
            match self.below(3) {
                0 if !self.memories.is_empty() => {
                    let number = self.pick(self.memories.len());
                    self.memories.swap_remove(number).allocation.destroy()?;
                }
                1 if !self.contexts.is_empty() => {
                    let number = self.pick(self.contexts.len());
                    self.contexts.swap_remove(number).destroy()?;
                }
                2 => {
                    if let Some(queue) = self.queues.pop() {
                        queue.destroy()?;
                    }
                }
                _ => {}
            }
            self.count()?;
        }
        self.commands.clear();
        self.count()?;
        self.gpu.works()
    }
}
