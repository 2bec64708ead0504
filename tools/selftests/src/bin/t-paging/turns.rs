// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that want more of a segment together than there is take turns (MEM-18).

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Device, EvictFlags, Placement, Residency, Resident, ResidentFlags};
use selftests::child::{Child, Gate};
use selftests::gpu::{Buffer, Gpu, PAGE};
use selftests::region::Region;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::{names, Log, Record};
use crate::t_paging::switches::{leave_room, PAGES};
use crate::t_paging::traces::{resident, TRANSFER, VALID};

/// Why contexts are suspended: not all is there that their process wants.
const ROOM: u64 = 0x10;
/// Directions of a TransferVirtual.
const FROM_SEGMENT: u64 = 0x40;
const TO_SEGMENT: u64 = 0x80;

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "MEM-18 MEM-77 two processes whose lists exceed the segment take turns",
            Duration::from_secs(120),
            two,
        )
        .slow(
            "MEM-18 processes that want four times the segment all go on, and lose nothing",
            Duration::from_secs(180),
            many,
        )
        .slow(
            "MEM-18 user-mode queues take turns as well",
            Duration::from_secs(120),
            user_queues,
        )
        .slow(
            "MEM-18 who finds only what stays comes back in system memory",
            Duration::from_secs(120),
            elsewhere,
        )
        .slow(
            "MEM-18 MEM-8 what is made unmoveable while it is away comes back",
            Duration::from_secs(120),
            made_unmoveable,
        )
        .slow(
            "MEM-18 who is killed while it is suspended leaves room",
            Duration::from_secs(120),
            killed,
        )
        .slow(
            "MEM-18 an adapter is removed while processes take turns",
            Duration::from_secs(120),
            removed,
        )
}

/// The GPU counts in the first and the last word of each page.
fn count(gpu: &Gpu, buffer: &Buffer, round: u32) -> TestResult {
    let mut commands = Pm4::new();
    for page in 0..PAGES {
        for at in [page * PAGE, (page + 1) * PAGE - 4] {
            commands = commands.fill(buffer.at(at), round, 4);
        }
    }
    gpu.run(&commands)?;
    for page in 0..PAGES {
        ensure_eq!(buffer.get32(page * PAGE), round);
        ensure_eq!(buffer.get32((page + 1) * PAGE - 4), round);
    }
    Ok(())
}

/// Wants its pages and uses them so often.
fn works(device: &Device, rounds: u32) -> TestResult {
    let gpu = Gpu::on(device, 0)?;
    let buffer = gpu.local_buffer(PAGES * PAGE)?;
    buffer.set32(8, std::process::id());
    for round in 0..rounds {
        count(&gpu, &buffer, round)?;
        ensure_eq!(buffer.get32(8), std::process::id());
    }
    Ok(())
}

/// Those of the processes that were suspended for want of room, and have come back.
fn suspensions(log: &Log) -> TestResult<Vec<Record>> {
    log.records(|one| matches!(&*one.what, "SUSPEND" | "RESUME") && one.get("flags") == ROOM)
}

/// An adapter, of whose segment is left what one process wants.
fn adapter(name: &str) -> TestResult<(SoftAdapter, Gpu, Log)> {
    let soft = SoftAdapter::enabled(name)?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    leave_room(&gpu, &log, 1)?;
    Ok((soft, gpu, log))
}

