// SPDX-License-Identifier: MIT OR Apache-2.0
//! dma-bufs of each exporter that there is as allocations (RES-87 to RES-90). A buffer stays its
//! exporter's: unless engines use it, it is not attached; it is not mapped in the kernel, and
//! processors see it through the exporter's own mapping.

use std::any::Any;
use std::os::fd::OwnedFd;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::mm::MprotectFlags;
use selftests::call::refused;
use selftests::child::{in_child, Child, Gate};
use selftests::dma_buf::{
    export_sync_file, heap, identity, is_signalled, udmabuf, Card, Vgem, READ,
};
use selftests::leak::Watch;
use selftests::region::Region;
use selftests::resource::{
    destroy, export, flags, is_revoked, locked_again, slot, Create, OpenNt, OpenResource,
    PAGE_SIZE, READ_ACCESS,
};
use selftests::sharing::share_raw;
use selftests::test_device::{cannot, direction, TestDevice, Uses};
use selftests::{ensure, ensure_eq, fixture, skip, Suite, TestResult};

const PAGES: u32 = 8;
const SIZE: u64 = PAGES as u64 * PAGE_SIZE;

/// Somebody else's dma-buf, and what keeps it usable.
type Made = (OwnedFd, Box<dyn Any>);
type Maker = fn() -> TestResult<Made>;
/// A test with what a maker makes.
type Body = fn(Maker) -> TestResult;

const MAKERS: [(&str, Maker); 8] = [
    ("udmabuf", from_udmabuf),
    ("vgem", from_vgem),
    ("virtio-gpu", || from_card("virtio_gpu")),
    ("the system heap", || from_heap("system")),
    ("the CMA heap", || from_heap("default_cma_region")),
    ("a driver without vmap", || from_driver(cannot::VMAP)),
    ("a driver whose vmap fails", || {
        from_driver(cannot::VMAP_FAILS | cannot::ATTACH)
    }),
    ("a driver without faults", || {
        from_driver(cannot::VMAP | cannot::FAULT)
    }),
];

/// Adds the tests of this file.
pub(crate) fn tests(mut suite: Suite) -> Suite {
    let all: [(&str, Body); 7] = [
        ("RES-87 RES-88 RES-90 the same bytes both ways", both_ways),
        ("RES-87 the exporter is kept", kept),
        ("RES-87 RES-90 shared like any other allocation", shared),
        ("RES-86 exporting gives the buffer itself back", original),
        ("RES-86 exporting gives nobody more than it has", no_wider),
        ("RES-89 read-only for who may only read", read_only),
        ("RES-89 unlocked, destroyed, inherited", ends),
    ];
    for (exporter, make) in MAKERS {
        for (name, body) in all {
            suite = suite.test(format!("{name} ({exporter})"), move || body(make));
        }
    }
    suite
        .test(
            "RES-87 no attachment, no mapping but that of a lock",
            untouched,
        )
        .test(
            "RES-87 RES-89 a buffer that processors cannot reach",
            out_of_reach,
        )
        .test(
            "RES-87 RES-108 a read-only buffer is taken with ReadOnly",
            only_read_only,
        )
        .test(
            "RES-86 a device that writes gets no read-only dma-bufs",
            devices,
        )
}

fn from_udmabuf() -> TestResult<Made> {
    let (file, memory) = udmabuf(SIZE)?;
    Ok((file, Box::new(memory)))
}

fn from_vgem() -> TestResult<Made> {
    let vgem = Vgem::open()?;
    let handle = vgem.create(PAGES)?;
    let file = vgem.export(handle)?;
    Ok((file, Box::new(vgem)))
}

fn from_card(driver: &str) -> TestResult<Made> {
    let Some(card) = Card::of_driver(driver)? else {
        skip!("no card of {driver}");
    };
    let handle = card.create(PAGES)?;
    let file = card.export(handle)?;
    Ok((file, Box::new(card)))
}

fn from_heap(name: &str) -> TestResult<Made> {
    Ok((heap(name, SIZE)?, Box::new(())))
}

