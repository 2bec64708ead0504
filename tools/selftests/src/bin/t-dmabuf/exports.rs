// SPDX-License-Identifier: MIT OR Apache-2.0
//! EXPORT_DMABUF (RES-86).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Device, Status};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::{Errno, FdFlags};
use rustix::mm::{MprotectFlags, ProtFlags};
use selftests::call::refused;
use selftests::child::{in_child, Child};
use selftests::dma_buf::{accessed, exporter, identity, size, sync, Vgem, READ, WRITE};
use selftests::fds::{receive, send, socket_pair};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{
    export, flags, query_local, slot, Create, OpenNt, OpenResource, PAGE_SIZE, READ_ACCESS,
};
use selftests::rounds::{crowd, rounds, Dice};
use selftests::sharing::share_raw;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const SIZE: u64 = 8 * PAGE_SIZE;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "RES-86 the bytes, the size, DMA_BUF_IOCTL_SYNC",
            the_same_memory,
        )
        .test("RES-86 every allocation of a resource", each_allocation)
        .test("RES-86 what is refused", refusals)
        .test(
            "RES-86 RES-78 the dma-buf holds one reference",
            one_reference,
        )
        .test(
            "RES-86 exported twice, also by two processes, it is the same",
            the_same_twice,
        )
        .test(
            "RES-86 RES-35 opened read-only, exported read-only",
            read_only,
        )
        .test(
            "RES-86 an open path does not become the dma-buf",
            kept_by_a_path,
        )
        .test(
            "RES-86 RES-87 the dma-buf is found again as long as there is a handle",
            is_found_again,
        )
        .test(
            "RES-86 a dma-buf without users keeps nothing",
            without_users,
        )
        .test("RES-86 the dma-buf keeps the memory", keeps_the_memory)
        .test("RES-86 RES-87 vgem attaches to our dma-buf", vgem_imports)
        .test(
            "RES-86 memory that vgem uses stays where it is",
            pinned_while_attached,
        )
        .test("RES-86 RES-110 exported while destroyed", while_destroyed)
        .test("RES-86 RES-110 the exporter is killed", killed)
}

fn sample(device: &Device, bits: u32) -> TestResult<OpenResource> {
    Create::sized(device, bits, &[SIZE]).run()
}

fn the_same_memory() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, 0)?;
    let mapping = made.lock()?;
    mapping.fill(1);
    let file = export(made.raw(), made.first(), 0)?;
    ensure_eq!(exporter(&file)?, "opendxg");
    ensure_eq!(size(&file)?, SIZE);
    ensure_eq!(
        rustix::fs::seek(&file, SeekFrom::Start(1)),
        Err(Errno::INVAL)
    );
    ensure!(rustix::io::fcntl_getfd(&file)?.contains(FdFlags::CLOEXEC));
    let memory = Region::of_file(&file, SIZE as usize)?;
    accessed(&file, READ, || memory.holds(1))?;
    accessed(&file, READ | WRITE, || {
        memory.fill(2);
        Ok(())
    })?;
    mapping.holds(2)?;
    for wrong in [0, 4, 8, 1 << 32, u64::MAX] {
        ensure_eq!(sync(&file, wrong), Err(Errno::INVAL), "flags {wrong:#x}");
    }
    // In part, but not beyond the end.
    Region::of_file(&file, PAGE_SIZE as usize)?.set(0, 9);
    ensure_eq!(mapping.get(0), 9);
    ensure!(Region::of_file(&file, SIZE as usize + PAGE_SIZE as usize).is_err());
    // Reading and writing as a file are no operations of a dma-buf.
    ensure!(rustix::io::read(&file, &mut [0u8; 4]).is_err());
    ensure!(rustix::io::write(&file, &[0; 4]).is_err());
    Ok(())
}

