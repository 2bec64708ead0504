// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is resident (MEM-17 to MEM-25).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{
    Allocation, EvictFlags, ExecutionState, GpuMap, MemoryGroup, Residency, ResidentFlags, Status,
};
use selftests::call::{refused, succeeds};
use selftests::child::Child;
use selftests::gpu::{one, reaches, Gpu, PAGE, READ_WRITE};
use selftests::leak::Watch;
use selftests::memory::UNMAPPED;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, skip, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;
const NONE: EvictFlags = EvictFlags::empty();

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-17 MEM-23 residency is counted", counted)
        .test("MEM-19 lists that are refused", refusals)
        .test("MEM-19 MEM-20 long lists and duplicates", long_lists)
        .test("MEM-20 MEM-13 what MakeResident answers", answers)
        .test(
            "MEM-23 evictions that are refused have no effect",
            evictions,
        )
        .test("MEM-23 MEM-24 contents survive an eviction", contents)
        .test("MEM-23 GPU-69 who uses what was evicted faults", fault)
        .test(
            "MEM-9 QueryAllocationResidency tells where memory is",
            where_it_is,
        )
        .test(
            "MEM-25 RES-30 destroyed behind the work that uses it",
            deferred,
        )
        .test("MEM-26 one placement for all who opened it", shared)
        .slow(
            "MEM-114 a large MakeResident ends when its caller is killed",
            Duration::from_secs(180),
            large,
        )
}

/// A figure of the machine's memory, in bytes.
fn machine(name: &str) -> TestResult<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = number
        .and_then(|number| number.parse().ok())
        .ok_or("no such figure in /proc/meminfo")?;
    Ok(kib << 10)
}

/// Makes so many bytes of system memory resident for the first time; the call itself takes all
/// pages.
fn first_residency(bytes: u64) -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.allocate(bytes)?;
    let resident = gpu
        .paging()
        .make_resident(&[&memory], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?)
}

/// A third of what the machine can spare, 1 GiB at most. Who is killed in the call takes no more
/// pages soon after.
fn large() -> TestResult {
    let watch = Watch::start()?;
    let budget = fixture::device()?
        .adapter()
        .video_memory(MemoryGroup::NonLocal)?
        .budget;
    let bytes = (machine("MemAvailable:")? / 3).min(budget / 2).min(1 << 30) & !(0x20_0000 - 1);
    if bytes < 64 << 20 {
        skip!("only {bytes} bytes can be made resident at once");
    }
    let before = machine("Shmem:")?;
    let child = Child::spawn(|| first_residency(bytes))?;
    eventually("the call takes pages", || {
        machine("Shmem:").is_ok_and(|now| now >= before + bytes / 16)
    })?;
    let ended = AtomicBool::new(false);
    let most = std::thread::scope(|scope| -> TestResult<u64> {
        let most = scope.spawn(|| -> TestResult<u64> {
            let mut most = 0;
            while !ended.load(Ordering::Relaxed) {
                most = most.max(machine("Shmem:")?);
            }
            Ok(most)
        });
        // It would have ended by itself if the call had returned.
        let killed = child.kill();
        ended.store(true, Ordering::Relaxed);
        let most = most.join().expect("no panic")?;
        killed.map(|()| most)
    })?;
    ensure!(
        most < before + bytes / 4 * 3,
        "{most} bytes were taken, {before} of them before, of {bytes}"
    );
    watch.ends_clean()
}

fn counted() -> TestResult {
    let gpu = Gpu::new()?;
    for allocation in [gpu.allocate(PAGE)?, gpu.allocate_local(PAGE)?] {
        let (paging, device) = (gpu.paging(), gpu.device());
        fails_with(device.evict(&[&allocation], NONE), IP)?;
        for count in [1, 2, 5] {
            let list = vec![&allocation; count];
            let resident = paging.make_resident(&list, ResidentFlags::empty())?;
            reaches(paging.fence(), resident.value()?)?;
            fails_with(device.evict(&vec![&allocation; count + 1], NONE), IP)?;
            for _ in 0..count {
                ensure!(allocation.residency()? != Residency::NotResident);
                device.evict(&[&allocation], NONE)?;
            }
            fails_with(device.evict(&[&allocation], NONE), IP)?;
        }
    }
    Ok(())
}

