// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weak references (RES-71, RES-72).

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use rustix::event::PollFlags;
use rustix::io::{Errno, FdFlags};
use selftests::child::{in_child, Child, Gate};
use selftests::fds::{closed_number, memfd, poll_events, receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::sharing::{access, key, Client, How, Item, Local, Shape, Target, What};
use selftests::stress::Figure;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-72 resolves to the same object while it lives",
            resolves,
        )
        .test(
            "RES-71 RES-72 keeps nothing alive, and survives the object",
            survives,
        )
        .test("RES-72 poll: POLLHUP from death on", polls)
        .test(
            "RES-71 store, watches and weak references hold no object",
            holds_nothing,
        )
        .test("RES-72 from every kind of handle", handles)
        .test("RES-72 what is no weak reference", refused)
        .test(
            "RES-72 it is a file like others, without read and write",
            file,
        )
        .test("RES-72 in another process", other_process)
        .test(
            "FEN-12 RES-72 a private fence in another process is mapped as long as its owner has it",
            private_fence_elsewhere,
        )
        .test("RES-72 after the process that opened it", opener_gone)
        .test(
            "RES-72 RES-104 no more rights than the handle it was made from",
            rights,
        )
        .test("RES-72 a query through it", query)
        .stress(
            "RES-72 dead objects with weak references are small",
            Duration::from_secs(120),
            Figure::new(4000, 100_000),
            small,
        )
}

fn is_dead(client: &Client, what: What, weak: impl AsFd) -> TestResult {
    fails_with(client.resolve_weak(what, weak), Status::NOT_FOUND)
}

fn resolves() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let id = client.id(object.target())?;
        client.set(object.target(), key(1), 0, b"same")?;
        let weak = client.open_weak(object.target())?;
        let mut last = object.handle();
        for _ in 0..3 {
            let resolved = client.resolve_weak(shape.what(), &weak)?;
            ensure!(resolved.handle() > last, "not a new handle");
            last = resolved.handle();
            ensure_eq!(client.id(resolved.target())?, id, "{shape:?}");
            ensure_eq!(client.get(resolved.target(), key(1), 0)?.bytes, b"same");
            ensure_eq!(client.references(object.target())?, 2);
        }
        // What was resolved holds the object like any other handle.
        let resolved = client.resolve_weak(shape.what(), &weak)?;
        object.destroy()?;
        let again = client.resolve_weak(shape.what(), &weak)?;
        drop((resolved, again));
        is_dead(&client, shape.what(), &weak)?;
    }
    Ok(())
}

fn survives() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let watch = Watch::start()?;
        let objects = || -> TestResult<u64> { Ok(watch.now()?.total_objects) };
        let before = objects()?;
        let object = client.create(shape, How::Private)?;
        let weak = client.open_weak(object.target())?;
        ensure!(objects()? > before);
        object.destroy()?;
        ensure_eq!(objects()?, before, "{shape:?} is kept by a weak reference");
        for _ in 0..3 {
            is_dead(&client, shape.what(), &weak)?;
        }
    }
    Ok(())
}

fn polls() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let weak = client.open_weak(object.target())?;
        ensure_eq!(
            poll_events(weak.as_fd(), Duration::ZERO)?,
            PollFlags::empty()
        );
        // A poller that is asleep when it happens.
        let waiting = weak.try_clone()?;
        let thread = std::thread::spawn(move || {
            poll_events(waiting.as_fd(), selftests::time::soon()).map(|events| events.bits())
        });
        selftests::time::a_while();
        ensure!(!thread.is_finished(), "woken while the object lives");
        object.destroy()?;
        let events = thread.join().map_err(|_| "panic in a thread")??;
        ensure!(
            PollFlags::from_bits_retain(events).contains(PollFlags::HUP),
            "{shape:?}"
        );
        for _ in 0..2 {
            let events = poll_events(weak.as_fd(), Duration::ZERO)?;
            ensure!(events.contains(PollFlags::HUP), "{shape:?}: {events:?}");
        }
    }
    Ok(())
}

fn holds_nothing() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let before = Watch::start()?;
        let object = client.create(shape, How::Nt)?;
        let event = EventFd::new()?;
        let file = memfd()?;
        let item = Item::new(key(1), 0, &[1; 1000]).file(file.as_fd());
        client.set_info(object.target(), &[item])?;
        let references = client.references(object.target())?;
        let weak = client.open_weak(object.target())?;
        let watch = client.watch(
            object.target(),
            OPENDXG_WATCH_DESTROY | OPENDXG_WATCH_CHANGE,
            1,
            &event,
        )?;
        ensure_eq!(references, 1);
        ensure_eq!(client.references(object.target())?, 1, "{shape:?}");
        object.destroy()?;
        ensure_eq!(before.now()?.total_objects, before.at_start().total_objects);
        drop((weak, watch, event, file));
        before.ends_clean()?;
    }
    Ok(())
}

