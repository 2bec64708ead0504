// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles that are made, guessed, used and destroyed at the same time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use opendxg::raw::{self, Argument, Raw};
use opendxg::uapi::*;
use opendxg::{Dxg, Error, EventFd, FenceValues, Status, SyncFlags, SyncKind};
use selftests::memory::Page;
use selftests::rounds::{crowd, rounds};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// The argument that makes a monitored fence.
fn creation(device: u32) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
    let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
    arg.hDevice = device;
    arg.Info.Type = D3DDDI_MONITORED_FENCE;
    arg
}

/// Destroys a handle; false if there was nothing to destroy.
fn destroy(raw: &Raw, handle: u32) -> TestResult<bool> {
    let mut arg = D3DKMT_DESTROYSYNCHRONIZATIONOBJECT::zeroed();
    arg.hSyncObject = handle;
    let answer = raw.exec(&mut arg)?;
    ensure!(
        answer == Status::SUCCESS || answer == Status::INVALID_PARAMETER,
        "{answer}"
    );
    Ok(answer == Status::SUCCESS)
}

/// One thread makes fences, another destroys the handle that comes next.
fn guessed() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let next = AtomicU32::new(fixture::next_handle()?);
    let (done, destroyed) = (AtomicBool::new(false), AtomicU32::new(0));
    let count = |was: bool| destroyed.fetch_add(u32::from(was), Ordering::Relaxed);
    let made = rounds(800);
    crowd(2, |part| {
        if part == 1 {
            while !done.load(Ordering::Relaxed) {
                count(destroy(&raw, next.load(Ordering::Relaxed))?);
            }
            return Ok(());
        }
        for _ in 0..made {
            let mut arg = creation(device.handle().0);
            ensure_eq!(raw.exec(&mut arg), Ok(Status::SUCCESS));
            next.store(arg.hSyncObject + 0x40, Ordering::Relaxed);
            count(destroy(&raw, arg.hSyncObject)?);
        }
        done.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    // Each was destroyed exactly once, by one of the two.
    ensure_eq!(destroyed.load(Ordering::Relaxed), made);
    Ok(())
}

/// As above, but the handle cannot be copied out, so it must never have been usable.
fn guessed_unpublished() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let arg = creation(device.handle().0);
    let page = Page::beginning_with(selftests::poison::bytes(&arg))?.read_only()?;
    let code = raw::code(
        D3DKMT_CREATESYNCHRONIZATIONOBJECT2::NR,
        D3DKMT_CREATESYNCHRONIZATIONOBJECT2::SIZE,
    );
    let (handle, address) = (fixture::next_handle()?, page.address());
    let done = AtomicBool::new(false);
    crowd(2, |part| {
        if part == 1 {
            while !done.load(Ordering::Relaxed) {
                for handle in [handle, handle + 0x40] {
                    ensure!(!destroy(&raw, handle)?, "destroyed before it was published");
                }
            }
            return Ok(());
        }
        for _ in 0..rounds(800) {
            let answer = raw.ioctl(code, address);
            ensure_eq!(answer, Err(opendxg::raw::Errno::FAULT));
        }
        done.store(true, Ordering::Relaxed);
        Ok(())
    })
}

fn destroyed_once() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    for _ in 0..rounds(60) {
        let handle = device.create_fence(0)?.handle().0;
        let fence = device.create_fence(0)?.into_raw().0;
        let destroyed = AtomicU32::new(0);
        crowd(4, |_| {
            destroyed.fetch_add(destroy(&raw, fence)?.into(), Ordering::Relaxed);
            ensure!(!destroy(&raw, handle)?);
            Ok(())
        })?;
        ensure_eq!(destroyed.load(Ordering::Relaxed), 1);
    }
    Ok(())
}

