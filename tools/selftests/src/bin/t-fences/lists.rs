// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits over several objects.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Device, Dxg, EventFd, FenceValues, MonitoredFence, Status, SyncFlags};
use selftests::blocked::Blocked;
use selftests::call::{refused, succeeds};
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::rounds::rounds;
use selftests::time::a_while;
use selftests::{ensure, ensure_eq, fails_with, fixture, skip, Suite, TestResult};

/// Objects one call may name (FEN-18).
const MAX: usize = 4096;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-15 any: one element is enough", any)
        .test("FEN-15 all: every element is needed", all)
        .test("FEN-16 elements of a wait for all are latched", latched)
        .test("FEN-17 the same object several times", duplicates)
        .test("FEN-18 4096 objects", maximum)
        .test("FEN-18 no objects, too many, no arrays", counts)
        .test("FEN-18 arrays that cannot be read", unreadable)
        .test("FEN-18 the arrays are read once", read_once)
        .test("FEN-15 unknown flags are refused", flags)
        .test("FEN-26 one bad object refuses the call", one_bad)
        .test(
            "FEN-26 objects of several devices of one adapter",
            several_devices,
        )
        .test(
            "FEN-26 objects of another adapter only if cross-adapter",
            other_adapter,
        )
}

fn fences(device: &Device, count: usize) -> TestResult<Vec<MonitoredFence>> {
    (0..count).map(|_| Ok(device.create_fence(0)?)).collect()
}

fn any() -> TestResult {
    let device = fixture::device()?;
    for winner in 0..3 {
        let fences = fences(&device, 3)?;
        let event = EventFd::new()?;
        let list = fences
            .iter()
            .fold(FenceValues::new(), |list, fence| list.with(fence, 2));
        device.wait_any_async(&list, &event)?;
        let waiter = device.clone();
        let blocked = Blocked::new(move || waiter.wait_any(&list))?;
        for fence in &fences {
            fence.signal(1)?;
        }
        a_while();
        ensure_eq!(event.take()?, 0);
        fences[winner].signal(2)?;
        ensure_eq!(event.take()?, 1);
        blocked.join()??;
        for fence in &fences {
            fence.signal(3)?;
        }
        ensure_eq!(event.take()?, 0, "fired again");
    }
    Ok(())
}

fn all() -> TestResult {
    let device = fixture::device()?;
    // In every order of three.
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let fences = fences(&device, 3)?;
        let event = EventFd::new()?;
        let list = fences
            .iter()
            .fold(FenceValues::new(), |list, fence| list.with(fence, 1));
        device.wait_all_async(&list, &event)?;
        let waiter = device.clone();
        let blocked = Blocked::new(move || waiter.wait_all(&list))?;
        for (position, index) in order.into_iter().enumerate() {
            ensure_eq!(event.take()?, 0, "after {position} of 3");
            fences[index].signal(1)?;
        }
        ensure_eq!(event.take()?, 1);
        blocked.join()??;
    }
    Ok(())
}

fn latched() -> TestResult {
    let device = fixture::device()?;
    let (a, b) = (device.create_fence(0)?, device.create_fence(0)?);
    let event = EventFd::new()?;
    let list = FenceValues::new().with(&a, 1).with(&b, 1);
    device.wait_all_async(&list, &event)?;
    let waiter = device.clone();
    let sleeping = list.clone();
    let blocked = Blocked::new(move || waiter.wait_all(&sleeping))?;
    a.signal(1)?;
    a.signal_rewind(0)?;
    ensure_eq!(event.take()?, 0);
    b.signal(1)?;
    ensure_eq!(event.take()?, 1);
    blocked.join()??;
    // An element that was satisfied when the wait began is latched, too.
    let (c, d) = (device.create_fence(1)?, device.create_fence(0)?);
    device.wait_all_async(&FenceValues::new().with(&c, 1).with(&d, 1), &event)?;
    c.signal_rewind(0)?;
    d.signal(1)?;
    ensure_eq!(event.take()?, 1);
    // A new wait is not.
    device.wait_all_async(&list, &event)?;
    ensure_eq!(event.take()?, 0);
    a.signal(1)?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn duplicates() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let (any, all) = (EventFd::new()?, EventFd::new()?);
    let list = FenceValues::new().with(&fence, 3).with(&fence, 5);
    device.wait_any_async(&list, &any)?;
    device.wait_all_async(&list, &all)?;
    let same = FenceValues::new()
        .with(&fence, 4)
        .with(&fence, 4)
        .with(&fence, 4);
    let (same_any, same_all) = (EventFd::new()?, EventFd::new()?);
    device.wait_any_async(&same, &same_any)?;
    device.wait_all_async(&same, &same_all)?;
    let counts = || -> TestResult<[u64; 4]> {
        Ok([any.take()?, all.take()?, same_any.take()?, same_all.take()?])
    };
    for (value, expected) in [
        (2, [0, 0, 0, 0]),
        (3, [1, 0, 0, 0]),
        (4, [0, 0, 1, 1]),
        (5, [0, 1, 0, 0]),
        (6, [0, 0, 0, 0]),
    ] {
        fence.signal(value)?;
        ensure_eq!(counts()?, expected, "at {value}");
    }
    Ok(())
}

