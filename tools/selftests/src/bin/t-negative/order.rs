// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two things wrong at once: the first check that fails decides (FEN-53: struct, sizes and
//! reserved bits, handles, types, rights, values).

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, FenceValues, SignalFlags, Status, SyncFlags, SyncKind};
use selftests::call::refused;
use selftests::memory::UNMAPPED;
use selftests::sharing::share_call;
use selftests::{ensure_eq, fails_with, fds, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-53 reserved bits before arrays, devices and events",
            reserved_first,
        )
        .test(
            "FEN-53 the device before the NT handle and the event",
            device_first,
        )
        .test(
            "FEN-53 types before rights, rights before values",
            types_first,
        )
        .test(
            "FEN-53 the handle before the place of the output",
            output_last,
        )
}

fn reserved_first() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let mut wait = D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
    wait.hDevice = device.handle().0;
    wait.ObjectCount = 1;
    wait.ObjectHandleArray = UNMAPPED;
    wait.FenceValueArray = UNMAPPED;
    wait.Flags = 2;
    refused(&raw, &mut wait, Status::INVALID_PARAMETER)?;
    wait.Flags = 0;
    refused(&raw, &mut wait, Status::ACCESS_VIOLATION)?;

    let mut open = D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2::zeroed();
    open.hNtHandle = fds::closed_number()? as u64;
    open.hDevice = device.handle().0;
    open.Flags = 1 << 9;
    refused(&raw, &mut open, Status::INVALID_PARAMETER)?;
    open.Flags = 0;
    refused(&raw, &mut open, Status::INVALID_HANDLE)?;

    let mut create = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    create.hDevice = device.handle().0;
    create.Info.Type = D3DDDI_CPU_NOTIFICATION;
    create.Info.Flags = 1 << 9;
    refused(&raw, &mut create, Status::INVALID_PARAMETER)?;
    create.Info.Flags = 0;
    refused(&raw, &mut create, Status::INVALID_HANDLE)
}

fn device_first() -> TestResult {
    let raw = fixture::raw()?;
    let mut open = D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2::zeroed();
    open.hNtHandle = fds::closed_number()? as u64;
    refused(&raw, &mut open, Status::INVALID_PARAMETER)?;
    let mut create = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    create.Info.Type = D3DDDI_CPU_NOTIFICATION;
    refused(&raw, &mut create, Status::INVALID_PARAMETER)
}

fn types_first() -> TestResult {
    let device = fixture::device()?;
    let kind = SyncKind::Mutex {
        initially_owned: false,
    };
    let mutex = device.create_sync_object(kind, SyncFlags::empty())?;
    let no_wait = device.create_fence_with(9, SyncFlags::NO_WAIT)?;
    let no_signal = device.create_fence_with(9, SyncFlags::NO_SIGNAL)?;
    for swap in [false, true] {
        let list = match swap {
            false => FenceValues::new().with(&no_wait, 1).with(&mutex, 1),
            true => FenceValues::new().with(&mutex, 1).with(&no_wait, 1),
        };
        fails_with(device.wait_any(&list), Status::INVALID_PARAMETER)?;
    }
    // The value would be refused, too.
    let list = FenceValues::new().with(&no_wait, 1).with(&no_signal, 1);
    let refused = device.signal(&list, SignalFlags::empty());
    fails_with(refused, Status::ACCESS_DENIED)?;
    ensure_eq!((no_wait.value(), no_signal.value()), (9, 9));
    Ok(())
}

fn output_last() -> TestResult {
    let raw = fixture::raw()?;
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let (good, bad) = ([fence.handle().0], [0u32]);
    let mut slot = 0;
    let mut share = share_call(&bad, Access::ALL.bits(), 0, &mut slot);
    share.pSharedNtHandle = UNMAPPED;
    refused(&raw, &mut share, Status::INVALID_PARAMETER)?;
    share.ObjectHandleArray = good.as_ptr() as u64;
    refused(&raw, &mut share, Status::ACCESS_VIOLATION)
}
