// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done in which order, and by which thread.

use opendxg::pm4::Pm4;
use opendxg::uapi::{
    OPENDXG_ALLOCATION_LOCAL, OPENDXG_ALLOCATION_MAGIC, OPENDXG_ALLOCATION_NOTIFY_RESIDENCY,
};
use opendxg::{
    Allocation, EvictFlags, GpuMap, GpuReserve, GpuUpdate, MemoryGroup, Reservation, ResidentFlags,
    Status,
};
use selftests::gpu::{one, reaches, Gpu, BLOCK, PAGE, READ_WRITE};
use selftests::soft_adapter::SoftAdapter;
use selftests::task::me;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::{names, Log, Record};

/// Pages that are left to the worker.
pub(crate) const MANY: u64 = 2048;
const SUCCESS: u64 = 0;
const PENDING: u64 = 0x103;
const NO_MEMORY: u64 = 0xc000_0017;
/// Flags of an update.
pub(crate) const NOTIFY_EVICTION: u64 = 2;
pub(crate) const VALID: u64 = 8;

pub(crate) const UPDATE: &str = "BUILD UpdatePageTable";
pub(crate) const FLUSH: &str = "BUILD FlushTlb";
pub(crate) const TRANSFER: &str = "BUILD TransferVirtual";
const RETURN: &str = "RETURN MakeResident";
const UNMAP: &str = "BUILD UnmapApertureSegment";

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-28 MEM-72 MEM-80 MakeResident: caller and worker, without local memory",
            || {
                let soft = SoftAdapter::new("paging-uma")?;
                soft.set("local_memory", "0")?;
                soft.set("profile", "uma")?;
                soft.set("enabled", "1")?;
                caller_and_worker(&Gpu::on(&soft.device()?, 0)?)
            },
        )
        .test(
            "MEM-28 MEM-72 MakeResident: caller and worker, beside local memory",
            || caller_and_worker(&Gpu::new()?),
        )
        .test("MEM-20 MEM-103 the status of a MakeResident", statuses)
        .test("MEM-24 MEM-72 MakeResident in local memory", local)
        .test("MEM-77 Evict from system memory", evict)
        .test("MEM-77 Evict from local memory", evict_local)
        .test(
            "MEM-77 MEM-72 a driver that asks is told where an allocation is",
            notify_residency,
        )
        .test("MEM-78 the aperture", aperture)
        .test("MEM-47 MEM-79 UpdateGpuVirtualAddress", update)
}

/// Demands that a trace begins with updates of these pages of an allocation in order, all valid or
/// none, and a flush of them, of one batch (trace 1 without page tables that the GPU edits). The
/// rest.
fn updates(records: &[Record], address: u64, pages: u64, valid: bool) -> TestResult<&[Record]> {
    let count = records.iter().take_while(|one| one.what == UPDATE).count();
    let (updates, rest) = records.split_at(count);
    let mut next = 0;
    for update in updates {
        ensure_eq!(update.get("level"), 0);
        ensure_eq!(update.get("va"), address + next);
        ensure_eq!(update.get("start"), (address + next) / PAGE % 512);
        // AllocationOffset.
        ensure_eq!(update.get("source"), next);
        ensure!(update.get("object") != 0);
        let flags = update.get("flags");
        match valid {
            true => ensure_eq!(flags & (VALID | NOTIFY_EVICTION), VALID),
            false => ensure_eq!(flags & (VALID | NOTIFY_EVICTION), NOTIFY_EVICTION),
        }
        next += update.get("count") * PAGE;
    }
    ensure_eq!(next, pages * PAGE);
    let (flush, rest) = rest.split_first().ok_or("no flush")?;
    ensure_eq!(flush.what, FLUSH);
    ensure_eq!(flush.get("va"), address);
    ensure_eq!(flush.get("size"), pages * PAGE);
    for update in updates {
        ensure_eq!(update.get("batch"), flush.get("batch"));
        ensure_eq!(update.get("process"), flush.get("process"));
        ensure_eq!(update.get("object"), updates[0].get("object"));
    }
    Ok(rest)
}

