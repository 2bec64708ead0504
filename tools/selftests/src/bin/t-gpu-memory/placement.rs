// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where memory is placed, and what changes that (MEM-4, MEM-5, MEM-8).

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{
    Access, Adapter, Allocation, EvictFlags, MemoryGroup, Placement, Residency, Resident,
    ResidentFlags, Status,
};
use selftests::call::refused;
use selftests::gpu::{reaches, Buffer, Gpu, PAGE};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const NONE: EvictFlags = EvictFlags::empty();
const MIB: u64 = 1 << 20;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-4 MEM-78 the aperture shows what is accessed physically while it is resident",
            in_aperture,
        )
        .test(
            "MEM-4 other memory of the system is not in the aperture",
            beside_aperture,
        )
        .slow(
            "MEM-4 MEM-20 an aperture that is full",
            Duration::from_secs(90),
            full_aperture,
        )
        .slow(
            "MEM-4 local memory in pieces takes what needs no range",
            Duration::from_secs(120),
            pieces,
        )
        .test(
            "MEM-4 GPU addresses lead to what is accessed physically",
            contents,
        )
        .test("MEM-8 MEM-5 memory moves to where it is to be", moves)
        .test("MEM-8 what does not change is no operation", unchanged)
        .test("MEM-8 MEM-4 one range on demand", one_range)
        .slow(
            "MEM-8 without room nothing changes",
            Duration::from_secs(90),
            no_room,
        )
        .test("MEM-8 updates that are refused", refusals)
}

/// The ids of the segments of an adapter, and of its aperture.
struct Segments {
    adapter: Adapter,
    local: u32,
    aperture: u32,
}

impl Segments {
    fn new(gpu: &Gpu) -> TestResult<Self> {
        let adapter = gpu.device().adapter().clone();
        let count = adapter.segment_and_node_count()?.0;
        let (mut local, mut aperture) = (None, None);
        for place in 0..count {
            let found = match adapter.segment_statistics(place)?.is_aperture {
                true => &mut aperture,
                false => &mut local,
            };
            // Ids count from 1.
            ensure!(found.replace(place + 1).is_none(), "two of them");
        }
        Ok(Self {
            adapter,
            local: local.ok_or("no local memory")?,
            aperture: aperture.ok_or("no aperture")?,
        })
    }

    /// Bytes that the aperture shows.
    fn shown(&self) -> TestResult<u64> {
        let statistics = self.adapter.segment_statistics(self.aperture - 1)?;
        Ok(statistics.bytes_resident)
    }

    /// Waits until the aperture shows so many bytes. Memory that is destroyed goes when the worker
    /// of its adapter has come to it.
    #[track_caller]
    fn comes_to_show(&self, bytes: u64) -> TestResult {
        eventually("what the aperture shows", || {
            self.shown().is_ok_and(|shown| shown == bytes)
        })
    }

    /// Bytes that the aperture can show.
    fn limit(&self) -> TestResult<u64> {
        let statistics = self.adapter.segment_statistics(self.aperture - 1)?;
        Ok(statistics.commit_limit)
    }
}

