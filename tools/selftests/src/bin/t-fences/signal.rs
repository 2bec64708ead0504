// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals of the CPU.

use opendxg::{EventFd, FenceValues, MonitoredFence, SignalFlags, Status, SyncFlags};
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-31 the value is visible when the call returns", visible)
        .test("FEN-32 lower values need permission to rewind", rewind)
        .test(
            "FEN-32 the same value again wakes nobody and changes nothing",
            equal,
        )
        .test("FEN-34 a pulse releases those who waited before it", pulse)
        .test(
            "FEN-35 flags of queued signals and unknown ones are refused",
            flags,
        )
        .test(
            "FEN-36 values are checked one by one, earlier ones stay",
            partial,
        )
        .test(
            "FEN-31 FEN-36 lists in which one fence releases somebody, and one is refused",
            lists,
        )
        .test(
            "FEN-36 FEN-54 rights are checked before any effect",
            rights_first,
        )
        .test("FEN-37 an opening without the right to signal", no_signal)
        .test(
            "FEN-17 the same object several times in a signal",
            duplicates,
        )
}

/// Lists of each length that is handled in its own way. Somebody waits for one of the fences, and
/// the value of another one may be refused.
fn lists() -> TestResult {
    let device = fixture::device()?;
    for length in [2, 4, 5, 64, 65] {
        let places = [0, length / 2, length - 1];
        for (waited, refused) in places
            .into_iter()
            .flat_map(|waited| [None, Some(0), Some(length - 1)].map(|refused| (waited, refused)))
        {
            let what = format!("{length} fences, {waited} releases, {refused:?} is refused");
            let fences = (0..length)
                .map(|place| device.create_fence(if refused == Some(place) { 9 } else { 0 }))
                .collect::<opendxg::Result<Vec<_>>>()?;
            let event = EventFd::new()?;
            fences[waited].wait_async(10, &event)?;
            let list =
                fences
                    .iter()
                    .enumerate()
                    .fold(FenceValues::new(), |list, (place, fence)| {
                        match place == waited {
                            true => list.with(fence, 10),
                            false => list.with(fence, 5),
                        }
                    });
            let outcome = device.signal(&list, SignalFlags::empty());
            // That of the fence somebody waits for is higher than what it begins with.
            let refused = refused.filter(|refused| *refused != waited);
            match refused {
                Some(_) => fails_with(outcome, Status::INVALID_PARAMETER)?,
                None => outcome?,
            }
            let end = refused.unwrap_or(length);
            for (place, fence) in fences.iter().enumerate() {
                let before = if refused == Some(place) { 9 } else { 0 };
                let expected = match (place < end, place == waited) {
                    (true, true) => 10,
                    (true, false) => 5,
                    (false, _) => before,
                };
                ensure_eq!(fence.value(), expected, "{what}: fence {place}");
            }
            ensure_eq!(event.take()?, u64::from(waited < end), "{what}");
        }
    }
    Ok(())
}

fn visible() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let shared = fence.share(opendxg::Access::ALL)?;
    let other = device.open_fence(&shared, SyncFlags::empty())?;
    for value in [1, 2, 0xffff_ffff, 0x1_0000_0000, 1 << 63, u64::MAX] {
        fence.signal(value)?;
        ensure_eq!((fence.value(), other.value()), (value, value));
    }
    Ok(())
}

fn rewind() -> TestResult {
    let device = fixture::device()?;
    for (current, lower) in [
        (1, 0),
        (10, 9),
        (10, 0),
        (1 << 63, (1 << 63) - 1),
        (u64::MAX, 0),
    ] {
        let fence = device.create_fence(current)?;
        let event = EventFd::new()?;
        fence.wait_async(current.saturating_add(1), &event)?;
        // At the very top the wait above is satisfied.
        let fired = u64::from(current == u64::MAX);
        ensure_eq!(event.take()?, fired);
        fails_with(fence.signal(lower), Status::INVALID_PARAMETER)?;
        ensure_eq!(fence.value(), current, "after a refused rewind");
        fence.signal_rewind(lower)?;
        ensure_eq!(fence.value(), lower, "after a rewind");
        ensure_eq!(event.take()?, 0, "woken by a rewind");
    }
    Ok(())
}

