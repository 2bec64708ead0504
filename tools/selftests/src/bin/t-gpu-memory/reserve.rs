// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reserved ranges (MEM-41, MEM-42).

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{ExecutionState, GpuMap, GpuReserve, Reservation, ResidentFlags, Status};
use selftests::call::refused;
use selftests::gpu::{reaches, Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const NO_MEMORY: Status = Status::NO_MEMORY;
const BASE: u64 = 0x3000_0000_0000;
const END: u64 = 1 << 48;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-41 reservations that are refused", refusals)
        .test("MEM-41 where reservations are put", chosen)
        .test("MEM-41 the older form with an adapter", of_adapter)
        .test("MEM-42 zeros are read and writes are dropped", zeros)
        .test("MEM-42 a range without access faults", no_access)
        .test("MEM-43 MEM-41 maps inside of a reservation", maps_inside)
        .test("MEM-49 the end of a reservation", freed)
}

fn blocks(base: u64, count: u64) -> GpuReserve {
    GpuReserve {
        base,
        size: count * BLOCK,
        ..GpuReserve::default()
    }
}

fn refusals() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let mut good = D3DDDI_RESERVEGPUVIRTUALADDRESS::zeroed();
    good.__bindgen_anon_1.hPagingQueue = gpu.paging().handle().0;
    good.Size = BLOCK;
    type Spoil = fn(&mut D3DDDI_RESERVEGPUVIRTUALADDRESS);
    let spoilt: [(&str, Spoil, Status); 15] = [
        ("queue 0", |arg| arg.__bindgen_anon_1.hPagingQueue = 0, IP),
        ("size 0", |arg| arg.Size = 0, IP),
        ("size of a page", |arg| arg.Size = PAGE, IP),
        ("odd size", |arg| arg.Size = BLOCK + PAGE, IP),
        ("base of a page", |arg| arg.BaseAddress = BASE + PAGE, IP),
        ("base at the end", |arg| arg.BaseAddress = END, IP),
        (
            "over the end",
            |arg| (arg.BaseAddress, arg.Size) = (END - BLOCK, 2 * BLOCK),
            IP,
        ),
        (
            "sum that overflows",
            |arg| arg.BaseAddress = u64::MAX - BLOCK + 1,
            IP,
        ),
        ("minimum of a page", |arg| arg.MinimumAddress = PAGE, IP),
        (
            "maximum of a page",
            |arg| arg.MaximumAddress = BASE + PAGE,
            IP,
        ),
        (
            "only for the system",
            |arg| arg.__bindgen_anon_2.ReservationType = 2,
            IP,
        ),
        ("kind 3", |arg| arg.__bindgen_anon_2.ReservationType = 3, IP),
        ("too large", |arg| arg.Size = END, NO_MEMORY),
        (
            "no room",
            |arg| (arg.MinimumAddress, arg.MaximumAddress) = (BASE, BASE),
            NO_MEMORY,
        ),
        (
            "no room at the end",
            |arg| arg.MinimumAddress = END,
            NO_MEMORY,
        ),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    let range = gpu.paging().reserve(&blocks(BASE, 4))?;
    ensure_eq!(range.address, BASE);
    for (base, count) in [
        (BASE, 1),
        (BASE + 3 * BLOCK, 4),
        (BASE - BLOCK, 2),
        (BASE - BLOCK, 9),
    ] {
        fails_with(gpu.paging().reserve(&blocks(base, count)), IP)?;
    }
    let adapter = gpu.device().adapter();
    adapter.free_gpu_range(BASE, 4 * BLOCK)?;
    Ok(())
}

fn chosen() -> TestResult {
    let gpu = Gpu::new()?;
    let within = GpuReserve {
        minimum: BASE,
        maximum: BASE + 4 * BLOCK,
        ..blocks(0, 1)
    };
    // The lowest fit.
    let ranges: Result<Vec<_>, _> = (0..4).map(|_| gpu.paging().reserve(&within)).collect();
    for (index, range) in (0..).zip(ranges?) {
        ensure_eq!(range.address, BASE + index * BLOCK);
    }
    fails_with(gpu.paging().reserve(&within), NO_MEMORY)?;
    let adapter = gpu.device().adapter();
    adapter.free_gpu_range(BASE + BLOCK, BLOCK)?;
    let two = GpuReserve {
        size: 2 * BLOCK,
        ..within
    };
    fails_with(gpu.paging().reserve(&two), NO_MEMORY)?;
    ensure_eq!(gpu.paging().reserve(&within)?.address, BASE + BLOCK);
    adapter.free_gpu_range(BASE, 4 * BLOCK)?;
    Ok(())
}