fn refusals() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let raw = fixture::raw()?;
    let (own, foreign) = (gpu.allocate(PAGE)?, other.allocate(PAGE)?);
    let list = [own.handle().0, own.handle().0];
    let mut good = D3DDDI_MAKERESIDENT::zeroed();
    good.hPagingQueue = gpu.paging().handle().0;
    good.NumAllocations = 1;
    good.AllocationList = list.as_ptr() as u64;
    type Spoil = fn(&mut D3DDDI_MAKERESIDENT);
    let spoilt: [(&str, Spoil, Status); 10] = [
        ("queue 0", |arg| arg.hPagingQueue = 0, IP),
        ("no queue", |arg| arg.hPagingQueue += 0x40_0000, IP),
        ("no allocation", |arg| arg.NumAllocations = 0, IP),
        ("16385 allocations", |arg| arg.NumAllocations = 16385, IP),
        ("very many", |arg| arg.NumAllocations = u32::MAX, IP),
        ("list NULL", |arg| arg.AllocationList = 0, IP),
        (
            "list unreadable",
            |arg| arg.AllocationList = UNMAPPED,
            Status::ACCESS_VIOLATION,
        ),
        ("flag 2", |arg| arg.Flags = 1 << 2, IP),
        ("flag 31", |arg| arg.Flags = 1 << 31, IP),
        (
            "MustSucceed alone",
            |arg| arg.Flags = D3DDDI_MAKERESIDENT_FLAGS_MustSucceed,
            IP,
        ),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    // Handles that are no allocations of the queue's device.
    for handle in [
        0,
        own.handle().0 + 0x40_0000,
        foreign.handle().0,
        gpu.device().handle().0,
        gpu.paging().handle().0,
        gpu.done().handle().0,
    ] {
        let list = [own.handle().0, handle];
        let mut arg = good;
        arg.NumAllocations = 2;
        arg.AllocationList = list.as_ptr() as u64;
        refused(&raw, &mut arg, IP).map_err(|error| format!("handle {handle:#x}: {error}"))?;
    }
    // Nothing of it has counted.
    fails_with(gpu.device().evict(&[&own], NONE), IP)?;
    // Priorities are not looked at.
    good.PriorityList = UNMAPPED;
    good.NumAllocations = 2;
    match raw.exec(&mut good)? {
        Status::SUCCESS | Status::PENDING => {}
        status => return Err(format!("with priorities: {status}").into()),
    }
    ensure_eq!(good.NumAllocations, 2);
    gpu.device().evict(&[&own, &own], NONE)?;
    Ok(())
}

fn long_lists() -> TestResult {
    let gpu = Gpu::new()?;
    let some: TestResult<Vec<Allocation>> = (0..32).map(|_| gpu.allocate(PAGE)).collect();
    let some = some?;
    let all: Vec<&Allocation> = some.iter().cycle().take(16384).collect();
    let resident = gpu.paging().make_resident(&all, ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?)?;
    gpu.device().evict(&all, NONE)?;
    fails_with(gpu.device().evict(&[&some[0]], NONE), IP)
}

fn answers() -> TestResult {
    let gpu = Gpu::new()?;
    let raw = fixture::raw()?;
    for allocation in [gpu.allocate(PAGE)?, gpu.allocate_local(PAGE)?] {
        let list = [allocation.handle().0];
        for time in 0..3 {
            let mut arg = D3DDDI_MAKERESIDENT::zeroed();
            arg.hPagingQueue = gpu.paging().handle().0;
            arg.NumAllocations = 1;
            arg.AllocationList = list.as_ptr() as u64;
            let status = raw.exec(&mut arg)?;
            ensure_eq!(arg.NumAllocations, 1);
            ensure_eq!(arg.NumBytesToTrim, 0);
            match status {
                Status::SUCCESS => ensure_eq!(arg.PagingFenceValue, 0),
                Status::PENDING => ensure!(arg.PagingFenceValue != 0),
                status => return Err(format!("{status}").into()),
            }
            reaches(gpu.paging().fence(), arg.PagingFenceValue)?;
            // What is there is there at once.
            ensure!(
                time == 0 || status == Status::SUCCESS,
                "{status} the {time}. time"
            );
        }
    }
    Ok(())
}

