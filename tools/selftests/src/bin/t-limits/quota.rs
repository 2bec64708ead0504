// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a process: reached, refused, and everything usable again once something is given
//! back.

use std::time::Duration;

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Access, Dxg, EventFd, Luid, Status, SyncFlags, SyncKind};
use selftests::child::in_child;
use selftests::leak::Watch;
use selftests::rounds::Dice;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, module, skip, Suite, TestResult};

/// Limits above this are not worth the time.
const REACHABLE: usize = 100_000;

/// The limit that a module parameter sets.
fn limit(parameter: &str) -> TestResult<usize> {
    let limit = module::number(parameter)?;
    if limit > REACHABLE {
        skip!("{parameter} is {limit}: load the module with a smaller one");
    }
    if limit < 16 {
        skip!("{parameter} is {limit}: too small for anything");
    }
    Ok(limit)
}

fn open_adapter(raw: &Raw, luid: Luid) -> TestResult<Result<u32, Status>> {
    let mut arg = D3DKMT_OPENADAPTERFROMLUID::zeroed();
    arg.AdapterLuid = luid.into();
    let answer = raw.exec(&mut arg)?;
    Ok(match answer.is_success() {
        true => Ok(arg.hAdapter),
        false => Err(answer),
    })
}

fn close_adapter(raw: &Raw, handle: u32) -> TestResult<Status> {
    let mut arg = D3DKMT_CLOSEADAPTER::zeroed();
    arg.hAdapter = handle;
    Ok(raw.exec(&mut arg)?)
}

fn handles() -> TestResult {
    let limit = limit("max_handles")?;
    in_child(|| {
        let raw = fixture::raw()?;
        let adapter = fixture::adapter()?;
        let device = adapter.create_device()?;
        let fence = device.create_shareable_fence(0)?;
        let nt = fence.share(Access::ALL)?;
        let mut handles = Vec::with_capacity(limit);
        let refused = loop {
            match open_adapter(&raw, adapter.luid())? {
                Ok(handle) => handles.push(handle),
                Err(status) => break status,
            }
            ensure!(handles.len() < limit, "more handles than max_handles");
        };
        ensure_eq!(refused, Status::NO_MEMORY);
        ensure_eq!(handles.len() + 3, limit);

        // Every call that makes a handle is refused, and changes nothing.
        let watch = Watch::start()?;
        let mutex = SyncKind::Mutex {
            initially_owned: false,
        };
        fails_with(Dxg::open()?.adapters(), Status::NO_MEMORY)?;
        fails_with(adapter.create_device(), Status::NO_MEMORY)?;
        fails_with(device.create_context(0), Status::NO_MEMORY)?;
        fails_with(device.create_hw_context(0), Status::NO_MEMORY)?;
        fails_with(device.create_fence(0), Status::NO_MEMORY)?;
        fails_with(device.create_shareable_fence(0), Status::NO_MEMORY)?;
        fails_with(
            device.create_sync_object(mutex, SyncFlags::SHARED),
            Status::NO_MEMORY,
        )?;
        fails_with(
            device.open_fence(&nt, SyncFlags::empty()),
            Status::NO_MEMORY,
        )?;
        fails_with(Dxg::open()?.open_nt(&nt), Status::NO_MEMORY)?;
        watch.unchanged()?;
        drop(watch);
        // What needs no handle works.
        fence.signal(1)?;
        fence.wait(1)?;
        ensure_eq!(fence.value(), 1);

        // One given back is one to be had.
        let last = handles.pop().ok_or("no handles")?;
        ensure_eq!(close_adapter(&raw, last)?, Status::SUCCESS);
        let again = open_adapter(&raw, adapter.luid())?;
        ensure_eq!(again, Ok(last + 0x40));
        handles.push(last + 0x40);
        ensure_eq!(open_adapter(&raw, adapter.luid())?, Err(Status::NO_MEMORY));

        // Everything given back in any order, then filled again; no old number is alive.
        let mut dice = Dice::new(12);
        for index in (1..handles.len()).rev() {
            handles.swap(index, dice.below(index as u32 + 1) as usize);
        }
        for handle in &handles {
            ensure_eq!(close_adapter(&raw, *handle)?, Status::SUCCESS);
        }
        for old in &handles {
            let new = open_adapter(&raw, adapter.luid())?.map_err(|status| status.to_string())?;
            ensure!(new > last, "{new:#x} was used before");
            ensure_eq!(close_adapter(&raw, *old)?, Status::INVALID_PARAMETER);
        }
        Ok(())
    })
}

