// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors that are closed, polled and copied at the same time.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{mpsc, Mutex};
use std::time::Duration;

use opendxg::{Access, Dxg, Error, Status, SyncFlags};
use rustix::event::{epoll, Timespec};
use selftests::child::in_child;
use selftests::rounds::{crowd, rounds, Dice};
use selftests::task::{me, until_blocked};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Opening an NT handle by number while its descriptor is closed and the number used again.
fn opened_while_closed() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let (number, done) = (AtomicI32::new(i32::MAX), AtomicBool::new(false));
    crowd(3, |part| {
        if part == 0 {
            for _ in 0..rounds(1000) {
                let nt = fence.share(Access::ALL)?;
                number.store(nt.as_raw_fd(), Ordering::Relaxed);
                drop(nt);
                // Perhaps the same number, but not an NT handle.
                drop(selftests::fds::memfd()?);
            }
            done.store(true, Ordering::Relaxed);
            return Ok(());
        }
        while !done.load(Ordering::Relaxed) {
            // SAFETY: the number is only handed to the driver, which says whether it is open.
            let fd = unsafe { BorrowedFd::borrow_raw(number.load(Ordering::Relaxed)) };
            match device.open_fence(fd, SyncFlags::empty()) {
                Ok(same) => ensure_eq!(same.value(), fence.value()),
                Err(Error::Status(Status::INVALID_HANDLE | Status::OBJECT_TYPE_MISMATCH)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    })
}

/// The device descriptor is closed while a thread sleeps in a call on it.
fn device_closed_during_a_wait() -> TestResult {
    in_child(|| {
        let fence = fixture::device()?.create_fence(0)?;
        let fd = Dxg::open()?.as_fd().try_clone_to_owned()?;
        let number = fd.into_raw_fd();
        let handles = [fence.handle().0];
        let values = [1u64];
        let device = fence.device().ok_or("no device")?.handle().0;
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let (handles, values) = (&handles, &values);
            let waiter = scope.spawn(move || -> TestResult {
                use opendxg::raw::{code, Argument};
                use opendxg::uapi::D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU as Wait;
                let mut arg = Wait::zeroed();
                arg.hDevice = device;
                arg.ObjectCount = 1;
                arg.ObjectHandleArray = handles.as_ptr() as u64;
                arg.FenceValueArray = values.as_ptr() as u64;
                // SAFETY: open until the other thread closes it, after this call has begun.
                let fd = unsafe { BorrowedFd::borrow_raw(number) };
                let _ = tell.send(me());
                let address = (&raw mut arg) as u64;
                let answer = fixture::raw()?.ioctl_on(fd, code(Wait::NR, Wait::SIZE), address);
                ensure_eq!(answer, Ok(0));
                Ok(())
            });
            until_blocked(told.recv().map_err(|_| "no thread")?)?;
            // SAFETY: the only owner of the number.
            unsafe { libc::close(number) };
            fence.signal(1)?;
            waiter.join().map_err(|_| "panic in a thread")?
        })
    })
}

fn epoll_with(points: &[OwnedFd]) -> TestResult<OwnedFd> {
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (index, point) in (0u64..).zip(points) {
        let data = epoll::EventData::new_u64(index);
        epoll::add(&queue, point, data, epoll::EventFlags::IN)?;
    }
    Ok(queue)
}

/// Takes what is in a slot that several threads share.
fn take<T>(slot: &Mutex<Option<T>>) -> TestResult<Option<T>> {
    Ok(slot.lock().map_err(|_| "poisoned")?.take())
}

/// Fence points in an epoll, while they are signalled, they are closed, and the epoll is closed.
fn closed_while_polled() -> TestResult {
    let device = fixture::device()?;
    for round in 0..rounds(40) {
        let fence = device.create_fence(0)?;
        let points = (1..=8).map(|value| fence.point(value).map(OwnedFd::from));
        let points = points.collect::<Result<Vec<_>, _>>()?;
        let queue = epoll_with(&points)?;
        let other = epoll_with(&points[..4])?;
        let watched = queue.try_clone()?;
        let (points, other) = (Mutex::new(Some(points)), Mutex::new(Some(other)));
        let fence = Mutex::new(Some(fence));
        crowd(5, |part| {
            Dice::new(u64::from(round) * 5 + part as u64).dawdle();
            match part {
                0 => drop(take(&points)?),
                1 => drop(take(&other)?),
                2 => {
                    if let Some(fence) = take(&fence)? {
                        fence.signal(4)?;
                        fence.signal(8)?;
                    }
                }
                _ => {
                    let mut events = [epoll::Event {
                        flags: epoll::EventFlags::empty(),
                        data: epoll::EventData::new_u64(0),
                    }; 8];
                    for _ in 0..3 {
                        let timeout = Timespec::try_from(Duration::ZERO).map_err(|_| "time")?;
                        epoll::wait(&watched, &mut events[..], Some(&timeout))?;
                    }
                }
            }
            Ok(())
        })?;
        drop(queue);
    }
    Ok(())
}

/// Closing a fence point (which cancels it) against the signal and against the end of the fence.
fn cancelled_while_signalled() -> TestResult {
    let device = fixture::device()?;
    for round in 0..rounds(60) {
        let fence = device.create_fence(0)?;
        let points = [fence.point(1)?, fence.point(1)?, fence.point(2)?];
        let points = points.map(|point| Mutex::new(Some(point)));
        let fence = Mutex::new(Some(fence));
        crowd(4, |part| {
            Dice::new(u64::from(round) * 4 + part as u64).dawdle();
            match points.get(part) {
                Some(point) => drop(take(point)?),
                None => {
                    if let Some(fence) = take(&fence)? {
                        fence.signal(1)?;
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Forks in the middle of calls of other threads.
fn forked_during_calls() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let (dxg, done) = (Dxg::open()?, AtomicBool::new(false));
    crowd(3, |part| {
        if part > 0 {
            while !done.load(Ordering::Relaxed) {
                let own = device.create_shareable_fence(part as u64)?;
                ensure_eq!(own.value(), part as u64);
                drop(own.share(Access::ALL)?);
                own.wait(1)?;
            }
            return Ok(());
        }
        let outcome = (0..rounds(25)).try_for_each(|round| {
            // The child must not allocate: the other threads' locks may be held in it.
            // SAFETY: the child only makes system calls.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                let code = opendxg::raw::code(opendxg::NO_OP, 0);
                // SAFETY: a call without an argument; then the process ends.
                unsafe {
                    let refused = libc::ioctl(dxg.as_fd().as_raw_fd(), code.into(), 0) == -1
                        && *libc::__errno_location() == libc::ENOTTY;
                    libc::_exit(if refused { 0 } else { 1 })
                }
            }
            ensure!(pid > 0, "fork failed");
            let mut status = 0;
            // SAFETY: a live int.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            ensure_eq!(status, 0, "the child's status");
            fence.signal(u64::from(round))?;
            ensure_eq!(fence.value(), u64::from(round));
            Ok(())
        });
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-110 an NT handle is opened while it is closed",
            opened_while_closed,
        )
        .test(
            "RES-110 the device is closed while a call on it sleeps",
            device_closed_during_a_wait,
        )
        .test(
            "fence points are closed, signalled and polled at once",
            closed_while_polled,
        )
        .test(
            "FEN-168 M14 closing a fence point against its signal",
            cancelled_while_signalled,
        )
        .test(
            "RES-110 fork in the middle of other threads' calls",
            forked_during_calls,
        )
}
