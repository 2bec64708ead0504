// SPDX-License-Identifier: MIT OR Apache-2.0
//! What root may change about the memory manager: a KMD that fails or finds an allocation busy,
//! segments of which little is left, and who gives way.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use opendxg::{Allocation, EvictFlags, ExecutionState, Resident, ResidentFlags};
use selftests::gpu::{Gpu, PAGE};
use selftests::rounds::{crowd, rounds};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::engine::{come, local, reads, write, FILL, SUBMIT};
use crate::t_paging::log::{names, Log};
use crate::t_paging::traces::{resident, TRANSFER};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-68 MEM-107 an allocation that is busy is built once more, while no engine runs",
            busy,
        )
        .test("MEM-68 MEM-107 a KMD that fails to build", fails)
        .test("MEM-107 a segment of which little is left", small_segment)
        .test(
            "MEM-107 of two who want the last place one gets it",
            last_place,
        )
        .test("MEM-107 who gives way in turn, and by chance", victims)
}

fn busy() -> TestResult {
    let soft = SoftAdapter::enabled("paging-busy")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    let allocation = local(&gpu, 8)?;
    write(&allocation, 0..8)?;
    log.control("busy 1")?;
    let own = come(&gpu, &log, &allocation)?;
    let about = |what: &'static str| own.iter().filter(move |one| one.what == what);
    ensure_eq!(about(TRANSFER).count(), 2, "{:?}", names(&own));
    ensure_eq!(about(SUBMIT).count(), 1);
    // Contexts are off their engines for the second one.
    let all = names(&own);
    let at = |what: &str| all.iter().position(|one| *one == what).ok_or("missing");
    let last = all.iter().rposition(|one| *one == TRANSFER);
    ensure!(at(TRANSFER)? < at("SUSPEND")?, "{all:?}");
    ensure!(at("SUSPEND")? < last.ok_or("no transfer")?, "{all:?}");
    ensure!(last.ok_or("no transfer")? < at("RESUME")?, "{all:?}");
    reads(&allocation, 0..8)?;
    gpu.works()?;
    // It was for once.
    let next = local(&gpu, 8)?;
    let own = come(&gpu, &log, &next)?;
    ensure_eq!(own.iter().filter(|one| one.what == FILL).count(), 1);
    drop((log, next, allocation, gpu));
    soft.remove()
}

/// The adapter is in error, as after a fault of the paging process.
fn fails() -> TestResult {
    let soft = SoftAdapter::enabled("paging-fails")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    let first = local(&gpu, 8)?;
    let second = local(&gpu, 8)?;
    log.control("fail 2")?;
    ensure_eq!(come(&gpu, &log, &first)?.is_empty(), false);
    ensure_eq!(gpu.device().execution_state()?, ExecutionState::Active);
    log.control("clear")?;
    // It has its place, or finds that its device is lost meanwhile.
    let _ = resident(&gpu, &second);
    ensure_eq!(log.records(|one| one.what == FILL)?.len(), 1);
    ensure!(log.records(|one| one.what == SUBMIT)?.is_empty());
    eventually("the device is lost", || {
        gpu.device().execution_state() == Ok(ExecutionState::Reset)
    })?;
    drop((log, first, second, gpu));
    // Others begin anew.
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let allocation = local(&gpu, 8)?;
    write(&allocation, 0..8)?;
    ensure_eq!(resident(&gpu, &allocation)?, 0);
    reads(&allocation, 0..8)?;
    drop((allocation, gpu));
    soft.remove()
}

/// Allocations of so many pages.
pub(crate) const PAGES: u64 = 16;

/// Local allocations with their bytes, that are resident as long as nobody needs their room.
fn idle(gpu: &Gpu, count: usize) -> TestResult<Vec<Allocation>> {
    let all: Vec<_> = (0..count)
        .map(|_| {
            let allocation = local(gpu, PAGES)?;
            write(&allocation, 0..PAGES)?;
            Ok(allocation)
        })
        .collect::<TestResult<_>>()?;
    for allocation in &all {
        ensure_eq!(resident(gpu, allocation)?, 0);
    }
    let names: Vec<_> = all.iter().collect();
    gpu.device().evict(&names, EvictFlags::ONLY_IF_NECESSARY)?;
    Ok(all)
}

