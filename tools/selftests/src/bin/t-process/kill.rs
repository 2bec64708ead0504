// SPDX-License-Identifier: MIT OR Apache-2.0
//! SIGKILL at every moment: whatever a process had is gone when it has been waited for.

use std::time::Duration;

use opendxg::{
    Access, Device, Dxg, EventFd, FencePoint, FenceValues, NtHandle, SyncFlags, SyncKind,
};
use rustix::event::PollFlags;
use selftests::child::{Child, Gate};
use selftests::fds::{poll_events, receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::rounds::{rounds, Dice};
use selftests::task::{adopt_orphans, fork_survivor, me, reap, until_blocked};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// What a child tells about its thread that sleeps.
struct Sleeper {
    thread: std::fs::File,
    tell: std::fs::File,
}

impl Sleeper {
    fn new() -> TestResult<Self> {
        let (reader, writer) = selftests::fds::pipe()?;
        let (thread, tell) = (reader.into(), writer.into());
        Ok(Self { thread, tell })
    }

    /// In the child: this thread is about to sleep.
    fn announce(&self) -> TestResult {
        std::io::Write::write_all(&mut &self.tell, &me().to_ne_bytes())?;
        Ok(())
    }

    /// In the parent: waits until that thread sleeps in the driver.
    fn until_asleep(&self) -> TestResult {
        let mut bytes = [0; 4];
        std::io::Read::read_exact(&mut &self.thread, &mut bytes)?;
        until_blocked(i32::from_ne_bytes(bytes))
    }
}

fn killed_asleep(sleep: impl Fn(&Device, &FenceValues) -> TestResult) -> TestResult {
    for _ in 0..rounds(5) {
        let watch = Watch::start()?;
        let sleeper = Sleeper::new()?;
        let child = Child::spawn(|| {
            let device = fixture::device()?;
            let fences = [
                device.create_fence(0)?,
                device.create_shareable_fence(0)?,
                device.create_fence(3)?,
            ];
            let list = fences.iter().zip([1, 2, 9]);
            let list = list.fold(FenceValues::new(), |list, (fence, value)| {
                list.with(fence, value)
            });
            sleeper.announce()?;
            sleep(&device, &list)
        })?;
        sleeper.until_asleep()?;
        child.kill()?;
        watch.unchanged()?;
    }
    Ok(())
}

fn killed_with_pending_waits() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let nt = fence.share(Access::ALL)?;
    let watch = Watch::start()?;
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        let device = fixture::device()?;
        let (own, event) = (device.create_fence(0)?, EventFd::new()?);
        let shared = device.open_fence(&nt, SyncFlags::empty())?;
        let list = FenceValues::new().with(&own, 1).with(&shared, 10);
        for _ in 0..100 {
            device.wait_any_async(&list, &event)?;
            device.wait_all_async(&list, &event)?;
            core::mem::forget(shared.point(7)?);
        }
        ready.open()?;
        loop {
            std::thread::park();
        }
    })?;
    ready.wait()?;
    ensure_eq!(watch.now()?.total_waiters, 300);
    child.kill()?;
    watch.unchanged()?;
    fence.signal(10)?;
    Ok(())
}

/// Everything a process can have open at once, and three threads asleep.
fn everything(nt: &NtHandle, sleeper: &Sleeper) -> TestResult {
    let device = fixture::device()?;
    let (event, contexts) = (
        EventFd::new()?,
        (device.create_context(0)?, device.create_hw_context(0)?),
    );
    let kinds = [
        SyncKind::Mutex {
            initially_owned: true,
        },
        SyncKind::Semaphore {
            max_count: 2,
            initial_count: 1,
        },
        SyncKind::Fence { initial_value: 1 },
    ];
    let objects = kinds.map(|kind| device.create_sync_object(kind, SyncFlags::SHARED));
    let notification = SyncKind::CpuNotification {
        event: Some(&event),
    };
    let notification = device.create_sync_object(notification, SyncFlags::empty())?;
    let private: Vec<_> = (0..100).map(|value| device.create_fence(value)).collect();
    let own = device.create_shareable_fence(0)?;
    let shares = [own.share(Access::ALL)?, own.share(Access::WAIT)?];
    let opened = device.open_fence(nt, SyncFlags::empty())?;
    let point = opened.point(77)?;
    opened.wait_async(78, &event)?;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let _ = sleeper.announce();
                opened.wait(79)
            });
        }
    });
    drop((contexts, objects, notification, private, shares, point));
    Ok(())
}

fn killed_with_everything_open() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let nt = fence.share(Access::ALL)?;
    let watch = Watch::start()?;
    let sleeper = Sleeper::new()?;
    let child = Child::spawn(|| everything(&nt, &sleeper))?;
    for _ in 0..3 {
        sleeper.until_asleep()?;
    }
    ensure!(watch.now()?.total_objects > watch.at_start().total_objects + 100);
    child.kill()?;
    watch.unchanged()?;
    // RES-31: what others hold is as usable as before.
    fence.signal(80)?;
    ensure_eq!(fence.value(), 80);
    Ok(())
}

