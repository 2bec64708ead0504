// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access masks of NT handles and what they allow (RES-35, RES-36, RES-104).

use std::os::fd::AsFd;

use opendxg::{Access, EventFd, FdInfo, MonitoredFence, NtHandle, Status, SyncFlags};
use selftests::{ensure, ensure_eq, fails_with, fixture, Outcome, Suite};

const READ_CONTROL: u32 = 0x2_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_READ: u32 = 0x8000_0000;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-35 masks and what is granted for them", granted)
        .test(
            "RES-35 rights of a mask hold for every handle opened by it",
            enforced,
        )
        .test(
            "RES-35 FEN-25 FEN-37 flags of an opening take more away",
            flags,
        )
        .test("RES-36 unknown bits are refused", unknown)
        .test(
            "RES-104 sharing an opened handle again gives no new rights",
            no_growth,
        )
}

/// What the driver says was granted.
fn mask(handle: &NtHandle) -> Outcome<u32> {
    let info = FdInfo::read(handle.as_fd())?;
    let text = info
        .get("dxg-access")
        .and_then(|text| text.strip_prefix("0x"));
    let mask = text.and_then(|text| u32::from_str_radix(text, 16).ok());
    mask.ok_or_else(|| format!("fdinfo without access: {info:?}").into())
}

fn granted() -> Outcome {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    for (desired, expected) in [
        (0, READ_CONTROL),
        (READ_CONTROL, READ_CONTROL),
        (GENERIC_READ, READ_CONTROL | 1),
        (GENERIC_WRITE, READ_CONTROL | 2),
        (GENERIC_EXECUTE, READ_CONTROL),
        (GENERIC_READ | GENERIC_WRITE, READ_CONTROL | 3),
        (GENERIC_ALL, 0x1f_0003),
        (0x1f_0003, 0x1f_0003),
        (READ_CONTROL | 1, READ_CONTROL | 1),
        (READ_CONTROL | 2, READ_CONTROL | 2),
    ] {
        let shared = fence.share(Access::from_bits_retain(desired))?;
        ensure_eq!(mask(&shared)?, expected, "granted for {desired:#x}");
    }
    Ok(())
}

/// Checks what an opening may do.
fn may(fence: &MonitoredFence, wait: bool, signal: bool) -> Outcome {
    let event = EventFd::new()?;
    let value = fence.value();
    if wait {
        fence.wait(value)?;
        fence.wait_async(value, &event)?;
        ensure_eq!(event.take()?, 1);
        ensure!(fence.point(value)?.is_signalled()?);
    } else {
        fails_with(fence.wait(value), Status::ACCESS_DENIED)?;
        fails_with(fence.wait_async(value, &event), Status::ACCESS_DENIED)?;
        fails_with(fence.point(value), Status::ACCESS_DENIED)?;
    }
    if signal {
        fence.signal(value + 1)?;
        ensure_eq!(fence.value(), value + 1);
    } else {
        fails_with(fence.signal(value + 1), Status::ACCESS_DENIED)?;
        ensure_eq!(fence.value(), value);
    }
    Ok(())
}

fn enforced() -> Outcome {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(1)?;
    for (desired, wait, signal) in [
        (0, false, false),
        (READ_CONTROL, false, false),
        (1, true, false),
        (2, false, true),
        (3, true, true),
        (GENERIC_READ, true, false),
        (GENERIC_WRITE, false, true),
        (GENERIC_EXECUTE, false, false),
        (GENERIC_ALL, true, true),
        (0x1f_0003, true, true),
    ] {
        let shared = fence.share(Access::from_bits_retain(desired))?;
        let opened = device.open_fence(&shared, SyncFlags::empty())?;
        may(&opened, wait, signal).map_err(|failure| format!("access {desired:#x}: {failure}"))?;
        // Reading the mapped value needs no right, and a copy of the descriptor has the same ones.
        let copy = shared.try_clone()?;
        let opened = device.open_fence(&copy, SyncFlags::empty())?;
        may(&opened, wait, signal).map_err(|failure| format!("copy, {desired:#x}: {failure}"))?;
    }
    Ok(())
}

fn flags() -> Outcome {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(1)?;
    let all = fence.share(Access::ALL)?;
    may(&device.open_fence(&all, SyncFlags::NO_SIGNAL)?, true, false)?;
    may(&device.open_fence(&all, SyncFlags::NO_WAIT)?, false, true)?;
    let wait = fence.share(Access::WAIT)?;
    may(&device.open_fence(&wait, SyncFlags::NO_WAIT)?, false, false)?;
    may(
        &device.open_fence(&wait, SyncFlags::NO_SIGNAL)?,
        true,
        false,
    )
}

fn unknown() -> Outcome {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let known = 0x1f_0003 | GENERIC_ALL | GENERIC_EXECUTE | GENERIC_WRITE | GENERIC_READ;
    // MAXIMUM_ALLOWED is a request, not a right.
    let known = known | 0x0200_0000u32;
    for bit in (0..32).filter(|bit| (known >> bit) & 1 == 0) {
        for desired in [1 << bit, 0x1f_0003 | (1 << bit)] {
            let shared = fence.share(Access::from_bits_retain(desired));
            fails_with(shared, Status::INVALID_PARAMETER)?;
        }
    }
    Ok(())
}

fn no_growth() -> Outcome {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(1)?;
    let wait_only = fence.share(Access::WAIT)?;
    let opened = device.open_fence(&wait_only, SyncFlags::empty())?;
    may(&opened, true, false)?;
    match opened.share(Access::ALL) {
        Err(error) => ensure_eq!(error.status(), Status::ACCESS_DENIED),
        Ok(grown) => {
            let granted = mask(&grown)?;
            ensure!(granted & 2 == 0, "wait only became {granted:#x}");
        }
    }
    // The same rights again are fine.
    let again = opened.share(Access::WAIT)?;
    may(&device.open_fence(&again, SyncFlags::empty())?, true, false)
}
