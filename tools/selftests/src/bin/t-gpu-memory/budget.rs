// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told about memory, and reserved of it (MEM-6, MEM-34 to MEM-37, MEM-98, MEM-106).

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{Adapter, Dxg, EvictFlags, MemoryGroup, Resident, ResidentFlags, Status};
use selftests::call::{refused, succeeds};
use selftests::child::{Child, Gate};
use selftests::fds::{receive, send, socket_pair};
use selftests::gpu::{reaches, Gpu, PAGE};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

const IP: Status = Status::INVALID_PARAMETER;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-34 questions that are refused", refusals)
        .test("MEM-35 the figures of an idle adapter", idle)
        .test("MEM-35 residency counts in its group", counts)
        .test("MEM-36 the budget of local memory without pressure", budget)
        .test(
            "MEM-37 MEM-35 what is reserved is not in the budgets of others",
            reserved,
        )
        .test(
            "MEM-37 MEM-21 others are refused what is reserved",
            reserved_from_others,
        )
        .test("MEM-37 a reservation goes with its process", reserver_dies)
        .test(
            "MEM-37 MEM-34 reservations that are refused",
            no_reservation,
        )
        .test("MEM-98 FlushHeapTransitions is accepted", flush)
        .test("MEM-106 segments in the statistics", segments)
        .test(
            "MEM-6 allocations that nobody asks for take no local memory",
            creation,
        )
}

fn refusals() -> TestResult {
    let adapter = fixture::adapter()?;
    let raw = fixture::raw()?;
    let mut good = D3DKMT_QUERYVIDEOMEMORYINFO::zeroed();
    good.hAdapter = adapter.handle().0;
    type Spoil = fn(&mut D3DKMT_QUERYVIDEOMEMORYINFO);
    let spoilt: [(&str, Spoil, Status); 6] = [
        ("adapter 0", |arg| arg.hAdapter = 0, IP),
        ("no adapter", |arg| arg.hAdapter += 0x40_0000, IP),
        ("group 2", |arg| arg.MemorySegmentGroup = 2, IP),
        ("group max", |arg| arg.MemorySegmentGroup = u32::MAX, IP),
        ("second GPU", |arg| arg.PhysicalAdapterIndex = 1, IP),
        (
            "no process",
            |arg| arg.hProcess = 999,
            Status::INVALID_HANDLE,
        ),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
    }
    for process in [0, u64::MAX] {
        good.hProcess = process;
        succeeds(&raw, &mut good)?;
    }
    Ok(())
}

fn idle() -> TestResult {
    let adapter = fixture::adapter()?;
    for group in [MemoryGroup::Local, MemoryGroup::NonLocal] {
        let memory = adapter.video_memory(group)?;
        ensure!(
            memory.budget >= memory.available_for_reservation,
            "{memory:?}"
        );
        ensure!(
            memory.usage <= memory.budget && memory.budget != 0,
            "{memory:?}"
        );
        ensure_eq!(memory.reservation, 0);
        ensure_eq!(memory.available_for_reservation, memory.budget / 2);
    }
    Ok(())
}

fn counts() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let groups = [MemoryGroup::Local, MemoryGroup::NonLocal];
    let usage = || -> TestResult<[u64; 2]> {
        let [local, system] = groups.map(|group| adapter.video_memory(group));
        Ok([local?.usage, system?.usage])
    };
    let before = usage()?;
    let (local, system) = (gpu.allocate_local(3 * PAGE)?, gpu.allocate(5 * PAGE)?);
    ensure_eq!(usage()?, before, "nothing is resident yet");
    let resident = gpu
        .paging()
        .make_resident(&[&local, &system], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), resident.value()?)?;
    ensure_eq!(usage()?, [before[0] + 3 * PAGE, before[1] + 5 * PAGE]);
    // A second count is no second memory.
    gpu.paging()
        .make_resident(&[&local, &system], ResidentFlags::empty())?
        .value()?;
    ensure_eq!(usage()?, [before[0] + 3 * PAGE, before[1] + 5 * PAGE]);
    gpu.device()
        .evict(&[&local, &system, &local, &system], EvictFlags::empty())?;
    ensure_eq!(usage()?, before);
    Ok(())
}

