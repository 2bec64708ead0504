// SPDX-License-Identifier: MIT OR Apache-2.0
//! Local handles: one increasing chain over all kinds (RES-4, RES-6, FEN-2, FEN-52).

use opendxg::{Dxg, EventFd, Status, SyncFlags, SyncKind};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-6 FEN-52 successes of all kinds differ by 0x40",
            all_kinds,
        )
        .test("RES-6 destroyed values are not used again", not_reused)
        .test(
            "RES-4 FEN-2 failures of all kinds consume nothing",
            failures,
        )
        .test("RES-7 two opens of the node share one table", one_table)
}

fn all_kinds() -> TestResult {
    let event = EventFd::new()?;
    let adapter = fixture::adapter()?;
    let mut expected = adapter.handle().0;
    let mut next = |handle: opendxg::LocalHandle| {
        expected += 0x40;
        ensure_eq!(handle.0, expected);
        Ok(())
    };
    let device = adapter.create_device()?;
    next(device.handle())?;
    let context = device.create_context(0)?;
    next(context.handle())?;
    let hw_context = device.create_hw_context(0)?;
    next(hw_context.handle())?;
    let fence = device.create_shareable_fence(0)?;
    next(fence.handle())?;
    for kind in [
        SyncKind::Mutex {
            initially_owned: true,
        },
        SyncKind::Semaphore {
            max_count: 4,
            initial_count: 1,
        },
        SyncKind::Fence { initial_value: 7 },
        SyncKind::CpuNotification {
            event: Some(&event),
        },
        SyncKind::MonitoredFence { initial_value: 7 },
    ] {
        next(
            device
                .create_sync_object(kind, SyncFlags::empty())?
                .handle(),
        )?;
    }
    let shared = fence.share(opendxg::Access::ALL)?;
    next(device.open_fence(&shared, SyncFlags::empty())?.handle())?;
    next(
        device
            .open_sync_object(&shared, SyncFlags::empty())?
            .handle(),
    )?;
    next(device.adapter().create_device()?.handle())?;
    Ok(())
}

fn not_reused() -> TestResult {
    let device = fixture::device()?;
    let mut last = device.create_fence(0)?.into_raw();
    let first = last;
    for _ in 0..1000 {
        let fence = device.create_fence(0)?;
        ensure_eq!(fence.handle().0, last.0 + 0x40);
        last = fence.handle();
        fence.destroy()?;
    }
    ensure!(last > first);
    Ok(())
}

fn failures() -> TestResult {
    let device = fixture::device()?;
    let adapter = device.adapter();
    let before = device.create_fence(0)?;
    for _ in 0..10 {
        let both = SyncFlags::NO_SIGNAL | SyncFlags::NO_WAIT;
        fails_with(device.create_fence_with(0, both), Status::INVALID_PARAMETER)?;
        let kind = SyncKind::CpuNotification { event: None };
        let created = device.create_sync_object(kind, SyncFlags::empty());
        fails_with(created, Status::INVALID_HANDLE)?;
        let kind = SyncKind::Semaphore {
            max_count: 1,
            initial_count: 2,
        };
        let created = device.create_sync_object(kind, SyncFlags::empty());
        fails_with(created, Status::INVALID_PARAMETER)?;
        fails_with(device.create_context(99), Status::INVALID_PARAMETER)?;
        let luid = opendxg::Luid { high: 1, low: 1 };
        fails_with(Dxg::open()?.open_adapter(luid), Status::INVALID_PARAMETER)?;
        fails_with(
            adapter.query(u32::MAX, &mut [0; 8]),
            Status::INVALID_PARAMETER,
        )?;
        fails_with(
            device.open_fence(&EventFd::new()?, SyncFlags::empty()),
            Status::OBJECT_TYPE_MISMATCH,
        )?;
    }
    let after = device.create_fence(0)?;
    ensure_eq!(after.handle().0, before.handle().0 + 0x40);
    Ok(())
}

fn one_table() -> TestResult {
    let first = fixture::adapter()?;
    let second = fixture::adapter()?;
    ensure_eq!(second.handle().0, first.handle().0 + 0x40);
    // A handle made through one open is destroyed through the other one.
    let device = first.create_device()?;
    let raw = fixture::raw()?;
    let handle = device.handle().0;
    let mut arg = opendxg::uapi::D3DKMT_DESTROYDEVICE { hDevice: handle };
    selftests::call::succeeds(&raw, &mut arg)?;
    selftests::call::refused(&raw, &mut arg, Status::INVALID_PARAMETER)
}
