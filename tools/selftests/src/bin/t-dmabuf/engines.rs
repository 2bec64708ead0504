// SPDX-License-Identifier: MIT OR Apache-2.0
//! dma-bufs of other drivers that engines use (RES-87): attached while they are resident.

use std::any::Any;
use std::os::fd::OwnedFd;

use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, AllocationFlags, EvictFlags, ExecutionState, GpuMap, Residency, ResidentFlags,
    Status,
};
use selftests::dma_buf::{heap, udmabuf, Vgem};
use selftests::gpu::{reaches, Gpu, PAGE, READ_WRITE};
use selftests::region::Region;
use selftests::test_device::{cannot, TestDevice};
use selftests::{ensure_eq, fails_with, Suite, TestResult};

const PAGES: u32 = 8;
const SIZE: u64 = PAGES as u64 * PAGE;

/// Somebody else's dma-buf, and what keeps it usable.
type Made = (OwnedFd, Box<dyn Any>);

/// Makes one.
type Maker = fn() -> TestResult<Made>;

const MAKERS: [(&str, Maker); 4] = [
    ("udmabuf", || {
        let (file, memory) = udmabuf(SIZE)?;
        Ok((file, Box::new(memory)))
    }),
    ("vgem", || {
        let vgem = Vgem::open()?;
        let file = vgem.export(vgem.create(PAGES)?)?;
        Ok((file, Box::new(vgem)))
    }),
    ("the system heap", || {
        Ok((heap("system", SIZE)?, Box::new(())))
    }),
    ("a driver without vmap", || {
        let file = TestDevice::open()?.create(SIZE, cannot::VMAP)?;
        Ok((file, Box::new(())))
    }),
];

/// Adds the tests of this file.
pub(crate) fn tests(mut suite: Suite) -> Suite {
    for (exporter, make) in MAKERS {
        suite = suite.test(
            format!("RES-87 MEM-20 engines use the bytes of others ({exporter})"),
            move || both_ways(make),
        );
    }
    suite
        .test(
            "RES-87 MEM-17 attached while it is resident, and only then",
            attached,
        )
        .test(
            "RES-87 RES-108 engines only read what is read-only",
            read_only,
        )
        .test(
            "RES-87 MEM-20 a buffer that nobody can be attached to",
            refused,
        )
}

fn import(gpu: &Gpu, file: &OwnedFd, flags: AllocationFlags) -> TestResult<Allocation> {
    let resource = gpu.device().new_resource();
    Ok(resource
        .existing_section(file, SIZE)
        .flags(flags)
        .create_one()?)
}

fn resident(gpu: &Gpu, allocation: &Allocation) -> TestResult {
    let flags = ResidentFlags::empty();
    let resident = gpu.paging().make_resident(&[allocation], flags)?;
    reaches(gpu.paging().fence(), resident.value()?)
}

/// Maps an allocation; returns its address.
fn map(gpu: &Gpu, allocation: &Allocation, map: &GpuMap) -> TestResult<u64> {
    let range = gpu.paging().map(Some(allocation), map)?;
    reaches(gpu.paging().fence(), range.value)?;
    Ok(range.address)
}

const WRITABLE: GpuMap = GpuMap {
    base: 0,
    minimum: 0,
    maximum: 0,
    first_page: 0,
    pages: PAGES as u64,
    protection: READ_WRITE,
    driver_protection: 0,
};

