// SPDX-License-Identifier: MIT OR Apache-2.0
//! No fence that a user can delay is in a dma-buf of the module (RES-88).

use opendxg::SyncFlags;
use rustix::event::PollFlags;
use selftests::dma_buf::{export_sync_file, is_signalled, READ, WRITE};
use selftests::fds::poll_events;
use selftests::resource::{export, flags, Create, ALL_ACCESS, PAGE_SIZE};
use selftests::sharing::share_raw;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};
use std::os::fd::AsFd;
use std::time::Duration;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-88 an exported sync file has signalled", signalled)
        .test("RES-88 a dma-buf is never busy", never_busy)
        .test(
            "RES-88 a fence that is never signalled does not matter",
            beside_a_fence,
        )
}

fn signalled() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
    let file = export(made.raw(), made.first(), 0)?;
    for access in [READ, WRITE, READ | WRITE] {
        let sync = export_sync_file(&file, access)?;
        ensure!(is_signalled(&sync)?, "access {access}");
    }
    Ok(())
}

fn is_idle(file: impl AsFd) -> TestResult {
    let events = poll_events(file.as_fd(), Duration::ZERO)?;
    ensure_eq!(
        events & (PollFlags::IN | PollFlags::OUT),
        PollFlags::IN | PollFlags::OUT
    );
    Ok(())
}

fn never_busy() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
    let file = export(made.raw(), made.first(), 0)?;
    is_idle(&file)?;
    let mapping = made.lock()?;
    is_idle(&file)?;
    mapping.unlock()?;
    is_idle(&file)
}

/// A fence shared with the buffer is a NT handle, and pending for ever; the buffer is idle all the
/// same.
fn beside_a_fence() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let made = Create::sized(&device, flags::NT, &[PAGE_SIZE]).run()?;
    let nt = share_raw(made.raw(), &[made.resource], ALL_ACCESS, 0)?;
    let pending = fence.point(5)?;
    let file = export(made.raw(), made.first(), 0)?;
    is_idle(&file)?;
    ensure!(is_signalled(export_sync_file(&file, READ | WRITE)?)?);
    let events = poll_events(pending.as_fd(), Duration::ZERO)?;
    ensure!(!events.contains(PollFlags::IN), "the fence is pending");
    let shared = fence.share(opendxg::Access::ALL)?;
    drop(device.open_fence(&shared, SyncFlags::empty())?);
    drop(nt);
    Ok(())
}
