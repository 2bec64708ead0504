// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that want more of a segment together than there is take turns (MEM-18).

use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Device, EvictFlags, Placement, Residency, Resident, ResidentFlags};
use selftests::child::{Child, Gate};
use selftests::gpu::{Buffer, Commands, Gpu, PAGE};
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
            "MEM-18 MEM-23 room that is about to be free counts as room",
            Duration::from_secs(120),
            leaving,
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

/// What the GPU stores.
const WORD: u32 = 0x5a5a_1234;

/// Memory that a process wants, and work that uses it. To do it again changes no GPU addresses, so
/// that the log has little but turns.
struct Work {
    buffer: Buffer,
    commands: Commands,
}

impl Work {
    fn new(gpu: &Gpu) -> TestResult<Self> {
        Self::in_buffer(gpu, gpu.local_buffer(PAGES * PAGE)?)
    }

    fn in_buffer(gpu: &Gpu, buffer: Buffer) -> TestResult<Self> {
        let fill = |commands: Pm4, at: &u64| commands.fill(buffer.at(*at), WORD, 4);
        let commands = gpu.commands(&Self::words().iter().fold(Pm4::new(), fill))?;
        Ok(Self { buffer, commands })
    }

    /// The first and the last word of each page.
    fn words() -> Vec<u64> {
        (0..PAGES)
            .flat_map(|page| [page * PAGE, (page + 1) * PAGE - 4])
            .collect()
    }

    /// The processor clears the words, and the GPU stores them.
    fn run(&self, gpu: &Gpu) -> TestResult {
        for at in Self::words() {
            self.buffer.set32(at, 0);
        }
        gpu.submit(&self.commands)?;
        gpu.finish()?;
        self.holds()
    }

    fn holds(&self) -> TestResult {
        for at in Self::words() {
            ensure_eq!(self.buffer.get32(at), WORD);
        }
        Ok(())
    }

    fn residency(&self) -> TestResult<Residency> {
        Ok(self.buffer.allocation().residency()?)
    }
}

/// Wants its pages and uses them so often.
fn works(device: &Device, rounds: u32) -> TestResult {
    let gpu = Gpu::on(device, 0)?;
    let work = Work::new(&gpu)?;
    work.buffer.set32(8, std::process::id());
    for _ in 0..rounds {
        work.run(&gpu)?;
        ensure_eq!(work.buffer.get32(8), std::process::id());
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

/// Two processes have been suspended and have come back, some times.
fn both_come_back(log: &Log) -> TestResult {
    eventually("both have come back", || {
        let Ok(all) = suspensions(log) else {
            return true;
        };
        let back = all.iter().filter(|one| one.what == "RESUME");
        let mut processes: Vec<_> = back.map(|one| one.get("process")).collect();
        let count = processes.len();
        processes.sort();
        processes.dedup();
        processes.len() == 2 && count >= 6
    })
}

fn two() -> TestResult {
    let (soft, gpu, log) = adapter("paging-turns")?;
    let end = Region::shared(4096)?;
    let children: TestResult<Vec<_>> = (0..2)
        .map(|_| {
            Child::spawn(|| {
                let gpu = Gpu::on(&soft.device()?, 0)?;
                let work = Work::new(&gpu)?;
                while end.get(0) == 0 {
                    work.run(&gpu)?;
                }
                gpu.works()
            })
        })
        .collect();
    let children = children?;
    both_come_back(&log)?;
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
    let end = Region::shared(4096)?;
    let children: TestResult<Vec<_>> = (0..2)
        .map(|_| {
            Child::spawn(|| {
                let gpu = Gpu::on(&soft.device()?, 0)?;
                let buffer = gpu.local_buffer(PAGES * PAGE)?;
                let context = gpu.device().create_hw_context(0)?;
                let hw = user_queue(&context)?;
                let queue = UserQueue::connected(&gpu, &hw)?;
                let mut round = 0;
                while end.get(0) == 0 {
                    let page = u64::from(round) % PAGES * PAGE;
                    queue.run(&Pm4::new().fill(buffer.at(page), round, PAGE))?;
                    buffer.holds(page..page + PAGE, round)?;
                    round += 1;
                }
                Ok(())
            })
        })
        .collect();
    let children = children?;
    both_come_back(&log)?;
    end.set(0, 1);
    for child in children {
        child.join()?;
    }
    drop((log, gpu));
    soft.remove()
}

fn elsewhere() -> TestResult {
    let (soft, gpu, log) = adapter("paging-elsewhere")?;
    let own = Gpu::on(&soft.device()?, 0)?;
    let work = Work::new(&own)?;
    // Local memory and the aperture.
    let both = Placement::new().segments(&[1, 2]);
    own.paging()
        .update_placement(work.buffer.allocation(), &both)?;
    work.run(&own)?;
    // Nobody comes back before the other is unmoveable.
    log.control("hold")?;
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
        let work = Work::new(&gpu)?;
        gpu.paging()
            .update_placement(work.buffer.allocation(), &stays)?;
        work.run(&gpu)?;
        there.open()?;
        done.wait_for_parent()?;
        work.run(&gpu)
    })?;
    there.wait_for_child(&child)?;
    log.control("release")?;
    work.holds()?;
    work.run(&own)?;
    ensure_eq!(work.residency()?, Residency::SharedMemory);
    done.open()?;
    child.join()?;
    work.run(&own)?;
    // It is in local memory again when it has been wanted anew.
    let allocation = work.buffer.allocation();
    own.device().evict(&[allocation], EvictFlags::empty())?;
    resident(&own, allocation)?;
    ensure_eq!(work.residency()?, Residency::GpuMemory);
    work.run(&own)?;
    drop((work, own, log, gpu));
    soft.remove()
}

