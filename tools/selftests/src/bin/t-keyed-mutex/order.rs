// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is next, and how many are woken (RES-97).

use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opendxg::Status;
use selftests::blocked::Blocked;
use selftests::rounds::rounds;
use selftests::sharing::{Acquired, Client, How, Shape};
use selftests::time::{a_while, scaled};
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
    // Long enough to be seen asleep.
    let short = scaled(Duration::from_millis(300)).as_millis() as i64;
    client.try_acquire(handle, 0)?;
    let mut waiters = Vec::new();
    for number in 0..MANY {
        let (client, served) = (client.clone(), served.clone());
        let limit = if number % 2 == 0 { 600_000 } else { short };
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

/// Threads that wait for key 1 for ever, and a way to end them: each releases with key 1.
struct Crowd {
    waiters: Vec<Blocked<TestResult>>,
    /// Who has acquired the mutex holds it until it gets this lock.
    gate: Arc<Mutex<()>>,
    /// One message from each thread that has acquired the mutex.
    acquired: Receiver<()>,
}

impl Crowd {
    fn new(client: &Client, handle: u32) -> TestResult<Self> {
        let gate = Arc::new(Mutex::new(()));
        let (sender, acquired) = channel();
        let wait = |_| {
            let (client, gate, sender) = (client.clone(), gate.clone(), sender.clone());
            Blocked::new(move || -> TestResult {
                ensure_eq!(client.acquire(handle, 1, None)?.status, Status::SUCCESS);
                let _ = sender.send(());
                drop(gate.lock());
                Ok(client.release(handle, 1, 0)?)
            })
        };
        let waiters = (0..MANY).map(wait).collect::<TestResult<_>>()?;
        Ok(Self {
            waiters,
            gate,
            acquired,
        })
    }

    /// How often each thread has gone to sleep.
    fn sleeps(&self) -> TestResult<Vec<u64>> {
        let sleeps = |waiter: &Blocked<_>| task::sleeps(waiter.id());
        self.waiters.iter().map(sleeps).collect()
    }

    fn join(self) -> TestResult {
        self.waiters
            .into_iter()
            .try_for_each(|waiter| waiter.join()?)
    }
}

fn one_wake() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    client.try_acquire(handle, 0)?;
    let crowd = Crowd::new(&client, handle)?;
    let gate = crowd.gate.clone();
    let closed = gate.lock().map_err(|_| "poisoned")?;
    let before = crowd.sleeps()?;
    client.release(handle, 1, 0)?;
    crowd.acquired.recv().map_err(|_| "all waiters failed")?;
    // The first one has the mutex and sleeps elsewhere. Others get time to show that they were
    // woken.
    a_while();
    let after = crowd.sleeps()?;
    ensure_eq!(after[1..], before[1..], "others were woken as well");
    drop(closed);
    crowd.join()
}

fn no_wake() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let crowd = Crowd::new(&client, handle)?;
    let before = crowd.sleeps()?;
    let mut key = 1 << 40;
    ensure_eq!(client.try_acquire(handle, 0)?.status, Status::SUCCESS);
    client.release(handle, key, 0)?;
    for _ in 0..200 {
        ensure_eq!(client.try_acquire(handle, key)?.status, Status::SUCCESS);
        key += 1;
        client.release(handle, key, 0)?;
    }
    ensure_eq!(crowd.sleeps()?, before, "woken without reason");
    ensure_eq!(client.try_acquire(handle, key)?.status, Status::SUCCESS);
    client.release(handle, 1, 0)?;
    crowd.join()
}

fn ping_pong() -> TestResult {
    let client = Client::new()?;
    let mutex = client.create(Shape::KeyedMutex, How::Global)?;
    let handle = mutex.handle();
    let hand_overs = u64::from(rounds(5000));
    let player = |client: Client, mine: u64, theirs: u64| {
        move || -> TestResult<u64> {
            let start = task::sleeps(task::me())?;
            for round in 0..hand_overs {
                let acquired = client.acquire(handle, mine, None)?;
                ensure_eq!(acquired, Acquired::with(2 * round + mine));
                client.release(handle, theirs, acquired.fence + 1)?;
            }
            Ok(task::sleeps(task::me())? - start)
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
