// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may be shared together (RES-32, RES-33, RES-34, RES-37).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Access, Status, SyncFlags};
use selftests::call::refused;
use selftests::leak::{open_descriptors, Watch};
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::poison::bytes;
use selftests::sharing::share_call;
use selftests::sharing::{access, Acquired, Client, How, Shape, What};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const REFUSE: Status = Status::INVALID_PARAMETER;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-32 a resource, a synchronisation object, and the set of three",
            legal,
        )
        .test("RES-32 any synchronisation object may be the third", thirds)
        .test("RES-33 one object that was not made for it", single)
        .test("RES-33 every other set of two, three and four", sets)
        .test("RES-33 members of a set that were not made for it", members)
        .test(
            "RES-33 counts, pointers, numbers that are no handle",
            numbers,
        )
        .test(
            "RES-33 objects that were opened by global handle",
            by_global,
        )
        .test(
            "RES-5 memory that cannot be read or written makes no handle",
            memory,
        )
        .test("ABI-2.2 only the slot of the handle is written", only_slot)
        .test("RES-34 opened members may be shared again", again)
        .test("RES-34 ShareObjectWithHost", host)
        .test("RES-37 the handle alone keeps one, and all three", alone)
}

/// ShareObjects must refuse this set, make nothing and leave the output alone.
fn is_refused(client: &Client, handles: &[u32]) -> TestResult {
    for access in [access::ALL_SYNC, access::ALL_RESOURCE, 1] {
        let result = client.share_with(handles, None, access).map(|_| ());
        fails_with(result, REFUSE).map_err(|error| format!("{handles:x?}: {error}"))?;
    }
    Ok(())
}

fn legal() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (_object, fd) = client.shared(shape)?;
        client.open(shape, &fd)?;
    }
    let [resource, mutex, sync] = client.triple()?;
    let handles = [resource.handle(), mutex.handle(), sync.handle()];
    let (fd, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
    let opened = client.open_resource(&fd)?;
    let opened_mutex = opened.mutex.ok_or("no mutex")?;
    let opened_sync = opened.sync.ok_or("no sync object")?;
    for (first, second) in [
        (&resource, &opened.resource),
        (&mutex, &opened_mutex),
        (&sync, &opened_sync),
    ] {
        ensure_eq!(client.id(first.target())?, client.id(second.target())?);
    }
    ensure_eq!(client.try_acquire(mutex.handle(), 0)?, Acquired::with(0));
    client.release(opened_mutex.handle(), 5, 6)?;
    ensure_eq!(
        client.try_acquire(opened_mutex.handle(), 5)?,
        Acquired::with(6)
    );
    Ok(())
}

fn thirds() -> TestResult {
    let client = Client::new()?;
    for shape in [
        Shape::Mutex,
        Shape::Semaphore,
        Shape::Fence,
        Shape::MonitoredFence,
    ] {
        let [resource, mutex, _] = client.triple()?;
        let third = client.create(shape, How::Nt)?;
        let handles = [resource.handle(), mutex.handle(), third.handle()];
        let (fd, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
        let opened = client.open_resource(&fd)?.sync.ok_or("no sync object")?;
        ensure_eq!(client.query(opened.target())?.object.kind, shape.kind());
    }
    Ok(())
}

fn single() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let private = client.create(shape, How::Private)?;
        is_refused(&client, &[private.handle()])?;
    }
    for shape in Shape::GLOBAL {
        let global = client.create(shape, How::Global)?;
        is_refused(&client, &[global.handle()])?;
    }
    is_refused(
        &client,
        &[client.create(Shape::KeyedMutex, How::Nt)?.handle()],
    )?;
    for how in [How::Private, How::Global, How::Nt] {
        let resource = client.create(Shape::Resource, how)?;
        is_refused(&client, resource.allocations())?;
        let part = client.dup_local(What::Allocation, resource.allocations()[0])?;
        is_refused(&client, &[part.handle()])?;
    }
    let alone = client.create_allocation(4096)?;
    is_refused(&client, &[alone.handle()])?;
    let event = opendxg::EventFd::new()?;
    let kind = opendxg::SyncKind::CpuNotification {
        event: Some(&event),
    };
    let notification = client
        .device()
        .create_sync_object(kind, opendxg::SyncFlags::empty())?;
    is_refused(&client, &[notification.handle().0])
}