fn physical(gpu: &Gpu, bytes: u64, local: bool) -> TestResult<Allocation> {
    let resource = gpu.device().new_resource().physical(bytes, local);
    Ok(resource.create_one()?)
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

fn in_aperture() -> TestResult {
    let gpu = Gpu::new()?;
    let segments = Segments::new(&gpu)?;
    let before = segments.shown()?;
    let (one, other) = (
        physical(&gpu, 5 * PAGE, false)?,
        physical(&gpu, PAGE, false)?,
    );
    ensure_eq!(segments.shown()?, before, "created");
    for _ in 0..3 {
        fits(&gpu, &[&one, &one, &other])?;
        ensure_eq!(segments.shown()?, before + 6 * PAGE);
        ensure_eq!(one.residency()?, Residency::SharedMemory);
        gpu.device().evict(&[&one, &other], NONE)?;
        ensure_eq!(segments.shown()?, before + 5 * PAGE);
        gpu.device().evict(&[&one], NONE)?;
        ensure_eq!(segments.shown()?, before);
    }
    // Whoever has gone is not shown any more.
    fits(&gpu, &[&one, &other])?;
    drop(one);
    gpu.finish()?;
    drop(other);
    segments.comes_to_show(before)
}

fn beside_aperture() -> TestResult {
    let gpu = Gpu::new()?;
    let segments = Segments::new(&gpu)?;
    let before = segments.shown()?;
    let buffer = gpu.buffer(4 * PAGE)?;
    let local = [gpu.local_buffer(4 * PAGE)?, {
        let allocation = physical(&gpu, 4 * PAGE, true)?;
        Buffer::new(gpu.paging(), allocation, 4 * PAGE)?
    }];
    for memory in local.iter().chain([&buffer]) {
        gpu.run(&Pm4::new().write(memory.address(), &[1]))?;
    }
    ensure_eq!(segments.shown()?, before);
    Ok(())
}

fn full_aperture() -> TestResult {
    let gpu = Gpu::new()?;
    let segments = Segments::new(&gpu)?;
    let third = (segments.limit()? / 3 + PAGE).next_multiple_of(PAGE);
    let three: TestResult<Vec<_>> = (0..3).map(|_| physical(&gpu, third, false)).collect();
    let three = three?;
    fits(&gpu, &[&three[0], &three[1]])?;
    let answer = resident(&gpu, &[&three[2]])?;
    let Resident::TooMuch { bytes_to_trim } = answer else {
        return Err(format!("{answer:?}").into());
    };
    ensure!(
        bytes_to_trim != 0 && bytes_to_trim <= third,
        "{bytes_to_trim:#x}"
    );
    // Memory of the system there is enough.
    let plain = gpu.allocate(third)?;
    fits(&gpu, &[&plain])?;
    gpu.device().evict(&[&three[0]], NONE)?;
    fits(&gpu, &[&three[2]])?;
    // MEM-23: who stays as long as nobody needs the room gives way.
    gpu.device()
        .evict(&[&three[1]], EvictFlags::ONLY_IF_NECESSARY)?;
    ensure_eq!(three[1].residency()?, Residency::SharedMemory);
    fits(&gpu, &[&three[0]])?;
    ensure_eq!(three[1].residency()?, Residency::NotResident);
    Ok(())
}

/// Fills local memory with pieces, and evicts most of them again: what stays divides the rest.
fn pieces() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.device().adapter().video_memory(MemoryGroup::Local)?;
    let mut all = Vec::new();
    loop {
        let piece = gpu.allocate_local(MIB)?;
        let flags = ResidentFlags::CANT_TRIM_FURTHER;
        match gpu.paging().make_resident(&[&piece], flags)? {
            Resident::At(value) => reaches(gpu.paging().fence(), value)?,
            Resident::TooMuch { .. } => break,
        }
        all.push(piece);
    }
    for (number, piece) in all.iter().enumerate() {
        if number % 4 != 0 {
            gpu.device().evict(&[piece], NONE)?;
        }
    }
    let half = memory.budget / 2 / MIB * MIB;
    let (range, plain) = (physical(&gpu, half, true)?, gpu.allocate_local(half)?);
    let answer = resident(&gpu, &[&range])?;
    let Resident::TooMuch { bytes_to_trim } = answer else {
        return Err(format!("{answer:?}").into());
    };
    ensure!(bytes_to_trim != 0, "nothing to trim");
    fits(&gpu, &[&plain])?;
    gpu.device().evict(&[&plain], NONE)?;
    for piece in all.iter().step_by(4) {
        gpu.device().evict(&[piece], NONE)?;
    }
    fits(&gpu, &[&range])?;
    ensure_eq!(range.residency()?, Residency::GpuMemory);
    Ok(())
}

fn contents() -> TestResult {
    let gpu = Gpu::new()?;
    for local in [false, true] {
        let size = 80 * PAGE;
        let buffer = Buffer::new(gpu.paging(), physical(&gpu, size, local)?, size)?;
        let copy = gpu.buffer(size)?;
        buffer.holds(0..size, 0)?;
        gpu.run(&Pm4::new().fill(buffer.address(), 7, size))?;
        for page in 0..80 {
            buffer.set32(page * PAGE + 8, page as u32);
        }
        for _ in 0..2 {
            gpu.run(&Pm4::new().copy(copy.address(), buffer.address(), size))?;
            for page in 0..80 {
                ensure_eq!(copy.read(page * PAGE, 3), [7, 7, page as u32]);
            }
            copy.fill(0);
            gpu.device().evict(&[buffer.allocation()], NONE)?;
            fits(&gpu, &[buffer.allocation()])?;
        }
    }
    Ok(())
}

