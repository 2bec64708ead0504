// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices of changes (RES-65).

use std::os::fd::AsFd;
use std::time::Duration;

use opendxg::uapi::*;
use opendxg::EventFd;
use rustix::event::PollFlags;
use selftests::child::in_child;
use selftests::fds::{memfd, poll_events};
use selftests::sharing::{key, Client, How, Item, Shape};
use selftests::{ensure, ensure_eq, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-65 each change is announced, to every watch",
            every_change,
        )
        .test("RES-65 what changes nothing is not announced", no_change)
        .test("RES-65 unread notices add up to one state", unread)
        .test("RES-65 changes by other processes", other_process)
        .test("RES-65 only watches for changes hear of them", only_asked)
        .test("RES-65 FEN-168 an NT handle itself never polls", no_poll)
}

fn every_change() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let target = object.target();
        let events = [EventFd::new()?, EventFd::new()?];
        let change = OPENDXG_WATCH_CHANGE;
        let first = client.watch(target, change, 11, &events[0])?;
        let second = client.watch(target, change | OPENDXG_WATCH_DESTROY, 22, &events[1])?;
        let mut generation = 0;
        let mut seen = |what: &str| -> TestResult {
            generation += 1;
            for (event, watch, cookie) in [(&events[0], &first, 11), (&events[1], &second, 22)] {
                ensure_eq!(event.take()?, 1, "{shape:?}: {what}");
                let state = client.watch_state(watch)?;
                ensure_eq!(
                    (state.cookie, state.generation),
                    (cookie, generation),
                    "{what}"
                );
                ensure_eq!(state.events, change);
                ensure_eq!(client.watch_state(watch)?.events, 0, "told twice");
            }
            Ok(())
        };
        client.set(target, key(1), 0, b"new")?;
        seen("a new entry")?;
        client.set(target, key(1), 0, b"new")?;
        seen("the same bytes again")?;
        let file = memfd()?;
        let items = [
            Item::new(key(1), 0, b"").file(file.as_fd()),
            Item::new(key(2), 0, b""),
        ];
        client.set_info(target, &items)?;
        seen("two items and a file")?;
        client.delete_info(target, key(2), 0, 0).0?;
        seen("a removal")?;
        ensure_eq!(client.watch_state(&first)?.object_id, client.id(target)?);
    }
    Ok(())
}

fn no_change() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let event = EventFd::new()?;
    client.set(object.target(), key(1), 0, b"x")?;
    let _watch = client.watch(object.target(), OPENDXG_WATCH_CHANGE, 0, &event)?;
    client.get(object.target(), key(1), 0)?;
    client.entries(object.target())?;
    let refused = Item::new(key(1), 0, b"y").flags(OPENDXG_INFO_CREATE_ONLY);
    ensure!(client.set_info(object.target(), &[refused]).is_err());
    ensure!(client.delete_info(object.target(), key(2), 0, 0).0.is_err());
    selftests::time::a_while();
    ensure_eq!(event.take()?, 0);
    Ok(())
}

fn unread() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let event = EventFd::new()?;
    let watch = client.watch(object.target(), OPENDXG_WATCH_CHANGE, 5, &event)?;
    for round in 0..100u8 {
        client.set(object.target(), key(1), 0, &[round])?;
    }
    let told = event.take()?;
    ensure!((1..=100).contains(&told), "{told} notices for 100 changes");
    let state = client.watch_state(&watch)?;
    ensure_eq!(
        (state.generation, state.events),
        (100, OPENDXG_WATCH_CHANGE)
    );
    // And from now on again.
    client.set(object.target(), key(1), 0, b"")?;
    ensure_eq!(event.take()?, 1);
    Ok(())
}

fn other_process() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let event = EventFd::new()?;
        let watch = client.watch(object.target(), OPENDXG_WATCH_CHANGE, 0, &event)?;
        in_child(|| {
            let client = Client::new()?;
            let opened = client.open(shape, &fd)?;
            client.set(opened.target(), key(1), 0, b"far away")?;
            Ok(())
        })?;
        ensure_eq!(event.wait(Some(selftests::time::soon()))?, Some(1));
        ensure_eq!(client.watch_state(&watch)?.generation, 1);
    }
    Ok(())
}

fn only_asked() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let event = EventFd::new()?;
    let watch = client.watch(object.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
    client.set(object.target(), key(1), 0, b"x")?;
    selftests::time::a_while();
    ensure_eq!(event.take()?, 0);
    ensure_eq!(client.watch_state(&watch)?.events, 0);
    Ok(())
}

fn no_poll() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        client.set(object.target(), key(1), 0, b"x")?;
        object.destroy()?;
        let events = poll_events(fd.as_fd(), Duration::from_millis(20))?;
        ensure_eq!(events, PollFlags::empty(), "{shape:?}");
    }
    Ok(())
}
