// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pinned memory counts as long as it is pinned, no matter who has it (MEM-109).

use std::os::fd::OwnedFd;

use opendxg::Status;
use selftests::child::in_child;
use selftests::fds::{receive, send, socket_pair};
use selftests::region::Region;
use selftests::resource::{flags, Create, PAGE_SIZE};
use selftests::user::{become_user, needs_root, OTHER, USER};
use selftests::{ensure_eq, fixture, Suite, TestResult};

/// What the user may pin.
const LIMIT: u64 = 64 * PAGE_SIZE;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-21 MEM-109 RLIMIT_MEMLOCK holds for memory whose owner is gone",
            owner_is_gone,
        )
        .test(
            "RES-21 MEM-109 pinned memory that is on its way out does not count",
            on_its_way_out,
        )
        .test("RES-21 VmPin shows what is pinned", shown)
}

/// Makes the calling process one of an ordinary user who may pin that much.
fn limited(user: u32) -> TestResult {
    let limit = libc::rlimit {
        rlim_cur: LIMIT,
        rlim_max: LIMIT,
    };
    // SAFETY: a live struct.
    ensure_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) }, 0);
    become_user(user)
}

/// Pins as much as there may be; the NT handle of it.
fn pin() -> TestResult<OwnedFd> {
    let device = fixture::device()?;
    let memory = Region::private(LIMIT as usize)?;
    let made = Create::over(&device, flags::NT, memory.address(), LIMIT).run()?;
    let handle = made.share()?;
    made.destroy()?;
    Ok(handle)
}

/// Demands that nothing more can be pinned.
fn refused() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(PAGE_SIZE as usize)?;
    Create::over(&device, flags::NT, memory.address(), PAGE_SIZE).is_refused(Status::NO_MEMORY)
}

fn owner_is_gone() -> TestResult {
    needs_root()?;
    in_child(|| {
        limited(USER)?;
        let (ours, theirs) = socket_pair()?;
        in_child(|| send(&theirs, pin()?))?;
        let handle = receive(&ours)?;
        in_child(refused)?;
        refused()?;
        // No matter who has the handle, and who closes it.
        drop(handle);
        in_child(|| pin().map(drop))
    })?;
    // Others are not concerned.
    let (ours, theirs) = socket_pair()?;
    in_child(|| {
        limited(USER)?;
        send(&theirs, pin()?)
    })?;
    in_child(|| {
        limited(OTHER)?;
        pin().map(drop)
    })?;
    drop(receive(&ours)?);
    Ok(())
}

fn on_its_way_out() -> TestResult {
    needs_root()?;
    in_child(|| {
        limited(USER)?;
        for _ in 0..100 {
            drop(pin()?);
        }
        Ok(())
    })
}

fn shown() -> TestResult {
    let pinned = || -> TestResult<u64> {
        let text = std::fs::read_to_string("/proc/self/status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmPin:"));
        let words = line.and_then(|line| line.split_whitespace().next());
        words
            .and_then(|number| number.parse().ok())
            .ok_or("no VmPin".into())
    };
    let before = pinned()?;
    let handle = pin()?;
    ensure_eq!(pinned()?, before + LIMIT / 1024);
    drop(handle);
    selftests::time::eventually("the count comes back", || {
        pinned().is_ok_and(|now| now == before)
    })?;
    Ok(())
}