fn each_allocation() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(
        &device,
        flags::RESOURCE,
        &[PAGE_SIZE, 3 * PAGE_SIZE, 2 * PAGE_SIZE],
    )
    .run()?;
    let mut seen = Vec::new();
    for (index, pages) in [1, 3, 2].into_iter().enumerate() {
        made.lock_nth(index)?.fill(index as u32);
        let file = export(made.raw(), made.allocations[index], 0)?;
        ensure_eq!(size(&file)?, pages * PAGE_SIZE);
        Region::of_file(&file, (pages * PAGE_SIZE) as usize)?.holds(index as u32)?;
        seen.push(identity(&file)?);
    }
    seen.dedup();
    ensure_eq!(seen.len(), 3);
    Ok(())
}

fn ask(allocation: u32, bits: u32) -> opendxg_export_dmabuf {
    let mut arg = opendxg_export_dmabuf::zeroed();
    (arg.allocation, arg.flags, arg.fd) = (allocation, bits, 77);
    arg
}

fn refusals() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device, flags::GLOBAL)?;
    let watch = Watch::start()?;
    let ip = Status::INVALID_PARAMETER;
    for handle in [
        0,
        1,
        u32::MAX,
        made.resource,
        made.global,
        made.device,
        made.first() | 2,
    ] {
        refused(&raw, &mut ask(handle, 0), ip).map_err(|error| format!("{handle:#x}: {error}"))?;
    }
    for bit in 1..32 {
        refused(&raw, &mut ask(made.first(), 1 << bit), ip)?;
    }
    let mut arg = ask(made.first(), 0);
    arg.reserved = 1;
    refused(&raw, &mut arg, ip)?;
    watch.unchanged()?;
    // An answer that cannot be written leaves no descriptor and no reference.
    let arg = ask(made.first(), 0);
    let page =
        selftests::memory::Page::beginning_with(selftests::poison::bytes(&arg))?.read_only()?;
    let code = opendxg::raw::code(opendxg_export_dmabuf::NR, opendxg_export_dmabuf::SIZE);
    ensure_eq!(raw.ioctl(code, page.address()), Err(Errno::FAULT));
    // Asking drops what is only kept for another export.
    ensure_eq!(query_local(&raw, made.resource)?.references, 1);
    watch.ends_clean()
}

fn one_reference() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = sample(&device, flags::RESOURCE)?;
    let count = |handle: u32| Ok::<_, selftests::Failure>(query_local(&raw, handle)?.references);
    ensure_eq!(count(made.resource)?, 1);
    let one = export(&raw, made.first(), 0)?;
    ensure_eq!((count(made.resource)?, count(made.first())?), (2, 2));
    let two = export(&raw, made.first(), 0)?;
    ensure_eq!(count(made.resource)?, 2, "the same dma-buf again");
    drop(one);
    ensure_eq!(count(made.resource)?, 2);
    let mapped = Region::of_file(&two, SIZE as usize)?;
    drop(two);
    ensure_eq!(count(made.resource)?, 2, "while it is mapped");
    drop(mapped);
    selftests::time::eventually("the reference is dropped", || {
        count(made.resource).is_ok_and(|count| count == 1)
    })
}

fn the_same_twice() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::NT)?;
    let nt = made.share()?;
    let file = export(made.raw(), made.first(), 0)?;
    let same = identity(&file)?;
    ensure_eq!(identity(export(made.raw(), made.first(), 0)?)?, same);
    in_child(|| {
        let device = fixture::device()?;
        let opened = OpenNt::new(&device, &nt)?.run()?;
        ensure_eq!(identity(export(opened.raw(), opened.first(), 0)?)?, same);
        Ok(())
    })?;
    // After the last one is closed a new one is made.
    drop(file);
    let again = export(made.raw(), made.first(), 0)?;
    made.lock()?.fill(4);
    Region::of_file(&again, SIZE as usize)?.holds(4)
}

