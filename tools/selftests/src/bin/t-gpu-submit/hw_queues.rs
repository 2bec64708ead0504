// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware queues and their progress fences (GPU-8, FEN-125 to FEN-127).

use opendxg::pm4::{Atomic, Compare, Pm4};
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, HwQueue, SignalFlags, Status};
use rustix::mm::{mprotect, MprotectFlags};
use selftests::call::refused;
use selftests::gpu::{one, reaches, Gpu, NODES, PAGE};
use selftests::rounds::rounds;
use selftests::time::a_while;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-125 a queue has a progress fence", creation)
        .test("FEN-125 GPU-2 queues that are refused", refusals)
        .test(
            "FEN-126 GPU-8 the progress fence has the value of what is done",
            progress,
        )
        .test(
            "FEN-127 nobody else signals, shares or destroys it",
            protected,
        )
        .test("FEN-127 it can be waited for by CPU and GPU", waited)
        .test("FEN-127 it dies with the queue", dies)
        .test("FEN-39 waits and signals of hardware queues", waits)
        .test("FEN-43 a signal of several hardware queues", broadcast)
        .test(
            "FEN-39 queues of one context do not wait for each other",
            independent,
        )
        .test("FEN-39 GPU-9 two hardware queues in turn", in_turn)
        .test("FEN-125 a queue of a packet context", of_packet_context)
}

fn creation() -> TestResult {
    let gpu = Gpu::new()?;
    for node in NODES {
        let context = gpu.device().create_hw_context(node)?;
        let queues: Result<Vec<HwQueue<'_>>, _> =
            (0..8).map(|_| context.create_hw_queue()).collect();
        for queue in queues? {
            let fence = queue.progress();
            ensure_eq!(fence.value(), 0);
            ensure!(fence.gpu_address() != 0 && fence.gpu_address() % 8 == 0);
            ensure!(fence.handle() != queue.handle() && fence.handle().0 != 0);
            let page = (fence.value_address() as usize & !0xfff) as *mut core::ffi::c_void;
            // SAFETY: must be refused; if not, the page only becomes writable.
            let writable =
                unsafe { mprotect(page, 4096, MprotectFlags::READ | MprotectFlags::WRITE) };
            ensure_eq!(writable, Err(rustix::io::Errno::ACCESS));
            queue.destroy()?;
        }
    }
    Ok(())
}

fn refusals() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let context = gpu.device().create_hw_context(0)?;
    let mut good = D3DKMT_CREATEHWQUEUE::zeroed();
    good.hHwContext = context.handle().0;
    for handle in [0, context.handle().0 + 0x40_0000, gpu.device().handle().0] {
        let mut arg = good;
        arg.hHwContext = handle;
        refused(&raw, &mut arg, IP)?;
    }
    for bit in 7..32 {
        let mut arg = good;
        arg.Flags = 1 << bit;
        refused(&raw, &mut arg, IP).map_err(|error| format!("flag {bit}: {error}"))?;
    }
    // The paging node takes no work from user mode.
    let paging = gpu.device().create_hw_context(3)?;
    let mut arg = good;
    arg.hHwContext = paging.handle().0;
    arg.Flags = D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission;
    refused(&raw, &mut arg, Status::NOT_SUPPORTED)?;
    for flag in [
        D3DDDI_CREATEHWQUEUEFLAGS_DisableGpuTimeout,
        D3DDDI_CREATEHWQUEUEFLAGS_NoBroadcastSignal,
        D3DDDI_CREATEHWQUEUEFLAGS_NoBroadcastWait,
    ] {
        context.create_hw_queue_with(flag, &mut [])?.destroy()?;
    }
    context.create_hw_queue_with(0, &mut [1, 2, 3])?.destroy()?;
    Ok(())
}

fn progress() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = context.create_hw_queue()?;
    let add = gpu.commands(&Pm4::new().atomic(Atomic::Add, buffer.address(), 1, 0))?;
    for (count, value) in (1..).zip([1, 2, 7, 1 << 40, u64::MAX - 1]) {
        queue.submit(value, add.address(), add.length())?;
        reaches(queue.progress(), value)?;
        ensure_eq!(queue.progress().value(), value);
        ensure_eq!(buffer.get64(0), count);
    }
    let queue = context.create_hw_queue()?;
    let held = gpu.commands(&Pm4::new().wait32(buffer.at(8), Compare::Equal, 1, u32::MAX))?;
    queue.submit(3, held.address(), held.length())?;
    queue.submit(4, add.address(), add.length())?;
    a_while();
    ensure_eq!(queue.progress().value(), 0);
    // It counts what was submitted, not what is done.
    fails_with(queue.submit(4, add.address(), add.length()), IP)?;
    fails_with(queue.submit(3, add.address(), add.length()), IP)?;
    buffer.set32(8, 1);
    reaches(queue.progress(), 4)?;
    gpu.works()
}

