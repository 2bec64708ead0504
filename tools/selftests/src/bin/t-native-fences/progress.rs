// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress fences of HW queues, which are native (FEN-125).

use opendxg::pm4::{Compare, Pm4};
use opendxg::uapi::D3DDDI_CREATEHWQUEUEFLAGS_NativeProgressFence as NATIVE_PROGRESS;
use opendxg::EventFd;
use selftests::gpu::{Gpu, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_native_fences::{is_silent, is_told, Counts};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-125 an adapter without native fences", monitored)
        .test("FEN-125 FEN-68 a queue of the kernel", of_kernel)
        .test("FEN-125 a queue that its process fills", of_process)
        .test(
            "FEN-125 an engine waits for the progress of a queue",
            waited,
        )
}

fn monitored() -> TestResult {
    let adapter = SoftAdapter::new("t-native-fences-progress")?;
    adapter.set("native_fences", "0")?;
    adapter.set("enabled", "1")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue_with(NATIVE_PROGRESS, &mut [])?;
    ensure!(!queue.has_native_progress());
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    queue.submit(1, commands.address(), commands.length())?;
    queue.progress().wait(1)?;
    Ok(())
}

fn of_kernel() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = context.create_hw_queue()?;
    ensure!(queue.has_native_progress());
    let progress = queue.progress();
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    let before = Counts::of(&gpu)?.interrupts();
    // Nobody waits: no interrupt.
    for value in 1..=10 {
        queue.submit(value, commands.address(), commands.length())?;
    }
    eventually("the last one", || progress.is_reached(10))?;
    gpu.works()?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    // Somebody waits for the second one.
    let held = Pm4::new().wait32(buffer.address(), Compare::Equal, 1, u32::MAX);
    let held = gpu.commands(&held)?;
    let event = EventFd::new()?;
    progress.wait_async(12, &event)?;
    for value in 11..=12 {
        queue.submit(value, held.address(), held.length())?;
    }
    is_silent(&event)?;
    buffer.set32(0, 1);
    is_told(&event)?;
    // Nobody waits any more.
    queue.submit(13, commands.address(), commands.length())?;
    eventually("the last one", || progress.is_reached(13))?;
    gpu.works()?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before + 1);
    Ok(())
}

fn of_process() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(0)?;
    let queue = user_queue(&context)?;
    ensure!(queue.has_native_progress());
    let user = UserQueue::connected(&gpu, &queue)?;
    let before = Counts::of(&gpu)?.interrupts();
    user.run(&Pm4::new())?;
    user.run(&Pm4::new())?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    let event = EventFd::new()?;
    queue.progress().wait_async(3, &event)?;
    is_silent(&event)?;
    user.submit(&Pm4::new())?;
    is_told(&event)?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before + 1);
    Ok(())
}

/// A ring waits for a queue of the kernel, and another one of the kernel for the ring.
fn waited() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let contexts = [
        gpu.device().create_hw_context(0)?,
        gpu.device().create_hw_context(1)?,
    ];
    let [first, last] = [
        contexts[0].create_hw_queue()?,
        contexts[0].create_hw_queue()?,
    ];
    let ring = user_queue(&contexts[1])?;
    let user = UserQueue::connected(&gpu, &ring)?;
    let before = Counts::of(&gpu)?.interrupts();
    let done = user.submit(&Pm4::new().wait_native(first.progress().gpu_address(), 1))?;
    let behind = Pm4::new().wait_native(ring.progress().gpu_address(), done);
    let behind = gpu.commands(&behind)?;
    last.submit(1, behind.address(), behind.length())?;
    let held = Pm4::new().wait32(buffer.address(), Compare::Equal, 1, u32::MAX);
    let held = gpu.commands(&held)?;
    first.submit(1, held.address(), held.length())?;
    ensure_eq!(ring.progress().value(), done - 1);
    buffer.set32(0, 1);
    user.until(done)?;
    eventually("the last one", || last.progress().is_reached(1))?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    Ok(())
}