fn read_only() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, flags::NT)?;
    made.lock()?.fill(3);
    let nt = share_raw(made.raw(), &[made.resource], READ_ACCESS, 0)?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let asked_for = export(made.raw(), made.first(), OPENDXG_EXPORT_READ_ONLY)?;
    let forced = export(opened.raw(), opened.first(), 0)?;
    for file in [&asked_for, &forced] {
        let mode = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE;
        ensure_eq!(mode, OFlags::RDONLY);
        let both = ProtFlags::READ | ProtFlags::WRITE;
        let more = MprotectFlags::READ | MprotectFlags::WRITE;
        ensure_eq!(
            Region::map(file, SIZE as usize, both).err(),
            Some(Errno::ACCESS)
        );
        let memory = Region::map(file, SIZE as usize, ProtFlags::READ)?;
        memory.holds(3)?;
        let start = memory.address() as usize as *mut _;
        // SAFETY: a mapping that nobody borrows from.
        let more = unsafe { rustix::mm::mprotect(start, SIZE as usize, more) };
        ensure_eq!(more, Err(Errno::ACCESS));
        // Nor does opening it anew help.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        ensure!(std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .is_err());
    }
    // The writer's is another one, and is not affected.
    let file = export(made.raw(), made.first(), 0)?;
    Region::of_file(&file, SIZE as usize)?.fill(5);
    Region::map(&forced, SIZE as usize, ProtFlags::READ)?.holds(5)
}

/// A path to `file`, which keeps its inode but not the file.
fn path_of(file: &impl AsRawFd) -> TestResult<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// A path keeps the inode of a dma-buf, and may be opened again as another file. What is exported
/// is the dma-buf all the same.
fn kept_by_a_path() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, 0)?;
    made.lock()?.fill(2);
    let file = export(made.raw(), made.first(), 0)?;
    let same = identity(&file)?;
    let mut kept = vec![path_of(&file)?];
    drop(file);
    for _ in 0..50 {
        // Where the file of the dma-buf was, if it was freed.
        kept.push(path_of(kept.last().unwrap_or(&kept[0]))?);
        let file = export(made.raw(), made.first(), 0)?;
        ensure_eq!(identity(&file)?, same);
        ensure!(!rustix::fs::fcntl_getfl(&file)?.contains(OFlags::PATH));
        Region::of_file(&file, SIZE as usize)?.holds(2)?;
    }
    Ok(())
}

/// The dma-buf stays the same one while there is a handle of the allocation, and for a handle of
/// an allocation that is made of it.
fn is_found_again() -> TestResult {
    let device = fixture::device()?;
    let made = sample(&device, 0)?;
    let file = export(made.raw(), made.first(), 0)?;
    let same = identity(&file)?;
    drop(file);
    let file = export(made.raw(), made.first(), 0)?;
    ensure_eq!(identity(&file)?, same, "with a handle only");
    made.destroy()?;
    let imported = Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run()?;
    let again = export(imported.raw(), imported.first(), 0)?;
    ensure_eq!(identity(&again)?, same, "by an allocation made of it");
    drop((file, again));
    ensure_eq!(
        identity(&export(imported.raw(), imported.first(), 0)?)?,
        same
    );
    Ok(())
}

/// A dma-buf that nobody has any more does not keep the memory, nor what is destroyed alone.
fn without_users() -> TestResult {
    let watch = Watch::start()?;
    let device = fixture::device()?;
    let made = sample(&device, flags::RESOURCE)?;
    for flags in [0, OPENDXG_EXPORT_READ_ONLY] {
        drop(export(made.raw(), made.first(), flags)?);
    }
    made.destroy()?;
    device.destroy()?;
    watch.ends_clean()
}

