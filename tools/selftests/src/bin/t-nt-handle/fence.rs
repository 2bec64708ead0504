// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals and waits on the descriptor of an NT handle.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, EventFd, MonitoredFence, NtHandle, Status, SyncFlags, Timeout};
use selftests::blocked::Blocked;
use selftests::child::{in_child, Child, Gate};
use selftests::leak::Watch;
use selftests::sharing::access::READ_CONTROL;
use selftests::sharing::{exec_on, share_raw, Client, How, Shape};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::{a_while, eventually, soon};
use selftests::{ensure, ensure_eq, fails_with, fds, fixture, task, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-14 FEN-31 the value, both ways", both_ways)
        .test("FEN-32 a rewind only with the flag", rewind)
        .test("FEN-19 a wait blocks until a signal of either kind", blocks)
        .test("FEN-14 FEN-30 a deadline that has passed tests", tested)
        .test("FEN-19 a wait ends at its deadline", timed_out)
        .test("FEN-30 many waiters on one descriptor", many)
        .test(
            "FEN-25 FEN-37 RES-35 each right, and none for the value",
            rights,
        )
        .test(
            "FEN-50 FEN-53 what is no fence, and what has no right",
            others,
        )
        .test(
            "FEN-19 FEN-34 handlers that restart: no pulse is lost",
            pulse,
        )
        .test(
            "FEN-19 the deadline stays while handlers run",
            deadline_stays,
        )
        .test("FEN-19 other handlers end a wait with EINTR", interrupted)
        .test("FEN-89 killed while a handler runs", killed)
        .test(
            "RES-14 RES-16 another process, without the device",
            elsewhere,
        )
        .test("FEN-28 RES-14 the descriptor is all that is left", last)
        .test("FEN-30 it closes during a wait", closed)
        .test("FEN-29 FEN-104 the adapter is removed", removed)
        .test("FEN-138 a fence of two adapters", cross_adapter)
}

/// A fence and an NT handle of it.
fn shared(value: u64, access: Access) -> TestResult<(MonitoredFence, NtHandle)> {
    let fence = fixture::device()?.create_shareable_fence(value)?;
    let handle = fence.share(access)?;
    Ok((fence, handle))
}

/// Only tests.
const TEST: Timeout = Timeout::After(Duration::ZERO);

/// Much longer than any test.
fn long() -> Timeout {
    Timeout::After(10 * soon())
}

