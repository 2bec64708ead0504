// SPDX-License-Identifier: MIT OR Apache-2.0
//! How user queues end: by their handles, with the process, the device and the adapter (GPU-26,
//! GPU-30).

use opendxg::pm4::{Atomic, Compare, Pm4};
use opendxg::raw::Argument;
use opendxg::uapi::{D3DKMT_DESTROYHWQUEUE, D3DKMT_DEVICE_ERROR_REASON_GENERIC};
use opendxg::{DoorbellStatus, Status};
use selftests::child::Child;
use selftests::gpu::{reaches, Gpu, PAGE};
use selftests::rounds::rounds;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-26 a device in error aborts its doorbells",
            device_in_error,
        )
        .test(
            "GPU-26 an adapter that goes aborts all doorbells",
            adapter_removed,
        )
        .test("GPU-30 a process that exits with a blocked queue", exits)
        .test(
            "GPU-30 a process that is killed with a blocked queue",
            killed,
        )
        .test(
            "GPU-30 a destroyed queue does what is in its ring",
            done_after_destroy,
        )
        .test(
            "GPU-30 a destroyed queue whose progress is told by nobody",
            silent_progress,
        )
        .test(
            "FEN-128 who lies about the last value hurts only itself",
            lies,
        )
        .test(
            "GPU-22 doorbells come and go while others ring",
            come_and_go,
        )
        .test("GPU-19 a forked child rings, and has no doorbell", forked)
}

/// Packets that wait until the first word of a buffer is 1.
fn held(buffer: &selftests::gpu::Buffer) -> Pm4 {
    Pm4::new().wait64(buffer.address(), Compare::Equal, 1, u64::MAX)
}

fn device_in_error() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    let others = other.device().create_hw_context(1)?;
    let others = user_queue(&others)?;
    let unharmed = UserQueue::new(&other, &others)?;
    user.run(&Pm4::new())?;
    unharmed.run(&Pm4::new())?;
    user.submit(&held(&gpu.buffer(PAGE)?))?;
    gpu.device()
        .mark_as_error(D3DKMT_DEVICE_ERROR_REASON_GENERIC)?;
    reaches(queue.progress(), u64::MAX)?;
    let bell = user.doorbell();
    eventually("the status says abort", || {
        bell.status() == DoorbellStatus::Abort
    })?;
    // It can be rung, and that leads to nothing.
    bell.ring(1);
    fails_with(bell.connect(), Status::DEVICE_REMOVED)?;
    fails_with(bell.notify(), Status::DEVICE_REMOVED)?;
    fails_with(bell.submit(1), Status::DEVICE_REMOVED)?;
    ensure_eq!(unharmed.doorbell().status(), DoorbellStatus::Connected);
    unharmed.run(&Pm4::new())?;
    // And so on, on a new device.
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    UserQueue::new(&gpu, &queue)?.run(&Pm4::new())
}

fn adapter_removed() -> TestResult {
    let adapter = SoftAdapter::enabled("t-doorbells-removed")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let other = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let (idle, busy) = (user_queue(&context)?, user_queue(&context)?);
    let (idle, busy) = (UserQueue::new(&gpu, &idle)?, UserQueue::new(&gpu, &busy)?);
    idle.run(&Pm4::new())?;
    busy.submit(&held(&buffer))?;
    adapter.disable()?;
    for user in [&idle, &busy] {
        let bell = user.doorbell();
        eventually("the status says abort", || {
            bell.status() == DoorbellStatus::Abort
        })?;
        bell.ring(1);
        fails_with(bell.connect(), Status::DEVICE_REMOVED)?;
    }
    other.run(&Pm4::new().nop(1))
}

/// A child whose queue waits for ever.
fn blocked(then: impl FnOnce() -> TestResult) -> TestResult<Child> {
    Child::spawn(|| {
        let gpu = Gpu::new()?;
        let buffer = gpu.buffer(PAGE)?;
        let context = gpu.device().create_hw_context(1)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        user.run(&Pm4::new())?;
        user.submit(&held(&buffer))?;
        then()?;
        // Nothing is destroyed by hand.
        std::mem::forget((user, buffer));
        std::mem::forget((queue.into_raw(), gpu));
        Ok(())
    })
}

