// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fence points: descriptors that become readable at a value (FEN-168).

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use opendxg::raw::Argument;
use opendxg::uapi::opendxg_fence_point;
use opendxg::{Access, EventFd, FdInfo, FencePoint, Status, SyncFlags};
use rustix::event::{epoll, PollFlags};
use selftests::call::refused;
use selftests::child::{Child, Gate};
use selftests::fds::{self, poll_events, receive, send, socket_pair};
use selftests::leak::{open_descriptors, Watch};
use selftests::memory::Page;
use selftests::poison::{bytes, POISON};
use selftests::time::{a_while, soon};
use selftests::uring::Ring;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-168 poll: readable once the value is reached", poll)
        .test("FEN-168 a reached value is readable at once", reached)
        .test("FEN-168 readable stays readable after a rewind", latched)
        .test("FEN-168 epoll, level and edge triggered", with_epoll)
        .test("FEN-168 io_uring POLL_ADD", with_uring)
        .test("FEN-169 an event in an epoll set in an io_uring", nested)
        .test("FEN-28 hang-up when nobody is left to signal", hang_up)
        .test("FEN-168 many points of one fence", many)
        .test(
            "FEN-168 a point outlives its process and works in another one",
            sent,
        )
        .test("FEN-168 fdinfo tells fence, value and state", fd_info)
        .test(
            "RES-13 RES-16 FEN-168 a point is closed by exec, and nothing but polled",
            no_io,
        )
        .test("FEN-168 refusals", refusals)
        .test(
            "RES-3 no descriptor if its number cannot be written",
            unwritable,
        )
        .test("closing a point in every state leaves nothing", closing)
}

/// What `poll` says now.
fn events(point: &FencePoint) -> TestResult<PollFlags> {
    poll_events(point.as_fd(), Duration::ZERO)
}

fn poll() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let point = fence.point(3)?;
    for value in [1, 2] {
        fence.signal(value)?;
        ensure_eq!(events(&point)?, PollFlags::empty(), "at {value}");
    }
    let waiter = std::thread::spawn(move || (point.wait(Some(soon())), point));
    a_while();
    fence.signal(3)?;
    let (woken, point) = waiter.join().map_err(|_| "panic in a thread")?;
    ensure!(woken?, "a sleeping poll was not woken");
    ensure_eq!(events(&point)?, PollFlags::IN);
    fence.signal(4)?;
    ensure_eq!(events(&point)?, PollFlags::IN);
    Ok(())
}

fn reached() -> TestResult {
    let device = fixture::device()?;
    for (current, value) in [(0, 0), (5, 0), (5, 5), (5, 4), (u64::MAX, u64::MAX)] {
        let fence = device.create_fence(current)?;
        ensure_eq!(
            events(&fence.point(value)?)?,
            PollFlags::IN,
            "{value} at {current}"
        );
    }
    Ok(())
}

fn latched() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let (point, higher) = (fence.point(5)?, fence.point(6)?);
    fence.signal(5)?;
    fence.signal_rewind(0)?;
    ensure_eq!(events(&point)?, PollFlags::IN);
    ensure_eq!(events(&higher)?, PollFlags::empty());
    ensure_eq!(events(&fence.point(5)?)?, PollFlags::empty(), "a new point");
    Ok(())
}

