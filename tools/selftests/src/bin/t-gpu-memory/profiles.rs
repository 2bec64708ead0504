// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters whose page tables look different: clients notice nothing but where addresses end
//! (MEM-51 to MEM-59).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{Device, ExecutionState, GpuMap, ResidentFlags, Status};
use rustix::io::Errno;
use selftests::gpu::{reaches, Buffer, Gpu, NODES, PAGE, READ_WRITE};
use selftests::rounds::rounds;
use selftests::soft_adapter::SoftAdapter;
use selftests::{ensure, ensure_eq, fails_with, skip, Suite, TestResult};

/// What one entry of a root of two levels stands for.
const PART: u64 = 4 << 20;
/// The end of addresses of two levels.
const LOW_END: u64 = 1 << 32;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "MEM-52 MEM-53 MEM-58 work finds its memory on every profile",
            Duration::from_secs(90),
            every_profile,
        )
        .test("MEM-40 MEM-51 addresses of two levels", ends)
        .slow(
            "MEM-54 MEM-55 MEM-59 a root moves under work that runs",
            Duration::from_secs(180),
            moving_root,
        )
        .slow(
            "MEM-56 page tables change while nothing of the process runs",
            Duration::from_secs(180),
            idle_updates,
        )
        .test("MEM-59 contexts that come later know the root", later)
        .test("MEM-54 a process ends while its root is large", ended)
}

/// An adapter with this profile. Skips the test if its page tables do not reach all memory.
fn adapter(profile: &str) -> TestResult<SoftAdapter> {
    adapter_with(profile, "0")
}

/// The same with this `idle_updates`.
fn adapter_with(profile: &str, idle_updates: &str) -> TestResult<SoftAdapter> {
    adapter_in(profile, |soft| Ok(soft.set("idle_updates", idle_updates)?))
}

/// The same with what else is to be configured.
pub(super) fn adapter_in(
    profile: &str,
    configure: impl FnOnce(&SoftAdapter) -> TestResult,
) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new(&format!("memory-{profile}"))?;
    if profile == "uma" {
        soft.set("local_memory", "0")?;
    }
    soft.set("profile", profile)?;
    configure(&soft)?;
    match soft.set("enabled", "1") {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => {
            skip!("system memory ends above 4 GiB")
        }
        other => other?,
    }
    Ok(soft)
}

fn map(base: u64, pages: u64) -> GpuMap {
    GpuMap {
        base,
        pages,
        protection: READ_WRITE,
        ..GpuMap::default()
    }
}

/// Maps all pages of a buffer at an address as well.
fn map_at(gpu: &Gpu, buffer: &Buffer, base: u64) -> TestResult {
    let range = gpu
        .paging()
        .map(Some(buffer.allocation()), &map(base, buffer.bytes() / PAGE))?;
    ensure_eq!(range.address, base);
    reaches(gpu.paging().fence(), range.value)
}

/// Copies, maps over, evicts and frees.
fn uses_memory(device: &Device, has_local: bool) -> TestResult {
    let gpu = Gpu::on(device, 0)?;
    let first = gpu.buffer(3 * PAGE)?;
    let second = match has_local {
        true => gpu.local_buffer(3 * PAGE)?,
        false => gpu.buffer(3 * PAGE)?,
    };
    // The last entry of one table, and the first of the next one.
    let base = 0x7000_0000 - PAGE;
    first.fill(0x11);
    second.fill(0x22);
    gpu.run(&Pm4::new().copy(second.address(), first.address(), 2 * PAGE))?;
    second.holds(0..2 * PAGE, 0x11)?;
    second.holds(2 * PAGE..3 * PAGE, 0x22)?;
    for (buffer, byte) in [(&first, 0x33), (&second, 0x44), (&first, 0x55)] {
        map_at(&gpu, buffer, base)?;
        gpu.run(&Pm4::new().fill(base, byte, 3 * PAGE))?;
        buffer.holds(0..3 * PAGE, byte)?;
    }
    second.holds(0..3 * PAGE, 0x44)?;
    device.adapter().free_gpu_range(base + PAGE, PAGE)?;
    gpu.run(&Pm4::new().write(base, &[6]).write(base + 2 * PAGE, &[7]))?;
    ensure_eq!(first.get32(0), 6);
    ensure_eq!(first.get32(2 * PAGE), 7);
    gpu.fails(
        &Pm4::new().write(base + PAGE, &[8]),
        ExecutionState::DmaPageFault,
    )?;
    ensure_eq!(device.page_fault()?.address, base + PAGE);
    first.holds(PAGE..2 * PAGE, 0x55)
}

fn every_profile() -> TestResult {
    for profile in ["vram4", "doc2", "uma"] {
        let soft = adapter(profile)?;
        let has_local = profile != "uma";
        let device = soft.device()?;
        if !has_local {
            fails_with(
                device.new_resource().local(PAGE).create_one(),
                Status::INVALID_PARAMETER,
            )?;
        }
        for _ in 0..2 {
            uses_memory(&soft.device()?, has_local)
                .map_err(|error| format!("{profile}: {error}"))?;
        }
        drop(device);
        soft.remove()?;
    }
    Ok(())
}

