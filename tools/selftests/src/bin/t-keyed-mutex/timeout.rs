// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time limits and signals (RES-96). That a wait ends late fails no test here: `t-bounds/late.rs`
//! compares in a machine that counts instructions.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opendxg::Status;
use selftests::blocked::Blocked;
use selftests::child::{Child, Gate};
use selftests::sharing::{Acquired, Client, How, Shape};
use selftests::time::a_while;
use selftests::{ensure, ensure_eq, task, Suite, TestResult};

/// Units of a timeout in a second.
pub(crate) const SECOND: i64 = 10_000_000;
/// 1970 in the calendar of timeouts, which begins in 1601.
const EPOCH: i64 = 11_644_473_600 * SECOND;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-96 a relative limit: never early", relative)
        .test(
            "RES-96 an absolute limit, in the future and long past",
            absolute,
        )
        .test("RES-96 limit 0 tests only", zero)
        .test("RES-96 extreme limits", extremes)
        .test("RES-96 without a limit the wait goes on", infinite)
        .test(
            "RES-96 a SIGALRM each millisecond does not lengthen the wait",
            storm,
        )
        .test("RES-96 a signal does not end the wait", signals)
        .test("RES-96 a fatal signal ends it", fatal)
}

/// How long an acquire of a key that never comes takes.
pub(crate) fn timed(client: &Client, handle: u32, timeout: i64) -> TestResult<Duration> {
    let start = Instant::now();
    ensure_eq!(client.acquire(handle, 9, Some(timeout))?, Acquired::TIMEOUT);
    Ok(start.elapsed())
}

fn not_early(took: Duration, limit: Duration) -> TestResult {
    ensure!(took >= limit, "early: {took:?} of {limit:?}");
    Ok(())
}

/// Demands that an acquire with this timeout answers without going to sleep. Something else may
/// put the thread to sleep now and then.
fn answers_at_once(client: &Client, handle: u32, timeout: i64) -> TestResult {
    const TIMES: u64 = 100;
    let before = task::sleeps(task::me())?;
    for _ in 0..TIMES {
        timed(client, handle, timeout)?;
    }
    let slept = task::sleeps(task::me())? - before;
    ensure!(slept < TIMES / 2, "{timeout}: {slept} sleeps");
    Ok(())
}

fn relative() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    for _ in 0..20 {
        let took = timed(&client, mutex.handle(), -SECOND / 100)?;
        not_early(took, Duration::from_millis(10))?;
    }
    // One unit and less than a microsecond.
    timed(&client, mutex.handle(), -1)?;
    timed(&client, mutex.handle(), -9)?;
    Ok(())
}

/// The present time as a timeout.
pub(crate) fn now() -> TestResult<i64> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| "the clock")?;
    Ok(EPOCH + (since.as_nanos() / 100) as i64)
}

fn absolute() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let start = now()?;
    ensure_eq!(
        client.acquire(mutex.handle(), 9, Some(start + SECOND / 20))?,
        Acquired::TIMEOUT
    );
    let took = now()? - start;
    ensure!(took >= SECOND / 20, "early: {took}");
    for past in [1, 2, EPOCH, start, now()? - SECOND] {
        answers_at_once(&client, mutex.handle(), past)?;
    }
    // In the past, but nothing to wait for.
    ensure_eq!(
        client.acquire(mutex.handle(), 0, Some(1))?,
        Acquired::with(0)
    );
    Ok(())
}

fn zero() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    answers_at_once(&client, mutex.handle(), 0)?;
    ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
    Ok(())
}

/// A thread that waits for `key` with this timeout; the mutex is released with that key later.
fn waits(client: &Client, handle: u32, timeout: Option<i64>) -> TestResult {
    let other = client.clone();
    let blocked = Blocked::new(move || -> TestResult {
        ensure_eq!(other.acquire(handle, 1, timeout)?, Acquired::with(1));
        Ok(other.release(handle, 0, 0)?)
    })?;
    blocked.stays()?;
    ensure_eq!(client.try_acquire(handle, 0)?.status, Status::SUCCESS);
    client.release(handle, 1, 1)?;
    blocked.join()?
}