/// Demands that the updates of these records lead to system memory, to pages of their own.
fn are_in_system_memory(records: &[Record]) -> TestResult {
    let updates: Vec<_> = records.iter().filter(|one| one.what == UPDATE).collect();
    let mut pages: Vec<_> = updates.iter().map(|one| one.get("offset")).collect();
    ensure!(updates.iter().all(|one| one.get("segment") == 0));
    ensure!(pages.iter().all(|page| *page != 0 && page % PAGE == 0));
    pages.sort_unstable();
    ensure!(pages.is_sorted_by(|one, next| one < next));
    Ok(())
}

/// An allocation at a GPU address, not resident.
pub(crate) fn mapped(
    gpu: &Gpu,
    allocation: Allocation,
    pages: u64,
) -> TestResult<(Allocation, u64)> {
    let map = GpuMap {
        pages,
        protection: READ_WRITE,
        ..GpuMap::default()
    };
    let range = gpu.paging().map(Some(&allocation), &map)?;
    reaches(gpu.paging().fence(), range.value)?;
    Ok((allocation, range.address))
}

pub(crate) fn resident(gpu: &Gpu, allocation: &Allocation) -> TestResult<u64> {
    let resident = gpu
        .paging()
        .make_resident(&[allocation], ResidentFlags::empty())?;
    Ok(resident.value()?)
}

fn caller_and_worker(gpu: &Gpu) -> TestResult {
    let (allocation, address) = mapped(gpu, gpu.allocate(MANY * PAGE)?, MANY)?;
    let last = address + (MANY - 1) * PAGE;
    let commands = Pm4::new().write64(address, 11).write64(last, 12);
    let commands = gpu.commands(&commands)?;
    let fence = gpu.paging().fence();
    let log = Log::new(gpu)?;
    log.control("hold")?;
    let value = resident(gpu, &allocation)?;
    // The call has returned, and nothing else has happened.
    let own = log.own()?;
    ensure_eq!(log.records(|_| true)?.len(), own.len());
    let expected = ["PIN", "FENCE_ID", "QUEUE MakeResident", RETURN];
    ensure_eq!(names(&own), expected);
    ensure_eq!(own[0].get("count"), MANY);
    for record in &own[1..] {
        ensure_eq!(record.get("value"), value);
        ensure_eq!(record.get("queue"), own[1].get("queue"));
        ensure_eq!(record.get("process"), own[1].get("process"));
    }
    ensure_eq!(own[3].get("status"), PENDING);
    let queue = own[1].get("queue");
    ensure!(value != 0 && queue != 0 && !fence.is_reached(value));
    // Work that waits for the value has its pages when it runs.
    gpu.context().wait(&one(fence, value))?;
    gpu.submit(&commands)?;
    let mark = gpu.mark()?;
    ensure!(!gpu.is_done(mark));
    log.control("release")?;
    reaches(fence, value)?;
    let caller = me() as u64;
    let worker = log.records(|one| one.get("queue") == queue && one.get("thread") != caller)?;
    for record in &worker {
        ensure_eq!(record.get("value"), value);
        ensure_eq!(record.get("thread"), worker[0].get("thread"));
        ensure_eq!(record.get("process"), own[1].get("process"));
    }
    let rest = updates(&worker, address, MANY, true)?;
    ensure_eq!(names(rest), ["SIGNAL"]);
    gpu.until(mark)?;
    are_in_system_memory(&worker)?;
    let bytes = allocation.lock()?.to_vec();
    let word = |at: u64| bytes[at as usize];
    ensure_eq!([word(0), word((MANY - 1) * PAGE), word(PAGE)], [11, 12, 0]);
    Ok(())
}