/// Leaves room for so many of these allocations besides what is in use.
pub(crate) fn leave_room(gpu: &Gpu, log: &Log, count: u64) -> TestResult {
    let adapter = gpu.device().adapter();
    let (segments, _) = adapter.segment_and_node_count()?;
    let mut used = 0;
    for segment in 0..segments {
        let statistics = adapter.segment_statistics(segment)?;
        if !statistics.is_aperture {
            used = used.max(statistics.bytes_resident / PAGE);
        }
    }
    log.control(&format!("segment {}", used + count * PAGES))
}

fn small_segment() -> TestResult {
    let soft = SoftAdapter::enabled("paging-small")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    leave_room(&gpu, &log, 1)?;
    let old = idle(&gpu, 1)?;
    let new = local(&gpu, PAGES)?;
    write(&new, 0..PAGES)?;
    let own = come(&gpu, &log, &new)?;
    let decommits = own.iter().filter(|one| one.what == "DECOMMIT");
    ensure!(decommits.count() >= 1, "{:?}", names(&own));
    // What is wanted does not give way.
    let more = gpu
        .paging()
        .make_resident(&[&old[0]], ResidentFlags::empty())?;
    ensure!(matches!(more, Resident::TooMuch { .. }), "{more:?}");
    log.control("segment 4294967295")?;
    ensure_eq!(resident(&gpu, &old[0])?, 0);
    reads(&old[0], 0..PAGES)?;
    reads(&new, 0..PAGES)?;
    drop((log, new, old, gpu));
    soft.remove()
}

/// One process asks for both, so that neither makes the other leave.
fn last_place() -> TestResult {
    let soft = SoftAdapter::enabled("paging-last")?;
    let device = soft.device()?;
    let gpus = [Gpu::on(&device, 0)?, Gpu::on(&device, 0)?];
    let log = Log::new(&gpus[0])?;
    leave_room(&gpus[0], &log, 1)?;
    for _ in 0..rounds(400) {
        let allocations = [local(&gpus[0], PAGES)?, local(&gpus[1], PAGES)?];
        let got = AtomicU32::new(0);
        crowd(2, |index| {
            let (gpu, allocation) = (&gpus[index], &allocations[index]);
            let answer = gpu
                .paging()
                .make_resident(&[allocation], ResidentFlags::empty())?;
            if let Resident::At(_) = answer {
                got.fetch_add(1, Relaxed);
            }
            Ok(())
        })?;
        ensure_eq!(got.load(Relaxed), 1);
    }
    drop((log, gpus));
    soft.remove()
}

fn victims() -> TestResult {
    const COUNT: usize = 8;
    let soft = SoftAdapter::enabled("paging-victims")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = Log::new(&gpu)?;
    leave_room(&gpu, &log, COUNT as u64)?;
    // Who has given way, as many as come in, by their places.
    let given_way = || -> TestResult<Vec<usize>> {
        log.control("clear")?;
        let all = idle(&gpu, COUNT)?;
        let commits = log.records(|one| one.what == "COMMIT" && one.get("segment") != 0)?;
        let mut objects: Vec<_> = commits.iter().map(|one| one.get("object")).collect();
        objects.dedup();
        ensure_eq!(objects.len(), COUNT);
        log.control("clear")?;
        let others = idle(&gpu, COUNT / 2)?;
        let gone = log.records(|one| one.what == "DECOMMIT")?;
        let mut gone: Vec<_> = gone
            .iter()
            .filter_map(|one| objects.iter().position(|id| *id == one.get("object")))
            .collect();
        gone.dedup();
        for allocation in all.iter().chain(&others) {
            reads(allocation, 0..PAGES)?;
        }
        Ok(gone)
    };
    let in_turn: Vec<_> = (0..COUNT / 2).collect();
    ensure_eq!(given_way()?, in_turn);
    log.control("random")?;
    // One in 1680 is in turn by chance.
    eventually("another order", || {
        given_way().is_ok_and(|gone| gone.len() == COUNT / 2 && gone != in_turn)
    })?;
    log.control("ordered")?;
    ensure_eq!(given_way()?, in_turn);
    drop((log, gpu));
    soft.remove()
}
