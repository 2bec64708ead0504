// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything freezes, as before the machine sleeps, and goes on afterwards.

use std::fs;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{GpuProtection, GpuReserve, GpuUpdate, Reservation, Status};
use selftests::blocked::Blocked;
use selftests::freezer::freeze;
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

/// Nanoseconds that the threads of the software GPU have run until now.
fn engine_time() -> TestResult<u64> {
    let mut time = 0;
    for process in fs::read_dir("/proc")?.flatten() {
        let read = |file| fs::read_to_string(process.path().join(file)).unwrap_or_default();
        if read("comm").starts_with("opendxg/") {
            let ran = read("schedstat");
            let ran = ran.split_whitespace().next().and_then(|ns| ns.parse().ok());
            time += ran.unwrap_or(0);
        }
    }
    ensure!(time > 0, "no engine has run");
    Ok(time)
}

/// Whether it does something all the time that shows.
fn counts(hog: Hog) -> bool {
    matches!(hog, Hog::Loop | Hog::Copies | Hog::Interrupts)
}

fn engines() -> TestResult {
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
    let processors = available_parallelism()?.get();
    for _ in 0..rounds(2) {
        const SECONDS: u64 = 2;
        let before = engine_time()?;
        let took = freeze(SECONDS)?;
        let ran = Duration::from_nanos(engine_time()? - before);
        // With one processor the kernel, which waits busily, has it.
        let awake = took.saturating_sub(Duration::from_secs(SECONDS));
        let most = awake * processors as u32 + Duration::from_secs(SECONDS) / 4;
        ensure!(
            ran < most || processors == 1,
            "engines ran for {ran:?} of {took:?}, which froze for {SECONDS} s"
        );
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
