// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same properties for every kind of object (RES-1).

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use rustix::event::PollFlags;
use selftests::fds::poll_events;
use selftests::sharing::{access, Attributes, Client, How, Local, Shape, Target, What};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

/// A property, shown on one kind.
type Property = fn(Shape) -> TestResult;

const PROPERTIES: [(&str, Property); 9] = [
    ("RES-1 the common header", header),
    ("RES-1 RES-2 ids only grow", ids),
    ("RES-1 RES-55 the store, by local handle", store),
    ("RES-1 RES-10 the global handle", global),
    ("RES-1 RES-78 DUP_LOCAL is a reference", duplicate),
    ("RES-1 RES-72 a weak reference", weak),
    (
        "RES-1 RES-74 a watch hears of changes and of the end",
        watch,
    ),
    (
        "RES-1 RES-32 RES-55 the NT handle is the same object with the same store",
        nt,
    ),
    ("RES-1 RES-40 a name", name),
];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let suite = PROPERTIES
        .into_iter()
        .fold(suite, |suite, (name, property)| {
            Shape::ALL.into_iter().fold(suite, |suite, shape| {
                suite.test(format!("{name}: {shape:?}"), move || property(shape))
            })
        });
    suite.test(
        "RES-1 RES-67 only resources and keyed mutexes have runtime data",
        runtime_data,
    )
}

const KEY: [u8; 16] = *b"sixteen bytes ok";

fn header(shape: Shape) -> TestResult {
    let client = Client::new()?;
    for how in [How::Global, How::Nt] {
        if !can_be(shape, how) {
            continue;
        }
        let object = client.create(shape, how)?;
        let seen = client.query(object.target())?.object;
        ensure_eq!((seen.kind, seen.type_), (shape.kind(), shape.object_type()));
        ensure_eq!((seen.member_count, seen.alive, seen.name_size), (1, 1, 0));
        ensure_eq!((seen.references, seen.local_references), (1, 1));
        // SAFETY: plain system call.
        ensure_eq!(seen.creator_uid, unsafe { libc::geteuid() });
        ensure_eq!(seen.generation, 0);
        let luid: LUID = client.device().adapter().luid().into();
        let expected = match shape {
            Shape::KeyedMutex => (0, 0),
            _ => (luid.LowPart, luid.HighPart),
        };
        ensure_eq!((seen.adapter_luid_low, seen.adapter_luid_high), expected);
    }
    Ok(())
}

/// Whether an object of this kind can be shared like that (RES-9).
fn can_be(shape: Shape, how: How) -> bool {
    how != How::Global || Shape::GLOBAL.contains(&shape)
}

fn ids(shape: Shape) -> TestResult {
    let client = Client::new()?;
    let mut last = 0;
    for round in 0..50 {
        let how = match round % 2 == 0 && can_be(shape, How::Global) {
            true => How::Global,
            false => How::Nt,
        };
        let object = client.create(shape, how)?;
        let id = client.id(object.target())?;
        ensure!(id > last, "{id} after {last}");
        // Not an address of the kernel, and no product of one.
        ensure!(id < 1 << 40, "{id:#x}");
        last = id;
    }
    Ok(())
}

fn store(shape: Shape) -> TestResult {
    let client = Client::new()?;
    let object = client.create(shape, How::Nt)?;
    let target = object.target();
    let get = || client.get(target, KEY, 1).map(|entry| entry.bytes);
    fails_with(get(), Status::NOT_FOUND)?;
    let first = client.set(target, KEY, 1, b"described")?;
    ensure!(first > 0);
    ensure_eq!(get()?, b"described");
    let entries = client.entries(target)?;
    let [entry] = &entries[..] else {
        return Err(format!("{} entries", entries.len()).into());
    };
    ensure_eq!((entry.key, entry.schema, entry.size), (KEY, 1, 9));
    client.delete_info(target, KEY, 1, 0).0?;
    fails_with(get(), Status::NOT_FOUND)?;
    ensure_eq!(client.query(target)?.object.generation, first + 1);
    Ok(())
}

fn global(shape: Shape) -> TestResult {
    let client = Client::new()?;
    ensure_eq!(client.create(shape, How::Nt)?.global(), 0);
    if !can_be(shape, How::Global) {
        return Ok(());
    }
    let object = client.create(shape, How::Global)?;
    let target = Target::Global(object.global());
    ensure_eq!(object.global() & 0x3f, 2);
    ensure_eq!(client.id(target)?, client.id(object.target())?);
    ensure_eq!(client.references(target)?, 1, "it holds no reference");
    object.destroy()?;
    fails_with(client.id(target), Status::INVALID_PARAMETER)
}

fn duplicate(shape: Shape) -> TestResult {
    let client = Client::new()?;
    let object = client.create(shape, How::Nt)?;
    let id = client.id(object.target())?;
    let second = client.dup_local(shape.what(), object.handle())?;
    let counts = |object: &Local| -> TestResult<_> {
        let seen = client.query(object.target())?.object;
        Ok((seen.object_id, seen.references, seen.local_references))
    };
    ensure_eq!(counts(&object)?, (id, 2, 2));
    object.destroy()?;
    ensure_eq!(counts(&second)?, (id, 1, 1));
    Ok(())
}

