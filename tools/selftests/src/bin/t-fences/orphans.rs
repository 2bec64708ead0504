// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fences that go away while somebody waits for them.

use std::sync::Arc;

use opendxg::uapi::*;
use opendxg::{Access, EventFd, FenceValues, MonitoredFence, Status, SyncFlags};
use selftests::blocked::Blocked;
use selftests::call::succeeds;
use selftests::time::{a_while, eventually};
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-28 destroying the last handle fires pending events once",
            event_fires,
        )
        .test(
            "FEN-28 destroying the last handle ends blocking waits with INVALID_HANDLE",
            sleeper_ends,
        )
        .test(
            "FEN-28 many waits of both kinds are released together",
            all_released,
        )
        .test(
            "FEN-28 destroying the device releases the waits on its fences",
            device_destroyed,
        )
        .test(
            "FEN-27 a wait goes on while another handle exists",
            other_opening,
        )
        .test(
            "FEN-27 a wait goes on while an NT handle exists, and ends with it",
            nt_handle,
        )
        .test(
            "FEN-27 FEN-16 a wait for all over a lost fence ends",
            wait_for_all,
        )
}

/// Destroys a fence that other threads still hold by its handle.
fn destroy(fence: &MonitoredFence) -> TestResult {
    let handle = fence.handle().0;
    let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
        hSyncObject: handle,
    };
    succeeds(&fixture::raw()?, &mut arg)
}

fn event_fires() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    fence.wait_async(5, &event)?;
    ensure_eq!(event.take()?, 0);
    fence.destroy()?;
    ensure_eq!(event.take()?, 1);
    a_while();
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn sleeper_ends() -> TestResult {
    let fence = Arc::new(fixture::device()?.create_fence(0)?);
    let waiter = fence.clone();
    let blocked = Blocked::new(move || waiter.wait(5))?;
    destroy(&fence)?;
    fails_with(blocked.join()?, Status::INVALID_HANDLE)
}

fn all_released() -> TestResult {
    let device = fixture::device()?;
    let fence = Arc::new(device.create_fence(0)?);
    let event = EventFd::new()?;
    let mut sleepers = Vec::new();
    for value in 1..=8 {
        let waiter = fence.clone();
        sleepers.push(Blocked::new(move || waiter.wait(value))?);
    }
    for value in 1..=500 {
        fence.wait_async(value, &event)?;
    }
    fence.signal(2)?;
    ensure_eq!(event.take()?, 2);
    destroy(&fence)?;
    // So many are told by the driver's worker.
    let mut told = 0;
    eventually("all events fire", || {
        told += event.take().unwrap_or(0);
        told == 498
    })?;
    a_while();
    ensure_eq!(event.take()?, 0);
    for (value, sleeper) in (1..).zip(sleepers) {
        match value {
            1 | 2 => sleeper.join()??,
            _ => fails_with(sleeper.join()?, Status::INVALID_HANDLE)?,
        }
    }
    Ok(())
}

fn device_destroyed() -> TestResult {
    let device = fixture::device()?;
    let fence = Arc::new(device.create_fence(0)?);
    let event = EventFd::new()?;
    fence.wait_async(1, &event)?;
    let waiter = fence.clone();
    let blocked = Blocked::new(move || waiter.wait(1))?;
    let mut arg = D3DKMT_DESTROYDEVICE {
        hDevice: device.handle().0,
    };
    succeeds(&fixture::raw()?, &mut arg)?;
    ensure_eq!(event.take()?, 1);
    fails_with(blocked.join()?, Status::INVALID_HANDLE)
}

fn other_opening() -> TestResult {
    let device = fixture::device()?;
    let fence = Arc::new(device.create_shareable_fence(0)?);
    let other = device.open_fence(&fence.share(Access::ALL)?, SyncFlags::empty())?;
    let event = EventFd::new()?;
    fence.wait_async(1, &event)?;
    let waiter = fence.clone();
    let blocked = Blocked::new(move || waiter.wait(1))?;
    destroy(&fence)?;
    blocked.stays()?;
    ensure_eq!(event.take()?, 0, "released although another handle exists");
    other.signal(1)?;
    ensure_eq!(event.take()?, 1);
    blocked.join()??;
    Ok(())
}

fn nt_handle() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let shared = fence.share(Access::ALL)?;
    let (first, second) = (EventFd::new()?, EventFd::new()?);
    fence.wait_async(1, &first)?;
    fence.wait_async(2, &second)?;
    fence.destroy()?;
    a_while();
    ensure_eq!((first.take()?, second.take()?), (0, 0));
    device.open_fence(&shared, SyncFlags::empty())?.signal(1)?;
    ensure_eq!((first.take()?, second.take()?), (1, 0));
    drop(shared);
    ensure_eq!((first.take()?, second.take()?), (0, 1));
    Ok(())
}

fn wait_for_all() -> TestResult {
    let device = fixture::device()?;
    let lost = Arc::new(device.create_fence(0)?);
    let kept = device.create_fence(0)?;
    let event = EventFd::new()?;
    let list = FenceValues::new().with(&lost, 1).with(&kept, 1);
    device.wait_all_async(&list, &event)?;
    let waiter = device.clone();
    let blocked = Blocked::new(move || waiter.wait_all(&list))?;
    // Nobody can satisfy it any more.
    destroy(&lost)?;
    fails_with(blocked.join()?, Status::INVALID_HANDLE)?;
    ensure_eq!(event.take()?, 1);
    kept.signal(1)?;
    ensure_eq!(event.take()?, 0, "released twice");
    Ok(())
}
