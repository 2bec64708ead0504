// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocations over memory files (RES-22). Those over dma-bufs are in t-dmabuf.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use opendxg::{Dxg, Status};
use rustix::fs::{
    fallocate, ftruncate, ioctl_setflags, memfd_create, FallocateFlags, IFlags, MemfdFlags, OFlags,
    SealFlags,
};
use selftests::child::in_child;
use selftests::fds::closed_number;
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{flags, slot, Create, PAGE_SIZE};
use selftests::{ensure, ensure_eq, fixture, skip, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-22 the allocation is the memory of the file",
            the_same_memory,
        )
        .test("RES-22 the allocation keeps the file", keeps_the_file)
        .test("RES-22 the size is at most the file's", size)
        .test(
            "RES-22 a file that shrinks ends the mapping, nothing else",
            shrinks,
        )
        .test(
            "RES-22 RES-27 pages that the file has not filled yet are filled first",
            reserved,
        )
        .test(
            "RES-22 files of other kinds, numbers that are no file",
            other_files,
        )
        .test(
            "RES-22 RES-108 a file that may not be written needs ReadOnly",
            read_only,
        )
        .test(
            "RES-22 what may not be read, or only be appended to, is no section",
            write_only,
        )
}

fn memory_file(size: u64) -> TestResult<OwnedFd> {
    let file = memfd_create("section", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, size)?;
    Ok(file)
}

fn the_same_memory() -> TestResult {
    let device = fixture::device()?;
    let size = 8 * PAGE_SIZE;
    let file = memory_file(size)?;
    let memory = Region::of_file(&file, size as usize)?;
    memory.fill(1);
    for bits in [0, flags::RESOURCE, flags::GLOBAL, flags::NT] {
        let made = Create::section(&device, bits, slot(&file), size).run()?;
        let mapping = made.lock()?;
        mapping.holds(1)?;
        mapping.fill(2);
        memory.holds(2)?;
        memory.fill(1);
        mapping.holds(1)?;
        mapping.unlock()?;
        made.destroy()?;
    }
    // Two allocations over one file are the same memory, also in part.
    let whole = Create::section(&device, 0, slot(&file), size).run()?;
    let part = Create::section(&device, 0, slot(&file), PAGE_SIZE).run()?;
    part.lock()?.set(9, 99);
    ensure_eq!(whole.lock()?.get(9), 99);
    Ok(())
}

fn keeps_the_file() -> TestResult {
    let device = fixture::device()?;
    let file = memory_file(PAGE_SIZE)?;
    Region::of_file(&file, PAGE_SIZE as usize)?.fill(5);
    let made = Create::section(&device, 0, slot(&file), PAGE_SIZE).run()?;
    drop(file);
    made.lock()?.holds(5)?;
    made.destroy()
}

fn size() -> TestResult {
    let device = fixture::device()?;
    let file = memory_file(4 * PAGE_SIZE)?;
    let watch = Watch::start()?;
    for size in [5 * PAGE_SIZE, 1 << 40, u64::MAX & !0xfff, 0x1100, 0] {
        Create::section(&device, 0, slot(&file), size)
            .is_refused(Status::INVALID_PARAMETER)
            .map_err(|error| format!("{size:#x} bytes: {error}"))?;
    }
    watch.unchanged()?;
    Create::section(&device, 0, slot(&file), 4 * PAGE_SIZE)
        .run()?
        .destroy()?;
    Create::section(&device, 0, slot(&file), PAGE_SIZE)
        .run()?
        .destroy()
}

fn shrinks() -> TestResult {
    let device = fixture::device()?;
    let file = memory_file(4 * PAGE_SIZE)?;
    let memory = Region::of_file(&file, PAGE_SIZE as usize)?;
    memory.fill(6);
    let made = Create::section(&device, 0, slot(&file), 4 * PAGE_SIZE).run()?;
    ftruncate(&file, PAGE_SIZE)?;
    match made.lock() {
        Ok(mapping) => {
            let first = (0..PAGE_SIZE as usize)
                .step_by(4)
                .all(|at| mapping.word(at) == memory.word(at));
            ensure!(first, "the rest of the file is seen");
            mapping.unlock()?;
        }
        Err(_) => println!("# a lock after the file shrank is refused"),
    }
    made.destroy()
}

