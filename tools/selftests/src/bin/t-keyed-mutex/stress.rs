// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many threads of several processes on one mutex (RES-102, RES-110).

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use opendxg::Status;
use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};
use selftests::child::Child;
use selftests::rounds::{crowd, rounds, Dice};
use selftests::sharing::{Acquired, Client, How, Shape};
use selftests::stress::Figure;
use selftests::time::scaled;
use selftests::{ensure, ensure_eq, Failure, Suite, TestResult};

const PROCESSES: usize = 4;
const THREADS: usize = 16;

pub(crate) fn tests(suite: Suite) -> Suite {
    let limit = Duration::from_secs(120);
    suite
        .stress(
            "RES-102 64 threads in 4 processes, one counter",
            limit,
            // Seconds.
            Figure::new(3, 600),
            counter,
        )
        .slow(
            "RES-102 a ring of 64 threads in 4 processes loses no hand-over",
            limit,
            ring,
        )
        .slow("RES-102 time-outs against releases", limit, timeouts)
        .slow(
            "RES-102 RES-110 abandonment against waits",
            limit,
            abandonment,
        )
        .slow("RES-110 kill -9 of owners and waiters", limit, kills)
}

/// What the mutex protects, in memory that all processes share.
struct Protected {
    /// Changed by plain loads and stores, as only the owner may.
    counter: UnsafeCell<u64>,
    inside: UnsafeCell<u64>,
    /// Counted beside the mutex.
    successes: AtomicU64,
}

// SAFETY: the cells are only used by the owner of the mutex; that this is so is what the tests
// check.
unsafe impl Sync for Protected {}

struct Shared(*mut core::ffi::c_void);

impl Shared {
    fn new() -> TestResult<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let size = size_of::<Protected>();
        // SAFETY: a new mapping, anywhere.
        let start = unsafe { mmap_anonymous(null_mut(), size, rights, MapFlags::SHARED) }?;
        Ok(Self(start))
    }

    fn get(&self) -> &Protected {
        // SAFETY: mapped as long as `self` lives, aligned to a page; zeroes are a valid value.
        unsafe { &*self.0.cast() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        let _ = unsafe { munmap(self.0, size_of::<Protected>()) };
    }
}

/// What the owner does: checks that it is alone and that it got the last fence value, and counts.
fn inside(protected: &Protected, fence: u64) -> TestResult<u64> {
    // SAFETY: the caller owns the mutex, so nobody else touches the cells.
    unsafe {
        let alone = protected.inside.get().replace(1);
        ensure_eq!(alone, 0, "two owners");
        let counter = protected.counter.get().read_volatile();
        ensure_eq!(fence, counter, "fence value of another release");
        core::hint::spin_loop();
        protected.counter.get().write_volatile(counter + 1);
        protected.inside.get().write_volatile(0);
        protected.successes.fetch_add(1, Ordering::Relaxed);
        Ok(counter + 1)
    }
}

/// Runs `body` in 16 threads of each of 4 processes.
fn everywhere(body: impl Fn(&Client, u32, usize) -> TestResult + Sync, global: u32) -> TestResult {
    let body = &body;
    let start = |process: usize| {
        Child::spawn(move || {
            let client = Client::new()?;
            let opened = client.open_global(Shape::KeyedMutex, global)?;
            let handle = opened.handle();
            let outcome = crowd(THREADS, |thread| {
                body(&client, handle, process * THREADS + thread)
            });
            drop(opened);
            outcome
        })
    };
    let children = (0..PROCESSES).map(start).collect::<TestResult<Vec<_>>>()?;
    children.into_iter().try_for_each(Child::join)
}

/// How often the mutex is owned at least.
const ENOUGH: u64 = 100;

fn counter(figure: Figure) -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let shared = Shared::new()?;
    let protected = shared.get();
    let end = Instant::now() + figure.time();
    everywhere(
        |client, handle, number| {
            let mut dice = Dice::new(number as u64);
            // A machine that is slow goes on until it has shown something.
            while Instant::now() < end || protected.successes.load(Ordering::Relaxed) <= ENOUGH {
                let key = u64::from(dice.below(2));
                // Some wait so shortly that giving up meets being served.
                let limit = if number % 4 == 0 { 1 } else { 50 };
                let acquired = client.acquire_ms(handle, key, limit)?;
                match acquired.status {
                    Status::SUCCESS => {
                        let fence = inside(protected, acquired.fence)?;
                        client.release(handle, u64::from(dice.below(2)), fence)?;
                    }
                    _ => ensure_eq!(acquired, Acquired::TIMEOUT),
                }
                dice.dawdle();
            }
            Ok(())
        },
        mutex.global(),
    )?;
    let successes = protected.successes.load(Ordering::Relaxed);
    println!("# {successes} times owned");
    ensure!(successes > ENOUGH, "{successes}");
    // It is free, with one of the two keys, and nothing was lost.
    let mut last = client.try_acquire(mutex.handle(), 0)?;
    if last == Acquired::TIMEOUT {
        last = client.try_acquire(mutex.handle(), 1)?;
    }
    ensure_eq!(last, Acquired::with(successes));
    Ok(())
}

