// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offered memory loses its bytes when local memory is short, and is taken back (MEM-27, MEM-29 to
//! MEM-32).

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{
    Allocation, EvictFlags, ExecutionState, OfferFlags, OfferPriority, Placement, Reclaimed,
    Residency, Resident, ResidentFlags, Status,
};
use selftests::call::refused;
use selftests::child::{in_child, Child, Gate};
use selftests::gpu::{one, reaches, Gpu, PAGE};
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const MIB: u64 = 1 << 20;
pub(super) const LATER: OfferFlags = OfferFlags::empty();
pub(super) const NOW: OfferFlags = OfferFlags::IMMEDIATELY;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-29 offers that are refused", refused_offers)
        .test("MEM-31 reclaims that are refused", refused_reclaims)
        .test("MEM-30 what is offered cannot be locked", locks)
        .slow(
            "MEM-27 MEM-30 MEM-31 bytes are dropped when memory is short, and are zeros then",
            Duration::from_secs(90),
            dropped,
        )
        .slow(
            "MEM-32 dropped in the order of the offers, and told exactly",
            Duration::from_secs(180),
            order,
        )
        .slow(
            "MEM-27 what is offered gives way before what nobody wants",
            Duration::from_secs(90),
            before_idle,
        )
        .slow(
            "MEM-29 an offer waits for the work that is queued, unless it says otherwise",
            Duration::from_secs(90),
            after_work,
        )
        .slow(
            "MEM-30 work that uses what was dropped faults",
            Duration::from_secs(90),
            use_faults,
        )
        .slow(
            "MEM-31 those that are wanted are paged in, or all stay offered",
            Duration::from_secs(90),
            no_room,
        )
        .slow(
            "MEM-31 RES-3 a reclaim that cannot be told has not happened",
            Duration::from_secs(90),
            not_told,
        )
        .slow(
            "MEM-29 MEM-31 resources are offered with all their allocations",
            Duration::from_secs(90),
            resources,
        )
        .test("MEM-31 what was not dropped is as it was", kept)
}

/// Makes these resident.
#[track_caller]
pub(super) fn resident(gpu: &Gpu, list: &[&Allocation]) -> TestResult {
    let resident = gpu.paging().make_resident(list, ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?)
}

/// Fills an allocation by the processor.
pub(super) fn fill(allocation: &Allocation, byte: u8) -> TestResult {
    allocation.lock_write()?.fill(byte);
    Ok(())
}

/// Demands that all bytes of an allocation are this one.
#[track_caller]
pub(super) fn holds(allocation: &Allocation, byte: u8) -> TestResult {
    let place = core::panic::Location::caller();
    let bytes = allocation.lock()?.to_vec();
    match bytes.iter().position(|found| *found != byte) {
        None => Ok(()),
        Some(at) => Err(format!("{place}: {:#x} at {at:#x}, not {byte:#x}", bytes[at]).into()),
    }
}

/// Another process takes local memory, piece by piece, until there is no more. `each` runs after
/// each piece.
fn take_all(gpu: &Gpu, mut each: impl FnMut() -> TestResult) -> TestResult {
    let mut pieces = Vec::new();
    loop {
        let piece = gpu.allocate_local(MIB)?;
        let flags = ResidentFlags::CANT_TRIM_FURTHER;
        match gpu.paging().make_resident(&[&piece], flags)? {
            Resident::At(value) => reaches(gpu.paging().fence(), value)?,
            Resident::TooMuch { .. } => return Ok(()),
        }
        pieces.push(piece);
        each()?;
    }
}

/// Another process takes all local memory that it can get, and ends.
pub(super) fn squeeze() -> TestResult {
    in_child(|| take_all(&Gpu::new()?, || Ok(())))
}

fn reclaim(gpu: &Gpu, list: &[&Allocation]) -> TestResult<Vec<Reclaimed>> {
    let (results, value) = gpu.paging().reclaim(list)?;
    reaches(gpu.paging().fence(), value)?;
    Ok(results)
}

