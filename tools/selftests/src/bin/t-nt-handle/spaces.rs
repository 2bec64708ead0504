// SPDX-License-Identifier: MIT OR Apache-2.0
//! Local, global and NT handles: forms, and that none passes for another (RES-6 to RES-12).

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Errno, Status};
use selftests::call::refused;
use selftests::child::{in_child, Child, Gate};
use selftests::poison::{bytes, poisoned};
use selftests::sharing::{key, Client, How, Local, Shape, Target, What};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-6 one table of numbers for all kinds", one_table)
        .test(
            "RES-6 a resource first, then its allocations in order",
            resource_order,
        )
        .test("RES-6 freed numbers are not used again", not_reused)
        .test(
            "RES-7 a handle of a wrong kind is a bad handle",
            wrong_kinds,
        )
        .test(
            "RES-7 local numbers mean nothing in another process",
            other_process,
        )
        .test("RES-7 two nodes of a process share the table", two_nodes)
        .test(
            "RES-8 a forked child is foreign, for every kind of object",
            forked,
        )
        .test(
            "RES-8 the last close of the node closes what is open",
            last_close,
        )
        .test("RES-9 who gets a global handle, and its form", global_form)
        .test(
            "RES-10 a global handle holds nothing, for every kind",
            global_dies,
        )
        .test("RES-10 an opener that exits without closing", opener_exits)
        .test("RES-10 it lives on in another process", survives)
        .test(
            "RES-9 RES-52 each opening has its own handle, reserved words are ignored",
            opening,
        )
        .test("RES-11 RES-52 what is no live global handle", no_global)
        .test("RES-11 global handles and NT handles do not mix", no_mixing)
        .test(
            "RES-12 global numbers are spread and do not come back",
            random_numbers,
        )
}

fn one_table() -> TestResult {
    let client = Client::new()?;
    let mut next = fixture::next_handle()?;
    for how in [How::Private, How::Global, How::Nt] {
        for shape in Shape::ALL {
            if how == How::Global && shape == Shape::MonitoredFence {
                continue;
            }
            let object = client.create(shape, how)?;
            ensure_eq!(object.handle(), next, "{shape:?}");
            next += 0x40 * (1 + object.allocations().len() as u32);
            if how == How::Global {
                let opened = client.open_global(shape, object.global())?;
                if shape.what() == What::Resource {
                    ensure_eq!(opened.handle(), next);
                    next += 0x80;
                } else {
                    // Opening a node for the call took no number.
                    ensure_eq!(opened.handle(), next, "{shape:?}");
                    next += 0x40;
                }
            }
            let duplicate = client.dup_local(shape.what(), object.handle())?;
            ensure_eq!(duplicate.handle(), next);
            next += 0x40;
        }
    }
    Ok(())
}

fn resource_order() -> TestResult {
    let client = Client::new()?;
    for count in [0, 1, 5, 40] {
        let next = fixture::next_handle()?;
        let resource = client.create_resource(How::Nt, count, b"")?;
        let expected: Vec<u32> = (1..=count as u32).map(|at| next + 0x40 * at).collect();
        ensure_eq!(
            (resource.handle(), resource.allocations()),
            (next, &expected[..])
        );
        if count > 0 {
            let fd = client.share(&resource, 1)?;
            let next = next + 0x40 * (count as u32 + 1);
            let opened = client.open_resource(&fd)?.resource;
            let expected: Vec<u32> = (1..=count as u32).map(|at| next + 0x40 * at).collect();
            ensure_eq!(
                (opened.handle(), opened.allocations()),
                (next, &expected[..])
            );
        }
    }
    Ok(())
}

fn not_reused() -> TestResult {
    let client = Client::new()?;
    let mut last = 0;
    for round in 0..200 {
        let object = client.create(Shape::ALL[round % 6], How::Private)?;
        ensure!(
            object.handle() > last,
            "{:#x} after {last:#x}",
            object.handle()
        );
        last = object.handle();
    }
    Ok(())
}

/// Every handle of this process that is not an object of this kind.
fn strangers(objects: &[Local], client: &Client, what: What) -> Vec<u32> {
    let others = objects.iter().filter(|object| object.what() != what);
    let mut handles: Vec<u32> = others.map(Local::handle).collect();
    if what != What::Allocation {
        handles.extend(objects.iter().flat_map(Local::allocations));
    }
    handles.extend([client.device_handle(), client.device().adapter().handle().0]);
    handles
}

