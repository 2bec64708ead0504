// SPDX-License-Identifier: MIT OR Apache-2.0
//! The questions that started it all, each answered by a few calls (RES-111).

use std::os::fd::AsFd;

use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::child::in_child;
use selftests::fds::memfd;
use selftests::sharing::{access, key, Client, How, Item, Shape, Target, What};
use selftests::time::soon;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const NAME: &str = r"\BaseNamedObjects\Questions";

/// Is the data structure fixed, with a descriptor, a layer count and a level count?
fn structure() -> TestResult {
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Nt)?;
    // The structure is one entry among others, and may grow or change beside its old form.
    client.set(resource.target(), key(1), 1, &[1, 6, 10])?;
    client.set(resource.target(), key(1), 2, b"any other layout")?;
    client.set(resource.target(), key(2), 0, b"of another API")?;
    ensure_eq!(client.get(resource.target(), key(1), 1)?.bytes, [1, 6, 10]);
    ensure_eq!(
        client.get(resource.target(), key(1), 2)?.bytes,
        b"any other layout"
    );
    Ok(())
}

/// How do OpenCL, OpenGL and Direct3D 9 to 12 describe one object to each other?
fn sharing_extensions() -> TestResult {
    let client = Client::new()?;
    let (object, fd) = client.shared(Shape::Resource)?;
    let apis = ["Direct3D", "Vulkan", "OpenGL", "OpenCL"];
    for (number, api) in (0..).zip(apis) {
        in_child(|| {
            // A process for each, none of which knows the others.
            let client = Client::new()?;
            let opened = client.open_resource(&fd)?.resource;
            client.set(opened.target(), key(number), 0, api.as_bytes())?;
            ensure_eq!(
                client.entries(opened.target())?.len(),
                usize::from(number) + 1
            );
            Ok(())
        })?;
    }
    for (number, api) in (0..).zip(apis) {
        ensure_eq!(
            client.get(object.target(), key(number), 0)?.bytes,
            api.as_bytes()
        );
    }
    Ok(())
}

/// Are descriptors that the APIs export compatible with one another?
fn descriptors() -> TestResult {
    use opendxg::raw::Argument;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Private)?;
    client.poke(resource.allocations()[0], 123)?;
    let mut export = opendxg_export_dmabuf::zeroed();
    export.allocation = resource.allocations()[0];
    client.call(&mut export)?;
    // SAFETY: the call made the descriptor for us.
    let buffer = unsafe { OwnedFd::from_raw_fd(export.fd) };
    // Back in as an allocation: one memory.
    let device = client.device();
    let mut create =
        selftests::resource::Create::section(device, 0, buffer.as_raw_fd() as u64, 4096);
    let created = create.run()?;
    ensure_eq!(client.peek(created.first())?, 123);
    client.poke(created.first(), 124)?;
    ensure_eq!(client.peek(resource.allocations()[0])?, 124);
    Ok(())
}

/// How is metadata tied to an NT handle and found by KMT handle and by name?
fn three_ways() -> TestResult {
    let client = Client::new()?;
    // By NT handle and by name …
    let object = client.create(Shape::Resource, How::Nt)?;
    let fd = client.share_named(&object, NAME)?;
    client.set(Target::Nt(fd.as_fd()), key(1), 0, b"tied to the object")?;
    let found = client.open_name(What::Resource, NAME, access::READ_CONTROL)?;
    for target in [object.target(), Target::This(found.as_fd())] {
        ensure_eq!(client.get(target, key(1), 0)?.bytes, b"tied to the object");
    }
    // … and by KMT handle.
    let object = client.create(Shape::Resource, How::Global)?;
    client.set(object.target(), key(1), 0, b"tied to the object")?;
    let opened = client.open_global(Shape::Resource, object.global())?;
    ensure_eq!(
        client.get(opened.target(), key(1), 0)?.bytes,
        b"tied to the object"
    );
    Ok(())
}

/// Can one go from an NT handle to the object behind a KMT handle?
fn same_object() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Resource, How::Global)?;
    let opened = client.open_global(Shape::Resource, object.global())?;
    let id = client.id(Target::Global(object.global()))?;
    ensure_eq!(client.id(opened.target())?, id);
    let (other, fd) = client.shared(Shape::Resource)?;
    ensure_eq!(
        client.id(Target::Nt(fd.as_fd()))?,
        client.id(other.target())?
    );
    ensure!(client.id(other.target())? != id);
    Ok(())
}