fn refused_offers() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let allocation = gpu.allocate_local(PAGE)?;
    let handles = [allocation.handle().0, 0];
    let mut good = D3DKMT_OFFERALLOCATIONS::zeroed();
    good.hDevice = gpu.device().handle().0;
    good.HandleList = handles.as_ptr() as u64;
    good.NumAllocations = 1;
    good.Priority = D3DKMT_OFFER_PRIORITY_LOW;
    type Spoil = fn(&mut D3DKMT_OFFERALLOCATIONS);
    let spoilt: [(&str, Spoil); 12] = [
        ("no device", |arg| arg.hDevice = 0),
        ("both lists", |arg| arg.pResources = arg.HandleList),
        ("no list", |arg| arg.HandleList = 0),
        ("none", |arg| arg.NumAllocations = 0),
        ("too many", |arg| arg.NumAllocations = 16385),
        ("priority 0", |arg| arg.Priority = 0),
        ("priority 5", |arg| arg.Priority = 5),
        ("unknown flag", |arg| arg.Flags = 4),
        ("last flag", |arg| arg.Flags = 1 << 31),
        ("a list that ends with no handle", |arg| {
            arg.NumAllocations = 2
        }),
        ("no resource", |arg| {
            (arg.pResources, arg.HandleList) = (arg.HandleList, 0);
        }),
        ("all flags", |arg| arg.Flags = u32::MAX),
    ];
    for (what, spoil) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, IP).map_err(|error| format!("{what}: {error}"))?;
        // Nothing was offered.
        holds(&allocation, 0)?;
    }
    let mut nowhere = good;
    nowhere.HandleList = 8;
    refused(&raw, &mut nowhere, Status::ACCESS_VIOLATION)?;
    // An allocation of another device.
    let other = Gpu::new()?;
    let offer = other
        .device()
        .offer(&[&allocation], OfferPriority::Low, NOW);
    fails_with(offer, IP)?;
    holds(&allocation, 0)
}

fn refused_reclaims() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let allocation = gpu.allocate_local(PAGE)?;
    gpu.device()
        .offer(&[&allocation], OfferPriority::Low, NOW)?;
    let handles = [allocation.handle().0, 0];
    let mut results = [7u32; 2];
    let mut good = D3DKMT_RECLAIMALLOCATIONS2::zeroed();
    good.hPagingQueue = gpu.paging().handle().0;
    good.HandleList = handles.as_ptr() as u64;
    good.NumAllocations = 1;
    good.__bindgen_anon_1.pResults = results.as_mut_ptr() as u64;
    type Spoil = fn(&mut D3DKMT_RECLAIMALLOCATIONS2);
    let spoilt: [(&str, Spoil); 8] = [
        ("no queue", |arg| arg.hPagingQueue = 0),
        ("both lists", |arg| arg.pResources = arg.HandleList),
        ("no list", |arg| arg.HandleList = 0),
        ("none", |arg| arg.NumAllocations = 0),
        ("too many", |arg| arg.NumAllocations = 16385),
        ("no results", |arg| arg.__bindgen_anon_1.pResults = 0),
        ("a list that ends with no handle", |arg| {
            arg.NumAllocations = 2
        }),
        ("no resource", |arg| {
            (arg.pResources, arg.HandleList) = (arg.HandleList, 0);
        }),
    ];
    for (what, spoil) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, IP).map_err(|error| format!("{what}: {error}"))?;
        // It is still offered.
        fails_with(allocation.lock().map(|_| ()), IP)?;
    }
    let mut first = D3DKMT_RECLAIMALLOCATIONS::zeroed();
    first.hDevice = gpu.device().handle().0;
    (first.HandleList, first.NumAllocations) = (handles.as_ptr() as u64, 2);
    refused(&raw, &mut first, IP)?;
    fails_with(allocation.lock().map(|_| ()), IP)?;
    first.NumAllocations = 1;
    // Nobody has to be told.
    selftests::call::succeeds(&raw, &mut first)?;
    ensure_eq!(results, [7; 2]);
    holds(&allocation, 0)
}