fn budget() -> TestResult {
    let adapter = fixture::adapter()?;
    let (segments, _) = adapter.segment_and_node_count()?;
    let mut size = 0;
    for segment in 0..segments {
        let statistics = adapter.segment_statistics(segment)?;
        if !statistics.is_aperture {
            size = size.max(statistics.commit_limit);
        }
    }
    ensure!(size != 0, "no local segment");
    let memory = adapter.video_memory(MemoryGroup::Local)?;
    ensure_eq!(memory.budget, size - size / 16);
    Ok(())
}

const GROUPS: [MemoryGroup; 2] = [MemoryGroup::Local, MemoryGroup::NonLocal];

/// The own budget stays, and that of others is less by as much.
fn reserved() -> TestResult {
    let adapter = fixture::adapter()?;
    for group in GROUPS {
        let before = adapter.video_memory(group)?;
        let most = before.available_for_reservation;
        for bytes in [most, PAGE, 0] {
            adapter.reserve_video_memory(group, bytes)?;
            let memory = adapter.video_memory(group)?;
            ensure_eq!(memory.reservation, bytes);
            ensure_eq!(memory.budget, before.budget);
            ensure_eq!(memory.available_for_reservation, most);
            let child = Child::spawn(|| {
                let adapter = fixture::adapter()?;
                let memory = adapter.video_memory(group)?;
                ensure_eq!(memory.reservation, 0);
                ensure_eq!(memory.budget, before.budget - bytes);
                ensure_eq!(memory.available_for_reservation, memory.budget / 2);
                // What is left can be reserved, and not more.
                let most = memory.available_for_reservation;
                adapter.reserve_video_memory(group, most)?;
                fails_with(adapter.reserve_video_memory(group, most + 1), IP)?;
                ensure_eq!(adapter.video_memory(group)?.reservation, most);
                Ok(())
            })?;
            child.join()?;
        }
    }
    Ok(())
}

/// Who has room only in what another process has reserved is told to trim, and gets it with
/// CantTrimFurther.
fn reserved_from_others() -> TestResult {
    let gpu = Gpu::new()?;
    let memory = gpu.device().adapter().video_memory(MemoryGroup::Local)?;
    let size = memory.budget * 3 / 4 / PAGE * PAGE;
    let large = gpu.allocate_local(size)?;
    let (kept, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let adapter = fixture::adapter()?;
        let most = adapter
            .video_memory(MemoryGroup::Local)?
            .available_for_reservation;
        adapter.reserve_video_memory(MemoryGroup::Local, most)?;
        kept.open()?;
        done.wait()
    })?;
    kept.wait()?;
    let less = gpu.device().adapter().video_memory(MemoryGroup::Local)?;
    let over = size - less.budget;
    let answer = gpu
        .paging()
        .make_resident(&[&large], ResidentFlags::empty())?;
    let Resident::TooMuch { bytes_to_trim } = answer else {
        return Err(format!("{answer:?}").into());
    };
    ensure_eq!(bytes_to_trim, over);
    let answer = gpu
        .paging()
        .make_resident(&[&large], ResidentFlags::CANT_TRIM_FURTHER)?;
    reaches(gpu.paging().fence(), answer.value()?)?;
    gpu.device().evict(&[&large], EvictFlags::empty())?;
    done.open()?;
    child.join()?;
    eventually("the reservation is gone", || {
        let memory = gpu.device().adapter().video_memory(MemoryGroup::Local);
        memory.is_ok_and(|memory| memory.budget > less.budget)
    })?;
    let answer = gpu
        .paging()
        .make_resident(&[&large], ResidentFlags::empty())?;
    reaches(gpu.paging().fence(), answer.value()?)
}

/// Killed, and while its descriptor lives on in another process.
fn reserver_dies() -> TestResult {
    let adapter = fixture::adapter()?;
    let before = adapter.video_memory(MemoryGroup::Local)?;
    let budget = || -> TestResult<u64> { Ok(adapter.video_memory(MemoryGroup::Local)?.budget) };
    let (here, there) = socket_pair()?;
    let child = Child::spawn(|| {
        let adapter = fixture::adapter()?;
        let bytes = before.available_for_reservation;
        adapter.reserve_video_memory(MemoryGroup::Local, bytes)?;
        let other = Dxg::open()?;
        send(&there, &other)?;
        loop {
            std::thread::park();
        }
    })?;
    let inherited = receive(&here)?;
    ensure_eq!(budget()?, before.budget - before.available_for_reservation);
    child.kill()?;
    eventually("the reservation is gone", || {
        budget().is_ok_and(|budget| budget == before.budget)
    })?;
    drop(inherited);
    Ok(())
}

