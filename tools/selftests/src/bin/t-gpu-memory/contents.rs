// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in memory when it comes to a process (MEM-7, MEM-24), and local memory under the CPU
//! (MEM-97).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use opendxg::pm4::{Atomic, Pm4};
use opendxg::{GpuMap, ResidentFlags, Status};
use selftests::child::in_child;
use selftests::gpu::{reaches, Gpu, PAGE, READ_WRITE};
use selftests::rounds::rounds;
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-24 RES-27 new memory is zero", new)
        .test("MEM-7 local memory of another process is zero", zeroed)
        .test("MEM-7 RES-27 in the middle of work", dirty)
        .test("MEM-97 local memory is mapped for the CPU", locked)
        .test("MEM-97 locks nest", nested)
        .test(
            "MEM-97 MEM-99 a lock stays valid while memory moves",
            moving,
        )
        .test("GPU-37 copies of megabytes", large)
}

fn new() -> TestResult {
    let gpu = Gpu::new()?;
    for buffer in [gpu.buffer(16 * PAGE)?, gpu.local_buffer(16 * PAGE)?] {
        let copy = gpu.buffer(16 * PAGE)?;
        copy.fill(u32::MAX);
        gpu.run(&Pm4::new().copy(copy.address(), buffer.address(), 16 * PAGE))?;
        copy.holds(0..16 * PAGE, 0)?;
        buffer.holds(0..16 * PAGE, 0)?;
    }
    Ok(())
}

/// Half of the default segment.
const MUCH: u64 = 32 << 20;

/// One process fills much of the segment and ends; the next one looks at it by GPU and CPU.
fn zeroed() -> TestResult {
    for _ in 0..2 {
        in_child(|| {
            let gpu = Gpu::new()?;
            let buffer = gpu.local_buffer(MUCH)?;
            // Anything else than 0 in the words that are looked at makes the sum something else.
            for offset in (0..MUCH).step_by(PAGE as usize) {
                ensure_eq!(buffer.get64(offset), 0, "at {offset:#x}");
                ensure_eq!(
                    buffer.get64(offset + PAGE - 8),
                    0,
                    "at the end of {offset:#x}"
                );
            }
            let copy = gpu.buffer(PAGE)?;
            gpu.run(&Pm4::new().copy(copy.address(), buffer.at(MUCH / 2), PAGE))?;
            copy.holds(0..PAGE, 0)?;
            gpu.run(&Pm4::new().fill(buffer.address(), 0xdead_beef, MUCH))?;
            ensure_eq!(buffer.get32(MUCH - 4), 0xdead_beef);
            Ok(())
        })?;
    }
    Ok(())
}

/// The memory is used before the paging fence says that it may be.
fn dirty() -> TestResult {
    let gpu = Gpu::new()?;
    let result = gpu.buffer(PAGE)?;
    for _ in 0..rounds(20) {
        let full = gpu.local_buffer(64 * PAGE)?;
        gpu.run(&Pm4::new().fill(full.address(), 0xdead_beef, 64 * PAGE))?;
        drop(full);
        let other = Gpu::new()?;
        let allocation = other.allocate_local(64 * PAGE)?;
        let map = GpuMap {
            pages: 64,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let paging = other.paging();
        let range = paging.map(Some(&allocation), &map)?;
        let resident = paging
            .make_resident(&[&allocation], ResidentFlags::empty())?
            .value()?;
        let read = Pm4::new().copy(result.address(), range.address + 32 * PAGE, PAGE);
        let read = gpu.commands(&read)?;
        other.submit(&read)?;
        let mark = other.mark()?;
        reaches(other.done(), mark)?;
        // Nothing, or the device has faulted and nothing was written.
        result.holds(0..PAGE, 0)?;
        reaches(paging.fence(), resident.max(range.value))?;
    }
    Ok(())
}

fn locked() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.local_buffer(4 * PAGE)?;
    for page in 0..4 {
        buffer.set64(page * PAGE, 1000 + page);
    }
    let add = (0..4).fold(Pm4::new(), |add, page| {
        add.atomic(Atomic::Add, buffer.at(page * PAGE), 10, 0)
    });
    gpu.run(&add)?;
    for page in 0..4 {
        ensure_eq!(buffer.get64(page * PAGE), 1010 + page);
    }
    // Before it is resident for the first time, too.
    let allocation = gpu.allocate_local(PAGE)?;
    allocation.lock_write()?.write(8, &[1, 2, 3, 4]);
    let map = GpuMap {
        pages: 1,
        ..GpuMap::default()
    };
    let range = gpu.paging().map(Some(&allocation), &map)?;
    let resident = gpu
        .paging()
        .make_resident(&[&allocation], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?.max(range.value))?;
    gpu.run(&Pm4::new().move32(buffer.address(), range.address + 8))?;
    ensure_eq!(buffer.get32(0), u32::from_ne_bytes([1, 2, 3, 4]));
    Ok(())
}

