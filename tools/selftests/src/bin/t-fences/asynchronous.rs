// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting with an event.

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Device, EventFd, FenceValues, MonitoredFence, Status, SyncFlags};
use rustix::event::EventfdFlags;
use selftests::call::refused;
use selftests::leak::Watch;
use selftests::time::{a_while, soon};
use selftests::{ensure, ensure_eq, fails_with, fds, fixture, Suite, TestResult};
use std::os::fd::{AsRawFd, OwnedFd};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-14 FEN-20 a satisfied wait fires before the call returns",
            satisfied,
        )
        .test("FEN-14 FEN-30 a satisfied wait leaves no waiter", no_waiter)
        .test("FEN-23 a higher value satisfies a lower wait", higher)
        .test("FEN-22 values far ahead can be waited for", far_ahead)
        .test(
            "FEN-24 after a rewind a new wait needs the value again",
            rewind,
        )
        .test("FEN-20 1000 waits on one event add exactly 1000", thousand)
        .test(
            "FEN-20 the event outlives its descriptor and the waiting thread",
            reference,
        )
        .test("FEN-169 semaphore events count one by one", semaphore_event)
        .test("FEN-169 a full event stays readable", full_event)
        .test("FEN-21 a bad event: closed, or not an event", bad_events)
        .test(
            "FEN-30 4096 waiters on higher values are not woken",
            bystanders,
        )
        .test("FEN-25 an opening without the right to wait", no_wait)
}

fn satisfied() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(1)?;
    let event = EventFd::new()?;
    for value in [0, 1] {
        ensure_eq!(fence.wait_async(value, &event)?, Status::SUCCESS);
        ensure_eq!(event.take()?, 1, "wait for {value} at 1");
    }
    ensure_eq!(fence.wait_async(2, &event)?, Status::SUCCESS);
    a_while();
    ensure_eq!(event.take()?, 0, "wait for 2 at 1");
    fence.signal(2)?;
    ensure_eq!(event.take()?, 1, "after signal 2");
    a_while();
    ensure_eq!(event.take()?, 0, "fired twice");
    Ok(())
}

fn no_waiter() -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    for (current, value) in [(0, 0), (5, 0), (5, 4), (5, 5), (u64::MAX, u64::MAX)] {
        let fence = device.create_fence(current)?;
        let watch = Watch::start()?;
        fence.wait_async(value, &event)?;
        watch.unchanged()?;
        ensure_eq!(event.take()?, 1, "wait for {value} at {current}");
    }
    let fence = device.create_fence(5)?;
    let watch = Watch::start()?;
    fence.wait_async(6, &event)?;
    ensure_eq!(
        watch.now()?.process_waiters,
        watch.at_start().process_waiters + 1
    );
    fence.signal(6)?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn higher() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    fence.wait_async(1, &event)?;
    fence.wait_async(3, &event)?;
    fence.signal(2)?;
    ensure_eq!(event.take()?, 1);
    fence.signal(u64::MAX)?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn far_ahead() -> TestResult {
    let device = fixture::device()?;
    for value in [0x7fff_ffff_ffff_ffff, 1 << 63, u64::MAX - 1, u64::MAX] {
        let fence = device.create_fence(0)?;
        let event = EventFd::new()?;
        fence.wait_async(value, &event)?;
        fence.signal(value - 1)?;
        a_while();
        ensure_eq!(event.take()?, 0, "one below {value:#x}");
        fence.signal(value)?;
        ensure_eq!(event.take()?, 1, "at {value:#x}");
    }
    Ok(())
}

fn rewind() -> TestResult {
    let fence = fixture::device()?.create_fence(2)?;
    let event = EventFd::new()?;
    fence.signal_rewind(1)?;
    fence.wait_async(2, &event)?;
    a_while();
    ensure_eq!(event.take()?, 0, "at 1 after a rewind");
    fence.signal(2)?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn thousand() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    // Some are satisfied at once, most by one signal each, the rest by one signal for all.
    fence.signal(100)?;
    for value in 1..=1000 {
        fence.wait_async(value, &event)?;
    }
    ensure_eq!(event.take()?, 100);
    for value in 101..=600 {
        fence.signal(value)?;
    }
    ensure_eq!(event.take()?, 500);
    fence.signal(1000)?;
    ensure_eq!(event.take()?, 400);
    fence.signal(2000)?;
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn reference() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    let kept = rustix::io::fcntl_dupfd_cloexec(&event, 0)?;
    let fence = std::thread::spawn(move || {
        let result = fence.wait_async(1, &event);
        drop(event);
        result.map(|_| fence)
    })
    .join()
    .map_err(|_| "panic in a thread")??;
    let kept = EventFd::from(kept);
    ensure_eq!(kept.take()?, 0);
    fence.signal(1)?;
    ensure_eq!(kept.take()?, 1);
    // And with no descriptor left at all: nobody to tell, nothing to crash.
    fence.wait_async(2, &kept)?;
    drop(OwnedFd::from(kept));
    fence.signal(2)?;
    Ok(())
}

