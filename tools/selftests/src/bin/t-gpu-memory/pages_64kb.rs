// SPDX-License-Identifier: MIT OR Apache-2.0
//! Local memory with pages of 64 KiB, and page tables of such pages next to others (MEM-2, MEM-57).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, Device, EvictFlags, ExecutionState, GpuMap, Placement, ResidentFlags, Status,
};
use rustix::io::Errno;
use selftests::gpu::{reaches, Buffer, Gpu, BLOCK, NODES, PAGE, READ_WRITE};
use selftests::rounds::rounds;
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

use super::profiles::{adapter_in, adds};

/// What a page table stands for, at least.
const LEAF: u64 = 4 << 20;
/// Where tests have addresses of their own.
const BASE: u64 = 0x7000_0000;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-2 memory is of whole pages of 64 KiB", whole_pages)
        .slow(
            "MEM-57 MEM-58 MEM-2 pages of 64 KiB next to those of 4 KiB, while engines run",
            Duration::from_secs(240),
            mixed,
        )
        .slow(
            "MEM-57 MEM-44 entries of 64 KiB follow memory that moves",
            Duration::from_secs(120),
            moves,
        )
}

fn adapter(profile: &str) -> TestResult<SoftAdapter> {
    adapter_in(profile, |soft| Ok(soft.set("use_64kb_pages", "1")?))
}

fn map(gpu: &Gpu, allocation: &Allocation, base: u64, offset: u64, pages: u64) -> TestResult {
    let range = gpu.paging().map(
        Some(allocation),
        &GpuMap {
            base,
            first_page: offset,
            pages,
            protection: READ_WRITE,
            ..GpuMap::default()
        },
    )?;
    ensure_eq!(range.address, base);
    reaches(gpu.paging().fence(), range.value)
}