fn handles() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let id = client.id(object.target())?;
        for target in [
            Target::Nt(fd.as_fd()),
            Target::This(fd.as_fd()),
            object.target(),
        ] {
            let weak = client.open_weak(target)?;
            let resolved = client.resolve_weak(shape.what(), &weak)?;
            ensure_eq!(client.id(resolved.target())?, id, "{shape:?} {target:?}");
        }
    }
    // Of an allocation: of its container.
    let resource = client.create_resource(How::Private, 2, b"")?;
    let weak = client.open_weak(Target::Local(resource.allocations()[1]))?;
    ensure_eq!(
        client.id(Target::Weak(weak.as_fd()))?,
        client.id(resource.target())?
    );
    resource.destroy()?;
    ensure_eq!(client.query(Target::Weak(weak.as_fd()))?.object.alive, 0);
    Ok(())
}

fn refused() -> TestResult {
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Fence)?;
    let file = memfd()?;
    for target in [
        Target::Local(0),
        Target::Local(client.device_handle()),
        Target::Local(object.handle() + 0x4000),
        Target::Global(object.handle() | 2),
    ] {
        fails_with(client.open_weak(target), Status::INVALID_PARAMETER)?;
    }
    fails_with(
        client.open_weak(Target::Nt(file.as_fd())),
        Status::OBJECT_TYPE_MISMATCH,
    )?;
    for (number, status) in [
        (file.as_raw_fd(), Status::OBJECT_TYPE_MISMATCH),
        (fd.as_raw_fd(), Status::OBJECT_TYPE_MISMATCH),
        (closed_number()?, Status::INVALID_HANDLE),
        (-1, Status::INVALID_HANDLE),
    ] {
        let mut arg = opendxg_resolve_weak::zeroed();
        (arg.fd, arg.device) = (number, client.device_handle());
        selftests::call::refused(client.raw(), &mut arg, status)?;
    }
    let weak = client.open_weak(object.target())?;
    for (flags, device) in [(1, client.device_handle()), (0, object.handle()), (0, 4)] {
        let mut arg = opendxg_resolve_weak::zeroed();
        (arg.fd, arg.flags, arg.device) = (weak.as_raw_fd(), flags, device);
        selftests::call::refused(client.raw(), &mut arg, Status::INVALID_PARAMETER)?;
    }
    // Nor does it pass for a strong one.
    let mismatch = Status::OBJECT_TYPE_MISMATCH;
    fails_with(client.get(Target::Nt(weak.as_fd()), key(1), 0), mismatch)?;
    fails_with(client.open_sync(&weak), mismatch)
}

fn file() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let weak = client.open_weak(object.target())?;
    ensure!(rustix::io::fcntl_getfd(&weak)?.contains(FdFlags::CLOEXEC));
    ensure!(matches!(
        rustix::io::read(&weak, &mut [0u8; 8]),
        Err(Errno::INVAL | Errno::BADF)
    ));
    ensure!(rustix::io::write(&weak, &[0u8; 8]).is_err());
    // Copies are one reference.
    let copy = weak.try_clone()?;
    drop(weak);
    client.resolve_weak(What::Sync, &copy)?;
    Ok(())
}

fn other_process() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (left, right) = socket_pair()?;
        let object = client.create(shape, How::Private)?;
        let id = client.id(object.target())?;
        send(&left, client.open_weak(object.target())?)?;
        let (resolved, destroyed, done) = (Gate::new()?, Gate::new()?, Gate::new()?);
        let other = Child::spawn(|| {
            let weak = receive(&right)?;
            let client = Client::new()?;
            let own = client.resolve_weak(shape.what(), &weak)?;
            ensure_eq!(client.id(own.target())?, id);
            resolved.open()?;
            destroyed.wait()?;
            // The creator has let go; here it lives on.
            client.resolve_weak(shape.what(), &weak)?;
            own.destroy()?;
            is_dead(&client, shape.what(), &weak)?;
            done.open()
        })?;
        resolved.wait()?;
        object.destroy()?;
        destroyed.open()?;
        done.wait()?;
        other.join()?;
    }
    Ok(())
}

/// How many mappings of fence values this process has.
fn mapped_values() -> TestResult<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    Ok(maps
        .lines()
        .filter(|line| line.contains("[DxgkFenceValues]"))
        .count())
}

