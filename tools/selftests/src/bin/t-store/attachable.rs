// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files may be attached (RES-63).

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::dma_buf::{export_sync_file, udmabuf, READ};
use selftests::drm::Drm;
use selftests::fds::{is_same_file, memfd, pipe, socket_pair};
use selftests::sharing::{key, Client, How, Item, Shape, Target};
use selftests::test_device::TestDevice;
use selftests::uring::Ring;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-63 a memory file may be attached", memory_file)
        .test("RES-63 a sync_file may be attached", sync_file)
        .test(
            "RES-63 a dma-buf of another driver may be attached",
            foreign_buffer,
        )
        .test(
            "RES-63 a dma-buf of ours may not: it would form a cycle",
            own_buffers,
        )
        .test("RES-63 an eventfd may be attached", event)
        .test("RES-63 a drm_syncobj may be attached", syncobj)
        .test("RES-63 what may not", refused)
}

/// Tries to attach a file.
pub(crate) fn attach(client: &Client, target: Target<'_>, file: impl AsFd) -> opendxg::Result<u64> {
    client.set_info(target, &[Item::new(key(1), 0, b"").file(file.as_fd())])
}

/// A file of this path, opened for reading and writing, if there is one.
fn opened(path: &str) -> Option<OwnedFd> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path);
    file.ok().map(OwnedFd::from)
}

/// A dma-buf of a page of this process.
pub(crate) fn own_buffer(client: &Client, allocation: u32) -> TestResult<OwnedFd> {
    let mut export = opendxg_export_dmabuf::zeroed();
    export.allocation = allocation;
    client.call(&mut export)?;
    // SAFETY: the call made the descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(export.fd) })
}

/// Attaches the file and takes it back.
fn is_accepted(client: &Client, file: &OwnedFd) -> TestResult {
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        attach(client, object.target(), file)?;
        let entry = client.get_file(object.target(), key(1), 0)?;
        ensure!(is_same_file(entry.file.ok_or("no file")?, file)?);
    }
    Ok(())
}

fn memory_file() -> TestResult {
    is_accepted(&Client::new()?, &memfd()?)
}

fn sync_file() -> TestResult {
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Private)?;
    let buffer = own_buffer(&client, resource.allocations()[0])?;
    is_accepted(&client, &export_sync_file(&buffer, READ)?)
}

fn foreign_buffer() -> TestResult {
    is_accepted(&Client::new()?, &udmabuf(4096)?.0)
}

fn event() -> TestResult {
    is_accepted(&Client::new()?, &EventFd::new()?.into())
}

fn syncobj() -> TestResult {
    let drm = Drm::find()?;
    let file = drm.timeline()?.file()?;
    is_accepted(&Client::new()?, &file)
}

fn own_buffers() -> TestResult {
    // A dma-buf of the module holds its container: in that one's store it would keep it for ever.
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Private)?;
    let buffer = own_buffer(&client, resource.allocations()[0])?;
    let other = client.create(Shape::Fence, How::Private)?;
    for target in [resource.target(), other.target()] {
        let result = attach(&client, target, &buffer);
        fails_with(result, Status::OBJECT_TYPE_MISMATCH)?;
    }
    Ok(())
}

fn refused() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let mut files: Vec<(&str, OwnedFd)> = Vec::new();
    let (reader, writer) = pipe()?;
    files.push(("pipe", reader));
    files.push(("pipe", writer));
    let (left, _right) = socket_pair()?;
    files.push(("socket", left));
    let event = EventFd::new()?;
    // SAFETY: plain system calls.
    let (epoll, timer) = unsafe {
        (
            libc::epoll_create1(libc::O_CLOEXEC),
            libc::timerfd_create(1, 0),
        )
    };
    for (name, fd) in [("epoll", epoll), ("timerfd", timer)] {
        ensure!(fd >= 0, "{name}");
        // SAFETY: just made.
        files.push((name, unsafe { OwnedFd::from_raw_fd(fd) }));
    }
    let ring = Ring::new().ok();
    if let Some(ring) = &ring {
        files.push(("io_uring", ring.as_fd().try_clone_to_owned()?));
    }
    for path in ["/dev/null", "/dev/dxg", "/dev/zero"] {
        files.push((path, opened(path).ok_or(path)?));
    }
    let directory = std::fs::File::open("/")?;
    files.push(("directory", directory.into()));
    if let Ok(device) = TestDevice::open() {
        files.push(("a driver", device.as_fd().try_clone_to_owned()?));
    }
    for node in ["card0", "renderD128"] {
        files.extend(opened(&format!("/dev/dri/{node}")).map(|file| (node, file)));
    }
    let (_other, nt) = client.shared(Shape::Fence)?;
    files.push(("NT handle", nt));
    files.push(("weak reference", client.open_weak(target)?));
    files.push((
        "watch",
        client.watch(target, OPENDXG_WATCH_CHANGE, 0, &event)?,
    ));
    let fence = client.device().create_fence(0)?;
    let point = fence.point(1)?;
    files.push(("fence point", point.as_fd().try_clone_to_owned()?));
    for (name, file) in &files {
        fails_with(attach(&client, target, file), Status::OBJECT_TYPE_MISMATCH)
            .map_err(|error| format!("{name}: {error}"))?;
    }
    let closed = selftests::fds::closed_number()?;
    // SAFETY: a number that is only passed on.
    let closed = unsafe { std::os::fd::BorrowedFd::borrow_raw(closed) };
    fails_with(attach(&client, target, closed), Status::INVALID_HANDLE)?;
    ensure_eq!(client.entries(target)?.len(), 0);
    drop(point);
    Ok(())
}
