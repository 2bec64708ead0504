// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attached files (RES-62, RES-63, RES-66).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use rustix::io::FdFlags;
use selftests::child::{Child, Gate};
use selftests::fds::{is_same_file, memfd, socket_pair};
use selftests::leak::open_descriptors;
use selftests::sharing::{key, Client, How, Item, Shape, Target};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-62 every GET gives a new descriptor of the same file",
            same_file,
        )
        .test(
            "RES-62 two processes share a memory file through GET",
            two_processes,
        )
        .test("RES-62 only who asks gets it", asked)
        .test("RES-56 REMOVE_FD, replacement, and keeping", replace)
        .test("RES-57 a GET that fails makes no descriptor", no_descriptor)
        .test("RES-66 the file is released with the object", released)
}

fn same_file() -> TestResult {
    let client = Client::new()?;
    for shape in Shape::ALL {
        let object = client.create(shape, How::Private)?;
        let file = memfd()?;
        let item = Item::new(key(1), 0, b"with a file").file(file.as_fd());
        client.set_info(object.target(), &[item])?;
        let first = client.get_file(object.target(), key(1), 0)?;
        let second = client.get_file(object.target(), key(1), 0)?;
        ensure_eq!(first.flags, OPENDXG_INFO_HAS_FD);
        ensure_eq!(first.bytes, b"with a file");
        let (first, second) = (first.file.ok_or("no file")?, second.file.ok_or("no file")?);
        ensure!(first.as_raw_fd() != second.as_raw_fd());
        for fd in [&first, &second] {
            ensure!(is_same_file(fd, &file)?, "{shape:?}: another file");
            ensure!(rustix::io::fcntl_getfd(fd)?.contains(FdFlags::CLOEXEC));
        }
        let listed = client.entries(object.target())?;
        ensure_eq!(listed[0].flags, OPENDXG_INFO_HAS_FD);
    }
    Ok(())
}

/// Maps a page of a file and runs `body` on its first byte.
pub(crate) fn with_page<R>(
    fd: &OwnedFd,
    body: impl FnOnce(&std::sync::atomic::AtomicU8) -> R,
) -> TestResult<R> {
    use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, anywhere.
    let start = unsafe { mmap(core::ptr::null_mut(), 4096, rights, MapFlags::SHARED, fd, 0) }?;
    // SAFETY: mapped until the end of this function; used atomically only.
    let result = body(unsafe { &*start.cast() });
    // SAFETY: our own mapping, to which nobody holds a reference.
    unsafe { munmap(start, 4096) }?;
    Ok(result)
}

fn two_processes() -> TestResult {
    use std::sync::atomic::Ordering::SeqCst;
    let client = Client::new()?;
    for shape in Shape::NT {
        let (object, fd) = client.shared(shape)?;
        {
            let file = memfd()?;
            rustix::fs::ftruncate(&file, 4096)?;
            let item = Item::new(key(1), 0, b"").file(file.as_fd());
            client.set_info(object.target(), &[item])?;
        }
        let (wrote, answered) = (Gate::new()?, Gate::new()?);
        let reader = Child::spawn(|| {
            // Without opening the device.
            let entry = client.get_file(Target::This(fd.as_fd()), key(1), 0)?;
            let file = entry.file.ok_or("no file")?;
            wrote.wait()?;
            let seen = with_page(&file, |byte| byte.swap(43, SeqCst))?;
            ensure_eq!(seen, 42);
            answered.open()
        })?;
        let file = client.get_file(object.target(), key(1), 0)?.file;
        let file = file.ok_or("no file")?;
        with_page(&file, |byte| byte.store(42, SeqCst))?;
        wrote.open()?;
        answered.wait()?;
        ensure_eq!(with_page(&file, |byte| byte.load(SeqCst))?, 43);
        // The same file in both processes.
        reader.join()?;
    }
    Ok(())
}

fn asked() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let file = memfd()?;
    let item = Item::new(key(1), 0, b"x").file(file.as_fd());
    client.set_info(object.target(), &[item])?;
    client.set(object.target(), key(2), 0, b"y")?;
    let before = open_descriptors()?;
    let (entry, arg) = client.get_into(object.target(), key(1), 0, 8, 0);
    ensure_eq!((entry?.flags, arg.fd), (OPENDXG_INFO_HAS_FD, -1));
    let (entry, arg) = client.get_into(object.target(), key(2), 0, 8, OPENDXG_GET_FD);
    ensure_eq!((entry?.flags, arg.fd), (0, -1));
    ensure_eq!(open_descriptors()?, before);
    let (refused, _) = client.get_into(object.target(), key(1), 0, 8, 2);
    fails_with(refused, Status::INVALID_PARAMETER)
}