fn whole_pages() -> TestResult {
    let odd = SoftAdapter::new("memory-64kb-odd")?;
    odd.set("local_memory", &(BLOCK + PAGE).to_string())?;
    let refused = odd.set("use_64kb_pages", "1");
    ensure!(matches!(&refused, Err(error) if Errno::from_io_error(error) == Some(Errno::INVAL)));
    drop(odd);
    for is_64kb in [false, true] {
        let soft = SoftAdapter::new("memory-64kb")?;
        soft.set("local_memory", &(8 * BLOCK).to_string())?;
        soft.set("use_64kb_pages", if is_64kb { "1" } else { "0" })?;
        soft.set("enabled", "1")?;
        let device = soft.device()?;
        let gpu = Gpu::on(&device, 0)?;
        // One of 4 KiB, and what is in system memory is as it was.
        let small = gpu.allocate_local(PAGE)?;
        let other = gpu.allocate(PAGE)?;
        let whole = GpuMap {
            pages: BLOCK / PAGE,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        fails_with(
            gpu.paging().map(Some(&other), &whole),
            Status::INVALID_PARAMETER,
        )?;
        if is_64kb {
            let range = gpu.paging().map(Some(&small), &whole)?;
            ensure_eq!(range.address % BLOCK, 0);
        } else {
            fails_with(
                gpu.paging().map(Some(&small), &whole),
                Status::INVALID_PARAMETER,
            )?;
        }
        // What it takes of the memory.
        let resident = gpu
            .paging()
            .make_resident(&[&small], ResidentFlags::empty())?;
        reaches(gpu.paging().fence(), resident.value()?)?;
        let taken = device.adapter().segment_statistics(0)?.bytes_resident;
        ensure_eq!(taken, if is_64kb { BLOCK } else { PAGE });
        drop((small, other, gpu, device));
        soft.remove()?;
    }
    Ok(())
}

/// Fills some pages by the GPU, and compares.
fn uses(
    gpu: &Gpu,
    buffer: &Buffer,
    base: u64,
    pages: std::ops::Range<u64>,
    word: u32,
) -> TestResult {
    let bytes = (pages.end - pages.start) * PAGE;
    gpu.run(&Pm4::new().fill(base, word, bytes))?;
    buffer.holds(pages.start * PAGE..pages.end * PAGE, word)
}

/// Tables that are made for pages of 64 KiB, and get some of 4 KiB, while all engines work.
fn mixes(device: &Device) -> TestResult {
    let gpu = Gpu::on(device, 0)?;
    let local = gpu.local_buffer(4 * BLOCK)?;
    let system = gpu.buffer(2 * PAGE)?;
    let pages = BLOCK / PAGE;
    for round in 0..rounds(30) {
        let base = BASE + u64::from(round % 3) * LEAF;
        let word = 0x100 * (round + 1);
        // A table of its own.
        map(&gpu, local.allocation(), base, 0, 4 * pages)?;
        uses(&gpu, &local, base, 0..4 * pages, word)?;
        match round % 5 {
            // Next to it in the same table.
            0 => map(&gpu, system.allocation(), base + 4 * BLOCK, 0, 2)?,
            // Over a part of it.
            1 => map(&gpu, system.allocation(), base + BLOCK + PAGE, 0, 2)?,
            // Its own pages in another order.
            2 => map(&gpu, local.allocation(), base + 5 * BLOCK, 3, 2 * pages)?,
            // A hole.
            3 => device.adapter().free_gpu_range(base + BLOCK + PAGE, PAGE)?,
            // Part of a large page somewhere else.
            _ => map(&gpu, local.allocation(), base + 6 * BLOCK, pages, 5)?,
        }
        match round % 5 {
            0 => uses(&gpu, &system, base + 4 * BLOCK, 0..2, word + 1)?,
            1 => {
                uses(&gpu, &system, base + BLOCK + PAGE, 0..2, word + 1)?;
                local.holds(0..4 * BLOCK, word)?;
            }
            2 => {
                uses(&gpu, &local, base + 5 * BLOCK, 3..3 + 2 * pages, word + 1)?;
                local.holds(0..3 * PAGE, word)?;
                local.holds((3 + 2 * pages) * PAGE..4 * BLOCK, word)?;
            }
            3 => {
                // What is around it is still there.
                uses(&gpu, &local, base + BLOCK, pages..pages + 1, word + 1)?;
                uses(
                    &gpu,
                    &local,
                    base + BLOCK + 2 * PAGE,
                    pages + 2..3 * pages,
                    word + 2,
                )?;
                local.holds((pages + 1) * PAGE..(pages + 2) * PAGE, word)?;
            }
            _ => {
                uses(&gpu, &local, base + 6 * BLOCK, pages..pages + 5, word + 1)?;
                local.holds(0..BLOCK, word)?;
                local.holds(BLOCK + 5 * PAGE..4 * BLOCK, word)?;
            }
        }
        if round % 5 == 3 {
            device.adapter().free_gpu_range(base, BLOCK + PAGE)?;
            device
                .adapter()
                .free_gpu_range(base + BLOCK + 2 * PAGE, 3 * BLOCK - 2 * PAGE)?;
        } else {
            device.adapter().free_gpu_range(base, 4 * BLOCK)?;
        }
        match round % 5 {
            0 => device
                .adapter()
                .free_gpu_range(base + 4 * BLOCK, 2 * PAGE)?,
            2 => device
                .adapter()
                .free_gpu_range(base + 5 * BLOCK, 2 * BLOCK)?,
            4 => device
                .adapter()
                .free_gpu_range(base + 6 * BLOCK, 5 * PAGE)?,
            _ => {}
        }
    }
    gpu.works()
}

fn mixed() -> TestResult {
    for profile in ["vram4", "doc2"] {
        let soft = adapter(profile)?;
        let device = soft.device()?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| -> TestResult {
            let adding: Vec<_> = NODES
                .iter()
                .map(|node| {
                    let (device, stop) = (&device, &stop);
                    scope.spawn(move || adds(device, *node, stop))
                })
                .collect();
            let mixed = mixes(&device);
            stop.store(true, Ordering::Relaxed);
            for adding in adding {
                ensure!(adding.join().map_err(|_| "a thread panicked")?? > 0);
            }
            mixed
        })
        .map_err(|error| format!("{profile}: {error}"))?;
        // What is not there faults, in both kinds of tables.
        for hole in [3 * BLOCK, BLOCK + PAGE] {
            let device = soft.device()?;
            let gpu = Gpu::on(&device, 0)?;
            let local = gpu.local_buffer(2 * BLOCK)?;
            map(&gpu, local.allocation(), BASE, 0, 2 * BLOCK / PAGE)?;
            if hole < 2 * BLOCK {
                device.adapter().free_gpu_range(BASE + hole, PAGE)?;
            }
            gpu.run(&Pm4::new().write(BASE + BLOCK, &[5]))?;
            ensure_eq!(local.get32(BLOCK), 5);
            gpu.fails(
                &Pm4::new().write(BASE + hole, &[6]),
                ExecutionState::DmaPageFault,
            )?;
            ensure_eq!(device.page_fault()?.address, BASE + hole);
        }
        drop(device);
        soft.remove()?;
    }
    Ok(())
}

/// It goes to system memory, where its entries are others, and comes back.
fn moves() -> TestResult {
    let soft = adapter("vram4")?;
    let device = soft.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let local = gpu.local_buffer(2 * BLOCK)?;
    let pages = 2 * BLOCK / PAGE;
    map(&gpu, local.allocation(), BASE, 0, pages)?;
    for round in 0..3 {
        uses(&gpu, &local, BASE, 0..pages, 7 + round)?;
        device.evict(&[local.allocation()], EvictFlags::empty())?;
        local.holds(0..2 * BLOCK, 7 + round)?;
        // Others are where it was.
        let others = gpu.local_buffer(2 * BLOCK)?;
        others.fill(0x55);
        let resident = gpu
            .paging()
            .make_resident(&[local.allocation()], ResidentFlags::empty())?;
        reaches(gpu.paging().fence(), resident.value()?)?;
        uses(&gpu, &local, BASE, 0..pages, 70 + round)?;
        others.holds(0..2 * BLOCK, 0x55)?;
    }
    for segment in [2, 1, 2] {
        let placement = Placement::new().segments(&[segment]).preferred(&[segment]);
        let value = gpu
            .paging()
            .update_placement(local.allocation(), &placement)?;
        reaches(gpu.paging().fence(), value)?;
        local.holds(0..BLOCK, if segment == 2 { 72 } else { 90 })?;
        uses(
            &gpu,
            &local,
            BASE,
            0..pages,
            if segment == 2 { 90 } else { 72 },
        )?;
    }
    gpu.works()
}
