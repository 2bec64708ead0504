// SPDX-License-Identifier: MIT OR Apache-2.0
//! Somebody who makes all calls about memory, queues and work of the GPU, one after the other in a
//! random order, with everything that they need left from calls before: for what ends in the middle
//! of them.

use opendxg::pm4::Pm4;
use opendxg::{
    Access, Allocation, Context, Device, EventFd, EvictFlags, ExecutionState, GpuMap, GpuReserve,
    GpuUpdate, MemoryGroup, MonitoredFence, PagingQueue, Reservation, ResidentFlags, SignalFlags,
    Status, SyncFlags, SyncKind, SyncObject,
};
use selftests::gpu::{one, Commands, Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::rounds::Dice;
use selftests::time::eventually;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::TestResult;

/// Contexts, allocations, ranges and paging queues at a time.
const MOST: usize = 4;
/// Pages of an allocation: more than a call makes resident by itself, so that the driver's worker
/// does it.
const PAGES: u64 = 1500;

/// Who makes calls.
pub(crate) struct Caller {
    dice: Dice,
    contexts: Vec<Context>,
    /// With how often each is resident.
    memories: Vec<(Allocation, u32)>,
    /// Reserved ranges of a block each.
    ranges: Vec<u64>,
    queues: Vec<PagingQueue>,
    semaphore: SyncObject,
    event: EventFd,
    fence: MonitoredFence,
    /// What the fence is signalled to next, by the CPU.
    next: u64,
    /// Orders updates.
    updates: MonitoredFence,
    nop: Commands,
    gpu: Gpu,
}

type Step = fn(&mut Caller) -> TestResult;

/// All of them.
const STEPS: [Step; 21] = [
    Caller::contexts,
    Caller::hw_queue,
    Caller::user_queue,
    Caller::paging_queues,
    Caller::memories,
    Caller::memories,
    Caller::contents,
    Caller::reserve,
    Caller::map,
    Caller::residency,
    Caller::residency,
    Caller::submit,
    Caller::signals,
    Caller::waits,
    Caller::waits,
    Caller::by_cpu,
    Caller::by_cpu,
    Caller::legacy,
    Caller::update,
    Caller::update,
    Caller::ask,
];

impl Caller {
    pub(crate) fn new(device: &Device, seed: u64) -> TestResult<Self> {
        let mut dice = Dice::new(seed);
        let gpu = Gpu::on(device, dice.below(3))?;
        let semaphore = SyncKind::Semaphore {
            max_count: 1_000_000,
            initial_count: 1,
        };
        Ok(Self {
            contexts: vec![device.create_context(0)?, device.create_context(1)?],
            memories: Vec::new(),
            ranges: Vec::new(),
            queues: vec![device.create_paging_queue()?],
            semaphore: device.create_sync_object(semaphore, SyncFlags::empty())?,
            event: EventFd::new()?,
            fence: device.create_fence(0)?,
            next: 1,
            updates: device.create_fence(1)?,
            nop: gpu.commands(&Pm4::new().delay(10))?,
            dice,
            gpu,
        })
    }

    /// One of the calls, or a few of one kind.
    pub(crate) fn step(&mut self) -> TestResult {
        let number = self.pick(STEPS.len());
        STEPS[number](self).map_err(|error| format!("kind {number}: {error}").into())
    }

    fn device(&self) -> &Device {
        self.gpu.device()
    }

    fn pick(&mut self, count: usize) -> usize {
        self.dice.below(count as u32) as usize
    }

    fn context(&mut self) -> &Context {
        let number = self.pick(self.contexts.len());
        &self.contexts[number]
    }

    fn queue(&mut self) -> &PagingQueue {
        let number = self.pick(self.queues.len());
        &self.queues[number]
    }

    fn contexts(&mut self) -> TestResult {
        let node = self.dice.below(3);
        if self.contexts.len() < MOST {
            self.contexts.push(self.device().create_context(node)?);
        } else {
            let number = self.pick(MOST);
            self.contexts.swap_remove(number).destroy()?;
        }
        let priority = self.dice.below(7) as i32 - 7;
        let context = self.context();
        context.set_priority(priority)?;
        context.set_priority_in_process(priority)?;
        context.priority()?;
        context.priority_in_process()?;
        Ok(())
    }

    fn hw_queue(&mut self) -> TestResult {
        let (node, later) = (self.dice.below(3), self.next);
        let (at, length) = (self.nop.address(), self.nop.length());
        let context = self.device().create_hw_context(node)?;
        let (first, second) = (context.create_hw_queue()?, context.create_hw_queue()?);
        first.submit(1, at, length)?;
        first.wait(&one(&self.fence, later))?;
        first.submit(2, at, length)?;
        let broadcast = one(&self.updates, 1);
        first.signal_broadcast(&[&second], &broadcast, SignalFlags::empty())?;
        second.wait(&one(first.progress(), 1))?;
        second.signal(&one(self.gpu.done(), 0))?;
        // With what is left in them.
        drop(first);
        Ok(second.destroy()?)
    }

    /// A queue that is filled by hand, with work that may be left in it.
    fn user_queue(&mut self) -> TestResult {
        let (node, ends) = (self.dice.below(3), self.pick(3));
        let context = self.device().create_hw_context(node)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&self.gpu, &queue)?;
        for _ in 0..self.pick(4) {
            user.submit(&Pm4::new().delay(10))?;
        }
        match ends {
            // The doorbell, the queue, or the context first.
            0 => drop(user),
            1 => {
                let _with_queue = user.into_doorbell().into_raw();
                queue.destroy()?;
            }
            _ => {
                let _with_context = (user.into_doorbell().into_raw(), queue.into_raw());
                context.destroy()?;
            }
        }
        Ok(())
    }

    fn paging_queues(&mut self) -> TestResult {
        if self.queues.len() < MOST {
            let queue = self.device().create_paging_queue()?;
            self.queues.push(queue);
        } else {
            // It waits for what the queue still has to do.
            let number = self.pick(MOST);
            self.queues.swap_remove(number).destroy()?;
        }
        Ok(())
    }

    fn memories(&mut self) -> TestResult {
        if self.memories.len() == MOST {
            let number = self.pick(MOST);
            return Ok(self.memories.swap_remove(number).0.destroy()?);
        }
        let pages = [1, 3, PAGES][self.pick(3)];
        let memory = match self.pick(2) {
            0 => self.gpu.allocate(pages * PAGE)?,
            _ => self.gpu.allocate_local(pages * PAGE)?,
        };
        self.memories.push((memory, 0));
        Ok(())
    }

    fn contents(&mut self) -> TestResult {
        let value = self.dice.below(256) as u8;
        if let Some((memory, _)) = self.memories.first() {
            memory.lock_write()?.write(0, &[value]);
            memory.residency()?;
            memory.set_priority(opendxg::uapi::D3DDDI_ALLOCATIONPRIORITY_HIGH)?;
        }
        Ok(())
    }

    fn reserve(&mut self) -> TestResult {
        if self.ranges.len() == MOST {
            let number = self.pick(MOST);
            let range = self.ranges.swap_remove(number);
            return Ok(self.device().adapter().free_gpu_range(range, BLOCK)?);
        }
        let zero = GpuReserve {
            size: BLOCK,
            kind: Reservation::Zero,
            ..GpuReserve::default()
        };
        let range = self.queue().reserve(&zero)?;
        self.ranges.push(range.address);
        Ok(())
    }

    fn map(&mut self) -> TestResult {
        let base = match self.pick(2) {
            0 => 0,
            _ => self.ranges.first().copied().unwrap_or(0),
        };
        let map = GpuMap {
            base,
            pages: 1,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let Some((memory, _)) = self.memories.last() else {
            return Ok(());
        };
        let range = self.queues[0].map(Some(memory), &map)?;
        if base == 0 && self.dice.below(2) == 0 {
            let adapter = self.device().adapter();
            adapter.free_gpu_range(range.address, PAGE)?;
        }
        Ok(())
    }

    fn residency(&mut self) -> TestResult {
        let number = self.pick(MOST);
        let queue = self.pick(self.queues.len());
        let Some((memory, count)) = self.memories.get_mut(number) else {
            return Ok(());
        };
        if *count == 3 {
            *count = 0;
            let list = [&*memory; 3];
            self.gpu.device().evict(&list, EvictFlags::empty())?;
            return Ok(());
        }
        match self.queues[queue].make_resident(&[&*memory], ResidentFlags::empty()) {
            Ok(_) => *count += 1,
            // There may be no local memory left.
            Err(error) if error.status() == Status::NO_MEMORY => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn submit(&mut self) -> TestResult {
        let (at, length) = (self.nop.address(), self.nop.length());
        match self.pick(2) {
            0 => self.context().submit(at, length)?,
            _ => self
                .gpu
                .context()
                .submit_broadcast(&[self.all().0], at, length, &[])?,
        }
        Ok(())
    }

    /// The first context, and the fence that the CPU signals.
    fn all(&self) -> (&Context, &MonitoredFence) {
        (&self.contexts[0], &self.fence)
    }

    fn signals(&mut self) -> TestResult {
        let (other, _) = self.all();
        let (context, done) = (self.gpu.context(), one(self.gpu.done(), 0));
        context.signal(&done)?;
        context.signal_broadcast(&[other], &done, SignalFlags::SIGNAL_AT_SUBMISSION)?;
        Ok(context.signal_event(&[other], &self.event)?)
    }

    /// What is behind waits for the CPU.
    fn waits(&mut self) -> TestResult {
        let later = one(&self.fence, self.next);
        Ok(self.context().wait(&later)?)
    }

    fn by_cpu(&mut self) -> TestResult {
        self.fence.wait_async(self.next, &self.event)?;
        self.fence.signal(self.next)?;
        self.fence.wait(self.next)?;
        self.next += 1;
        if self.pick(4) == 0 {
            let fence = self.device().create_shareable_fence(0)?;
            let handle = fence.share(Access::ALL)?;
            let another = self.device().open_fence(&handle, SyncFlags::empty())?;
            self.context().wait(&one(&another, 1))?;
            // Nobody signals it; its end releases the wait.
            drop(fence);
        }
        Ok(())
    }

    fn legacy(&mut self) -> TestResult {
        let number = self.pick(self.contexts.len());
        let (context, semaphore) = (&self.contexts[number], &self.semaphore);
        context.wait_legacy(&[semaphore], 0)?;
        let mutex = SyncKind::Mutex {
            initially_owned: false,
        };
        let mutex = self
            .device()
            .create_sync_object(mutex, SyncFlags::empty())?;
        context.wait_legacy(&[&mutex], 0)?;
        context.signal_legacy(&[&mutex], 0)?;
        Ok(context.signal_legacy(&[semaphore], 0)?)
    }

    /// Updates of this context wait for each other, and some for the CPU.
    fn update(&mut self) -> TestResult {
        let (Some(&address), Some((memory, _))) = (self.ranges.last(), self.memories.first())
        else {
            return Ok(());
        };
        let map = GpuUpdate::Map {
            address: address + 2 * PAGE,
            size: PAGE,
            allocation: memory,
            offset: 0,
            length: PAGE,
            protection: None,
        };
        let copy = GpuUpdate::Copy {
            source: address,
            destination: address + 8 * PAGE,
            size: 4 * PAGE,
        };
        let context = self.gpu.context();
        context.update_gpu_ranges_now(&[map, copy], &self.updates, 1)?;
        let last = self.contexts.last().ok_or("no context")?;
        let waiting = last.device().create_fence(0)?;
        last.update_gpu_ranges(&[copy, map], &waiting, 1)?;
        Ok(waiting.signal(1)?)
    }

    fn ask(&mut self) -> TestResult {
        let adapter = self.device().adapter();
        adapter.video_memory(MemoryGroup::Local)?;
        // These find the adapter by its LUID, which a removal takes away before it stops devices.
        for asked in [
            adapter.segment_statistics(0).map(drop),
            adapter.segment_and_node_count().map(drop),
        ] {
            if let Err(error) = asked {
                let device = self.device();
                eventually(&format!("{error}, and the end of the device"), || {
                    matches!(device.execution_state(), Ok(ExecutionState::Stopped))
                })?;
                return Err(error.into());
            }
        }
        adapter.flush_heap_transitions()?;
        adapter.clock_calibration(0)?;
        self.device().execution_state()?;
        self.device().page_fault()?;
        Ok(())
    }
}
