// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evictions that wait until memory is short, and bytes that nobody has written (MEM-23, MEM-27).

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{
    Access, Allocation, EvictFlags, GpuMap, MemoryGroup, Residency, Resident, ResidentFlags, Status,
};
use selftests::child::{Child, Gate};
use selftests::gpu::{reaches, Gpu, PAGE, READ_WRITE};
use selftests::{ensure, ensure_eq, fails_with, Suite, TestResult};

const NONE: EvictFlags = EvictFlags::empty();
const LAZILY: EvictFlags = EvictFlags::ONLY_IF_NECESSARY;
const CLEAN: EvictFlags = EvictFlags::NOT_WRITTEN_TO;
const MIB: u64 = 1 << 20;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-23 what need not go stays, and is resident again without any operation",
            stays,
        )
        .slow(
            "MEM-23 MEM-24 it gives way when memory is short",
            Duration::from_secs(90),
            gives_way,
        )
        .slow(
            "MEM-23 MEM-27 MEM-9 who gives way first",
            Duration::from_secs(90),
            order,
        )
        .slow(
            "MEM-23 MEM-26 it gives way to another process",
            Duration::from_secs(90),
            to_another_process,
        )
        .slow(
            "MEM-18 what a device lists stays, whatever others of its process want",
            Duration::from_secs(90),
            listed_stays,
        )
        .test(
            "MEM-23 what was not written to need not be copied",
            not_written,
        )
        .test(
            "MEM-23 nobody drops what another process has written",
            written_by_another,
        )
        .test("MEM-20 MEM-23 who asks in vain loses nothing", in_vain)
}

fn resident(gpu: &Gpu, list: &[&Allocation]) -> TestResult<Resident> {
    let resident = gpu.paging().make_resident(list, ResidentFlags::empty())?;
    if let Resident::At(value) = resident {
        reaches(gpu.paging().fence(), value)?;
    }
    Ok(resident)
}

#[track_caller]
fn fits(gpu: &Gpu, list: &[&Allocation]) -> TestResult {
    let answer = resident(gpu, list)?;
    ensure!(matches!(answer, Resident::At(_)), "{answer:?}");
    Ok(())
}

/// Half of the budget and a bit, so that two of them do not fit.
fn more_than_half(gpu: &Gpu) -> TestResult<u64> {
    let memory = gpu.device().adapter().video_memory(MemoryGroup::Local)?;
    Ok(memory.budget * 5 / 8 / MIB * MIB)
}

fn stays() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    for buffer in [gpu.local_buffer(4 * PAGE)?, gpu.buffer(4 * PAGE)?] {
        let list = [buffer.allocation()];
        let where_it_is = buffer.allocation().residency()?;
        let statistics = [
            adapter.segment_statistics(0)?,
            adapter.segment_statistics(1)?,
        ];
        for round in 1..4 {
            gpu.run(&Pm4::new().fill(buffer.address(), round, 4 * PAGE))?;
            gpu.device().evict(&list, LAZILY)?;
            fails_with(gpu.device().evict(&list, LAZILY), Status::INVALID_PARAMETER)?;
            ensure_eq!(buffer.allocation().residency()?, where_it_is);
            ensure_eq!(adapter.segment_statistics(0)?, statistics[0]);
            ensure_eq!(adapter.segment_statistics(1)?, statistics[1]);
            buffer.holds(0..4 * PAGE, round)?;
            let again = gpu.paging().make_resident(&list, ResidentFlags::empty())?;
            ensure_eq!(again, Resident::At(0));
        }
        // After a real one it is gone.
        gpu.device().evict(&list, LAZILY)?;
        fits(&gpu, &list)?;
        gpu.device().evict(&list, NONE)?;
        ensure_eq!(buffer.allocation().residency()?, Residency::NotResident);
    }
    Ok(())
}

