// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits and signals that meet: nobody sleeps on, nobody is told twice.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

use opendxg::{Access, Error, EventFd, FenceValues, MonitoredFence, Status, SyncFlags};
use rustix::event::PollFlags;
use selftests::fds::poll_events;
use selftests::rounds::{crowd, rounds, Dice};
use selftests::task::{me, until_blocked};
use selftests::time::soon;
use selftests::{ensure_eq, fixture, Suite, TestResult};

/// How many fences one wait is about.
const FENCES: usize = 4;

/// One asynchronous wait over several fences, each signalled by a thread of its own, one of them
/// while the wait is registered: the event gets exactly 1.
fn told_once(any: bool) -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    for round in 0..rounds(60) {
        let fences = (0..FENCES).map(|_| device.create_fence(0));
        let fences = fences.collect::<Result<Vec<_>, _>>()?;
        let list = fences.iter().fold(FenceValues::new(), |list, fence| {
            list.with(fence, 2).with(fence, 1)
        });
        crowd(FENCES + 1, |part| {
            let mut dice = Dice::new(u64::from(round) * 8 + part as u64);
            dice.dawdle();
            match fences.get(part) {
                Some(fence) => {
                    fence.signal(1)?;
                    fence.signal(2)?;
                }
                None if any => drop(device.wait_any_async(&list, &event)?),
                None => drop(device.wait_all_async(&list, &event)?),
            }
            Ok(())
        })?;
        ensure_eq!(event.take()?, 1, "round {round}");
    }
    Ok(())
}

/// One signal per round, and then silence until the other side has answered.
fn last_signal(wait: impl Fn(&MonitoredFence, u64) -> TestResult + Sync) -> TestResult {
    let device = fixture::device()?;
    let fences = [device.create_fence(0)?, device.create_fence(0)?];
    let rounds = u64::from(rounds(1000));
    crowd(2, |part| {
        let (mine, other) = (&fences[part], &fences[1 - part]);
        for value in 1..=rounds {
            if part == 0 {
                mine.signal(value)?;
                wait(other, value)?;
            } else {
                wait(other, value)?;
                mine.signal(value)?;
            }
        }
        Ok(())
    })?;
    println!("# 0 stuck out of {rounds} rounds, two signals each");
    Ok(())
}

fn by_event(fence: &MonitoredFence, value: u64) -> TestResult {
    let event = EventFd::new()?;
    fence.wait_async(value, &event)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    Ok(())
}

fn by_point(fence: &MonitoredFence, value: u64) -> TestResult {
    let point = fence.point(value)?;
    ensure_eq!(poll_events(point.as_fd(), soon())?, PollFlags::IN);
    Ok(())
}

fn many_pairs() -> TestResult {
    let device = fixture::device()?;
    let pairs = (0..32).map(|_| Ok([device.create_fence(0)?, device.create_fence(0)?]));
    let pairs = pairs.collect::<opendxg::Result<Vec<_>>>()?;
    let rounds = u64::from(rounds(25));
    crowd(64, |part| {
        let [first, second] = &pairs[part / 2];
        for value in 1..=rounds {
            if part % 2 == 0 {
                first.signal(value)?;
                second.wait(value)?;
            } else {
                first.wait(value)?;
                second.signal(value)?;
            }
        }
        Ok(())
    })
}

/// Many threads asleep on different values of one fence; signals that each release one of them.
fn one_by_one() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let woken = AtomicU32::new(0);
    let sleepers = 16;
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        for value in 1..=sleepers {
            let (fence, woken, tell) = (&fence, &woken, tell.clone());
            scope.spawn(move || {
                let _ = tell.send(me());
                fence.wait(value.into()).expect("a wait that is satisfied");
                woken.fetch_add(1, Ordering::SeqCst);
            });
        }
        let threads: Vec<i32> = told.iter().take(sleepers as usize).collect();
        for value in 1..=sleepers {
            for thread in &threads {
                // Those that are released have ended.
                if std::fs::exists(format!("/proc/self/task/{thread}"))? {
                    until_blocked(*thread)?;
                }
            }
            ensure_eq!(woken.load(Ordering::SeqCst), value - 1);
            fence.signal(value.into())?;
            selftests::time::eventually("one thread wakes", || {
                woken.load(Ordering::SeqCst) == value
                    && threads
                        .iter()
                        .filter(|thread| {
                            std::fs::exists(format!("/proc/self/task/{thread}")).unwrap_or(true)
                        })
                        .count()
                        == (sleepers - value) as usize
            })?;
        }
        Ok(())
    })
}

