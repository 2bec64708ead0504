// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's tracer is told of what the memory manager does (MEM-105).

use opendxg::pm4::Pm4;
use opendxg::{EvictFlags, ExecutionState, MemoryGroup, OfferFlags, OfferPriority};
use selftests::child::{Child, Gate};
use selftests::gpu::{reaches, Gpu, BLOCK, PAGE};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::soon;
use selftests::trace::{traced_memory, Event};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::engine::{local, write};
use crate::t_paging::log::Log;
use crate::t_paging::switches::{leave_room, PAGES};
use crate::t_paging::traces::{resident, MANY};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("MEM-105 an allocation comes and goes", comes_and_goes)
        .test("MEM-105 what the worker does names its queue", worker)
        .test("MEM-105 offer, reclaim and reservations", offers)
        .test("MEM-105 bytes that are dropped", discard)
        .test("MEM-105 a page fault, by its process", fault)
        .test("MEM-105 who is above the budget is told", trim)
        .test("MEM-104 MEM-105 the tracer and the log tell the same", both)
}

fn count(events: &[Event], name: &str) -> usize {
    events.iter().filter(|event| event.name == name).count()
}

fn only<'a>(events: &'a [Event], name: &str) -> TestResult<&'a Event> {
    ensure_eq!(count(events, name), 1, "{name}: {events:?}");
    Ok(events
        .iter()
        .find(|event| event.name == name)
        .ok_or("none")?)
}

/// By the log that is off, too: batches have numbers when the tracer follows.
fn comes_and_goes() -> TestResult {
    let soft = SoftAdapter::enabled("paging-events")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, 8)?;
    write(&allocation, 0..8)?;
    let events = traced_memory(|| {
        ensure_eq!(resident(&gpu, &allocation)?, 0);
        gpu.device().evict(&[&allocation], EvictFlags::empty())?;
        Ok(())
    })?;
    let made = only(&events, "make_resident")?;
    ensure_eq!((made.get("count"), made.get("status")), (1, 0));
    let gone = only(&events, "evict")?;
    ensure_eq!(gone.get("count"), 1);
    for event in [made, gone] {
        ensure!(event.get("device") != 0 && event.get("process") != 0);
    }
    ensure_eq!(made.get("device"), gone.get("device"));
    ensure!(events
        .iter()
        .all(|event| event.get("adapter") == made.get("adapter")));
    // There and back, by the paging node.
    let moves: Vec<_> = events.iter().filter(|one| one.name == "move").collect();
    ensure_eq!(moves.len(), 2);
    ensure!(moves[0].get("segment") != 0 && moves[1].get("segment") == 0);
    ensure!(moves[0].get("object") == moves[1].get("object"));
    for name in ["page_op_build", "page_op_submit", "page_op_done"] {
        ensure_eq!(count(&events, name), 2, "{name}");
    }
    // TransferVirtual, to the segment and from it.
    let built = events.iter().filter(|one| one.name == "page_op_build");
    let built: Vec<_> = built
        .map(|one| [one.get("operation"), one.get("flags"), one.get("size")])
        .collect();
    ensure_eq!(built, [[8, 0x80, 8 * PAGE], [8, 0x40, 8 * PAGE]]);
    let batches = events.iter().filter(|one| one.name == "page_op_done");
    let mut batches: Vec<_> = batches.map(|one| one.get("batch")).collect();
    batches.dedup();
    ensure!(batches.len() == 2 && !batches.contains(&0));
    // The batches, and the addresses of the process.
    ensure!(count(&events, "pt_update") >= 4 && count(&events, "tlb_flush") >= 3);
    drop((allocation, gpu));
    soft.remove()
}

fn worker() -> TestResult {
    let soft = SoftAdapter::enabled("paging-worker-events")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, MANY)?;
    let mut value = 0;
    let events = traced_memory(|| {
        value = resident(&gpu, &allocation)?;
        ensure!(value != 0);
        reaches(gpu.paging().fence(), value)
    })?;
    let made = only(&events, "make_resident")?;
    ensure_eq!((made.get("value"), made.get("status")), (value, 0x103));
    for name in ["page_op_build", "page_op_submit", "page_op_done"] {
        ensure!(count(&events, name) > 0, "{name}");
        for event in events.iter().filter(|one| one.name == name) {
            for key in ["device", "queue", "value"] {
                ensure_eq!(event.get(key), made.get(key), "{key} of {name}");
            }
        }
    }
    drop((allocation, gpu));
    soft.remove()
}