fn maximum() -> TestResult {
    let device = fixture::device()?;
    let fences = fences(&device, MAX)?;
    let list = fences
        .iter()
        .fold(FenceValues::new(), |list, fence| list.with(fence, 1));
    let (any, all) = (EventFd::new()?, EventFd::new()?);
    device.wait_any_async(&list, &any)?;
    device.wait_all_async(&list, &all)?;
    let waiter = device.clone();
    let sleeping = list.clone();
    let blocked = Blocked::new(move || waiter.wait_all(&sleeping))?;
    fences[MAX - 1].signal(1)?;
    ensure_eq!((any.take()?, all.take()?), (1, 0));
    for fence in &fences[1..MAX - 1] {
        fence.signal(1)?;
    }
    ensure_eq!((any.take()?, all.take()?), (0, 0));
    fences[0].signal(1)?;
    ensure_eq!((any.take()?, all.take()?), (0, 1));
    blocked.join()??;
    // Satisfied already; then a signal of all at once.
    device.wait_all(&list)?;
    device.wait_any(&list)?;
    let higher = fences
        .iter()
        .fold(FenceValues::new(), |list, fence| list.with(fence, 2));
    device.signal(&higher, opendxg::SignalFlags::empty())?;
    ensure!(fences.iter().all(|fence| fence.value() == 2));
    Ok(())
}

/// A list of handles and values in memory of the caller, for both CPU calls.
struct Lists {
    handles: u64,
    values: u64,
    count: u32,
}

impl Lists {
    fn wait(&self, device: &Device, event: &EventFd) -> D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
        use std::os::fd::AsRawFd;
        let mut arg = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
        arg.hDevice = device.handle().0;
        arg.ObjectCount = self.count;
        arg.ObjectHandleArray = self.handles;
        arg.FenceValueArray = self.values;
        arg.hAsyncEvent = event.as_raw_fd() as u64;
        arg
    }

    fn signal(&self, device: &Device) -> D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU {
        let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
        arg.hDevice = device.handle().0;
        arg.ObjectCount = self.count;
        arg.ObjectHandleArray = self.handles;
        arg.FenceValueArray = self.values;
        arg
    }

    /// Both calls are refused.
    fn refused(&self, device: &Device, event: &EventFd, status: Status) -> TestResult {
        let raw = fixture::raw()?;
        refused(&raw, &mut self.wait(device, event), status)?;
        refused(&raw, &mut self.signal(device), status)
    }
}

fn counts() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(1)?;
    let event = EventFd::new()?;
    let handles = vec![fence.handle().0; MAX + 1];
    let values = vec![2u64; MAX + 1];
    let (handles, values) = (handles.as_ptr() as u64, values.as_ptr() as u64);
    for count in [
        0,
        MAX as u32 + 1,
        1 << 16,
        1 << 29,
        1 << 30,
        1 << 31,
        u32::MAX,
    ] {
        let lists = Lists {
            handles,
            values,
            count,
        };
        lists.refused(&device, &event, Status::INVALID_PARAMETER)?;
    }
    for (handles, values) in [(0, values), (handles, 0), (0, 0)] {
        let lists = Lists {
            handles,
            values,
            count: 1,
        };
        lists.refused(&device, &event, Status::INVALID_PARAMETER)?;
    }
    ensure_eq!(fence.value(), 1);
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn unreadable() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(1)?;
    let event = EventFd::new()?;
    let count = 64u32;
    let handles: Vec<u32> = vec![fence.handle().0; count as usize];
    let values: Vec<u64> = vec![2; count as usize];
    let (good_handles, good_values) = (handles.as_ptr() as u64, values.as_ptr() as u64);
    let as_bytes = |values: &[u64]| {
        values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect::<Vec<_>>()
    };
    let handle_bytes: Vec<u8> = handles
        .iter()
        .flat_map(|handle| handle.to_ne_bytes())
        .collect();
    let handle_page = Page::ending_with(&handle_bytes)?;
    let value_page = Page::ending_with(&as_bytes(&values))?;
    // The first, a middle and the last element at which the array ends too early.
    let short =
        |page: &Page, size: u64, missing: u64| page.end() - size * (u64::from(count) - missing);
    let mut bad = vec![
        (UNMAPPED, good_values),
        (good_handles, UNMAPPED),
        (KERNEL_HALF, good_values),
        (good_handles, KERNEL_HALF),
        (u64::MAX - 3, good_values),
        (good_handles, u64::MAX - 7),
    ];
    for missing in [1, u64::from(count) / 2, u64::from(count)] {
        bad.push((short(&handle_page, 4, missing), good_values));
        bad.push((good_handles, short(&value_page, 8, missing)));
    }
    for (handles, values) in bad {
        let lists = Lists {
            handles,
            values,
            count,
        };
        lists.refused(&device, &event, Status::ACCESS_VIOLATION)?;
    }
    ensure_eq!(fence.value(), 1);
    ensure_eq!(event.take()?, 0);
    // Up to the last byte is fine.
    let (handles, values) = (short(&handle_page, 4, 0), short(&value_page, 8, 0));
    let lists = Lists {
        handles,
        values,
        count,
    };
    succeeds(&fixture::raw()?, &mut lists.signal(&device))?;
    ensure_eq!(fence.value(), 2);
    Ok(())
}

