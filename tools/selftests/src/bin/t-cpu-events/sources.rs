// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the driver signals events for (cpu-events.md sections 4 and 8).

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::{Command, EventClass, EventRecord};
use opendxg::ExecutionState;
use selftests::gpu::{is_in, reaches, Gpu};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use super::{soft, soft_enabled, Told};

/// Where nobody maps anything.
const NOWHERE: u64 = 0x6000_0000_0000;

/// A reason for D3DKMTMarkDeviceAsError.
const REASON: u32 = opendxg::uapi::D3DKMT_DEVICE_ERROR_REASON_GENERIC;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("CPU-24 CPU-44 CPU-45 a page fault", page_fault)
        .test(
            "CPU-46 a thread that waits for a fence finds the reason",
            blocked,
        )
        .test("CPU-44 an illegal packet", illegal)
        .test("CPU-22 CPU-23 traps are counted", traps)
        .test("CPU-44 records that are lost are counted", lost)
        .test("CPU-43 nobody hears of other devices", others)
        .test("CPU-34 a device that is reset hears of it", reset)
        .test(
            "CPU-43 CPU-45 a device that its client puts in error",
            marked,
        )
        .test("CPU-34 CPU-45 an engine and a queue that hang", hang)
        .test("CPU-23 CPU-38 one last signal", last)
}

fn page_fault() -> TestResult {
    let gpu = Gpu::node(1)?;
    let any = Told::new(&gpu, EventClass::Any.usage(1))?;
    let faults = Told::new(&gpu, EventClass::PageFault.usage(2))?;
    let traps = Told::new(&gpu, EventClass::Trap.usage(3))?;
    gpu.fails(
        &Pm4::new().write(NOWHERE + 8, &[1]),
        ExecutionState::DmaPageFault,
    )?;
    ensure_eq!((any.wait()?, faults.wait()?), (1, 1));
    for (told, cookie) in [(&any, 1), (&faults, 2)] {
        let record = told.one()?;
        ensure_eq!(record.class, EventClass::PageFault as u32);
        ensure_eq!((record.node, record.number, record.cookie), (1, 1, cookie));
        ensure_eq!((record.detail, record.reason), (NOWHERE + 8, 1));
        ensure!(record.time_ns != 0 && record.queue != 0);
    }
    traps.is_silent()?;
    ensure!(traps.event.take_records(traps.name)?.0.is_empty());
    Ok(())
}

/// As a runtime would: one thread waits for work, and finds why it never came.
fn blocked() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Any.usage(0))?;
    let commands = gpu.commands(&Pm4::new().write(NOWHERE, &[1]))?;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| -> TestResult<EventRecord> {
            gpu.done().wait(1)?;
            told.one()
        });
        let gate = gpu.device().create_fence(0)?;
        gpu.context().wait(&selftests::gpu::one(&gate, 1))?;
        gpu.submit(&commands)?;
        gpu.mark()?;
        gate.signal(1)?;
        let record = waiter.join().map_err(|_| "a panic")??;
        ensure_eq!(record.detail, NOWHERE);
        Ok(())
    })?;
    told.wait()?;
    // The client goes on with a new device.
    Gpu::new()?.run(&Pm4::new().nop(0))
}

fn illegal() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::BadObject.usage(9))?;
    gpu.fails(&Pm4::new().word(0x1234_5678), ExecutionState::DmaFault)?;
    ensure_eq!(told.wait()?, 1);
    let record = told.one()?;
    ensure_eq!(record.class, EventClass::BadObject as u32);
    ensure_eq!((record.reason, record.cookie), (0x1234_5678, 9));
    Ok(())
}

fn traps() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Trap.usage(4))?;
    for round in 1..=20 {
        gpu.run(&Pm4::new().trap(5, round))?;
        ensure_eq!(told.wait()?, 1);
        let record = told.one()?;
        ensure_eq!((record.class, record.reason), (EventClass::Trap as u32, 5));
        ensure_eq!((record.detail, record.number), (round, round));
    }
    // fdinfo shows how often it was signalled.
    let shown = std::fs::read_dir("/proc/self/fdinfo")?
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .any(|text| text.contains(" signals=20 late=0 usage=0x4,0x0,0x0,0x4,0x0,0x0,0x0,0x0\n"));
    ensure!(shown, "fdinfo does not show 20 signals");
    // Many at once, for several events: as many signals for each.
    let more = [4, 5, 6].map(|cookie| Told::new(&gpu, EventClass::Trap.usage(cookie)));
    let mut packets = Pm4::new();
    for number in 0..500 {
        packets = packets.trap(6, number);
    }
    gpu.run(&packets)?;
    for told in [Ok(told)].into_iter().chain(more) {
        told?.hears_traps(499, 500)?;
    }
    gpu.works()
}

