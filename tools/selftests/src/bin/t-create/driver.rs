// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private driver data and private runtime data (RES-23, RES-26), allocations added later
//! (RES-24), all or nothing (RES-25).

use std::sync::atomic::{AtomicU32, Ordering};

use opendxg::uapi::*;
use opendxg::Status;
use selftests::leak::Watch;
use selftests::poison::POISON;
use selftests::region::Region;
use selftests::resource::{
    destroy, driver_data, flags, query_global, query_nt, Create, OpenGlobal, OpenNt, PAGE_SIZE,
};
use selftests::rounds::{crowd, is_brief, rounds};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-23 the driver's refusal is passed on", driver_refuses)
        .test(
            "RES-23 a resource without allocations, but not nothing at all",
            empty,
        )
        .test("RES-24 allocations are added to a resource", added)
        .test(
            "RES-24 nothing is added to a shared resource",
            not_to_shared,
        )
        .test(
            "RES-24 nothing is added to a resource of another device",
            other_device,
        )
        .test(
            "RES-24 RES-28 allocations are added while the resource is destroyed",
            added_too_late,
        )
        .test(
            "RES-25 one bad allocation among many undoes all",
            all_or_nothing,
        )
        .test("RES-26 data are copied when the resource is made", copied)
        .test(
            "RES-26 runtime data without a resource are dropped",
            dropped,
        )
        .test("RES-26 the driver data of a standard allocation", standard)
        .test(
            "RES-26 driver data given with a standard allocation are not looked at",
            standard_ignores,
        )
        .test("RES-26 RES-25 the largest runtime data", largest)
}

/// Makes driver data wrong.
type Spoil = fn(&mut opendxg_allocation_data);

fn driver_refuses() -> TestResult {
    let device = fixture::device()?;
    let spoilt: [(&str, Spoil); 9] = [
        ("magic", |data| data.magic += 1),
        ("version 0", |data| data.version = 0),
        ("version 2", |data| data.version = 2),
        ("size 0", |data| data.size = 0),
        ("size 100", |data| data.size = 100),
        ("alignment 3", |data| data.alignment = 3),
        ("alignment 128 KiB", |data| data.alignment = 0x2_0000),
        ("flags", |data| data.flags = 4),
        ("reserved", |data| data.reserved = 1),
    ];
    let watch = Watch::start()?;
    for (what, spoil) in spoilt {
        let mut create = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]);
        spoil(&mut create.driver[0]);
        create
            .is_refused(IP)
            .map_err(|error| format!("{what}: {error}"))?;
    }
    for (size, status) in [(u64::MAX & !0xfff, IP), (1 << 60, Status::NO_MEMORY)] {
        Create::sized(&device, flags::RESOURCE, &[size])
            .is_refused(status)
            .map_err(|error| format!("{size:#x} bytes: {error}"))?;
    }
    // No driver data, too few, NULL.
    let mut create = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]);
    for (address, size, status) in [
        (0, 0, IP),
        (0, 48, Status::ACCESS_VIOLATION),
        (1, 0, IP),
        (1, 47, IP),
        (1, 8, IP),
    ] {
        let mut arg = create.argument();
        let info = &mut create.infos[0];
        info.pPrivateDriverData *= address;
        info.PrivateDriverDataSize = size;
        create
            .is_refused_with(&mut arg, status)
            .map_err(|error| format!("{size} bytes: {error}"))?;
    }
    for (index, reserved) in [(0, 1), (4, u64::MAX)] {
        let mut create = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]);
        create.infos[0].Reserved[index] = reserved;
        create.is_refused(IP)?;
    }
    let mut create = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]);
    create.infos[0].Flags = 8;
    create.is_refused(IP)?;
    watch.unchanged()?;
    for alignment in [0, 1, 4096, 0x1_0000] {
        let mut create = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]);
        create.driver[0].alignment = alignment;
        create.run()?.destroy()?;
    }
    Ok(())
}

fn empty() -> TestResult {
    let device = fixture::device()?;
    Create::sized(&device, 0, &[]).is_refused(IP)?;
    let before = fixture::next_handle()?;
    let made = Create::sized(&device, flags::GLOBAL, &[]).run()?;
    ensure_eq!(made.resource, before);
    ensure_eq!(query_global(&device, made.global)?.allocations, 0);
    made.destroy()
}