fn waits() -> TestResult {
    let limit = limit("max_waiters")?;
    in_child(|| {
        let device = fixture::device()?;
        let (fence, other) = (device.create_fence(0)?, device.create_fence(0)?);
        let (event, last) = (EventFd::new()?, EventFd::new()?);
        for _ in 1..limit {
            fence.wait_async(1, &event)?;
        }
        other.wait_async(1, &last)?;
        ensure_eq!(Dxg::open()?.counters()?.process_waiters, limit as u64);

        fails_with(fence.wait_async(1, &event), Status::NO_MEMORY)?;
        fails_with(fence.point(1), Status::NO_MEMORY)?;
        // A wait that is satisfied needs no place, nor does one that sleeps.
        fence.wait_async(0, &last)?;
        ensure_eq!(last.take()?, 1);
        fence.wait(0)?;

        other.signal(1)?;
        ensure_eq!(last.take()?, 1);
        let point = fence.point(1)?;
        fails_with(fence.wait_async(1, &event), Status::NO_MEMORY)?;
        drop(point);
        fence.wait_async(1, &event)?;
        fails_with(fence.point(1), Status::NO_MEMORY)?;

        fence.signal(1)?;
        // The signal tells 4096 of them, the worker the others.
        let mut told = 0;
        eventually("all are told", || {
            told += event.take().unwrap_or(0);
            told == limit as u64
        })?;
        let dxg = Dxg::open()?;
        eventually("no wait is left", || {
            dxg.counters().is_ok_and(|now| now.process_waiters == 0)
        })?;
        drop(fence.point(2)?);
        Ok(())
    })
}

/// Lets this process have no more descriptors than it has.
fn no_more_descriptors() -> TestResult {
    let highest = (0..).find(|fd| {
        // SAFETY: only asks.
        unsafe { libc::fcntl(*fd, libc::F_GETFD) < 0 }
    });
    let limit = libc::rlimit {
        rlim_cur: highest.unwrap_or(0) as u64,
        rlim_max: 65_536,
    };
    // SAFETY: a live struct.
    ensure_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    Ok(())
}

fn descriptors() -> TestResult {
    in_child(|| {
        let dxg = Dxg::open()?;
        let device = fixture::device()?;
        let fence = device.create_shareable_fence(0)?;
        // Reading counters takes a descriptor: one is given back for that.
        let spare = dxg.counters()?;
        no_more_descriptors()?;
        for _ in 0..100 {
            fails_with(fence.share(Access::ALL), Status::NO_MEMORY)?;
            fails_with(fence.point(1), Status::NO_MEMORY)?;
        }
        ensure!(Dxg::open().is_err());
        fence.signal(1)?;
        let limit = libc::rlimit {
            rlim_cur: 1024,
            rlim_max: 65_536,
        };
        // SAFETY: a live struct.
        ensure_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        ensure_eq!(dxg.counters()?, spare);
        drop(fence.share(Access::ALL)?);
        drop(fence.point(2)?);
        Ok(())
    })
}

fn never_number_zero() -> TestResult {
    in_child(|| {
        use std::os::fd::AsRawFd;
        let fence = fixture::device()?.create_shareable_fence(0)?;
        // SAFETY: nothing in this process reads its standard input.
        ensure_eq!(unsafe { libc::close(0) }, 0);
        let nt = fence.share(Access::ALL)?;
        ensure!(nt.as_raw_fd() > 0);
        let point = fence.point(5)?;
        ensure!(point.as_raw_fd() > 0);
        // SAFETY: only asks.
        let zero = unsafe { libc::fcntl(0, libc::F_GETFD) };
        ensure!(zero < 0, "number 0 was taken");
        Ok(())
    })
}

pub(crate) fn tests(suite: Suite) -> Suite {
    let minute = Duration::from_secs(60);
    suite
        .slow(
            "RES-6 as many handles as max_handles, and all of them again",
            minute,
            handles,
        )
        .slow("FEN-45 as many pending waits as max_waiters", minute, waits)
        .test(
            "RES-13 no descriptor left: refused, and nothing is left behind",
            descriptors,
        )
        .test(
            "RES-13 an NT handle is never descriptor 0",
            never_number_zero,
        )
}
