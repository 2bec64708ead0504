// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a save area: at any time, or never by its driver.

use opendxg::pm4::{Compare, Pm4};
use opendxg::soft_gpu::Command;
use opendxg::ExecutionState;
use selftests::gpu::{Gpu, PAGE};
use selftests::kernel_log::KernelLog;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::{only, Saved, BEHIND, CREATE, DESTROY, MAPPED, PAGES, ROOT};
use crate::t_paging::log::{names, Record};

pub(super) fn tests(suite: Suite) -> Suite {
    ["visible", "visible system"]
        .into_iter()
        .fold(suite, |suite, areas| {
            suite.test(
                format!("MEM-90 its driver ends it while its context runs, {areas}"),
                move || at_any_time(areas),
            )
        })
        .test(
            "MEM-90 what a driver leaves behind goes with its context, and the kernel's log says so",
            || left("private left"),
        )
        .test(
            "MEM-90 what a driver leaves behind goes with its device, and the kernel's log says so",
            || left("private device left"),
        )
        .test("MEM-90 a driver that leaves nothing is not blamed", good)
}

/// What says that memory is gone.
fn is_end(what: &str) -> bool {
    matches!(what, "DECOMMIT" | "UNPIN")
}

/// Waits until the memory of this object is gone. Returns what has happened.
fn gone(saved: &Saved, object: u64) -> TestResult<Vec<Record>> {
    let mut all = Vec::new();
    eventually("its memory goes", || {
        all = saved.log.records(|_| true).unwrap_or_default();
        all.iter()
            .any(|one| is_end(&one.what) && one.get("object") == object)
    })?;
    Ok(all)
}

fn at_any_time(areas: &str) -> TestResult {
    let saved = Saved::new("context-any-time", areas)?;
    let adapter = saved.soft.open()?;
    let (another, all) = saved.another()?;
    let object = only(&all, CREATE)?.get("object");
    let address = only(&all, MAPPED)?.get("va");
    // It reads what is at the address as long as nobody says that it may end.
    let buffer = another.buffer(PAGES * PAGE)?;
    let go = buffer.at(0);
    let work = another.commands(&Pm4::new().write(buffer.at(8), &[1]).wait32(
        go,
        Compare::Equal,
        1,
        u32::MAX,
    ))?;
    another.submit(&work)?;
    let mark = another.mark()?;
    eventually("it runs", || buffer.get32(8) == 1)?;
    saved.log.control("clear")?;
    adapter.soft_gpu_command(Command::EndSaveAreas, 0, 0)?;
    let all = gone(&saved, object)?;
    let own: Vec<_> = all
        .iter()
        .filter(|one| one.get("object") == object)
        .collect();
    let number = |what: &str| {
        let mut own = own.iter();
        own.find(|one| one.what == what)
            .map(|one| one.number)
            .ok_or(format!("no {what}: {:?}", names(&all)))
    };
    let (asked, answered) = (number(DESTROY)?, number("RETURN DestroyContextAllocation")?);
    let freed = own
        .iter()
        .find(|one| is_end(&one.what))
        .map(|one| one.number)
        .ok_or("it is there")?;
    // Between the call and the end of its memory its context was off the engine.
    let between = |what: &str| {
        all.iter()
            .any(|one| one.what == what && asked < one.number && one.number < freed)
    };
    ensure!(asked < answered);
    ensure!(between("SUSPEND") && between("RESUME"), "{:?}", names(&all));
    ensure!(own
        .iter()
        .all(|one| one.get("status") == 0 || !one.what.starts_with("RETURN")));
    // The context goes on without it.
    ensure!(!another.is_done(mark));
    buffer.set32(0, 1);
    another.until(mark)?;
    // There is nothing at its address any more.
    let read = Pm4::new().copy(buffer.at(16), address, 4);
    another.fails(&read, ExecutionState::DmaPageFault)?;
    ensure_eq!(another.device().page_fault()?.address, address);
    // New contexts have one as before.
    drop((work, buffer, another));
    let next = saved.soft.device()?;
    saved.log.control("clear")?;
    let next = Gpu::on(&next, 0)?;
    next.works()?;
    ensure!(!saved.log.records(|one| one.what == CREATE)?.is_empty());
    drop((next, adapter));
    saved.remove()
}

fn left(areas: &str) -> TestResult {
    let saved = Saved::new("context-left", areas)?;
    let mut blame = KernelLog::new()?;
    saved.log.control("clear")?;
    let another = Gpu::on(&saved.soft.device()?, 1)?;
    let all = saved.log.records(|_| true)?;
    let object = only(&all, CREATE)?.get("object");
    another.finish()?;
    ensure_eq!(blame.find(BEHIND)?, Vec::<String>::new());
    saved.log.control("clear")?;
    drop(another);
    let end = gone(&saved, object)?;
    ensure!(
        end.iter().all(|one| one.what != DESTROY),
        "{:?}",
        names(&end)
    );
    let user = match areas.contains("device") {
        true => "device ".into(),
        false => format!("context {} behind", only(&all, ROOT)?.get("object")),
    };
    let mut said = Vec::new();
    eventually("the kernel's log says so", || {
        said.extend(blame.find(BEHIND).unwrap_or_default());
        !said.is_empty()
    })?;
    ensure_eq!(said.len(), 1);
    ensure!(
        said[0].contains(&format!("context allocation {object} of {user}")),
        "{said:?}"
    );
    saved.gpu.works()?;
    saved.remove()
}

/// Neither at the end of a context, nor of a device, nor of the adapter with all that is there.
fn good() -> TestResult {
    for areas in ["private", "private device"] {
        let mut blame = KernelLog::new()?;
        let saved = Saved::new("context-good", areas)?;
        for node in 0..3 {
            let (another, all) = saved.another()?;
            ensure_eq!(areas == "private", only(&all, CREATE).is_ok());
            Gpu::on(&saved.soft.device()?, node)?.works()?;
            drop(another);
        }
        saved.soft.disable()?;
        saved.remove()?;
        ensure_eq!(blame.find(BEHIND)?, Vec::<String>::new());
    }
    Ok(())
}
