// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points that never become sync files, because users can delay them (FEN-160, FEN-161).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, Status, SyncFlags, SyncKind};
use selftests::call::refused;
use selftests::gpu::{one, Gpu, PAGE};
use selftests::sync_file::Foreign;
use selftests::{ensure_eq, fixture, Suite, TestResult};

const NS: Status = Status::NOT_SUPPORTED;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-160 FEN-161 nothing is queued, or a CPU would signal",
            by_cpu,
        )
        .test("FEN-161 behind a wait that users decide", behind_a_wait)
        .test("FEN-161 behind a wait for each other", deadlock)
        .test("FEN-161 behind an older object", behind_a_mutex)
        .test("FEN-161 a store of an engine", by_store)
        .test("FEN-161 GPU-93 queues without a timeout", without_timeout)
        .test("FEN-161 the progress of a hardware queue", progress)
        .test("FEN-161 a queue of another device", other_device)
        .test(
            "FEN-161 FEN-53 what is no fence, or may not be waited for",
            objects,
        )
}

/// The call is refused, and leaves its argument and the fence alone.
fn refuses(gpu: &Gpu, fence: &opendxg::SyncObject, value: u64, status: Status) -> TestResult {
    let mut arg = D3DKMT_CREATESYNCFILE::zeroed();
    (arg.hDevice, arg.hMonitoredFence) = (gpu.device().handle().0, fence.handle().0);
    (arg.FenceValue, arg.hSyncFile) = (value, 0x5555);
    refused(&fixture::raw()?, &mut arg, status)
}

fn by_cpu() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(3)?;
    for value in [4, 5, u64::MAX] {
        refuses(&gpu, &fence, value, NS)?;
    }
    // Signalled, but not so far.
    gpu.context().signal(&one(&fence, 10))?;
    refuses(&gpu, &fence, 11, NS)?;
    gpu.finish()
}

fn behind_a_wait() -> TestResult {
    let gpu = Gpu::new()?;
    let (gate, fence) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    gpu.context().signal(&one(&fence, 1))?;
    gpu.finish()?;
    gpu.context().wait(&one(&gate, 1))?;
    gpu.context().signal(&one(&fence, 2))?;
    refuses(&gpu, &fence, 2, NS)?;
    // Not at the head.
    let foreign = Foreign::new()?;
    let context = gpu.device().create_context(1)?;
    context.wait_sync_file(foreign.file()?)?;
    context.wait(&one(&gate, 1))?;
    context.signal(&one(&fence, 3))?;
    refuses(&gpu, &fence, 3, NS)?;
    foreign.signal()?;
    gate.signal(1)?;
    gpu.finish()
}

/// Two contexts that wait for each other never end, so nothing of them is bounded.
fn deadlock() -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let fences = [device.create_fence(0)?, device.create_fence(0)?];
    let contexts = [device.create_context(0)?, device.create_context(1)?];
    for (own, other) in [(0, 1), (1, 0)] {
        contexts[own].wait(&one(&fences[other], 1))?;
        contexts[own].signal(&one(&fences[own], 1))?;
    }
    refuses(&gpu, &fences[0], 1, NS)?;
    refuses(&gpu, &fences[1], 1, NS)?;
    // One that waits for itself.
    let alone = device.create_fence(0)?;
    let context = device.create_context(2)?;
    context.wait(&one(&alone, 1))?;
    context.signal(&one(&alone, 1))?;
    refuses(&gpu, &alone, 1, NS)?;
    for fence in fences.iter().chain([&alone]) {
        ensure_eq!(fence.value(), 0);
    }
    Ok(())
}

fn behind_a_mutex() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let mutex = SyncKind::Mutex {
        initially_owned: true,
    };
    let mutex = gpu.device().create_sync_object(mutex, SyncFlags::empty())?;
    gpu.context().wait_legacy(&[&mutex], 0)?;
    gpu.context().signal(&one(&fence, 1))?;
    refuses(&gpu, &fence, 1, NS)
}

fn by_store() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let foreign = Foreign::new()?;
    let store = gpu.commands(&Pm4::new().write64(fence.gpu_address(), 7))?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.submit(&store)?;
    refuses(&gpu, &fence, 7, NS)?;
    foreign.signal()?;
    gpu.finish()?;
    ensure_eq!(fence.value(), 7);
    let file = gpu.device().create_sync_file(&fence, 7)?;
    selftests::sync_file::ends_with(&file, selftests::sync_file::SIGNALLED)
}