fn semaphore_event() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let flags = EventfdFlags::SEMAPHORE | EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
    let event = EventFd::from(rustix::event::eventfd(0, flags)?);
    for value in 1..=3 {
        fence.wait_async(value, &event)?;
    }
    fence.signal(3)?;
    for _ in 0..3 {
        ensure_eq!(event.take()?, 1);
    }
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn full_event() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    // The highest count a write can leave.
    rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes())?;
    for value in 1..=3 {
        fence.wait_async(value, &event)?;
    }
    fence.signal(3)?;
    ensure!(
        event
            .wait(Some(soon()))?
            .is_some_and(|count| count >= u64::MAX - 1),
        "not readable"
    );
    fence.wait_async(4, &event)?;
    fence.signal(4)?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

/// A wait with any event number.
fn wait(
    device: &Device,
    list: &(u32, u64),
    event: u64,
) -> D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
    let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
    arg.hDevice = device.handle().0;
    arg.ObjectCount = 1;
    arg.ObjectHandleArray = (&raw const list.0) as u64;
    arg.FenceValueArray = (&raw const list.1) as u64;
    arg.hAsyncEvent = event;
    arg
}

fn bad_events() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(1)?;
    let closed = fds::closed_number()? as u64;
    let (reader, writer) = fds::pipe()?;
    let memory = fds::memfd()?;
    let shared = fence.share(opendxg::Access::ALL)?;
    let point = fence.point(2)?;
    let node = raw.fd()?;
    // Satisfied or not: the event is checked first.
    for value in [0, 1, 2] {
        let list = (fence.handle().0, value);
        for bad in [
            closed,
            u64::MAX,
            1 << 31,
            (1 << 32) | closed,
            i32::MAX as u64,
        ] {
            refused(&raw, &mut wait(&device, &list, bad), Status::INVALID_HANDLE)?;
        }
        for fd in [
            reader.as_raw_fd(),
            writer.as_raw_fd(),
            memory.as_raw_fd(),
            shared.as_raw_fd(),
            point.as_raw_fd(),
            node.as_raw_fd(),
        ] {
            let mut arg = wait(&device, &list, fd as u64);
            refused(&raw, &mut arg, Status::OBJECT_TYPE_MISMATCH)?;
        }
    }
    Ok(())
}

fn bystanders() -> TestResult {
    const WAITERS: u64 = 4096;
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    for value in 0..WAITERS {
        // Not in order, so that the queue has to sort.
        fence.wait_async(10_000 + value * 2_654_435_761 % WAITERS, &event)?;
    }
    for value in 1..1000 {
        fence.signal(value)?;
    }
    fence.signal(9_999)?;
    ensure_eq!(event.take()?, 0, "woken by lower values");
    fence.signal(10_000)?;
    ensure_eq!(event.take()?, 1, "at the first value");
    fence.signal(10_000 + WAITERS / 2)?;
    ensure_eq!(event.take()?, WAITERS / 2, "at half of the values");
    fence.signal(10_000 + WAITERS - 1)?;
    ensure_eq!(event.take()?, WAITERS / 2 - 1, "at the last value");
    Ok(())
}

fn no_wait() -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING;
    let creator = device.create_fence_with(5, flags | SyncFlags::NO_WAIT)?;
    let denied = |fence: &MonitoredFence| -> TestResult {
        // Also a wait that is satisfied already.
        for value in [0, 5, 6] {
            fails_with(fence.wait_async(value, &event), Status::ACCESS_DENIED)?;
            fails_with(fence.wait(value), Status::ACCESS_DENIED)?;
            fails_with(fence.point(value), Status::ACCESS_DENIED)?;
        }
        Ok(())
    };
    denied(&creator)?;
    creator.signal(6)?;
    // The right belongs to the opening, not to the object.
    let shared = creator.share(opendxg::Access::ALL)?;
    let other = device.open_fence(&shared, SyncFlags::empty())?;
    other.wait_async(6, &event)?;
    ensure_eq!(event.take()?, 1);
    denied(&device.open_fence(&shared, SyncFlags::NO_WAIT)?)?;
    // One such opening refuses the whole list.
    let list = FenceValues::new().with(&other, 0).with(&creator, 0);
    fails_with(device.wait_any_async(&list, &event), Status::ACCESS_DENIED)?;
    ensure_eq!(event.take()?, 0);
    Ok(())
}