fn exits() -> TestResult {
    blocked(|| Ok(()))?.join()
}

fn killed() -> TestResult {
    let (reader, writer) = selftests::fds::pipe()?;
    let child = blocked(|| {
        rustix::io::write(&writer, b"1")?;
        loop {
            std::thread::park();
        }
    })?;
    rustix::io::read(&reader, &mut [0; 1])?;
    child.signal(libc::SIGKILL)?;
    child.ends_soon()
}

fn done_after_destroy() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let raw = selftests::fixture::raw()?;
    for _ in 0..rounds(20) {
        buffer.set64(0, 0);
        buffer.set64(8, 0);
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        user.submit(&held(&buffer).atomic(Atomic::Add, buffer.at(8), 1, 0))?;
        let mut destroy = D3DKMT_DESTROYHWQUEUE::zeroed();
        destroy.hHwQueue = queue.handle().0;
        selftests::call::succeeds(&raw, &mut destroy)?;
        buffer.set64(0, 1);
        eventually("what was in the ring is done", || buffer.get64(8) == 1)?;
    }
    gpu.works()
}

/// Its last packet stores the value and does not interrupt. So who looks after closed queues finds
/// the end by himself.
fn silent_progress() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let context = gpu.device().create_hw_context(1)?;
    let raw = selftests::fixture::raw()?;
    for _ in 0..rounds(5) {
        buffer.set64(0, 0);
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        let progress = queue.progress().gpu_address();
        let packets = held(&buffer).write64(progress, 1);
        user.doorbell().set_last_queued(1);
        user.write(packets.words())?;
        user.doorbell().submit(user.written())?;
        let mut destroy = D3DKMT_DESTROYHWQUEUE::zeroed();
        destroy.hHwQueue = queue.handle().0;
        selftests::call::succeeds(&raw, &mut destroy)?;
        buffer.set64(0, 1);
    }
    gpu.works()
}

fn lies() -> TestResult {
    let other = Gpu::node(1)?;
    let raw = selftests::fixture::raw()?;
    for value in [0, 1, u64::MAX] {
        let gpu = Gpu::new()?;
        let context = gpu.device().create_hw_context(1)?;
        let queue = user_queue(&context)?;
        let user = UserQueue::new(&gpu, &queue)?;
        user.run(&Pm4::new())?;
        user.run(&Pm4::new())?;
        user.doorbell().set_last_queued(value);
        let mut destroy = D3DKMT_DESTROYHWQUEUE::zeroed();
        destroy.hHwQueue = queue.handle().0;
        // Nobody waits for what will never come.
        selftests::call::succeeds(&raw, &mut destroy)?;
        other.run(&Pm4::new().nop(1))?;
    }
    Ok(())
}

fn come_and_go() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    std::thread::scope(|scope| -> TestResult {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| -> TestResult {
                    for _ in 0..rounds(30) {
                        let queue = user_queue(&context)?;
                        let user = UserQueue::new(&gpu, &queue)?;
                        user.run(&Pm4::new())?;
                        // What is in flight goes with the doorbell, or is done.
                        user.submit(&Pm4::new().nop(3))?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    gpu.works()
}

fn forked() -> TestResult {
    let gpu = Gpu::new()?;
    let context = gpu.device().create_hw_context(1)?;
    let queue = user_queue(&context)?;
    let user = UserQueue::new(&gpu, &queue)?;
    user.run(&Pm4::new())?;
    let (value, dwords) = user.packets(&Pm4::new());
    user.write(&dwords)?;
    // Its mapping is the same, and so a ring of it is as good.
    let child = Child::spawn(|| {
        user.doorbell().ring(user.written());
        Ok(())
    })?;
    child.join()?;
    user.until(value)?;
    gpu.works()
}
