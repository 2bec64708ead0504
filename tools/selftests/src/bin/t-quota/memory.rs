// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of what has a size of its own: allocations, bytes, pages that stay in memory, files
//! (RES-105).

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use opendxg::raw::Argument;
use opendxg::uapi::{opendxg_export_dmabuf, OPENDXG_EXPORT_READ_ONLY};
use opendxg::{Device, Dxg, FdInfo, Status};
use rustix::io::Errno;
use selftests::call::refused;
use selftests::child::in_child;
use selftests::fds::memfd;
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{export, flags, query_local, Create, OpenResource, PAGE_SIZE};
use selftests::sharing::{key, Client, How, Item, Shape};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use crate::t_quota::limits::limit;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-105 allocations, also those of one resource: NO_MEMORY",
            allocations,
        )
        .test("RES-105 bytes, touched or not: NO_MEMORY", claimed)
        .test(
            "RES-105 pages that stay in memory: touching more is SIGBUS",
            resident,
        )
        .test(
            "RES-105 files behind allocations and their mappings: NO_MEMORY",
            files,
        )
        .test(
            "RES-105 RES-86 dma-bufs that are kept for another export: NO_MEMORY",
            dma_bufs,
        )
        .test(
            "RES-105 files attached to objects: QUOTA_EXCEEDED",
            attached,
        )
        .test("fdinfo shows what a process and its user have", shown)
}

/// Makes resources until one is refused, which leaves nothing behind.
fn fill(mut make: impl FnMut() -> Create) -> TestResult<Vec<OpenResource>> {
    let raw = fixture::raw()?;
    let mut made = Vec::new();
    loop {
        let watch = Watch::start()?;
        let mut create = make();
        let mut arg = create.argument();
        match raw.exec(&mut arg)? {
            Status::SUCCESS => made.push(create.adopt(&raw, &arg)),
            Status::NO_MEMORY => {
                watch.unchanged()?;
                return Ok(made);
            }
            other => return Err(format!("{other} after {}", made.len()).into()),
        }
        ensure!(made.len() < 1000, "no limit");
    }
}

fn allocations() -> TestResult {
    let limit = limit("max_user_allocations")?;
    let device = fixture::device()?;
    // One container for fifty.
    let fifty = || Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE; 50]);
    let mut made = fill(fifty)?;
    ensure_eq!(made.len(), limit / 50);
    let mut one = Create::sized(&device, 0, &[PAGE_SIZE]);
    if limit % 50 == 0 {
        one.is_refused(Status::NO_MEMORY)?;
    }
    made.pop().ok_or("nothing made")?.destroy()?;
    fifty().run()?.destroy()?;
    // Added to a resource they count as well.
    let mut added = Create::sized(&device, 0, &[PAGE_SIZE; 51]);
    added.resource = made.first().ok_or("nothing made")?.resource;
    added.is_refused(Status::NO_MEMORY)
}

fn claimed() -> TestResult {
    let limit = limit("max_user_claimed_mb")? as u64;
    let device = fixture::device()?;
    let file = memfd()?;
    rustix::fs::ftruncate(&file, 64 << 30)?;
    let fd = file.as_raw_fd() as u64;
    let memory = Region::private(PAGE_SIZE as usize)?;
    let mut made = fill(|| Create::sized(&device, 0, &[4 * MIB]))?;
    ensure_eq!(made.len() as u64, limit / 4);
    // All kinds of memory count.
    Create::sized(&device, 0, &[PAGE_SIZE]).is_refused(Status::NO_MEMORY)?;
    Create::section(&device, 0, fd, PAGE_SIZE).is_refused(Status::NO_MEMORY)?;
    Create::section(&device, 0, fd, 64 << 30).is_refused(Status::NO_MEMORY)?;
    Create::over(&device, 0, memory.address(), PAGE_SIZE).is_refused(Status::NO_MEMORY)?;
    Create::cross_adapter(&device, 0, PAGE_SIZE).is_refused(Status::NO_MEMORY)?;
    made.pop().ok_or("nothing made")?.destroy()?;
    drop(made);
    let mut made = fill(|| Create::section(&device, 0, fd, 4 * MIB))?;
    ensure_eq!(made.len() as u64, limit / 4);
    made.pop().ok_or("nothing made")?.destroy()?;
    Create::over(&device, 0, memory.address(), PAGE_SIZE)
        .run()?
        .destroy()
}