fn added() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    let mut create = Create::sized(&device, 0, &[2 * PAGE_SIZE, PAGE_SIZE]);
    create.resource = made.resource;
    let before = fixture::next_handle()?;
    let mut arg = create.argument();
    let more = create.run_argument(&mut arg)?;
    ensure_eq!(arg.hResource, made.resource, "hResource");
    ensure_eq!(more.allocations, [before, before + 0x40]);
    more.lock_nth(0)?.fill(3);
    more.lock_nth(0)?.holds(3)?;
    // They are part of the resource: destroying it destroys them.
    let (_, more) = more.leak();
    let (raw, device_handle) = (fixture::raw()?, made.device);
    made.destroy()?;
    for allocation in more {
        ensure_eq!(destroy(&raw, device_handle, 0, &[allocation], 0), Ok(IP));
    }
    Ok(())
}

fn not_to_shared() -> TestResult {
    let device = fixture::device()?;
    for bits in [flags::GLOBAL, flags::NT] {
        let made = Create::sized(&device, bits, &[PAGE_SIZE]).run()?;
        let mut create = Create::sized(&device, 0, &[PAGE_SIZE]);
        create.resource = made.resource;
        create.is_refused(IP)?;
        made.destroy()?;
    }
    Ok(())
}

fn other_device() -> TestResult {
    let (device, other) = (fixture::device()?, fixture::device()?);
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    let mut create = Create::sized(&other, 0, &[PAGE_SIZE]);
    create.resource = made.resource;
    create.is_refused(IP)?;
    made.destroy()
}

fn added_too_late() -> TestResult {
    let device = fixture::device()?;
    let (raw, owner) = (fixture::raw()?, device.handle().0);
    let watch = Watch::start()?;
    let mut added = 0;
    // When the resource is destroyed: sooner after an addition, later after a refusal, so that the
    // two meet.
    let mut moment = 1000u32;
    for _ in 0..rounds(300) {
        let (resource, _) = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE])
            .run()?
            .leak();
        let late = AtomicU32::new(0);
        crowd(2, |part| {
            if part == 1 {
                (0..moment).for_each(|_| core::hint::spin_loop());
                let destroyed = destroy(&raw, owner, resource, &[], 0);
                ensure_eq!(destroyed, Ok(Status::SUCCESS));
                return Ok(());
            }
            let mut create = Create::sized(&device, 0, &[PAGE_SIZE; 8]);
            create.resource = resource;
            match raw.exec(&mut create.argument()) {
                Ok(Status::SUCCESS) => late.store(create.infos[0].hAllocation, Ordering::Relaxed),
                Ok(Status::INVALID_HANDLE | IP) => {}
                other => return Err(format!("{other:?}").into()),
            }
            Ok(())
        })?;
        let late = late.into_inner();
        if late == 0 {
            moment += moment / 16 + 1;
            continue;
        }
        added += 1;
        moment -= moment / 16;
        // It went with the resource.
        ensure_eq!(destroy(&raw, owner, 0, &[late], 0), Ok(IP));
    }
    println!("# {added} additions came first");
    watch.unchanged()
}

fn all_or_nothing() -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    let before = fixture::next_handle()?;
    for bad in [0, 1, 7, 15] {
        for bits in [0, flags::RESOURCE, flags::GLOBAL] {
            let mut create = Create::sized(&device, bits, &[4 * PAGE_SIZE; 16]);
            create.driver[bad].version = 9;
            create.is_refused(IP)?;
        }
    }
    watch.unchanged()?;
    ensure_eq!(fixture::next_handle()?, before + 0x40);
    Ok(())
}