/// Resident or not, mapped or not, with its bytes.
fn moves() -> TestResult {
    let gpu = Gpu::new()?;
    let segments = Segments::new(&gpu)?;
    let (local, aperture) = (segments.local, segments.aperture);
    let both = Placement::new().segments(&[local, aperture]);
    let buffer = gpu.buffer(9 * PAGE)?;
    let allocation = buffer.allocation();
    let update = |placement: Placement| -> TestResult {
        let value = gpu.paging().update_placement(allocation, &placement)?;
        reaches(gpu.paging().fence(), value)
    };
    let usage = |group| -> TestResult<u64> { Ok(segments.adapter.video_memory(group)?.usage) };
    let groups = [MemoryGroup::Local, MemoryGroup::NonLocal];
    let before = [usage(groups[0])?, usage(groups[1])?];
    update(both)?;
    ensure_eq!(allocation.residency()?, Residency::SharedMemory);
    let mut word = 0;
    for turn in 0..3 {
        for (segment, residency) in [
            (local, Residency::GpuMemory),
            (aperture, Residency::SharedMemory),
        ] {
            word += 1;
            gpu.run(&Pm4::new().fill(buffer.address(), word, 9 * PAGE))?;
            update(Placement::new().preferred(&[segment]))?;
            ensure_eq!(allocation.residency()?, residency);
            buffer.holds(0..9 * PAGE, word)?;
            // The address leads to the new place, for GPU and CPU.
            gpu.run(&Pm4::new().write(buffer.address(), &[100 + word]))?;
            ensure_eq!(buffer.get32(0), 100 + word);
            buffer.set32(PAGE, 200 + word);
            gpu.run(&Pm4::new().move32(buffer.at(8), buffer.at(PAGE)))?;
            ensure_eq!(buffer.get32(8), 200 + word);
            let moved = match segment == local {
                true => 9 * PAGE,
                false => 0,
            };
            // The memory of the commands goes a little later.
            let expected = [before[0] + moved, before[1] - moved];
            eventually("the usage of what moved", || {
                [usage(groups[0]).ok(), usage(groups[1]).ok()] == expected.map(Some)
            })?;
        }
        // The next turn while it is not resident.
        if turn == 1 {
            gpu.device().evict(&[allocation], NONE)?;
            update(Placement::new().preferred(&[local]))?;
            ensure_eq!(allocation.residency()?, Residency::NotResident);
            buffer.holds(2 * PAGE..9 * PAGE, word)?;
            fits(&gpu, &[allocation])?;
            ensure_eq!(allocation.residency()?, Residency::GpuMemory);
            update(Placement::new().preferred(&[aperture]))?;
        }
    }
    // Without the segment that it had best be in, it is in the other.
    update(Placement::new().segments(&[local]))?;
    ensure_eq!(allocation.residency()?, Residency::GpuMemory);
    // What it may not be in does not count, and the first that it may be in does.
    update(both.preferred(&[0, 0, aperture, local]))?;
    ensure_eq!(allocation.residency()?, Residency::SharedMemory);
    Ok(())
}

fn unchanged() -> TestResult {
    let gpu = Gpu::new()?;
    let segments = Segments::new(&gpu)?;
    let buffer = gpu.local_buffer(PAGE)?;
    let mut same = Placement::new();
    for step in 0..4 {
        same = match step {
            0 => same,
            1 => same.segments(&[segments.local]),
            2 => same.preferred(&[segments.local]).unmoveable(false),
            _ => same.accessed_physically(false),
        };
        // Not even while an engine uses it all the time.
        let work = gpu.commands(&Pm4::new().fill(buffer.address(), step, PAGE))?;
        for _ in 0..8 {
            gpu.submit(&work)?;
            ensure_eq!(
                gpu.paging().update_placement(buffer.allocation(), &same)?,
                0
            );
        }
        gpu.finish()?;
    }
    gpu.works()
}

fn one_range() -> TestResult {
    let gpu = Gpu::new()?;
    let segments = Segments::new(&gpu)?;
    let before = segments.shown()?;
    for buffer in [gpu.buffer(6 * PAGE)?, gpu.local_buffer(6 * PAGE)?] {
        let allocation = buffer.allocation();
        let is_local = allocation.residency()? == Residency::GpuMemory;
        buffer.fill(5);
        for (turn, physical) in [true, true, false, true].into_iter().enumerate() {
            let placement = Placement::new().accessed_physically(physical);
            let value = gpu.paging().update_placement(allocation, &placement)?;
            reaches(gpu.paging().fence(), value)?;
            let shown = match physical && !is_local {
                true => 6 * PAGE,
                false => 0,
            };
            ensure_eq!(segments.shown()?, before + shown, "{turn}");
            gpu.run(&Pm4::new().write(buffer.at(8), &[9]))?;
            ensure_eq!(buffer.read(0, 4), [5, 5, 9, 5]);
        }
        drop(buffer);
        segments.comes_to_show(before)?;
    }
    Ok(())
}