fn keeps_the_memory() -> TestResult {
    let watch = Watch::start()?;
    let device = fixture::device()?;
    let made = sample(&device, flags::RESOURCE)?;
    made.lock()?.fill(6);
    let file = export(made.raw(), made.first(), 0)?;
    let mapping = made.lock()?.leak();
    made.destroy()?;
    device.destroy()?;
    let memory = Region::of_file(&file, SIZE as usize)?;
    memory.holds(6)?;
    memory.fill(7);
    drop(file);
    memory.holds(7)?;
    // SAFETY: the mapping was revoked when the handles ended, or shows only the dma-buf now;
    // nobody uses it.
    unsafe { rustix::mm::munmap(mapping as usize as *mut _, SIZE as usize) }?;
    drop(memory);
    watch.ends_clean()
}

fn vgem_imports() -> TestResult {
    let vgem = Vgem::open()?;
    let device = fixture::device()?;
    let made = sample(&device, 0)?;
    let mapping = made.lock()?;
    mapping.fill(8);
    let file = export(made.raw(), made.first(), 0)?;
    let handle = vgem.import(&file)?;
    ensure_eq!(vgem.import(&file)?, handle, "the same buffer");
    // What vgem hands out is our dma-buf again, with our bytes.
    let again = vgem.export(handle)?;
    ensure_eq!(identity(&again)?, identity(&file)?);
    let memory = Region::of_file(&again, SIZE as usize)?;
    memory.holds(8)?;
    memory.fill(9);
    mapping.holds(9)?;
    vgem.close(handle)
}

fn pinned_while_attached() -> TestResult {
    let watch = Watch::start()?;
    let vgem = Vgem::open()?;
    let device = fixture::device()?;
    let made = sample(&device, flags::RESOURCE)?;
    made.lock()?.fill(1);
    let file = export(made.raw(), made.first(), 0)?;
    let handle = vgem.import(&file)?;
    drop(file);
    made.destroy()?;
    device.destroy()?;
    // Memory becomes scarce, and vgem still has the same pages.
    std::fs::write("/proc/sys/vm/drop_caches", "3")?;
    if let Ok(mut compact) = std::fs::File::create("/proc/sys/vm/compact_memory") {
        // Not in every kernel.
        std::io::Write::write_all(&mut compact, b"1")?;
    }
    let file = vgem.export(handle)?;
    Region::of_file(&file, SIZE as usize)?.holds(1)?;
    drop(file);
    vgem.close(handle)?;
    drop(vgem);
    watch.ends_clean()
}

fn while_destroyed() -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    for round in 0..rounds(200) {
        let (_, list) = sample(&device, 0)?.leak();
        crowd(3, |part| {
            let raw = fixture::raw()?;
            Dice::new(u64::from(round) * 3 + part as u64).dawdle();
            if part == 0 {
                let status = selftests::resource::destroy(&raw, device.handle().0, 0, &list, 0);
                ensure_eq!(status, Ok(Status::SUCCESS));
                return Ok(());
            }
            let mut arg = ask(list[0], 0);
            match raw.exec(&mut arg)? {
                Status::SUCCESS => {
                    // SAFETY: the call made the descriptor for us.
                    let file = unsafe { std::os::fd::FromRawFd::from_raw_fd(arg.fd) };
                    let file: std::os::fd::OwnedFd = file;
                    let memory = Region::of_file(&file, SIZE as usize)?;
                    memory.is_zero()
                }
                Status::INVALID_PARAMETER => Ok(()),
                other => Err(format!("{other}").into()),
            }
        })?;
    }
    watch.ends_clean()
}

fn killed() -> TestResult {
    let watch = Watch::start()?;
    for _ in 0..rounds(10) {
        let (here, there) = socket_pair()?;
        let child = Child::spawn(|| {
            let device = fixture::device()?;
            let made = sample(&device, 0)?;
            made.lock()?.fill(1);
            let file = export(made.raw(), made.first(), 0)?;
            send(there.as_fd(), &file)?;
            loop {
                drop(export(made.raw(), made.first(), 0)?);
            }
        })?;
        drop(there);
        let file = receive(&here)?;
        child.kill()?;
        Region::of_file(&file, SIZE as usize)?.holds(1)?;
    }
    watch.ends_clean()
}