fn of_adapter() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let address = adapter.reserve_gpu_range(&blocks(BASE, 2))?;
    ensure_eq!(address, BASE);
    fails_with(adapter.reserve_gpu_range(&blocks(BASE, 1)), IP)?;
    adapter.free_gpu_range(BASE, 2 * BLOCK)?;
    let raw = fixture::raw()?;
    let mut arg = D3DDDI_RESERVEGPUVIRTUALADDRESS::zeroed();
    arg.__bindgen_anon_1.hAdapter = adapter.handle().0;
    arg.Size = BLOCK;
    type Spoil = fn(&mut D3DDDI_RESERVEGPUVIRTUALADDRESS);
    let spoilt: [Spoil; 3] = [
        |arg| arg.__bindgen_anon_2.Reserved0 = 1,
        |arg| arg.__bindgen_anon_3.Reserved1 = 1,
        |arg| arg.__bindgen_anon_4.Reserved2 = 1,
    ];
    for spoil in spoilt {
        let mut spoilt = arg;
        spoil(&mut spoilt);
        refused(&raw, &mut spoilt, IP)?;
    }
    Ok(())
}

fn zeros() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(PAGE)?;
    let reserve = GpuReserve {
        kind: Reservation::Zero,
        ..blocks(0, 2)
    };
    let range = gpu.paging().reserve(&reserve)?;
    reaches(gpu.paging().fence(), range.value)?;
    buffer.fill(7);
    gpu.run(
        &Pm4::new()
            .write64(range.address, u64::MAX)
            .fill(range.address + BLOCK - PAGE, 5, 2 * PAGE)
            .copy(buffer.address(), range.address + BLOCK - PAGE / 2, PAGE)
            .move64(buffer.at(8), range.address),
    )?;
    buffer.holds(0..PAGE, 0)
}

fn no_access() -> TestResult {
    for write in [false, true] {
        let gpu = Gpu::new()?;
        let buffer = gpu.buffer(PAGE)?;
        let range = gpu.paging().reserve(&blocks(0, 1))?;
        reaches(gpu.paging().fence(), range.value)?;
        let commands = match write {
            false => Pm4::new().move32(buffer.address(), range.address + 8),
            true => Pm4::new().write(range.address + 8, &[1]),
        };
        gpu.fails(&commands, ExecutionState::DmaPageFault)?;
        let fault = gpu.device().page_fault()?;
        ensure_eq!(fault.address & !0xfff, range.address);
        ensure_eq!(fault.flags & DXGK_PAGE_FAULT_WRITE != 0, write);
    }
    Ok(())
}

fn maps_inside() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.buffer(4 * PAGE)?;
    let paging = gpu.paging();
    let reserve = GpuReserve {
        kind: Reservation::Zero,
        ..blocks(0, 1)
    };
    let range = paging.reserve(&reserve)?;
    let map = GpuMap {
        base: range.address + 2 * PAGE,
        pages: 4,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let mapped = paging.map(Some(buffer.allocation()), &map)?;
    ensure_eq!(mapped.address, map.base);
    reaches(paging.fence(), mapped.value.max(range.value))?;
    gpu.run(&Pm4::new().fill(range.address, 3, 8 * PAGE))?;
    buffer.holds(0..4 * PAGE, 3)?;
    // A reservation does not go over a map, and a map of nothing does not either.
    fails_with(paging.reserve(&blocks(range.address, 1)), IP)?;
    let nothing = GpuMap {
        protection: opendxg::GpuProtection::ZERO,
        ..map
    };
    fails_with(paging.map(None, &nothing), IP)?;
    // In the rest of the reservation it may.
    let nothing = GpuMap {
        base: range.address + 8 * PAGE,
        ..nothing
    };
    reaches(paging.fence(), paging.map(None, &nothing)?.value)?;
    gpu.run(&Pm4::new().fill(range.address, 4, 12 * PAGE))?;
    buffer.holds(0..4 * PAGE, 4)
}

fn freed() -> TestResult {
    let gpu = Gpu::new()?;
    let allocation = gpu.allocate(PAGE)?;
    let reserve = GpuReserve {
        kind: Reservation::Zero,
        ..blocks(BASE, 2)
    };
    let range = gpu.paging().reserve(&reserve)?;
    reaches(gpu.paging().fence(), range.value)?;
    let map = GpuMap {
        base: BASE + PAGE,
        pages: 1,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let mapped = gpu.paging().map(Some(&allocation), &map)?;
    let resident = gpu
        .paging()
        .make_resident(&[&allocation], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?.max(mapped.value))?;
    gpu.device().adapter().free_gpu_range(BASE, 2 * BLOCK)?;
    ensure!(gpu.paging().reserve(&reserve)?.address == BASE);
    gpu.device().adapter().free_gpu_range(BASE, 2 * BLOCK)?;
    gpu.fails(
        &Pm4::new().write(BASE + PAGE, &[1]),
        ExecutionState::DmaPageFault,
    )
}