fn with_epoll() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    for (round, trigger) in (1..).zip([epoll::EventFlags::empty(), epoll::EventFlags::ET]) {
        let points = [
            fence.point(2 * round)?,
            fence.point(2 * round)?,
            fence.point(100)?,
        ];
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, point) in (0..).zip(&points) {
            let data = epoll::EventData::new_u64(number);
            epoll::add(&set, point, data, epoll::EventFlags::IN | trigger)?;
        }
        let ready = |timeout: Duration| -> TestResult<Vec<u64>> {
            let timeout = rustix::event::Timespec::try_from(timeout).map_err(|_| "timeout")?;
            let mut space = [epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }; 8];
            let count = epoll::wait(&set, &mut space[..], Some(&timeout))?;
            let mut numbers: Vec<u64> = space[..count]
                .iter()
                .map(|event| event.data.u64())
                .collect();
            numbers.sort();
            Ok(numbers)
        };
        ensure_eq!(ready(Duration::ZERO)?, [0; 0]);
        fence.signal(2 * round - 1)?;
        ensure_eq!(ready(Duration::ZERO)?, [0; 0]);
        fence.signal(2 * round)?;
        ensure_eq!(ready(soon())?, [0, 1]);
        // Level: still there. Edge: told once.
        let again = ready(Duration::ZERO)?;
        match trigger.is_empty() {
            true => ensure_eq!(again, [0, 1]),
            false => ensure_eq!(again, [0; 0]),
        }
        // Closing the points takes them out of the set.
        drop(points);
        ensure_eq!(ready(Duration::ZERO)?, [0; 0]);
    }
    Ok(())
}

fn with_uring() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let mut ring = Ring::new()?;
    let point = fence.point(2)?;
    ring.poll_add(point.as_fd(), 7)?;
    fence.signal(1)?;
    ensure_eq!(ring.completed()?, None);
    fence.signal(2)?;
    let (data, result) = ring.wait()?;
    ensure_eq!(data, 7);
    ensure_eq!(result & 1, 1, "POLLIN");
    ring.poll_add(point.as_fd(), 8)?;
    ensure_eq!(ring.wait()?.0, 8, "a point that is readable already");
    Ok(())
}

fn nested() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let event = EventFd::new()?;
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(
        &set,
        &event,
        epoll::EventData::new_u64(1),
        epoll::EventFlags::IN,
    )?;
    let mut ring = Ring::new()?;
    for value in 1..=50 {
        let point = fence.point(value)?;
        epoll::add(
            &set,
            &point,
            epoll::EventData::new_u64(2),
            epoll::EventFlags::IN,
        )?;
        ring.poll_add(set.as_fd(), value)?;
        fence.wait_async(value, &event)?;
        ensure_eq!(ring.completed()?, None);
        fence.signal(value)?;
        ensure_eq!(ring.wait()?.0, value);
        ensure_eq!(event.take()?, 1);
    }
    Ok(())
}

fn hang_up() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let (reached, pending) = (fence.point(1)?, fence.point(5)?);
    fence.signal(1)?;
    let shared = fence.share(Access::ALL)?;
    fence.destroy()?;
    ensure_eq!(
        events(&pending)?,
        PollFlags::empty(),
        "an NT handle is left"
    );
    let waiter = {
        let watched = pending.as_fd().try_clone_to_owned()?;
        std::thread::spawn(move || poll_events(watched.as_fd(), soon()))
    };
    a_while();
    drop(shared);
    let woken = waiter.join().map_err(|_| "panic in a thread")??;
    ensure!(woken.contains(PollFlags::HUP), "sleeping poll: {woken:?}");
    ensure!(
        events(&pending)?.contains(PollFlags::HUP),
        "{:?}",
        events(&pending)?
    );
    // What was reached stays so.
    ensure_eq!(events(&reached)?, PollFlags::IN);
    Ok(())
}

fn many() -> TestResult {
    let fence = fixture::device()?.create_fence(0)?;
    let points: Vec<FencePoint> = (1..=200)
        .map(|value| fence.point(value * 37 % 200 + 1))
        .collect::<Result<_, _>>()?;
    let count = || -> TestResult<usize> {
        let states: Vec<bool> = points
            .iter()
            .map(FencePoint::is_signalled)
            .collect::<Result<_, _>>()?;
        Ok(states.into_iter().filter(|signalled| *signalled).count())
    };
    for value in [0, 1, 100, 199, 200] {
        fence.signal(value)?;
        ensure_eq!(count()? as u64, value, "at {value}");
    }
    Ok(())
}

