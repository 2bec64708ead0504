// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices in error, adapters that go, processes that die (FEN-28, FEN-88, FEN-104, FEN-105,
//! FEN-122, GPU-56).

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::{Command, FenceUpdates};
use opendxg::{Access, Counters, EventFd, ExecutionState, Luid, SyncFlags};
use selftests::child::Child;
use selftests::gpu::{reaches, Gpu};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::{a_while, eventually, soon};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_native_fences::{monitored_value, signal, wait, Counts};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-104 FEN-105 GPU-56 a device in error", in_error)
        .test("FEN-105 a fence that keeps its value", keeps)
        .test("FEN-104 GPU-95 the adapter is reset", reset)
        .test("FEN-28 FEN-88 destroyed while a wait is pending", destroyed)
        .test("FEN-122 the last opening, and an NT handle", last_handle)
        .test("FEN-143 the adapter is removed", removed)
        .test("FEN-108 a driver that cannot update MonitoredValue", || {
            failed(FenceUpdates::MONITORED_VALUES)
        })
        .test("FEN-108 a driver that cannot update CurrentValue", || {
            failed(FenceUpdates::CURRENT_VALUES)
        })
        .test(
            "FEN-108 FEN-143 a driver that cannot be told of a signal",
            failed_beside,
        )
        .test("FEN-89 killed while its queue waits", killed)
        .test("GPU-93 a wait that never ends counts as a hang", hangs)
}

fn in_error() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::node(1)?;
    let fence = gpu.device().create_shareable_native_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    let there = other
        .device()
        .open_native_fence(&handle, SyncFlags::empty())?;
    let event = EventFd::new()?;
    there.wait_async(5, &event)?;
    let commands = other.commands(&wait(&there, 7))?;
    other.submit(&commands)?;
    let mark = other.mark()?;
    // An illegal packet.
    gpu.fails(&Pm4::new().word(0x1234_5678), ExecutionState::DmaFault)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    ensure_eq!(there.value(), u64::MAX);
    other.until(mark)?;
    // Signals store nothing, waits pass.
    let before = Counts::of(&other)?.interrupts();
    other.run(&signal(&there, 3).append(&wait(&there, 9)))?;
    ensure_eq!(there.value(), u64::MAX);
    there.signal_rewind(3)?;
    ensure_eq!(there.value(), u64::MAX);
    there.wait(u64::MAX)?;
    ensure_eq!(Counts::of(&other)?.interrupts(), before);
    Ok(())
}

fn reset() -> TestResult {
    let soft = SoftAdapter::enabled("native-reset")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let fence = gpu.device().create_shareable_native_fence(1)?;
    let handle = fence.share(Access::ALL)?;
    let event = EventFd::new()?;
    fence.wait_async(5, &event)?;
    soft.open()?.reset(None)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    ensure_eq!(fence.value(), u64::MAX);
    // A new device is not in error, and the fence stays what it is.
    let after = Gpu::on(&soft.device()?, 0)?;
    let again = after
        .device()
        .open_native_fence(&handle, SyncFlags::empty())?;
    after.run(&signal(&again, 3).append(&wait(&again, 9)))?;
    ensure_eq!(again.value(), u64::MAX);
    drop((again, after, handle, fence, gpu));
    soft.remove()
}

fn keeps() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let flags =
        SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR;
    let fence = gpu.device().create_native_fence_with(3, flags)?;
    let there = other
        .device()
        .open_native_fence(&fence.share(Access::ALL)?, SyncFlags::empty())?;
    gpu.fails(&Pm4::new().word(0x1234_5678), ExecutionState::DmaFault)?;
    ensure_eq!(there.value(), 3);
    other.run(&signal(&there, 4))?;
    ensure_eq!(there.value(), 4);
    Ok(())
}

fn destroyed() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_native_fence(0)?;
    let event = EventFd::new()?;
    fence.wait_async(5, &event)?;
    fence.destroy()?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    // Its place is used again, and nobody waits there.
    let again = gpu.device().create_native_fence(0)?;
    ensure_eq!(monitored_value(&gpu, &again)?, u64::MAX);
    Ok(())
}

fn last_handle() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(1)?;
    let handle = fence.share(Access::ALL)?;
    fence.destroy()?;
    // The NT handle keeps it.
    let again = gpu
        .device()
        .open_native_fence(&handle, SyncFlags::empty())?;
    ensure_eq!(again.value(), 1);
    drop(handle);
    gpu.run(&signal(&again, 2))?;
    ensure_eq!(again.value(), 2);
    again.destroy()?;
    Ok(())
}

fn removed() -> TestResult {
    let adapter = SoftAdapter::enabled("native-fences")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let fence = gpu.device().create_native_fence(0)?;
    let shared = gpu.device().create_shareable_native_fence(0)?;
    let handle = shared.share(Access::ALL)?;
    let events = [EventFd::new()?, EventFd::new()?];
    fence.wait_async(5, &events[0])?;
    shared.wait_async(5, &events[1])?;
    let commands = gpu.commands(&wait(&fence, 7))?;
    gpu.submit(&commands)?;
    a_while();
    adapter.disable()?;
    for event in &events {
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
    }
    ensure_eq!([fence.value(), shared.value()], [u64::MAX; 2]);
    ensure!(gpu.device().create_native_fence(0).is_err());
    drop((handle, shared, fence, commands, gpu));
    adapter.remove()
}

