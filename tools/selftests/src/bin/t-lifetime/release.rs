// SPDX-License-Identifier: MIT OR Apache-2.0
//! Release and cleanup are two things (RES-81, RES-82).

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::leak::Watch;
use selftests::rounds::{rounds, together, Dice};
use selftests::sharing::{access, key, Client, How, Shape, Target, What};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-81 a part's release frees nothing while the container lives",
            part_release,
        )
        .test("RES-81 every order of release ends the same", orders)
        .test(
            "RES-81 two last releases at once clean up once",
            both_at_once,
        )
        .test(
            "RES-82 one allocation of an unshared resource is freed at once",
            storage,
        )
        .test(
            "RES-82 MEM-9 a resource without allocations has no priority",
            priority,
        )
        .test("RES-82 not while it is duplicated", duplicated)
        .test("RES-82 not while it is exported", exported)
        .test("RES-82 not when the resource is shared", shared)
        .test("RES-81 the device goes before the handles", device_first)
}

/// Bytes of storage that exist.
fn bytes(watch: &Watch) -> TestResult<u64> {
    let totals = watch.now()?.other_totals;
    let bytes = totals.iter().find(|(name, _)| name.ends_with("bytes"));
    Ok(*bytes.ok_or("the driver tells no bytes")?.1)
}

fn part_release() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    let before = bytes(&watch)?;
    let resource = client.create_resource(How::Private, 2, b"")?;
    client.poke(resource.allocations()[0], 5)?;
    for _ in 0..10 {
        let part = client.dup_local(What::Allocation, resource.allocations()[0])?;
        part.destroy()?;
        ensure_eq!(bytes(&watch)?, before + 8192);
    }
    ensure_eq!(client.peek(resource.allocations()[0])?, 5);
    resource.destroy()?;
    ensure_eq!(bytes(&watch)?, before);
    Ok(())
}

/// All orders of a few things.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for place in 0..count {
            let mut order = shorter.clone();
            order.insert(place, count - 1);
            all.push(order);
        }
    }
    all
}

fn orders() -> TestResult {
    let client = Client::new()?;
    let orders = permutations(5);
    ensure_eq!(orders.len(), 120);
    for order in orders {
        let resource = client.create_resource(How::Nt, 2, b"")?;
        let weak = client.open_weak(resource.target())?;
        let allocation = resource.allocations()[1];
        let fd = client.share(&resource, access::ALL_RESOURCE)?;
        let part = client.dup_local(What::Allocation, allocation)?;
        let container = client.container(allocation)?;
        let opened = client.open_resource(&fd)?.resource;
        let end = |result: opendxg::Result<()>| -> TestResult { Ok(result?) };
        let mut releases: Vec<Option<Box<dyn FnOnce() -> TestResult>>> = vec![
            Some(Box::new(move || end(resource.destroy()))),
            Some(Box::new(move || {
                drop(fd);
                Ok(())
            })),
            Some(Box::new(move || end(part.destroy()))),
            Some(Box::new(move || end(container.destroy()))),
            Some(Box::new(move || end(opened.destroy()))),
        ];
        for (number, which) in order.iter().enumerate() {
            let object = client.query(Target::Weak(weak.as_fd()))?.object;
            ensure_eq!(
                (object.alive, object.references),
                (1, 5 - number as u32),
                "{order:?}"
            );
            releases[*which].take().ok_or("released twice")?()?;
        }
        let object = client.query(Target::Weak(weak.as_fd()))?.object;
        ensure_eq!((object.alive, object.references), (0, 0), "{order:?}");
    }
    Ok(())
}

fn both_at_once() -> TestResult {
    let client = Client::new()?;
    for round in 0..rounds(150) {
        let resource = client.create_resource(How::Private, 3, b"")?;
        let part = client.dup_local(What::Allocation, resource.allocations()[1])?;
        let event = EventFd::new()?;
        let watch = client.watch(resource.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
        together(vec![
            Box::new(move || {
                Dice::new(round.into()).dawdle();
                Ok(resource.destroy()?)
            }),
            Box::new(move || {
                Dice::new((round + 3).into()).dawdle();
                Ok(part.destroy()?)
            }),
        ])?;
        ensure_eq!(
            event.wait(Some(selftests::time::soon()))?,
            Some(1),
            "round {round}"
        );
        drop(watch);
    }
    Ok(())
}

fn storage() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    let before = bytes(&watch)?;
    let resource = client.create_resource(How::Private, 3, b"")?;
    client.set(resource.target(), key(1), 0, b"stays")?;
    let list = resource.allocations().to_vec();
    for (gone, allocation) in list.iter().enumerate() {
        ensure_eq!(bytes(&watch)?, before + 4096 * (3 - gone as u64));
        client.destroy(What::Allocation, *allocation)?;
        fails_with(client.peek(*allocation), Status::INVALID_PARAMETER)?;
        let object = client.query(resource.target())?.object;
        ensure_eq!(
            (object.allocation_count, object.references),
            (2 - gone as u32, 1)
        );
    }
    ensure_eq!(bytes(&watch)?, before, "the storage is kept");
    ensure_eq!(client.get(resource.target(), key(1), 0)?.bytes, b"stays");
    Ok(resource.destroy()?)
}