fn wrong_kinds() -> TestResult {
    let client = Client::new()?;
    let objects: Vec<Local> = Shape::ALL
        .iter()
        .map(|shape| client.create(*shape, How::Private))
        .collect::<Result<_, _>>()?;
    let context = client.device().create_context(0)?;
    let mut tried = 0;
    for what in [
        What::Sync,
        What::Resource,
        What::Allocation,
        What::KeyedMutex,
    ] {
        let mut handles = strangers(&objects, &client, what);
        handles.push(context.handle().0);
        for handle in handles {
            fails_with(client.destroy(what, handle), REFUSE)
                .map_err(|error| format!("{what:?} {handle:#x}: {error}"))?;
            tried += 1;
        }
    }
    for handle in strangers(&objects, &client, What::KeyedMutex) {
        fails_with(client.try_acquire(handle, 0), REFUSE)?;
        fails_with(client.release(handle, 0, 0), REFUSE)?;
    }
    for handle in strangers(&objects, &client, What::Allocation) {
        fails_with(client.container(handle), REFUSE)?;
        fails_with(client.peek(handle), REFUSE)?;
    }
    // What is no shareable object has neither store nor weak references.
    for handle in [context.handle().0, client.device_handle()] {
        let target = Target::Local(handle);
        fails_with(client.set(target, key(1), 0, b""), REFUSE)?;
        fails_with(client.open_weak(target), REFUSE)?;
        fails_with(client.query(target).map(|_| ()), REFUSE)?;
        fails_with(client.dup_local(What::Sync, handle), REFUSE)?;
    }
    ensure!(tried > 20);
    // All are as good as before.
    objects
        .into_iter()
        .try_for_each(|object| Ok(object.destroy()?))
}

fn other_process() -> TestResult {
    let client = Client::new()?;
    let mut far = Vec::new();
    for _ in 0..20 {
        far.push(client.create(Shape::Fence, How::Private)?);
    }
    let handle = far[19].handle();
    in_child(|| {
        let client = Client::new()?;
        fails_with(client.query(Target::Local(handle)).map(|_| ()), REFUSE)?;
        for what in [
            What::Sync,
            What::Resource,
            What::Allocation,
            What::KeyedMutex,
        ] {
            fails_with(client.destroy(what, handle), REFUSE)?;
        }
        Ok(())
    })?;
    client.query(far[19].target())?;
    Ok(())
}

fn two_nodes() -> TestResult {
    let (first, second) = (Client::new()?, Client::new()?);
    for shape in Shape::ALL {
        let object = first.create(shape, How::Private)?;
        let id = first.id(object.target())?;
        ensure_eq!(second.id(object.target())?, id);
        // Destroyed through the other node.
        let handle = object.into_raw();
        match shape {
            // A resource is destroyed with its device, and the other client has another device.
            Shape::Resource => first.destroy(shape.what(), handle)?,
            _ => second.destroy(shape.what(), handle)?,
        }
        fails_with(first.query(Target::Local(handle)).map(|_| ()), REFUSE)?;
    }
    Ok(())
}

fn forked() -> TestResult {
    let client = Client::new()?;
    let objects: Vec<Local> = Shape::ALL
        .iter()
        .map(|shape| client.create(*shape, How::Private))
        .collect::<Result<_, _>>()?;
    in_child(|| {
        for object in &objects {
            let foreign = Err(opendxg::Error::Os(Errno::NOTTY));
            ensure_eq!(client.query(object.target()).map(|_| ()), foreign);
            ensure_eq!(client.destroy(object.what(), object.handle()), foreign);
            ensure_eq!(
                client.set(object.target(), key(1), 0, b"").map(|_| ()),
                foreign
            );
        }
        ensure_eq!(
            client.create(Shape::Fence, How::Private).map(|_| ()),
            Err(opendxg::Error::Os(Errno::NOTTY))
        );
        Ok(())
    })?;
    for object in &objects {
        ensure_eq!(client.references(object.target())?, 1);
    }
    Ok(())
}

fn last_close() -> TestResult {
    let watch = selftests::leak::Watch::start()?;
    let (ready, go) = (Gate::new()?, Gate::new()?);
    let before = watch.now()?.total_objects;
    let child = Child::spawn(|| {
        {
            let client = Client::new()?;
            for shape in Shape::ALL {
                client.create(shape, How::Nt)?.into_raw();
            }
            ready.open()?;
            go.wait()?;
        }
        // All nodes are closed, the process lives on.
        ready.open()?;
        go.wait()
    })?;
    ready.wait()?;
    ensure!(watch.now()?.total_objects >= before + 6);
    go.open()?;
    ready.wait()?;
    let closed = || watch.now().is_ok_and(|now| now.total_objects == before);
    selftests::time::eventually("everything is closed with the node", closed)?;
    go.open()?;
    child.join()
}

fn is_global(value: u32) -> bool {
    value & 0xc000_0000 != 0 && value & 0x3f == 2
}

fn global_form() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        for _ in 0..20 {
            let object = client.create(shape, How::Global)?;
            ensure!(
                is_global(object.global()),
                "{shape:?}: {:#x}",
                object.global()
            );
        }
        ensure_eq!(client.create(shape, How::Nt)?.global(), 0, "{shape:?}");
        if shape != Shape::KeyedMutex {
            ensure_eq!(client.create(shape, How::Private)?.global(), 0, "{shape:?}");
        }
        for value in [0, 2, 0x4000_0000, 0x3fff_ffc2, 0x4000_0042 | 1, u32::MAX] {
            fails_with(client.open_global(shape, value), REFUSE)?;
        }
    }
    fails_with(client.create(Shape::MonitoredFence, How::Global), REFUSE)
}