fn read_once() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let good = fence.handle().0;
    let stop = Arc::new(AtomicBool::new(false));
    // The second element flips between a good and a bad handle.
    let handles = Arc::new([AtomicU32::new(good), AtomicU32::new(good)]);
    let flipper = {
        let (stop, handles) = (stop.clone(), handles.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                handles[1].store(0, Ordering::Relaxed);
                handles[1].store(good, Ordering::Relaxed);
            }
        })
    };
    let mut result = Ok(());
    for value in 1..=u64::from(rounds(2000)) {
        let values = [value, value];
        let list = Lists {
            handles: handles.as_ptr() as u64,
            values: values.as_ptr() as u64,
            count: 2,
        };
        let before = fence.value();
        match raw.exec(&mut list.signal(&device)) {
            // One of the two versions, entirely.
            Ok(Status::SUCCESS) if fence.value() == value => {}
            Ok(Status::INVALID_PARAMETER) if fence.value() == before => {}
            got => {
                result = Err(format!("{got:?}, value {before} -> {}", fence.value()).into());
                break;
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    flipper.join().map_err(|_| "panic in a thread")?;
    result
}

fn flags() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_fence(1)?;
    let event = EventFd::new()?;
    let (handles, values) = ([fence.handle().0], [0u64]);
    let lists = Lists {
        handles: handles.as_ptr() as u64,
        values: values.as_ptr() as u64,
        count: 1,
    };
    for bit in 1..32 {
        for flags in [1 << bit, 1 | (1 << bit)] {
            let mut arg = lists.wait(&device, &event);
            arg.Flags = flags;
            refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
        }
    }
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn one_bad() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(1)?;
    let event = EventFd::new()?;
    let destroyed = device.create_fence(0)?.handle().0;
    for bad in [
        0,
        u32::MAX,
        destroyed,
        device.handle().0,
        fence.handle().0 | 2,
    ] {
        for position in 0..5 {
            let mut handles = [fence.handle().0; 5];
            handles[position] = bad;
            let values = [2u64; 5];
            let (handles, values) = (handles.as_ptr() as u64, values.as_ptr() as u64);
            let lists = Lists {
                handles,
                values,
                count: 5,
            };
            lists.refused(&device, &event, Status::INVALID_PARAMETER)?;
            ensure_eq!(fence.value(), 1, "signalled by a refused call");
        }
    }
    fence.signal(2)?;
    ensure_eq!(event.take()?, 0, "a refused wait");
    Ok(())
}

fn several_devices() -> TestResult {
    let first = fixture::device()?;
    let second = first.adapter().create_device()?;
    let third = fixture::device()?;
    let (a, b) = (first.create_fence(0)?, second.create_fence(0)?);
    let event = EventFd::new()?;
    let list = FenceValues::new().with(&a, 1).with(&b, 1);
    third.wait_all_async(&list, &event)?;
    third.signal(&list, opendxg::SignalFlags::empty())?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn other_adapter() -> TestResult {
    let adapters = Dxg::open()?.adapters()?;
    let [first, second, ..] = &adapters[..] else {
        skip!("needs two adapters");
    };
    let (here, there) = (first.create_device()?, second.create_device()?);
    let local = here.create_fence(0)?;
    let event = EventFd::new()?;
    let list = FenceValues::new().with(&local, 1);
    let refuse = Status::INVALID_PARAMETER;
    fails_with(there.wait_any_async(&list, &event), refuse)?;
    fails_with(there.signal(&list, opendxg::SignalFlags::empty()), refuse)?;
    let nt = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING;
    let cross = here.create_fence_with(0, nt | SyncFlags::CROSS_ADAPTER)?;
    let list = FenceValues::new().with(&cross, 1);
    there.wait_any_async(&list, &event)?;
    there.signal(&list, opendxg::SignalFlags::empty())?;
    ensure_eq!(event.take()?, 1);
    // Opening on the other adapter follows the same rule.
    let opened = there.open_fence(&cross.share(opendxg::Access::ALL)?, SyncFlags::empty())?;
    ensure_eq!(opened.value(), 1);
    let bound = here.create_fence_with(0, nt)?;
    fails_with(
        there.open_fence(&bound.share(opendxg::Access::ALL)?, SyncFlags::empty()),
        refuse,
    )
}