/// Only refusals that say "this is gone".
fn gone_or_done<T>(result: opendxg::Result<T>) -> TestResult<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(Error::Status(Status::INVALID_PARAMETER | Status::INVALID_HANDLE)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A device is destroyed while other threads make, signal and await what belongs to it.
fn device_destroyed_with_children() -> TestResult {
    for _ in 0..rounds(40) {
        let device = fixture::device()?;
        let fence = device.create_fence(0)?;
        let shared = device.create_shareable_fence(0)?;
        let event = EventFd::new()?;
        let list = FenceValues::new().with(&fence, 2).with(&shared, 2);
        crowd(4, |part| {
            let mut alive = true;
            match part {
                0 => {
                    let mut arg = D3DKMT_DESTROYDEVICE::zeroed();
                    arg.hDevice = device.handle().0;
                    ensure_eq!(fixture::raw()?.exec(&mut arg), Ok(Status::SUCCESS));
                }
                1 => {
                    while alive {
                        alive = gone_or_done(device.create_context(0))?;
                        alive &= gone_or_done(device.create_fence(1))?;
                    }
                }
                2 => {
                    while alive {
                        alive = gone_or_done(device.wait_all_async(&list, &event))?;
                        alive &= gone_or_done(shared.share(opendxg::Access::ALL))?;
                    }
                }
                // Nobody signals: the end of the fences ends the wait.
                _ => ensure!(!gone_or_done(device.wait_any(&list))?),
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Openers by global handle against the last destroy.
fn opened_by_number_while_destroyed() -> TestResult {
    let device = fixture::device()?;
    let (number, done) = (AtomicU32::new(0), AtomicBool::new(false));
    let opened = AtomicU32::new(0);
    crowd(4, |part| {
        if part > 0 {
            let dxg = Dxg::open()?;
            while !done.load(Ordering::Relaxed) {
                let handle = opendxg::GlobalHandle(number.load(Ordering::Acquire));
                let was = gone_or_done(dxg.open_global(handle))?;
                opened.fetch_add(was.into(), Ordering::Relaxed);
            }
            return Ok(());
        }
        for _ in 0..rounds(800) {
            let mutex = SyncKind::Mutex {
                initially_owned: false,
            };
            let object = device.create_sync_object(mutex, SyncFlags::SHARED)?;
            let handle = object.global_handle().ok_or("no global handle")?;
            number.store(handle.0, Ordering::Release);
            object.destroy()?;
        }
        done.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    println!(
        "# opened by number in time: {}",
        opened.load(Ordering::Relaxed)
    );
    let last = opendxg::GlobalHandle(number.load(Ordering::Relaxed));
    selftests::fails_with(Dxg::open()?.open_global(last), Status::INVALID_PARAMETER)
}

/// Many openings of one object at once; every one is counted.
fn many_openings() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let nt = fence.share(opendxg::Access::ALL)?;
    let each = rounds(2000) as usize;
    let openings = || -> TestResult<usize> {
        let info = opendxg::FdInfo::read(std::os::fd::AsFd::as_fd(&nt))?;
        let count = info.get("dxg-openings").and_then(|text| text.parse().ok());
        count.ok_or("no number of openings".into())
    };
    crowd(4, |_| {
        let all: Result<Vec<_>, _> = (0..each)
            .map(|_| device.open_fence(&nt, SyncFlags::empty()))
            .collect();
        ensure!(openings()? > each);
        drop(all?);
        for _ in 0..each / 4 {
            drop(fence.share(opendxg::Access::WAIT)?);
        }
        Ok(())
    })?;
    ensure_eq!(openings()?, 1);
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-3 a guessed handle is destroyed exactly once", guessed)
        .test(
            "RES-3 a handle that cannot be copied out is never usable",
            guessed_unpublished,
        )
        .test("RES-29 four threads destroy one handle", destroyed_once)
        .test(
            "RES-31 a device is destroyed while its children are used",
            device_destroyed_with_children,
        )
        .test(
            "RES-10 RES-110 opening by global handle against the last destroy",
            opened_by_number_while_destroyed,
        )
        .test("thousands of openings are counted exactly", many_openings)
}
