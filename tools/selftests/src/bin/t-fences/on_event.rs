// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals of fences that wait for an eventfd (FEN-175).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use opendxg::raw::Argument;
use opendxg::uapi::opendxg_signal_on_event;
use opendxg::{Access, Dxg, EventFd, FdInfo, MonitoredFence, Status, SyncFlags};
use selftests::call::refused;
use selftests::child::{in_child, Child, Gate};
use selftests::leak::Watch;
use selftests::poison::POISON;
use selftests::rounds::{rounds, together, Part};
use selftests::stress::Figure;
use selftests::time::{a_while, eventually, soon};
use selftests::user::{become_user, needs_root};
use selftests::{ensure, ensure_eq, fails_with, fds, fixture, Suite, TestResult};

/// A user that no other test is.
const ALONE: u32 = 1175;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-175 an event signals the fence once", once)
        .test("FEN-175 an event that is signalled already", already)
        .test("FEN-175 the counter is not consumed", not_consumed)
        .test("FEN-175 many registrations of one event", many)
        .test("FEN-175 waits of every kind are released", waits)
        .test("FEN-175 FEN-32 a rewind is refused when it fires", rewinds)
        .test("FEN-175 an event that the fence itself signals", itself)
        .test("FEN-175 a ring of fences and events", ring)
        .test("FEN-175 the last descriptor of the event is closed", closed)
        .test("FEN-175 FEN-28 the fence ends first", destroyed)
        .test("FEN-175 FEN-89 the process ends first", killed)
        .test("FEN-175 RES-105 it counts as a wait until it ends", charged)
        .test("FEN-175 refusals", refusals)
        .test("FEN-175 firing against every end", races)
        .stress(
            "FEN-175 hand-overs by events, none lost",
            Duration::from_secs(60),
            Figure::new(2_000, 100_000),
            |figure| hand_overs(figure.rounds()),
        )
}

/// Waits until the fence has this value.
fn reaches(fence: &MonitoredFence, value: u64) -> TestResult {
    eventually("the event signals the fence", || fence.value() == value)
}

/// How many registrations this process has, and other waits without a thread.
fn pending() -> TestResult<u64> {
    number("dxg-process-waiters")
}

fn number(key: &str) -> TestResult<u64> {
    let info = FdInfo::read(Dxg::open()?.as_fd())?;
    let value = info.get(key).and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("no {key} in {info:?}").into())
}

fn once() -> TestResult {
    let device = fixture::device()?;
    let before = pending()?;
    let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
    fence.signal_on_event(5, &event, false)?;
    ensure_eq!(pending()?, before + 1);
    a_while();
    ensure_eq!(fence.value(), 0);
    event.signal()?;
    reaches(&fence, 5)?;
    eventually("it has ended", || pending().is_ok_and(|now| now == before))?;
    // A signal that comes later is nobody's.
    fence.signal_rewind(1)?;
    event.take()?;
    event.signal()?;
    a_while();
    ensure_eq!(fence.value(), 1);
    Ok(())
}

fn already() -> TestResult {
    let device = fixture::device()?;
    let before = pending()?;
    let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
    event.signal()?;
    for value in [0, 1, 7, u64::MAX] {
        fence.signal_on_event(value, &event, false)?;
        ensure_eq!(fence.value(), value, "before the call returns");
    }
    ensure_eq!(pending()?, before);
    // Counted before it was registered, and taken meanwhile: only what is there counts.
    event.take()?;
    fence.signal_on_event(3, &event, true)?;
    a_while();
    ensure_eq!(fence.value(), u64::MAX);
    event.signal()?;
    reaches(&fence, 3)
}