/// A waiter of each kind; one signal wakes each once.
fn all_kinds() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    for value in 1..=u64::from(rounds(100)) {
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let sleeper = scope.spawn({
                let fence = &fence;
                move || {
                    let _ = tell.send(me());
                    fence.wait(value)
                }
            });
            let point = fence.point(value)?;
            fence.wait_async(value, &event)?;
            let poller = scope.spawn(move || poll_events(point.as_fd(), soon()));
            until_blocked(told.recv().map_err(|_| "no thread")?)?;
            ensure_eq!(event.take()?, 0);
            fence.signal(value)?;
            ensure_eq!(event.take()?, 1);
            sleeper.join().map_err(|_| "panic in a thread")??;
            let events = poller.join().map_err(|_| "panic in a thread")??;
            ensure_eq!(events, PollFlags::IN);
            Ok(())
        })?;
    }
    Ok(())
}

/// The woken thread destroys the fence at once, while the signaller may still be in its call.
fn destroyed_on_wake() -> TestResult {
    let device = fixture::device()?;
    for _ in 0..rounds(150) {
        let fence = device.create_shareable_fence(0)?;
        let other = device.open_fence(fence.share(Access::ALL)?, SyncFlags::empty())?;
        let both = std::sync::Mutex::new([Some(fence), Some(other)]);
        crowd(2, |part| {
            let fence = both.lock().map_err(|_| "poisoned")?[part].take();
            let fence = fence.ok_or("taken twice")?;
            match part {
                0 => fence.wait(1)?,
                _ => fence.signal(1)?,
            }
            Ok(fence.destroy()?)
        })?;
    }
    Ok(())
}

/// The last handle is destroyed at any moment of a wait, with or without a signal before.
fn destroyed_during_a_wait(any: bool) -> TestResult {
    let device = fixture::device()?;
    let mut outcomes = [0u32; 2];
    for round in 0..rounds(100) {
        let fence = device.create_fence(0)?;
        let list = FenceValues::new().with(&fence, 1).with(&fence, 2);
        let slot = std::sync::Mutex::new(Some(fence));
        let result = std::sync::Mutex::new(None);
        crowd(2, |part| {
            let mut dice = Dice::new(u64::from(round) * 2 + part as u64);
            dice.dawdle();
            if part == 0 {
                let answer = match any {
                    true => device.wait_any(&list),
                    false => device.wait_all(&list),
                };
                *result.lock().map_err(|_| "poisoned")? = Some(answer);
                return Ok(());
            }
            let fence = slot.lock().map_err(|_| "poisoned")?.take();
            let fence = fence.ok_or("taken twice")?;
            if round % 2 == 0 {
                fence.signal(2)?;
            }
            Ok(fence.destroy()?)
        })?;
        let answer = result.into_inner().map_err(|_| "poisoned")?;
        match answer.ok_or("no answer")? {
            Ok(()) if round % 2 == 0 => outcomes[0] += 1,
            // The fence ended first, or its handle was gone before the wait began.
            Err(Error::Status(Status::INVALID_HANDLE | Status::INVALID_PARAMETER)) => {
                outcomes[1] += 1;
            }
            other => return Err(format!("round {round}: {other:?}").into()),
        }
    }
    println!("# waits that succeeded, that ended with the fence: {outcomes:?}");
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "FEN-20 FEN-85 a wait for any of several fences tells its event once",
            || told_once(true),
        )
        .test(
            "FEN-20 FEN-16 a wait for all of several fences tells its event once",
            || told_once(false),
        )
        .test("M1 no last signal is lost: sleeping waits", || {
            last_signal(|fence, value| Ok(fence.wait(value)?))
        })
        .test("M1 no last signal is lost: events", || {
            last_signal(by_event)
        })
        .test("M1 no last signal is lost: fence points", || {
            last_signal(by_point)
        })
        .test("64 threads hand values to each other", many_pairs)
        .test(
            "FEN-30 M16 each signal releases exactly its own waiter",
            one_by_one,
        )
        .test("a waiter of each kind wakes once", all_kinds)
        .test(
            "FEN-27 the woken thread destroys the fence at once",
            destroyed_on_wake,
        )
        .test(
            "FEN-27 FEN-28 M15 the fence ends at any moment of a wait for any",
            || destroyed_during_a_wait(true),
        )
        .test(
            "FEN-27 FEN-28 M15 the fence ends at any moment of a wait for all",
            || destroyed_during_a_wait(false),
        )
}