fn two() -> TestResult {
    let (soft, gpu, log) = adapter("paging-turns")?;
    let end = Region::shared(4096)?;
    let children: TestResult<Vec<_>> = (0..2)
        .map(|_| {
            Child::spawn(|| {
                let device = soft.device()?;
                let gpu = Gpu::on(&device, 0)?;
                let buffer = gpu.local_buffer(PAGES * PAGE)?;
                let mut round = 0;
                while end.get(0) == 0 {
                    count(&gpu, &buffer, round)?;
                    round += 1;
                }
                gpu.works()
            })
        })
        .collect();
    let children = children?;
    eventually("both have come back", || {
        let Ok(all) = suspensions(&log) else {
            return true;
        };
        let back = all.iter().filter(|one| one.what == "RESUME");
        let mut processes: Vec<_> = back.map(|one| one.get("process")).collect();
        let count = processes.len();
        processes.sort();
        processes.dedup();
        processes.len() == 2 && count >= 6
    })?;
    log.control("stop")?;
    end.set(0, 1);
    for child in children {
        child.join()?;
    }
    let all = log.records(|_| true)?;
    ensure!(all.iter().all(|one| one.what != "FAULT"), "a fault");
    let is_turn = |one: &Record, what: &str| one.what == what && one.get("flags") == ROOM;
    let mut seen = 0;
    for (at, out) in all
        .iter()
        .enumerate()
        .filter(|(_, one)| is_turn(one, "SUSPEND"))
    {
        let process = out.get("process");
        let rest = &all[at..];
        let is_back = |one: &Record| is_turn(one, "RESUME") && one.get("process") == process;
        let Some(back) = rest.iter().position(is_back) else {
            continue;
        };
        let turn = &rest[..back];
        let find = |what: &dyn Fn(&Record) -> bool| turn.iter().position(what);
        let table = |valid: bool| {
            move |one: &Record| {
                one.what == "BUILD UpdatePageTable"
                    && one.get("process") == process
                    && one.get("count") == PAGES
                    && (one.get("flags") & VALID != 0) == valid
            }
        };
        let (hidden, shown) = (find(&table(false)), find(&table(true)));
        let moved = |from| move |one: &Record| one.what == TRANSFER && one.get("flags") & from != 0;
        let (leaves, comes) = (find(&moved(FROM_SEGMENT)), find(&moved(TO_SEGMENT)));
        // The entries are invalid before the bytes leave, and lead there before it goes on.
        ensure!(hidden < leaves && hidden.is_some(), "{hidden:?} {leaves:?}");
        ensure!(comes < shown && comes.is_some(), "{comes:?} {shown:?}");
        seen += 1;
    }
    ensure!(seen >= 4, "{seen} turns");
    drop((log, gpu));
    soft.remove()
}

fn many() -> TestResult {
    let (soft, gpu, log) = adapter("paging-many")?;
    let children: TestResult<Vec<_>> = (0..4)
        .map(|_| Child::spawn(|| works(&soft.device()?, 20)))
        .collect();
    for child in children? {
        child.join()?;
    }
    drop((log, gpu));
    soft.remove()
}

fn user_queues() -> TestResult {
    let (soft, gpu, log) = adapter("paging-queues")?;
    let child = |rounds: u32| {
        let soft = &soft;
        move || {
            let gpu = Gpu::on(&soft.device()?, 0)?;
            let buffer = gpu.local_buffer(PAGES * PAGE)?;
            let context = gpu.device().create_hw_context(0)?;
            let hw = user_queue(&context)?;
            let queue = UserQueue::connected(&gpu, &hw)?;
            for round in 0..rounds {
                let at = buffer.at(u64::from(round) % PAGES * PAGE);
                queue.run(&Pm4::new().fill(at, round, PAGE))?;
                let page = u64::from(round) % PAGES * PAGE;
                buffer.holds(page..page + PAGE, round)?;
            }
            Ok(())
        }
    };
    let children = [Child::spawn(child(60))?, Child::spawn(child(60))?];
    for child in children {
        child.join()?;
    }
    ensure!(!suspensions(&log)?.is_empty(), "nobody was suspended");
    drop((log, gpu));
    soft.remove()
}

