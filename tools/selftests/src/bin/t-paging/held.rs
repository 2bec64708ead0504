// SPDX-License-Identifier: MIT OR Apache-2.0
//! A worker that root holds.

use opendxg::Allocation;
use selftests::child::{Child, Gate};
use selftests::gpu::{reaches, Gpu, PAGE};
use selftests::paging_log::PagingLog;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_paging::log::Log;
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
