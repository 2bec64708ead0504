// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device in error: all who wait for it are released, its fences have the highest value, and it
//! takes nothing more.

use opendxg::pm4::{Compare, Pm4};
use opendxg::uapi::{D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR, D3DKMT_DEVICE_ERROR_REASON_GENERIC};
use opendxg::{Access, EventFd, ExecutionState, ResidentFlags, Status, SyncFlags};
use selftests::blocked::Blocked;
use selftests::gpu::{is_in, one, reaches, Gpu, PAGE};
use selftests::time::soon;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    Cause::ALL.into_iter().fold(suite, |suite, cause| {
        let state = cause.state();
        suite
            .test(
                format!("GPU-97 FEN-29 waiters are released, {cause:?}"),
                move || waiters(cause),
            )
            .test(
                format!("GPU-12 GPU-99 {state:?} takes nothing more, {cause:?}"),
                move || removed(cause),
            )
            .test(
                format!("FEN-29 FEN-105 values of fences, {cause:?}"),
                move || values(cause),
            )
            .test(
                format!("GPU-97 FEN-105 work that was queued, {cause:?}"),
                move || queued(cause),
            )
    })
}

/// What puts a device in error.
#[derive(Clone, Copy, Debug)]
enum Cause {
    PageFault,
    IllegalPacket,
    Marked,
    MarkedByDriver,
}

impl Cause {
    const ALL: [Self; 4] = [
        Self::PageFault,
        Self::IllegalPacket,
        Self::Marked,
        Self::MarkedByDriver,
    ];

    fn state(self) -> ExecutionState {
        match self {
            Self::PageFault => ExecutionState::DmaPageFault,
            Self::IllegalPacket => ExecutionState::DmaFault,
            Self::Marked | Self::MarkedByDriver => ExecutionState::Hung,
        }
    }

    /// Puts the device in error and waits for that.
    fn strike(self, gpu: &Gpu) -> TestResult {
        let reason = match self {
            Self::PageFault => {
                let bad = Pm4::new().write(0x6000_0000_0000, &[1]);
                return gpu.fails(&bad, self.state());
            }
            Self::IllegalPacket => return gpu.fails(&Pm4::new().word(0), self.state()),
            Self::Marked => D3DKMT_DEVICE_ERROR_REASON_GENERIC,
            Self::MarkedByDriver => D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR,
        };
        gpu.device().mark_as_error(reason)?;
        is_in(gpu.device(), self.state())
    }
}

fn waiters(cause: Cause) -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let fence = device.create_fence(0)?;
    let context = device.create_hw_context(1)?;
    let queue = context.create_hw_queue()?;
    let events = [EventFd::new()?, EventFd::new()?, EventFd::new()?];
    fence.wait_async(5, &events[0])?;
    queue.progress().wait_async(7, &events[1])?;
    gpu.paging().fence().wait_async(1 << 40, &events[2])?;
    let (sleeper, point) = {
        let shared = device.create_shareable_fence(0)?;
        let point = shared.point(3)?;
        (Blocked::new(move || shared.wait(9))?, point)
    };
    cause.strike(&gpu)?;
    for event in &events {
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
    }
    sleeper.join()??;
    ensure!(point.wait(Some(soon()))?);
    Ok(())
}

fn removed(cause: Cause) -> TestResult {
    const REMOVED: Status = Status::DEVICE_REMOVED;
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let (word, fence) = (gpu.buffer(PAGE)?, device.create_fence(0)?);
    let write = gpu.commands(&Pm4::new().set32(word.at(0), 1))?;
    let hw = device.create_hw_context(0)?;
    let queue = hw.create_hw_queue()?;
    cause.strike(&gpu)?;

    let context = gpu.context();
    fails_with(context.submit(write.address(), write.length()), REMOVED)?;
    fails_with(context.signal(&one(&fence, 1)), REMOVED)?;
    fails_with(context.wait(&one(&fence, 1)), REMOVED)?;
    fails_with(queue.submit(1, write.address(), write.length()), REMOVED)?;
    fails_with(queue.signal(&one(&fence, 1)), REMOVED)?;
    fails_with(queue.wait(&one(&fence, 1)), REMOVED)?;
    fails_with(device.create_context(0), REMOVED)?;
    fails_with(device.create_hw_context(0), REMOVED)?;
    fails_with(hw.create_hw_queue(), REMOVED)?;
    fails_with(device.create_paging_queue(), REMOVED)?;
    fails_with(device.create_fence(0), REMOVED)?;
    let allocation = device.new_resource().linear(PAGE).create_one();
    fails_with(allocation.map(drop), REMOVED)?;
    let resident = gpu
        .paging()
        .make_resident(&[word.allocation()], ResidentFlags::empty());
    fails_with(resident, REMOVED)?;
    ensure_eq!(word.get32(0), 0);
    // What is there can be read and destroyed.
    word.set32(4, 9);
    ensure_eq!(word.get32(4), 9);
    queue.destroy()?;
    hw.destroy()?;
    fence.destroy()?;
    ensure!(device.execution_state()? != ExecutionState::Active);
    Ok(())
}

fn values(cause: Cause) -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let (plain, high) = (device.create_fence(3)?, device.create_fence(u64::MAX - 1)?);
    let keeps = device.create_fence_with(3, SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR)?;
    let hw = device.create_hw_context(0)?;
    let queue = hw.create_hw_queue()?;
    let other = fixture::device()?.create_fence(3)?;
    cause.strike(&gpu)?;
    reaches(&plain, u64::MAX)?;
    reaches(&high, u64::MAX)?;
    reaches(queue.progress(), u64::MAX)?;
    reaches(gpu.paging().fence(), u64::MAX)?;
    ensure_eq!((keeps.value(), other.value()), (3, 3));
    // No signal brings them down again.
    plain.signal(5)?;
    plain.signal_rewind(5)?;
    ensure_eq!(plain.value(), u64::MAX);
    plain.wait(u64::MAX)?;
    Ok(())
}

fn queued(cause: Cause) -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let (word, gate) = (
        gpu.buffer(PAGE)?,
        fixture::device()?.create_shareable_fence(0)?,
    );
    let handle = gate.share(Access::ALL)?;
    let gate_here = device.open_fence(&handle, SyncFlags::empty())?;
    // One queue waits in a packet, one for a fence of somebody else; both have work behind it.
    let behind = gpu.commands(&Pm4::new().set32(word.at(4), 1))?;
    let wait = Pm4::new().wait32(word.at(0), Compare::Equal, 1, u32::MAX);
    let wait = gpu.commands(&wait.set32(word.at(8), 1))?;
    let contexts = [device.create_context(1)?, device.create_context(2)?];
    contexts[0].submit(wait.address(), wait.length())?;
    contexts[0].submit(behind.address(), behind.length())?;
    contexts[0].signal(&one(&gate_here, 50))?;
    contexts[1].wait(&one(&gate_here, 1))?;
    contexts[1].submit(behind.address(), behind.length())?;
    contexts[1].signal(&one(&gate_here, 60))?;
    cause.strike(&gpu)?;
    // What they wait for comes, and nothing runs.
    word.set32(0, 1);
    gate.signal(1)?;
    let other = Gpu::new()?;
    for _ in 0..5 {
        other.run(&Pm4::new().nop(0))?;
    }
    selftests::time::a_while();
    ensure_eq!(word.read(4, 2), [0, 0]);
    // The device could have signalled it, for all who wait for it.
    reaches(&gate, u64::MAX)?;
    ensure!(device.execution_state()? != ExecutionState::Active);
    is_in(other.device(), ExecutionState::Active)
}