fn both_ways() -> TestResult {
    let (fence, handle) = shared(3, Access::ALL)?;
    let event = EventFd::new()?;
    ensure_eq!(handle.fence_value()?, 3);
    fence.wait_async(u64::MAX - 1, &event)?;
    for value in [3, 4, 1 << 63, u64::MAX] {
        handle.signal(value)?;
        ensure_eq!((fence.value(), handle.fence_value()?), (value, value));
        fence.wait(value)?;
        handle.wait(value)?;
        ensure!(handle.wait_until(value, TEST)?);
    }
    // A signal releases those who came by other ways, once.
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn rewind() -> TestResult {
    let (fence, handle) = shared(7, Access::ALL)?;
    fails_with(handle.signal(6), Status::INVALID_PARAMETER)?;
    ensure_eq!(fence.value(), 7);
    handle.signal_rewind(6)?;
    ensure_eq!(fence.value(), 6);
    ensure!(!handle.wait_until(7, TEST)?);
    Ok(())
}

fn blocks() -> TestResult {
    let (fence, handle) = shared(0, Access::ALL)?;
    for value in [2, 4] {
        let waiter = handle.try_clone()?;
        let blocked = Blocked::new(move || waiter.wait(value))?;
        handle.signal(value - 1)?;
        blocked.stays()?;
        match value {
            2 => handle.signal(value)?,
            _ => fence.signal(value)?,
        }
        blocked.join()??;
    }
    Ok(())
}

fn tested() -> TestResult {
    let (_fence, handle) = shared(1, Access::ALL)?;
    let watch = Watch::start()?;
    for timeout in [
        TEST,
        Timeout::At(SystemTime::UNIX_EPOCH),
        Timeout::At(SystemTime::now()),
        // An NT date.
        Timeout::Raw(1),
    ] {
        ensure!(handle.wait_until(1, timeout)?, "{timeout:?}");
        ensure!(!handle.wait_until(2, timeout)?, "{timeout:?}");
    }
    // The exact status, and the plain result.
    let raw = fixture::raw()?;
    let mut arg = opendxg_wait_nt::zeroed();
    arg.value = 2;
    ensure_eq!(exec_on(&raw, handle.as_fd(), &mut arg), Ok(Status::TIMEOUT));
    let code = opendxg::raw::code(opendxg_wait_nt::NR, opendxg_wait_nt::SIZE);
    let plain = raw.ioctl_on(&handle, code, (&raw mut arg) as u64);
    ensure_eq!(plain, Ok(Status::TIMEOUT.0));
    watch.unchanged()
}

fn timed_out() -> TestResult {
    let (_fence, handle) = shared(0, Access::ALL)?;
    let limit = Duration::from_millis(50);
    for timeout in [
        Timeout::After(limit),
        Timeout::At(SystemTime::now() + limit),
        Timeout::Raw(-500_000),
    ] {
        let start = std::time::Instant::now();
        ensure!(!handle.wait_until(1, timeout)?);
        if !matches!(timeout, Timeout::At(_)) {
            ensure!(start.elapsed() >= limit, "too early: {timeout:?}");
        }
    }
    // Nothing is left of these waits.
    handle.signal(1)?;
    ensure!(handle.wait_until(1, long())?);
    Ok(())
}

/// More than sleep without taking memory.
const MANY: u64 = 12;

fn many() -> TestResult {
    let (_fence, handle) = shared(0, Access::ALL)?;
    let watch = Watch::start()?;
    let wait = |value| {
        let waiter = handle.try_clone()?;
        Blocked::new(move || waiter.wait_until(value, long()))
    };
    let blocked = (0..MANY)
        .map(|number| wait(number % 3 + 1))
        .collect::<TestResult<Vec<_>>>()?;
    let soon_over = handle.try_clone()?;
    let limit = Timeout::After(Duration::from_millis(20));
    ensure!(!soon_over.wait_until(9, limit)?);
    for value in 1..=3 {
        handle.signal(value)?;
    }
    for blocked in blocked {
        ensure!(blocked.join()??);
    }
    drop(soon_over);
    watch.unchanged()
}

fn rights() -> TestResult {
    let (fence, _) = shared(1, Access::ALL)?;
    for (access, may_wait, may_signal) in [
        (Access::ALL, true, true),
        (Access::WAIT, true, false),
        (Access::SIGNAL, false, true),
        (Access::READ_CONTROL, false, false),
    ] {
        let handle = fence.share(access)?;
        let duplicate = fence.share(Access::ALL)?.duplicate(access)?;
        for handle in [&handle, &duplicate] {
            for value in [0, 1] {
                match may_wait {
                    true => handle.wait(value)?,
                    false => fails_with(handle.wait(value), Status::ACCESS_DENIED)?,
                }
            }
            match may_signal {
                true => handle.signal(1)?,
                // Rights come before the value.
                false => {
                    fails_with(handle.signal(2), Status::ACCESS_DENIED)?;
                    fails_with(handle.signal(0), Status::ACCESS_DENIED)?;
                }
            }
            ensure_eq!(handle.fence_value()?, 1);
        }
    }
    ensure_eq!(fence.value(), 1);
    Ok(())
}

fn others() -> TestResult {
    let client = Client::new()?;
    let mut handles: Vec<OwnedFd> = Vec::new();
    for shape in Shape::NT {
        if shape != Shape::MonitoredFence {
            let object = client.create(shape, How::Nt)?;
            handles.push(client.share(&object, shape.all_access())?);
            handles.push(client.share(&object, READ_CONTROL)?);
        }
    }
    // A set has a fence, but not only that.
    let [resource, mutex, fence] = client.triple()?;
    let set = [resource.handle(), mutex.handle(), fence.handle()];
    let access = Access::RESOURCE_ALL.bits();
    handles.push(share_raw(client.raw(), &set, access, 0)?);
    ensure!(handles.len() > 5, "{} handles", handles.len());
    for fd in handles {
        let handle = NtHandle::from(fd);
        fails_with(handle.signal(1), Status::INVALID_PARAMETER)?;
        fails_with(handle.wait(0), Status::INVALID_PARAMETER)?;
        fails_with(handle.fence_value(), Status::INVALID_PARAMETER)?;
    }
    // Other descriptors, and the device, do not have the calls.
    let (fence, handle) = shared(0, Access::ALL)?;
    let raw = fixture::raw()?;
    let point = fence.point(1)?;
    let event = EventFd::new()?;
    for fd in [raw.fd()?, point.as_fd(), event.as_fd()] {
        for result in [
            exec_on(&raw, fd, &mut opendxg_signal_nt::zeroed()),
            exec_on(&raw, fd, &mut opendxg_wait_nt::zeroed()),
            exec_on(&raw, fd, &mut opendxg_value_nt::zeroed()),
        ] {
            ensure_eq!(result, Err(rustix::io::Errno::NOTTY));
        }
    }
    handle.signal(1)?;
    Ok(())
}

/// How often the handler ran.
static HANDLED: AtomicU32 = AtomicU32::new(0);
/// What the handler reads a byte from, or -1.
static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn handler(_: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
    let pipe = PIPE.load(Ordering::Relaxed);
    if pipe >= 0 {
        let mut byte = 0u8;
        // SAFETY: a plain system call that writes one byte.
        unsafe { libc::read(pipe, (&raw mut byte).cast(), 1) };
    }
}

/// Installs the handler. Only in a child process: handlers belong to the process.
fn install(flags: i32) -> TestResult {
    // SAFETY: a zeroed sigaction is a valid value; the handler does what a handler may do.
    let done = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut())
    };
    ensure_eq!(done, 0);
    Ok(())
}

