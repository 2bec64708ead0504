// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is next, and how many are woken (RES-97).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use opendxg::Status;
use selftests::blocked::Blocked;
use selftests::rounds::rounds;
use selftests::sharing::{Acquired, Client, How, Shape};
use selftests::{ensure, ensure_eq, task, Suite, TestResult};

const MANY: usize = 8;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-97 waiters of a key are served in their order", fifo)
        .test("RES-97 who gives up leaves the queue in order", gives_up)
        .test("RES-97 a release wakes exactly one", one_wake)
        .test(
            "RES-97 a release with a key nobody waits for wakes none",
            no_wake,
        )
        .slow(
            "RES-97 a hand-over back and forth costs one wake each",
            Duration::from_secs(60),
            ping_pong,
        )
}

fn fifo() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let served = Arc::new(Mutex::new(Vec::new()));
    client.try_acquire(handle, 0)?;
    let mut waiters = Vec::new();
    for number in 0..MANY {
        let (client, served) = (client.clone(), served.clone());
        waiters.push(Blocked::new(move || -> TestResult {
            let acquired = client.acquire(handle, 1, None)?;
            ensure_eq!(acquired, Acquired::with(number as u64));
            served.lock().map_err(|_| "poisoned")?.push(number);
            Ok(client.release(handle, 1, number as u64 + 1)?)
        })?);
    }
    client.release(handle, 1, 0)?;
    for waiter in waiters {
        waiter.join()??;
    }
    let served = served.lock().map_err(|_| "poisoned")?;
    ensure_eq!(*served, (0..MANY).collect::<Vec<_>>());
    Ok(())
}

fn gives_up() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let served = Arc::new(Mutex::new(Vec::new()));
    client.try_acquire(handle, 0)?;
    let mut waiters = Vec::new();
    for number in 0..MANY {
        let (client, served) = (client.clone(), served.clone());
        let limit = if number % 2 == 0 { 600_000 } else { 300 };
        waiters.push(Blocked::new(move || -> TestResult {
            let acquired = client.acquire_ms(handle, 1, limit)?;
            if acquired.status == Status::SUCCESS {
                served.lock().map_err(|_| "poisoned")?.push(number);
                client.release(handle, 1, 0)?;
            }
            Ok(())
        })?);
    }
    let mut patient = Vec::new();
    for (number, waiter) in waiters.into_iter().enumerate() {
        match number % 2 {
            0 => patient.push(waiter),
            _ => waiter.join()??,
        }
    }
    client.release(handle, 1, 0)?;
    for waiter in patient {
        waiter.join()??;
    }
    let served = served.lock().map_err(|_| "poisoned")?;
    ensure_eq!(*served, (0..MANY).step_by(2).collect::<Vec<_>>());
    Ok(())
}

/// How often a thread has gone to sleep.
fn sleeps(thread: i32) -> TestResult<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/status"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| "no count of context switches".into())
}

/// Threads that wait for key 1 for ever, and a way to end them: each releases with key 1.
fn crowd(client: &Client, handle: u32) -> TestResult<Vec<Blocked<TestResult>>> {
    let wait = || {
        let client = client.clone();
        Blocked::new(move || -> TestResult {
            ensure_eq!(client.acquire(handle, 1, None)?.status, Status::SUCCESS);
            // The others must be seen to sleep on before the next one is woken.
            selftests::time::a_while();
            Ok(client.release(handle, 1, 0)?)
        })
    };
    (0..MANY).map(|_| wait()).collect()
}

fn counts(waiters: &[Blocked<TestResult>]) -> TestResult<Vec<u64>> {
    waiters.iter().map(|waiter| sleeps(waiter.id())).collect()
}

fn one_wake() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    client.try_acquire(handle, 0)?;
    let waiters = crowd(&client, handle)?;
    let before = counts(&waiters)?;
    client.release(handle, 1, 0)?;
    // The first one has the mutex and sleeps elsewhere.
    std::thread::sleep(selftests::time::A_WHILE / 2);
    let after = counts(&waiters)?;
    ensure_eq!(after[1..], before[1..], "others were woken as well");
    for waiter in waiters {
        waiter.join()??;
    }
    Ok(())
}

fn no_wake() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let waiters = crowd(&client, handle)?;
    let before = counts(&waiters)?;
    let mut key = 1 << 40;
    ensure_eq!(client.try_acquire(handle, 0)?.status, Status::SUCCESS);
    client.release(handle, key, 0)?;
    for _ in 0..200 {
        ensure_eq!(client.try_acquire(handle, key)?.status, Status::SUCCESS);
        key += 1;
        client.release(handle, key, 0)?;
    }
    ensure_eq!(counts(&waiters)?, before, "woken without reason");
    ensure_eq!(client.try_acquire(handle, key)?.status, Status::SUCCESS);
    client.release(handle, 1, 0)?;
    for waiter in waiters {
        waiter.join()??;
    }
    Ok(())
}

fn ping_pong() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let hand_overs = u64::from(rounds(5000));
    let player = |client: Client, mine: u64, theirs: u64| {
        move || -> TestResult<u64> {
            let start = sleeps(task::me())?;
            for round in 0..hand_overs {
                let acquired = client.acquire(handle, mine, None)?;
                ensure_eq!(acquired, Acquired::with(2 * round + mine));
                client.release(handle, theirs, acquired.fence + 1)?;
            }
            Ok(sleeps(task::me())? - start)
        }
    };
    let ping = std::thread::spawn(player(client.clone(), 0, 1));
    let pong = std::thread::spawn(player(client.clone(), 1, 0));
    let join = |thread: std::thread::JoinHandle<TestResult<u64>>| -> TestResult<u64> {
        thread.join().map_err(|_| "panic in a thread")?
    };
    let slept = join(ping)? + join(pong)?;
    println!("# {slept} sleeps for {} hand-overs", 2 * hand_overs);
    // Each side sleeps at most once for each time it gets the mutex; a little for everything else.
    ensure!(
        slept <= 2 * hand_overs + hand_overs / 20 + 20,
        "{slept} sleeps"
    );
    Ok(())
}