fn not_consumed() -> TestResult {
    let device = fixture::device()?;
    let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
    fence.signal_on_event(1, &event, false)?;
    event.signal()?;
    reaches(&fence, 1)?;
    event.signal()?;
    fence.signal_on_event(2, &event, false)?;
    ensure_eq!(fence.value(), 2);
    ensure_eq!(event.take()?, 2);
    // A reader that is faster does not make the signal be lost.
    for value in 3..50 {
        fence.signal_on_event(value, &event, false)?;
        event.signal()?;
        ensure_eq!(event.take()?, 1);
        reaches(&fence, value)?;
    }
    Ok(())
}

fn many() -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    let fences: Vec<_> = (0..100)
        .map(|_| device.create_fence(0))
        .collect::<Result<_, _>>()?;
    for (value, fence) in (1..).zip(&fences) {
        fence.signal_on_event(value, &event, false)?;
    }
    // Two of one fence: the higher one stays, in whatever order they come.
    let both = device.create_fence(0)?;
    both.signal_on_event(1, &event, false)?;
    both.signal_on_event(2, &event, false)?;
    // A descriptor that was copied is the same event.
    let copy = EventFd::from(event.as_fd().try_clone_to_owned()?);
    let by_copy = device.create_fence(0)?;
    by_copy.signal_on_event(9, &copy, false)?;
    drop(copy);
    event.signal()?;
    for (value, fence) in (1..).zip(&fences) {
        reaches(fence, value)?;
    }
    reaches(&both, 2)?;
    reaches(&by_copy, 9)
}

fn waits() -> TestResult {
    let device = fixture::device()?;
    let (fence, event, told) = (device.create_fence(0)?, EventFd::new()?, EventFd::new()?);
    let (point, stream) = (fence.point(3)?, fence.stream(0)?);
    fence.wait_async(3, &told)?;
    fence.signal_on_event(3, &event, false)?;
    let sleeper = {
        let handle = fence.duplicate()?;
        std::thread::spawn(move || handle.point(3).and_then(|point| point.wait(None)))
    };
    event.signal()?;
    fence.wait(3)?;
    ensure_eq!(told.wait(None)?, Some(1));
    ensure!(point.is_signalled()?);
    ensure_eq!(stream.read()?, 3);
    ensure!(sleeper.join().map_err(|_| "panic in a thread")??);
    Ok(())
}

fn rewinds() -> TestResult {
    let device = fixture::device()?;
    let refused = || number("dxg-process-refused-rewinds");
    let before = (pending()?, refused()?);
    let (fence, event) = (device.create_fence(5)?, EventFd::new()?);
    // Allowed by the call, because nobody knows yet what the value will be.
    fence.signal_on_event(4, &event, false)?;
    let allowed = device.create_fence(5)?;
    allowed.signal_on_event(4, &event, true)?;
    event.signal()?;
    reaches(&allowed, 4)?;
    eventually("both have ended", || {
        pending().is_ok_and(|now| now == before.0)
    })?;
    ensure_eq!(fence.value(), 5);
    ensure_eq!(refused()?, before.1 + 1);
    // The same for one that comes at once: the call itself succeeds.
    fence.signal_on_event(3, &event, false)?;
    ensure_eq!((fence.value(), refused()?), (5, before.1 + 2));
    fence.signal_on_event(5, &event, false)?;
    ensure_eq!(refused()?, before.1 + 2, "an equal value is no rewind");
    Ok(())
}

/// The end of an asynchronous wait signals the event, which signals the fence, and so on.
fn itself() -> TestResult {
    let device = fixture::device()?;
    let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
    const LAST: u64 = 200;
    for value in 1..LAST {
        fence.wait_async(value, &event)?;
    }
    // All wait for the first signal of the event; each signal of the fence makes more.
    for value in 2..=LAST {
        fence.signal_on_event(value, &event, false)?;
    }
    fence.signal(1)?;
    reaches(&fence, LAST)?;
    let mut count = 0;
    while count < LAST - 1 {
        count += event.wait(Some(soon()))?.ok_or("a wait was lost")?;
    }
    ensure_eq!(count, LAST - 1);
    Ok(())
}