fn replace() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let target = object.target();
    let (first, second) = (memfd()?, memfd()?);
    let attached =
        || -> TestResult<Option<OwnedFd>> { Ok(client.get_file(target, key(1), 0)?.file) };
    client.set_info(target, &[Item::new(key(1), 0, b"a").file(first.as_fd())])?;
    client.set(target, key(1), 0, b"b")?;
    ensure!(is_same_file(
        attached()?.ok_or("the file is gone")?,
        &first
    )?);
    client.set_info(target, &[Item::new(key(1), 0, b"c").file(second.as_fd())])?;
    ensure!(is_same_file(attached()?.ok_or("no file")?, &second)?);
    client.set_info(
        target,
        &[Item::new(key(1), 0, b"d").flags(OPENDXG_INFO_REMOVE_FD)],
    )?;
    ensure!(attached()?.is_none());
    let both = Item::new(key(1), 0, b"e")
        .flags(OPENDXG_INFO_REMOVE_FD)
        .file(first.as_fd());
    fails_with(client.set_info(target, &[both]), Status::INVALID_PARAMETER)?;
    let output_only = Item::new(key(1), 0, b"e").flags(OPENDXG_INFO_HAS_FD);
    fails_with(
        client.set_info(target, &[output_only]),
        Status::INVALID_PARAMETER,
    )?;
    let mut unused = Item::new(key(1), 0, b"e").raw();
    unused.fd = first.as_raw_fd();
    let mut arg = opendxg_set_info::zeroed();
    (arg.handle, arg.handle_type, arg.item_count) =
        (object.handle().into(), OPENDXG_HANDLE_LOCAL, 1);
    arg.items = (&raw const unused) as u64;
    fails_with(client.call(&mut arg), Status::INVALID_PARAMETER)?;
    ensure_eq!(client.get(target, key(1), 0)?.bytes, b"d");
    Ok(())
}

fn no_descriptor() -> TestResult {
    let client = Client::new()?;
    let object = client.create(Shape::Fence, How::Private)?;
    let file = memfd()?;
    let item = Item::new(key(1), 3, &[1; 64]).file(file.as_fd());
    client.set_info(object.target(), &[item])?;
    let before = open_descriptors()?;
    let (small, _) = client.get_into(object.target(), key(1), 3, 63, OPENDXG_GET_FD);
    fails_with(small, Status::BUFFER_TOO_SMALL)?;
    let (older, _) = client.get_into(object.target(), key(1), 2, 64, OPENDXG_GET_FD);
    fails_with(older, Status::REVISION_MISMATCH)?;
    let mut arg = opendxg_get_info::zeroed();
    (arg.handle, arg.handle_type) = (object.handle().into(), OPENDXG_HANDLE_LOCAL);
    (arg.key, arg.max_schema, arg.flags) = (key(1), 3, OPENDXG_GET_FD);
    (arg.data, arg.size) = (selftests::memory::UNMAPPED, 64);
    fails_with(client.call(&mut arg), Status::ACCESS_VIOLATION)?;
    ensure_eq!(open_descriptors()?, before);
    Ok(())
}

fn released() -> TestResult {
    // The blocks of a memory file are given back with its last reference.
    let used = || -> TestResult<u64> {
        let text = std::fs::read_to_string("/proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix("Shmem:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| "no Shmem in meminfo".into())
    };
    const SIZE: usize = 8 << 20;
    let before = used()?;
    let client = Client::new()?;
    let (left, right) = socket_pair()?;
    let (sent, done) = (Gate::new()?, Gate::new()?);
    let writer = Child::spawn(|| {
        let client = Client::new()?;
        let (object, fd) = client.shared(Shape::Resource)?;
        let file = memfd()?;
        rustix::io::write(&file, &vec![1; SIZE])?;
        let item = Item::new(key(1), 0, b"").file(file.as_fd());
        client.set_info(object.target(), &[item])?;
        selftests::fds::send(&left, &fd)?;
        sent.open()?;
        done.wait()
    })?;
    sent.wait()?;
    done.open()?;
    writer.join()?;
    let fd = selftests::fds::receive(&right)?;
    let opened = client.open(Shape::Resource, &fd)?;
    drop(fd);
    // The writer is gone; its file is not.
    let held = used()?.saturating_sub(before) as usize * 1024;
    ensure!(held >= SIZE / 2, "only {held} bytes are held");
    opened.destroy()?;
    selftests::time::eventually("the memory of the file comes back", || {
        used().is_ok_and(|now| (now.saturating_sub(before) as usize) * 1024 < SIZE / 2)
    })
}
