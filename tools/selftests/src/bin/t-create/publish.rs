// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing is to be had before the caller has its answer (RES-3), and everything is read once
//! (RES-5).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use opendxg::raw::{code, Argument, Raw};
use opendxg::uapi::*;
use opendxg::Status;
use rustix::io::Errno;
use selftests::leak::Watch;
use selftests::memory::{Page, KERNEL_HALF, UNMAPPED};
use selftests::poison::bytes;
use selftests::resource::{destroy, flags, query_local, Create, PAGE_SIZE};
use selftests::rounds::{crowd, rounds};
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-3 an answer that cannot be written undoes all", undone)
        .test("RES-3 RES-4 arrays that cannot be read or written", arrays)
        .test(
            "RES-3 a handle cannot be guessed before the call ends",
            guessed,
        )
        .test(
            "RES-3 RES-24 what is added cannot be found before the call ends",
            added_unseen,
        )
        .test(
            "RES-5 the number of allocations changes during the call",
            count_flips,
        )
        .test("RES-5 the driver data change during the call", data_flip)
}

const CODE: u32 = code(D3DKMT_CREATEALLOCATION::NR, D3DKMT_CREATEALLOCATION::SIZE);

fn undone() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let watch = Watch::start()?;
    let before = fixture::next_handle()?;
    for bits in [0, flags::RESOURCE, flags::GLOBAL, flags::NT] {
        let mut create = Create::sized(&device, bits, &[PAGE_SIZE; 3]);
        let page = Page::beginning_with(bytes(&create.argument()))?.read_only()?;
        ensure_eq!(raw.ioctl(CODE, page.address()), Err(Errno::FAULT));
        watch.unchanged()?;
    }
    ensure_eq!(fixture::next_handle()?, before + 0x40);
    Ok(())
}

fn arrays() -> TestResult {
    let device = fixture::device()?;
    let watch = Watch::start()?;
    let fault = Status::ACCESS_VIOLATION;
    let mut create =
        Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE; 2]).with_runtime(&[1; 16]);
    let mut arg = create.argument();
    // SAFETY: structs of integers.
    let info_bytes = unsafe {
        let size = 2 * size_of::<D3DDDI_ALLOCATIONINFO2>();
        core::slice::from_raw_parts(create.infos.as_ptr().cast::<u8>(), size)
    };
    let read_only = Page::beginning_with(info_bytes)?.read_only()?;
    let cut = Page::ending_with(&info_bytes[..info_bytes.len() / 2])?;
    for address in [
        UNMAPPED,
        KERNEL_HALF,
        u64::MAX & !7,
        read_only.address(),
        cut.end() - info_bytes.len() as u64 / 2,
    ] {
        arg.__bindgen_anon_2.pAllocationInfo2 = address;
        create
            .is_refused_with(&mut arg, fault)
            .map_err(|error| format!("infos at {address:#x}: {error}"))?;
    }
    for address in [UNMAPPED, KERNEL_HALF, cut.end() - 15] {
        let mut arg = create.argument();
        arg.pPrivateRuntimeData = address;
        create.is_refused_with(&mut arg, fault)?;
        let mut arg = create.argument();
        create.infos[1].pPrivateDriverData = address;
        create.is_refused_with(&mut arg, fault)?;
    }
    let memory = selftests::region::Region::private(PAGE_SIZE as usize)?;
    let mut create = Create::over(&device, 0, memory.address(), PAGE_SIZE);
    let mut arg = create.argument();
    arg.__bindgen_anon_1.pStandardAllocation = UNMAPPED;
    create.is_refused_with(&mut arg, fault)?;
    watch.unchanged()
}

fn guessed() -> TestResult {
    let device = fixture::device()?;
    let (next, done) = (AtomicU32::new(0), AtomicBool::new(false));
    crowd(2, |part| {
        let raw = fixture::raw()?;
        if part == 0 {
            let outcome = (0..rounds(300)).try_for_each(|_| {
                let mut create = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE; 2]);
                let page = Page::beginning_with(bytes(&create.argument()))?.read_only()?;
                next.store(fixture::next_handle()?, Ordering::Relaxed);
                ensure_eq!(raw.ioctl(CODE, page.address()), Err(Errno::FAULT));
                Ok(())
            });
            done.store(true, Ordering::Relaxed);
            return outcome;
        }
        while !done.load(Ordering::Relaxed) {
            let handle = next.load(Ordering::Relaxed);
            if handle == 0 {
                continue;
            }
            for guess in [handle, handle + 0x40, handle + 0x80] {
                let found = destroy(&raw, device.handle().0, guess, &[], 0);
                ensure!(
                    found != Ok(Status::SUCCESS),
                    "resource {guess:#x} was there"
                );
                let found = destroy(&raw, device.handle().0, 0, &[guess], 0);
                ensure!(
                    found != Ok(Status::SUCCESS),
                    "allocation {guess:#x} was there"
                );
            }
        }
        Ok(())
    })
}

/// The allocations of a resource, and a handle of the second one if there is one.
fn second(raw: &Raw, resource: u32) -> TestResult<(u32, Option<u32>)> {
    let count = query_local(raw, resource)?.allocation_count;
    let mut dup = opendxg_dup_local {
        handle: resource,
        index: 1,
        ..Default::default()
    };
    let found = raw.exec(&mut dup)? == Status::SUCCESS;
    Ok((count, found.then_some(dup.new_handle)))
}

