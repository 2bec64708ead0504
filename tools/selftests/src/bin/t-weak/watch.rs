// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices of destruction (RES-74, RES-75).

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use rustix::event::PollFlags;
use selftests::child::{in_child, Child, Gate};
use selftests::fds::{closed_number, memfd, poll_events};
use selftests::sharing::{Client, How, Shape, Target};
use selftests::time::{eventually, soon};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const DESTROY: u32 = OPENDXG_WATCH_DESTROY;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-74 told once, whatever ended the object", once)
        .test(
            "RES-74 the object resolves nowhere when the notice comes",
            order,
        )
        .test("RES-74 a closed watch says nothing", closed)
        .test("RES-74 a watcher that holds nothing else", watcher_alone)
        .test(
            "RES-74 the last reference is in another process, and it is killed",
            killed,
        )
        .test("RES-74 many watches with their cookies", many)
        .test(
            "RES-74 references through descriptors delay the notice",
            delayed,
        )
        .test("RES-74 a watch polls like a weak reference", polls)
        .test("RES-74 refused watches", refused)
        .test(
            "RES-75 the client makes new objects while notices come",
            reenters,
        )
}

fn told(event: &EventFd) -> TestResult {
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    selftests::time::a_while();
    ensure_eq!(event.take()?, 0, "told twice");
    Ok(())
}

fn once() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Nt)?;
        let id = client.id(object.target())?;
        let event = EventFd::new()?;
        let watch = client.watch(object.target(), DESTROY, 0xfeed_f00d_dead_beef, &event)?;
        ensure_eq!(event.take()?, 0);
        ensure_eq!(client.watch_state(&watch)?.events, 0);
        object.destroy()?;
        told(&event)?;
        let state = client.watch_state(&watch)?;
        ensure_eq!((state.cookie, state.object_id), (0xfeed_f00d_dead_beef, id));
        ensure_eq!(state.events, DESTROY, "{shape:?}");
    }
    Ok(())
}

fn order() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        for _ in 0..50 {
            let object = client.create(shape, How::Global)?;
            let global = object.global();
            let weak = client.open_weak(object.target())?;
            let event = EventFd::new()?;
            let _watch = client.watch(object.target(), DESTROY, 0, &event)?;
            let destroyer = std::thread::spawn(move || object.destroy());
            ensure_eq!(event.wait(Some(soon()))?, Some(1));
            // At this very moment:
            let open = client.open_global(shape, global);
            fails_with(open, Status::INVALID_PARAMETER)?;
            let resolve = client.resolve_weak(shape.what(), &weak);
            fails_with(resolve, Status::NOT_FOUND)?;
            let query = client.query(Target::Global(global));
            fails_with(query.map(|_| ()), Status::INVALID_PARAMETER)?;
            destroyer.join().map_err(|_| "panic in a thread")??;
        }
    }
    // By name.
    let name = r"\BaseNamedObjects\watched";
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share_named(&object, name)?;
        let event = EventFd::new()?;
        let _watch = client.watch(object.target(), DESTROY, 0, &event)?;
        object.destroy()?;
        ensure_eq!(event.take()?, 0);
        drop(fd);
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
        let open = client.open_name(shape.what(), name, 1);
        fails_with(open, Status::OBJECT_NAME_NOT_FOUND)?;
    }
    Ok(())
}

fn closed() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let event = EventFd::new()?;
        let watch = client.watch(object.target(), DESTROY, 0, &event)?;
        let copy = watch.try_clone()?;
        drop(watch);
        drop(copy);
        object.destroy()?;
        selftests::time::a_while();
        ensure_eq!(event.take()?, 0, "{shape:?}");
    }
    Ok(())
}

fn watcher_alone() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let (ready, seen) = (Gate::new()?, Gate::new()?);
        let watcher = Child::spawn(|| {
            // No node of this process is open: the call is made on the NT handle.
            let event = EventFd::new()?;
            let watch = client.watch(Target::This(fd.as_fd()), DESTROY, 7, &event)?;
            // SAFETY: this child's own copy of the descriptor; nobody uses it any more.
            unsafe { libc::close(fd.as_raw_fd()) };
            ready.open()?;
            ensure_eq!(event.wait(Some(soon()))?, Some(1));
            ensure_eq!(client.watch_state(&watch)?.cookie, 7);
            seen.open()
        })?;
        ready.wait()?;
        drop(fd);
        object.destroy()?;
        seen.wait()?;
        watcher.join()?;
    }
    Ok(())
}

