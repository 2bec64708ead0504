// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapping allocations at GPU addresses (MEM-40, MEM-43, MEM-44, MEM-49).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Adapter, ExecutionState, GpuMap, GpuProtection, PagingQueue, ResidentFlags, Status};
use selftests::call::refused;
use selftests::child::in_child;
use selftests::gpu::{reaches, Buffer, Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::rounds::rounds;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const NO_MEMORY: Status = Status::NO_MEMORY;

/// The end of all addresses of the software GPU: 48 bits.
const END: u64 = 1 << 48;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-43 maps that are refused", refusals)
        .test("MEM-43 MEM-40 where maps are put", chosen)
        .test("MEM-43 maps at addresses of the caller", placed)
        .test("MEM-43 parts of an allocation", parts)
        .test("MEM-43 rights of a range", rights)
        .test("MEM-43 ranges of zeros and without access", nothing)
        .test("MEM-44 an allocation that is mapped many times", many_times)
        .test(
            "MEM-44 a map comes before residency or after it",
            before_resident,
        )
        .test("MEM-44 MEM-58 GPU-66 a map over another one", remapped)
        .test(
            "MEM-40 devices of a process share addresses, processes do not",
            spaces,
        )
        .test("MEM-49 freed addresses", freed)
        .test("MEM-49 GPU-66 freed and used again", reused)
        .test("MEM-49 frees that are refused", frees_refused)
        .test("MEM-49 the end of an allocation frees its ranges", ended)
}

/// Where and how many pages, writable.
fn map(base: u64, pages: u64) -> GpuMap {
    GpuMap {
        base,
        pages,
        protection: READ_WRITE,
        ..GpuMap::default()
    }
}

/// The adapter of a test.
fn adapter(gpu: &Gpu) -> &Adapter {
    gpu.device().adapter()
}

/// Waits for what a call on the queue has begun.
fn paged(paging: &PagingQueue, value: u64) -> TestResult {
    reaches(paging.fence(), value)
}