/// Sends the signal and waits until the handler runs.
fn interrupt<T: Send + 'static>(blocked: &Blocked<T>) -> TestResult {
    let before = HANDLED.load(Ordering::Relaxed);
    blocked.signal(libc::SIGUSR1)?;
    eventually("the handler runs", || {
        HANDLED.load(Ordering::Relaxed) > before
    })
}

fn pulse() -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let (_fence, handle) = shared(0, Access::ALL)?;
        let waiter = handle.try_clone()?;
        let blocked = Blocked::new(move || waiter.wait_until(10, long()))?;
        for _ in 0..20 {
            interrupt(&blocked)?;
            task::until_blocked(blocked.id())?;
        }
        blocked.stays()?;
        let (reader, writer) = fds::pipe()?;
        PIPE.store(reader.as_raw_fd(), Ordering::Relaxed);
        interrupt(&blocked)?;
        handle.signal(10)?;
        handle.signal_rewind(3)?;
        a_while();
        PIPE.store(-1, Ordering::Relaxed);
        rustix::io::write(&writer, &[1])?;
        ensure!(blocked.join()??);
        ensure_eq!(handle.fence_value()?, 3);
        // Another wait is not that one.
        ensure!(!handle.wait_until(10, TEST)?);
        Ok(())
    })
}

fn deadline_stays() -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let (_fence, handle) = shared(0, Access::ALL)?;
        let limit = Duration::from_millis(500);
        let blocked = Blocked::new(move || handle.wait_until(1, Timeout::After(limit)))?;
        // One after the other, without an end, as long as the wait is not over.
        let end = std::time::Instant::now() + soon();
        while !blocked.is_finished() {
            ensure!(std::time::Instant::now() < end, "it never ends");
            blocked.signal(libc::SIGUSR1)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        ensure!(!blocked.join()??);
        ensure!(HANDLED.load(Ordering::Relaxed) > 0);
        Ok(())
    })
}

fn interrupted() -> TestResult {
    in_child(|| {
        install(0)?;
        let (_fence, handle) = shared(0, Access::ALL)?;
        for _ in 0..10 {
            let waiter = handle.try_clone()?;
            let blocked = Blocked::new(move || waiter.wait(1))?;
            interrupt(&blocked)?;
            let ended = blocked.join()?;
            ensure!(
                ended.is_err_and(opendxg::Error::is_interrupted),
                "{ended:?}"
            );
        }
        handle.signal(1)?;
        Ok(())
    })
}

fn killed() -> TestResult {
    let gate = Gate::new()?;
    let (_fence, handle) = shared(0, Access::ALL)?;
    let child = Child::spawn(|| {
        install(libc::SA_RESTART)?;
        // Also with nodes, and on a description that outlives the process.
        let mut all = Vec::new();
        for _ in 0..6 {
            let waiter = handle.try_clone()?;
            all.push(Blocked::new(move || waiter.wait(1))?);
        }
        let (reader, _writer) = fds::pipe()?;
        PIPE.store(reader.as_raw_fd(), Ordering::Relaxed);
        all.iter().try_for_each(interrupt)?;
        gate.open()?;
        loop {
            a_while();
        }
    })?;
    gate.wait()?;
    child.kill()?;
    handle.signal(1)?;
    handle.wait(1)?;
    Ok(())
    // The runner compares the counters.
}

