// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners that end without a release (RES-99, RES-100).

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use opendxg::Status;
use selftests::blocked::Blocked;
use selftests::child::{Child, Gate};
use selftests::sharing::{Acquired, Client, How, Local, Shape};
use selftests::time::scaled;
use selftests::{ensure, ensure_eq, fails_with, fds, program, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;
/// Word that makes this program a helper that lives until a pipe is closed.
const HELPER: &str = "--live-until-closed";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-99 the owner's handle is destroyed: waiters of every key",
            handle_destroyed,
        )
        .test(
            "RES-99 another handle is destroyed: nothing happens",
            other_handle,
        )
        .test("RES-99 abandoned once, abandoned for ever", sticky)
        .test("RES-99 RES-100 the owner's thread exits", thread_exits)
        .test(
            "RES-99 RES-100 threads that own nothing may exit",
            idle_thread_exits,
        )
        .test(
            "RES-100 the leader exits while other threads run",
            leader_exits,
        )
        .test("RES-99 RES-100 the owner's process exits", || {
            by_process(Ended::Return)
        })
        .test("RES-99 RES-100 the owner's process is killed", || {
            by_process(Ended::Kill)
        })
        .test("RES-100 the owner execs", || {
            by_process(Ended::Exec { closes: true })
        })
        .test("RES-100 the owner execs and keeps the device open", || {
            by_process(Ended::Exec { closes: false })
        })
        .test("RES-99 the owner closes the device", closes_device)
        .test("RES-100 the owner forks: the child owns nothing", fork)
        .test(
            "RES-100 release through another handle of the process",
            other_handle_release,
        )
        .test(
            "RES-100 the thread that got it by hand-over is the owner",
            handed_over,
        )
}

/// Runs as a helper if this program was started as one; its exit status.
pub(crate) fn as_helper() -> Option<i32> {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).map(String::as_str) != Some(HELPER) {
        return None;
    }
    let fd = words.get(2)?.parse().ok()?;
    let mut byte = 0u8;
    // SAFETY: a live byte; the descriptor was left open for us.
    let read = unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
    Some(i32::from(read != 0))
}

/// Waiters in this process: of the key the mutex had, and of another one.
fn waiters(client: &Client, handle: u32) -> TestResult<Vec<Blocked<TestResult<Acquired>>>> {
    let wait = |key| {
        let client = client.clone();
        Blocked::new(move || Ok(client.acquire(handle, key, None)?))
    };
    [0, 0, 5].into_iter().map(wait).collect()
}

/// Demands that every acquire says so at once.
fn is_abandoned(client: &Client, mutex: &Local) -> TestResult {
    // A waiter does not come back in the time of a test.
    const AN_HOUR: i64 = -36_000_000_000;
    for key in [0, 5, 77] {
        for timeout in [Some(0), Some(AN_HOUR), Some(1), None] {
            let acquired = client.acquire(mutex.handle(), key, timeout)?;
            ensure_eq!(acquired, Acquired::ABANDONED, "key {key}, {timeout:?}");
        }
    }
    fails_with(client.release(mutex.handle(), 0, 0), REFUSE)
}

/// Demands that what `end` does abandons the mutex, for those who wait through a handle of it and
/// for all later.
fn abandoned_when(client: &Client, mutex: &Local, end: impl FnOnce() -> TestResult) -> TestResult {
    let waiters = waiters(client, mutex.handle())?;
    waiters[0].stays()?;
    let start = Instant::now();
    end()?;
    for waiter in waiters {
        ensure_eq!(waiter.join()??, Acquired::ABANDONED);
    }
    // The specification says 5 s.
    let took = start.elapsed();
    println!("# abandoned after {took:?}");
    ensure!(took < scaled(Duration::from_secs(5)), "{took:?}");
    is_abandoned(client, mutex)
}

fn handle_destroyed() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let opened = client.open_global(Shape::KeyedMutex, mutex.global())?;
    client.try_acquire(mutex.handle(), 0)?;
    abandoned_when(&client, &opened, || Ok(mutex.destroy()?))?;
    Ok(opened.destroy()?)
}