fn statuses() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    let allocation = gpu.allocate(PAGE)?;
    ensure_eq!(resident(&gpu, &allocation)?, 0);
    let budget = gpu
        .device()
        .adapter()
        .video_memory(MemoryGroup::Local)?
        .budget;
    let large = gpu.allocate_local(budget.next_multiple_of(PAGE) + PAGE)?;
    ensure!(resident(&gpu, &large).is_err());
    let returned = log.records(|one| one.what == RETURN)?;
    let statuses: Vec<_> = returned.iter().map(|one| one.get("status")).collect();
    ensure_eq!(statuses, [SUCCESS, NO_MEMORY]);
    ensure!(returned.iter().all(|one| one.get("count") == 1));
    Ok(())
}

/// Bytes come into local memory before anything leads to it (MEM-7).
fn local() -> TestResult {
    let gpu = Gpu::new()?;
    let (allocation, address) = mapped(&gpu, gpu.allocate_local(64 * PAGE)?, 64)?;
    // The node may have lost its context by a reset, and gets another one with its next batch.
    let first = gpu.allocate_local(PAGE)?;
    ensure_eq!(resident(&gpu, &first)?, 0);
    let log = Log::new(&gpu)?;
    ensure_eq!(resident(&gpu, &allocation)?, 0);
    let own = log.own()?;
    let count = own.iter().take_while(|one| one.what == "COMMIT").count();
    let (commits, rest) = own.split_at(count);
    let pages: u64 = commits.iter().map(|one| one.get("count")).sum();
    ensure_eq!(pages, 64);
    let segment = commits[0].get("segment");
    ensure!(segment != 0);
    // Trace 3 by the paging process, see `engine.rs`.
    let batch = rest[0].get("batch");
    let count = rest.iter().take_while(|one| one.get("batch") == batch);
    let (filled, rest) = rest.split_at(count.count());
    ensure!(names(filled).contains(&"BUILD FillVirtual"));
    let leads = filled.iter().find(|one| one.what == UPDATE);
    ensure_eq!(leads.ok_or("no entry")?.get("segment"), segment);
    let rest = updates(rest, address, 64, true)?;
    ensure_eq!(names(rest), [RETURN]);
    Ok(())
}

fn evict() -> TestResult {
    let gpu = Gpu::new()?;
    let (allocation, address) = mapped(&gpu, gpu.allocate(600 * PAGE)?, 600)?;
    let log = Log::new(&gpu)?;
    // Few enough pages for the call itself.
    ensure_eq!(resident(&gpu, &allocation)?, 0);
    let own = log.own()?;
    let (pin, rest) = own.split_first().ok_or("nothing")?;
    ensure_eq!(pin.what, "PIN");
    let rest = updates(rest, address, 600, true)?;
    ensure_eq!(names(rest), [RETURN]);
    ensure_eq!([rest[0].get("status"), rest[0].get("value")], [SUCCESS, 0]);
    are_in_system_memory(&own)?;
    log.control("clear")?;
    gpu.device().evict(&[&allocation], EvictFlags::empty())?;
    let own = log.own()?;
    let rest = updates(&own, address, 600, false)?;
    ensure_eq!(names(rest), ["UNPIN", "RETURN Evict"]);
    Ok(())
}

/// No entry leads to the pages any more when they are copied out, and they go back last.
fn evict_local() -> TestResult {
    let gpu = Gpu::new()?;
    let (allocation, address) = mapped(&gpu, gpu.allocate_local(64 * PAGE)?, 64)?;
    ensure_eq!(resident(&gpu, &allocation)?, 0);
    let log = Log::new(&gpu)?;
    gpu.device().evict(&[&allocation], EvictFlags::empty())?;
    let own = log.own()?;
    let rest = updates(&own, address, 64, false)?;
    let batch = rest[0].get("batch");
    let count = rest.iter().take_while(|one| one.get("batch") == batch);
    // Trace 2 by the paging process, see `engine.rs`.
    let (moved, rest) = rest.split_at(count.count());
    ensure!(names(moved).contains(&TRANSFER));
    let mut rest = names(rest);
    rest.dedup();
    ensure_eq!(rest, ["DECOMMIT", "RETURN Evict"]);
    // What was not written to is not copied.
    ensure_eq!(resident(&gpu, &allocation)?, 0);
    log.control("clear")?;
    gpu.device()
        .evict(&[&allocation], EvictFlags::NOT_WRITTEN_TO)?;
    ensure!(!names(&log.own()?).contains(&TRANSFER));
    Ok(())
}