fn locks() -> TestResult {
    let gpu = Gpu::new()?;
    for allocation in [gpu.allocate(PAGE)?, gpu.allocate_local(PAGE)?] {
        for flags in [LATER, NOW] {
            fill(&allocation, 5)?;
            gpu.device()
                .offer(&[&allocation], OfferPriority::High, flags)?;
            // Twice is once.
            gpu.device()
                .offer(&[&allocation], OfferPriority::Low, flags)?;
            fails_with(allocation.lock().map(|_| ()), IP)?;
            fails_with(allocation.lock_raw().map(|_| ()), IP)?;
            ensure_eq!(reclaim(&gpu, &[&allocation])?, [Reclaimed::Kept]);
            holds(&allocation, 5)?;
        }
        // What is not offered can be taken back, too.
        ensure_eq!(reclaim(&gpu, &[&allocation])?, [Reclaimed::Kept]);
        holds(&allocation, 5)?;
    }
    Ok(())
}

fn dropped() -> TestResult {
    let gpu = Gpu::new()?;
    let buffers = [
        gpu.local_buffer(64 * PAGE)?,
        gpu.local_buffer(64 * PAGE)?,
        gpu.local_buffer(64 * PAGE)?,
    ];
    let [listed, evicted, needed] = &buffers;
    for buffer in &buffers {
        gpu.run(&Pm4::new().fill(buffer.address(), 7, 64 * PAGE))?;
    }
    let idle = EvictFlags::ONLY_IF_NECESSARY;
    gpu.device().evict(&[evicted.allocation()], idle)?;
    let offered = [listed.allocation(), evicted.allocation()];
    gpu.device().offer(&offered, OfferPriority::Normal, NOW)?;
    squeeze()?;
    ensure_eq!(listed.allocation().residency()?, Residency::NotResident);
    ensure_eq!(evicted.allocation().residency()?, Residency::NotResident);
    is_resident_again(needed.allocation())?;
    needed.holds(0..64 * PAGE, 7)?;
    // Whoever has it mapped already sees zeros.
    listed.holds(0..64 * PAGE, 0)?;
    // One that is named twice is told twice.
    let list = [
        listed.allocation(),
        evicted.allocation(),
        needed.allocation(),
        listed.allocation(),
    ];
    let told = reclaim(&gpu, &list)?;
    let gone = Reclaimed::Discarded;
    ensure_eq!(told, [gone, gone, Reclaimed::Kept, gone]);
    // What is wanted is there again.
    ensure_eq!(listed.allocation().residency()?, Residency::GpuMemory);
    ensure_eq!(evicted.allocation().residency()?, Residency::NotResident);
    listed.holds(0..64 * PAGE, 0)?;
    evicted.holds(0..64 * PAGE, 0)?;
    let copy = gpu.buffer(64 * PAGE)?;
    gpu.run(&Pm4::new().fill(copy.address(), 9, 64 * PAGE))?;
    gpu.run(&Pm4::new().copy(copy.address(), listed.address(), 64 * PAGE))?;
    copy.holds(0..64 * PAGE, 0)?;
    // That was told once.
    ensure_eq!(reclaim(&gpu, &[listed.allocation()])?, [Reclaimed::Kept]);
    gpu.run(&Pm4::new().fill(listed.address(), 8, 64 * PAGE))?;
    gpu.device()
        .evict(&[listed.allocation()], EvictFlags::empty())?;
    listed.holds(0..64 * PAGE, 8)
}

