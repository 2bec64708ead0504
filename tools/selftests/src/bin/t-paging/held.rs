// SPDX-License-Identifier: MIT OR Apache-2.0
//! A worker that root holds.

use opendxg::Allocation;
use selftests::child::{Child, Gate};
use selftests::gpu::{reaches, Gpu, PAGE};
use selftests::paging_log::PagingLog;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::{Log, Record};
use crate::t_paging::traces::{resident, MANY};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-107 a worker that is held keeps no process that dies, nor its pages",
            killed,
        )
        .test(
            "MEM-107 a worker that is held does not keep an adapter that is removed",
            removed,
        )
        .test("MEM-112 the worker of an adapter can always run", rescuer)
        .test(
            "MEM-112 what the worker is at keeps the memory of a process that dies",
            dies_meanwhile,
        )
}

/// How many work queues of workers have a thread of their own for when memory is short.
fn rescuers() -> usize {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let name = |process: std::fs::DirEntry| std::fs::read_to_string(process.path().join("comm"));
    names
        .filter_map(|process| name(process).ok())
        .filter(|name| name.trim_end() == "kworker/R-dxg-paging")
        .count()
}

fn rescuer() -> TestResult {
    let before = rescuers();
    let soft = SoftAdapter::enabled("paging-rescuer")?;
    ensure_eq!(rescuers(), before + 1);
    soft.remove()?;
    eventually("it goes with the adapter", || rescuers() == before)
}

fn dies_meanwhile() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let pages = gpu.allocate_local(4 * MANY * PAGE)?;
        // So that all of it has to be moved.
        pages.lock_write()?.fill(1);
        leave_to_worker(&gpu, &pages)?;
        loop {
            std::thread::park();
        }
    })?;
    let process = |one: &Record| one.get("queue") != 0 && one.what == "SUBMIT";
    let mut queue = 0;
    eventually("the worker is at it", || {
        let begun = log.records(process).unwrap_or_default();
        queue = begun.first().map_or(0, |one| one.get("queue"));
        queue != 0
    })?;
    child.kill()?;
    let all = || log.records(|one| one.get("queue") == queue || one.what == "DECOMMIT");
    let place = |all: &[Record], what: &str| all.iter().rposition(|one| one.what == what);
    eventually("the memory is free, and the value is shown", || {
        all().is_ok_and(|all| {
            let ends = [place(&all, "DECOMMIT"), place(&all, "SIGNAL")];
            ends.iter().all(Option::is_some)
        })
    })?;
    // First what was begun was done. Then the worker showed its value and the process freed the
    // memory, whoever was first.
    let all = all()?;
    let [begun, done, shown, free] =
        ["SUBMIT", "COMPLETE", "SIGNAL", "DECOMMIT"].map(|what| place(&all, what));
    ensure!(begun.is_some() && begun < done);
    ensure!(done < shown, "the value: {done:?} {shown:?}");
    ensure!(done < free, "the memory: {done:?} {free:?}");
    Ok(())
}

/// In the process whose operation the worker does not begin.
fn leave_to_worker(gpu: &Gpu, allocation: &Allocation) -> TestResult {
    let value = resident(gpu, allocation)?;
    ensure!(value != 0 && !gpu.paging().fence().is_reached(value));
    Ok(())
}

fn killed() -> TestResult {
    let gpu = Gpu::new()?;
    let log = Log::new(&gpu)?;
    log.control("hold")?;
    let queued = Gate::new()?;
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        leave_to_worker(&gpu, &gpu.allocate(MANY * PAGE)?)?;
        let other = gpu.allocate(MANY * PAGE)?;
        leave_to_worker(&gpu, &other)?;
        queued.open()?;
        loop {
            std::thread::park();
        }
    })?;
    queued.wait_for_child(&child)?;
    child.kill()?;
    let pages = |what: &str| {
        let pages = log.records(|one| one.what == what && one.get("count") == MANY);
        pages.map(|pages| pages.len())
    };
    ensure_eq!(pages("PIN")?, 2);
    eventually("all pages are free", || pages("UNPIN") == Ok(2))?;
    ensure_eq!(log.records(|one| one.what == "SIGNAL")?.len(), 0);
    // The worker goes on where it was.
    let allocation = gpu.allocate(MANY * PAGE)?;
    let value = resident(&gpu, &allocation)?;
    ensure!(!gpu.paging().fence().is_reached(value));
    log.control("release")?;
    reaches(gpu.paging().fence(), value)
}

fn removed() -> TestResult {
    let soft = SoftAdapter::enabled("paging-held")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let log = PagingLog::of(gpu.device().adapter())?;
    let allocation = gpu.allocate(MANY * PAGE)?;
    log.control("hold")?;
    leave_to_worker(&gpu, &allocation)?;
    soft.disable()?;
    // Nobody waits for what it has not begun.
    reaches(gpu.paging().fence(), 1)?;
    // It cannot be held again.
    log.control("hold")?;
    drop(allocation);
    drop(gpu);
    eventually("the adapter is gone", || !log.exists())?;
    soft.remove()
}