/// The places of the NotifyResidency records, and what they say: the segment, the offset, and
/// whether the allocation is resident.
fn notified(records: &[Record]) -> Vec<(usize, [u64; 3])> {
    let told = records.iter().enumerate();
    told.filter(|(_, one)| one.what == "BUILD NotifyResidency")
        .map(|(at, one)| (at, ["segment", "offset", "flags"].map(|name| one.get(name))))
        .collect()
}

/// The KMD is told once whatever an allocation goes through: when its addresses lead there, and
/// before its bytes leave.
fn notify_residency() -> TestResult {
    let gpu = Gpu::new()?;
    let make = |local| -> TestResult<Allocation> {
        let resource = gpu.device().new_resource();
        let made = resource.physical_notified(8 * PAGE, local).create_one()?;
        Ok(mapped(&gpu, made, 8)?.0)
    };
    let log = Log::new(&gpu)?;
    for local in [true, false] {
        let allocation = make(local)?;
        allocation.lock_write()?.fill(7);
        log.control("clear")?;
        ensure_eq!(resident(&gpu, &allocation)?, 0);
        let own = log.own()?;
        let told = notified(&own);
        ensure_eq!(told.len(), 1, "{:?}", names(&own));
        let (at, [segment, offset, flags]) = told[0];
        ensure!(segment != 0 && flags == VALID, "{told:?}");
        let shown = own.iter().filter(|one| {
            one.what == "COMMIT" || one.what == "BUILD MapApertureSegment" && one.get("start") == 0
        });
        let place: Vec<_> = shown
            .map(|one| ["segment", "offset"].map(|name| one.get(name)))
            .collect();
        ensure_eq!(place, [[segment, offset]]);
        let last = own.iter().rposition(|one| one.what == UPDATE);
        ensure!(last.ok_or("no entries")? < at);
        // Another count changes nothing.
        log.control("clear")?;
        ensure_eq!(resident(&gpu, &allocation)?, 0);
        ensure!(notified(&log.own()?).is_empty());
        gpu.device().evict(&[&allocation], EvictFlags::empty())?;
        ensure!(notified(&log.own()?).is_empty());
        log.control("clear")?;
        gpu.device().evict(&[&allocation], EvictFlags::empty())?;
        let own = log.own()?;
        let told = notified(&own);
        ensure_eq!(told.len(), 1, "{:?}", names(&own));
        let (at, said) = told[0];
        ensure_eq!(said, [0, 0, 0]);
        // No address of a client leads there any more, and no byte has moved.
        let entries = |one: &Record| one.what == UPDATE && one.get("process") != 0;
        ensure!(own.iter().rposition(entries).ok_or("no entries")? < at);
        let leaves = |one: &Record| one.what == TRANSFER || one.what == UNMAP;
        ensure!(own.iter().position(leaves).ok_or("stays")? > at);
        drop(allocation);
        ensure!(notified(&log.own()?).len() == 1);
    }
    // Who did not ask is not told, and nobody may ask without physical addresses.
    log.control("clear")?;
    drop(gpu.local_buffer(PAGE)?);
    ensure!(notified(&log.own()?).is_empty());
    let flags = OPENDXG_ALLOCATION_LOCAL | OPENDXG_ALLOCATION_NOTIFY_RESIDENCY;
    let refused = described(&gpu, flags);
    selftests::fails_with(refused, Status::INVALID_PARAMETER)
}