/// Each fence's wait signals an event that signals the next fence, round and round.
fn ring() -> TestResult {
    let device = fixture::device()?;
    const COUNT: usize = 10;
    const ROUNDS: u64 = 20;
    let fences: Vec<_> = (0..COUNT)
        .map(|_| device.create_fence(0))
        .collect::<Result<_, _>>()?;
    let mut events = Vec::new();
    for round in 1..=ROUNDS {
        for (number, fence) in fences.iter().enumerate() {
            let event = EventFd::new()?;
            fence.wait_async(round, &event)?;
            let (next, value) = match number + 1 {
                COUNT => (&fences[0], round + 1),
                next => (&fences[next], round),
            };
            next.signal_on_event(value, &event, false)?;
            events.push(event);
        }
    }
    fences[0].signal(1)?;
    reaches(&fences[0], ROUNDS + 1)?;
    for fence in &fences[1..] {
        ensure_eq!(fence.value(), ROUNDS);
    }
    Ok(())
}

fn closed() -> TestResult {
    let device = fixture::device()?;
    let before = pending()?;
    let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
    let copy = event.as_fd().try_clone_to_owned()?;
    for value in [1, 2] {
        fence.signal_on_event(value, &event, false)?;
    }
    drop(event);
    ensure_eq!(pending()?, before + 2, "there is another descriptor");
    drop(copy);
    eventually("they have ended", || {
        pending().is_ok_and(|now| now == before)
    })?;
    ensure_eq!(fence.value(), 0);
    // One that was signalled before it was closed has signalled.
    for value in 1..50 {
        let event = EventFd::new()?;
        fence.signal_on_event(value, &event, false)?;
        event.signal()?;
        drop(event);
        reaches(&fence, value)?;
    }
    Ok(())
}

fn destroyed() -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    let before = pending()?;
    let event = EventFd::new()?;
    let fence = device.create_shareable_fence(0)?;
    let (point, shared) = (fence.point(1)?, fence.share(Access::ALL)?);
    fence.signal_on_event(1, &event, false)?;
    fence.destroy()?;
    ensure_eq!(pending()?, before + 2, "an NT handle is left");
    drop(shared);
    eventually("it has ended", || pending().is_ok_and(|now| now == before))?;
    // It does not count among those who could signal.
    fails_with(point.wait(None), Status::INVALID_HANDLE)?;
    event.signal()?;
    a_while();
    drop(point);
    drop(event);
    watch.ends_clean()
}

/// A child registers, and ends as `end` says before the event comes.
fn ended_by(end: impl Fn(Child) -> TestResult) -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let (shared, event) = (fence.share(Access::ALL)?, EventFd::new()?);
    let (made, watch) = (Gate::new()?, Watch::start()?);
    let child = Child::spawn(|| {
        let device = fixture::device()?;
        let opened = device.open_fence(&shared, SyncFlags::empty())?;
        opened.signal_on_event(1, &event, false)?;
        made.open()?;
        loop {
            std::thread::park();
        }
    })?;
    made.wait()?;
    end(child)?;
    watch.ends_clean()?;
    event.signal()?;
    a_while();
    ensure_eq!(fence.value(), 0);
    Ok(())
}

fn killed() -> TestResult {
    ended_by(|child| child.kill())
}

/// The process of a user without any others: what these wait for comes and goes.
fn charged() -> TestResult {
    needs_root()?;
    in_child(|| {
        become_user(ALONE)?;
        let device = fixture::device()?;
        let used = || -> TestResult<u64> {
            let info = FdInfo::read(Dxg::open()?.as_fd())?;
            let value = info.get("dxg-user-wait-elements");
            let used = value.and_then(|value| value.split(' ').next()?.parse().ok());
            used.ok_or_else(|| "no wait elements".into())
        };
        let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
        for value in 1..=10 {
            fence.signal_on_event(value, &event, false)?;
        }
        ensure_eq!(used()?, 10);
        event.signal()?;
        eventually("the charge is released", || {
            used().is_ok_and(|used| used == 0)
        })
    })
}

