// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events whose driver is across the border of a virtual machine (cpu-events.md section 9), by a
//! loop-back in the kernel. `t-cpu-border` runs the other tests of this program over it, too.

use std::path::PathBuf;

use opendxg::pm4::Pm4;
use opendxg::soft_gpu::{Change, EventClass};
use opendxg::{Adapter, Status};
use selftests::gpu::Gpu;
use selftests::soft_adapter::SoftAdapter;
use selftests::user::needs_root;
use selftests::{ensure, ensure_eq, fails_with, fixture, Suite, TestResult};

use super::{is_local, Told};

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("CPU-49 CPU-55 requests and signals cross it", crosses)
        .test(
            "CPU-23 CPU-50 signals are merged, and the last one is heard",
            merged,
        )
        .test(
            "CPU-52 a function has its limit, and others have theirs",
            limit,
        )
        .test(
            "CPU-19 CPU-54 a secure guest sends what every driver knows",
            secure,
        )
        .test("CPU-51 CPU-55 what this run has crossed", crossed)
}

/// An adapter with such events.
fn far(name: &str, path: &str) -> TestResult<SoftAdapter> {
    let soft = SoftAdapter::new(name)?;
    soft.set("cpu_events", path)?;
    soft.set("enabled", "1")?;
    Ok(soft)
}

/// What debugfs shows of the border of an adapter: interrupts of the guest, and signals that were
/// for no event.
fn counts(adapter: &Adapter) -> TestResult<Option<(u64, u64)>> {
    needs_root()?;
    let directory = PathBuf::from("/sys/kernel/debug/opendxg/cpu-events");
    let file = directory.join(adapter.luid().to_string());
    ensure!(directory.exists(), "debugfs has no {directory:?}");
    if !file.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(file)?;
    let number = |name: &str| -> TestResult<u64> {
        let begin = format!("{name}:\t");
        let line = text.lines().find_map(|line| line.strip_prefix(&begin));
        Ok(line
            .ok_or("no such count")?
            .parse()
            .map_err(|_| "no number")?)
    };
    Ok(Some((number("interrupts")?, number("dropped")?)))
}

fn crosses() -> TestResult {
    let soft = far("cpu-border", "border")?;
    let adapter = soft.open()?;
    ensure_eq!(counts(&adapter)?, Some((0, 0)));
    let gpu = Gpu::on(&adapter.create_device()?, 0)?;
    // A queue of the process, by its handle.
    let mut usage = EventClass::Trap.usage(7);
    usage[2] = gpu.context().handle().0;
    let told = Told::new(&gpu, usage)?;
    for round in 1..=10 {
        gpu.run(&Pm4::new().trap(1, round))?;
        ensure_eq!(told.wait()?, 1);
        let record = told.one()?;
        ensure_eq!((record.detail, record.cookie), (round, 7));
        ensure_eq!(counts(&adapter)?, Some((round, 0)));
    }
    // Nobody interrupts a guest for what nobody waits for.
    told.event.destroy()?;
    gpu.run(&Pm4::new().trap(1, 1))?;
    ensure_eq!(counts(&adapter)?, Some((10, 0)));
    drop((gpu, adapter));
    soft.remove()
}

/// More signals than the ring of the mailbox has room for.
fn merged() -> TestResult {
    const EVENTS: u64 = 100;
    const TRAPS: u64 = 200;
    let soft = far("cpu-border-merged", "border")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&adapter.create_device()?, 0)?;
    let events: TestResult<Vec<_>> = (0..EVENTS)
        .map(|_| Told::new(&gpu, EventClass::Any.usage(0)))
        .collect();
    let silent = Told::new(&gpu, EventClass::PageFault.usage(0))?;
    let trap = (1..=TRAPS).fold(Pm4::new(), |packets, number| packets.trap(1, number));
    gpu.run(&trap)?;
    for told in events? {
        told.hears_merged(TRAPS, TRAPS)?;
        told.event.destroy()?;
    }
    silent.is_silent()?;
    let (interrupts, dropped) = counts(&adapter)?.ok_or("no border")?;
    ensure!((1..=EVENTS * TRAPS).contains(&interrupts));
    ensure_eq!(dropped, 0);
    Ok(())
}

fn limit() -> TestResult {
    const OF_DEVICE: usize = 1024;
    const OF_FUNCTION: usize = 4096;
    let softs = [
        far("cpu-border-limit", "border")?,
        far("cpu-border-limit-2", "border")?,
    ];
    let adapters = [softs[0].open()?, softs[1].open()?];
    let fd = opendxg::EventFd::new()?;
    let mut all = Vec::new();
    for _ in 0..OF_FUNCTION / OF_DEVICE {
        let device = adapters[0].create_device()?;
        for _ in 0..OF_DEVICE {
            all.push(device.create_cpu_event(&fd)?);
        }
    }
    let device = adapters[0].create_device()?;
    fails_with(device.create_cpu_event(&fd), Status::NO_MEMORY)?;
    let other = adapters[1].create_device()?;
    other.create_cpu_event(&fd)?.destroy()?;
    fixture::device()?.create_cpu_event(&fd)?.destroy()?;
    all.swap_remove(OF_FUNCTION / 2).destroy()?;
    all.push(device.create_cpu_event(&fd)?);
    fails_with(device.create_cpu_event(&fd), Status::NO_MEMORY)
}

/// Nothing that was not known when the guest was made secure.
fn secure() -> TestResult {
    let soft = far("cpu-border-secure", "secure")?;
    let adapter = soft.open()?;
    let gpu = Gpu::on(&adapter.create_device()?, 0)?;
    let told = Told::new(&gpu, EventClass::Trap.usage(3))?;
    let denied = Status::ACCESS_DENIED;
    gpu.run(&Pm4::new().trap(1, 1))?;
    ensure_eq!(told.wait()?, 1);
    fails_with(told.event.take_records(told.name), denied)?;
    fails_with(adapter.make_change(Change::Clock, 1), denied)?;
    fails_with(gpu.device().private_escape(&mut [0; 8]), denied)?;
    told.event.set_usage(EventClass::Any.usage(4))?;
    gpu.run(&Pm4::new().trap(1, 2))?;
    ensure_eq!(told.wait()?, 1);
    Ok(())
}

/// No signal was for an event that was gone, whatever the other tests have done.
fn crossed() -> TestResult {
    let counts = counts(&fixture::adapter()?)?;
    match is_local() {
        true => ensure_eq!(counts, None),
        false => {
            let (interrupts, dropped) = counts.ok_or("no border")?;
            ensure!(interrupts > 0);
            ensure_eq!(dropped, 0);
        }
    }
    Ok(())
}