/// 100 of each priority, all wanted.
fn order() -> TestResult {
    const EACH: usize = 100;
    const BYTES: u64 = 32 * PAGE;
    let (step, next) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let wait = || next.wait_for_parent();
        wait()?;
        take_all(&gpu, || {
            step.open()?;
            wait()
        })?;
        step.open()
    })?;
    let gpu = Gpu::new()?;
    let all = (0..3 * EACH).map(|_| gpu.allocate_local(BYTES));
    let all = all.collect::<TestResult<Vec<_>>>()?;
    let byte = |index: usize| index as u8 | 1;
    for (index, one) in all.iter().enumerate() {
        fill(one, byte(index))?;
    }
    let list: Vec<&Allocation> = all.iter().collect();
    resident(&gpu, &list)?;
    // Not in the order in which they were made.
    let priorities = [
        OfferPriority::High,
        OfferPriority::Low,
        OfferPriority::Normal,
    ];
    let place = [1usize, 2, 0];
    for (part, priority) in list.chunks(EACH).zip(priorities) {
        gpu.device().offer(part, priority, LATER)?;
    }
    let gone = || -> TestResult<Vec<bool>> {
        let residency = list.iter().map(|one| one.residency());
        let gone = residency.map(|where_| Ok(where_? == Residency::NotResident));
        gone.collect()
    };
    let counts = |gone: &[bool]| {
        let part = |part: &usize| &gone[part * EACH..][..EACH];
        place
            .each_ref()
            .map(|index| part(index).iter().filter(|gone| **gone).count())
    };
    let mut last = gone()?;
    ensure_eq!(counts(&last), [0; 3], "before there is any pressure");
    let mut steps = 0;
    // Until some of those are gone that go last, or there is nothing more.
    while counts(&last)[2] == 0 {
        next.open()?;
        step.wait_for_child(&child)?;
        let now = gone()?;
        let [low, normal, high] = counts(&now);
        ensure!(normal == 0 || low == EACH, "{low} {normal} {high}");
        ensure!(high == 0 || normal == EACH, "{low} {normal} {high}");
        ensure!(
            last.iter().zip(&now).all(|(last, now)| now >= last),
            "one came back"
        );
        last = now;
        steps += 1;
        ensure!(steps <= 256, "no pressure");
    }
    ensure!(steps > 2, "{steps} steps");
    child.kill()?;
    // Its memory goes with it.
    let mut results = None;
    selftests::time::eventually("there is room again", || {
        results = reclaim(&gpu, &list).ok();
        results.is_some()
    })?;
    let results = results.ok_or("no results")?;
    for (index, (result, gone)) in results.iter().zip(&last).enumerate() {
        let expected = match gone {
            true => (Reclaimed::Discarded, 0),
            false => (Reclaimed::Kept, byte(index)),
        };
        ensure_eq!(*result, expected.0, "allocation {index}");
        holds(&all[index], expected.1)?;
        ensure_eq!(all[index].residency()?, Residency::GpuMemory);
    }
    Ok(())
}

fn before_idle() -> TestResult {
    let gpu = Gpu::new()?;
    let size = 8 * MIB;
    let (idle, offered) = (gpu.local_buffer(size)?, gpu.local_buffer(size)?);
    gpu.run(&Pm4::new().fill(idle.address(), 3, size))?;
    // It has waited longer, and its priority is lower.
    idle.allocation().set_priority(0x2800_0000)?;
    gpu.device()
        .evict(&[idle.allocation()], EvictFlags::ONLY_IF_NECESSARY)?;
    offered.allocation().set_priority(0xc800_0000)?;
    gpu.device()
        .offer(&[offered.allocation()], OfferPriority::Auto, LATER)?;
    let (step, next) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        take_all(&gpu, || {
            step.open()?;
            next.wait_for_parent()
        })?;
        step.open()
    })?;
    loop {
        step.wait_for_child(&child)?;
        if offered.allocation().residency()? == Residency::NotResident {
            break;
        }
        ensure_eq!(idle.allocation().residency()?, Residency::GpuMemory);
        next.open()?;
    }
    ensure_eq!(idle.allocation().residency()?, Residency::GpuMemory);
    child.kill()?;
    idle.holds(0..size, 3)
}

/// Others have had its room, and it comes back when its process goes on (MEM-18).
pub(crate) fn is_resident_again(allocation: &Allocation) -> TestResult {
    selftests::time::eventually("it is resident again", || {
        allocation.residency().ok() == Some(Residency::GpuMemory)
    })
}

