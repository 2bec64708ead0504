// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors that are copied, passed on and closed.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw;
use opendxg::raw::Errno;
use opendxg::uapi::DXG_NR_NOP;
use opendxg::{Access, Device, Dxg, EventFd, MonitoredFence, NtHandle, SyncFlags, SyncKind};
use selftests::child::{Child, Gate};
use selftests::fds::{receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::{ensure, ensure_eq, fixture, skip, Suite, TestResult};

const NOP: u32 = raw::code(DXG_NR_NOP, 0);

fn device_fd_over_a_socket() -> TestResult {
    let (here, there) = socket_pair()?;
    let (done, raw) = (Gate::new()?, fixture::raw()?);
    let child = Child::spawn(|| {
        let dxg = Dxg::open()?;
        send(&there, &dxg)?;
        done.wait()?;
        dxg.no_op()?;
        Ok(())
    })?;
    let foreign = receive(&here)?;
    ensure_eq!(raw.ioctl_on(&foreign, NOP, 0), Err(Errno::NOTTY));
    drop(foreign);
    done.open()?;
    child.join()
}

fn nt_handle_over_a_socket() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let (here, there) = socket_pair()?;
    let child = Child::spawn(|| {
        let nt = receive(&there)?;
        let own = fixture::device()?.open_fence(&nt, SyncFlags::empty())?;
        own.signal(1)?;
        own.wait(2)?;
        ensure_eq!(own.value(), 2);
        Ok(())
    })?;
    send(&here, fence.share(Access::ALL)?)?;
    fence.wait(1)?;
    fence.signal(2)?;
    child.join()
}

fn in_flight_keeps_the_object() -> TestResult {
    let device = fixture::device()?;
    let (here, there) = socket_pair()?;
    for round in 0..20 {
        let fence = device.create_shareable_fence(round)?;
        send(&here, fence.share(Access::ALL)?)?;
        fence.signal(round + 1)?;
        fence.destroy()?;
        let fence = device.open_fence(receive(&there)?, SyncFlags::empty())?;
        ensure_eq!(fence.value(), round + 1);
    }
    Ok(())
}

/// A descriptor that is only in the socket it was sent over: the kernel has to find that nobody
/// can receive it.
fn unreachable_in_a_socket() -> TestResult {
    let device = fixture::device()?;
    let (here, there) = socket_pair()?;
    let fence = device.create_shareable_fence(0)?;
    send(&here, fence.share(Access::ALL)?)?;
    send(&here, &there)?;
    Ok(())
    // The runner sees whether the share and the object go.
}

fn duplicates() -> TestResult {
    let device = fixture::device()?;
    let (dxg, raw) = (Dxg::open()?, fixture::raw()?);
    let copy = dxg.as_fd().try_clone_to_owned()?;
    drop(dxg);
    ensure_eq!(raw.ioctl_on(&copy, NOP, 0), Ok(0));

    let fence = device.create_shareable_fence(5)?;
    let nt = fence.share(Access::WAIT)?;
    let copy = nt.try_clone()?;
    drop(nt);
    drop(fence);
    let fence = device.open_fence(&copy, SyncFlags::empty())?;
    ensure_eq!(fence.value(), 5);
    // RES-14: the copy has the access of the original.
    selftests::fails_with(fence.signal(6), opendxg::Status::ACCESS_DENIED)
}

/// Takes a descriptor of another process by number.
fn take(pid: i32, fd: i32) -> TestResult<OwnedFd> {
    // SAFETY: plain system calls; the results are descriptors that are ours alone.
    let taken = unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if process < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        let process = OwnedFd::from_raw_fd(process as i32);
        libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0)
    };
    if taken < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(taken as i32) })
}

fn taken_by_pidfd() -> TestResult {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        skip!("needs root");
    }
    let (mut numbers, writer) = {
        let (reader, writer) = selftests::fds::pipe()?;
        (std::fs::File::from(reader), std::fs::File::from(writer))
    };
    let done = Gate::new()?;
    let child = Child::spawn(|| {
        let dxg = Dxg::open()?;
        let fence = fixture::device()?.create_shareable_fence(8)?;
        let nt = fence.share(Access::ALL)?;
        for fd in [dxg.as_fd(), nt.as_fd()] {
            std::io::Write::write_all(&mut &writer, &fd.as_raw_fd().to_ne_bytes())?;
        }
        done.wait()
    })?;
    let mut number = || -> TestResult<i32> {
        let mut bytes = [0; 4];
        std::io::Read::read_exact(&mut numbers, &mut bytes)?;
        Ok(i32::from_ne_bytes(bytes))
    };
    let device_fd = take(child.pid(), number()?)?;
    let nt = NtHandle::from(take(child.pid(), number()?)?);
    let answer = fixture::raw()?.ioctl_on(&device_fd, NOP, 0);
    ensure_eq!(answer, Err(Errno::NOTTY));
    drop(device_fd);
    let fence = fixture::device()?.open_fence(&nt, SyncFlags::empty())?;
    ensure_eq!(fence.value(), 8);
    done.open()?;
    child.join()
}

/// Runs `work`, whose objects are forgotten, in a process that then closes its only descriptor of
/// the device and lives on. Demands that the driver forgets all that the process had.
fn last_close_forgets<T>(work: impl Fn(&Device) -> TestResult<T>) -> TestResult {
    let watch = Watch::start()?;
    let (closed, checked) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let dxg = Dxg::open()?;
        let adapter = dxg.adapters()?.into_iter().next();
        let device = adapter.ok_or("there is no adapter")?.create_device()?;
        let objects = work(&device)?;
        ensure!(dxg.counters()?.process_handles >= 3);
        let fd = dxg.as_fd().as_raw_fd();
        core::mem::forget((objects, device, dxg));
        // SAFETY: everything that knows the number was forgotten.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        closed.open()?;
        checked.wait()
    })?;
    let opened = closed.wait();
    let outcome = watch.unchanged();
    checked.open()?;
    child.join()?;
    opened?;
    outcome
}

fn last_close_without_mappings() -> TestResult {
    last_close_forgets(|device| {
        let initially_owned = false;
        let mutex = SyncKind::Mutex { initially_owned };
        Ok(device.create_sync_object(mutex, SyncFlags::SHARED)?)
    })
}

/// A fence with a pending wait.
fn awaited(fence: MonitoredFence) -> TestResult<(MonitoredFence, EventFd)> {
    let event = EventFd::new()?;
    fence.wait_async(5, &event)?;
    Ok((fence, event))
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-8 a received device descriptor is ENOTTY",
            device_fd_over_a_socket,
        )
        .test(
            "RES-14 a received NT handle opens the object",
            nt_handle_over_a_socket,
        )
        .test(
            "RES-14 RES-110 an NT handle in flight keeps the object",
            in_flight_keeps_the_object,
        )
        .test(
            "RES-110 an NT handle that only an unreachable socket holds is collected",
            unreachable_in_a_socket,
        )
        .test("RES-14 copies of descriptors work", duplicates)
        .test(
            "RES-8 RES-14 pidfd_getfd: device ENOTTY, NT handle works",
            taken_by_pidfd,
        )
        .test(
            "RES-8 the last close of the device forgets everything",
            last_close_without_mappings,
        )
        .test(
            "RES-8 the last close forgets a private fence that is mapped",
            || last_close_forgets(|device| awaited(device.create_fence(0)?)),
        )
        .test(
            "RES-8 the last close forgets a shareable fence that is mapped",
            || last_close_forgets(|device| awaited(device.create_shareable_fence(0)?)),
        )
}