fn gives_way() -> TestResult {
    let gpu = Gpu::new()?;
    let size = more_than_half(&gpu)?;
    let (first, second) = (gpu.local_buffer(size)?, gpu.allocate_local(size)?);
    gpu.run(&Pm4::new().fill(first.address(), 0x55, size))?;
    ensure!(
        matches!(resident(&gpu, &[&second])?, Resident::TooMuch { .. }),
        "both fit"
    );
    gpu.device().evict(&[first.allocation()], LAZILY)?;
    fits(&gpu, &[&second])?;
    ensure_eq!(first.allocation().residency()?, Residency::NotResident);
    ensure_eq!(second.residency()?, Residency::GpuMemory);
    for page in 0..size / PAGE {
        ensure_eq!(first.get32(page * PAGE), 0x55);
    }
    // And back, with what was written meanwhile.
    first.set32(8, 0x66);
    gpu.device().evict(&[&second], LAZILY)?;
    fits(&gpu, &[first.allocation()])?;
    let copy = gpu.buffer(PAGE)?;
    gpu.run(&Pm4::new().copy(copy.address(), first.address(), PAGE))?;
    ensure_eq!(copy.read(0, 4), [0x55, 0x55, 0x66, 0x55]);
    Ok(())
}

fn order() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.device().adapter().video_memory(MemoryGroup::Local)?;
    let quarter = memory.budget / 4 / MIB * MIB;
    let four: TestResult<Vec<Allocation>> = (0..4).map(|_| gpu.allocate_local(quarter)).collect();
    let four = four?;
    let priorities = [0x7800_0000, 0x5000_0000, 0x7800_0000, 0x5000_0000];
    for (piece, priority) in four.iter().zip(priorities) {
        piece.set_priority(priority)?;
    }
    let all: Vec<&Allocation> = four.iter().collect();
    fits(&gpu, &all)?;
    // The low ones first, and of those that are alike the one that waits longest.
    for piece in [3, 0, 2, 1] {
        gpu.device().evict(&[&four[piece]], LAZILY)?;
    }
    // What is low only now is the last of the low ones.
    four[0].set_priority(0x5000_0000)?;
    let mut others = Vec::new();
    for expected in [3, 1, 0, 2] {
        let other = gpu.allocate_local(quarter)?;
        fits(&gpu, &[&other])?;
        others.push(other);
        let gone: TestResult<Vec<usize>> = (0..4)
            .filter_map(|piece| match four[piece].residency() {
                Ok(Residency::NotResident) => Some(Ok(piece)),
                Ok(_) => None,
                Err(error) => Some(Err(error.into())),
            })
            .collect();
        let gone = gone?;
        ensure!(gone.contains(&expected), "{gone:?} without {expected}");
        ensure_eq!(gone.len(), others.len());
    }
    Ok(())
}

fn to_another_process() -> TestResult {
    let (idle, taken) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let size = more_than_half(&gpu)?;
        let buffer = gpu.local_buffer(size)?;
        gpu.run(&Pm4::new().fill(buffer.address(), 0x77, size))?;
        gpu.device().evict(&[buffer.allocation()], LAZILY)?;
        idle.open()?;
        taken.wait()?;
        ensure_eq!(buffer.allocation().residency()?, Residency::NotResident);
        for page in 0..size / PAGE {
            ensure_eq!(buffer.get32(page * PAGE), 0x77);
        }
        gpu.works()
    })?;
    idle.wait()?;
    let gpu = Gpu::new()?;
    let buffer = gpu.local_buffer(more_than_half(&gpu)?)?;
    // It has nothing of the other process.
    for page in 0..buffer.bytes() / PAGE {
        ensure_eq!(buffer.get32(page * PAGE), 0);
    }
    taken.open()?;
    child.join()
}

/// Nothing is taken away from who has it on the list, so that its contexts always find it.
fn listed_stays() -> TestResult {
    let gpu = Gpu::new()?;
    let size = more_than_half(&gpu)?;
    let buffer = gpu.local_buffer(size)?;
    let add = Pm4::new()
        .fill(buffer.address(), 1, PAGE)
        .fill(buffer.at(size - PAGE), 2, PAGE);
    let work = gpu.commands(&add)?;
    let other = Gpu::new()?;
    for _ in 0..20 {
        for flags in [ResidentFlags::empty(), ResidentFlags::CANT_TRIM_FURTHER] {
            let piece = other.allocate_local(size)?;
            gpu.submit(&work)?;
            let answer = other.paging().make_resident(&[&piece], flags)?;
            ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
            ensure_eq!(buffer.allocation().residency()?, Residency::GpuMemory);
            gpu.finish()?;
        }
    }
    other.works()?;
    gpu.works()
}