fn from_driver(flags: u32) -> TestResult<Made> {
    Ok((TestDevice::open()?.create(SIZE, flags)?, Box::new(())))
}

fn both_ways(make: Maker) -> TestResult {
    let (file, _keep) = make()?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(1);
    let device = fixture::device()?;
    for bits in [0, flags::RESOURCE, flags::GLOBAL] {
        let made = Create::section(&device, bits, slot(&file), SIZE).run()?;
        // Again, and in part: the same buffer.
        let again = Create::section(&device, bits, slot(&file), PAGE_SIZE).run()?;
        let ours = made.lock()?;
        ours.holds(1)?;
        ours.fill(2);
        theirs.holds(2)?;
        again.lock()?.set(5, 55);
        ensure_eq!(ours.get(5), 55);
        theirs.fill(1);
        ours.holds(1)?;
        ours.unlock()?;
        // No fence of the module comes into it.
        ensure!(is_signalled(export_sync_file(&file, READ)?)?);
        again.destroy()?;
        made.destroy()?;
    }
    Ok(())
}

fn kept(make: Maker) -> TestResult {
    let watch = Watch::start()?;
    let device = fixture::device()?;
    let (file, keep) = make()?;
    Region::of_file(&file, SIZE as usize)?.fill(5);
    let made = Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run()?;
    drop((file, keep));
    made.lock()?.holds(5)?;
    made.lock()?.fill(6);
    made.lock()?.holds(6)?;
    made.destroy()?;
    device.destroy()?;
    watch.ends_clean()
}

fn shared(make: Maker) -> TestResult {
    let device = fixture::device()?;
    let (file, _keep) = make()?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(7);
    let made = Create::section(&device, flags::NT, slot(&file), SIZE).run()?;
    let nt = made.share()?;
    let same = identity(&file)?;
    made.destroy()?;
    in_child(|| {
        let device = fixture::device()?;
        let opened = OpenNt::new(&device, &nt)?.run()?;
        opened.lock()?.holds(7)?;
        opened.lock()?.fill(8);
        // A user who has it in another interface knows it again.
        ensure_eq!(identity(export(opened.raw(), opened.first(), 0)?)?, same);
        opened.destroy()
    })?;
    theirs.holds(8)
}

fn original(make: Maker) -> TestResult {
    let device = fixture::device()?;
    let (file, keep) = make()?;
    let same = identity(&file)?;
    let made = Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run()?;
    let watch = Watch::start()?;
    let back = export(made.raw(), made.first(), 0)?;
    ensure_eq!(identity(&back)?, same);
    let more = export(made.raw(), made.first(), 0)?;
    ensure_eq!(identity(&more)?, same);
    drop((back, more));
    watch.unchanged()?;
    // It holds nothing of the module, and outlives the client.
    let back = export(made.raw(), made.first(), 0)?;
    made.destroy()?;
    drop((file, keep));
    let memory = Region::of_file(&back, SIZE as usize)?;
    memory.fill(9);
    memory.holds(9)
}

/// Demands that a dma-buf of the allocation is refused.
fn not_exported(made: &OpenResource, bits: u32) -> TestResult {
    let mut arg = opendxg_export_dmabuf::zeroed();
    (arg.allocation, arg.flags) = (made.first(), bits);
    refused(made.raw(), &mut arg, Status::ACCESS_DENIED)
}

fn no_wider(make: Maker) -> TestResult {
    let device = fixture::device()?;
    let (file, _keep) = make()?;
    // A part is not the whole.
    let part = Create::section(&device, 0, slot(&file), PAGE_SIZE).run()?;
    let whole = Create::section(&device, flags::NT, slot(&file), SIZE).run()?;
    let reading = Create::section(&device, flags::READ_ONLY, slot(&file), SIZE).run()?;
    let nt = share_raw(whole.raw(), &[whole.resource], READ_ACCESS, 0)?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let watch = Watch::start()?;
    not_exported(&part, 0)?;
    // Its descriptors are for writing.
    not_exported(&whole, OPENDXG_EXPORT_READ_ONLY)?;
    not_exported(&reading, 0)?;
    not_exported(&opened, 0)?;
    watch.unchanged()?;
    drop(export(whole.raw(), whole.first(), 0)?);
    Ok(())
}

