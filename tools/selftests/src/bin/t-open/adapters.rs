// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resources and adapters (RES-53). With one adapter only a part can be shown; t-many-adapters
//! runs this again.

use std::os::fd::{AsFd, AsRawFd};

use opendxg::uapi::*;
use opendxg::{Access, Device, Dxg, Luid, Status};
use selftests::call::{refused, succeeds};
use selftests::fds::closed_number;
use selftests::poison::poisoned;
use selftests::resource::{flags, Create, OpenGlobal, OpenNt, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let suite = suite
        .test("RES-53 GetSharedResourceAdapterLuid by either handle", luid)
        .test(
            "RES-53 GetSharedResourceAdapterLuid: both, none, others",
            not_luid,
        );
    if Dxg::open().and_then(|dxg| dxg.adapter_count()).unwrap_or(0) < 2 {
        return suite;
    }
    suite
        .test(
            "RES-53 a device of another adapter cannot open",
            other_adapter,
        )
        .test("RES-53 unless the resource is cross-adapter", cross_adapter)
        .test(
            "RES-19 RES-53 a standard allocation of type CROSSADAPTER is, without a flag",
            cross_adapter_type,
        )
}

fn ask(global: u32, nt: u64) -> D3DKMT_GETSHAREDRESOURCEADAPTERLUID {
    let mut arg: D3DKMT_GETSHAREDRESOURCEADAPTERLUID = poisoned();
    (arg.hGlobalShare, arg.hNtHandle) = (global, nt);
    arg
}

fn luid() -> TestResult {
    let raw = fixture::raw()?;
    for adapter in Dxg::open()?.adapters()? {
        let expected = adapter.luid();
        let device = adapter.create_device()?;
        let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
        let shared = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
        let nt = shared.share()?;
        shared.destroy()?;
        for mut arg in [ask(made.global, 0), ask(0, nt.as_raw_fd() as u64)] {
            succeeds(&raw, &mut arg)?;
            ensure_eq!(Luid::from(arg.AdapterLuid), expected);
        }
        made.destroy()?;
    }
    Ok(())
}

fn not_luid() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    let shared = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    let nt = shared.share()?;
    let fence = device.create_shareable_fence(0)?.share(Access::ALL)?;
    let file = selftests::fds::memfd()?;
    let number = |fd: &dyn AsFd| fd.as_fd().as_raw_fd() as u64;
    refused(&raw, &mut ask(0, 0), IP)?;
    refused(&raw, &mut ask(made.global, number(&nt)), IP)?;
    for global in [
        made.resource,
        made.first(),
        1,
        2,
        u32::MAX,
        made.global ^ 0x40,
    ] {
        refused(&raw, &mut ask(global, 0), IP)?;
    }
    for fd in [closed_number()? as u64, u64::MAX, u64::from(made.global)] {
        refused(&raw, &mut ask(0, fd), Status::INVALID_HANDLE)?;
    }
    for fd in [number(&file), number(&fence)] {
        refused(&raw, &mut ask(0, fd), Status::OBJECT_TYPE_MISMATCH)?;
    }
    Ok(())
}

fn two_devices() -> TestResult<(Device, Device)> {
    let adapters = Dxg::open()?.adapters()?;
    let [one, two, ..] = adapters.as_slice() else {
        return Err("fewer than two adapters".into());
    };
    ensure!(one.luid() != two.luid());
    Ok((one.create_device()?, two.create_device()?))
}

fn other_adapter() -> TestResult {
    let (here, there) = two_devices()?;
    let made = Create::sized(&here, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    let shared = Create::sized(&here, flags::NT, &[PAGE_SIZE]).run()?;
    let nt = shared.share()?;
    let mut open = OpenGlobal::new(&here, made.global)?;
    open.arg.hDevice = there.handle().0;
    open.is_refused(IP)?;
    let mut open = OpenNt::new(&here, &nt)?;
    open.arg.hDevice = there.handle().0;
    open.is_refused(IP)
}

fn cross_adapter() -> TestResult {
    let (here, there) = two_devices()?;
    let cross = flags::CROSS_ADAPTER;
    let made = Create::sized(&here, flags::GLOBAL | cross, &[PAGE_SIZE]).run()?;
    let shared = Create::sized(&here, flags::NT | cross, &[PAGE_SIZE]).run()?;
    let nt = shared.share()?;
    made.lock()?.fill(1);
    shared.lock()?.fill(2);
    let opened = OpenGlobal::new(&there, made.global)?.run()?;
    opened.lock()?.holds(1)?;
    let opened = OpenNt::new(&there, &nt)?.run()?;
    opened.lock()?.holds(2)
}

fn cross_adapter_type() -> TestResult {
    let (here, there) = two_devices()?;
    let made = Create::cross_adapter(&here, flags::GLOBAL, PAGE_SIZE).run()?;
    let shared = Create::cross_adapter(&here, flags::NT, PAGE_SIZE).run()?;
    let nt = shared.share()?;
    made.lock()?.fill(1);
    let opened = OpenGlobal::new(&there, made.global)?.run()?;
    let mapping = opened.lock()?;
    mapping.holds(1)?;
    mapping.fill(2);
    made.lock()?.holds(2)?;
    let opened = OpenNt::new(&there, &nt)?.run()?;
    opened.lock()?.is_zero()
}