fn sets() -> TestResult {
    let client = Client::new()?;
    let watch = Watch::start()?;
    {
        // Two of each, so that no handle need be there twice.
        let kinds = [Shape::Resource, Shape::KeyedMutex, Shape::MonitoredFence];
        let mut objects = Vec::new();
        for _ in 0..4 {
            for kind in kinds {
                objects.push(client.create(kind, How::Nt)?);
            }
        }
        let mut tried = 0;
        for length in 2..=4u32 {
            for number in 0..3usize.pow(length) {
                let digits = (0..length).map(|at| number / 3usize.pow(at) % 3);
                let pattern: Vec<usize> = digits.collect();
                if pattern == [0, 1, 2] {
                    continue;
                }
                let handles: Vec<u32> = pattern
                    .iter()
                    .enumerate()
                    .map(|(at, kind)| objects[3 * at + kind].handle())
                    .collect();
                is_refused(&client, &handles)?;
                tried += 1;
            }
        }
        ensure_eq!(tried, 9 + 26 + 81);
        // The same handle twice.
        for (first, second, third) in [(0, 0, 2), (0, 1, 1), (0, 1, 0), (0, 0, 0)] {
            let handles = [first, second, third].map(|at: usize| objects[at].handle());
            is_refused(&client, &handles)?;
        }
        let twice = [objects[2].handle(); 2];
        is_refused(&client, &twice)?;
        for object in &objects {
            ensure_eq!(client.references(object.target())?, 1);
        }
    }
    ensure_eq!(watch.now()?.total_shares, watch.at_start().total_shares);
    Ok(())
}

fn members() -> TestResult {
    let client = Client::new()?;
    let kinds = [Shape::Resource, Shape::KeyedMutex, Shape::MonitoredFence];
    for bad in 0..3 {
        for how in [How::Private, How::Global] {
            // A monitored fence has no global handle; then another kind of fence.
            let kind = match (kinds[bad], how) {
                (Shape::MonitoredFence, How::Global) => Shape::Fence,
                (kind, _) => kind,
            };
            let mut handles = Vec::new();
            let mut objects = client.triple()?;
            objects[bad] = client.create(kind, how)?;
            handles.extend(objects.iter().map(|object| object.handle()));
            is_refused(&client, &handles)?;
        }
        let objects = client.triple()?;
        let mut handles = objects.each_ref().map(|object| object.handle());
        handles[bad] = 0;
        is_refused(&client, &handles)?;
        handles[bad] = objects[0].allocations()[0];
        is_refused(&client, &handles)?;
        handles[bad] = client.device_handle();
        is_refused(&client, &handles)?;
        handles[bad] = client.create(kinds[bad], How::Nt)?.handle();
        is_refused(&client, &handles)?;
    }
    Ok(())
}

fn numbers() -> TestResult {
    let client = Client::new()?;
    let (resource, fd) = client.shared(Shape::Resource)?;
    let global = client.create(Shape::Resource, How::Global)?;
    let dead = client.create(Shape::Fence, How::Nt)?.handle();
    for number in [
        0,
        global.global(),
        resource.handle() | 2,
        fd.as_raw_fd() as u32,
        resource.handle() + 0x40_0000,
        dead,
        client.device_handle(),
        client.device().adapter().handle().0,
        client.device().create_context(0)?.handle().0,
        u32::MAX,
    ] {
        is_refused(&client, &[number])?;
    }
    is_refused(&client, &[])?;
    let handles = [resource.handle(); 8];
    for count in [0, 2, 3, 4, 5, 8, 64, 1 << 30, 1 << 31, u32::MAX] {
        let mut slot = u64::MAX;
        let mut arg = share_call(&handles, 1, 0, &mut slot);
        arg.ObjectCount = count;
        refused(client.raw(), &mut arg, REFUSE)?;
        ensure_eq!(slot, u64::MAX);
    }
    let mut slot = u64::MAX;
    for (array, output) in [(0, (&raw mut slot) as u64), (handles.as_ptr() as u64, 0)] {
        let mut arg = share_call(&handles[..1], 1, 0, &mut slot);
        (arg.ObjectHandleArray, arg.pSharedNtHandle) = (array, output);
        refused(client.raw(), &mut arg, REFUSE)?;
    }
    Ok(())
}