fn private_fence_elsewhere() -> TestResult {
    let client = Client::new()?;
    let (left, right) = socket_pair()?;
    let (opened, destroyed) = (Gate::new()?, Gate::new()?);
    // One page stays mapped when there is no fence.
    client.device().create_fence(0)?.destroy()?;
    let before = mapped_values()?;
    // More than one page of values, which the other process keeps.
    let fences: Vec<_> = (0..100)
        .map(|number| client.device().create_fence(number))
        .collect::<Result<_, _>>()?;
    ensure!(mapped_values()? > before);
    let target = |fence: &opendxg::MonitoredFence| Target::Local(fence.handle().0);
    for fence in &fences {
        send(&left, client.open_weak(target(fence))?)?;
    }
    let other = Child::spawn(|| {
        let client = Client::new()?;
        let mut own = Vec::new();
        for _ in 0..100 {
            own.push(client.resolve_weak(What::Sync, receive(&right)?)?);
        }
        opened.open()?;
        destroyed.wait()?;
        // They work, and the last references go here.
        let handles: Vec<u32> = own.iter().map(|fence| fence.handle()).collect();
        let values = vec![1000u64; handles.len()];
        let mut arg = D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU::zeroed();
        arg.hDevice = client.device_handle();
        arg.ObjectCount = handles.len() as u32;
        arg.ObjectHandleArray = handles.as_ptr() as u64;
        arg.FenceValueArray = values.as_ptr() as u64;
        selftests::call::succeeds(client.raw(), &mut arg)?;
        Ok(())
    })?;
    opened.wait()?;
    for fence in fences {
        fence.destroy()?;
    }
    ensure_eq!(mapped_values()?, before);
    // The place of a new one is not one that is still in use.
    let fence = client.device().create_fence(5)?;
    destroyed.open()?;
    other.join()?;
    ensure_eq!(fence.value(), 5);
    fence.destroy()?;
    ensure_eq!(mapped_values()?, before);
    Ok(())
}

fn opener_gone() -> TestResult {
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Resource)?;
    let (left, right) = socket_pair()?;
    in_child(|| send(&left, client.open_weak(Target::This(fd.as_fd()))?))?;
    let weak = receive(&right)?;
    client.resolve_weak(What::Resource, &weak)?;
    drop(fd);
    object.destroy()?;
    is_dead(&client, What::Resource, &weak)
}

fn rights() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share(&object, access::READ_CONTROL)?;
        let opened = client.open(shape, &fd)?;
        for target in [
            Target::Nt(fd.as_fd()),
            Target::This(fd.as_fd()),
            opened.target(),
        ] {
            let weak = client.open_weak(target)?;
            let resolved = client.resolve_weak(shape.what(), &weak)?;
            let refused = client.set(resolved.target(), key(1), 0, b"x");
            fails_with(refused, Status::ACCESS_DENIED)
                .map_err(|error| format!("{shape:?} {target:?}: {error}"))?;
        }
    }
    Ok(())
}

fn query() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        query_of(&client, client.create(shape, How::Private)?)
            .map_err(|error| format!("{shape:?}: {error}"))?;
    }
    query_of(&client, client.create_allocation(4096)?)
}

/// What a weak reference says of an object before and after its end.
fn query_of(client: &Client, object: Local) -> TestResult {
    let direct = client.query(object.target())?.object;
    let weak = client.open_weak(object.target())?;
    let through = client.query(Target::Weak(weak.as_fd()))?.object;
    ensure_eq!(through.object_id, direct.object_id);
    ensure_eq!((through.alive, through.kind), (1, direct.kind));
    ensure_eq!(through.type_, direct.type_);
    ensure_eq!(through.references, 1);
    object.destroy()?;
    let after = client.query(Target::Weak(weak.as_fd()))?.object;
    ensure_eq!((after.alive, after.object_id), (0, direct.object_id));
    ensure_eq!((after.type_, after.kind), (direct.type_, direct.kind));
    ensure_eq!(after.references, 0);
    Ok(())
}

/// Bytes of kernel memory in slabs.
fn slabs() -> TestResult<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Slab:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.map(|kib| kib * 1024).ok_or_else(|| "no Slab".into())
}

fn small(figure: Figure) -> TestResult {
    // Each descriptor costs the kernel a file, whatever it is: compare with as many of another
    // kind.
    let many = figure.rounds();
    if selftests::time::is_slow_kernel() {
        selftests::skip!("KASAN keeps freed memory, so that it cannot be measured");
    }
    in_child(|| {
        let limit = libc::rlimit {
            rlim_cur: 300_000,
            rlim_max: 300_000,
        };
        // SAFETY: a live struct.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            selftests::skip!("no more descriptors");
        }
        let client = Client::new()?;
        let mut kept = Vec::new();
        let start = slabs()?;
        for _ in 0..many {
            kept.push(EventFd::new()?);
        }
        let events = slabs()?.saturating_sub(start);
        let start = slabs()?;
        let mut weak = Vec::new();
        for _ in 0..many {
            let object = client.create(Shape::Semaphore, How::Private)?;
            client.set(object.target(), key(1), 0, &[1; 2000])?;
            weak.push(client.open_weak(object.target())?);
        }
        let dead = slabs()?.saturating_sub(start);
        let each = dead.saturating_sub(events) / u64::from(many);
        println!("# {each} bytes beyond a descriptor for each dead object");
        ensure!(each < 256, "{each} bytes");
        is_dead(&client, What::Sync, &weak[0])
    })
}