/// Touches pages of an allocation from the first one on until one is refused.
fn touch(device: &Device, size: u64) -> TestResult<u64> {
    let made = Create::sized(device, 0, &[size]).run()?;
    let mapping = made.lock()?;
    let (_reader, writer) = rustix::pipe::pipe()?;
    for page in 0..size / PAGE_SIZE {
        let at = (mapping.address() + page * PAGE_SIZE) as usize as *const libc::c_void;
        // SAFETY: one byte of a mapping that is held by `mapping`, read by the kernel.
        let written = unsafe { libc::write(writer.as_raw_fd(), at, 1) };
        match Errno::from_io_error(&std::io::Error::last_os_error()) {
            _ if written == 1 => {}
            Some(Errno::FAULT) => return Ok(page),
            other => return Err(format!("page {page}: {other:?}").into()),
        }
    }
    Ok(size / PAGE_SIZE)
}

/// The device node, for its fdinfo.
pub(crate) fn node() -> TestResult<File> {
    Ok(File::open(Dxg::open()?.path())?)
}

/// A number in the fdinfo of the node.
pub(crate) fn number(node: &File, name: &str) -> TestResult<u64> {
    let info = FdInfo::read(node.as_fd())?;
    let text = info.get(name).unwrap_or("").to_owned();
    let number = text.split(' ').next().and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("{name}: {text:?}").into())
}

fn resident() -> TestResult {
    let limit = limit("max_user_resident_mb")? as u64 * MIB;
    let device = fixture::device()?;
    // The page tables of the device stay in memory too.
    let tables = number(&node()?, "dxg-process-resident")?;
    for _ in 0..2 {
        // What was touched is given back with the allocation.
        ensure_eq!(touch(&device, 2 * limit)?, (limit - tables) / PAGE_SIZE);
    }
    // A program that touches more itself is told by a signal, and is not kept in the fault for
    // ever.
    let child = selftests::child::Child::spawn(|| {
        let made = Create::sized(&fixture::device()?, 0, &[2 * limit]).run()?;
        made.lock()?.fill(1);
        Ok(())
    })?;
    child.dies_of(libc::SIGBUS)?;
    ensure_eq!(touch(&device, limit)?, (limit - tables) / PAGE_SIZE);
    Ok(())
}

fn files() -> TestResult {
    let limit = limit("max_user_files")?;
    let device = fixture::device()?;
    let mut mapped = Vec::new();
    let mut made = Vec::new();
    // Each is a file, and its mapping is another one.
    while 2 * mapped.len() + 2 <= limit {
        let one = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
        mapped.push(one.lock()?);
        made.push(one);
    }
    if limit % 2 == 0 {
        Create::sized(&device, 0, &[PAGE_SIZE]).is_refused(Status::NO_MEMORY)?;
    }
    // Memory of the caller needs no file, until it is mapped.
    let memory = Region::private(PAGE_SIZE as usize)?;
    let over = Create::over(&device, 0, memory.address(), PAGE_SIZE).run()?;
    let raw = fixture::raw()?;
    let (status, _) = selftests::resource::locked_again(&raw, device.handle().0, over.first())?;
    ensure_eq!(status, Status::NO_MEMORY);
    drop(mapped.pop());
    made.pop().ok_or("nothing made")?.destroy()?;
    over.lock()?.unlock()?;
    over.destroy()
}