/// How often the driver of an adapter has failed, which may be gone.
fn failures(luid: Luid) -> TestResult<Option<u64>> {
    Ok(Counters::of_native_fences(luid)?
        .get("failed-updates")
        .copied())
}

/// The adapter is stopped: all waits are over, and everything that a client can see tells so.
fn failed(updates: FenceUpdates) -> TestResult {
    let adapter = SoftAdapter::enabled("native-failed")?;
    let luid = adapter.luid()?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let fence = gpu.device().create_native_fence(0)?;
    let shared = gpu.device().create_shareable_native_fence(0)?;
    let keeps = SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR;
    let kept = gpu.device().create_native_fence_with(3, keeps)?;
    let events = [EventFd::new()?, EventFd::new()?, EventFd::new()?];
    fence.wait_async(5, &events[0])?;
    shared.wait_async(5, &events[1])?;
    let commands = gpu.commands(&wait(&fence, 7))?;
    gpu.submit(&commands)?;
    a_while();
    ensure_eq!(failures(luid)?, Some(0));
    gpu.device()
        .adapter()
        .soft_gpu_command(Command::FailFenceUpdates, 0, updates.bits())?;
    // The call that finds it out does what it says all the same.
    if updates == FenceUpdates::CURRENT_VALUES {
        shared.signal(2)?;
    } else {
        shared.wait_async(3, &events[2])?;
    }
    for event in &events[..2] {
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
    }
    if updates == FenceUpdates::MONITORED_VALUES {
        ensure_eq!(events[2].wait(Some(soon()))?, Some(1));
    }
    ensure_eq!([fence.value(), shared.value()], [u64::MAX; 2]);
    ensure_eq!(kept.value(), 3);
    eventually("the end of the adapter", || {
        gpu.device().create_native_fence(0).is_err()
    })?;
    // Nothing is tried again.
    ensure_eq!(failures(luid)?, Some(1));
    ensure!(adapter.open().is_err());
    drop((kept, shared, fence, commands, gpu));
    adapter.remove()
}

/// The one that is told of a signal fails. That of the signal does not know.
fn failed_beside() -> TestResult {
    let adapter = SoftAdapter::enabled("native-beside")?;
    let luid = adapter.luid()?;
    let gpu = Gpu::new()?;
    let other = Gpu::on(&adapter.device()?, 0)?;
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
    let fence = gpu.device().create_native_fence_with(0, flags)?;
    let handle = fence.share(Access::ALL)?;
    let there = other
        .device()
        .open_native_fence(&handle, SyncFlags::empty())?;
    let updates = FenceUpdates::CURRENT_VALUES.bits();
    other
        .device()
        .adapter()
        .soft_gpu_command(Command::FailFenceUpdates, 0, updates)?;
    fence.signal(1)?;
    eventually("the end of the adapter", || fence.value() == u64::MAX)?;
    fence.wait(u64::MAX)?;
    ensure_eq!(failures(luid)?, Some(1));
    // The adapter of the signal goes on.
    gpu.run(&wait(&fence, 9))?;
    let own = gpu.device().create_native_fence(0)?;
    gpu.run(&signal(&own, 1))?;
    ensure_eq!(own.value(), 1);
    drop((there, other));
    adapter.remove()
}

fn killed() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_native_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    for waits_on_cpu in [false, true] {
        let child = Child::spawn(|| {
            let gpu = Gpu::node(1)?;
            let there = gpu
                .device()
                .open_native_fence(&handle, SyncFlags::empty())?;
            let commands = gpu.commands(&wait(&there, 100))?;
            gpu.submit(&commands)?;
            let ready = gpu
                .device()
                .open_native_fence(&handle, SyncFlags::empty())?;
            ready.signal(ready.value() + 1)?;
            match waits_on_cpu {
                true => there.wait(100)?,
                false => loop {
                    std::thread::park();
                },
            }
            Ok(())
        })?;
        reaches(&fence, if waits_on_cpu { 2 } else { 1 })?;
        a_while();
        child.kill()?;
        gpu.run(&signal(&fence, fence.value()))?;
    }
    selftests::time::eventually("no waiter is left", || {
        monitored_value(&gpu, &fence).ok() == Some(u64::MAX)
    })?;
    let before = Counts::of(&gpu)?.interrupts();
    gpu.run(&signal(&fence, 100))?;
    ensure_eq!(Counts::of(&gpu)?.interrupts(), before);
    Ok(())
}

/// FEN-163: in a queue of the kernel a wait packet counts, although nobody polls.
fn hangs() -> TestResult {
    let adapter = SoftAdapter::enabled("native-hang")?;
    adapter.set("tdr_delay_ms", "300")?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let fence = gpu.device().create_native_fence(0)?;
    gpu.fails(&wait(&fence, 1), ExecutionState::Hung)?;
    drop((fence, gpu));
    adapter.remove()
}