fn after_work() -> TestResult {
    let gpu = Gpu::new()?;
    let gate = gpu.device().create_fence(0)?;
    let (later, now) = (gpu.local_buffer(64 * PAGE)?, gpu.local_buffer(64 * PAGE)?);
    let words = Pm4::new()
        .fill(later.address(), 4, 64 * PAGE)
        .fill(now.address(), 4, 64 * PAGE);
    gpu.run(&words)?;
    let work = gpu.commands(&Pm4::new().fill(later.address(), 6, PAGE))?;
    gpu.context().wait(&one(&gate, 1))?;
    gpu.submit(&work)?;
    gpu.device()
        .offer(&[later.allocation()], OfferPriority::Low, LATER)?;
    gpu.device()
        .offer(&[now.allocation()], OfferPriority::Low, NOW)?;
    // Both are offered.
    fails_with(later.allocation().lock().map(|_| ()), IP)?;
    squeeze()?;
    ensure_eq!(now.allocation().residency()?, Residency::NotResident);
    is_resident_again(later.allocation())?;
    gate.signal(1)?;
    gpu.finish()?;
    later.holds(0..PAGE, 6)?;
    // The work is done, and soon that is known.
    selftests::time::eventually("the offer takes effect", || {
        squeeze().is_ok() && later.allocation().residency().ok() == Some(Residency::NotResident)
    })?;
    let list = [later.allocation(), now.allocation()];
    ensure_eq!(reclaim(&gpu, &list)?, [Reclaimed::Discarded; 2]);
    // What is taken back before the work is done is not offered then.
    gpu.run(&words)?;
    gpu.context().wait(&one(&gate, 2))?;
    gpu.submit(&work)?;
    gpu.device()
        .offer(&[later.allocation()], OfferPriority::Low, LATER)?;
    ensure_eq!(reclaim(&gpu, &list)?, [Reclaimed::Kept; 2]);
    gate.signal(2)?;
    gpu.finish()?;
    squeeze()?;
    is_resident_again(later.allocation())?;
    later.holds(PAGE..64 * PAGE, 4)?;
    gpu.works()
}

fn use_faults() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let offered = gpu.local_buffer(PAGE)?;
    let copy = gpu.buffer(PAGE)?;
    gpu.run(&Pm4::new().fill(offered.address(), 2, PAGE))?;
    gpu.device()
        .offer(&[offered.allocation()], OfferPriority::Low, NOW)?;
    // As long as nothing is short, the bytes are there.
    gpu.run(&Pm4::new().copy(copy.address(), offered.address(), PAGE))?;
    copy.holds(0..PAGE, 2)?;
    squeeze()?;
    let commands = Pm4::new().copy(copy.address(), offered.address(), PAGE);
    gpu.fails(&commands, ExecutionState::DmaPageFault)?;
    copy.holds(0..PAGE, 2)?;
    other.works()
}

fn no_room() -> TestResult {
    let gpu = Gpu::new()?;
    let small = gpu.local_buffer(64 * PAGE)?;
    let list = [small.allocation()];
    gpu.device().offer(&list, OfferPriority::Low, NOW)?;
    let (full, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let mut pieces = Vec::new();
        // Down to the last page, and it does not give any back.
        for size in [MIB, 16 * PAGE, PAGE] {
            loop {
                let piece = gpu.allocate_local(size)?;
                gpu.paging()
                    .update_placement(&piece, &Placement::new().unmoveable(true))?;
                let flags = ResidentFlags::CANT_TRIM_FURTHER;
                match gpu.paging().make_resident(&[&piece], flags)? {
                    Resident::At(value) => reaches(gpu.paging().fence(), value)?,
                    Resident::TooMuch { .. } => break,
                }
                pieces.push(piece);
            }
        }
        full.open()?;
        done.wait_for_parent()
    })?;
    full.wait_for_child(&child)?;
    ensure_eq!(small.allocation().residency()?, Residency::NotResident);
    fails_with(gpu.paging().reclaim(&list).map(|_| ()), Status::NO_MEMORY)?;
    fails_with(gpu.device().reclaim(&list).map(|_| ()), Status::NO_MEMORY)?;
    // It is still offered.
    fails_with(small.allocation().lock().map(|_| ()), IP)?;
    done.open()?;
    child.join()?;
    let mut told = Vec::new();
    selftests::time::eventually("there is room again", || {
        told = gpu.device().reclaim(&list).unwrap_or_default();
        !told.is_empty()
    })?;
    ensure_eq!(told, [true]);
    ensure_eq!(small.allocation().residency()?, Residency::GpuMemory);
    small.holds(0..64 * PAGE, 0)
}