fn added_unseen() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let made = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE]).run()?;
    let done = AtomicBool::new(false);
    crowd(2, |part| {
        if part == 0 {
            let mut create = Create::sized(&device, 0, &[PAGE_SIZE; 8]);
            create.resource = made.resource;
            let page = Page::beginning_with(bytes(&create.argument()))?.read_only()?;
            let outcome = (0..rounds(300)).try_for_each(|_| {
                ensure_eq!(raw.ioctl(CODE, page.address()), Err(Errno::FAULT));
                Ok(())
            });
            done.store(true, Ordering::Relaxed);
            return outcome;
        }
        while !done.load(Ordering::Relaxed) {
            ensure_eq!(second(&raw, made.resource)?, (1, None));
        }
        Ok(())
    })?;
    // With a place for the answer they are there.
    let mut create = Create::sized(&device, 0, &[PAGE_SIZE; 2]);
    create.resource = made.resource;
    let more = create.run()?;
    let (count, dup) = second(&raw, made.resource)?;
    ensure_eq!(count, 3);
    let dup = dup.ok_or("no handle of the second allocation")?;
    ensure_eq!(
        destroy(&raw, device.handle().0, 0, &[dup], 0),
        Ok(Status::SUCCESS)
    );
    more.destroy()?;
    ensure_eq!(query_local(&raw, made.resource)?.allocation_count, 1);
    made.destroy()
}

/// Runs `call` `count` times while another thread runs `flip` all the time, with 0 and 1 in turn.
fn while_flipping(
    count: u32,
    call: impl Fn() -> TestResult + Sync,
    flip: impl Fn(u32) + Sync,
) -> TestResult {
    let done = AtomicBool::new(false);
    crowd(2, |part| {
        if part == 0 {
            let outcome = (0..rounds(count)).try_for_each(|_| call());
            done.store(true, Ordering::Relaxed);
            return outcome;
        }
        let mut turn = 0u32;
        while !done.load(Ordering::Relaxed) {
            turn = turn.wrapping_add(1);
            flip(turn & 1);
        }
        Ok(())
    })
}

/// A place in a page that another thread changes.
unsafe fn word<'a>(address: u64) -> &'a AtomicU32 {
    // SAFETY: the caller says that it is mapped, aligned and stays.
    unsafe { &*(address as usize as *const AtomicU32) }
}

fn release(raw: &Raw, device: u32, resource: u32) -> TestResult {
    ensure_eq!(destroy(raw, device, resource, &[], 0), Ok(Status::SUCCESS));
    Ok(())
}

fn count_flips() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let mut create = Create::sized(&device, flags::RESOURCE, &[PAGE_SIZE; 2]);
    // The second one is bad: one allocation succeeds, two are refused.
    create.driver[1].version = 7;
    let page = Page::beginning_with(bytes(&create.argument()))?;
    let address = page.address();
    let at = core::mem::offset_of!(D3DKMT_CREATEALLOCATION, NumAllocations) as u64;
    let out = core::mem::offset_of!(D3DKMT_CREATEALLOCATION, hResource) as u64;
    // SAFETY: in `page`, which lives to the end of this test.
    let (count, resource) = unsafe { (word(address + at), word(address + out)) };
    let seen = [AtomicU32::new(0), AtomicU32::new(0)];
    while_flipping(
        2000,
        || {
            resource.store(0, Ordering::Relaxed);
            match raw.ioctl(CODE, address) {
                Ok(0) => {
                    seen[0].fetch_add(1, Ordering::Relaxed);
                    release(&raw, device.handle().0, resource.load(Ordering::Relaxed))?;
                }
                Err(Errno::INVAL) => {
                    seen[1].fetch_add(1, Ordering::Relaxed);
                    ensure_eq!(resource.load(Ordering::Relaxed), 0);
                }
                other => return Err(format!("mixed outcome {other:?}").into()),
            }
            Ok(())
        },
        |turn| count.store([1, 2][turn as usize], Ordering::Relaxed),
    )?;
    println!("# created and refused: {seen:?}");
    Ok(())
}

fn data_flip() -> TestResult {
    let raw = fixture::raw()?;
    let device = fixture::device()?;
    let mut create = Create::sized(&device, flags::GLOBAL, &[PAGE_SIZE]);
    let page = Page::beginning_with(bytes(&create.argument()))?;
    let arg = page.address();
    let out = core::mem::offset_of!(D3DKMT_CREATEALLOCATION, hResource) as u64;
    // SAFETY: in `page` and in `create`, which live to the end of this test.
    let (resource, size) = unsafe {
        let data = &raw const create.driver[0].size;
        (word(arg + out), &*data.cast::<AtomicU64>())
    };
    let global = core::mem::offset_of!(D3DKMT_CREATEALLOCATION, hGlobalShare) as u64;
    // SAFETY: as above.
    let global = unsafe { word(arg + global) };
    while_flipping(
        100,
        || {
            resource.store(0, Ordering::Relaxed);
            match raw.ioctl(CODE, arg) {
                Ok(0) => {}
                Err(Errno::INVAL) => return Ok(()),
                other => return Err(format!("mixed outcome {other:?}").into()),
            }
            // The stored description is a size that was valid, and the memory has that size.
            let mut open =
                selftests::resource::OpenGlobal::new(&device, global.load(Ordering::Relaxed))?;
            let opened = open.run()?;
            let mapping = opened.lock()?;
            ensure!(
                matches!(mapping.size(), 0x1000 | 0x4000),
                "{:#x} bytes",
                mapping.size()
            );
            mapping.set(mapping.size() - 1, 1);
            mapping.unlock()?;
            opened.destroy()?;
            release(&raw, device.handle().0, resource.load(Ordering::Relaxed))
        },
        |turn| size.store([0x1000, 0x4000][turn as usize], Ordering::Relaxed),
    )
}