/// Closes what this child has inherited of the device: it has nothing but what it is sent.
fn close_device() -> TestResult {
    let mut nodes = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let path = entry?.path();
        if std::fs::read_link(&path).is_ok_and(|link| link == std::path::Path::new("/dev/dxg")) {
            let name = path.file_name().and_then(|name| name.to_str());
            nodes.push(name.and_then(|name| name.parse().ok()).ok_or("no number")?);
        }
    }
    for node in nodes {
        // SAFETY: this child does not use the device, and ends without its destructors.
        ensure_eq!(unsafe { libc::close(node) }, 0);
    }
    Ok(())
}

fn elsewhere() -> TestResult {
    let (here, there) = fds::socket_pair()?;
    let child = Child::spawn(|| {
        close_device()?;
        let drawn = NtHandle::from(fds::receive(&there)?);
        let shown = NtHandle::from(fds::receive(&there)?);
        for frame in 1..=50 {
            ensure!(drawn.wait_until(frame, long())?);
            shown.signal(frame)?;
        }
        fails_with(drawn.signal(99), Status::ACCESS_DENIED)?;
        fails_with(shown.wait(0), Status::ACCESS_DENIED)
    })?;
    let (drawn, to_draw) = shared(0, Access::WAIT)?;
    let (shown, to_show) = shared(0, Access::SIGNAL)?;
    fds::send(&here, &to_draw)?;
    fds::send(&here, &to_show)?;
    for frame in 1..=50 {
        drawn.signal(frame)?;
        shown.wait(frame)?;
    }
    child.join()
}

fn last() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    fence.destroy()?;
    drop(device);
    let waiter = handle.try_clone()?;
    let blocked = Blocked::new(move || waiter.wait(2))?;
    // Who has the descriptor can still signal.
    blocked.stays()?;
    handle.signal(2)?;
    blocked.join()??;
    ensure_eq!(handle.fence_value()?, 2);
    Ok(())
}

fn closed() -> TestResult {
    let watch = Watch::start()?;
    let (fence, handle) = shared(0, Access::ALL)?;
    let other = fds::memfd()?;
    let raw = handle.as_raw_fd();
    let blocked = Blocked::new(move || handle.wait_until(1, long()))?;
    // Another file takes the number: only the reference of the call is left. The thread closes the
    // number at its end.
    // SAFETY: plain system call; the thread that uses the number sleeps.
    let placed = unsafe { libc::dup2(other.as_raw_fd(), raw) };
    ensure_eq!(placed, raw);
    blocked.stays()?;
    fence.signal(1)?;
    ensure!(blocked.join()??);
    drop((fence, other));
    watch.unchanged()
}

fn removed() -> TestResult {
    let adapter = SoftAdapter::enabled("nt-fences")?;
    let device = adapter.device()?;
    let fence = device.create_shareable_fence(0)?;
    let handle = fence.share(Access::ALL)?;
    let waiter = handle.try_clone()?;
    let blocked = Blocked::new(move || waiter.wait(5))?;
    adapter.disable()?;
    blocked.join()??;
    ensure_eq!(handle.fence_value()?, u64::MAX);
    // Signals store nothing, waits pass.
    handle.signal(3)?;
    handle.signal_rewind(3)?;
    handle.wait(u64::MAX)?;
    ensure_eq!(handle.fence_value()?, u64::MAX);
    drop((fence, handle, device));
    adapter.remove()
}

fn cross_adapter() -> TestResult {
    let device = fixture::device()?;
    let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
    let fence = device.create_fence_with(0, flags)?;
    let handle = fence.share(Access::ALL)?;
    let adapter = SoftAdapter::enabled("nt-fences-across")?;
    let there = adapter.device()?.open_fence(&handle, SyncFlags::empty())?;
    let waiter = handle.try_clone()?;
    let blocked = Blocked::new(move || waiter.wait(2))?;
    handle.signal(1)?;
    ensure_eq!(there.value(), 1);
    blocked.stays()?;
    there.signal(2)?;
    blocked.join()??;
    drop((there, handle, fence));
    adapter.remove()
}