fn refusals() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let raw = fixture::raw()?;
    let allocation = gpu.allocate(4 * PAGE)?;
    let foreign = other.allocate(PAGE)?;
    let mut good = D3DDDI_MAPGPUVIRTUALADDRESS::zeroed();
    good.hPagingQueue = gpu.paging().handle().0;
    good.hAllocation = allocation.handle().0;
    good.SizeInPages = 4;
    good.Protection = READ_WRITE.bits();
    type Spoil = fn(&mut D3DDDI_MAPGPUVIRTUALADDRESS);
    const ZERO: u64 = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Zero;
    const NO_ACCESS: u64 = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_NoAccess;
    let spoilt: [(&str, Spoil); 29] = [
        ("queue 0", |arg| arg.hPagingQueue = 0),
        ("no queue", |arg| arg.hPagingQueue += 0x40_0000),
        ("allocation 0", |arg| arg.hAllocation = 0),
        ("no allocation", |arg| arg.hAllocation += 0x40_0000),
        ("a queue as allocation", |arg| {
            arg.hAllocation = arg.hPagingQueue
        }),
        ("base 1", |arg| arg.BaseAddress = BLOCK + 1),
        ("base not of a page", |arg| arg.BaseAddress = BLOCK + 2048),
        ("base in the first 64 KiB", |arg| arg.BaseAddress = PAGE),
        ("base at the end", |arg| arg.BaseAddress = END),
        ("range over the end", |arg| arg.BaseAddress = END - PAGE),
        ("range over all", |arg| {
            arg.BaseAddress = u64::MAX - PAGE + 1
        }),
        ("minimum not of a page", |arg| arg.MinimumAddress = 100),
        ("maximum not of a page", |arg| {
            arg.MaximumAddress = (1 << 40) + 1
        }),
        ("no page", |arg| arg.SizeInPages = 0),
        ("a page more", |arg| arg.SizeInPages = 5),
        ("very many pages", |arg| arg.SizeInPages = u64::MAX),
        ("pages that overflow", |arg| arg.SizeInPages = 1 << 52),
        ("offset at the end", |arg| arg.OffsetInPages = 4),
        ("offset and size", |arg| arg.OffsetInPages = 1),
        ("offset that overflows", |arg| arg.OffsetInPages = u64::MAX),
        ("reserved 0", |arg| arg.Reserved0 = 1),
        ("reserved 1", |arg| arg.Reserved1 = 1),
        ("only for the system", |arg| {
            arg.Protection |= D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_SystemUseOnly;
        }),
        ("protection bit 5", |arg| arg.Protection |= 1 << 5),
        ("protection bit 63", |arg| arg.Protection |= 1 << 63),
        ("zeros of an allocation", |arg| arg.Protection = ZERO),
        ("no access to an allocation", |arg| {
            arg.Protection = NO_ACCESS
        }),
        ("zeros, written", |arg| {
            (arg.hAllocation, arg.Protection) = (0, ZERO | READ_WRITE.bits());
        }),
        ("zeros without access", |arg| {
            (arg.hAllocation, arg.Protection) = (0, ZERO | NO_ACCESS);
        }),
    ];
    for (what, spoil) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, IP).map_err(|error| format!("{what}: {error}"))?;
    }
    let mut arg = good;
    arg.SizeInPages = 1;
    arg.hAllocation = foreign.handle().0;
    refused(&raw, &mut arg, IP)?;
    // No room where it is looked for.
    for (minimum, maximum) in [(0, BLOCK), (END - PAGE, 0), (1 << 40, (1 << 40) + PAGE)] {
        let mut arg = good;
        (arg.MinimumAddress, arg.MaximumAddress) = (minimum, maximum);
        refused(&raw, &mut arg, NO_MEMORY)
            .map_err(|error| format!("{minimum:#x} to {maximum:#x}: {error}"))?;
    }
    Ok(())
}

fn chosen() -> TestResult {
    let gpu = Gpu::new()?;
    let allocation = gpu.allocate(17 * PAGE)?;
    let mut found = Vec::new();
    for pages in [1, 17, 3, 16] {
        let range = gpu.paging().map(Some(&allocation), &map(0, pages))?;
        paged(gpu.paging(), range.value)?;
        ensure_eq!(
            range.address % BLOCK,
            0,
            "{pages} pages at {:#x}",
            range.address
        );
        ensure!(range.address >= BLOCK);
        found.push((range.address, pages * PAGE));
    }
    for (index, &(start, size)) in found.iter().enumerate() {
        for &(other, length) in &found[..index] {
            ensure!(
                start + size <= other || other + length <= start,
                "{found:x?}"
            );
        }
    }
    // Between limits.
    let within = GpuMap {
        minimum: 1 << 40,
        maximum: (1 << 40) + 4 * BLOCK,
        ..map(0, 17)
    };
    let range = gpu.paging().map(Some(&allocation), &within)?;
    ensure!(range.address >= within.minimum);
    ensure!(range.address + 17 * PAGE <= within.maximum);
    // Two fit, of two blocks each.
    gpu.paging().map(Some(&allocation), &within)?;
    fails_with(gpu.paging().map(Some(&allocation), &within), NO_MEMORY)
}

fn placed() -> TestResult {
    let gpu = Gpu::new()?;
    let allocation = gpu.allocate(4 * PAGE)?;
    let paging = gpu.paging();
    let base = 0x7000_0000_0000;
    let resident = paging.make_resident(&[&allocation], ResidentFlags::empty())?;
    paged(paging, resident.value()?)?;
    // Minimum and maximum are for who does not know where.
    let range = paging.map(
        Some(&allocation),
        &GpuMap {
            minimum: base + BLOCK,
            ..map(base, 4)
        },
    )?;
    ensure_eq!(range.address, base);
    paged(paging, range.value)?;
    gpu.run(&Pm4::new().write(base + 3 * PAGE, &[7]))?;
    // The last page there is, and the first one.
    for address in [END - PAGE, BLOCK] {
        match paging.map(Some(&allocation), &map(address, 1)) {
            Ok(range) => {
                paged(paging, range.value)?;
                gpu.run(&Pm4::new().write(address, &[1]))?;
            }
            // Something of the driver may be there.
            Err(error) => ensure_eq!(error.status(), IP),
        }
    }
    Ok(())
}