fn no_room() -> TestResult {
    let gpu = Gpu::new()?;
    let segments = Segments::new(&gpu)?;
    let memory = segments.adapter.video_memory(MemoryGroup::Local)?;
    let large = gpu.allocate_local(memory.budget / MIB * MIB)?;
    let size = 8 * MIB;
    let buffer = gpu.buffer(size)?;
    let to_local = Placement::new()
        .segments(&[segments.local, segments.aperture])
        .preferred(&[segments.local]);
    fits(&gpu, &[&large])?;
    buffer.fill(3);
    let update = || {
        gpu.paging()
            .update_placement(buffer.allocation(), &to_local)
    };
    fails_with(update(), Status::NO_MEMORY)?;
    gpu.run(&Pm4::new().write(buffer.address(), &[4]))?;
    ensure_eq!(buffer.read(0, 2), [4, 3]);
    ensure_eq!(buffer.allocation().residency()?, Residency::SharedMemory);
    // MEM-23: who need not be there gives way to it.
    gpu.device()
        .evict(&[&large], EvictFlags::ONLY_IF_NECESSARY)?;
    reaches(gpu.paging().fence(), update()?)?;
    ensure_eq!(buffer.allocation().residency()?, Residency::GpuMemory);
    ensure_eq!(large.residency()?, Residency::NotResident);
    buffer.holds(4..size, 3)?;
    // What cannot fit at all changes nothing either.
    let huge = gpu.allocate(2 * memory.budget)?;
    let value = gpu.paging().update_placement(&huge, &to_local)?;
    reaches(gpu.paging().fence(), value)?;
    let answer = resident(&gpu, &[&huge])?;
    ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
    gpu.works()
}

fn refusals() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let raw = fixture::raw()?;
    let segments = Segments::new(&gpu)?;
    let (own, foreign) = (gpu.allocate(PAGE)?, other.allocate(PAGE)?);
    let mut good = D3DDDI_UPDATEALLOCPROPERTY::zeroed();
    good.hPagingQueue = gpu.paging().handle().0;
    good.hAllocation = own.handle().0;
    good.PropertyMaskValue = 0xf;
    good.SupportedSegmentSet = 1 << (segments.aperture - 1);
    good.PreferredSegment = segments.aperture;
    type Spoil = fn(&mut D3DDDI_UPDATEALLOCPROPERTY);
    let spoilt: [(&str, Spoil); 14] = [
        ("queue 0", |arg| arg.hPagingQueue = 0),
        ("no queue", |arg| arg.hPagingQueue += 0x40_0000),
        ("allocation 0", |arg| arg.hAllocation = 0),
        ("no allocation", |arg| arg.hAllocation += 0x40_0000),
        ("a queue as allocation", |arg| {
            arg.hAllocation = arg.hPagingQueue
        }),
        ("mask 4", |arg| arg.PropertyMaskValue |= 1 << 4),
        ("mask 31", |arg| arg.PropertyMaskValue |= 1 << 31),
        ("flag 2", |arg| arg.Flags = 1 << 2),
        ("flag 31", |arg| arg.Flags = 1 << 31),
        ("no segment", |arg| arg.SupportedSegmentSet = 0),
        ("segment 3", |arg| arg.SupportedSegmentSet |= 1 << 2),
        ("segment 32", |arg| arg.SupportedSegmentSet |= 1 << 31),
        ("preference 3", |arg| arg.PreferredSegment = 3 << 6),
        ("preference bit 30", |arg| arg.PreferredSegment |= 1 << 30),
    ];
    for (what, spoil) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, IP).map_err(|error| format!("{what}: {error}"))?;
    }
    let mut arg = good;
    arg.hAllocation = foreign.handle().0;
    refused(&raw, &mut arg, IP)?;
    // Reserved bits count whatever is changed.
    for (flags, preference) in [(1 << 2, 0), (0, 1 << 31)] {
        let mut arg = good;
        (arg.PropertyMaskValue, arg.Flags) = (0, flags);
        arg.PreferredSegment = preference;
        refused(&raw, &mut arg, IP)?;
    }
    // Who may only read may not decide for the others.
    let resource = gpu
        .device()
        .new_resource()
        .linear(PAGE)
        .nt_shared()
        .create()?;
    let handle = resource.share(Access::GENERIC_READ)?;
    let opened = other.device().open_share(&handle)?.resource;
    let physical = Placement::new().accessed_physically(true);
    fails_with(
        other
            .paging()
            .update_placement(&opened.allocations()[0], &physical),
        Status::ACCESS_DENIED,
    )
}