fn other_handle() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let opened = client.open_global(Shape::KeyedMutex, mutex.global())?;
    let waited = client.open_global(Shape::KeyedMutex, mutex.global())?;
    client.try_acquire(mutex.handle(), 0)?;
    let other = client.clone();
    let handle = waited.handle();
    let waiter = Blocked::new(move || -> TestResult<Acquired> {
        let acquired = other.acquire(handle, 3, None)?;
        other.release(handle, 0, 4)?;
        Ok(acquired)
    })?;
    opened.destroy()?;
    waiter.stays()?;
    client.release(mutex.handle(), 3, 7)?;
    ensure_eq!(waiter.join()??, Acquired::with(7));
    ensure_eq!(client.acquire(mutex.handle(), 0, None)?, Acquired::with(4));
    Ok(())
}

fn sticky() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let owner = client.open_global(Shape::KeyedMutex, mutex.global())?;
    client.try_acquire(owner.handle(), 0)?;
    owner.destroy()?;
    is_abandoned(&client, &mutex)?;
    // Also for one who comes later, while the number still leads there.
    let late = client.open_global(Shape::KeyedMutex, mutex.global())?;
    is_abandoned(&client, &late)?;
    ensure_eq!(client.id(late.target())?, client.id(mutex.target())?);
    Ok(())
}

fn thread_exits() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let (owner, handle) = (client.clone(), mutex.handle());
    let go = Gate::new()?;
    std::thread::scope(|scope| -> TestResult {
        let (sender, receiver) = std::sync::mpsc::channel();
        let go = &go;
        let thread = scope.spawn(move || -> TestResult {
            // More than once: it is still watched the second time.
            for _ in 0..3 {
                ensure_eq!(owner.try_acquire(handle, 0)?, Acquired::with(0));
                owner.release(handle, 0, 0)?;
            }
            ensure_eq!(owner.try_acquire(handle, 0)?, Acquired::with(0));
            let _ = sender.send(());
            go.wait()
        });
        receiver.recv().map_err(|_| "the owner failed")?;
        abandoned_when(&client, &mutex, || {
            go.open()?;
            thread.join().map_err(|_| "panic in a thread")?
        })
    })
}

fn idle_thread_exits() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    client.try_acquire(handle, 0)?;
    for _ in 0..20 {
        let other = client.clone();
        let thread = std::thread::spawn(move || other.try_acquire(handle, 0));
        let answer = thread.join().map_err(|_| "panic in a thread")?;
        ensure_eq!(answer?, Acquired::TIMEOUT);
    }
    client.release(handle, 1, 2)?;
    // One that had it and gave it back.
    let other = client.clone();
    let thread = std::thread::spawn(move || -> TestResult {
        ensure_eq!(other.try_acquire(handle, 1)?, Acquired::with(2));
        Ok(other.release(handle, 0, 3)?)
    });
    thread.join().map_err(|_| "panic in a thread")??;
    selftests::time::a_while();
    ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(3));
    Ok(())
}

/// How the owner of [`by_process`] ends.
#[derive(Clone, Copy)]
enum Ended {
    Return,
    Kill,
    Exec { closes: bool },
}

/// The owner is another process, which ends in one of these ways while this one waits.
fn by_process(ended: Ended) -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let opened = client.open_global(Shape::KeyedMutex, mutex.global())?;
    let (acquired, go) = (Gate::new()?, Gate::new()?);
    let (alive, writer) = fds::pipe()?;
    let global = mutex.global();
    let owner = Child::spawn(|| {
        let client = Client::new()?;
        let handle = client.open_global(Shape::KeyedMutex, global)?.into_raw();
        ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(0));
        acquired.open()?;
        go.wait()?;
        match ended {
            Ended::Exec { closes } => become_helper(&client, closes, alive.as_raw_fd()),
            Ended::Return | Ended::Kill => Ok(()),
        }
    })?;
    acquired.wait()?;
    let mut owner = Some(owner);
    let mut end_of_owner = || match owner.take() {
        Some(owner) if matches!(ended, Ended::Kill) => owner.kill(),
        Some(owner) => owner.join(),
        None => Ok(()),
    };
    abandoned_when(&client, &opened, || match ended {
        Ended::Kill => end_of_owner(),
        Ended::Return => {
            go.open()?;
            end_of_owner()
        }
        Ended::Exec { .. } => go.open(),
    })?;
    // What the owner has become may end now.
    drop(writer);
    end_of_owner()
}