fn weak(shape: Shape) -> TestResult {
    let client = Client::new()?;
    let object = client.create(shape, How::Nt)?;
    let weak = client.open_weak(object.target())?;
    let references = || client.references(object.target());
    ensure_eq!(references()?, 1, "it holds no reference");
    let resolved = client.resolve_weak(shape.what(), &weak)?;
    ensure_eq!(references()?, 2);
    resolved.destroy()?;
    ensure!(poll_events(weak.as_fd(), Duration::ZERO)?.is_empty());
    object.destroy()?;
    ensure!(poll_events(weak.as_fd(), Duration::ZERO)?.contains(PollFlags::HUP));
    fails_with(client.resolve_weak(shape.what(), &weak), Status::NOT_FOUND)
}

fn watch(shape: Shape) -> TestResult {
    const COOKIE: u64 = 0x1234;
    let client = Client::new()?;
    let object = client.create(shape, How::Nt)?;
    let event = EventFd::new()?;
    let events = OPENDXG_WATCH_CHANGE | OPENDXG_WATCH_DESTROY;
    let watch = client.watch(object.target(), events, COOKIE, &event)?;
    let heard = |expected: u32| -> TestResult {
        ensure_eq!(event.take()?, 1);
        let state = client.watch_state(&watch)?;
        ensure_eq!((state.cookie, state.events), (COOKIE, expected));
        Ok(())
    };
    client.set(object.target(), KEY, 1, b"x")?;
    heard(OPENDXG_WATCH_CHANGE)?;
    object.destroy()?;
    heard(OPENDXG_WATCH_DESTROY)
}

/// An NT handle with all rights; a keyed mutex has one only together with a resource and a fence.
fn share(
    client: &Client,
    shape: Shape,
    object: &Local,
    attributes: Option<&mut Attributes>,
) -> TestResult<OwnedFd> {
    if shape != Shape::KeyedMutex {
        let access = shape.all_access();
        return Ok(client.share_with(&[object.handle()], attributes, access)?.0);
    }
    let resource = client.create(Shape::Resource, How::Nt)?;
    let fence = client.create(Shape::MonitoredFence, How::Nt)?;
    let set = [resource.handle(), object.handle(), fence.handle()];
    Ok(client.share_with(&set, attributes, access::ALL_RESOURCE)?.0)
}

fn nt(shape: Shape) -> TestResult {
    let client = Client::new()?;
    let object = client.create(shape, How::Nt)?;
    let id = client.id(object.target())?;
    client.set(object.target(), KEY, 1, b"before sharing")?;
    let shared = share(&client, shape, &object, None)?;
    let target = Target::Nt(shared.as_fd());
    let seen = client.query(target)?.object;
    if shape == Shape::KeyedMutex {
        ensure_eq!((seen.member_count, seen.type_), (3, OPENDXG_TYPE_RESOURCE));
        ensure_eq!(seen.member_kinds[1], OPENDXG_KIND_KEYED_MUTEX);
        ensure_eq!(client.references(object.target())?, 2);
        return Ok(());
    }
    ensure_eq!(
        (seen.object_id, seen.member_count, seen.member_kinds[0]),
        (id, 1, shape.kind())
    );
    ensure_eq!(seen.type_, shape.object_type());
    object.destroy()?;
    ensure_eq!(client.get(target, KEY, 1)?.bytes, b"before sharing");
    Ok(())
}

fn name(shape: Shape) -> TestResult {
    let client = Client::new()?;
    let object = client.create(shape, How::Nt)?;
    let name = format!(r"\BaseNamedObjects\every-kind-{shape:?}");
    let shared = share(&client, shape, &object, Some(&mut Attributes::named(&name)))?;
    let id = client.id(Target::Nt(shared.as_fd()))?;
    object.destroy()?;
    let what = match shape {
        Shape::KeyedMutex => What::Resource,
        _ => shape.what(),
    };
    let opened = client.open_name(what, &name, access::READ_CONTROL)?;
    let seen = client.query(Target::Nt(opened.as_fd()))?;
    ensure_eq!(seen.object.object_id, id);
    ensure!(!seen.name.is_empty());
    Ok(())
}

fn runtime_data() -> TestResult {
    const NIL: [u8; 16] = [0; 16];
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Nt)?;
        match client.get(object.target(), NIL, 1) {
            Ok(entry) => ensure_eq!(entry.bytes, b"", "{shape:?}"),
            Err(error) => ensure_eq!(error.status(), Status::NOT_FOUND, "{shape:?}"),
        }
    }
    let data = b"private data of a mutex";
    let mutex = client.create_keyed_mutex(How::Global, 0, data)?;
    ensure_eq!(client.get(mutex.target(), NIL, 1)?.bytes, data);
    Ok(())
}