fn offers() -> TestResult {
    let soft = SoftAdapter::enabled("paging-offer-events")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, 8)?;
    let events = traced_memory(|| {
        gpu.device()
            .offer(&[&allocation], OfferPriority::Low, OfferFlags::empty())?;
        let (_results, value) = gpu.paging().reclaim(&[&allocation])?;
        ensure_eq!(value, 0);
        let adapter = gpu.device().adapter();
        Ok(adapter.reserve_video_memory(MemoryGroup::Local, PAGE)?)
    })?;
    let budget = only(&events, "budget_change")?;
    ensure_eq!((budget.get("size"), budget.get("flags")), (PAGE, 0));
    ensure!(budget.get("process") != 0);
    let (offer, reclaim) = (only(&events, "offer")?, only(&events, "reclaim")?);
    for event in [offer, reclaim] {
        ensure_eq!(event.get("size"), 8 * PAGE);
        ensure!(event.get("device") != 0 && event.get("object") != 0);
    }
    ensure_eq!(reclaim.get("status"), 0);
    drop((allocation, gpu));
    soft.remove()
}

fn discard() -> TestResult {
    let soft = SoftAdapter::enabled("paging-discard-events")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    let (old, new) = (local(&gpu, PAGES)?, local(&gpu, PAGES)?);
    leave_room(&gpu, &log, 1)?;
    ensure_eq!(resident(&gpu, &old)?, 0);
    let events = traced_memory(|| {
        gpu.device()
            .offer(&[&old], OfferPriority::Low, OfferFlags::empty())?;
        ensure_eq!(resident(&gpu, &new)?, 0);
        Ok(())
    })?;
    let (offer, discard) = (only(&events, "offer")?, only(&events, "discard")?);
    ensure_eq!(discard.get("object"), offer.get("object"));
    ensure_eq!(discard.get("count"), PAGES);
    drop((log, old, new, gpu));
    soft.remove()
}

fn fault() -> TestResult {
    let soft = SoftAdapter::enabled("paging-fault-events")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, 8)?;
    // Nothing is below the first block.
    let nowhere = BLOCK - 8;
    let events = traced_memory(|| {
        ensure_eq!(resident(&gpu, &allocation)?, 0);
        let commands = Pm4::new().write64(nowhere, 1);
        gpu.fails(&commands, ExecutionState::DmaPageFault)
    })?;
    // The buffer with the commands became resident, too.
    let made = events.iter().find(|one| one.name == "make_resident");
    let fault = only(&events, "page_fault")?;
    ensure_eq!(fault.get("address"), nowhere);
    ensure_eq!(fault.get("process"), made.ok_or("no call")?.get("process"));
    ensure!(fault.get("object") != 0);
    drop((allocation, gpu));
    soft.remove()
}

/// Another process keeps memory for itself.
fn trim() -> TestResult {
    let soft = SoftAdapter::new("paging-trim-events")?;
    soft.set("local_memory", &(16_u64 << 20).to_string())?;
    soft.set("enabled", "1")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let group = MemoryGroup::Local;
    let memory = gpu.device().adapter().video_memory(group)?;
    let size = memory.budget * 3 / 4 / PAGE * PAGE;
    let large = gpu.allocate_local(size)?;
    let value = resident(&gpu, &large)?;
    reaches(gpu.paging().fence(), value)?;
    let notices = gpu.device().trim_notices()?;
    let (begin, reserved) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let adapter = soft.open()?;
        begin.wait_for_parent()?;
        adapter.reserve_video_memory(group, memory.available_for_reservation)?;
        reserved.open()?;
        begin.wait_for_parent()
    })?;
    let mut told = None;
    let events = traced_memory(|| {
        begin.open()?;
        reserved.wait_for_child(&child)?;
        while told.is_none() {
            told = notices.wait(Some(soon()))?.ok_or("no notice")?.to_budget;
        }
        Ok(())
    })?;
    begin.open()?;
    child.join()?;
    let over = |event: &&Event| event.name == "trim" && Some(event.get("size")) == told;
    let found = events.iter().find(over).ok_or("no trim")?;
    let change = only(&events, "budget_change")?;
    ensure!(found.get("process") != 0);
    ensure!(found.get("process") != change.get("process"));
    drop((notices, large, gpu));
    soft.remove()
}

/// The log goes on when the tracer has had enough, and the other way round.
fn both() -> TestResult {
    let soft = SoftAdapter::enabled("paging-both")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, 8)?;
    let log = Log::new(&gpu)?;
    let events = traced_memory(|| {
        ensure_eq!(resident(&gpu, &allocation)?, 0);
        Ok(())
    })?;
    let built = |what: &str| log.records(|one| one.what == what);
    let update = "BUILD UpdatePageTable";
    ensure_eq!(count(&events, "pt_update"), built(update)?.len());
    ensure_eq!(count(&events, "tlb_flush"), built("BUILD FlushTlb")?.len());
    log.control("clear")?;
    gpu.device().evict(&[&allocation], EvictFlags::empty())?;
    ensure!(!built(update)?.is_empty());
    log.control("stop")?;
    log.control("clear")?;
    let events = traced_memory(|| {
        ensure_eq!(resident(&gpu, &allocation)?, 0);
        Ok(())
    })?;
    ensure!(count(&events, "pt_update") > 0);
    ensure!(built(update)?.is_empty());
    drop((log, allocation, gpu));
    soft.remove()
}