fn ring() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let shared = Shared::new()?;
    let protected = shared.get();
    let all = (PROCESSES * THREADS) as u64;
    let turns = u64::from(rounds(100));
    everywhere(
        |client, handle, number| {
            let key = number as u64;
            for turn in 0..turns {
                let acquired = client.acquire(handle, key, None)?;
                ensure_eq!(acquired, Acquired::with(turn * all + key));
                let fence = inside(protected, acquired.fence)?;
                client.release(handle, (key + 1) % all, fence)?;
            }
            Ok(())
        },
        mutex.global(),
    )?;
    ensure_eq!(
        client.try_acquire(mutex.handle(), 0)?,
        Acquired::with(turns * all)
    );
    Ok(())
}

fn timeouts() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let (mut got, mut missed) = (0, 0);
    for round in 0..rounds(500) {
        ensure_eq!(client.acquire(handle, 0, None)?.status, Status::SUCCESS);
        let other = client.clone();
        let limit = i64::from(round % 20) * -1000 - 1000;
        let waiter = std::thread::spawn(move || -> TestResult<bool> {
            let acquired = other.acquire(handle, 1, Some(limit))?;
            if acquired.status != Status::SUCCESS {
                return Ok(false);
            }
            other.release(handle, 0, 0)?;
            Ok(true)
        });
        std::thread::sleep(Duration::from_micros(u64::from(round % 37) * 60));
        client.release(handle, 1, 0)?;
        match waiter.join().map_err(|_| "panic in a thread")?? {
            true => got += 1,
            false => {
                missed += 1;
                // The release found nobody: the mutex is free with key 1.
                ensure_eq!(client.try_acquire(handle, 1)?.status, Status::SUCCESS);
                client.release(handle, 0, 0)?;
            }
        }
    }
    println!("# served {got}, gave up {missed}");
    Ok(())
}

fn abandonment() -> TestResult {
    let client = Client::new()?;
    for round in 0..rounds(200) {
        let mutex = client.create(Shape::KeyedMutex, How::Global)?;
        let waited = client.open_global(Shape::KeyedMutex, mutex.global())?;
        ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
        let handle = waited.handle();
        std::thread::scope(|scope| -> TestResult {
            let waiters: Vec<_> = (0..3)
                .map(|key| {
                    let client = client.clone();
                    scope.spawn(move || client.acquire(handle, key, None))
                })
                .collect();
            Dice::new(round.into()).dawdle();
            mutex.destroy()?;
            for waiter in waiters {
                let acquired = waiter.join().map_err(|_| "panic in a thread")??;
                ensure_eq!(acquired, Acquired::ABANDONED);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn kills() -> TestResult {
    let client = Client::new()?;
    let mut abandoned = 0;
    for round in 0..rounds(60) {
        let mutex = client.create(Shape::KeyedMutex, How::Global)?;
        let global = mutex.global();
        let victim = Child::spawn(|| {
            let client = Client::new()?;
            let handle = client.open_global(Shape::KeyedMutex, global)?.into_raw();
            crowd(4, |number| loop {
                let acquired = client.acquire(handle, number as u64 % 2, None)?;
                if acquired.status != Status::SUCCESS {
                    return Ok(());
                }
                client.release(handle, (number as u64 + 1) % 2, acquired.fence + 1)?;
            })
        })?;
        std::thread::sleep(Duration::from_micros(u64::from(round) * 331 % 20_000));
        victim.kill()?;
        // Free with one of the keys, or abandoned: never owned by a dead process.
        let limit = Instant::now() + scaled(Duration::from_secs(5));
        let state = loop {
            let tries = [0, 1].map(|key| client.try_acquire(mutex.handle(), key));
            let [a, b] = tries;
            let seen = [a?, b?].into_iter().find(|seen| *seen != Acquired::TIMEOUT);
            match seen {
                Some(seen) => break seen.status,
                None if Instant::now() > limit => {
                    return Err(Failure::from("owned by a dead process"))
                }
                None => std::thread::yield_now(),
            }
        };
        match state {
            Status::ABANDONED => abandoned += 1,
            _ => ensure_eq!(state, Status::SUCCESS),
        }
    }
    println!("# {abandoned} abandoned");
    Ok(())
}