fn nested() -> TestResult {
    let device = fixture::device()?;
    let allocation = device.new_resource().local(PAGE).create_one()?;
    let unlock = || {
        // SAFETY: nobody uses the mapping.
        unsafe { allocation.unlock_raw() }
    };
    fails_with(unlock(), Status::INVALID_PARAMETER)?;
    let first = allocation.lock_raw()?;
    let second = allocation.lock_raw()?;
    ensure_eq!(first, second);
    unlock()?;
    // SAFETY: still mapped, by the other lock.
    unsafe { first.cast::<u32>().write_volatile(5) };
    unlock()?;
    fails_with(unlock(), Status::INVALID_PARAMETER)
}

/// A thread counts in local memory that goes and comes.
fn moving() -> TestResult {
    let gpu = Gpu::new()?;
    let buffer = gpu.local_buffer(PAGE)?;
    let list = [buffer.allocation()];
    let ended = AtomicBool::new(false);
    let counted = AtomicU64::new(0);
    std::thread::scope(|scope| -> TestResult {
        let counter = scope.spawn(|| {
            while !ended.load(Relaxed) {
                buffer.set64(8, buffer.get64(8) + 1);
                counted.fetch_add(1, Relaxed);
            }
        });
        let moved = (0..rounds(200)).try_for_each(|_| -> TestResult {
            let before = counted.load(Relaxed);
            gpu.device().evict(&list, opendxg::EvictFlags::empty())?;
            let resident = gpu.paging().make_resident(&list, ResidentFlags::empty())?;
            reaches(gpu.paging().fence(), resident.value()?)?;
            // It has gone on between two moves, however busy the machine is.
            while counted.load(Relaxed) == before && !counter.is_finished() {
                std::thread::yield_now();
            }
            Ok(())
        });
        ended.store(true, Relaxed);
        counter.join().map_err(|_| "panic in a thread")?;
        moved
    })?;
    ensure_eq!(buffer.get64(8), counted.load(Relaxed));
    Ok(())
}

fn large() -> TestResult {
    const SIZE: u64 = 4 << 20;
    let gpu = Gpu::node(2)?;
    let (a, b) = (gpu.local_buffer(SIZE)?, gpu.buffer(SIZE)?);
    for offset in (0..SIZE).step_by(1024) {
        b.set64(offset, offset | 1);
    }
    gpu.run(
        &Pm4::new()
            .copy(a.address(), b.address(), SIZE)
            .fill(b.address(), 9, SIZE),
    )?;
    for offset in (0..SIZE).step_by(1024) {
        ensure_eq!(a.get64(offset), offset | 1);
        ensure_eq!(b.get32(offset), 9);
    }
    gpu.run(&Pm4::new().copy(b.at(4), a.address(), SIZE - 4))?;
    ensure_eq!(b.get32(1024 + 4), 1025);
    Ok(())
}