fn sent() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let shared = fence.share(Access::ALL)?;
    let (left, right) = socket_pair()?;
    let made = Gate::new()?;
    let maker = Child::spawn(|| {
        let device = fixture::device()?;
        let opened = device.open_fence(&shared, SyncFlags::empty())?;
        let (near, far) = (opened.point(1)?, opened.point(9)?);
        send(&left, OwnedFd::from(near))?;
        send(&left, OwnedFd::from(far))?;
        made.open()
    })?;
    made.wait()?;
    maker.join()?;
    let near = FencePoint::from(receive(&right)?);
    let far = FencePoint::from(receive(&right)?);
    ensure_eq!(
        events(&near)?,
        PollFlags::empty(),
        "after the end of its maker"
    );
    fence.signal(1)?;
    ensure_eq!(events(&near)?, PollFlags::IN);
    ensure_eq!(events(&far)?, PollFlags::empty());
    Ok(())
}

fn fd_info() -> TestResult {
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(0)?;
    let point = fence.point(u64::MAX)?;
    let field = |key: &str| -> TestResult<String> {
        let info = FdInfo::read(point.as_fd())?;
        let value = info.get(key).map(str::to_owned);
        value.ok_or_else(|| format!("no {key} in {info:?}").into())
    };
    ensure_eq!(field("dxg-type")?, "DxgkFencePoint");
    ensure_eq!(field("dxg-value")?, u64::MAX.to_string());
    ensure_eq!(field("dxg-signalled")?, "0");
    let shared = fence.share(Access::ALL)?;
    let same = FdInfo::read(shared.as_fd())?
        .get("dxg-object")
        .map(str::to_owned);
    ensure_eq!(Some(field("dxg-object")?), same);
    fence.signal(u64::MAX)?;
    ensure_eq!(field("dxg-signalled")?, "1");
    Ok(())
}

fn no_io() -> TestResult {
    let point = fixture::device()?.create_fence(0)?.point(1)?;
    let flags = rustix::io::fcntl_getfd(&point)?;
    ensure!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    fds::refuses_io(point.as_fd())
}

/// A call with a poisoned output.
fn call(object: u32, value: u64) -> opendxg_fence_point {
    let mut arg = opendxg_fence_point::zeroed();
    (arg.sync_object, arg.value, arg.fd) = (object, value, POISON as i32);
    arg
}

fn refusals() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let fence = device.create_fence(0)?;
    let refuse = Status::INVALID_PARAMETER;
    for bit in 0..32 {
        let mut arg = call(fence.handle().0, 0);
        arg.flags = 1 << bit;
        refused(&raw, &mut arg, refuse)?;
        let mut arg = call(fence.handle().0, 0);
        arg.reserved = 1 << bit;
        refused(&raw, &mut arg, refuse)?;
    }
    let dead = device.create_fence(0)?.handle().0;
    for handle in [
        0,
        u32::MAX,
        POISON,
        dead,
        device.handle().0,
        fence.handle().0 | 2,
    ] {
        refused(&raw, &mut call(handle, 0), refuse)?;
    }
    let denied = device.create_fence_with(0, SyncFlags::NO_WAIT)?;
    fails_with(denied.point(0), Status::ACCESS_DENIED)
}

fn unwritable() -> TestResult {
    let raw = fixture::raw()?;
    let fence = fixture::device()?.create_fence(0)?;
    let watch = Watch::start()?;
    let descriptors = open_descriptors()?;
    for value in [0, 1] {
        let arg = call(fence.handle().0, value);
        let page = Page::beginning_with(bytes(&arg))?.read_only()?;
        let code = opendxg::raw::code(opendxg_fence_point::NR, opendxg_fence_point::SIZE);
        ensure_eq!(
            raw.ioctl(code, page.address()),
            Err(rustix::io::Errno::FAULT)
        );
        ensure_eq!(open_descriptors()?, descriptors, "descriptors");
    }
    watch.unchanged()
}

fn closing() -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    for _ in 0..100 {
        let fence = device.create_fence(0)?;
        let points = [fence.point(1)?, fence.point(2)?, fence.point(0)?];
        let [first, second, third] = points;
        drop(second);
        fence.signal(1)?;
        drop((first, third));
        let last = fence.point(7)?;
        fence.destroy()?;
        drop(last);
    }
    watch.ends_clean()
}