fn parts() -> TestResult {
    let gpu = Gpu::new()?;
    for buffer in [gpu.buffer(8 * PAGE)?, gpu.local_buffer(8 * PAGE)?] {
        for (first_page, pages) in [(0, 1), (7, 1), (3, 2), (0, 8)] {
            let part = GpuMap {
                first_page,
                ..map(0, pages)
            };
            let range = gpu.paging().map(Some(buffer.allocation()), &part)?;
            paged(gpu.paging(), range.value)?;
            buffer.fill(0);
            gpu.run(&Pm4::new().fill(range.address, 9, pages * PAGE))?;
            let (start, end) = (first_page * PAGE, (first_page + pages) * PAGE);
            buffer.holds(0..start, 0)?;
            buffer.holds(start..end, 9)?;
            buffer.holds(end..8 * PAGE, 0)?;
        }
    }
    Ok(())
}

fn rights() -> TestResult {
    for (protection, writable) in [
        (GpuProtection::empty(), false),
        (GpuProtection::EXECUTE, false),
        (GpuProtection::WRITE, true),
        (GpuProtection::WRITE | GpuProtection::EXECUTE, true),
    ] {
        let gpu = Gpu::new()?;
        let buffer = gpu.buffer(PAGE)?;
        buffer.set32(0, 5);
        let other = GpuMap {
            protection,
            ..map(0, 1)
        };
        let range = gpu.paging().map(Some(buffer.allocation()), &other)?;
        paged(gpu.paging(), range.value)?;
        gpu.run(&Pm4::new().move32(buffer.at(4), range.address))?;
        ensure_eq!(buffer.get32(4), 5, "{protection:?}");
        let write = Pm4::new().write(range.address, &[6]);
        match writable {
            true => gpu.run(&write)?,
            false => gpu.fails(&write, ExecutionState::DmaPageFault)?,
        }
        ensure_eq!(
            buffer.get32(0),
            if writable { 6 } else { 5 },
            "{protection:?}"
        );
    }
    Ok(())
}

fn nothing() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let zeros = GpuMap {
        protection: GpuProtection::ZERO,
        ..map(0, 4)
    };
    let range = gpu.paging().map(None, &zeros)?;
    paged(gpu.paging(), range.value)?;
    buffer.fill(7);
    gpu.run(&Pm4::new().fill(range.address, 9, 4 * PAGE).copy(
        buffer.address(),
        range.address + PAGE,
        PAGE,
    ))?;
    buffer.holds(0..PAGE, 0)?;
    let none = GpuMap {
        protection: GpuProtection::NO_ACCESS,
        ..map(0, 4)
    };
    let range = gpu.paging().map(None, &none)?;
    paged(gpu.paging(), range.value)?;
    let read = Pm4::new().move32(buffer.address(), range.address + PAGE);
    gpu.fails(&read, ExecutionState::DmaPageFault)?;
    ensure_eq!(gpu.device().page_fault()?.address, range.address + PAGE);
    Ok(())
}

fn many_times() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.local_buffer(PAGE)?;
    let mut add = Pm4::new();
    let count = 100;
    for _ in 0..count {
        let range = gpu.paging().map(Some(buffer.allocation()), &map(0, 1))?;
        paged(gpu.paging(), range.value)?;
        add = add.atomic(opendxg::pm4::Atomic::Add, range.address, 1, 0);
    }
    gpu.run(&add)?;
    ensure_eq!(buffer.get64(0), count);
    Ok(())
}