fn global_dies() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let global = object.global();
        ensure_eq!(client.references(object.target())?, 1);
        let opened = client.open_global(shape, global)?;
        ensure_eq!(client.id(opened.target())?, client.id(object.target())?);
        object.destroy()?;
        client.open_global(shape, global)?.destroy()?;
        opened.destroy()?;
        fails_with(client.open_global(shape, global), REFUSE)?;
    }
    Ok(())
}

fn opener_exits() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let global = object.global();
        in_child(|| {
            Client::new()?.open_global(shape, global)?.into_raw();
            Ok(())
        })?;
        object.destroy()?;
        fails_with(client.open_global(shape, global), REFUSE)?;
    }
    Ok(())
}

fn survives() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let global = object.global();
        let (opened, done) = (Gate::new()?, Gate::new()?);
        let other = Child::spawn(|| {
            let kept = Client::new()?.open_global(shape, global)?;
            opened.open()?;
            done.wait()?;
            Ok(kept.destroy()?)
        })?;
        opened.wait()?;
        object.destroy()?;
        client.open_global(shape, global)?.destroy()?;
        done.open()?;
        other.join()?;
        fails_with(client.open_global(shape, global), REFUSE)?;
    }
    Ok(())
}

/// A call with poison in the outputs and the reserved words.
fn opening_of(handle: u32) -> D3DKMT_OPENSYNCHRONIZATIONOBJECT {
    let mut arg: D3DKMT_OPENSYNCHRONIZATIONOBJECT = poisoned();
    arg.hSharedHandle = handle;
    arg
}

fn opening() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Semaphore, How::Global)?;
    for step in 1..=3 {
        let mut arg = opening_of(object.global());
        let before = bytes(&arg).to_vec();
        client.call(&mut arg)?;
        ensure_eq!(arg.hSyncObject, object.handle() + step * 0x40);
        ensure_eq!(bytes(&arg)[8..], before[8..], "reserved words");
        client.destroy(What::Sync, arg.hSyncObject)?;
    }
    Ok(())
}

fn no_global() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Semaphore, How::Global)?;
    let (fence, nt) = client.shared(Shape::MonitoredFence)?;
    let good = object.global();
    for bad in [
        0,
        2,
        u32::MAX,
        object.handle(),
        object.handle() | 2,
        fence.handle() | 2,
        nt.as_raw_fd() as u32,
        good & 0x3fff_ffff,
        good ^ 2,
        good | 1,
        good | 4,
        good ^ 0x40,
        good ^ 0xc000_0000,
    ] {
        refused(client.raw(), &mut opening_of(bad), REFUSE)?;
    }
    let mut point = opendxg_fence_point::zeroed();
    point.sync_object = good;
    refused(client.raw(), &mut point, REFUSE)
}

fn no_mixing() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let global = object.global();
        // SAFETY: no descriptor has such a number; it is only passed on.
        let as_fd = unsafe { BorrowedFd::borrow_raw(global as i32) };
        // SAFETY: as above.
        ensure_eq!(unsafe { libc::close(global as i32) }, -1);
        let bad = Status::INVALID_HANDLE;
        fails_with(client.open_sync(as_fd), bad)?;
        fails_with(client.open_resource(as_fd).map(|_| ()), bad)?;
        fails_with(client.query(Target::Nt(as_fd)).map(|_| ()), bad)?;
        for what in [
            What::Sync,
            What::Resource,
            What::Allocation,
            What::KeyedMutex,
        ] {
            fails_with(client.destroy(what, global), REFUSE)?;
        }
        fails_with(client.query(Target::Local(global)).map(|_| ()), REFUSE)?;
    }
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let number = fd.as_fd().as_raw_fd() as u32;
        for other in Shape::GLOBAL {
            for value in [number, object.handle(), object.handle() | 2] {
                fails_with(client.open_global(other, value), REFUSE)?;
            }
        }
        fails_with(client.query(Target::Global(number)).map(|_| ()), REFUSE)?;
        fails_with(client.query(Target::Local(number)).map(|_| ()), REFUSE)?;
    }
    Ok(())
}

fn random_numbers() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let object = client.create(shape, How::Global)?;
            let number = object.global();
            object.destroy()?;
            // Dead at once, and still when others came after it.
            for dead in seen.last().into_iter().chain([&number]) {
                fails_with(client.open_global(shape, *dead), REFUSE)?;
            }
            seen.insert(number);
        }
        ensure!(
            seen.len() > 97,
            "{shape:?}: {} of 100 numbers differ",
            seen.len()
        );
        let mut numbers: Vec<u32> = seen.into_iter().collect();
        numbers.dedup_by_key(|number| *number >> 6);
        let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
        // 2^24 values: a hundred of them do not lie in a corner.
        ensure!(
            (high - low) >> 6 > 1 << 20,
            "{shape:?}: {low:#x} to {high:#x}"
        );
    }
    Ok(())
}
