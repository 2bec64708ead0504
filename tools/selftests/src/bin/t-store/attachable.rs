// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files may be attached (RES-63).

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{EventFd, Status};
use selftests::fds::{memfd, pipe, socket_pair};
use selftests::sharing::{key, Client, How, Item, Shape, Target};
use selftests::uring::Ring;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use crate::t_store::files::is_same_file;

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
        .test("RES-63 what may not", refused)
        .test(
            "RES-63 an object's own NT handle cannot form a cycle",
            cycle,
        )
}

/// Tries to attach a file.
fn attach(client: &Client, target: Target<'_>, file: impl AsFd) -> opendxg::Result<u64> {
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
fn own_buffer(client: &Client, allocation: u32) -> TestResult<OwnedFd> {
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
    /// `struct dma_buf_export_sync_file`.
    #[repr(C)]
    struct Export {
        flags: u32,
        fd: i32,
    }
    const DMA_BUF_IOCTL_EXPORT_SYNC_FILE: u32 = 0xc008_6202;
    const READ: u32 = 1;
    let client = Client::new()?;
    let resource = client.create(Shape::Resource, How::Private)?;
    let buffer = own_buffer(&client, resource.allocations()[0])?;
    let mut export = Export {
        flags: READ,
        fd: -1,
    };
    let address = (&raw mut export) as u64;
    client
        .raw()
        .ioctl_on(&buffer, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, address)?;
    // SAFETY: the call made the descriptor for us, and wrote it where the compiler does not look.
    let file = unsafe { OwnedFd::from_raw_fd((&raw const export.fd).read_volatile()) };
    is_accepted(&client, &file)
}

fn foreign_buffer() -> TestResult {
    /// `struct udmabuf_create`.
    #[repr(C)]
    struct Create {
        memfd: u32,
        flags: u32,
        offset: u64,
        size: u64,
    }
    const UDMABUF_CREATE: u32 = 0x4018_7542;
    let client = Client::new()?;
    let Some(device) = opened("/dev/udmabuf") else {
        selftests::skip!("no /dev/udmabuf");
    };
    let flags = rustix::fs::MemfdFlags::ALLOW_SEALING | rustix::fs::MemfdFlags::CLOEXEC;
    let memory = rustix::fs::memfd_create("udmabuf", flags)?;
    rustix::fs::ftruncate(&memory, 4096)?;
    rustix::fs::fcntl_add_seals(&memory, rustix::fs::SealFlags::SHRINK)?;
    let create = Create {
        memfd: memory.as_raw_fd() as u32,
        flags: 1,
        offset: 0,
        size: 4096,
    };
    let address = (&raw const create) as u64;
    let fd = client.raw().ioctl_on(&device, UDMABUF_CREATE, address)?;
    // SAFETY: the call made the descriptor for us.
    is_accepted(&client, &unsafe { OwnedFd::from_raw_fd(fd) })
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
    files.push(("eventfd", event.as_fd().try_clone_to_owned()?));
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

fn cycle() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        for target in [
            object.target(),
            Target::Nt(fd.as_fd()),
            Target::This(fd.as_fd()),
        ] {
            let result = attach(&client, target, &fd);
            fails_with(result, Status::OBJECT_TYPE_MISMATCH)?;
        }
    }
    // That nothing is left behind is what the runner looks at.
    Ok(())
}