fn made_unmoveable() -> TestResult {
    let (soft, gpu, log) = adapter("paging-made")?;
    let own = Gpu::on(&soft.device()?, 0)?;
    let work = Work::new(&own)?;
    work.run(&own)?;
    // Nobody comes back.
    log.control("hold")?;
    let (there, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let work = Work::new(&gpu)?;
        work.run(&gpu)?;
        there.open()?;
        done.wait_for_parent()?;
        work.holds()
    })?;
    there.wait_for_child(&child)?;
    let away = Residency::NotResident;
    ensure_eq!(work.residency()?, away);
    let stays = Placement::new().unmoveable(true);
    own.paging()
        .update_placement(work.buffer.allocation(), &stays)?;
    ensure_eq!(work.residency()?, away);
    log.control("release")?;
    work.run(&own)?;
    ensure_eq!(work.residency()?, Residency::GpuMemory);
    done.open()?;
    child.join()?;
    drop((work, own, log, gpu));
    soft.remove()
}

/// What nobody wants leaves for one process, which takes a while. Another one that finds no room
/// meanwhile, and nothing that could leave, has its turn afterwards.
fn leaving() -> TestResult {
    const BYTES: u64 = 24 << 20;
    let soft = SoftAdapter::new("paging-leaving")?;
    soft.set("local_memory", &(32_u64 << 20).to_string())?;
    soft.set("enabled", "1")?;
    let own = Gpu::on(&soft.device()?, 0)?;
    let buffer = own.local_buffer(BYTES)?;
    buffer.set32(BYTES - 4, WORD);
    let begin = Region::shared(4096)?;
    for round in 1..=4 {
        let gates = [Gate::new()?, Gate::new()?];
        let child = |ready: &Gate| {
            let gpu = Gpu::on(&soft.device()?, 0)?;
            let allocation = gpu.allocate_local(BYTES)?;
            ready.open()?;
            while begin.get(0) != round {
                std::hint::spin_loop();
            }
            // Nobody has so large a budget.
            let flags = ResidentFlags::CANT_TRIM_FURTHER;
            let answer = gpu.paging().make_resident(&[&allocation], flags)?;
            ensure!(!matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
            Ok(())
        };
        let children: TestResult<Vec<_>> = gates
            .iter()
            .map(|ready| Child::spawn(|| child(ready)))
            .collect();
        let children = children?;
        for (child, ready) in children.iter().zip(&gates) {
            ready.wait_for_child(child)?;
        }
        let flags = EvictFlags::ONLY_IF_NECESSARY;
        own.device().evict(&[buffer.allocation()], flags)?;
        begin.set(0, round);
        for child in children {
            child.join()?;
        }
        resident(&own, buffer.allocation())?;
    }
    ensure_eq!(buffer.get32(BYTES - 4), WORD);
    drop((buffer, own));
    soft.remove()
}

fn killed() -> TestResult {
    let (soft, gpu, log) = adapter("paging-killed")?;
    let ready = Gate::new()?;
    let first = Child::spawn(|| {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let work = Work::new(&gpu)?;
        ready.open()?;
        loop {
            work.run(&gpu)?;
        }
    })?;
    ready.wait_for_child(&first)?;
    // It does not come back.
    log.control("hold")?;
    let own = Gpu::on(&soft.device()?, 0)?;
    let work = Work::new(&own)?;
    let all = suspensions(&log)?;
    ensure_eq!(names(&all), ["SUSPEND"]);
    work.run(&own)?;
    first.kill()?;
    log.control("release")?;
    for _ in 0..20 {
        work.run(&own)?;
    }
    // Nobody is there any more to take turns with.
    ensure!(suspensions(&log)?
        .iter()
        .all(|one| one.get("process") == all[0].get("process")));
    drop((work, own, log, gpu));
    soft.remove()
}

fn removed() -> TestResult {
    let (soft, gpu, log) = adapter("paging-gone")?;
    let children: TestResult<Vec<_>> = (0..2)
        .map(|_| {
            Child::spawn(|| {
                let gpu = Gpu::on(&soft.device()?, 0)?;
                let work = Work::new(&gpu)?;
                // Until the adapter is gone.
                while work.run(&gpu).is_ok() {}
                Ok(())
            })
        })
        .collect();
    let children = children?;
    both_come_back(&log)?;
    soft.disable()?;
    for child in children {
        child.join()?;
    }
    drop((log, gpu));
    soft.remove()
}
