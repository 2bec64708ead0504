// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may be destroyed together, and that a refusal destroys nothing (RES-28 to RES-30).

use std::sync::atomic::{AtomicU32, Ordering};

use opendxg::uapi::*;
use opendxg::{Device, Status};
use selftests::call::{refused, succeeds};
use selftests::leak::Watch;
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::resource::{
    destroy, destruction, flags, locked_again, Create, OpenResource, PAGE_SIZE,
};
use selftests::rounds::{crowd, rounds, Dice};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

const OK: Status = Status::SUCCESS;
const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-28 nothing at all is a success", nothing)
        .test(
            "RES-28 a count without a list, lists that cannot be read",
            no_list,
        )
        .test("RES-28 bad, repeated and dead handles", bad_handles)
        .test("RES-28 allocation, then resource, then nothing", one_by_one)
        .test(
            "RES-28 the resource takes its allocations along",
            by_resource,
        )
        .test("RES-28 with a resource the list is ignored", list_ignored)
        .test("RES-28 allocations of two resources", two_resources)
        .test("RES-28 devices that are none", bad_devices)
        .test("RES-29 a call that fails destroys nothing", all_or_nothing)
        .test(
            "RES-29 RES-110 overlapping lists: each handle exactly once",
            overlapping,
        )
        .test("RES-30 AssumeNotInUse and SynchronousDestroy", kinds)
        .test("RES-30 flags that are refused", bad_flags)
}

fn page_allocation(device: &Device) -> TestResult<OpenResource> {
    Create::sized(device, 0, &[PAGE_SIZE]).run()
}

fn nothing() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    succeeds(&raw, &mut destruction(device.handle().0, 0, &[], 0))?;
    let mut arg = destruction(device.handle().0, 0, &[], 0);
    arg.phAllocationList = UNMAPPED;
    succeeds(&raw, &mut arg)
}

fn no_list() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = page_allocation(&device)?;
    for count in [1, 2, u32::MAX] {
        let mut arg = destruction(device.handle().0, 0, &[], 0);
        arg.AllocationCount = count;
        refused(&raw, &mut arg, IP)?;
    }
    for count in [4097, 1 << 30, u32::MAX] {
        let mut arg = destruction(device.handle().0, 0, &made.allocations, 0);
        arg.AllocationCount = count;
        refused(&raw, &mut arg, IP)?;
    }
    let cut = Page::ending_with(&made.first().to_ne_bytes())?;
    for (address, count) in [(UNMAPPED, 1), (KERNEL_HALF, 1), (cut.end() - 4, 2)] {
        let mut arg = destruction(device.handle().0, 0, &[], 0);
        (arg.phAllocationList, arg.AllocationCount) = (address, count);
        refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    }
    made.lock()?.set(0, 1);
    made.destroy()
}

fn bad_handles() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]).run()?;
    let alone = page_allocation(&device)?;
    let dead = page_allocation(&device)?;
    let dead_handle = dead.first();
    dead.destroy()?;
    let strangers = [
        0,
        1,
        u32::MAX,
        dead_handle,
        made.global,
        device.handle().0,
        alone.first() | 2,
    ];
    for handle in strangers.into_iter().chain([made.resource]) {
        refused(
            &raw,
            &mut destruction(device.handle().0, 0, &[handle], 0),
            IP,
        )
        .map_err(|error| format!("allocation {handle:#x}: {error}"))?;
    }
    for handle in strangers.into_iter().chain([made.first(), alone.first()]) {
        if handle != 0 {
            refused(
                &raw,
                &mut destruction(device.handle().0, handle, &[], 0),
                IP,
            )
            .map_err(|error| format!("resource {handle:#x}: {error}"))?;
        }
    }
    let twice = [alone.first(), alone.first()];
    refused(&raw, &mut destruction(device.handle().0, 0, &twice, 0), IP)?;
    alone.lock()?.set(0, 1);
    Ok(())
}

fn one_by_one() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    let device = made.device;
    let (resource, list) = made.leak();
    ensure_eq!(destroy(&raw, device, 0, &list, 0), Ok(OK));
    ensure_eq!(
        destroy(&raw, device, 0, &list, 0),
        Ok(IP),
        "the allocation again"
    );
    ensure_eq!(destroy(&raw, device, resource, &[], 0), Ok(OK));
    ensure_eq!(
        destroy(&raw, device, resource, &[], 0),
        Ok(IP),
        "the resource again"
    );
    Ok(())
}

fn by_resource() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    for bits in [flags::RESOURCE, flags::GLOBAL, flags::NT] {
        let made = Create::sized(&device, bits, &[PAGE_SIZE; 3]).run()?;
        let (resource, list) = made.leak();
        let device = device.handle().0;
        ensure_eq!(destroy(&raw, device, resource, &[], 0), Ok(OK));
        ensure_eq!(destroy(&raw, device, resource, &[], 0), Ok(IP));
        for handle in list {
            ensure_eq!(destroy(&raw, device, 0, &[handle], 0), Ok(IP));
            ensure_eq!(
                locked_again(&raw, device, handle).map(|(status, _)| status),
                Ok(IP)
            );
        }
    }
    Ok(())
}

fn list_ignored() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let other = page_allocation(&device)?;
    for (list, count) in [
        (UNMAPPED, 5),
        (0, u32::MAX),
        (other.allocations.as_ptr() as u64, 1),
    ] {
        let (resource, _) = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE])
            .run()?
            .leak();
        let mut arg = destruction(device.handle().0, resource, &[], 0);
        (arg.phAllocationList, arg.AllocationCount) = (list, count);
        succeeds(&raw, &mut arg)?;
    }
    other.lock()?.set(0, 1);
    other.destroy()
}