/// Demands that a mapping cannot become writable.
fn stays_read_only(memory: &Region) -> TestResult {
    let start = memory.address() as usize as *mut _;
    for more in [
        MprotectFlags::READ | MprotectFlags::WRITE,
        MprotectFlags::READ | MprotectFlags::EXEC,
    ] {
        // SAFETY: a mapping that nobody borrows from.
        let changed = unsafe { rustix::mm::mprotect(start, memory.size(), more) };
        ensure_eq!(changed, Err(Errno::ACCESS));
    }
    Ok(())
}

fn read_only(make: Maker) -> TestResult {
    let device = fixture::device()?;
    let (file, _keep) = make()?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(3);
    let made = Create::section(&device, flags::NT, slot(&file), SIZE).run()?;
    let nt = share_raw(made.raw(), &[made.resource], READ_ACCESS, 0)?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    let reading = Create::section(&device, flags::READ_ONLY, slot(&file), SIZE).run()?;
    for open in [&opened, &reading] {
        let mapping = open.lock()?;
        mapping.holds(3)?;
        stays_read_only(&mapping)?;
        let address = mapping.leak();
        // Nor does it become so by its end.
        by_list(open)?;
        is_unwritable(address)?;
    }
    opened.leak();
    reading.leak();
    theirs.holds(3)
}

/// Writing there kills: a mapping for reading only, or one that was revoked.
fn is_unwritable(address: u64) -> TestResult {
    selftests::resource::no_core();
    Child::spawn(|| {
        // SAFETY: this process dies of it, or the test fails.
        let memory = unsafe { Region::adopt(address, PAGE_SIZE as usize) };
        memory.set(0, 1);
        core::mem::forget(memory);
        Ok(())
    })?
    .dies_of(libc::SIGSEGV)
}

fn by_list(made: &OpenResource) -> TestResult {
    let done = destroy(made.raw(), made.device, 0, &[made.first()], 0);
    ensure_eq!(done, Ok(Status::SUCCESS));
    Ok(())
}

/// Whether anything is mapped there.
fn is_mapped(address: u64) -> bool {
    // SAFETY: asks about an address, whatever is there.
    unsafe {
        libc::msync(
            address as usize as *mut _,
            PAGE_SIZE as usize,
            libc::MS_ASYNC,
        ) == 0
    }
}

fn ends(make: Maker) -> TestResult {
    let device = fixture::device()?;
    let (file, _keep) = make()?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(4);
    let import = || Create::section(&device, flags::RESOURCE, slot(&file), SIZE).run();
    // The last of two unlocks removes it.
    let made = import()?;
    let mapping = made.lock()?;
    let address = mapping.address();
    let (status, again) = locked_again(made.raw(), made.device, made.first())?;
    ensure_eq!((status, again), (Status::SUCCESS, address));
    let mut unlock = D3DKMT_UNLOCK2::zeroed();
    (unlock.hDevice, unlock.hAllocation) = (made.device, made.first());
    selftests::call::succeeds(made.raw(), &mut unlock)?;
    mapping.holds(4)?;
    mapping.unlock()?;
    ensure!(!is_mapped(address), "still mapped");
    made.destroy()?;
    // Destroyed while locked, in each way.
    let ways: [fn(OpenResource) -> TestResult; 2] = [OpenResource::destroy, |made| {
        by_list(&made)?;
        made.destroy()
    }];
    for way in ways {
        let made = import()?;
        let address = made.lock()?.leak();
        way(made)?;
        is_revoked(address)?;
        is_revoked(address + SIZE - PAGE_SIZE)?;
    }
    // Where the process has put something else meanwhile it stays.
    let made = import()?;
    let address = made.lock()?.leak();
    let own = Region::private(PAGE_SIZE as usize)?;
    own.fill(1);
    let place = (address + PAGE_SIZE) as usize as *mut _;
    let size = PAGE_SIZE as usize;
    let remap = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: replaces one page of the mapping by one of our own.
    let moved = unsafe {
        libc::mremap(
            own.into_address() as usize as *mut _,
            size,
            size,
            remap,
            place,
        )
    };
    ensure!(moved == place, "moved to {moved:?}");
    made.destroy()?;
    is_revoked(address)?;
    // SAFETY: our own page, at its new place.
    unsafe { Region::adopt(address + PAGE_SIZE, size) }.holds(1)?;
    is_revoked(address + 2 * PAGE_SIZE)?;
    // A child has the exporter's mapping, as if it had made it itself.
    let made = import()?;
    let mapping = made.lock()?;
    let go = Gate::new()?;
    let address = mapping.leak();
    let child = Child::spawn(|| {
        go.wait()?;
        // SAFETY: inherited.
        let memory = unsafe { Region::adopt(address, SIZE as usize) };
        memory.holds(6)
    })?;
    made.destroy()?;
    is_revoked(address)?;
    theirs.fill(6);
    go.open()?;
    child.join()
}