/// Why weak references; could destruction be notified instead?
fn weak_or_notice() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let (weak, event) = (client.open_weak(object.target())?, EventFd::new()?);
        let _watch = client.watch(object.target(), OPENDXG_WATCH_DESTROY, 0, &event)?;
        client.resolve_weak(shape.what(), &weak)?;
        object.destroy()?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
        fails_with(client.resolve_weak(shape.what(), &weak), Status::NOT_FOUND)?;
    }
    Ok(())
}

/// What does NtQueryObject say; are names in the NT name space?
fn query() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share_named(&object, NAME)?;
        let seen = client.query(Target::Nt(fd.as_fd()))?;
        ensure_eq!(seen.name, NAME);
        let expected = match shape {
            Shape::Resource => OPENDXG_TYPE_RESOURCE,
            _ => OPENDXG_TYPE_SYNC_OBJECT,
        };
        ensure_eq!(seen.object.type_, expected);
        ensure_eq!(seen.object.access, shape.all_access());
    }
    Ok(())
}

/// Are KMT handles cross-process? Can NT handles stand in for them?
fn kmt_handles() -> TestResult {
    use std::os::fd::AsRawFd;
    let client = Client::new()?;
    for shape in Shape::GLOBAL {
        let object = client.create(shape, How::Global)?;
        let (global, id) = (object.global(), client.id(object.target())?);
        in_child(|| {
            let client = Client::new()?;
            let opened = client.open_global(shape, global)?;
            ensure_eq!(client.id(opened.target())?, id);
            Ok(())
        })?;
        let (_other, fd) = client.shared(Shape::Resource)?;
        let number = fd.as_raw_fd() as u32;
        fails_with(client.open_global(shape, number), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

/// How are previously non-existing, possibly unnamed objects created?
fn creation() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let object = client.create(shape, How::Nt)?;
        let fd = client.share(&object, shape.all_access())?;
        ensure_eq!(client.query(Target::Nt(fd.as_fd()))?.name, "");
        client.open(shape, &fd)?;
    }
    // Or made from memory that exists.
    use std::os::fd::AsRawFd;
    let file = memfd()?;
    rustix::fs::ftruncate(&file, 4096)?;
    rustix::io::write(&file, b"imported")?;
    let flags = selftests::resource::flags::NT;
    let number = file.as_raw_fd() as u64;
    let mut create = selftests::resource::Create::section(client.device(), flags, number, 4096);
    let fd = create.run()?.share()?;
    let opened = client.open_resource(&fd)?.resource;
    let seen = client.locked(opened.allocations()[0], 8, |bytes| bytes.to_vec())?;
    ensure_eq!(seen, b"imported");
    Ok(())
}

/// Semaphores and fences?
fn synchronisation() -> TestResult {
    let client = Client::new()?;
    for shape in [
        Shape::Mutex,
        Shape::Semaphore,
        Shape::Fence,
        Shape::MonitoredFence,
    ] {
        let object = client.create(shape, How::Nt)?;
        let event = EventFd::new()?;
        let _watch = client.watch(object.target(), OPENDXG_WATCH_CHANGE, 0, &event)?;
        let fd = client.share_named(&object, NAME)?;
        let file = memfd()?;
        let item = Item::new(key(1), 0, b"payload").file(file.as_fd());
        client.set_info(Target::This(fd.as_fd()), &[item])?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
        let found = client.open_name(What::Sync, NAME, shape.all_access())?;
        let opened = client.open(shape, &found)?;
        ensure_eq!(client.get(opened.target(), key(1), 0)?.bytes, b"payload");
    }
    Ok(())
}

pub(crate) fn main() {
    Suite::new("questions")
        .test(
            "RES-111 RES-55 RES-60 is the data structure fixed?",
            structure,
        )
        .test(
            "RES-111 RES-90 OpenCL, OpenGL, Vulkan and Direct3D on one object?",
            sharing_extensions,
        )
        .test(
            "RES-111 RES-86 RES-87 are exported descriptors compatible?",
            descriptors,
        )
        .test(
            "RES-111 RES-55 metadata by NT handle, by KMT handle, by name?",
            three_ways,
        )
        .test(
            "RES-111 RES-15 which handles are of one object?",
            same_object,
        )
        .test(
            "RES-111 RES-72 RES-74 weak references or notices?",
            weak_or_notice,
        )
        .test(
            "RES-111 RES-15 what does a query say, where are the names?",
            query,
        )
        .test(
            "RES-111 RES-10 RES-11 are KMT handles cross-process?",
            kmt_handles,
        )
        .test("RES-111 how are new and unnamed objects made?", creation)
        .test("RES-111 RES-1 semaphores and fences?", synchronisation)
        .run()
}
