// SPDX-License-Identifier: MIT OR Apache-2.0
//! What counts as a reference, what does not, and that there is one count (RES-77 to RES-80).

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::leak::Watch;
use selftests::sharing::{access, key, Client, How, Local, Shape, Target, What};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-77 container and parts tell one number at every moment",
            one_count,
        )
        .test("RES-78 what is one reference each", references)
        .test("RES-78 what is no reference", no_references)
        .test("RES-78 duplicates of every kind", duplicates)
        .test(
            "RES-79 a stand-alone allocation is its own container",
            stand_alone,
        )
        .test(
            "RES-79 a dma-buf and its mapping keep the container",
            dma_bufs,
        )
        .test(
            "RES-79 a mapping of Lock2 does not keep the allocation",
            locked,
        )
        .test(
            "RES-80 a part leads to its container for as long as it lives",
            upwards,
        )
        .test("RES-83 a chain of duplicates ends without depth", deep)
}

/// Exports an allocation as a dma-buf.
fn export(client: &Client, allocation: u32) -> TestResult<OwnedFd> {
    let mut arg = opendxg_export_dmabuf::zeroed();
    arg.allocation = allocation;
    client.call(&mut arg)?;
    // SAFETY: the call made the descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) })
}

fn one_count() -> TestResult {
    let client = Client::new()?;
    let resource = client.create_resource(How::Nt, 4, b"")?;
    let check = |expected: u32| -> TestResult {
        for handle in resource
            .allocations()
            .iter()
            .copied()
            .chain([resource.handle()])
        {
            ensure_eq!(
                client.references(Target::Local(handle))?,
                expected,
                "{handle:#x}"
            );
        }
        Ok(())
    };
    let mut extra = Vec::new();
    for number in 0..12u32 {
        let from = match number % 3 {
            0 => resource.handle(),
            _ => resource.allocations()[number as usize % 4],
        };
        let what = if number % 3 == 0 {
            What::Resource
        } else {
            What::Allocation
        };
        extra.push(client.dup_local(what, from)?);
        check(number + 2)?;
    }
    while let Some(last) = extra.pop() {
        last.destroy()?;
        check(extra.len() as u32 + 1)?;
    }
    // Two threads that take and drop references: never two numbers for one moment is beyond a
    // reader; that both ends are exact is not.
    selftests::rounds::crowd(4, |index| {
        for _ in 0..100 {
            drop(client.dup_local(What::Allocation, resource.allocations()[index])?);
        }
        Ok(())
    })?;
    check(1)
}

fn references() -> TestResult {
    let client = Client::new()?;
    let resource = client.create_resource(How::Nt, 2, b"")?;
    let allocation = resource.allocations()[0];
    let count = || client.references(resource.target());
    ensure_eq!(count()?, 1, "an open resource");
    let whole = client.dup_local(What::Resource, resource.handle())?;
    ensure_eq!(count()?, 2, "DUP_LOCAL of the resource");
    let part = client.dup_local(What::Allocation, allocation)?;
    ensure_eq!(count()?, 3, "DUP_LOCAL of an allocation");
    let container = client.container(allocation)?;
    ensure_eq!(count()?, 4, "GET_CONTAINER");
    let fd = client.share(&resource, access::ALL_RESOURCE)?;
    ensure_eq!(count()?, 5, "a share");
    let copy = fd.try_clone()?;
    ensure_eq!(count()?, 5, "a copy of its descriptor is the same share");
    let opened = client.open_resource(&fd)?.resource;
    ensure_eq!(count()?, 6, "another open resource");
    let buffer = export(&client, allocation)?;
    ensure_eq!(count()?, 7, "a dma-buf");
    drop(buffer);
    let exported = || count() == Ok(6);
    selftests::time::eventually("the dma-buf lets go", exported)?;
    opened.destroy()?;
    drop(fd);
    ensure_eq!(count()?, 5, "a copy is open");
    drop(copy);
    for (left, handle) in [(3, container), (2, part), (1, whole)] {
        handle.destroy()?;
        ensure_eq!(count()?, left);
    }
    Ok(())
}