fn evictions() -> TestResult {
    let gpu = Gpu::new()?;
    let other = Gpu::new()?;
    let raw = fixture::raw()?;
    let buffer = gpu.buffer(PAGE)?;
    let foreign = other.allocate(PAGE)?;
    let own = buffer.allocation().handle().0;
    let list = [own, own];
    let mut good = D3DKMT_EVICT::zeroed();
    good.hDevice = gpu.device().handle().0;
    good.NumAllocations = 1;
    good.AllocationList = list.as_ptr() as u64;
    type Spoil = fn(&mut D3DKMT_EVICT);
    let spoilt: [(&str, Spoil, Status); 10] = [
        ("device 0", |arg| arg.hDevice = 0, IP),
        ("no device", |arg| arg.hDevice += 0x40_0000, IP),
        ("no allocation", |arg| arg.NumAllocations = 0, IP),
        ("16385 allocations", |arg| arg.NumAllocations = 16385, IP),
        ("list NULL", |arg| arg.AllocationList = 0, IP),
        (
            "list unreadable",
            |arg| arg.AllocationList = UNMAPPED,
            Status::ACCESS_VIOLATION,
        ),
        ("flag 2", |arg| arg.Flags = 1 << 2, IP),
        ("flag 31", |arg| arg.Flags = 1 << 31, IP),
        ("twice", |arg| arg.NumAllocations = 2, IP),
        (
            "more than there are",
            |arg| arg.NumAllocations = u32::MAX,
            IP,
        ),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    for handle in [
        0,
        own + 0x40_0000,
        foreign.handle().0,
        gpu.device().handle().0,
    ] {
        let list = [own, handle];
        let mut arg = good;
        arg.NumAllocations = 2;
        arg.AllocationList = list.as_ptr() as u64;
        refused(&raw, &mut arg, IP)?;
    }
    // It is still there.
    gpu.run(&Pm4::new().write(buffer.address(), &[4]))?;
    ensure_eq!(buffer.get32(0), 4);
    succeeds(&raw, &mut good)
}

fn contents() -> TestResult {
    let gpu = Gpu::new()?;
    for buffer in [gpu.buffer(4 * PAGE)?, gpu.local_buffer(4 * PAGE)?] {
        for flags in [NONE, EvictFlags::ONLY_IF_NECESSARY] {
            for round in 1..4 {
                gpu.run(&Pm4::new().fill(buffer.address(), round, 4 * PAGE))?;
                gpu.device().evict(&[buffer.allocation()], flags)?;
                buffer.holds(0..4 * PAGE, round)?;
                buffer.set32(8, 100 + round);
                let list = [buffer.allocation()];
                let resident = gpu.paging().make_resident(&list, ResidentFlags::empty())?;
                reaches(gpu.paging().fence(), resident.value()?)?;
                gpu.run(&Pm4::new().move32(buffer.at(12), buffer.at(8)))?;
                ensure_eq!(buffer.read(4, 4), [round, 100 + round, 100 + round, round]);
            }
        }
    }
    Ok(())
}

fn fault() -> TestResult {
    for local in [false, true] {
        let gpu = Gpu::new()?;
        let buffer = match local {
            false => gpu.buffer(PAGE)?,
            true => gpu.local_buffer(PAGE)?,
        };
        gpu.run(&Pm4::new().write(buffer.address(), &[1]))?;
        gpu.device().evict(&[buffer.allocation()], NONE)?;
        let write = Pm4::new().write(buffer.address(), &[2]);
        gpu.fails(&write, ExecutionState::DmaPageFault)?;
        ensure_eq!(
            gpu.device().page_fault()?.address & !0xfff,
            buffer.address()
        );
    }
    Ok(())
}

fn where_it_is() -> TestResult {
    let gpu = Gpu::new()?;
    let (system, local) = (gpu.allocate(PAGE)?, gpu.allocate_local(PAGE)?);
    ensure_eq!(local.residency()?, Residency::NotResident);
    let resident = gpu
        .paging()
        .make_resident(&[&system, &local], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?)?;
    ensure_eq!(system.residency()?, Residency::SharedMemory);
    ensure_eq!(local.residency()?, Residency::GpuMemory);
    gpu.device().evict(&[&system, &local], NONE)?;
    ensure_eq!(local.residency()?, Residency::NotResident);
    Ok(())
}

fn deferred() -> TestResult {
    for local in [false, true] {
        let gpu = Gpu::new()?;
        let target = gpu.buffer(PAGE)?;
        let source = match local {
            false => gpu.buffer(PAGE)?,
            true => gpu.local_buffer(PAGE)?,
        };
        source.fill(0x1234_5678);
        let gate = gpu.device().create_fence(0)?;
        gpu.context().wait(&one(&gate, 1))?;
        let copy = gpu.commands(&Pm4::new().copy(target.address(), source.address(), PAGE))?;
        gpu.submit(&copy)?;
        drop(source);
        gate.signal(1)?;
        gpu.finish()?;
        target.holds(0..PAGE, 0x1234_5678)?;
    }
    Ok(())
}

/// Two devices with counts of their own; who evicts does not take it from the other.
fn shared() -> TestResult {
    let (a, b) = (Gpu::new()?, Gpu::new()?);
    let resource = a.device().new_resource().local(PAGE).nt_shared().create()?;
    let handle = resource.share(opendxg::Access::RESOURCE_ALL)?;
    let opened = b.device().open_share(&handle)?.resource;
    let (mine, yours) = (&resource.allocations()[0], &opened.allocations()[0]);
    let map = GpuMap {
        pages: 1,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let mut addresses = Vec::new();
    for (gpu, allocation) in [(&a, mine), (&b, yours)] {
        let range = gpu.paging().map(Some(allocation), &map)?;
        let resident = gpu
            .paging()
            .make_resident(&[allocation], ResidentFlags::empty())?;
        reaches(gpu.paging().fence(), resident.value()?.max(range.value))?;
        addresses.push(range.address);
    }
    a.run(&Pm4::new().write(addresses[0], &[5]))?;
    a.device().evict(&[mine], NONE)?;
    fails_with(a.device().evict(&[mine], NONE), IP)?;
    let copy = b.buffer(PAGE)?;
    b.run(&Pm4::new().move32(copy.address(), addresses[1]))?;
    ensure_eq!(copy.get32(0), 5);
    Ok(())
}