fn memory() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::MonitoredFence, How::Nt)?;
    let (watch, descriptors) = (Watch::start()?, open_descriptors()?);
    let (page, read_only) = (Page::new()?, Page::new()?.read_only()?);
    let objects = [object.handle()];
    let mut slot = u64::MAX;
    for array in [UNMAPPED, KERNEL_HALF, u64::MAX, page.end() - 3] {
        let mut arg = share_call(&objects, 1, 0, &mut slot);
        arg.ObjectHandleArray = array;
        refused(client.raw(), &mut arg, Status::ACCESS_VIOLATION)?;
    }
    ensure_eq!(slot, u64::MAX);
    let unwritable = [UNMAPPED, KERNEL_HALF, u64::MAX, page.end() - 7];
    for output in unwritable.into_iter().chain([read_only.address()]) {
        let mut arg = share_call(&objects, 1, 0, &mut slot);
        arg.pSharedNtHandle = output;
        refused(client.raw(), &mut arg, Status::ACCESS_VIOLATION)?;
    }
    ensure_eq!(open_descriptors()?, descriptors, "descriptors");
    watch.unchanged()
}

fn only_slot() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::MonitoredFence, How::Nt)?;
    let (objects, mut slot) = ([object.handle()], u64::MAX);
    let arg = share_call(&objects, 1, 0, &mut slot);
    let page = Page::beginning_with(bytes(&arg))?.read_only()?;
    let code = opendxg::raw::code(D3DKMT_SHAREOBJECTS::NR, D3DKMT_SHAREOBJECTS::SIZE);
    ensure_eq!(client.raw().ioctl(code, page.address()), Ok(0));
    // SAFETY: written by the call; read anew because the compiler does not see that.
    let slot = unsafe { (&raw const slot).read_volatile() };
    // SAFETY: the call made the descriptor for us.
    drop(unsafe { OwnedFd::from_raw_fd(slot as i32) });
    Ok(())
}

fn by_global() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let opened = client.open_global(shape, object.global())?;
        is_refused(&client, &[opened.handle()])?;
    }
    Ok(())
}

fn again() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        let id = client.id(object.target())?;
        let opened = client.open(shape, &fd)?;
        drop((object, fd));
        let second = client.share(&opened, shape.all_access())?;
        opened.destroy()?;
        let last = client.open(shape, &second)?;
        ensure_eq!(client.id(last.target())?, id, "{shape:?}");
    }
    let [resource, mutex, sync] = client.triple()?;
    let handles = [resource.handle(), mutex.handle(), sync.handle()];
    let (fd, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
    let opened = client.open_resource(&fd)?;
    let (mutex, sync) = (
        opened.mutex.ok_or("no mutex")?,
        opened.sync.ok_or("no sync")?,
    );
    let handles = [opened.resource.handle(), mutex.handle(), sync.handle()];
    let (second, _) = client.share_with(&handles, None, access::ALL_RESOURCE)?;
    ensure!(client.open_resource(&second)?.mutex.is_some());
    // A member by itself, where that is legal.
    client.share(&sync, 1)?;
    client.share(&opened.resource, 1)?;
    is_refused(&client, &[mutex.handle()])
}

fn host() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let mut arg = D3DKMT_SHAREOBJECTWITHHOST::zeroed();
        (arg.hDevice, arg.hObject) = (client.device_handle(), object.handle());
        fails_with(client.call(&mut arg), Status::NOT_SUPPORTED)?;
        ensure_eq!(arg.hVailProcessNtHandle, 0);
    }
    Ok(())
}

fn alone() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        object.destroy()?;
        for _ in 0..3 {
            client.open(shape, &fd)?.destroy()?;
        }
    }
    let fd = {
        let members = client.triple()?;
        client.set(members[1].target(), selftests::sharing::key(1), 0, b"kept")?;
        let handles = members.each_ref().map(|member| member.handle());
        client.share_with(&handles, None, access::ALL_RESOURCE)?.0
    };
    for _ in 0..3 {
        let opened = client.open_resource(&fd)?;
        let mutex = opened.mutex.ok_or("no mutex")?;
        let kept = client.get(mutex.target(), selftests::sharing::key(1), 0)?;
        ensure_eq!(kept.bytes, b"kept");
        ensure_eq!(client.references(mutex.target())?, 2);
    }
    // And the value of a fence.
    let device = fixture::device()?;
    let fence = device.create_shareable_fence(1)?;
    let shared = fence.share(Access::ALL)?;
    fence.signal(8)?;
    fence.destroy()?;
    ensure_eq!(device.open_fence(&shared, SyncFlags::empty())?.value(), 8);
    Ok(())
}