fn copied() -> TestResult {
    let device = fixture::device()?;
    let runtime: Vec<u8> = (0..0x68).collect();
    let mut create =
        Create::sized(&device, flags::NT, &[PAGE_SIZE, 3 * PAGE_SIZE]).with_runtime(&runtime);
    create.driver[1].width = 17;
    let mut arg = create.argument();
    let made = create.run_argument(&mut arg)?;
    // Changes after the call are not seen.
    create.runtime.fill(0xff);
    create.driver[1].width = 99;
    let nt = made.share()?;
    let shape = query_nt(&device, &nt)?;
    ensure_eq!((shape.runtime, shape.allocations), (0x68, 2));
    ensure_eq!(shape.total, 2 * size_of::<opendxg_allocation_data>() as u32);
    let mut open = OpenNt::new(&device, &nt)?;
    let opened = open.run()?;
    ensure_eq!(open.buffers.runtime, runtime);
    let widths = [0, 1].map(|index| described(open.buffers.driver_data(index)));
    ensure_eq!(widths.map(|data| data.width), [PAGE_SIZE, 17]);
    ensure_eq!(widths.map(|data| data.size), [PAGE_SIZE, 3 * PAGE_SIZE]);
    opened.destroy()
}

fn dropped() -> TestResult {
    let device = fixture::device()?;
    let made = Create::sized(&device, 0, &[PAGE_SIZE])
        .with_runtime(&[1; 100])
        .run()?;
    ensure_eq!((made.resource, made.global), (0, 0));
    made.destroy()
}

fn standard() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(0x5000)?;
    let made = Create::over(&device, flags::GLOBAL, memory.address(), 0x5000).run()?;
    let shape = query_global(&device, made.global)?;
    ensure!(shape.total > 0 && shape.total < 0x400, "{shape:?}");
    ensure_eq!(
        (shape.runtime, shape.resource_driver, shape.allocations),
        (0, 0, 1)
    );
    let mut open = OpenGlobal::new(&device, made.global)?;
    let opened = open.run()?;
    let data = described(open.buffers.driver_data(0));
    ensure_eq!(data.magic, OPENDXG_ALLOCATION_MAGIC);
    ensure_eq!(
        (data.width, data.height, data.pitch, data.size),
        (0x5000, 1, 0x5000, 0x5000)
    );
    opened.destroy()?;
    made.destroy()
}

/// Six bytes of anything, or an address that leads nowhere: the core's own description is what
/// peers get.
fn standard_ignores() -> TestResult {
    let device = fixture::device()?;
    let memory = Region::private(PAGE_SIZE as usize)?;
    let junk = [0xee_u8; 6];
    for address in [junk.as_ptr() as u64, selftests::memory::UNMAPPED, 0] {
        for mut create in [
            Create::over(&device, flags::NT, memory.address(), PAGE_SIZE),
            Create::cross_adapter(&device, flags::NT, PAGE_SIZE),
        ] {
            let mut arg = create.argument();
            create.infos[0].pPrivateDriverData = address;
            create.infos[0].PrivateDriverDataSize = junk.len() as u32;
            let made = create.run_argument(&mut arg)?;
            let nt = made.share()?;
            let mut open = OpenNt::new(&device, &nt)?;
            let opened = open.run()?;
            let data = described(open.buffers.driver_data(0));
            ensure_eq!(
                (data.magic, data.size),
                (OPENDXG_ALLOCATION_MAGIC, PAGE_SIZE)
            );
            opened.destroy()?;
            made.destroy()?;
        }
    }
    ensure_eq!(junk, [0xee; 6]);
    Ok(())
}

fn described(bytes: TestResult<&[u8]>) -> opendxg_allocation_data {
    let wrong = driver_data(u64::from(POISON));
    let Ok(bytes) = bytes else { return wrong };
    if bytes.len() != size_of::<opendxg_allocation_data>() {
        return wrong;
    }
    // SAFETY: a struct of integers, of this size.
    unsafe {
        bytes
            .as_ptr()
            .cast::<opendxg_allocation_data>()
            .read_unaligned()
    }
}

fn largest() -> TestResult {
    let device = fixture::device()?;
    let runtime = vec![0x5a; 64 << 10];
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE])
        .with_runtime(&runtime)
        .run()?;
    let mut open = OpenGlobal::new(&device, made.global)?;
    open.run()?.destroy()?;
    ensure!(open.buffers.runtime == runtime, "64 KiB of runtime data");
    made.destroy()?;
    let sizes = vec![PAGE_SIZE; if is_brief() { 512 } else { 4096 }];
    Create::sized(&device, flags::RESOURCE, &sizes)
        .run()?
        .destroy()
}