fn no_references() -> TestResult {
    let client = Client::new()?;
    let resource = client.create_resource(How::Global, 1, b"blob")?;
    let allocation = resource.allocations()[0];
    let count = || client.references(resource.target());
    ensure!(resource.global() != 0);
    ensure_eq!(count()?, 1, "a global handle");
    client.set(resource.target(), key(1), 0, b"entry")?;
    ensure_eq!(count()?, 1, "an entry");
    let event = EventFd::new()?;
    let _watch = client.watch(resource.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
    let _weak = client.open_weak(resource.target())?;
    ensure_eq!(count()?, 1, "a watch and a weak reference");
    client.locked(allocation, 1, |_| ensure_count(&count, 1))??;
    resource.destroy()?;
    ensure_eq!(event.wait(Some(selftests::time::soon()))?, Some(1));
    // Names: the share counts, its name does not.
    let named = client.create_resource(How::Nt, 1, b"")?;
    let _fd = client.share_named(&named, r"\BaseNamedObjects\counted")?;
    ensure_eq!(client.references(named.target())?, 2);
    Ok(())
}

fn ensure_count(count: &dyn Fn() -> opendxg::Result<u32>, expected: u32) -> TestResult {
    ensure_eq!(count()?, expected, "a lock");
    Ok(())
}

fn duplicates() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let id = client.id(object.target())?;
        let duplicate = client.dup_local(shape.what(), object.handle())?;
        ensure!(duplicate.handle() > object.handle());
        ensure_eq!(client.references(duplicate.target())?, 2, "{shape:?}");
        object.destroy()?;
        ensure_eq!(client.id(duplicate.target())?, id);
        let next = client.dup_local(shape.what(), duplicate.handle())?;
        duplicate.destroy()?;
        ensure_eq!(client.references(next.target())?, 1, "{shape:?}");
    }
    for handle in [0, client.device_handle(), u32::MAX] {
        let refused = client.dup_local(What::Sync, handle);
        fails_with(refused, Status::INVALID_PARAMETER)?;
    }
    let resource = client.create_resource(How::Private, 2, b"")?;
    for index in [2, 3, 1 << 31, OPENDXG_WHOLE - 1] {
        let refused = client.dup_part(What::Allocation, resource.handle(), index);
        fails_with(refused, Status::INVALID_PARAMETER)?;
    }
    let refused = client.dup_part(What::Allocation, resource.allocations()[0], 0);
    fails_with(refused, Status::INVALID_PARAMETER)?;
    let fence = client.create(Shape::Fence, How::Private)?;
    for handle in [0, resource.handle(), fence.handle()] {
        fails_with(client.container(handle), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn stand_alone() -> TestResult {
    let client = Client::new()?;
    let allocation = client.create_allocation(8192)?;
    let id = client.id(allocation.target())?;
    client.poke(allocation.handle(), 7)?;
    ensure_eq!(client.references(allocation.target())?, 1);
    let mut arg = opendxg_get_container::zeroed();
    arg.allocation = allocation.handle();
    client.call(&mut arg)?;
    let container = Local::new(&client, What::Allocation, arg.container);
    ensure_eq!(client.id(container.target())?, id);
    let duplicate = client.dup_local(What::Allocation, allocation.handle())?;
    ensure_eq!(client.references(duplicate.target())?, 3);
    allocation.destroy()?;
    container.destroy()?;
    ensure_eq!(client.peek(duplicate.handle())?, 7);
    Ok(())
}

fn dma_bufs() -> TestResult {
    let client = Client::new()?;
    let event = EventFd::new()?;
    let (buffer, _watch) = {
        let resource = client.create_resource(How::Private, 2, b"")?;
        let watch = client.watch(resource.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
        client.poke(resource.allocations()[1], 99)?;
        (export(&client, resource.allocations()[1])?, watch)
    };
    ensure_eq!(event.take()?, 0, "a dma-buf keeps the container");
    ensure_eq!(first_byte(&buffer)?, 99);
    drop(buffer);
    ensure_eq!(event.wait(Some(selftests::time::soon()))?, Some(1));
    // A mapping of the file keeps it as well.
    let resource = client.create_resource(How::Private, 1, b"")?;
    let _second = client.watch(resource.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
    client.poke(resource.allocations()[0], 98)?;
    let buffer = export(&client, resource.allocations()[0])?;
    let mapped = map(&buffer)?;
    drop(buffer);
    resource.destroy()?;
    selftests::time::a_while();
    ensure_eq!(event.take()?, 0, "a file mapping keeps the container");
    // SAFETY: mapped above.
    ensure_eq!(unsafe { mapped.read_volatile() }, 98);
    // SAFETY: our own mapping, not used any more.
    unsafe { rustix::mm::munmap(mapped.cast_mut().cast(), 4096) }?;
    ensure_eq!(event.wait(Some(selftests::time::soon()))?, Some(1));
    Ok(())
}

fn map(fd: &OwnedFd) -> TestResult<*const u8> {
    use rustix::mm::{mmap, MapFlags, ProtFlags};
    // SAFETY: a new mapping, anywhere.
    let start = unsafe {
        mmap(
            core::ptr::null_mut(),
            4096,
            ProtFlags::READ,
            MapFlags::SHARED,
            fd.as_fd(),
            0,
        )
    }?;
    Ok(start.cast_const().cast())
}

fn first_byte(fd: &OwnedFd) -> TestResult<u8> {
    let start = map(fd)?;
    // SAFETY: just mapped.
    let byte = unsafe { start.read_volatile() };
    // SAFETY: our own mapping, not used any more.
    unsafe { rustix::mm::munmap(start.cast_mut().cast(), 4096) }?;
    Ok(byte)
}

fn locked() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    let resource = client.create_resource(How::Private, 1, b"")?;
    let mut arg = D3DKMT_LOCK2::zeroed();
    (arg.hDevice, arg.hAllocation) = (client.device_handle(), resource.allocations()[0]);
    client.call(&mut arg)?;
    // Locked, and destroyed all the same.
    resource.destroy()?;
    ensure_eq!(watch.now()?.total_objects, watch.at_start().total_objects);
    Ok(())
}

fn upwards() -> TestResult {
    let client = Client::new()?;
    let (part, id) = {
        let resource = client.create_resource(How::Private, 3, b"up")?;
        let id = client.id(resource.target())?;
        (
            client.dup_local(What::Allocation, resource.allocations()[2])?,
            id,
        )
    };
    for _ in 0..50 {
        let container = client.container(part.handle())?;
        ensure_eq!(client.id(container.target())?, id);
        let part = client.dup_part(What::Allocation, container.handle(), 0)?;
        ensure_eq!(client.id(client.container(part.handle())?.target())?, id);
    }
    ensure_eq!(client.references(part.target())?, 1);
    Ok(())
}

fn deep() -> TestResult {
    let client = Client::new()?;
    let resource = client.create_resource(How::Private, 2, b"")?;
    let mut handles = Vec::new();
    let mut last = client.dup_local(What::Allocation, resource.allocations()[0])?;
    for number in 0..2000 {
        let next = match number % 2 {
            0 => client.container(last.handle())?,
            _ => client.dup_part(What::Allocation, last.handle(), number % 4 / 2)?,
        };
        handles.push(core::mem::replace(&mut last, next));
    }
    resource.destroy()?;
    ensure_eq!(client.references(last.target())?, 2001);
    drop(handles);
    ensure_eq!(client.references(last.target())?, 1);
    Ok(())
}