fn two_resources() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let one = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE; 2]).run()?;
    let two = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE; 2]).run()?;
    let alone = page_allocation(&device)?;
    let device = device.handle().0;
    for list in [
        vec![one.allocations[0], two.allocations[0]],
        vec![one.allocations[0], one.allocations[1], two.allocations[1]],
        vec![alone.first(), one.allocations[0], two.allocations[0]],
    ] {
        refused(&raw, &mut destruction(device, 0, &list, 0), IP)?;
    }
    for index in 0..2 {
        one.lock_nth(index)?.set(0, 1);
        two.lock_nth(index)?.set(0, 1);
    }
    // Of one resource, beside one that belongs to none.
    let list = [one.allocations[1], alone.first(), one.allocations[0]];
    ensure_eq!(destroy(&raw, device, 0, &list, 0), Ok(OK));
    alone.leak();
    let (resource, _) = one.leak();
    ensure_eq!(destroy(&raw, device, resource, &[], 0), Ok(OK));
    two.destroy()
}

fn bad_devices() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    let adapter = device.adapter().handle().0;
    for handle in [
        0,
        1,
        u32::MAX,
        adapter,
        made.resource,
        made.first(),
        device.handle().0 | 2,
    ] {
        refused(&raw, &mut destruction(handle, made.resource, &[], 0), IP)?;
        refused(&raw, &mut destruction(handle, 0, &made.allocations, 0), IP)?;
        refused(&raw, &mut destruction(handle, 0, &[], 0), IP)?;
    }
    made.lock()?.set(0, 1);
    made.destroy()
}

fn all_or_nothing() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let (first, last) = (page_allocation(&device)?, page_allocation(&device)?);
    first.lock()?.fill(1);
    last.lock()?.fill(2);
    let watch = Watch::start()?;
    for bad in [0, 1, u32::MAX, device.handle().0, first.first() + 0x40_0000] {
        for list in [
            [first.first(), bad, last.first()],
            [bad, first.first(), last.first()],
            [first.first(), last.first(), bad],
        ] {
            refused(&raw, &mut destruction(device.handle().0, 0, &list, 0), IP)?;
        }
    }
    watch.unchanged()?;
    first.lock()?.holds(1)?;
    last.lock()?.holds(2)?;
    first.destroy()?;
    last.destroy()
}

fn overlapping() -> TestResult {
    const THREADS: usize = 3;
    const COUNT: usize = 9;
    let device = fixture::device()?;
    for round in 0..rounds(200) {
        let (_, handles) = Create::sized(&device, 0, &[PAGE_SIZE; COUNT]).run()?.leak();
        let destroyed: [AtomicU32; COUNT] = Default::default();
        crowd(THREADS, |part| {
            let raw = fixture::raw()?;
            let mut dice = Dice::new(u64::from(round) * 3 + part as u64);
            // Lists of neighbours, different in each thread, each going round once.
            for step in 0..COUNT {
                let start = (step * (part + 1) + part) % COUNT;
                let indexes: Vec<usize> = (0..=part).map(|next| (start + next) % COUNT).collect();
                let list: Vec<u32> = indexes.iter().map(|&index| handles[index]).collect();
                dice.dawdle();
                match destroy(&raw, device.handle().0, 0, &list, 0) {
                    Ok(OK) => {
                        for index in indexes {
                            destroyed[index].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    Ok(IP) => {}
                    other => return Err(format!("{other:?}").into()),
                }
            }
            Ok(())
        })?;
        let raw = fixture::raw()?;
        for (index, &handle) in handles.iter().enumerate() {
            let times = destroyed[index].load(Ordering::Relaxed);
            let last = destroy(&raw, device.handle().0, 0, &[handle], 0);
            ensure!(times <= 1, "destroyed {times} times");
            ensure_eq!(last, Ok(if times == 1 { IP } else { OK }));
        }
    }
    Ok(())
}

fn kinds() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let watch = Watch::start()?;
    const NOT_IN_USE: u32 = D3DDDICB_DESTROYALLOCATION2FLAGS_AssumeNotInUse;
    const SYNCHRONOUS: u32 = D3DDDICB_DESTROYALLOCATION2FLAGS_SynchronousDestroy;
    for bits in [0, NOT_IN_USE, SYNCHRONOUS, NOT_IN_USE | SYNCHRONOUS] {
        let (_, list) = Create::sized(&device, 0, &[PAGE_SIZE; 2]).run()?.leak();
        ensure_eq!(destroy(&raw, device.handle().0, 0, &list, bits), Ok(OK));
        ensure_eq!(
            destroy(&raw, device.handle().0, 0, &list[..1], 0),
            Ok(IP),
            "dead on return"
        );
        let (resource, _) = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE])
            .run()?
            .leak();
        ensure_eq!(
            destroy(&raw, device.handle().0, resource, &[], bits),
            Ok(OK)
        );
        ensure_eq!(
            destroy(&raw, device.handle().0, resource, &[], bits),
            Ok(IP),
            "dead on return"
        );
        if bits & SYNCHRONOUS != 0 {
            watch.unchanged()?;
        }
    }
    Ok(())
}

fn bad_flags() -> TestResult {
    let device = fixture::device()?;
    let raw = fixture::raw()?;
    let made = page_allocation(&device)?;
    for bit in 2..32 {
        refused(
            &raw,
            &mut destruction(device.handle().0, 0, &made.allocations, 1 << bit),
            IP,
        )?;
        refused(
            &raw,
            &mut destruction(device.handle().0, 0, &[], 1 << bit),
            IP,
        )?;
    }
    made.lock()?.set(0, 1);
    made.destroy()
}
