// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues that do not yield, and changes of the whole adapter (cpu-events.md section 8, classes 3,
//! 6 and 7).

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::{Change, Command, EventClass, ResetReason};
use opendxg::{ExecutionState, Placement, Resident, ResidentFlags, Status};
use selftests::child::{Child, Gate};
use selftests::gpu::{is_in, reaches, Gpu};
use selftests::user::become_user;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use super::{soft, soft_enabled, Told};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("CPU-42 CPU-43 a queue that does not yield", preemption)
        .test("CPU-42 CPU-43 changes of the adapter are for all", changes)
        .test("CPU-42 changes are made by who controls the machine", users)
        .test("CPU-43 the power of the adapter", power)
        .test("CPU-43 CPU-45 memory that is full", memory)
}

/// Its work goes on for longer than it may, until the engine is reset.
fn preemption() -> TestResult {
    let soft = soft("cpu-events-preemption")?;
    soft.set("tdr_delay_ms", "300")?;
    soft.set("enabled", "1")?;
    let adapter = soft.open()?;
    let other = Gpu::on(&adapter.create_device()?, 1)?;
    let not_told = Told::new(&other, EventClass::Any.usage(0))?;
    for (threshold, is_told) in [(5, true), (0, false)] {
        let gpu = Gpu::on(&adapter.create_device()?, 2)?;
        let told = Told::new(&gpu, EventClass::Preemption.usage(6))?;
        adapter.soft_gpu_command(Command::PreemptionThreshold, 2, threshold)?;
        adapter.soft_gpu_command(Command::RefusePreemption, 2, 1)?;
        adapter.soft_gpu_command(Command::HangQueue, 2, 0)?;
        let commands = gpu.commands(&Pm4::new().nop(0))?;
        gpu.submit(&commands)?;
        gpu.mark()?;
        reaches(gpu.done(), u64::MAX)?;
        is_in(gpu.device(), ExecutionState::Hung)?;
        if is_told {
            ensure_eq!(told.wait()?, 1);
            let record = told.one()?;
            ensure_eq!(record.class, EventClass::Preemption as u32);
            ensure_eq!((record.node, record.detail), (2, threshold + 1));
            ensure!(record.queue != 0);
        } else {
            told.is_silent()?;
        }
    }
    not_told.is_silent()?;
    // An engine that obeys.
    let gpu = Gpu::on(&adapter.create_device()?, 2)?;
    gpu.run(&Pm4::new().nop(0))
}

/// On every device of the adapter, and nowhere else.
fn changes() -> TestResult {
    let soft = soft_enabled("cpu-events-changes")?;
    let adapter = soft.open()?;
    let gpus = [adapter.create_device()?, adapter.create_device()?];
    let gpus = [Gpu::on(&gpus[0], 0)?, Gpu::on(&gpus[1], 0)?];
    let events = [
        Told::new(&gpus[0], EventClass::Internal.usage(1))?,
        Told::new(&gpus[1], EventClass::Any.usage(2))?,
    ];
    let not_told = [
        Told::new(&gpus[0], EventClass::Reset.usage(0))?,
        Told::new(&gpus[1], [0; 8])?,
        Told::new(&Gpu::new()?, EventClass::Internal.usage(0))?,
    ];
    for (change, value) in [(Change::Temperature, 71_500), (Change::Clock, 2 << 30)] {
        adapter.make_change(change, value)?;
        for (told, cookie) in events.iter().zip(1..) {
            ensure_eq!(told.wait()?, 1);
            let record = told.one()?;
            ensure_eq!(record.class, EventClass::Internal as u32);
            ensure_eq!((record.reason, record.detail), (change as u32, value));
            ensure_eq!((record.node, record.queue), (!0, 0));
            ensure_eq!(record.cookie, cookie);
        }
    }
    for told in &not_told {
        told.is_silent()?;
    }
    // These come by themselves only.
    for change in [Change::Power, Change::Memory] {
        fails_with(adapter.make_change(change, 0), Status::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn users() -> TestResult {
    Child::spawn(|| {
        become_user(1000)?;
        let gpu = Gpu::on(&fixture::device()?, 0)?;
        let told = Told::new(&gpu, EventClass::Internal.usage(0))?;
        let refused = gpu.device().adapter().make_change(Change::Clock, 1);
        fails_with(refused, Status::ACCESS_DENIED)?;
        told.is_silent()
    })?
    .join()
}

/// The event hears of D3 although nothing wakes the adapter up for it.
fn power() -> TestResult {
    let soft = soft_enabled("cpu-events-power")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&adapter.create_device()?, 0)?;
    let told = Told::new(&gpu, EventClass::Internal.usage(0))?;
    for (state, value) in [("D3", 3), ("D0", 0)] {
        soft.set("power_state", state)?;
        ensure_eq!(told.wait()?, 1);
        let record = told.one()?;
        ensure_eq!(
            (record.reason, record.detail),
            (Change::Power as u32, value)
        );
        ensure_eq!(soft.get("power_state")?, state);
    }
    Ok(())
}

/// Who wants more than there is hears of it, and so does everybody else on the adapter. A device
/// that was promised the memory is in error.
fn memory() -> TestResult {
    const BYTES: u64 = 6 << 20;
    let soft = soft("cpu-events-memory")?;
    soft.set("local_memory", &(8 << 20).to_string())?;
    soft.set("enabled", "1")?;
    let (taken, done) = (Gate::new()?, Gate::new()?);
    // Another process has most of it, does not leave, and hears of it.
    let child = Child::spawn(|| {
        let gpu = Gpu::on(&soft.device()?, 0)?;
        let pressed = Told::new(&gpu, EventClass::Internal.usage(0))?;
        let healthy = Told::new(&gpu, EventClass::Reset.usage(0))?;
        let piece = gpu.allocate_local(BYTES)?;
        let resident = gpu
            .paging()
            .make_resident(&[&piece], ResidentFlags::empty())?;
        reaches(gpu.paging().fence(), resident.value()?)?;
        let stays = Placement::new().unmoveable(true);
        gpu.paging().update_placement(&piece, &stays)?;
        taken.open()?;
        done.wait()?;
        is_pressed(&pressed)?;
        healthy.is_silent()?;
        gpu.run(&Pm4::new().nop(0))
    })?;
    taken.wait_for_child(&child)?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let pressed = Told::new(&gpu, EventClass::Internal.usage(0))?;
    let error = Told::new(&gpu, EventClass::Reset.usage(3))?;
    let piece = gpu.allocate_local(BYTES)?;
    let flags = ResidentFlags::CANT_TRIM_FURTHER | ResidentFlags::MUST_SUCCEED;
    let answer = gpu.paging().make_resident(&[&piece], flags)?;
    ensure!(matches!(answer, Resident::TooMuch { .. }), "{answer:?}");
    is_pressed(&pressed)?;
    is_in(gpu.device(), ExecutionState::OutOfMemory)?;
    ensure_eq!(error.wait()?, 1);
    let record = error.one()?;
    ensure_eq!(record.class, EventClass::Reset as u32);
    ensure_eq!(record.reason, ResetReason::OutOfMemory as u32);
    done.open()?;
    child.join()
}

fn is_pressed(told: &Told) -> TestResult {
    ensure_eq!(told.wait()?, 1);
    let record = told.one()?;
    ensure_eq!((record.reason, record.detail), (Change::Memory as u32, 0));
    Ok(())
}
