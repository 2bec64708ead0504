// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fdinfo tells in the keys of DRM drivers: who the client is, how long engines have worked
//! for it, how much of its memory is resident.

use std::fs::{self, File};
use std::os::fd::AsFd;

use opendxg::pm4::Pm4;
use opendxg::FdInfo;
use selftests::gpu::{Gpu, PAGE};
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-3 fdinfo has the keys of DRM drivers", keys)
        .test("GPU-3 time of engines stays when queues end", times)
        .test("MEM-106 fdinfo tells resident memory by region", memory)
}

/// The engines of an adapter, as their keys name them.
const ENGINES: [&str; 4] = ["3d", "compute", "copy", "paging"];

/// A new descriptor of this process, which shows what the process has.
fn node() -> TestResult<FdInfo> {
    let node = File::open("/dev/dxg")?;
    Ok(FdInfo::read(node.as_fd())?)
}

/// A key that is there once, as a number and its unit.
fn number(info: &FdInfo, key: &str, unit: &str) -> TestResult<u64> {
    let value = info.get(key).ok_or_else(|| format!("no {key}"))?;
    let number = match unit {
        "" => Some(value),
        _ => value
            .strip_suffix(unit)
            .and_then(|value| value.strip_suffix(' ')),
    };
    let number = number.and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("{key}: {value:?}").into())
}

/// How long an engine has worked for this process.
fn time(engine: &str) -> TestResult<u64> {
    number(&node()?, &format!("drm-engine-{engine}"), "ns")
}

fn keys() -> TestResult {
    let before = node()?;
    ensure_eq!(before.get("drm-driver"), Some("opendxg"));
    let client = number(&before, "drm-client-id", "")?;
    ensure_eq!(before.get("dxg-process"), Some(client.to_string().as_str()));

    let gpu = Gpu::new()?;
    let with = node()?;
    ensure_eq!(number(&with, "drm-client-id", "")?, client);
    for engine in ENGINES {
        number(&with, &format!("drm-engine-{engine}"), "ns")?;
        // One adapter has one of each.
        ensure_eq!(with.get(&format!("drm-engine-capacity-{engine}")), None);
    }
    gpu.finish()
}

fn times() -> TestResult {
    // A process may have met this engine before.
    drop(Gpu::node(2)?);
    let (copy, idle) = (time("copy")?, time("compute")?);
    let gpu = Gpu::node(2)?;
    for _ in 0..5 {
        gpu.run(&Pm4::new().delay(1000))?;
    }
    // What the only queue has run, and nothing else.
    eventually("the time of the queue is that of the engine", || {
        let (queue, time) = (queue_time(), time("copy"));
        matches!((queue, time), (Ok(queue), Ok(time)) if queue > 0 && time == copy + queue)
    })?;
    ensure_eq!(time("compute")?, idle);
    let busy = time("copy")?;
    gpu.finish()?;
    drop(gpu);
    // The queue, its device and the process on the adapter are gone.
    let after = time("copy")?;
    ensure!(after >= busy, "{busy} to {after}");
    let gpu = Gpu::node(2)?;
    gpu.run(&Pm4::new().delay(1000))?;
    eventually("time goes on", || time("copy").is_ok_and(|now| now > after))?;
    gpu.finish()
}

/// The time of the one queue that this process has, as debugfs tells.
fn queue_time() -> TestResult<u64> {
    let pid = format!(" pid={} ", std::process::id());
    let mut sum = None;
    for adapter in fs::read_dir("/sys/kernel/debug/opendxg/queues")? {
        let text = fs::read_to_string(adapter?.path())?;
        for line in text.lines().filter(|line| line.contains(&pid)) {
            let words = line
                .split(' ')
                .find_map(|word| word.strip_prefix("busy_ns="));
            let ns: u64 = words.and_then(|ns| ns.parse().ok()).ok_or("no busy_ns")?;
            ensure_eq!(sum.replace(ns), None);
        }
    }
    sum.ok_or_else(|| "no queue".into())
}

fn memory() -> TestResult {
    const SIZE: u64 = 64 * PAGE;
    let none = node()?;
    for region in ["local", "system"] {
        // Nothing is known, and no zero says so.
        ensure_eq!(none.get(&format!("drm-resident-{region}")), None);
    }
    let gpu = Gpu::new()?;
    let (local, system) = resident()?;
    let buffer = gpu.local_buffer(SIZE)?;
    ensure_eq!(resident()?, (local + SIZE / 1024, system));
    let other = gpu.buffer(SIZE)?;
    ensure_eq!(resident()?, (local + SIZE / 1024, system + SIZE / 1024));
    drop((buffer, other));
    eventually("what is destroyed is not resident", || {
        resident().is_ok_and(|now| now == (local, system))
    })?;
    gpu.finish()
}

/// KiB that are resident in local memory and in that of the system.
fn resident() -> TestResult<(u64, u64)> {
    let info = node()?;
    Ok((
        number(&info, "drm-resident-local", "KiB")?,
        number(&info, "drm-resident-system", "KiB")?,
    ))
}