/// fallocate() leaves pages in the file as they were found; the file fills them with zeros when
/// they are touched. A user that takes them before shows what they held, and loses what is written.
fn reserved() -> TestResult {
    let device = fixture::device()?;
    let size = 4 * PAGE_SIZE;
    let file = memory_file(size)?;
    fallocate(&file, FallocateFlags::empty(), 0, size)?;
    let made = Create::section(&device, 0, slot(&file), size).run()?;
    let mapping = made.lock()?;
    mapping.is_zero()?;
    mapping.fill(7);
    Region::of_file(&file, size as usize)?.holds(7)?;
    mapping.holds(7)?;
    mapping.unlock()?;
    made.destroy()
}

fn other_files() -> TestResult {
    let device = fixture::device()?;
    let (reader, writer) = selftests::fds::pipe()?;
    let (socket, _other) = selftests::fds::socket_pair()?;
    let fence = device.create_shareable_fence(0)?;
    let nt = fence.share(opendxg::Access::ALL)?;
    let node = Dxg::open()?;
    let event = opendxg::EventFd::new()?;
    let null = std::fs::File::open("/dev/null")?;
    let zero = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/zero")?;
    let folder = std::fs::File::open("/proc")?;
    let watch = Watch::start()?;
    for fd in [
        reader.as_fd(),
        writer.as_fd(),
        socket.as_fd(),
        nt.as_fd(),
        node.as_fd(),
        event.as_fd(),
        null.as_fd(),
        zero.as_fd(),
        folder.as_fd(),
    ] {
        Create::section(&device, 0, slot(fd), PAGE_SIZE)
            .is_refused(Status::OBJECT_TYPE_MISMATCH)
            .map_err(|error| format!("descriptor {}: {error}", fd.as_raw_fd()))?;
    }
    let closed = closed_number()? as u64;
    for number in [
        closed,
        u64::MAX,
        1 << 31,
        (1 << 32) | slot(&reader),
        i64::MIN as u64,
    ] {
        Create::section(&device, 0, number, PAGE_SIZE)
            .is_refused(Status::INVALID_HANDLE)
            .map_err(|error| format!("number {number:#x}: {error}"))?;
    }
    watch.unchanged()
}

/// Another open file description of the file.
fn reopen(file: &OwnedFd, flags: OFlags) -> TestResult<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mode = rustix::fs::Mode::empty();
    Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)?)
}

fn read_only() -> TestResult {
    let file = memory_file(PAGE_SIZE)?;
    Region::of_file(&file, PAGE_SIZE as usize)?.fill(8);
    let reading = reopen(&file, OFlags::RDONLY)?;
    let sealed = memory_file(PAGE_SIZE)?;
    rustix::fs::fcntl_add_seals(&sealed, SealFlags::WRITE)?;
    in_child(|| {
        let device = fixture::device()?;
        for fd in [&reading, &sealed] {
            Create::section(&device, 0, slot(fd), PAGE_SIZE).is_refused(Status::ACCESS_DENIED)?;
        }
        let made = Create::section(&device, flags::READ_ONLY, slot(&reading), PAGE_SIZE).run()?;
        made.lock()?.holds(8)?;
        made.destroy()
    })
}

fn write_only() -> TestResult {
    let device = fixture::device()?;
    let file = memory_file(PAGE_SIZE)?;
    let writing = reopen(&file, OFlags::WRONLY)?;
    let watch = Watch::start()?;
    for bits in [0, flags::READ_ONLY] {
        Create::section(&device, bits, slot(&writing), PAGE_SIZE)
            .is_refused(Status::ACCESS_DENIED)?;
    }
    watch.unchanged()?;
    if ioctl_setflags(&file, IFlags::APPEND).is_err() {
        skip!("files cannot be made append-only here");
    }
    Create::section(&device, 0, slot(&file), PAGE_SIZE).is_refused(Status::ACCESS_DENIED)?;
    watch.unchanged()?;
    Create::section(&device, flags::READ_ONLY, slot(&file), PAGE_SIZE)
        .run()?
        .destroy()
}