fn killed() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let event = EventFd::new()?;
        let _watch = client.watch(object.target(), DESTROY, 0, &event)?;
        let opened = Gate::new()?;
        let other = Child::spawn(|| {
            let client = Client::new()?;
            client.open(shape, &fd)?.into_raw();
            opened.open()?;
            std::thread::sleep(soon());
            Ok(())
        })?;
        opened.wait()?;
        drop(fd);
        object.destroy()?;
        selftests::time::a_while();
        ensure_eq!(event.take()?, 0, "{shape:?}: the other process has it open");
        other.kill()?;
        told(&event)?;
    }
    Ok(())
}

fn many() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let mut watches = Vec::new();
    for cookie in 0..100 {
        let event = EventFd::new()?;
        watches.push((
            client.watch(object.target(), DESTROY, cookie, &event)?,
            event,
        ));
    }
    // One eventfd for two watches adds up.
    let both = EventFd::new()?;
    let _pair = [
        client.watch(object.target(), DESTROY, 0, &both)?,
        client.watch(object.target(), DESTROY, 0, &both)?,
    ];
    watches.swap_remove(50);
    object.destroy()?;
    for (watch, event) in &watches {
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
        let state = client.watch_state(watch)?;
        ensure_eq!(state.events, DESTROY);
        ensure!(
            state.cookie < 100 && state.cookie != 50,
            "cookie {}",
            state.cookie
        );
    }
    let mut told = 0;
    eventually("both are told", || {
        told += both.take().unwrap_or(0);
        told == 2
    })
}

fn delayed() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let event = EventFd::new()?;
        let _watch = client.watch(object.target(), DESTROY, 0, &event)?;
        let copy = fd.try_clone()?;
        object.destroy()?;
        ensure_eq!(event.take()?, 0);
        drop(fd);
        ensure_eq!(event.take()?, 0);
        let opened = client.open(shape, &copy)?;
        drop(copy);
        ensure_eq!(event.take()?, 0);
        opened.destroy()?;
        told(&event)?;
    }
    Ok(())
}

fn polls() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let event = EventFd::new()?;
    let watch = client.watch(object.target(), DESTROY, 0, &event)?;
    ensure_eq!(
        poll_events(watch.as_fd(), Duration::ZERO)?,
        PollFlags::empty()
    );
    object.destroy()?;
    let events = poll_events(watch.as_fd(), soon())?;
    ensure!(events.contains(PollFlags::HUP), "{events:?}");
    Ok(())
}

fn refused() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let event = EventFd::new()?;
    let file = memfd()?;
    for events in [0, 4, 1 << 31, u32::MAX] {
        let watch = client.watch(object.target(), events, 0, &event);
        fails_with(watch, Status::INVALID_PARAMETER)?;
    }
    for handle in [0, client.device_handle(), object.handle() + 0x4000] {
        let watch = client.watch(Target::Local(handle), DESTROY, 0, &event);
        fails_with(watch, Status::INVALID_PARAMETER)?;
    }
    for number in [file.as_raw_fd(), closed_number()?, -1] {
        let mut arg = opendxg_watch::zeroed();
        (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
        (arg.events, arg.event_fd) = (DESTROY, number);
        let refused = client.call(&mut arg);
        ensure!(
            matches!(
                refused,
                Err(opendxg::Error::Status(
                    Status::INVALID_HANDLE | Status::OBJECT_TYPE_MISMATCH
                ))
            ),
            "{number}: {refused:?}"
        );
    }
    Ok(())
}

fn reenters() -> TestResult {
    let client = Client::new()?;
    let mut event = EventFd::new()?;
    let mut object = client.create(Shape::Resource, How::Nt)?;
    let mut watch = client.watch(object.target(), DESTROY, 0, &event)?;
    for round in 0..200 {
        let destroyer = std::thread::spawn(move || object.destroy());
        ensure_eq!(event.wait(Some(soon()))?, Some(1), "round {round}");
        object = client.create(Shape::Resource, How::Nt)?;
        event = EventFd::new()?;
        watch = client.watch(object.target(), DESTROY, 0, &event)?;
        let fd = client.share(&object, 1)?;
        client.open_resource(&fd)?;
        destroyer.join().map_err(|_| "panic in a thread")??;
    }
    drop(watch);
    in_child(|| {
        // Objects that end with their process, all at once.
        let client = Client::new()?;
        for shape in Shape::ALL {
            client.create(shape, How::Nt)?.into_raw();
        }
        Ok(())
    })
}