fn protected() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    let fence = queue.progress();
    fails_with(fence.signal(1), IP)?;
    fails_with(fence.signal_rewind(0), IP)?;
    fails_with(gpu.context().signal(&one(fence, 1)), IP)?;
    fails_with(queue.signal(&one(fence, 1)), IP)?;
    fails_with(fence.share(Access::ALL), IP)?;
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
    destroy.hSyncObject = fence.handle().0;
    refused(&raw, &mut destroy, IP)?;
    ensure_eq!(fence.value(), 0);
    gpu.finish()
}

fn waited() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    let held = gpu.commands(&Pm4::new().wait32(buffer.address(), Compare::Equal, 1, u32::MAX))?;
    queue.submit(9, held.address(), held.length())?;
    gpu.context().wait(&one(queue.progress(), 9))?;
    let mark = gpu.mark()?;
    let other = context.create_hw_queue()?;
    other.wait(&one(queue.progress(), 9))?;
    let fence = gpu.device().create_fence(0)?;
    other.signal(&one(&fence, 1))?;
    a_while();
    ensure!(!gpu.is_done(mark) && fence.value() == 0);
    buffer.set32(0, 1);
    gpu.until(mark)?;
    reaches(&fence, 1)?;
    queue.progress().wait(9)?;
    Ok(())
}

fn dies() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    let event = opendxg::EventFd::new()?;
    queue.progress().wait_async(1, &event)?;
    gpu.context().wait(&one(queue.progress(), 1))?;
    let mark = gpu.mark()?;
    let handle = queue.progress().handle().0;
    queue.destroy()?;
    // Nobody can signal it any more: its waiters are released (FEN-28, M31).
    ensure_eq!(event.wait(Some(selftests::time::soon()))?, Some(1));
    gpu.until(mark)?;
    let mut destroy = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
    destroy.hSyncObject = handle;
    refused(&raw, &mut destroy, IP)
}

fn waits() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(2)?;
    let queue = context.create_hw_queue()?;
    let (gate, fence) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    queue.wait(&one(&gate, 1))?;
    queue.signal(&one(&fence, 5))?;
    a_while();
    ensure_eq!(fence.value(), 0);
    gate.signal(1)?;
    reaches(&fence, 5)?;
    // Signals may go down.
    queue.signal(&one(&fence, 3))?;
    queue.signal(&one(&gate, 2))?;
    reaches(&gate, 2)?;
    ensure_eq!(fence.value(), 3);
    Ok(())
}

fn broadcast() -> TestResult {
    let gpu = Gpu::new()?;
    let contexts = [
        gpu.device().create_hw_context(0)?,
        gpu.device().create_hw_context(1)?,
    ];
    let (a, b) = (
        contexts[0].create_hw_queue()?,
        contexts[1].create_hw_queue()?,
    );
    let (gate, fence) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    b.wait(&one(&gate, 1))?;
    a.signal_broadcast(&[&b], &one(&fence, 1), SignalFlags::empty())?;
    a_while();
    ensure_eq!(fence.value(), 0);
    gate.signal(1)?;
    reaches(&fence, 1)
}

fn independent() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let (held, free) = (context.create_hw_queue()?, context.create_hw_queue()?);
    let (gate, fence) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    held.wait(&one(&gate, 1))?;
    held.submit(1, nop.address(), nop.length())?;
    free.submit(1, nop.address(), nop.length())?;
    reaches(free.progress(), 1)?;
    ensure_eq!(held.progress().value(), 0);
    gate.signal(1)?;
    reaches(held.progress(), 1)?;
    held.signal(&one(&fence, 1))?;
    reaches(&fence, 1)
}

fn in_turn() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let contexts = [
        gpu.device().create_hw_context(0)?,
        gpu.device().create_hw_context(1)?,
    ];
    let queues = [
        contexts[0].create_hw_queue()?,
        contexts[1].create_hw_queue()?,
    ];
    let turns = u64::from(rounds(30));
    let mut kept = Vec::new();
    for turn in 0..turns {
        for (index, queue) in (0..).zip(&queues) {
            let step = 2 * turn + index;
            let other = &queues[1 - index as usize];
            other_first(queue, other, turn + index)?;
            let add = Pm4::new().atomic(Atomic::CompareSwap, buffer.address(), step + 1, step);
            let commands = gpu.commands(&add)?;
            queue.submit(turn + 1, commands.address(), commands.length())?;
            kept.push(commands);
        }
    }
    for queue in &queues {
        reaches(queue.progress(), turns)?;
    }
    ensure_eq!(buffer.get64(0), 2 * turns);
    gpu.works()
}

fn other_first(queue: &HwQueue<'_>, other: &HwQueue<'_>, value: u64) -> TestResult {
    match value {
        0 => Ok(()),
        value => Ok(queue.wait(&one(other.progress(), value))?),
    }
}

fn of_packet_context() -> TestResult {
    let gpu = Gpu::new()?;
    let mut options = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
    options.Flags = D3DDDI_CREATECONTEXTFLAGS_HwQueueSupported;
    let context = gpu.device().create_context_with(options, &mut [])?;
    let queue = context.create_hw_queue()?;
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    queue.submit(1, nop.address(), nop.length())?;
    reaches(queue.progress(), 1)
}