fn call(object: u32, event: u64) -> opendxg_signal_on_event {
    let mut arg = opendxg_signal_on_event::zeroed();
    (arg.sync_object, arg.value, arg.event) = (object, 1, event);
    arg
}

fn refusals() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
    event.signal()?;
    let number = event.as_raw_fd() as u64;
    for bit in 1..32 {
        let mut arg = call(fence.handle().0, number);
        arg.flags = 1 << bit;
        refused(&raw, &mut arg, Status::INVALID_PARAMETER)?;
    }
    let dead = device.create_fence(0)?.handle().0;
    for handle in [0, u32::MAX, POISON, dead, device.handle().0] {
        refused(&raw, &mut call(handle, number), Status::INVALID_PARAMETER)?;
    }
    let closed = fds::closed_number()? as u64;
    for number in [0, closed, u64::MAX, (1 << 32) | number, 0x4000_0000] {
        let mut arg = call(fence.handle().0, number);
        refused(&raw, &mut arg, Status::INVALID_HANDLE)?;
    }
    let point = fence.point(1)?;
    let (memfd, (reader, _writer)) = (fds::memfd()?, fds::pipe()?);
    for fd in [OwnedFd::from(point), memfd, reader] {
        let error = fence.signal_on_event(1, &fd, false);
        fails_with(error, Status::OBJECT_TYPE_MISMATCH)?;
    }
    let denied = device.create_fence_with(0, SyncFlags::NO_SIGNAL)?;
    fails_with(
        denied.signal_on_event(1, &event, false),
        Status::ACCESS_DENIED,
    )?;
    ensure_eq!((fence.value(), denied.value()), (0, 0));
    Ok(())
}

/// The event comes while its descriptor is closed, or the fence is destroyed, by other threads.
fn races() -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    for round in 0..rounds(300) {
        let (fence, event) = (device.create_fence(0)?, EventFd::new()?);
        let copy = EventFd::from(event.as_fd().try_clone_to_owned()?);
        for value in 1..=3 {
            fence.signal_on_event(value, &event, false)?;
        }
        let mut parts: Vec<Part<'_>> = vec![Box::new(move || Ok(copy.signal()?))];
        match round % 3 {
            0 => {
                parts.push(Box::new(move || Ok(fence.destroy()?)));
                parts.push(Box::new(move || {
                    drop(event);
                    Ok(())
                }));
            }
            1 => parts.push(Box::new(move || {
                drop(event);
                fence.wait(3)?;
                Ok(())
            })),
            _ => parts.push(Box::new(move || {
                // Registered while it fires: it is seen either way.
                fence.signal_on_event(4, &event, false)?;
                fence.wait(4)?;
                Ok(())
            })),
        }
        together(parts)?;
    }
    watch.ends_clean()
}

/// Many fences, and an event for each: every one of them has to be signalled in each round.
fn hand_overs(count: u32) -> TestResult {
    const AT_ONCE: u32 = 500;
    let device = fixture::device()?;
    let pairs: Vec<_> = (0..AT_ONCE)
        .map(|_| Ok((device.create_fence(0)?, EventFd::new()?)))
        .collect::<TestResult<_>>()?;
    for round in 1..=u64::from(count.div_ceil(AT_ONCE)) {
        for (fence, event) in &pairs {
            fence.signal_on_event(round, event, false)?;
        }
        std::thread::scope(|scope| -> TestResult {
            let signaller = scope.spawn(|| pairs.iter().try_for_each(|(_, event)| event.signal()));
            for (fence, event) in &pairs {
                fence.wait(round)?;
                event.take()?;
            }
            Ok(signaller.join().map_err(|_| "panic in a thread")??)
        })?;
    }
    Ok(())
}