fn before_resident() -> TestResult {
    let gpu = Gpu::new()?;
    let paging = gpu.paging();
    for mapped_first in [true, false] {
        let allocation = gpu.allocate_local(PAGE)?;
        let mut address = 0;
        for step in [mapped_first, !mapped_first] {
            if step {
                let range = paging.map(Some(&allocation), &map(0, 1))?;
                address = range.address;
                paged(paging, range.value)?;
            } else {
                let resident = paging.make_resident(&[&allocation], ResidentFlags::empty())?;
                paged(paging, resident.value()?)?;
            }
        }
        gpu.run(&Pm4::new().write(address, &[0x77]))?;
        let mapping = allocation.lock()?;
        ensure_eq!(mapping.to_vec()[..4], 0x77u32.to_ne_bytes());
    }
    Ok(())
}

/// One address that shows one allocation after the other, while the GPU uses it.
fn remapped() -> TestResult {
    let gpu = Gpu::new()?;
    let buffers = [
        gpu.buffer(PAGE)?,
        gpu.local_buffer(PAGE)?,
        gpu.buffer(PAGE)?,
    ];
    let result = gpu.buffer(PAGE)?;
    for (index, buffer) in (1..).zip(&buffers) {
        buffer.fill(index);
    }
    let first = gpu
        .paging()
        .map(Some(buffers[0].allocation()), &map(0, 1))?;
    let base = first.address;
    let read = gpu.commands(&Pm4::new().copy(result.address(), base, PAGE))?;
    paged(gpu.paging(), first.value)?;
    for round in 0..rounds(40) {
        let shown = round as usize % 3;
        let range = gpu
            .paging()
            .map(Some(buffers[shown].allocation()), &map(base, 1))?;
        ensure_eq!(range.address, base);
        paged(gpu.paging(), range.value)?;
        gpu.submit(&read)?;
        gpu.finish()?;
        result.holds(0..PAGE, shown as u32 + 1)?;
    }
    Ok(())
}

fn spaces() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    // Another device of this process reaches it at the same address.
    let other = Gpu::new()?;
    other.run(&Pm4::new().write(buffer.address(), &[3]))?;
    ensure_eq!(buffer.get32(0), 3);
    let address = buffer.address();
    in_child(|| {
        let gpu = Gpu::new()?;
        // Commands are themselves at the lowest addresses, so look where nothing was chosen.
        let far = GpuMap {
            minimum: 1 << 44,
            ..map(0, 1)
        };
        let own = gpu.buffer(PAGE)?;
        let range = gpu.paging().map(Some(own.allocation()), &far)?;
        paged(gpu.paging(), range.value)?;
        let mapped_here = [own.address(), range.address].contains(&address);
        ensure!(mapped_here || address != range.address);
        gpu.run(&Pm4::new().write(range.address, &[4]))?;
        ensure_eq!(own.get32(0), 4);
        Ok(())
    })?;
    ensure_eq!(buffer.get32(0), 3);
    in_child(move || {
        let gpu = Gpu::new()?;
        let far = 0x6000_0000_0000;
        gpu.fails(&Pm4::new().write(far, &[9]), ExecutionState::DmaPageFault)
    })?;
    Ok(())
}

fn freed() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(4 * PAGE)?;
    let range = gpu.paging().map(Some(buffer.allocation()), &map(0, 4))?;
    paged(gpu.paging(), range.value)?;
    gpu.run(&Pm4::new().write(range.address, &[1]))?;
    // A page in the middle alone.
    adapter(&gpu).free_gpu_range(range.address + PAGE, PAGE)?;
    gpu.run(
        &Pm4::new()
            .write(range.address, &[2])
            .write(range.address + 2 * PAGE, &[3]),
    )?;
    ensure_eq!(buffer.get32(0), 2);
    ensure_eq!(buffer.get32(2 * PAGE), 3);
    let write = Pm4::new().write(range.address + PAGE, &[4]);
    gpu.fails(&write, ExecutionState::DmaPageFault)?;
    ensure_eq!(buffer.get32(PAGE), 0);
    ensure_eq!(gpu.device().page_fault()?.address, range.address + PAGE);
    Ok(())
}

