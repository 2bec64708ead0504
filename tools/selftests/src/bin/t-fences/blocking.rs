// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits that block the caller.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use opendxg::{Error, FenceValues};
use selftests::blocked::Blocked;
use selftests::child::in_child;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-14 satisfied waits return at once", satisfied)
        .test("FEN-19 a wait blocks until the value is reached", blocks)
        .test("FEN-23 FEN-22 values above and far ahead end waits", above)
        .test("FEN-24 after a rewind a new wait blocks again", rewind)
        .test("FEN-34 a pulse is seen by those who slept before it", pulse)
        .test(
            "FEN-19 signal handlers that restart do not end a wait",
            restarting,
        )
        .test(
            "FEN-19 other signal handlers end it with EINTR and leave no waiter",
            interrupting,
        )
        .test(
            "FEN-33 one signal wakes sleepers, events and descriptors alike",
            all_kinds,
        )
}

fn satisfied() -> TestResult {
    let device = fixture::device()?;
    for (current, value) in [(0, 0), (1, 0), (1, 1), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
        device.create_fence(current)?.wait(value)?;
    }
    Ok(())
}

fn blocks() -> TestResult {
    let fence = Arc::new(fixture::device()?.create_fence(0)?);
    let waiter = fence.clone();
    let blocked = Blocked::new(move || waiter.wait(3))?;
    for value in 1..3 {
        fence.signal(value)?;
        blocked.stays()?;
    }
    fence.signal(3)?;
    blocked.join()??;
    Ok(())
}

fn above() -> TestResult {
    let device = fixture::device()?;
    for (value, signalled) in [
        (1, 2),
        (1, u64::MAX),
        (u64::MAX, u64::MAX),
        (1 << 63, 1 << 63),
    ] {
        let fence = Arc::new(device.create_fence(0)?);
        let waiter = fence.clone();
        let blocked = Blocked::new(move || waiter.wait(value))?;
        fence.signal(signalled)?;
        blocked.join()??;
    }
    Ok(())
}

fn rewind() -> TestResult {
    let fence = Arc::new(fixture::device()?.create_fence(2)?);
    fence.wait(2)?;
    fence.signal_rewind(1)?;
    let waiter = fence.clone();
    let blocked = Blocked::new(move || waiter.wait(2))?;
    blocked.stays()?;
    fence.signal(2)?;
    blocked.join()??;
    Ok(())
}

fn pulse() -> TestResult {
    let fence = Arc::new(fixture::device()?.create_fence(0)?);
    for _ in 0..20 {
        let waiter = fence.clone();
        let blocked = Blocked::new(move || waiter.wait(10))?;
        fence.signal(10)?;
        fence.signal_rewind(3)?;
        blocked.join()??;
        ensure_eq!(fence.value(), 3);
        fence.signal_rewind(0)?;
    }
    Ok(())
}

/// How often the handler ran.
static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn handler(_: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Installs the counting handler. Only in a child process: handlers belong to the process.
fn install(flags: i32) -> TestResult {
    HANDLED.store(0, Ordering::Relaxed);
    // SAFETY: a zeroed sigaction is a valid value; the handler only adds to an atomic.
    let done = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut())
    };
    ensure_eq!(done, 0);
    Ok(())
}

fn restarting() -> TestResult {
    in_child(|| {
        install(libc::SA_RESTART)?;
        let fence = Arc::new(fixture::device()?.create_fence(0)?);
        let waiter = fence.clone();
        let blocked = Blocked::new(move || waiter.wait(1))?;
        for count in 1..=200 {
            blocked.signal(libc::SIGUSR1)?;
            eventually("the handler runs", || {
                HANDLED.load(Ordering::Relaxed) == count
            })?;
        }
        blocked.stays()?;
        fence.signal(1)?;
        blocked.join()??;
        Ok(())
    })
}

fn interrupting() -> TestResult {
    in_child(|| {
        install(0)?;
        let device = fixture::device()?;
        let fence = Arc::new(device.create_fence(0)?);
        let other = Arc::new(device.create_fence(0)?);
        for round in 0..20 {
            let list = match round % 2 {
                0 => FenceValues::new().with(&fence, 1),
                _ => FenceValues::new()
                    .with(&fence, 1)
                    .with(&other, 1)
                    .with(&fence, 2),
            };
            let waiter = device.clone();
            let blocked = Blocked::new(move || match round % 4 {
                0 | 1 => waiter.wait_all(&list),
                _ => waiter.wait_any(&list),
            })?;
            blocked.signal(libc::SIGUSR1)?;
            let ended = blocked.join()?;
            ensure!(
                ended.is_err_and(Error::is_interrupted),
                "round {round}: {ended:?}"
            );
        }
        // Nothing is left that a signal could touch, and nothing that keeps the objects alive: the
        // runner of the parent compares the counters.
        fence.signal(5)?;
        Ok(())
    })
}

fn all_kinds() -> TestResult {
    let fence = Arc::new(fixture::device()?.create_fence(0)?);
    for round in 0..20 {
        let value = round + 1;
        let event = opendxg::EventFd::new()?;
        let waiter = fence.clone();
        let blocked = Blocked::new(move || waiter.wait(value))?;
        fence.wait_async(value, &event)?;
        let point = fence.point(value)?;
        ensure!(!point.is_signalled()?);
        fence.signal(value)?;
        ensure_eq!(event.take()?, 1);
        ensure!(point.is_signalled()?);
        blocked.join()??;
    }
    Ok(())
}