fn extremes() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    for timeout in [
        i64::MIN,
        i64::MIN + 1,
        -i64::MAX / 2,
        i64::MAX,
        i64::MAX - 1,
    ] {
        waits(&client, mutex.handle(), Some(timeout))
            .map_err(|error| format!("{timeout}: {error}"))?;
    }
    Ok(())
}

fn infinite() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    waits(&client, mutex.handle(), None)
}

static ALARMS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32) {
    ALARMS.fetch_add(1, Ordering::Relaxed);
}

/// Handles a signal by counting; with or without the restart of calls.
fn handle(signal: i32, flags: i32) -> TestResult {
    // SAFETY: a handler that only touches an atomic.
    let done = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(i32) as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &action, core::ptr::null_mut())
    };
    ensure_eq!(done, 0);
    Ok(())
}

/// A timer of this process with this period, or none.
fn alarm_every(period: Duration) -> TestResult {
    let period = libc::timeval {
        tv_sec: 0,
        tv_usec: period.as_micros() as i64,
    };
    let timer = libc::itimerval {
        it_interval: period,
        it_value: period,
    };
    // SAFETY: a live struct.
    let done = unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, core::ptr::null_mut()) };
    ensure_eq!(done, 0);
    Ok(())
}

/// How long a relative and an absolute limit of a tenth of a second take while a SIGALRM comes each
/// millisecond, and how many came.
pub(crate) fn in_storm(client: &Client, handle: u32) -> TestResult<([Duration; 2], u32)> {
    self::handle(libc::SIGALRM, libc::SA_RESTART)?;
    let before = ALARMS.load(Ordering::Relaxed);
    alarm_every(Duration::from_millis(1))?;
    let relative = timed(client, handle, -SECOND / 10)?;
    let start = Instant::now();
    timed(client, handle, now()? + SECOND / 10)?;
    let absolute = start.elapsed();
    alarm_every(Duration::ZERO)?;
    let alarms = ALARMS.load(Ordering::Relaxed) - before;
    Ok(([relative, absolute], alarms))
}

fn storm() -> TestResult {
    selftests::child::in_child(|| {
        let client = Client::new()?;
        let mutex = client.create(Shape::KeyedMutex, How::Global)?;
        // A busy machine drops alarms. Restarted with its whole limit a wait would never end.
        let mut alarms = 0;
        while alarms < 20 {
            let (took, came) = in_storm(&client, mutex.handle())?;
            for took in took {
                not_early(took, Duration::from_millis(100))?;
            }
            alarms += came;
        }
        Ok(())
    })
}

fn signals() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let lock = mutex.handle();
    handle(libc::SIGUSR1, libc::SA_RESTART)?;
    let other = client.clone();
    let blocked = Blocked::new(move || -> TestResult {
        ensure_eq!(other.acquire(lock, 1, None)?, Acquired::with(1));
        Ok(other.release(lock, 0, 0)?)
    })?;
    for _ in 0..5 {
        blocked.signal(libc::SIGUSR1)?;
        blocked.stays()?;
    }
    client.try_acquire(lock, 0)?;
    client.release(lock, 1, 1)?;
    blocked.join()?
}

fn fatal() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let global = mutex.global();
    for timeout in [None, Some(-100 * SECOND)] {
        let ready = Gate::new()?;
        let child = Child::spawn(|| {
            let client = Client::new()?;
            let opened = client.open_global(Shape::KeyedMutex, global)?;
            ready.open()?;
            client.acquire(opened.handle(), 9, timeout)?;
            Ok(())
        })?;
        ready.wait()?;
        task::until_blocked(child.pid())?;
        a_while();
        child.kill()?;
        // It owned nothing: nothing is abandoned.
        ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
        client.release(mutex.handle(), 0, 0)?;
    }
    Ok(())
}