fn elsewhere() -> TestResult {
    let (soft, gpu, log) = adapter("paging-elsewhere")?;
    let own = Gpu::on(&soft.device()?, 0)?;
    let buffer = own.local_buffer(PAGES * PAGE)?;
    // Local memory and the aperture.
    let both = Placement::new().segments(&[1, 2]);
    own.paging().update_placement(buffer.allocation(), &both)?;
    count(&own, &buffer, 1)?;
    let (there, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let stays = Placement::new().unmoveable(true);
        // That has room of nobody who wants it.
        let allocation = gpu.allocate_local(PAGES * PAGE)?;
        gpu.paging().update_placement(&allocation, &stays)?;
        let flags = ResidentFlags::CANT_TRIM_FURTHER;
        let answer = gpu.paging().make_resident(&[&allocation], flags)?;
        ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
        let buffer = gpu.local_buffer(PAGES * PAGE)?;
        gpu.paging().update_placement(buffer.allocation(), &stays)?;
        count(&gpu, &buffer, 7)?;
        there.open()?;
        done.wait_for_parent()?;
        count(&gpu, &buffer, 8)
    })?;
    there.wait_for_child(&child)?;
    ensure_eq!(buffer.get32(0), 1);
    count(&own, &buffer, 2)?;
    ensure_eq!(buffer.allocation().residency()?, Residency::SharedMemory);
    done.open()?;
    child.join()?;
    count(&own, &buffer, 3)?;
    // It is in local memory again when it has been wanted anew.
    own.device()
        .evict(&[buffer.allocation()], EvictFlags::empty())?;
    resident(&own, buffer.allocation())?;
    ensure_eq!(buffer.allocation().residency()?, Residency::GpuMemory);
    count(&own, &buffer, 4)?;
    drop((buffer, own, log, gpu));
    soft.remove()
}

fn made_unmoveable() -> TestResult {
    let (soft, gpu, log) = adapter("paging-made")?;
    let own = Gpu::on(&soft.device()?, 0)?;
    let buffer = own.local_buffer(PAGES * PAGE)?;
    count(&own, &buffer, 1)?;
    // Nobody comes back.
    log.control("hold")?;
    let (there, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let buffer = gpu.local_buffer(PAGES * PAGE)?;
        count(&gpu, &buffer, 7)?;
        there.open()?;
        done.wait_for_parent()?;
        buffer.holds(0..4, 7)
    })?;
    there.wait_for_child(&child)?;
    let away = Residency::NotResident;
    ensure_eq!(buffer.allocation().residency()?, away);
    let stays = Placement::new().unmoveable(true);
    own.paging().update_placement(buffer.allocation(), &stays)?;
    ensure_eq!(buffer.allocation().residency()?, away);
    log.control("release")?;
    count(&own, &buffer, 2)?;
    ensure_eq!(buffer.allocation().residency()?, Residency::GpuMemory);
    done.open()?;
    child.join()?;
    drop((buffer, own, log, gpu));
    soft.remove()
}

fn killed() -> TestResult {
    let (soft, gpu, log) = adapter("paging-killed")?;
    let ready = Gate::new()?;
    let first = Child::spawn(|| {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let buffer = gpu.local_buffer(PAGES * PAGE)?;
        ready.open()?;
        for round in 0.. {
            count(&gpu, &buffer, round)?;
        }
        Ok(())
    })?;
    ready.wait_for_child(&first)?;
    // It does not come back.
    log.control("hold")?;
    let own = Gpu::on(&soft.device()?, 0)?;
    let buffer = own.local_buffer(PAGES * PAGE)?;
    let all = suspensions(&log)?;
    ensure_eq!(names(&all), ["SUSPEND"]);
    count(&own, &buffer, 1)?;
    first.kill()?;
    log.control("release")?;
    for round in 0..20 {
        count(&own, &buffer, round)?;
    }
    // Nobody is there any more to take turns with.
    ensure!(suspensions(&log)?
        .iter()
        .all(|one| one.get("process") == all[0].get("process")));
    drop((buffer, own, log, gpu));
    soft.remove()
}

fn removed() -> TestResult {
    let (soft, gpu, log) = adapter("paging-gone")?;
    let children: TestResult<Vec<_>> = (0..2)
        .map(|_| {
            Child::spawn(|| {
                let gpu = Gpu::on(&soft.device()?, 0)?;
                let buffer = gpu.local_buffer(PAGES * PAGE)?;
                let mut round = 0;
                // Until the adapter is gone.
                while count(&gpu, &buffer, round).is_ok() {
                    round += 1;
                }
                Ok(())
            })
        })
        .collect();
    let children = children?;
    eventually("they take turns", || {
        suspensions(&log).map_or(true, |all| all.len() > 4)
    })?;
    soft.disable()?;
    for child in children {
        child.join()?;
    }
    drop((log, gpu));
    soft.remove()
}