fn dma_bufs() -> TestResult {
    let limit = limit("max_user_files")?;
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let mut made = Vec::new();
    let both = |one: &OpenResource| -> TestResult {
        for flags in [0, OPENDXG_EXPORT_READ_ONLY] {
            drop(export(&raw, one.first(), flags)?);
        }
        Ok(())
    };
    // Each is a file, and so are its two dma-bufs, although nobody has a descriptor of them.
    for _ in 0..limit / 3 {
        let one = Create::sized(&device, 0, &[PAGE_SIZE]).run()?;
        both(&one)?;
        made.push(one);
    }
    // There may be room for one or two more files.
    let mut last = Vec::new();
    for _ in 0..limit % 3 {
        last.push(Create::sized(&device, 0, &[PAGE_SIZE]).run()?);
    }
    Create::sized(&device, 0, &[PAGE_SIZE]).is_refused(Status::NO_MEMORY)?;
    // What was exported before costs nothing, and asking drops what is only kept.
    both(&made[0])?;
    ensure_eq!(query_local(&raw, made[0].first())?.references, 1);
    last.push(Create::sized(&device, 0, &[PAGE_SIZE]).run()?);
    let mut arg = opendxg_export_dmabuf::zeroed();
    arg.allocation = made[0].first();
    last.push(Create::sized(&device, 0, &[PAGE_SIZE]).run()?);
    refused(&raw, &mut arg, Status::NO_MEMORY)?;
    made.pop().ok_or("nothing made")?.destroy()?;
    both(&made[0])
}

fn attached() -> TestResult {
    let limit = limit("max_user_files")?;
    let client = Client::new()?;
    let file = memfd()?;
    let mut objects = Vec::new();
    let mut stored = 0;
    let attach = |object: &selftests::sharing::Local, number: usize| {
        let item = Item::new(key(number as u8), 0, b"x").file(file.as_fd());
        client.set_info(object.target(), &[item])
    };
    let refused = loop {
        if stored % 8 == 0 {
            objects.push(client.create(Shape::Fence, How::Private)?);
        }
        match attach(&objects[stored / 8], stored % 8) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        ensure!(stored <= limit, "{stored} files attached");
    };
    ensure_eq!(refused.status(), Status::QUOTA_EXCEEDED);
    ensure_eq!(stored, limit);
    client.delete_info(objects[0].target(), key(0), 0, 0).0?;
    attach(&objects[0], 0)?;
    fails_with(attach(&objects[0], 9), Status::QUOTA_EXCEEDED)?;
    drop(objects);
    let object = client.create(Shape::Fence, How::Private)?;
    attach(&object, 0)?;
    Ok(())
}

fn shown() -> TestResult {
    in_child(|| {
        let device = fixture::device()?;
        let node = node()?;
        let read = |name: &str| number(&node, name);
        let all = |process: &str| -> TestResult<[u64; 4]> {
            let name = |what: &str| format!("{process}-{what}");
            Ok([
                read(&name("allocations"))?,
                read(&name("bytes"))?,
                read(&name("resident"))?,
                read(&name("files"))?,
            ])
        };
        let start = all("dxg-process")?;
        let [_, _, tables, _] = start;
        ensure_eq!(start, [0, 0, tables, 0]);
        let before = read("dxg-user-pages")?;
        let made = Create::sized(&device, 0, &[PAGE_SIZE, 3 * PAGE_SIZE]).run()?;
        let mapping = made.lock_nth(1)?;
        mapping.set(5, 1);
        let expected = [2, 4 * PAGE_SIZE, tables + PAGE_SIZE, 3];
        ensure_eq!(all("dxg-process")?, expected);
        ensure_eq!(read("dxg-user-pages")?, before + 4);
        mapping.unlock()?;
        made.destroy()?;
        let done = || all("dxg-process").is_ok_and(|left| left == start);
        selftests::time::eventually("everything is given back", done)
    })
}
