// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work of the GPU that does not end by itself.

use opendxg::pm4::{Atomic, Compare, Interrupt, Pm4};
use opendxg::uapi::OPENDXG_RING_WRITE_POINTER;
use opendxg::{Context, GpuMap, GpuReserve, GpuUpdate, MonitoredFence, Reservation};

use crate::gpu::{one, Buffer, Commands, Gpu, PAGE, READ_WRITE};
use crate::time::eventually;
use crate::user_queue::user_queue;
use crate::TestResult;

/// What keeps engines, queues or the pager busy, or waits, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hog {
    /// A command buffer that leads back to its beginning.
    Loop,
    /// The same with copies.
    Copies,
    /// The same with interrupts.
    Interrupts,
    /// A packet that waits for a word.
    Poll,
    /// An atomic operation again and again.
    Spin,
    /// Contexts that wait for each other, with work behind.
    Embrace,
    /// Updates of GPU addresses that wait for a fence.
    Updates,
    /// A packet that takes its time.
    Delay,
    /// A ring that the process fills by itself, with a call of a buffer that leads back to its
    /// beginning. The context's queue waits for it.
    Ring,
}

impl Hog {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Loop,
        Self::Copies,
        Self::Interrupts,
        Self::Poll,
        Self::Spin,
        Self::Embrace,
        Self::Updates,
        Self::Delay,
        Self::Ring,
    ];

    /// Begins this work on the context's queue, and on others of the device where that takes
    /// several. What is returned has to live until nobody looks any more.
    pub fn begin(self, gpu: &Gpu) -> TestResult<Busy> {
        let word = gpu.buffer(4 * PAGE)?;
        let mut busy = Busy {
            commands: Vec::new(),
            contexts: Vec::new(),
            fences: Vec::new(),
            rings: Vec::new(),
            word,
        };
        let word = &busy.word;
        let count = Pm4::new().atomic(Atomic::Add, word.at(8), 1, 0);
        match self {
            Self::Loop => looped(gpu, &mut busy, count)?,
            Self::Copies => {
                let copy = count.copy(word.at(2 * PAGE), word.at(PAGE), 2 * PAGE);
                looped(gpu, &mut busy, copy)?;
            }
            Self::Interrupts => {
                let all = (0..8).fold(count, |all, _| {
                    all.release(0, opendxg::pm4::Data::None, Interrupt::Only)
                });
                looped(gpu, &mut busy, all)?;
            }
            Self::Poll => {
                let wait = count.wait32(word.at(0), Compare::Equal, 1, u32::MAX);
                once(gpu, &mut busy, &wait)?;
            }
            Self::Spin => {
                let spin = count.compare_swap_loop(word.at(0), 1, 2);
                once(gpu, &mut busy, &spin)?;
            }
            Self::Delay => once(gpu, &mut busy, &count.delay(u32::MAX))?,
            Self::Ring => ring(gpu, &mut busy, count)?,
            Self::Embrace => {
                let (f, g) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
                let other = gpu.device().create_context(1)?;
                let nop = gpu.commands(&count)?;
                gpu.context().wait(&one(&f, 1))?;
                gpu.submit(&nop)?;
                gpu.context().signal(&one(&g, 1))?;
                other.wait(&one(&g, 1))?;
                other.submit(nop.address(), nop.length())?;
                other.signal(&one(&f, 1))?;
                busy.contexts.push(other);
                busy.commands.push(nop);
                busy.fences.extend([f, g]);
            }
            Self::Updates => {
                let fence = gpu.device().create_fence(0)?;
                let reserve = GpuReserve {
                    size: 0x10000,
                    kind: Reservation::Zero,
                    ..GpuReserve::default()
                };
                let range = gpu.paging().reserve(&reserve)?;
                let map = GpuUpdate::Map {
                    address: range.address,
                    size: PAGE,
                    allocation: word.allocation(),
                    offset: 0,
                    length: 0,
                    protection: Some(READ_WRITE),
                };
                for value in 1..=20 {
                    gpu.context().update_gpu_ranges(&[map], &fence, value)?;
                }
                // A map that waits for nothing goes on beside them.
                let map = GpuMap {
                    pages: 1,
                    protection: READ_WRITE,
                    ..GpuMap::default()
                };
                gpu.paging().map(Some(word.allocation()), &map)?;
                busy.fences.push(fence);
            }
        }
        Ok(busy)
    }

    /// Whether an engine has it at all times.
    pub fn runs(self) -> bool {
        !matches!(self, Self::Embrace | Self::Updates)
    }
}

/// Work that was begun.
pub struct Busy {
    commands: Vec<Commands>,
    contexts: Vec<Context>,
    fences: Vec<MonitoredFence>,
    /// Rings and their control pages.
    rings: Vec<Buffer>,
    word: Buffer,
}

impl Busy {
    /// How far it has come, for work that an engine executes.
    pub fn turns(&self) -> u64 {
        self.word.get64(8)
    }

    /// Waits until an engine has begun with it.
    #[track_caller]
    pub fn runs(&self) -> TestResult {
        eventually("an engine executes it", || self.turns() != 0)
    }

    /// The memory that it works on.
    pub fn word(&self) -> &Buffer {
        &self.word
    }

    /// How many things it is made of besides its memory.
    pub fn parts(&self) -> usize {
        self.commands.len() + self.contexts.len() + self.fences.len() + self.rings.len()
    }
}

/// Commands that are executed again and again.
fn endless(gpu: &Gpu, body: Pm4) -> TestResult<Commands> {
    // The buffer has its own address in it.
    let chain = 4;
    let bytes = (body.len() as u64 + chain) * 4;
    let commands = gpu.commands(&body.clone().pad_to(body.len() + chain as usize))?;
    let body = body.chain(commands.address(), bytes);
    commands.buffer().write(0, body.words());
    Ok(commands)
}

/// Submits commands that are executed again and again.
fn looped(gpu: &Gpu, busy: &mut Busy, body: Pm4) -> TestResult {
    let commands = endless(gpu, body)?;
    gpu.submit(&commands)?;
    busy.commands.push(commands);
    Ok(())
}

/// Has a ring call them. The queue and its doorbell go with their context.
fn ring(gpu: &Gpu, busy: &mut Busy, body: Pm4) -> TestResult {
    let commands = endless(gpu, body)?;
    let call = Pm4::new().indirect(commands.address(), commands.length().into());
    let context = gpu.device().create_hw_context(1)?;
    {
        let queue = user_queue(&context)?;
        let (ring, control) = (gpu.buffer(PAGE)?, gpu.buffer(PAGE)?);
        let doorbell = queue.create_doorbell(ring.allocation(), control.allocation())?;
        let written = call.len() as u64;
        gpu.context().wait(&one(queue.progress(), 1))?;
        doorbell.set_last_queued(1);
        ring.write(0, call.words());
        control.set64(OPENDXG_RING_WRITE_POINTER.into(), written);
        doorbell.submit(written)?;
        let _with_context = (doorbell.into_raw(), queue.into_raw());
        busy.rings.extend([ring, control]);
    }
    busy.commands.push(commands);
    busy.contexts.push(context);
    Ok(())
}

fn once(gpu: &Gpu, busy: &mut Busy, commands: &Pm4) -> TestResult {
    let commands = gpu.commands(commands)?;
    gpu.submit(&commands)?;
    busy.commands.push(commands);
    Ok(())
}