fn no_reservation() -> TestResult {
    let adapter = fixture::adapter()?;
    let raw = fixture::raw()?;
    let mut good = D3DKMT_CHANGEVIDEOMEMORYRESERVATION::zeroed();
    good.hAdapter = adapter.handle().0;
    good.Reservation = PAGE;
    type Spoil = fn(&mut D3DKMT_CHANGEVIDEOMEMORYRESERVATION);
    let spoilt: [(&str, Spoil, Status); 7] = [
        ("adapter 0", |arg| arg.hAdapter = 0, IP),
        ("no adapter", |arg| arg.hAdapter += 0x40_0000, IP),
        ("group 2", |arg| arg.MemorySegmentGroup = 2, IP),
        ("second GPU", |arg| arg.PhysicalAdapterIndex = 1, IP),
        ("too much", |arg| arg.Reservation = 1 << 40, IP),
        ("very much", |arg| arg.Reservation = u64::MAX, IP),
        (
            "no process",
            |arg| arg.hProcess = 999,
            Status::INVALID_HANDLE,
        ),
    ];
    for (what, spoil, status) in spoilt {
        let mut arg = good;
        spoil(&mut arg);
        refused(&raw, &mut arg, status).map_err(|error| format!("{what}: {error}"))?;
        let memory = adapter.video_memory(MemoryGroup::Local)?;
        ensure_eq!(memory.reservation, 0, "{what}");
    }
    for process in [0, u64::MAX] {
        good.hProcess = process;
        succeeds(&raw, &mut good)?;
        ensure_eq!(adapter.video_memory(MemoryGroup::Local)?.reservation, PAGE);
        good.Reservation = 0;
        succeeds(&raw, &mut good)?;
        good.Reservation = PAGE;
    }
    Ok(())
}

fn flush() -> TestResult {
    let adapter = fixture::adapter()?;
    adapter.flush_heap_transitions()?;
    let raw = fixture::raw()?;
    let mut arg = D3DKMT_FLUSHHEAPTRANSITIONS::zeroed();
    for handle in [0, adapter.handle().0 + 0x40_0000] {
        arg.hAdapter = handle;
        refused(&raw, &mut arg, IP)?;
    }
    Ok(())
}

fn segments() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let (segments, nodes) = adapter.segment_and_node_count()?;
    ensure!((2..=31).contains(&segments), "{segments} segments");
    ensure!(nodes >= 3, "{nodes} nodes");
    let before = resident_bytes(adapter)?;
    let buffer = gpu.local_buffer(7 * PAGE)?;
    ensure_eq!(resident_bytes(adapter)?, before + 7 * PAGE);
    drop(buffer);
    Ok(())
}

/// The bytes of all local segments that are in use.
fn resident_bytes(adapter: &Adapter) -> TestResult<u64> {
    let (segments, _) = adapter.segment_and_node_count()?;
    let mut resident = 0;
    for segment in 0..segments {
        let statistics = adapter.segment_statistics(segment)?;
        ensure!(
            statistics.bytes_resident <= statistics.commit_limit,
            "{statistics:?}"
        );
        if !statistics.is_aperture {
            resident += statistics.bytes_resident;
        }
    }
    Ok(resident)
}

fn creation() -> TestResult {
    let gpu = Gpu::new()?;
    let adapter = gpu.device().adapter();
    let piece = adapter.video_memory(MemoryGroup::Local)?.budget / 2 / PAGE * PAGE;
    let before = resident_bytes(adapter)?;
    // More than there is of local memory.
    let pieces: TestResult<Vec<_>> = (0..4).map(|_| gpu.allocate_local(piece)).collect();
    ensure_eq!(
        resident_bytes(adapter)?,
        before,
        "creation takes local memory"
    );
    // Each of them has its place when it is asked for.
    for piece in &pieces? {
        let resident = gpu
            .paging()
            .make_resident(&[piece], ResidentFlags::empty())?;
        reaches(gpu.paging().fence(), resident.value()?)?;
        ensure!(resident_bytes(adapter)? > before);
        gpu.device().evict(&[piece], EvictFlags::empty())?;
    }
    Ok(())
}
