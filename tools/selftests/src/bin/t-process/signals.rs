// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals during waits, and threads that end.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use opendxg::{EventFd, MonitoredFence};
use rustix::mm::MprotectFlags;
use selftests::child::in_child;
use selftests::region::Region;
use selftests::rounds::{rounds, Dice};
use selftests::task::{me, until_blocked};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// How many signals the handler has seen.
static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn handler(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Sends SIGALRM to one thread of this process.
fn alarm(thread: i32) {
    // SAFETY: plain system call; the thread is alive or the call fails.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, libc::SIGALRM) };
}

fn handle_alarms(flags: libc::c_int) -> TestResult {
    // SAFETY: zero bytes are an empty action; the handler does nothing but count.
    let done = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGALRM, &action, core::ptr::null_mut())
    };
    ensure_eq!(done, 0, "sigaction");
    Ok(())
}

/// Runs `wait` in a thread under a storm of signals, then `end`, which has to end it. Returns what
/// `wait` did.
fn under_storm<T: Send>(
    wait: impl FnOnce() -> TestResult<T> + Send,
    end: impl FnOnce() -> TestResult,
) -> TestResult<T> {
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let waiter = scope.spawn(move || {
            let _ = tell.send(me());
            wait()
        });
        let thread = told.recv().map_err(|_| "no thread")?;
        let before = HANDLED.load(Ordering::Relaxed);
        while HANDLED.load(Ordering::Relaxed) - before < rounds(200) && !waiter.is_finished() {
            until_blocked(thread)?;
            alarm(thread);
        }
        end()?;
        waiter.join().map_err(|_| "panic in a thread")?
    })
}

fn restarts() -> TestResult {
    in_child(|| {
        handle_alarms(libc::SA_RESTART)?;
        let fence = fixture::device()?.create_fence(0)?;
        under_storm(|| Ok(fence.wait(1)?), || Ok(fence.signal(1)?))?;
        ensure!(HANDLED.load(Ordering::Relaxed) >= rounds(200));
        Ok(())
    })
}

/// Waits until the value is there, however often that is interrupted; returns how often it was.
fn wait_through(fence: &MonitoredFence, value: u64) -> TestResult<u32> {
    let mut interrupted = 0;
    loop {
        match fence.wait(value) {
            Err(error) if error.is_interrupted() => interrupted += 1,
            other => return Ok(other.map(|()| interrupted)?),
        }
    }
}

fn interrupted_waits_leave_nothing() -> TestResult {
    in_child(|| {
        handle_alarms(0)?;
        let fence = fixture::device()?.create_fence(0)?;
        let times = under_storm(|| wait_through(&fence, 1), || Ok(fence.signal(1)?))?;
        // A signal may also arrive just before the thread goes to sleep again.
        ensure!(times >= rounds(200) / 2, "only {times} interruptions");
        Ok(())
        // A waiter left behind would keep the fence alive: the runner counts objects.
    })
}

/// The signal handler and the value arrive at the same time, over and over.
fn success_wins() -> TestResult {
    in_child(|| {
        handle_alarms(0)?;
        let fence = fixture::device()?.create_fence(0)?;
        let rounds = u64::from(rounds(300));
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let waiter = scope.spawn(move || -> TestResult<(u32, u32)> {
                let fence = &fence;
                let (mut at_once, mut later) = (0, 0);
                let mut dice = Dice::new(7);
                std::thread::scope(|scope| {
                    let _ = tell.send((me(), 0));
                    for value in 1..=rounds {
                        let signaller = scope.spawn(move || {
                            dice.below(value as u32);
                            dice.dawdle();
                            fence.signal(value)
                        });
                        match wait_through(fence, value)? {
                            0 => at_once += 1,
                            _ => later += 1,
                        }
                        ensure!(fence.value() >= value);
                        signaller.join().map_err(|_| "panic in a thread")??;
                    }
                    let _ = tell.send((0, 1));
                    Ok((at_once, later))
                })
            });
            let (thread, _) = told.recv().map_err(|_| "no thread")?;
            while told.try_recv().is_err() && !waiter.is_finished() {
                alarm(thread);
                std::thread::yield_now();
            }
            let (at_once, later) = waiter.join().map_err(|_| "panic in a thread")??;
            ensure_eq!(u64::from(at_once + later), rounds);
            Ok(())
        })
    })
}

fn event_outlives_its_thread() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    std::thread::scope(|scope| scope.spawn(|| fence.wait_async(1, &event)).join())
        .map_err(|_| "panic in a thread")??;
    fence.signal(1)?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn exit_while_threads_sleep() -> TestResult {
    in_child(|| {
        let device = fixture::device()?;
        let fence = device.create_shareable_fence(0)?;
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let (fence, tell) = (&fence, tell.clone());
                scope.spawn(move || {
                    let _ = tell.send(me());
                    fence.wait(1)
                });
            }
            for thread in told.iter().take(8) {
                until_blocked(thread)?;
            }
            // The report of success is the status of the exit, with the threads still asleep.
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) }
        })
    })
}

/// Memory in so many mappings that the first open of the device, which takes the locks of all,
/// takes its time.
fn many_mappings() -> TestResult<Region> {
    const PAGE: usize = 4096;
    const PAGES: usize = 6000;
    let region = Region::private(PAGES * PAGE)?;
    for page in (0..PAGES).step_by(2) {
        let start = (region.address() as usize + page * PAGE) as *mut core::ffi::c_void;
        // SAFETY: a page of the region, which nobody uses.
        unsafe { rustix::mm::mprotect(start, PAGE, MprotectFlags::READ) }?;
    }
    Ok(region)
}

/// Sends one SIGALRM to this process after this time.
fn alarm_after(delay: Duration) -> TestResult {
    // SAFETY: zero bytes are a timer that is off.
    let done = unsafe {
        let mut timer: libc::itimerval = core::mem::zeroed();
        timer.it_value.tv_usec = delay.as_micros().try_into().unwrap_or(1);
        libc::setitimer(libc::ITIMER_REAL, &timer, core::ptr::null_mut())
    };
    ensure_eq!(done, 0, "setitimer");
    Ok(())
}

fn open_restarts() -> TestResult {
    let _mappings = many_mappings()?;
    for step in 1..=rounds(20) {
        in_child(|| {
            handle_alarms(libc::SA_RESTART)?;
            alarm_after(Duration::from_micros(100) * step)?;
            drop(fixture::device()?);
            Ok(())
        })?;
    }
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-8 the first open of a process starts over after a signal",
            open_restarts,
        )
        .test(
            "FEN-19 a wait restarts after handlers with SA_RESTART",
            restarts,
        )
        .test(
            "FEN-19 a wait ends with EINTR otherwise, and leaves no waiter",
            interrupted_waits_leave_nothing,
        )
        .test(
            "FEN-85 success wins over a signal at the same time",
            success_wins,
        )
        .test(
            "FEN-20 an asynchronous wait outlives the thread that asked for it",
            event_outlives_its_thread,
        )
        .test(
            "FEN-89 a process ends while its threads sleep in waits",
            exit_while_threads_sleep,
        )
}
