// SPDX-License-Identifier: MIT OR Apache-2.0
//! Allocations over the caller's pages with private data that the driver does not know (RES-23).

use opendxg::pm4::Pm4;
use opendxg::{Access, AllocationFlags, GpuMap, GpuProtection, Pages, ResidentFlags, Status};
use selftests::gpu::{one, reaches, Gpu, PAGE};
use selftests::resource::Create;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use super::sequence::{allocate, UNKNOWN};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("RES-23 private data of any size and content", any_data)
        .test("RES-23 the first mapping says how large it is", extent)
        .test("RES-23 RES-21 it pins under the rules of memory", pins)
        .test(
            "RES-23 it cannot be shared or exported without a size",
            sharing,
        )
        .test("RES-23 unknown data without memory", without_memory)
        .test("RES-23 an allocation that is never mapped", never_mapped)
        .test("GPU-70 RES-21 the memory outlives its mapping", unmapped)
}

fn map(first_page: u64, pages: u64) -> GpuMap {
    GpuMap {
        first_page,
        pages,
        protection: GpuProtection::WRITE,
        ..GpuMap::default()
    }
}

fn any_data() -> TestResult {
    let gpu = Gpu::node(1)?;
    let pages = Pages::new(PAGE as usize)?;
    for size in [1, 4, 47, 48, 49, 72, 4096] {
        for flags in [AllocationFlags::empty(), AllocationFlags::EXISTING_SYS_MEM] {
            let data = vec![0x5a; size];
            let builder = gpu.device().new_resource().flags(flags);
            let allocation = builder.pages_with_driver_data(&pages, &data).create_one()?;
            let range = gpu.paging().map(Some(&allocation), &map(0, 1))?;
            let resident = gpu
                .paging()
                .make_resident(&[&allocation], ResidentFlags::empty())?;
            gpu.paging().wait(resident.value()?.max(range.value))?;
            pages.fill(0);
            gpu.run(&Pm4::new().write(range.address, &[size as u32]))?;
            ensure_eq!(
                pages.to_vec()[..4],
                (size as u32).to_ne_bytes(),
                "{size} bytes of data"
            );
        }
    }
    Ok(())
}

fn extent() -> TestResult {
    let gpu = Gpu::node(1)?;
    let pages = Pages::new(5 * PAGE as usize)?;
    let allocation = allocate(gpu.device(), &pages)?;
    fails_with(allocation.lock_raw(), IP)?;
    // The size counts from the start.
    let first = gpu.paging().map(Some(&allocation), &map(0, 3))?;
    for (first_page, count) in [(0, 4), (1, 3), (3, 1), (0, u64::MAX), (u64::MAX, 1)] {
        fails_with(
            gpu.paging().map(Some(&allocation), &map(first_page, count)),
            IP,
        )
        .map_err(|error| format!("{first_page} + {count}: {error}"))?;
    }
    let second = gpu.paging().map(Some(&allocation), &map(1, 2))?;
    let resident = gpu
        .paging()
        .make_resident(&[&allocation], ResidentFlags::empty())?;
    let value = resident.value()?.max(first.value).max(second.value);
    reaches(gpu.paging().fence(), value)?;
    gpu.run(
        &Pm4::new()
            .fill(first.address, 1, 3 * PAGE)
            .fill(second.address, 2, PAGE),
    )?;
    let bytes = pages.to_vec();
    for (page, word) in [(0, 1), (1, 2), (2, 1), (3, 0), (4, 0)] {
        let at = page * PAGE as usize;
        ensure_eq!(bytes[at..at + 4], u32::to_ne_bytes(word), "page {page}");
    }
    // Now that there is a size, the CPU can map it, too.
    allocation.lock_raw()?;
    // SAFETY: the address of the lock was not used.
    unsafe { allocation.unlock_raw() }?;
    Ok(())
}

fn pins() -> TestResult {
    let gpu = Gpu::node(1)?;
    // More than is mapped.
    let pages = Pages::new(PAGE as usize)?;
    let allocation = allocate(gpu.device(), &pages)?;
    fails_with(gpu.paging().map(Some(&allocation), &map(0, 1 << 30)), IP)?;
    // A refusal leaves it without a size.
    fails_with(allocation.lock_raw(), IP)?;
    let range = gpu.paging().map(Some(&allocation), &map(0, 1))?;
    ensure!(range.address != 0);
    // Memory that is gone before it is mapped for the GPU.
    let gone = Pages::new(PAGE as usize)?;
    let allocation = allocate(gpu.device(), &gone)?;
    drop(gone);
    fails_with(gpu.paging().map(Some(&allocation), &map(0, 1)), IP)?;
    Ok(())
}

fn sharing() -> TestResult {
    let device = fixture::device()?;
    let pages = Pages::new(PAGE as usize)?;
    let allocation = allocate(&device, &pages)?;
    fails_with(allocation.export_dmabuf(), IP)?;
    let builder = device
        .new_resource()
        .pages_with_driver_data(&pages, &UNKNOWN);
    fails_with(builder.shared().create(), IP)?;
    let builder = device
        .new_resource()
        .pages_with_driver_data(&pages, &UNKNOWN);
    match builder.nt_shared().create() {
        // What could be shared is not shared yet.
        Ok(resource) => fails_with(resource.share(Access::RESOURCE_ALL), IP),
        refused => fails_with(refused, IP),
    }
}

fn without_memory() -> TestResult {
    let device = fixture::device()?;
    let builder = device.new_resource().with_driver_data(&UNKNOWN);
    fails_with(builder.create_one(), IP)?;
    // The data that the driver knows give a size, with memory or without.
    let pages = Pages::new(2 * PAGE as usize)?;
    let address = pages.as_ptr() as u64;
    let made = Create::sized_over(&device, 0, &[(address, 2 * PAGE)]).run()?;
    let mapping = made.lock()?;
    pages.fill(3);
    ensure_eq!(mapping.word(0), 0x0303_0303);
    mapping.set_word(PAGE as usize, 5);
    ensure_eq!(pages.to_vec()[PAGE as usize], 5, "what the mapping stored");
    mapping.unlock()?;
    made.destroy()
}

fn never_mapped() -> TestResult {
    let gpu = Gpu::node(1)?;
    let pages = Pages::new(PAGE as usize)?;
    allocate(gpu.device(), &pages)?.destroy()?;
    // With a device that goes first.
    let device = fixture::device()?;
    allocate(&device, &pages)?.into_raw();
    Ok(())
}

/// The GPU goes on with pages that the process has unmapped.
fn unmapped() -> TestResult {
    let gpu = Gpu::node(1)?;
    let target = gpu.buffer(PAGE)?;
    let pages = Pages::new(PAGE as usize)?;
    let allocation = allocate(gpu.device(), &pages)?;
    let range = gpu.paging().map(Some(&allocation), &map(0, 1))?;
    let resident = gpu
        .paging()
        .make_resident(&[&allocation], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?.max(range.value))?;
    pages.fill(0x77);
    let fence = gpu.device().create_fence(0)?;
    gpu.context().wait(&one(&fence, 1))?;
    let commands = gpu.commands(&Pm4::new().copy(target.address(), range.address, PAGE))?;
    gpu.submit(&commands)?;
    drop(pages);
    fence.signal(1)?;
    gpu.finish()?;
    target.holds(0..PAGE, 0x7777_7777)
}
