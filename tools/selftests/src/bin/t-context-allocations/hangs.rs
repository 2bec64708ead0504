// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paging node hangs while a driver waits for it, inside of the call that the OS has made.

use opendxg::soft_gpu::{Command, FailResets};
use opendxg::{Adapter, ExecutionState};
use selftests::child::Child;
use selftests::gpu::{Gpu, PAGING_NODE};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, Suite, TestResult};

use super::{Saved, CREATE};

pub(super) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "MEM-87 MEM-60 an update of a node that hangs is done again",
            again,
        )
        .test(
            "MEM-87 GPU-96 a reset of the adapter while a driver waits for an update",
            reset,
        )
        .test(
            "MEM-87 MEM-90 a process is killed while its driver waits",
            killed,
        )
        .test(
            "MEM-87 MEM-90 an adapter is removed while its driver waits",
            removed,
        )
}

/// Work may take a moment there.
fn quick(name: &str) -> TestResult<(Saved, Adapter)> {
    let soft = SoftAdapter::new(name)?;
    soft.set("tdr_delay_ms", "300")?;
    let saved = Saved::on(soft, "private")?;
    let adapter = saved.soft.open()?;
    Ok((saved, adapter))
}

/// The driver has asked for memory, and has no answer.
fn asks(saved: &Saved) -> TestResult {
    eventually("a driver waits", || {
        saved
            .log
            .records(|one| one.what == CREATE || one.what == "SUBMIT")
            .is_ok_and(|found| found.len() >= 2)
    })
}

fn again() -> TestResult {
    let (saved, adapter) = quick("context-hangs")?;
    adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
    let (another, _) = saved.another()?;
    another.works()?;
    saved.gpu.works()?;
    drop((another, adapter));
    saved.remove()
}

fn reset() -> TestResult {
    let (saved, adapter) = quick("context-reset")?;
    let fails = FailResets::ENGINE.bits();
    adapter.soft_gpu_command(Command::FailResets, 0, fails)?;
    adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
    // It has no memory, or what it has is of a device that is lost.
    let another = Gpu::on(&saved.soft.device()?, 1);
    eventually("the adapter was reset", || {
        saved.gpu.device().execution_state() == Ok(ExecutionState::Reset)
    })?;
    drop(another);
    // Others find the adapter as it was.
    let next = Gpu::on(&saved.soft.device()?, 0)?;
    next.works()?;
    drop((next, adapter));
    saved.remove()
}

fn killed() -> TestResult {
    let (saved, adapter) = quick("context-killed")?;
    saved.log.control("clear")?;
    adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
    let child = Child::spawn(|| {
        drop(Gpu::on(&saved.soft.device()?, 1)?);
        Ok(())
    })?;
    asks(&saved)?;
    child.kill()?;
    let (another, _) = saved.another()?;
    another.works()?;
    drop((another, adapter));
    saved.remove()
}

fn removed() -> TestResult {
    let soft = SoftAdapter::new("context-removed")?;
    let saved = Saved::on(soft, "private")?;
    let (adapter, device) = (saved.soft.open()?, saved.soft.device()?);
    saved.log.control("clear")?;
    adapter.soft_gpu_command(Command::HangEngine, PAGING_NODE, 0)?;
    std::thread::scope(|scope| -> TestResult {
        let waits = scope.spawn(|| Gpu::on(&device, 1).map(drop));
        asks(&saved)?;
        saved.soft.disable()?;
        let outcome = waits.join().map_err(|_| "a panic")?;
        ensure!(outcome.is_err());
        Ok(())
    })?;
    drop((device, adapter));
    saved.remove()
}
