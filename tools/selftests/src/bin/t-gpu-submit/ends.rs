// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues that end while there is work in them (FEN-46), and deadlocks.

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{Access, Context, Device, Dxg, Object, SyncFlags};
use selftests::child::{Child, Gate};
use selftests::gpu::{one, Gpu, PAGE};
use selftests::rounds::rounds;
use selftests::time::{a_while, eventually, soon};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-46 what is behind an unsatisfied wait is discarded",
            discarded,
        )
        .test("FEN-46 what can run runs to its end", runs_to_its_end)
        .test("FEN-46 a hardware queue with an unsatisfied wait", hw_queue)
        .test("FEN-46 a device with work in all its queues", device)
        .test("FEN-46 part of a signal of several contexts", broadcast)
        .test(
            "FEN-40 contexts that wait for each other can be destroyed",
            deadlock,
        )
        .test(
            "FEN-40 processes that wait for each other can be killed",
            killed,
        )
        .test(
            "FEN-28 FEN-46 the end of the last signaller releases waits",
            orphan,
        )
}

/// A context that waits for a gate, and then signals a fence.
struct Held {
    gate: opendxg::MonitoredFence,
    fence: opendxg::MonitoredFence,
    context: Context,
}

fn held(device: &Device) -> TestResult<Held> {
    let held = Held {
        gate: device.create_fence(0)?,
        fence: device.create_fence(0)?,
        context: device.create_context(0)?,
    };
    held.context.wait(&one(&held.gate, 1))?;
    held.context.signal(&one(&held.fence, 1))?;
    Ok(held)
}

fn discarded() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let add = gpu.commands(&Pm4::new().atomic(Atomic::Add, buffer.address(), 1, 0))?;
    let held = held(gpu.device())?;
    for _ in 0..10 {
        held.context.submit(add.address(), add.length())?;
    }
    held.context.signal(&one(&held.fence, 2))?;
    held.context.destroy()?;
    held.gate.signal(1)?;
    gpu.run(&Pm4::new().nop(0))?;
    a_while();
    ensure_eq!(held.fence.value(), 0);
    ensure_eq!(buffer.get64(0), 0);
    Ok(())
}

fn runs_to_its_end() -> TestResult {
    for _ in 0..rounds(10) {
        let gpu = Gpu::new()?;
        let buffer = gpu.buffer(PAGE)?;
        let add = gpu.commands(
            &Pm4::new()
                .atomic(Atomic::Add, buffer.address(), 1, 0)
                .delay(20),
        )?;
        let context = gpu.device().create_context(0)?;
        for _ in 0..50 {
            context.submit(add.address(), add.length())?;
        }
        context.destroy()?;
        eventually("everything has run", || buffer.get64(0) == 50)?;
        gpu.works()?;
    }
    Ok(())
}

fn hw_queue() -> TestResult {
    let gpu = Gpu::new()?;
    let (gate, fence) = (gpu.device().create_fence(0)?, gpu.device().create_fence(0)?);
    let nop = gpu.commands(&Pm4::new().nop(0))?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    queue.wait(&one(&gate, 1))?;
    queue.submit(1, nop.address(), nop.length())?;
    queue.signal(&one(&fence, 1))?;
    queue.destroy()?;
    context.destroy()?;
    gate.signal(1)?;
    a_while();
    ensure_eq!(fence.value(), 0);
    gpu.finish()
}

fn device() -> TestResult {
    for _ in 0..rounds(10) {
        let device = fixture::device()?;
        let shared = device.create_shareable_fence(0)?;
        let handle = shared.share(Access::ALL)?;
        let gpu = Gpu::on(&device, 0)?;
        let behind = device.create_shareable_fence(0)?;
        let add = gpu.commands(&Pm4::new().delay(100))?;
        for node in 0..3 {
            let context = device.create_context(node)?;
            context.submit(add.address(), add.length())?;
            context.wait(&one(&shared, 1))?;
            context.signal(&one(&shared, 2).with(&behind, 1))?;
            context.into_raw();
        }
        // Once its handle is gone, only what the queues have keeps it.
        let discarded = behind.weak()?;
        let other = fixture::device()?.open_fence(&handle, SyncFlags::empty())?;
        // All its handles end with the device, in an order of its own.
        let raw = fixture::raw()?;
        let mut arg: opendxg::uapi::D3DKMT_DESTROYDEVICE = opendxg::raw::Argument::zeroed();
        arg.hDevice = device.handle().0;
        selftests::call::succeeds(&raw, &mut arg)?;
        ensure!(discarded.wait_dead(Some(soon()))?);
        other.signal(1)?;
        a_while();
        ensure_eq!(other.value(), 1);
    }
    Ok(())
}

fn broadcast() -> TestResult {
    let gpu = Gpu::new()?;
    let held = held(gpu.device())?;
    let fence = gpu.device().create_fence(0)?;
    let flags = opendxg::SignalFlags::empty();
    gpu.context()
        .signal_broadcast(&[&held.context], &one(&fence, 1), flags)?;
    // The other half is discarded: then nobody waits for it.
    held.context.destroy()?;
    gpu.finish()?;
    ensure!(fence.value() <= 1);
    Ok(())
}

/// Each of two contexts waits for what the other one signals.
fn embrace(device: &Device) -> TestResult<[Context; 2]> {
    let (a, b) = (device.create_context(0)?, device.create_context(1)?);
    let (f, g) = (device.create_fence(0)?, device.create_fence(0)?);
    a.wait(&one(&f, 1))?;
    a.signal(&one(&g, 1))?;
    b.wait(&one(&g, 1))?;
    b.signal(&one(&f, 1))?;
    f.into_raw();
    g.into_raw();
    Ok([a, b])
}

fn deadlock() -> TestResult {
    let gpu = Gpu::new()?;
    let [a, b] = embrace(gpu.device())?;
    gpu.run(&Pm4::new().nop(0))?;
    a.destroy()?;
    b.destroy()?;
    drop(embrace(gpu.device())?);
    // The fences end with their device.
    gpu.works()
}

fn killed() -> TestResult {
    let gpu = Gpu::new()?;
    for _ in 0..rounds(3) {
        let fence = gpu.device().create_shareable_fence(0)?;
        let handle = fence.share(Access::ALL)?;
        let luid = gpu.device().adapter().luid();
        let ready = Gate::new()?;
        let child = Child::spawn(|| {
            let device = Dxg::open()?.open_adapter(luid)?.create_device()?;
            let fence = device.open_fence(&handle, SyncFlags::empty())?;
            let contexts = embrace(&device)?;
            contexts[0].signal(&one(&fence, 1))?;
            let gpu = Gpu::on(&device, 0)?;
            gpu.context().wait(&one(&fence, 1))?;
            let mark = gpu.mark()?;
            ready.open()?;
            Ok(gpu.done().wait(mark)?)
        })?;
        ready.wait()?;
        gpu.run(&Pm4::new().nop(0))?;
        child.kill()?;
        ensure_eq!(fence.value(), 0);
        gpu.run(&Pm4::new().nop(0))?;
    }
    Ok(())
}

/// The only one who could signal is a context that is destroyed, of a process that is gone.
fn orphan() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    gpu.context().wait(&one(&fence, 1))?;
    let mark = gpu.mark()?;
    fence.destroy()?;
    gpu.until(mark)
}