fn ends() -> TestResult {
    let soft = adapter("doc2")?;
    let device = soft.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    let mut mmu = [0; 12];
    device.adapter().query(34, &mut mmu)?;
    ensure_eq!(mmu[8..], 32u32.to_le_bytes());
    // Nothing is in the first entry of the root.
    ensure!(buffer.address() >= PART, "{:#x}", buffer.address());
    for base in [PAGE, 64 << 10, PART - PAGE, LOW_END, 1 << 40] {
        fails_with(
            gpu.paging().map(Some(buffer.allocation()), &map(base, 1)),
            Status::INVALID_PARAMETER,
        )
        .map_err(|error| format!("{base:#x}: {error}"))?;
    }
    map_at(&gpu, &buffer, LOW_END - PAGE)?;
    gpu.run(&Pm4::new().write(LOW_END - PAGE, &[5]))?;
    ensure_eq!(buffer.get32(0), 5);
    // Behind what the root has, and behind all addresses.
    for address in [PART / 2, LOW_END, LOW_END + buffer.address()] {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        gpu.fails(
            &Pm4::new().write(address, &[6]),
            ExecutionState::DmaPageFault,
        )?;
    }
    ensure_eq!(buffer.get32(0), 5);
    gpu.works()
}

/// How many additions one submission has, so that most roots move in the middle of one.
const ADDITIONS: u64 = 2000;

/// Adds to the word of a page, over and over, until it is told to stop. Returns how often.
pub(super) fn adds(device: &Device, node: u32, stop: &AtomicBool) -> TestResult<u64> {
    let gpu = Gpu::on(device, node)?;
    let counter = gpu.buffer(PAGE)?;
    let mut add = Pm4::new();
    for _ in 0..ADDITIONS {
        add = add.atomic(Atomic::Add, counter.address(), 1, 0);
    }
    let add = gpu.commands(&add)?;
    let mut runs = 0;
    while !stop.load(Ordering::Relaxed) || runs == 0 {
        gpu.submit(&add)?;
        gpu.finish()?;
        runs += 1;
        ensure_eq!(counter.get64(0), runs * ADDITIONS, "node {node}");
    }
    Ok(runs)
}

fn moving_root() -> TestResult {
    mapped_under_work(&adapter("doc2")?, [90, 1023, 300, 700])
}

fn idle_updates() -> TestResult {
    for profile in ["vram4", "doc2"] {
        let soft = adapter_with(profile, "1")?;
        uses_memory(&soft.device()?, true)?;
        mapped_under_work(&soft, [100, 100, 101, 1000])
            .map_err(|error| format!("{profile}: {error}"))?;
        soft.remove()?;
    }
    Ok(())
}

/// Maps, uses and frees pages at these parts of 4 MiB, while all engines add.
fn mapped_under_work(soft: &SoftAdapter, parts: [u64; 4]) -> TestResult {
    let device = soft.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let idle = device.create_context(1)?;
    let buffer = gpu.buffer(2 * PAGE)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| -> TestResult {
        let adding: Vec<_> = NODES
            .iter()
            .map(|node| {
                let (device, stop) = (&device, &stop);
                scope.spawn(move || adds(device, *node, stop))
            })
            .collect();
        let moved = (0..rounds(60)).try_for_each(|round| {
            let base = parts[round as usize % parts.len()] * PART - PAGE;
            map_at(&gpu, &buffer, base)?;
            gpu.run(
                &Pm4::new()
                    .write(base, &[round + 1])
                    .write(base + PAGE, &[round + 2]),
            )?;
            ensure_eq!(buffer.get32(0), round + 1);
            ensure_eq!(buffer.get32(PAGE), round + 2);
            Ok(device.adapter().free_gpu_range(base, 2 * PAGE)?)
        });
        stop.store(true, Ordering::Relaxed);
        for adding in adding {
            let runs = adding.join().map_err(|_| "a thread panicked")??;
            ensure!(runs > 0);
        }
        moved
    })?;
    drop(idle);
    gpu.works()
}

fn later() -> TestResult {
    let soft = adapter("doc2")?;
    let device = soft.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let buffer = gpu.buffer(PAGE)?;
    let base = 1000 * PART;
    map_at(&gpu, &buffer, base)?;
    for node in NODES {
        Gpu::on(&device, node)?.run(&Pm4::new().write(base + 4 * u64::from(node), &[node + 1]))?;
    }
    // Another device of the process has the same addresses.
    let other = Gpu::on(&soft.device()?, 2)?;
    other.run(&Pm4::new().write(base + 16, &[9]))?;
    ensure_eq!(
        [0, 4, 8, 16].map(|offset| buffer.get32(offset)),
        [1, 2, 3, 9]
    );
    device.adapter().free_gpu_range(base, PAGE)?;
    let late = Gpu::on(&soft.device()?, 0)?;
    late.fails(&Pm4::new().write(base, &[1]), ExecutionState::DmaPageFault)?;
    gpu.works()
}

fn ended() -> TestResult {
    let soft = adapter("doc2")?;
    for part in [1023, 20, 500] {
        let device = soft.device()?;
        let gpu = Gpu::on(&device, 0)?;
        let allocation = gpu.allocate(PAGE)?;
        let resident = gpu
            .paging()
            .make_resident(&[&allocation], ResidentFlags::empty())?;
        reaches(gpu.paging().fence(), resident.value()?)?;
        let range = gpu.paging().map(Some(&allocation), &map(part * PART, 1))?;
        reaches(gpu.paging().fence(), range.value)?;
        gpu.run(&Pm4::new().write(part * PART, &[1]))?;
    }
    soft.remove()
}