fn untouched() -> TestResult {
    let test = TestDevice::open()?;
    let file = test.create(SIZE, cannot::VMAP_FAILS)?;
    let device = fixture::device()?;
    let made = Create::section(&device, flags::NT, slot(&file), SIZE).run()?;
    let nt = made.share()?;
    let opened = OpenNt::new(&device, &nt)?.run()?;
    drop(export(made.raw(), made.first(), 0)?);
    ensure_eq!(test.uses(&file)?, Uses::default());
    let locks = [made.lock()?, made.lock()?, opened.lock()?];
    let mut expected = Uses::default();
    (expected.mmapped, expected.begun) = (2, 2);
    ensure_eq!(test.uses(&file)?, expected);
    for lock in locks {
        lock.unlock()?;
    }
    expected.ended = 2;
    ensure_eq!(test.uses(&file)?, expected);
    Ok(())
}

fn out_of_reach() -> TestResult {
    let test = TestDevice::open()?;
    let file = test.create(SIZE, cannot::VMAP | cannot::MMAP)?;
    let device = fixture::device()?;
    let made = Create::section(&device, 0, slot(&file), SIZE).run()?;
    let mut lock = D3DKMT_LOCK2::zeroed();
    (lock.hDevice, lock.hAllocation) = (made.device, made.first());
    refused(made.raw(), &mut lock, Status::INVALID_PARAMETER)?;
    let uses = test.uses(&file)?;
    ensure!(uses.begun > 0 && uses.begun == uses.ended, "{uses:?}");
    let back = export(made.raw(), made.first(), 0)?;
    ensure_eq!(identity(&back)?, identity(&file)?);
    Ok(())
}

fn only_read_only() -> TestResult {
    let file = TestDevice::open()?.create(SIZE, cannot::VMAP | cannot::WRITE)?;
    let device = fixture::device()?;
    Create::section(&device, 0, slot(&file), SIZE).is_refused(Status::ACCESS_DENIED)?;
    let made = Create::section(&device, flags::READ_ONLY, slot(&file), SIZE).run()?;
    stays_read_only(&*made.lock()?)?;
    let back = export(made.raw(), made.first(), 0)?;
    ensure_eq!(identity(&back)?, identity(&file)?);
    let mode = rustix::fs::fcntl_getfl(&back)? & OFlags::RWMODE;
    ensure_eq!(mode, OFlags::RDONLY);
    Ok(())
}

fn devices() -> TestResult {
    let test = TestDevice::open()?;
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[SIZE]).run()?;
    let reading = export(made.raw(), made.first(), OPENDXG_EXPORT_READ_ONLY)?;
    ensure_eq!(test.import(&reading, direction::READS), Ok(()));
    for wrong in [direction::BOTH, direction::WRITES] {
        ensure_eq!(test.import(&reading, wrong), Err(Errno::ACCESS));
    }
    let writing = export(made.raw(), made.first(), 0)?;
    for any in [direction::BOTH, direction::READS, direction::WRITES] {
        ensure_eq!(test.import(&writing, any), Ok(()));
    }
    Ok(())
}