fn not_written() -> TestResult {
    let gpu = Gpu::new()?;
    for lazily in [NONE, LAZILY] {
        let buffer = gpu.local_buffer(4 * PAGE)?;
        let list = [buffer.allocation()];
        let fill = |word| gpu.run(&Pm4::new().fill(buffer.address(), word, 4 * PAGE));
        fill(1)?;
        // What it is when it goes counts, if anybody may have written.
        gpu.device().evict(&list, NONE)?;
        fits(&gpu, &list)?;
        gpu.device().evict(&list, lazily | CLEAN)?;
        buffer.holds(0..4 * PAGE, 1)?;
        // Whoever says so and has written loses that.
        fits(&gpu, &list)?;
        gpu.device().evict(&list, NONE)?;
        fits(&gpu, &list)?;
        fill(2)?;
        gpu.device().evict(&list, CLEAN)?;
        buffer.holds(0..4 * PAGE, 1)?;
        // Whoever has said once that it was written to does not.
        fits(&gpu, &list)?;
        fill(3)?;
        gpu.device().evict(&list, LAZILY)?;
        fits(&gpu, &list)?;
        gpu.device().evict(&list, CLEAN)?;
        buffer.holds(0..4 * PAGE, 3)?;
        // Nothing but zeros was there before.
        let fresh = gpu.local_buffer(PAGE)?;
        gpu.run(&Pm4::new().fill(fresh.address(), 4, PAGE))?;
        gpu.device().evict(&[fresh.allocation()], CLEAN)?;
        fresh.holds(0..PAGE, 0)?;
    }
    Ok(())
}

/// A process that may only read says that nobody has written.
fn written_by_another() -> TestResult {
    let gpu = Gpu::new()?;
    let resource = gpu
        .device()
        .new_resource()
        .local(PAGE)
        .nt_shared()
        .create()?;
    let handle = resource.share(Access::GENERIC_READ)?;
    let (opened, evicted) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let other = Gpu::new()?;
        let resource = other.device().open_share(&handle)?.resource;
        let allocation = &resource.allocations()[0];
        fits(&other, &[allocation])?;
        opened.open()?;
        evicted.wait()?;
        other.device().evict(&[allocation], CLEAN)?;
        ensure_eq!(allocation.residency()?, Residency::NotResident);
        Ok(())
    })?;
    opened.wait()?;
    let allocation = &resource.allocations()[0];
    let map = GpuMap {
        pages: 1,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let range = gpu.paging().map(Some(allocation), &map)?;
    reaches(gpu.paging().fence(), range.value)?;
    fits(&gpu, &[allocation])?;
    gpu.run(&Pm4::new().fill(range.address, 9, PAGE))?;
    gpu.device().evict(&[allocation], CLEAN)?;
    evicted.open()?;
    child.join()?;
    let bytes = allocation.lock()?.to_vec();
    ensure!(bytes.iter().step_by(4).all(|byte| *byte == 9), "dropped");
    Ok(())
}

/// What waits stays there, if the call that wants it and more fails.
fn in_vain() -> TestResult {
    let gpu = Gpu::new()?;
    let small = gpu.local_buffer(PAGE)?;
    let huge = gpu.allocate_local(2 * more_than_half(&gpu)?)?;
    gpu.run(&Pm4::new().fill(small.address(), 5, PAGE))?;
    gpu.device().evict(&[small.allocation()], LAZILY)?;
    let answer = resident(&gpu, &[small.allocation(), &huge])?;
    ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
    ensure_eq!(small.allocation().residency()?, Residency::GpuMemory);
    ensure_eq!(huge.residency()?, Residency::NotResident);
    let again = resident(&gpu, &[small.allocation()])?;
    ensure_eq!(again, Resident::At(0));
    small.holds(0..PAGE, 5)
}
