// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything freezes, as before the machine sleeps, and goes on afterwards.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{GpuProtection, GpuReserve, GpuUpdate, Reservation, Status};
use selftests::blocked::Blocked;
use selftests::freezer::{freeze, needs_freezer};
use selftests::gpu::{Gpu, BLOCK, NODES, PAGE};
use selftests::hog::{Busy, Hog};
use selftests::rounds::rounds;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fixture, Suite, TestResult};

/// A test may take what the kernel tries for, and more.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .slow(
            "GPU-114 engines freeze with the processes, whatever they do, and go on",
            LIMIT,
            engines,
        )
        .slow(
            "GPU-114 calls that wait let the machine freeze",
            LIMIT,
            calls,
        )
}

/// In the flags of a task: it does not freeze. The kernel's first thread has it.
const NO_FREEZE: u64 = 0x8000;

/// The flags of a task.
fn flags(process: &Path) -> Option<u64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // Behind the name, which is in parentheses, they are the seventh.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(6)?.parse().ok()
}

/// Demands that the threads of the software GPU freeze, in a kernel that does so: it waits for all
/// that do, and says so if one does not come.
fn all_freeze() -> TestResult {
    let first = flags(Path::new("/proc/2"));
    ensure!(
        first.is_some_and(|flags| flags & NO_FREEZE != 0),
        "flags of the first thread: {first:x?}"
    );
    let mut threads = 0;
    for process in fs::read_dir("/proc")?.flatten() {
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        if !name.starts_with("opendxg/") {
            continue;
        }
        // It may be gone, with its adapter.
        if let Some(flags) = flags(&process.path()) {
            ensure_eq!(flags & NO_FREEZE, 0, "{}", name.trim());
            threads += 1;
        }
    }
    ensure!(threads > NODES.len(), "{threads} threads");
    Ok(())
}

/// Whether it does something all the time that shows.
fn counts(hog: Hog) -> bool {
    matches!(hog, Hog::Loop | Hog::Copies | Hog::Interrupts | Hog::Ring)
}

fn engines() -> TestResult {
    needs_freezer()?;
    let mut all: Vec<(Hog, Busy, Gpu)> = Vec::new();
    for (hog, node) in Hog::ALL.into_iter().zip(NODES.into_iter().cycle()) {
        let gpu = Gpu::node(node)?;
        let busy = hog.begin(&gpu)?;
        if hog.runs() {
            busy.runs()?;
        }
        all.push((hog, busy, gpu));
    }
    let fence = Arc::new(all[0].2.device().create_fence(0)?);
    let sleeper = {
        let fence = fence.clone();
        Blocked::new(move || fence.wait(1))?
    };
    for _ in 0..rounds(2) {
        freeze(1)?;
        all_freeze()?;
        // Nothing was lost, and nothing has ended.
        for (hog, busy, gpu) in &all {
            let turns = busy.turns();
            if counts(*hog) {
                eventually("it goes on", || busy.turns() > turns)?;
            }
            gpu.works()?;
        }
        for node in NODES {
            Gpu::node(node)?.run(&Pm4::new().nop(0))?;
        }
        sleeper.stays()?;
    }
    fence.signal(1)?;
    sleeper.join()??;
    Ok(())
}

/// The update with which there are too many, which waits until there is room.
fn one_too_many(
    gpu: &Gpu,
    base: u64,
    fence: u32,
) -> TestResult<Blocked<rustix::io::Result<Status>>> {
    let raw = fixture::raw()?;
    let (device, context) = (gpu.device().handle().0, gpu.context().handle().0);
    Blocked::new(move || {
        let mut arg = D3DKMT_UPDATEGPUVIRTUALADDRESS::zeroed();
        (arg.hDevice, arg.hContext, arg.hFenceObject) = (device, context, fence);
        // SAFETY: a struct of integers.
        let mut operation: D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION =
            unsafe { core::mem::zeroed() };
        operation.OperationType = D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP;
        operation.__bindgen_anon_1.Unmap.BaseAddress = base;
        operation.__bindgen_anon_1.Unmap.SizeInBytes = PAGE;
        operation.__bindgen_anon_1.Unmap.Protection = GpuProtection::ZERO.bits();
        arg.NumOperations = 1;
        arg.Operations = (&raw const operation) as u64;
        arg.FenceValue = 138;
        raw.exec(&mut arg)
    })
}

fn calls() -> TestResult {
    needs_freezer()?;
    let gpu = Gpu::new()?;
    let reserve = GpuReserve {
        size: BLOCK,
        kind: Reservation::Zero,
        ..GpuReserve::default()
    };
    let base = gpu.paging().reserve(&reserve)?.address;
    let fence = Arc::new(gpu.device().create_fence(0)?);
    let unmap = GpuUpdate::Unmap {
        address: base,
        size: PAGE,
        protection: GpuProtection::ZERO,
    };
    for value in 0..128 {
        gpu.context()
            .update_gpu_ranges(&[unmap], &fence, 10 + value)?;
    }
    let update = one_too_many(&gpu, base, fence.handle().0)?;
    let wait = {
        let fence = fence.clone();
        Blocked::new(move || fence.wait(139))?
    };
    freeze(1)?;
    update.stays()?;
    wait.stays()?;
    fence.signal(10)?;
    ensure_eq!(update.join()?, Ok(Status::SUCCESS));
    wait.join()??;
    Ok(())
}