/// Commands of such a queue may take for ever; what needs none is as bounded as elsewhere.
fn without_timeout() -> TestResult {
    let gpu = Gpu::new()?;
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    let fence = gpu.device().create_fence(0)?;
    let mut options = D3DKMT_CREATECONTEXTVIRTUAL::zeroed();
    options.Flags = D3DDDI_CREATECONTEXTFLAGS_DisableGpuTimeout;
    let context = gpu.device().create_context_with(options, &mut [])?;
    let foreign = Foreign::new()?;
    context.wait_sync_file(foreign.file()?)?;
    context.signal(&one(&fence, 1))?;
    drop(gpu.device().create_sync_file(&fence, 1)?);
    context.submit(nop.address(), nop.length())?;
    context.signal(&one(&fence, 2))?;
    refuses(&gpu, &fence, 2, NS)?;

    let hardware = gpu.device().create_hw_context(0)?;
    for (flags, value) in [(D3DDDI_CREATEHWQUEUEFLAGS_DisableGpuTimeout, 3), (0, 4)] {
        let queue = hardware.create_hw_queue_with(flags, &mut [])?;
        let (gate, gated) = (gpu.device().create_fence(0)?, gpu.buffer(PAGE)?);
        let held = Pm4::new().wait32(gated.address(), opendxg::pm4::Compare::Equal, 1, u32::MAX);
        let held = gpu.commands(&held)?;
        queue.submit(1, held.address(), held.length())?;
        queue.signal(&one(&gate, value))?;
        match flags {
            0 => drop(gpu.device().create_sync_file(&gate, value)?),
            _ => refuses(&gpu, &gate, value, NS)?,
        }
        gated.set32(0, 1);
        selftests::gpu::reaches(&gate, value)?;
    }
    foreign.signal()?;
    selftests::gpu::reaches(&fence, 2)?;
    gpu.finish()
}

fn progress() -> TestResult {
    let gpu = Gpu::new()?;
    let gate = gpu.device().create_fence(0)?;
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    queue.wait(&one(&gate, 1))?;
    queue.submit(1, nop.address(), nop.length())?;
    refuses(&gpu, queue.progress(), 1, NS)?;
    gate.signal(1)?;
    selftests::gpu::reaches(queue.progress(), 1)
}

fn other_device() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let fence = gpu.device().create_shareable_fence(0)?;
    let shared = fence.share(Access::ALL)?;
    let theirs = other.device().open_fence(&shared, SyncFlags::empty())?;
    let foreign = Foreign::new()?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.context().signal(&one(&fence, 1))?;
    refuses(&other, &theirs, 1, NS)?;
    // By any handle of it.
    let file = gpu.device().create_sync_file(&theirs, 1)?;
    foreign.signal()?;
    selftests::sync_file::ends_with(&file, selftests::sync_file::SIGNALLED)
}

fn objects() -> TestResult {
    let gpu = Gpu::new()?;
    let semaphore = SyncKind::Semaphore {
        initial_count: 1,
        max_count: 1,
    };
    let semaphore = gpu
        .device()
        .create_sync_object(semaphore, SyncFlags::empty())?;
    refuses(&gpu, &semaphore, 0, Status::INVALID_PARAMETER)?;
    let fence = gpu.device().create_shareable_fence(5)?;
    let shared = fence.share(Access::ALL)?;
    let deaf = gpu.device().open_fence(&shared, SyncFlags::NO_WAIT)?;
    refuses(&gpu, &deaf, 5, Status::ACCESS_DENIED)?;
    let mute = gpu.device().open_fence(&shared, SyncFlags::NO_SIGNAL)?;
    drop(gpu.device().create_sync_file(&mute, 5)?);

    let raw = fixture::raw()?;
    let mut good = D3DKMT_CREATESYNCFILE::zeroed();
    (good.hDevice, good.hMonitoredFence) = (gpu.device().handle().0, fence.handle().0);
    for (device, object) in [
        (0, fence.handle().0),
        (fence.handle().0, fence.handle().0),
        (gpu.device().handle().0, 0),
        (gpu.device().handle().0, gpu.device().handle().0),
        (gpu.device().handle().0, gpu.context().handle().0),
    ] {
        let mut arg = good;
        (arg.hDevice, arg.hMonitoredFence) = (device, object);
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}