/// Runs this program again as the helper. Returns only an error.
fn become_helper(client: &Client, closes: bool, alive: i32) -> TestResult {
    // SAFETY: our own descriptors, whose flags nobody else changes.
    unsafe {
        libc::fcntl(alive, libc::F_SETFD, 0);
        if !closes {
            libc::fcntl(client.raw().fd()?.as_raw_fd(), libc::F_SETFD, 0);
        }
    }
    Err(program::become_again(&[HELPER, &alive.to_string()]))
}

fn leader_exits() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let (acquired, go, end) = (Gate::new()?, Gate::new()?, Gate::new()?);
    let global = mutex.global();
    let owner = Child::spawn(|| {
        let client = Client::new()?;
        let handle = client.open_global(Shape::KeyedMutex, global)?.into_raw();
        std::thread::scope(|scope| {
            // This one goes on after the leader, and ends the process.
            scope.spawn(|| {
                let status = i32::from(end.wait().is_err());
                // SAFETY: ends this process without running anything of the parent's.
                unsafe { libc::_exit(status) }
            });
            ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(0));
            acquired.open()?;
            go.wait()?;
            // SAFETY: ends this thread only; nothing on its stack is dropped, and the process ends
            // without it.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
            Err("the leader did not exit".into())
        })
    })?;
    acquired.wait()?;
    let outcome = abandoned_when(&client, &mutex, || go.open());
    end.open()?;
    owner.join()?;
    outcome
}

fn closes_device() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let (acquired, go, end) = (Gate::new()?, Gate::new()?, Gate::new()?);
    let global = mutex.global();
    let owner = Child::spawn(|| {
        {
            let client = Client::new()?;
            let handle = client.open_global(Shape::KeyedMutex, global)?.into_raw();
            ensure_eq!(client.try_acquire(handle, 0)?, Acquired::with(0));
            acquired.open()?;
            go.wait()?;
            // The last node of this process is closed here; the process lives on.
        }
        end.wait()
    })?;
    acquired.wait()?;
    let outcome = abandoned_when(&client, &mutex, || go.open());
    end.open()?;
    owner.join()?;
    outcome
}

fn fork() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    client.try_acquire(mutex.handle(), 0)?;
    let global = mutex.global();
    selftests::child::in_child(|| {
        let client = Client::new()?;
        let opened = client.open_global(Shape::KeyedMutex, global)?;
        fails_with(client.release(opened.handle(), 1, 1), REFUSE)?;
        ensure_eq!(client.try_acquire(opened.handle(), 0)?, Acquired::TIMEOUT);
        Ok(())
    })?;
    // The child is gone; we still own it.
    client.release(mutex.handle(), 0, 6)?;
    ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(6));
    Ok(())
}

fn other_handle_release() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let opened = client.open_global(Shape::KeyedMutex, mutex.global())?;
    ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
    client.release(opened.handle(), 1, 11)?;
    ensure_eq!(client.try_acquire(opened.handle(), 1)?, Acquired::with(11));
    // The handle it was released through before plays no part.
    mutex.destroy()?;
    client.release(opened.handle(), 2, 12)?;
    ensure_eq!(client.try_acquire(opened.handle(), 2)?, Acquired::with(12));
    Ok(())
}

fn handed_over() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    client.try_acquire(handle, 0)?;
    let other = client.clone();
    // Gets it asleep, and exits with it.
    let heir = Blocked::new(move || other.acquire(handle, 1, None))?;
    abandoned_when(&client, &mutex, || {
        client.release(handle, 1, 9)?;
        ensure_eq!(heir.join()??, Acquired::with(9));
        Ok(())
    })
}