/// A range is freed and made anew for other memory, again and again: nobody writes to the memory
/// from before.
fn reused() -> TestResult {
    let gpu = Gpu::new()?;
    let base = 0x5000_0000_0000;
    let (a, b) = (gpu.buffer(PAGE)?, gpu.local_buffer(PAGE)?);
    let write = gpu.commands(&Pm4::new().atomic(opendxg::pm4::Atomic::Add, base, 1, 0))?;
    let count = u64::from(rounds(30));
    for _ in 0..count {
        for buffer in [&a, &b] {
            let range = gpu.paging().map(Some(buffer.allocation()), &map(base, 1))?;
            paged(gpu.paging(), range.value)?;
            let before = buffer.get64(0);
            gpu.submit(&write)?;
            gpu.finish()?;
            ensure_eq!(buffer.get64(0), before + 1);
            adapter(&gpu).free_gpu_range(base, PAGE)?;
        }
    }
    ensure_eq!((a.get64(0), b.get64(0)), (count, count));
    gpu.fails(&Pm4::new().write(base, &[1]), ExecutionState::DmaPageFault)
}

fn frees_refused() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(4 * PAGE)?;
    let range = gpu.paging().map(Some(buffer.allocation()), &map(0, 2))?;
    paged(gpu.paging(), range.value)?;
    let base = range.address;
    for (address, size) in [
        (base, 0),
        (base + 1, PAGE),
        (base, PAGE + 1),
        (base, 100),
        (base + 2 * PAGE, PAGE),
        (base, 3 * PAGE),
        (base, u64::MAX - PAGE + 1),
        (0, PAGE),
        (END, PAGE),
        (END - PAGE, 2 * PAGE),
        (0x6000_0000_0000, PAGE),
    ] {
        fails_with(adapter(&gpu).free_gpu_range(address, size), IP)
            .map_err(|error| format!("{size:#x} at {address:#x}: {error}"))?;
    }
    let raw = fixture::raw()?;
    let mut arg = D3DKMT_FREEGPUVIRTUALADDRESS::zeroed();
    (arg.BaseAddress, arg.Size) = (base, PAGE);
    for handle in [
        0,
        gpu.device().handle().0,
        adapter(&gpu).handle().0 + 0x40_0000,
    ] {
        arg.hAdapter = handle;
        refused(&raw, &mut arg, IP)?;
    }
    gpu.run(&Pm4::new().fill(base, 1, 2 * PAGE))?;
    // What was freed is free.
    adapter(&gpu).free_gpu_range(base, 2 * PAGE)?;
    fails_with(adapter(&gpu).free_gpu_range(base, PAGE), IP)
}

fn ended() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let (base, second) = (
        buffer.address(),
        gpu.paging().map(Some(buffer.allocation()), &map(0, 1))?,
    );
    paged(gpu.paging(), second.value)?;
    gpu.run(&Pm4::new().write(base, &[1]).write(second.address, &[1]))?;
    drop(buffer);
    gpu.finish()?;
    for address in [base, second.address] {
        fails_with(adapter(&gpu).free_gpu_range(address, PAGE), IP)?;
    }
    let write = Pm4::new().write(second.address, &[1]);
    // The commands may be where one of both was.
    let keep: TestResult<Vec<Buffer>> = (0..2).map(|_| gpu.buffer(PAGE)).collect();
    let keep = keep?;
    match keep.iter().any(|buffer| buffer.address() == second.address) {
        true => gpu.run(&write),
        false => gpu.fails(&write, ExecutionState::DmaPageFault),
    }
}