/// An allocation of a page with these flags.
fn described(gpu: &Gpu, flags: u32) -> opendxg::Result<Allocation> {
    let page = PAGE as u32;
    let words = [
        OPENDXG_ALLOCATION_MAGIC,
        1,
        page,
        0,
        page,
        0,
        page,
        0,
        1,
        0,
        flags,
        0,
    ];
    let data: Vec<_> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    gpu.device()
        .new_resource()
        .with_driver_data(&data)
        .create_one()
}

fn aperture() -> TestResult {
    const MAP: &str = "BUILD MapApertureSegment";
    let gpu = Gpu::new()?;
    let resource = gpu.device().new_resource().physical(100 * PAGE, false);
    let allocation = resource.create_one()?;
    let log = Log::new(&gpu)?;
    ensure_eq!(resident(&gpu, &allocation)?, 0);
    let own = log.own()?;
    ensure_eq!(names(&own), ["PIN", MAP, MAP, RETURN]);
    let (first, second) = (&own[1], &own[2]);
    let segment = first.get("segment");
    ensure!(segment != 0);
    ensure_eq!([first.get("start"), first.get("count")], [0, 64]);
    ensure_eq!([second.get("start"), second.get("count")], [64, 36]);
    ensure_eq!(second.get("offset"), first.get("offset") + 64 * PAGE);
    let place = ["segment", "offset", "object"].map(|name| first.get(name));
    gpu.device().evict(&[&allocation], EvictFlags::empty())?;
    drop(allocation);
    // Once, although the allocation goes, too.
    let own = log.own()?;
    let unmaps: Vec<_> = own.iter().filter(|one| one.what == UNMAP).collect();
    ensure_eq!(unmaps.len(), 1);
    let unmapped = ["segment", "offset", "object"].map(|name| unmaps[0].get(name));
    ensure_eq!(unmapped, place);
    ensure_eq!(unmaps[0].get("count"), 100);
    Ok(())
}

/// Trace 11, with entries that the processor writes.
fn update() -> TestResult {
    let gpu = Gpu::new()?;
    let pool = gpu.buffer(4 * PAGE)?;
    let reserve = GpuReserve {
        size: BLOCK,
        kind: Reservation::Zero,
        ..GpuReserve::default()
    };
    let range = gpu.paging().reserve(&reserve)?;
    reaches(gpu.paging().fence(), range.value)?;
    let fence = gpu.device().create_fence(0)?;
    let log = Log::new(&gpu)?;
    let map = GpuUpdate::Map {
        address: range.address + PAGE,
        size: 3 * PAGE,
        allocation: pool.allocation(),
        offset: PAGE,
        length: 3 * PAGE,
        protection: None,
    };
    gpu.context().update_gpu_ranges(&[map], &fence, 5)?;
    let written = |one: &Record| one.what == UPDATE || one.what == FLUSH;
    ensure!(log.records(written)?.is_empty());
    fence.signal(5)?;
    reaches(&fence, 6)?;
    let all = log.records(|_| true)?;
    let wait = all
        .iter()
        .find(|one| one.what.starts_with("WAIT"))
        .ok_or("no wait")?;
    let signal = all
        .iter()
        .find(|one| one.what.starts_with("SIGNAL"))
        .ok_or("no signal")?;
    ensure_eq!([wait.get("value"), signal.get("value")], [5, 6]);
    ensure_eq!(wait.get("object"), signal.get("object"));
    ensure_eq!(wait.get("process"), signal.get("process"));
    let between: Vec<_> = all
        .iter()
        .filter(|one| written(one) && one.get("process") == signal.get("process"))
        .filter(|one| wait.number < one.number && one.number < signal.number)
        .collect();
    let shown: Vec<_> = between.iter().map(|one| one.what.as_str()).collect();
    ensure_eq!(shown, [UPDATE, FLUSH]);
    ensure_eq!(between[0].get("va"), range.address + PAGE);
    ensure_eq!(between[0].get("source"), PAGE);
    ensure_eq!(between[0].get("count"), 3);
    Ok(())
}
