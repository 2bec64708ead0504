// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a sync file to the fence behind it (FEN-166).

use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, EventFd, Guid, InfoItem, Object, Status};
use selftests::call::refused;
use selftests::child::Child;
use selftests::fds::closed_number;
use selftests::gpu::{one, reaches, Gpu};
use selftests::leak::Watch;
use selftests::sync_file::{ends_with, merged, Foreign, SIGNALLED};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-166 the fence, the value, the addresses", opened)
        .test(
            "FEN-166 in another process, which may only wait",
            in_another,
        )
        .test("FEN-166 what is no sync file of the module", refusals)
        .test("FEN-166 a sync file keeps no fence", keeps_nothing)
        .test(
            "FEN-166 RES-63 a sync file in the store of its own fence",
            in_its_own_store,
        )
}

fn opened() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(0)?;
    let foreign = Foreign::new()?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.context().signal(&one(&fence, 6))?;
    let file = gpu.device().create_sync_file(&fence, 5)?;
    let (again, value) = gpu.device().open_sync_file(&file)?;
    ensure_eq!(value, 5);
    ensure_eq!(again.query()?.id, fence.query()?.id);
    ensure_eq!(again.value(), 0);
    ensure!(again.gpu_address() != 0, "no GPU address");
    fails_with(again.signal(1), Status::ACCESS_DENIED)?;
    foreign.signal()?;
    again.wait(value)?;
    ensure_eq!(again.value(), 6);
    ends_with(&file, SIGNALLED)?;
    // One that has signalled is known as well.
    let (last, value) = gpu.device().open_sync_file(&file)?;
    ensure_eq!((last.value(), value), (6, 5));
    Ok(())
}

fn in_another() -> TestResult {
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_shareable_fence(0)?;
    // One that may not be shared is for its process alone.
    let private = gpu.device().create_fence(1)?;
    let other = gpu.device().create_sync_file(&private, 1)?;
    let foreign = Foreign::new()?;
    gpu.context().wait_sync_file(foreign.file()?)?;
    gpu.context().signal(&one(&fence, 3))?;
    let file = gpu.device().create_sync_file(&fence, 3)?;
    let ready = selftests::child::Gate::new()?;
    let child = Child::spawn(|| {
        let device = fixture::device()?;
        fails_with(device.open_sync_file(&other), Status::INVALID_PARAMETER)?;
        let (theirs, value) = device.open_sync_file(&file)?;
        ensure_eq!((theirs.value(), value), (0, 3));
        fails_with(theirs.signal(7), Status::ACCESS_DENIED)?;
        fails_with(theirs.share(Access::ALL), Status::ACCESS_DENIED)?;
        ready.open()?;
        reaches(&theirs, value)
    })?;
    ready.wait_for_child(&child)?;
    foreign.signal()?;
    child.join()
}

fn refusals() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let foreign = Foreign::new()?;
    let own = gpu.device().create_sync_file(gpu.done(), 0)?;
    let theirs = foreign.file()?;
    let another = Foreign::new()?;
    let both = merged(&theirs, another.file()?)?;
    let event = EventFd::new()?;
    let mut good = d3dkmt_opensyncobjectfromsyncfile::zeroed();
    (good.sync_file_handle, good.device) = (own.as_raw_fd() as u64, gpu.device().handle().0);
    for fd in [theirs.as_fd(), both.as_fd(), event.as_fd()] {
        let mut arg = good;
        arg.sync_file_handle = fd.as_raw_fd() as u64;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    for number in [0, closed_number()? as u64, 1 << 30, u64::MAX] {
        let mut arg = good;
        arg.sync_file_handle = number;
        refused(&raw, &mut arg, Status::INVALID_HANDLE)?;
    }
    for device in [0, u32::MAX, gpu.context().handle().0, gpu.done().handle().0] {
        let mut arg = good;
        arg.device = device;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn keeps_nothing() -> TestResult {
    let watch = Watch::start()?;
    let gpu = Gpu::new()?;
    let fence = gpu.device().create_fence(1)?;
    let file = gpu.device().create_sync_file(&fence, 1)?;
    ensure_eq!(fence.query()?.references, 1);
    fence.destroy()?;
    fails_with(
        gpu.device().open_sync_file(&file),
        Status::INVALID_PARAMETER,
    )?;
    ends_with(&file, SIGNALLED)?;
    drop((file, gpu));
    watch.ends_clean()
}

fn in_its_own_store() -> TestResult {
    let watch = Watch::start()?;
    {
        let gpu = Gpu::new()?;
        let fence = gpu.device().create_fence(1)?;
        let file = gpu.device().create_sync_file(&fence, 1)?;
        let item = InfoItem::new(Guid::new(0x5f, 1, 2, 3), 1, &[]).with_file(&file);
        fence.set_info(&[item])?;
    }
    watch.ends_clean()
}