fn lost() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Any.usage(0))?;
    let mut packets = Pm4::new();
    for number in 1..=40 {
        packets = packets.trap(1, number);
    }
    gpu.run(&packets)?;
    told.wait()?;
    let (records, lost) = told.event.take_records(told.name)?;
    ensure_eq!((records.len(), lost), (16, 24));
    let numbers: Vec<_> = records.iter().map(|record| record.number).collect();
    ensure_eq!(numbers, (25..=40).collect::<Vec<_>>());
    ensure!(records.iter().all(|record| record.number == record.detail));
    ensure_eq!(told.event.take_records(told.name)?, (vec![], 0));
    Ok(())
}

fn others() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let told = Told::new(&other, EventClass::Any.usage(0))?;
    let own = Told::new(&gpu, EventClass::Any.usage(0))?;
    gpu.fails(
        &Pm4::new().write(NOWHERE, &[1]),
        ExecutionState::DmaPageFault,
    )?;
    own.wait()?;
    told.is_silent()?;
    ensure!(told.event.take_records(told.name)?.0.is_empty());
    other.run(&Pm4::new().trap(1, 1))?;
    ensure_eq!(told.wait()?, 1);
    Ok(())
}

fn reset() -> TestResult {
    let soft = soft_enabled("cpu-events-reset")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&adapter.create_device()?, 0)?;
    let told = Told::new(&gpu, EventClass::Reset.usage(0))?;
    gpu.run(&Pm4::new().nop(0))?;
    adapter.reset(None)?;
    reaches(gpu.done(), u64::MAX)?;
    is_in(gpu.device(), ExecutionState::Reset)?;
    ensure!(told.wait()? >= 1);
    let (records, _) = told.event.take_records(told.name)?;
    ensure!(records
        .iter()
        .all(|record| record.class == EventClass::Reset as u32));
    ensure!(!records.is_empty());
    // A reset does not end it.
    told.event.set_usage(EventClass::Any.usage(0))?;
    Ok(())
}

/// Once, whatever nodes an event is for, and before a thread goes on that waits for work.
fn marked() -> TestResult {
    let (gpu, other) = (Gpu::new()?, Gpu::new()?);
    let mut node = EventClass::Reset.usage(1);
    node[1] = 2;
    let events = [EventClass::Any.usage(1), EventClass::Reset.usage(1), node];
    let events = events.map(|usage| Told::new(&gpu, usage));
    let events = events.into_iter().collect::<TestResult<Vec<_>>>()?;
    let faults = Told::new(&gpu, EventClass::PageFault.usage(1))?;
    let not_told = Told::new(&other, EventClass::Any.usage(1))?;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| -> TestResult {
            gpu.done().wait(1)?;
            for told in &events {
                let record = told.one()?;
                ensure_eq!((record.class, record.node), (EventClass::Reset as u32, !0));
                ensure_eq!((record.reason, record.cookie, record.queue), (1, 1, 0));
            }
            Ok(())
        });
        // Two times: only the first one changes anything.
        gpu.device().mark_as_error(REASON)?;
        gpu.device().mark_as_error(REASON)?;
        waiter.join().map_err(|_| "a panic")?
    })?;
    for told in &events {
        ensure_eq!(told.wait()?, 1);
    }
    faults.is_silent()?;
    not_told.is_silent()?;
    is_in(gpu.device(), ExecutionState::Hung)?;
    other.run(&Pm4::new().nop(0))
}

/// The reason of a hang is there when the thread that waits for its work goes on.
fn hang() -> TestResult {
    let soft = soft("cpu-events-hang")?;
    soft.set("tdr_delay_ms", "300")?;
    soft.set("enabled", "1")?;
    let adapter = soft.open()?;
    let other = Gpu::on(&adapter.create_device()?, 1)?;
    let not_told = Told::new(&other, EventClass::Any.usage(0))?;
    for command in [Command::HangEngine, Command::HangQueue] {
        let gpu = Gpu::on(&adapter.create_device()?, 2)?;
        let told = Told::new(&gpu, EventClass::Reset.usage(5))?;
        adapter.soft_gpu_command(command, 2, 0)?;
        let commands = gpu.commands(&Pm4::new().nop(0))?;
        gpu.submit(&commands)?;
        gpu.mark()?;
        reaches(gpu.done(), u64::MAX)?;
        let record = told.one()?;
        ensure_eq!((record.class, record.node), (EventClass::Reset as u32, 2));
        is_in(gpu.device(), ExecutionState::Hung)?;
        ensure_eq!(told.wait()?, 1);
    }
    not_told.is_silent()?;
    other.run(&Pm4::new().nop(0))
}

/// Each round ends with a signal and silence.
fn last() -> TestResult {
    let gpu = Gpu::new()?;
    let told = Told::new(&gpu, EventClass::Trap.usage(0))?;
    for round in 1..=selftests::rounds::rounds(500) {
        let trap = gpu.commands(&Pm4::new().trap(1, u64::from(round)))?;
        gpu.submit(&trap)?;
        told.wait()?;
        let (records, _) = told.event.take_records(told.name)?;
        ensure_eq!(
            records.last().map(|record| record.detail),
            Some(round.into())
        );
    }
    gpu.finish()
}