fn both_ways(make: fn() -> TestResult<Made>) -> TestResult {
    let (file, _keep) = make()?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(1);
    let gpu = Gpu::new()?;
    let ours = import(&gpu, &file, AllocationFlags::empty())?;
    let address = map(&gpu, &ours, &WRITABLE)?;
    let copy = gpu.buffer(SIZE)?;
    for round in 0..3 {
        resident(&gpu, &ours)?;
        ensure_eq!(ours.residency()?, Residency::SharedMemory);
        gpu.run(&Pm4::new().copy(copy.address(), address, SIZE))?;
        for at in (0..SIZE).step_by(512) {
            ensure_eq!(copy.get32(at), theirs.word(at as usize));
        }
        gpu.run(&Pm4::new().fill(address, 0x1000 + round, SIZE))?;
        for at in (0..SIZE).step_by(512) {
            ensure_eq!(theirs.word(at as usize), 0x1000 + round);
        }
        theirs.fill(round);
        gpu.device().evict(&[&ours], EvictFlags::empty())?;
        ensure_eq!(ours.residency()?, Residency::NotResident);
    }
    // Who uses it now faults, like everybody else.
    let read = Pm4::new().move32(copy.address(), address);
    gpu.fails(&read, ExecutionState::DmaPageFault)
}

/// By eviction, by the end of the handle, and by that of the device.
fn attached() -> TestResult {
    let driver = TestDevice::open()?;
    let file = driver.create(SIZE, cannot::VMAP)?;
    let uses = || -> TestResult<(u32, u32)> {
        let uses = driver.uses(&file)?;
        Ok((uses.attached - uses.detached, uses.mapped - uses.unmapped))
    };
    for end in 0..3 {
        let gpu = Gpu::new()?;
        let ours = import(&gpu, &file, AllocationFlags::empty())?;
        let address = map(&gpu, &ours, &WRITABLE)?;
        ensure_eq!(uses()?, (0, 0));
        resident(&gpu, &ours)?;
        resident(&gpu, &ours)?;
        ensure_eq!(uses()?, (1, 1));
        gpu.run(&Pm4::new().write(address, &[1]))?;
        gpu.device().evict(&[&ours], EvictFlags::empty())?;
        ensure_eq!(uses()?, (1, 1));
        match end {
            0 => {
                gpu.device().evict(&[&ours], EvictFlags::empty())?;
                ensure_eq!(uses()?, (0, 0));
            }
            1 => ours.destroy()?,
            _ => {
                drop(gpu);
                drop(ours);
            }
        }
        ensure_eq!(uses()?, (0, 0), "{end}");
    }
    Ok(())
}

fn read_only() -> TestResult {
    let (file, _keep) = udmabuf(SIZE)?;
    let theirs = Region::of_file(&file, SIZE as usize)?;
    theirs.fill(3);
    let gpu = Gpu::new()?;
    let ours = import(&gpu, &file, AllocationFlags::READ_ONLY)?;
    fails_with(
        gpu.paging().map(Some(&ours), &WRITABLE),
        Status::ACCESS_DENIED,
    )?;
    let readable = GpuMap {
        protection: Default::default(),
        ..WRITABLE
    };
    let address = map(&gpu, &ours, &readable)?;
    let copy = gpu.buffer(SIZE)?;
    resident(&gpu, &ours)?;
    gpu.run(&Pm4::new().copy(copy.address(), address, SIZE))?;
    ensure_eq!(copy.get32(0), theirs.word(0));
    gpu.fails(
        &Pm4::new().write(address, &[4]),
        ExecutionState::DmaPageFault,
    )?;
    theirs.holds(3)
}

fn refused() -> TestResult {
    let driver = TestDevice::open()?;
    let file = driver.create(SIZE, cannot::ATTACH)?;
    let gpu = Gpu::new()?;
    let ours = import(&gpu, &file, AllocationFlags::empty())?;
    map(&gpu, &ours, &WRITABLE)?;
    for _ in 0..2 {
        let flags = ResidentFlags::empty();
        fails_with(
            gpu.paging().make_resident(&[&ours], flags),
            Status::INVALID_PARAMETER,
        )?;
        // Nothing of it has counted.
        fails_with(
            gpu.device().evict(&[&ours], EvictFlags::empty()),
            Status::INVALID_PARAMETER,
        )?;
    }
    // It was asked, and has refused.
    let uses = driver.uses(&file)?;
    ensure_eq!((uses.attached, uses.mapped), (2, 0));
    gpu.works()
}
