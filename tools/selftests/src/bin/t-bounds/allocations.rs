// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that sleeps for a few fences, or for a keyed mutex, takes no memory.

use std::sync::mpsc::channel;
use std::time::Duration;

use opendxg::{Device, FenceValues, Timeout};
use selftests::allocations::Allocations;
use selftests::blocked::Blocked;
use selftests::{ensure, ensure_eq, fixture, task, Suite, TestResult};

/// So many times the thread sleeps.
const ROUNDS: u64 = 20;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let limit = Duration::from_secs(60);
    suite
        .slow("FEN-30 a wait for one fence takes no memory", limit, one)
        .slow(
            "FEN-30 a wait for up to four fences takes no memory",
            limit,
            several,
        )
        .slow(
            "FEN-30 FEN-17 nor does one that names a fence twice",
            limit,
            twice,
        )
        .slow(
            "FEN-30 four threads sleep for a fence without memory",
            limit,
            crowd,
        )
        .slow(
            "RES-95 an acquire that blocks takes no memory",
            limit,
            keyed_mutex,
        )
}

/// What a thread allocates that does `sleep` with the numbers of [`ROUNDS`], each of which ends
/// after `wake` with the same number. Every `sleep` is seen to sleep. The first one is not counted:
/// what a process needs only once is there then.
fn allocated(
    sleep: impl Fn(u64) -> TestResult + Sync,
    wake: impl Fn(u64) -> TestResult,
) -> TestResult<Vec<String>> {
    // Before there is a thread that sleeps.
    Allocations::needed()?;
    let (ids, id) = channel();
    let (turns, turn) = channel();
    std::thread::scope(|scope| {
        let sleep = &sleep;
        let sleeper = scope.spawn(move || -> TestResult {
            ids.send(task::me()).map_err(|_| "nobody counts")?;
            for round in 1..=ROUNDS {
                sleep(round)?;
                turns.send(round).map_err(|_| "nobody counts")?;
            }
            Ok(())
        });
        let thread = id.recv().map_err(|_| "the thread did not start")?;
        let mut counter = None;
        for round in 1..=ROUNDS {
            task::until_blocked(thread)?;
            if round == 2 {
                counter = Some(Allocations::begin(thread)?);
            }
            if round == ROUNDS {
                // The thread ends after this one.
                break;
            }
            wake(round)?;
            let done = turn.recv().map_err(|_| "the thread is gone")?;
            ensure_eq!(done, round);
        }
        let allocated = counter.ok_or("not counted")?.end()?;
        wake(ROUNDS)?;
        sleeper.join().map_err(|_| "panic in a thread")??;
        Ok(allocated)
    })
}

fn nothing(allocated: &[String]) -> TestResult {
    ensure!(allocated.is_empty(), "{allocated:#?}");
    Ok(())
}

fn one() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let wait = |round| Ok(fence.wait(round)?);
    nothing(&allocated(wait, |round| Ok(fence.signal(round)?))?)
}

/// What a thread allocates that sleeps for so many fences, each named `times` times, and for one
/// of them or for all.
fn for_fences(device: &Device, count: usize, times: usize, any: bool) -> TestResult<Vec<String>> {
    let fences = (0..count)
        .map(|_| Ok(device.create_fence(0)?))
        .collect::<TestResult<Vec<_>>>()?;
    let wait = |round| {
        let mut values = FenceValues::new();
        for fence in fences
            .iter()
            .flat_map(|fence| std::iter::repeat_n(fence, times))
        {
            values.push(fence, round);
        }
        match any {
            true => device.wait_any(&values)?,
            false => device.wait_all(&values)?,
        }
        Ok(())
    };
    // Another one each time, if one is enough.
    let wake = |round| {
        for (number, fence) in (0..).zip(&fences) {
            if !any || number == round % fences.len() as u64 {
                fence.signal(round)?;
            }
        }
        Ok(())
    };
    allocated(wait, wake)
}

fn several() -> TestResult {
    let device = fixture::device()?;
    for count in 2..=4 {
        for any in [true, false] {
            nothing(&for_fences(&device, count, 1, any)?)?;
        }
    }
    // The counter counts: for more there is no room on the stack.
    let many = for_fences(&device, 5, 1, false)?;
    ensure!(many.len() as u64 >= ROUNDS - 2, "{many:#?}");
    Ok(())
}

fn twice() -> TestResult {
    for any in [true, false] {
        nothing(&for_fences(&fixture::device()?, 2, 2, any)?)?;
    }
    Ok(())
}

/// Three others sleep for the same fence, and there is room for one more. The next thread gets
/// memory.
fn crowd() -> TestResult {
    let device = fixture::device()?;
    let fence = std::sync::Arc::new(device.create_fence(0)?);
    let mut others = Vec::new();
    let sleeps = |allocates: bool| -> TestResult {
        let wait = |round| Ok(fence.wait(round)?);
        let taken = allocated(wait, |round| Ok(fence.signal_rewind(round)?))?;
        fence.signal_rewind(0)?;
        ensure_eq!(!taken.is_empty(), allocates, "{taken:#?}");
        Ok(())
    };
    for number in 0..4 {
        sleeps(false)?;
        let waiter = fence.clone();
        others.push(Blocked::new(move || waiter.wait(1000 + number))?);
    }
    sleeps(true)?;
    fence.signal(u64::MAX)?;
    for other in others {
        other.join()??;
    }
    Ok(())
}

fn keyed_mutex() -> TestResult {
    let mutex = opendxg::Dxg::open()?.create_keyed_mutex(0)?;
    // This thread releases with the key that the other one waits for, and the other way round.
    let sleep = |round: u64| {
        mutex.acquire(round, Timeout::Forever)?;
        mutex.release(0, round)?;
        Ok(())
    };
    let wake = |round| {
        mutex.acquire(0, Timeout::Forever)?;
        mutex.release(round, 0)?;
        Ok(())
    };
    nothing(&allocated(sleep, wake)?)
}