fn equal() -> TestResult {
    let fence = fixture::device()?.create_fence(5)?;
    let event = EventFd::new()?;
    fence.wait_async(6, &event)?;
    fence.signal(5)?;
    fence.signal_rewind(5)?;
    ensure_eq!(fence.value(), 5);
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn pulse() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    for value in [3, 4, 10, 11] {
        fence.wait_async(value, &event)?;
    }
    fence.signal(10)?;
    fence.signal_rewind(3)?;
    ensure_eq!(event.take()?, 3);
    fence.wait_async(10, &event)?;
    ensure_eq!(event.take()?, 0, "a wait after the pulse");
    Ok(())
}

fn flags() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    for bit in 0..32 {
        let flag = SignalFlags::from_bits_retain(1 << bit);
        if flag == SignalFlags::ALLOW_FENCE_REWIND {
            continue;
        }
        for flags in [flag, flag | SignalFlags::ALLOW_FENCE_REWIND] {
            fails_with(fence.signal_with(7, flags), Status::INVALID_PARAMETER)?;
        }
    }
    ensure_eq!(fence.value(), 0);
    Ok(())
}

fn partial() -> TestResult {
    let device = fixture::device()?;
    let fences: Vec<MonitoredFence> = (0..4)
        .map(|_| device.create_fence(5))
        .collect::<Result<_, _>>()?;
    let event = EventFd::new()?;
    for fence in &fences {
        fence.wait_async(6, &event)?;
    }
    let mut list = FenceValues::new();
    for (fence, value) in fences.iter().zip([6, 7, 4, 8]) {
        list.push(fence, value);
    }
    let refuse = Status::INVALID_PARAMETER;
    fails_with(device.signal(&list, SignalFlags::empty()), refuse)?;
    let values: Vec<u64> = fences.iter().map(MonitoredFence::value).collect();
    ensure_eq!(values, [6, 7, 5, 5]);
    ensure_eq!(event.take()?, 2);
    Ok(())
}

fn rights_first() -> TestResult {
    let device = fixture::device()?;
    let first = device.create_fence(0)?;
    let second = device.create_fence_with(0, SyncFlags::NO_SIGNAL)?;
    let list = FenceValues::new().with(&first, 1).with(&second, 1);
    let refuse = Status::ACCESS_DENIED;
    fails_with(device.signal(&list, SignalFlags::empty()), refuse)?;
    ensure_eq!((first.value(), second.value()), (0, 0));
    // Handles before rights (FEN-53).
    let mut list = FenceValues::new().with(&second, 1);
    list.push_handle(opendxg::LocalHandle::NONE, 1);
    let refuse = Status::INVALID_PARAMETER;
    fails_with(device.signal(&list, SignalFlags::empty()), refuse)?;
    // Rights before values.
    let third = device.create_fence(9)?;
    let list = FenceValues::new().with(&third, 1).with(&second, 1);
    fails_with(
        device.signal(&list, SignalFlags::empty()),
        Status::ACCESS_DENIED,
    )
}

fn no_signal() -> TestResult {
    let device = fixture::device()?;
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING;
    let creator = device.create_fence_with(5, flags | SyncFlags::NO_SIGNAL)?;
    let denied = |fence: &MonitoredFence| -> TestResult {
        for value in [0, 5, 6] {
            fails_with(fence.signal(value), Status::ACCESS_DENIED)?;
            fails_with(fence.signal_rewind(value), Status::ACCESS_DENIED)?;
        }
        Ok(())
    };
    denied(&creator)?;
    creator.wait(5)?;
    let shared = creator.share(opendxg::Access::ALL)?;
    denied(&device.open_fence(&shared, SyncFlags::NO_SIGNAL)?)?;
    let other = device.open_fence(&shared, SyncFlags::empty())?;
    other.signal(6)?;
    ensure_eq!(creator.value(), 6);
    Ok(())
}

fn duplicates() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let event = EventFd::new()?;
    for value in 1..=3 {
        fence.wait_async(value, &event)?;
    }
    let list = FenceValues::new()
        .with(&fence, 1)
        .with(&fence, 2)
        .with(&fence, 3);
    device.signal(&list, SignalFlags::empty())?;
    ensure_eq!(fence.value(), 3);
    ensure_eq!(event.take()?, 3);
    // The second element would go down.
    let list = FenceValues::new().with(&fence, 9).with(&fence, 4);
    fails_with(
        device.signal(&list, SignalFlags::empty()),
        Status::INVALID_PARAMETER,
    )?;
    ensure_eq!(fence.value(), 9);
    device.signal(&list, SignalFlags::ALLOW_FENCE_REWIND)?;
    ensure_eq!(fence.value(), 4);
    Ok(())
}