/// The owner dies while a child that it forked lives on with the inherited descriptor and
/// mappings.
fn killed_with_a_surviving_child(closes_first: bool) -> TestResult {
    adopt_orphans()?;
    let watch = Watch::start()?;
    let (ready, done) = (Gate::new()?, Gate::new()?);
    let (reader, writer) = selftests::fds::pipe()?;
    let owner = Child::spawn(|| {
        let dxg = Dxg::open()?;
        let device = fixture::device()?;
        let fence = device.create_shareable_fence(0)?;
        let event = EventFd::new()?;
        fence.wait_async(5, &event)?;
        let pid = fork_survivor(|| done.wait())?;
        rustix::io::write(&writer, &pid.to_ne_bytes())?;
        if closes_first {
            // SAFETY: this process does nothing with descriptors any more, whatever their owners
            // think.
            unsafe { libc::close_range(0, u32::MAX, 0) };
        } else {
            ready.open()?;
        }
        let _dxg = dxg;
        loop {
            std::thread::park();
        }
    })?;
    let mut pid = [0; 4];
    rustix::io::read(&reader, &mut pid)?;
    if closes_first {
        let directory = format!("/proc/{}/fd", owner.pid());
        let is_empty = || std::fs::read_dir(&directory).is_ok_and(|mut fds| fds.next().is_none());
        selftests::time::eventually("the owner closes everything", is_empty)?;
    } else {
        ready.wait()?;
    }
    owner.kill()?;
    let left = watch.now()?;
    done.open()?;
    reap(i32::from_ne_bytes(pid))?;
    let start = watch.at_start();
    ensure_eq!(left.total_objects, start.total_objects);
    ensure_eq!(left.total_handles, start.total_handles);
    ensure_eq!(left.total_waiters, start.total_waiters);
    watch.unchanged()
}

fn killed_last_signaller() -> TestResult {
    let (here, there) = socket_pair()?;
    let child = Child::spawn(|| {
        let fence = fixture::device()?.create_shareable_fence(0)?;
        send(&there, fence.point(5)?)?;
        loop {
            std::thread::park();
        }
    })?;
    let point = FencePoint::from(receive(&here)?);
    ensure_eq!(
        poll_events(std::os::fd::AsFd::as_fd(&point), Duration::ZERO)?,
        PollFlags::empty()
    );
    child.kill()?;
    let events = poll_events(std::os::fd::AsFd::as_fd(&point), selftests::time::soon())?;
    ensure_eq!(events, PollFlags::HUP);
    Ok(())
}

/// Threads that use the driver in every way without end.
pub(crate) fn busy(nt: &NtHandle, ready: &Gate) -> TestResult {
    let device = fixture::device()?;
    let event = EventFd::new()?;
    std::thread::scope(|scope| {
        scope.spawn(|| -> TestResult {
            let mut points = std::collections::VecDeque::new();
            loop {
                let fence = device.create_fence(0)?;
                fence.wait_async(1, &event)?;
                points.push_back(fence.point(2)?);
                fence.signal(1)?;
                if points.len() > 50 {
                    points.pop_front();
                }
            }
        });
        scope.spawn(|| -> TestResult {
            loop {
                let fence = device.open_fence(nt, SyncFlags::empty())?;
                drop(fence.share(Access::WAIT)?);
                let _ = fence.wait_async(u64::MAX, &event);
            }
        });
        scope.spawn(|| -> TestResult {
            loop {
                drop(fixture::device()?.create_shareable_fence(1)?);
            }
        });
        ready.open()
    })
}

fn killed_anywhere() -> TestResult {
    let fence = fixture::device()?.create_shareable_fence(0)?;
    let nt = fence.share(Access::ALL)?;
    let mut dice = Dice::new(1);
    for _ in 0..rounds(30) {
        let watch = Watch::start()?;
        let ready = Gate::new()?;
        let child = Child::spawn(|| busy(&nt, &ready))?;
        ready.wait()?;
        // Any moment will do; this only varies it.
        std::thread::sleep(Duration::from_micros(dice.below(20_000).into()));
        child.kill()?;
        watch.unchanged()?;
    }
    Ok(())
}

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-19 FEN-89 kill -9 in a wait for all", || {
            killed_asleep(|device, list| Ok(device.wait_all(list)?))
        })
        .test("FEN-19 FEN-89 kill -9 in a wait for any", || {
            killed_asleep(|device, list| Ok(device.wait_any(list)?))
        })
        .test(
            "FEN-89 kill -9 with pending asynchronous waits and fence points",
            killed_with_pending_waits,
        )
        .test(
            "RES-31 kill -9 with everything open",
            killed_with_everything_open,
        )
        .test(
            "RES-8 kill -9 while a forked child holds the device descriptor",
            || killed_with_a_surviving_child(false),
        )
        .test(
            "RES-8 kill -9 while a forked child holds the device descriptor that the owner has closed",
            || killed_with_a_surviving_child(true),
        )
        .test(
            "FEN-28 kill -9 of the last process that could signal hangs up a fence point",
            killed_last_signaller,
        )
        .slow(
            "RES-31 FEN-89 kill -9 at any moment",
            Duration::from_secs(90),
            killed_anywhere,
        )
}
