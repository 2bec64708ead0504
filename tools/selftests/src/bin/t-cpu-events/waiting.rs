// SPDX-License-Identifier: MIT OR Apache-2.0
//! The eventfds of CPU events, and who waits for them (cpu-events.md section 7).

use std::os::fd::AsFd;
use std::sync::Barrier;

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::EventClass;
use opendxg::EventFd;
use rustix::event::{epoll, eventfd, EventfdFlags};
use selftests::child::Child;
use selftests::gpu::Gpu;
use selftests::time::soon;
use selftests::uring::Ring;
use selftests::{ensure, ensure_eq, fds, Suite, TestResult};

use super::Told;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("CPU-37 three forms of an event", forms)
        .test("CPU-26 CPU-38 an epoll set in an io_uring", nested)
        .test("CPU-39 many waiters, one signal", many)
        .test("CPU-40 an eventfd of another process", passed)
}

/// So many traps of a device.
fn trap(gpu: &Gpu, count: u64) -> TestResult {
    gpu.run(&(0..count).fold(Pm4::new(), |packets, number| packets.trap(1, number)))
}

fn semaphore() -> TestResult<EventFd> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
    Ok(eventfd(0, flags)?.into())
}

/// One that is reset by who reads it, one that stays set until somebody does, and one that wakes a
/// waiter for each signal.
fn forms() -> TestResult {
    let gpu = Gpu::new()?;
    let usage = EventClass::Trap.usage(0);
    let (auto, manual) = (Told::new(&gpu, usage)?, Told::new(&gpu, usage)?);
    let each = Told::with(&gpu, semaphore()?, usage)?;
    trap(&gpu, 3)?;
    let mut heard = 0;
    while heard < 3 {
        heard += auto.wait()?;
    }
    ensure_eq!(auto.fd.take()?, 0, "a read resets it");
    for _ in 0..3 {
        let ready = fds::poll_events(manual.fd.as_fd(), soon())?;
        ensure!(ready.contains(rustix::event::PollFlags::IN), "{ready:?}");
    }
    let mut heard = 0;
    while heard < 3 {
        ensure_eq!(each.wait()?, 1, "one read for each signal");
        heard += 1;
    }
    ensure_eq!(each.fd.take()?, 0);
    Ok(())
}

/// The callbacks of those who wait run inside of the signal: epoll, and io_uring on top of it,
/// which take locks of their own.
fn nested() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Trap.usage(0))?;
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let level = epoll::EventFlags::IN;
    epoll::add(&set, &told.fd, epoll::EventData::new_u64(1), level)?;
    let mut ring = Ring::new()?;
    for round in 1..=50 {
        ring.poll_add(set.as_fd(), round)?;
        ensure_eq!(ring.completed()?, None);
        trap(&gpu, 1)?;
        ensure_eq!(ring.wait()?.0, round);
        ensure_eq!(told.wait()?, 1);
    }
    Ok(())
}

/// Threads with epoll sets of their own, one of which the kernel wakes up: the event itself is
/// signalled once.
fn many() -> TestResult {
    const THREADS: usize = 8;
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Trap.usage(0))?;
    let begun = Barrier::new(THREADS + 1);
    let heard = std::thread::scope(|scope| -> TestResult<u64> {
        let waiters: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| -> TestResult<u64> {
                    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
                    let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
                    epoll::add(&set, &told.fd, epoll::EventData::new_u64(1), flags)?;
                    begun.wait();
                    let ready = fds::poll_events(set.as_fd(), soon())?;
                    ensure!(ready.contains(rustix::event::PollFlags::IN), "{ready:?}");
                    let count = told.fd.take()?;
                    // The next one hears of it too: only one of them has to take the count.
                    told.fd.signal()?;
                    Ok(count)
                })
            })
            .collect();
        begun.wait();
        trap(&gpu, 1)?;
        let mut heard = 0;
        for waiter in waiters {
            heard += waiter.join().map_err(|_| "a panic")??;
        }
        Ok(heard + told.fd.take()?)
    })?;
    // One of the driver, and one of each thread.
    ensure_eq!(heard, 1 + THREADS as u64);
    let (records, lost) = told.event.take_records(told.name)?;
    ensure_eq!((records.len(), lost), (1, 0));
    Ok(())
}

/// It is named by the descriptor that the caller has of it, whoever has made it.
fn passed() -> TestResult {
    let (ours, theirs) = fds::socket_pair()?;
    let child = Child::spawn(|| {
        let fd = EventFd::new()?;
        fds::send(&theirs, &fd)?;
        ensure_eq!(fd.wait(Some(soon()))?, Some(1));
        Ok(())
    })?;
    let gpu = Gpu::new()?;
    let fd = EventFd::from(fds::receive(&ours)?);
    let told = Told::with(&gpu, fd, EventClass::Trap.usage(0))?;
    trap(&gpu, 1)?;
    child.join()?;
    told.is_silent()
}