fn priority() -> TestResult {
    const UNTOUCHED: u32 = 0x5555_5555;
    let client = Client::new()?;
    let resource = client.create_resource(How::Private, 2, b"")?;
    let read = || -> opendxg::Result<u32> {
        let mut priority = UNTOUCHED;
        let mut arg = D3DKMT_GETALLOCATIONPRIORITY::zeroed();
        (arg.hDevice, arg.hResource) = (client.device_handle(), resource.handle());
        arg.pPriorities = (&raw mut priority) as u64;
        client.call(&mut arg)?;
        Ok(priority)
    };
    let normal = read()?;
    ensure!(normal != UNTOUCHED);
    for (gone, allocation) in resource.allocations().iter().copied().enumerate() {
        ensure_eq!(read()?, normal, "{gone} of 2 are destroyed");
        client.destroy(What::Allocation, allocation)?;
    }
    fails_with(read(), Status::INVALID_PARAMETER)?;
    Ok(resource.destroy()?)
}

fn duplicated() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    let before = bytes(&watch)?;
    let resource = client.create_resource(How::Private, 2, b"")?;
    let allocation = resource.allocations()[0];
    client.poke(allocation, 21)?;
    let duplicate = client.dup_local(What::Allocation, allocation)?;
    client.destroy(What::Allocation, allocation)?;
    fails_with(client.peek(allocation), Status::INVALID_PARAMETER)?;
    ensure_eq!(client.peek(duplicate.handle())?, 21);
    ensure_eq!(bytes(&watch)?, before + 8192);
    duplicate.destroy()?;
    resource.destroy()?;
    ensure_eq!(bytes(&watch)?, before);
    Ok(())
}

fn exported() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    let before = bytes(&watch)?;
    let resource = client.create_resource(How::Private, 2, b"")?;
    let allocation = resource.allocations()[0];
    let mut arg = opendxg_export_dmabuf::zeroed();
    arg.allocation = allocation;
    client.call(&mut arg)?;
    // SAFETY: the call made the descriptor for us.
    let buffer = unsafe { OwnedFd::from_raw_fd(arg.fd) };
    client.destroy(What::Allocation, allocation)?;
    ensure_eq!(bytes(&watch)?, before + 8192);
    resource.destroy()?;
    ensure_eq!(
        bytes(&watch)?,
        before + 8192,
        "the dma-buf holds the container"
    );
    drop(buffer);
    let freed = || bytes(&watch).is_ok_and(|now| now == before);
    selftests::time::eventually("the storage goes with the dma-buf", freed)
}

fn shared() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    let before = bytes(&watch)?;
    for how in [How::Nt, How::Global] {
        let resource = client.create_resource(how, 2, b"")?;
        // Either refused or only the handle goes: the storage stays with the container.
        let _ = client.destroy(What::Allocation, resource.allocations()[0]);
        ensure_eq!(bytes(&watch)?, before + 8192, "{how:?}");
        ensure_eq!(client.query(resource.target())?.object.allocation_count, 2);
    }
    Ok(())
}

fn device_first() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    let event = EventFd::new()?;
    let (fd, _watches) = {
        let other = Client::new()?;
        let mut watches = Vec::new();
        let mut kept = None;
        for shape in [Shape::Resource, Shape::MonitoredFence] {
            let (object, fd) = other.shared(shape)?;
            watches.push(client.watch(object.target(), OPENDXG_WATCH_DESTROY, 0, &event)?);
            if shape == Shape::Resource {
                other.poke(object.allocations()[0], 17)?;
                kept = Some(fd);
            }
            other.dup_local(shape.what(), object.handle())?.into_raw();
            object.into_raw();
        }
        // The device ends here, and the handles that go with it.
        (kept.ok_or("nothing kept")?, watches)
    };
    ensure_eq!(
        event.wait(Some(selftests::time::soon()))?,
        Some(1),
        "the fence is gone"
    );
    let opened = client.open_resource(&fd)?.resource;
    ensure_eq!(client.peek(opened.allocations()[0])?, 17);
    drop(fd);
    opened.destroy()?;
    ensure_eq!(event.wait(Some(selftests::time::soon()))?, Some(1));
    ensure_eq!(watch.now()?.total_objects, watch.at_start().total_objects);
    Ok(())
}