fn not_told() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    let buffer = gpu.local_buffer(PAGE)?;
    let list = [buffer.allocation()];
    gpu.run(&Pm4::new().fill(buffer.address(), 2, PAGE))?;
    gpu.device().offer(&list, OfferPriority::Low, NOW)?;
    squeeze()?;
    let handle = buffer.allocation().handle().0;
    let mut arg = D3DKMT_RECLAIMALLOCATIONS2::zeroed();
    arg.hPagingQueue = gpu.paging().handle().0;
    (arg.HandleList, arg.NumAllocations) = (&raw const handle as u64, 1);
    arg.__bindgen_anon_1.pResults = 8;
    refused(&raw, &mut arg, Status::ACCESS_VIOLATION)?;
    fails_with(buffer.allocation().lock().map(|_| ()), IP)?;
    // Room that it has got does not stay with it.
    squeeze()?;
    ensure_eq!(buffer.allocation().residency()?, Residency::NotResident);
    ensure_eq!(reclaim(&gpu, &list)?, [Reclaimed::Discarded]);
    buffer.holds(0..PAGE, 0)
}

fn resources() -> TestResult {
    let gpu = Gpu::new()?;
    let mut first = gpu.device().new_resource().local(PAGE).create()?;
    gpu.device().new_resource().local(PAGE).add_to(&mut first)?;
    let second = gpu.device().new_resource().local(PAGE).create()?;
    for one in first.allocations().iter().chain(second.allocations()) {
        fill(one, 6)?;
    }
    // Of the second one nothing is where memory is short.
    resident(&gpu, &[&first.allocations()[1]])?;
    let both = [&first, &second];
    gpu.device()
        .offer_resources(&both, OfferPriority::Low, LATER)?;
    for one in first.allocations().iter().chain(second.allocations()) {
        fails_with(one.lock().map(|_| ()), IP)?;
    }
    squeeze()?;
    let (told, value) = gpu.paging().reclaim_resources(&both)?;
    reaches(gpu.paging().fence(), value)?;
    ensure_eq!(told, [Reclaimed::Discarded, Reclaimed::Kept]);
    holds(&first.allocations()[0], 6)?;
    holds(&first.allocations()[1], 0)?;
    holds(&second.allocations()[0], 6)
}

fn kept() -> TestResult {
    let gpu = Gpu::new()?;
    let buffers = [gpu.local_buffer(4 * PAGE)?, gpu.buffer(4 * PAGE)?];
    let list = buffers.each_ref().map(|buffer| buffer.allocation());
    for round in 1..4 {
        for buffer in &buffers {
            gpu.run(&Pm4::new().fill(buffer.address(), round, 4 * PAGE))?;
        }
        gpu.device().offer(&list, OfferPriority::Low, LATER)?;
        // Who wants it to be resident has it, whether it is offered or not.
        resident(&gpu, &list)?;
        gpu.device().evict(&list, EvictFlags::empty())?;
        match round {
            2 => ensure_eq!(gpu.device().reclaim(&list)?, [false; 2]),
            _ => ensure_eq!(reclaim(&gpu, &list)?, [Reclaimed::Kept; 2]),
        }
        for buffer in &buffers {
            buffer.holds(0..4 * PAGE, round)?;
        }
    }
    gpu.works()
}
