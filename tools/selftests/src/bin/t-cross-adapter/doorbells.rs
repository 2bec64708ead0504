// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters whose engines ring the native fences of each other (FEN-159).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use opendxg::pm4::Pm4;
use opendxg::{Access, EventFd, SyncFlags};
use selftests::gpu::Gpu;
use selftests::rounds::rounds;
use selftests::time::{a_while, eventually, soon};
use selftests::trace::traced_kmd;
use selftests::{ensure, ensure_eq, module, skip, Suite, TestResult};

use super::scene::{adapter, open, with_doorbells, By, Side, CROSS};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("FEN-159 a pipeline of two GPUs without the CPU", pipeline)
        .test("FEN-159 a pipeline of three GPUs", three)
        .test("FEN-159 FEN-158 a GPU without doorbells is told", mixed)
        .test("FEN-159 FEN-67 a CPU that waits is interrupted for", waiter)
        .test(
            "FEN-159 FEN-137 MonitoredValue follows who is there",
            follows,
        )
        .test("FEN-159 FEN-138 what the CPU signals is told", by_cpu)
        .test("FEN-159 FEN-122 doorbells go before fences do", ends)
        .test("FEN-159 opened while signals run", opened)
        .test("FEN-159 removed while signals run", removed)
        .test("FEN-159 FEN-75 a CMP with copies", || {
            waited_for_by_both(&[("monitored_values", "shadow")])
        })
        .test(
            "FEN-159 FEN-119 a CMP that sees fences in its own process",
            || waited_for_by_both(&[("map_to_gpu_system_process", "1")]),
        )
        .test("FEN-159 FEN-75 FEN-119 a CMP with copies of these", || {
            waited_for_by_both(&[
                ("monitored_values", "shadow"),
                ("map_to_gpu_system_process", "1"),
            ])
        })
}

/// The value of MonitoredValue while nobody waits.
const NOBODY: u64 = u64::MAX;

fn first(name: &str) -> TestResult<Side> {
    Side::made_on(with_doorbells(name)?, true, CROSS)
}

fn another(side: &Side, name: &str) -> TestResult<Side> {
    side.opened_on(with_doorbells(name)?, true)
}

/// What the OS part hears of signals on these adapters, by work.
fn heard(sides: &[&Side], work: impl FnOnce() -> TestResult) -> TestResult<Vec<[u64; 2]>> {
    let counts = || -> Vec<[u64; 2]> {
        let of = |side: &&Side| ["interrupts", "propagations"].map(|name| side.count(name));
        sides.iter().map(of).collect()
    };
    let before = counts();
    work()?;
    // What was raised is counted at once, and told soon.
    a_while();
    let after = counts().into_iter().zip(before);
    Ok(after
        .map(|(after, before)| [after[0] - before[0], after[1] - before[1]])
        .collect())
}

/// Each of these in turn takes a fence from the one before and hands it on, so many times.
fn relay(sides: &[&Side], laps: u64) -> TestResult {
    let count = sides.len() as u64;
    let start = sides[0].fence().value();
    let mut kept = Vec::new();
    for (number, side) in (1..).zip(sides) {
        let at = side.fence().gpu_address();
        let commands = (0..laps).fold(Pm4::new(), |all, lap| {
            let value = start + lap * count + number;
            all.wait_native(at, value - 1).signal_native(at, value)
        });
        kept.push(side.gpu.commands(&commands)?);
    }
    // The last one first, so that all but the first wait.
    for (side, commands) in sides.iter().zip(&kept).rev() {
        side.gpu.submit(commands)?;
    }
    for side in sides {
        side.gpu.finish()?;
    }
    ensure_eq!(sides[0].fence().value(), start + laps * count);
    Ok(())
}

fn pipeline() -> TestResult {
    let x = first("x")?;
    let y = another(&x, "y")?;
    let laps = u64::from(rounds(500));
    ensure_eq!(
        heard(&[&x, &y], || relay(&[&x, &y], laps))?,
        [[0, 0], [0, 0]]
    );
    ensure_eq!([x.monitored_value()?, y.monitored_value()?], [NOBODY; 2]);
    Ok(())
}

fn three() -> TestResult {
    let x = first("x")?;
    let (y, z) = (another(&x, "y")?, another(&x, "z")?);
    let laps = u64::from(rounds(200));
    let all = [&z, &x, &y];
    ensure_eq!(heard(&all, || relay(&all, laps))?, [[0, 0]; 3]);
    Ok(())
}

/// Two ring each other, and one has to be told.
fn mixed() -> TestResult {
    let x = first("x")?;
    let y = another(&x, "y")?;
    let z = x.opened_on(adapter("z", true)?, true)?;
    let sides = [&x, &y, &z];
    ensure_eq!(x.monitored_value()?, 0);
    let wait = z.wait(By::Packet, 1)?;
    // One that was rung is not told.
    let counts = heard(&sides, || {
        x.signal(By::Packet, 1)?;
        z.ends(&wait)
    })?;
    ensure_eq!(counts, [[1, 0], [0, 0], [0, 1]]);
    let waits = [x.wait(By::Packet, 2)?, y.wait(By::Packet, 2)?];
    let counts = heard(&sides, || {
        z.signal(By::Packet, 2)?;
        x.ends(&waits[0])?;
        y.ends(&waits[1])
    })?;
    ensure_eq!(counts, [[0, 1], [0, 1], [1, 0]]);
    relay(&sides, u64::from(rounds(50)))
}

/// One interrupt for a CPU that waits, and none for all that is signalled besides.
fn waiter() -> TestResult {
    let x = first("x")?;
    let y = another(&x, "y")?;
    let sides = [&x, &y];
    let laps = u64::from(rounds(100));
    // The last value of the laps, which the second one signals.
    let event = EventFd::new()?;
    y.fence().wait_async(2 * laps, &event)?;
    ensure_eq!(
        [x.monitored_value()?, y.monitored_value()?],
        [2 * laps - 1; 2]
    );
    let counts = heard(&sides, || {
        relay(&sides, laps)?;
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
        Ok(())
    })?;
    ensure_eq!(counts, [[0, 0], [1, 0]]);
    ensure_eq!([x.monitored_value()?, y.monitored_value()?], [NOBODY; 2]);
    ensure_eq!(sides.map(|side| side.count("spurious")), [0; 2]);
    // One that is given up leaves nothing.
    let stream = x.fence().stream(2 * laps)?;
    ensure_eq!(stream.wait(Some(Duration::ZERO))?, None);
    ensure_eq!(y.monitored_value()?, 0);
    drop(stream);
    ensure_eq!([x.monitored_value()?, y.monitored_value()?], [NOBODY; 2]);
    Ok(())
}

fn follows() -> TestResult {
    let x = first("x")?;
    let y = another(&x, "y")?;
    let values = || -> TestResult<[u64; 2]> { Ok([x.monitored_value()?, y.monitored_value()?]) };
    ensure_eq!(values()?, [NOBODY; 2]);
    let event = EventFd::new()?;
    x.fence().wait_async(42, &event)?;
    ensure_eq!(values()?, [41; 2]);
    // As a native fence without a doorbell, and as a monitored one.
    for is_native in [true, false] {
        let z = x.opened_on(adapter("z", is_native)?, is_native)?;
        ensure_eq!(values()?, [0; 2]);
        drop(z);
        ensure_eq!(values()?, [41; 2]);
    }
    y.signal(By::Packet, 42)?;
    ensure_eq!(event.wait(Some(soon()))?, Some(1));
    ensure_eq!(values()?, [NOBODY; 2]);
    Ok(())
}

fn by_cpu() -> TestResult {
    let x = first("x")?;
    let y = another(&x, "y")?;
    for (value, by) in [(1, By::Cpu), (2, By::Queue)] {
        let waits = [x.wait(By::Packet, value)?, y.wait(By::Packet, value)?];
        let counts = heard(&[&x, &y], || {
            // The context of the GPU waits itself.
            match by {
                By::Cpu => x.fence().signal(value)?,
                _ => {
                    let other = Gpu::on(x.gpu.device(), 1)?;
                    other
                        .context()
                        .signal(&selftests::gpu::one(x.fence(), value))?;
                    other.finish()?;
                }
            }
            x.ends(&waits[0])?;
            y.ends(&waits[1])
        })?;
        ensure_eq!(counts, [[0, 0], [0, 1]]);
    }
    Ok(())
}

// Numbers of `rust/ddi/verifier/entry.rs`.
const CREATE: u64 = 59;
const DESTROY: u64 = 62;
const CONNECT: u64 = 71;
const DISCONNECT: u64 = 72;

/// What happens of these kinds.
fn calls(work: impl FnOnce() -> TestResult) -> TestResult<Vec<u64>> {
    let log = traced_kmd(work)?;
    Ok(log
        .iter()
        .map(|event| event.get("kind"))
        .filter(|kind| [CREATE, DESTROY, CONNECT, DISCONNECT].contains(kind))
        .collect())
}

fn ends() -> TestResult {
    if module::parameter("verify_kmd")? != "Y" {
        skip!("the module is loaded without a verifier");
    }
    let x = first("x")?;
    let handle = x.fence().share(Access::ALL)?;
    let soft = with_doorbells("y")?;
    let device = soft.device()?;
    let mut there = None;
    let seen = calls(|| {
        there = Some(open(&device, &handle, true)?);
        Ok(())
    })?;
    ensure_eq!(seen, [CREATE, CONNECT, CONNECT]);
    // Another opening is none of theirs.
    let seen = calls(|| {
        drop(open(&device, &handle, true)?);
        Ok(())
    })?;
    ensure!(seen.is_empty(), "{seen:?}");
    drop(handle);
    let seen = calls(|| {
        there = None;
        Ok(())
    })?;
    ensure_eq!(seen, [DISCONNECT, DISCONNECT, DESTROY]);
    ensure_eq!(x.monitored_value()?, NOBODY);
    // Where it is not open nobody is rung.
    x.signal(By::Packet, 1)?;
    // An adapter that goes is rung no more before it is stopped; the fence goes with its handle.
    let there = open(&device, &x.fence().share(Access::ALL)?, true)?;
    let seen = calls(|| soft.disable())?;
    ensure_eq!(seen, [DISCONNECT]);
    let seen = calls(|| {
        drop(there);
        Ok(())
    })?;
    ensure_eq!(seen, [DISCONNECT, DESTROY]);
    Ok(())
}

/// A device of another adapter opens a fence, and waits for the last of many signals.
fn opened() -> TestResult {
    const MANY: u64 = 100;

    let x = first("x")?;
    let handle = x.fence().share(Access::ALL)?;
    let soft = with_doorbells("y")?;
    let gpu = Gpu::on(&soft.device()?, 0)?;
    let at = x.fence().gpu_address();
    for round in 0..u64::from(rounds(30)) {
        let base = round * MANY;
        let signals = (1..=MANY).fold(Pm4::new(), |all, number| {
            all.signal_native(at, base + number)
        });
        let commands = x.gpu.commands(&signals)?;
        x.gpu.submit(&commands)?;
        let there = open(gpu.device(), &handle, true)?;
        gpu.run(&Pm4::new().wait_native(there.fence().gpu_address(), base + MANY))?;
        x.gpu.finish()?;
    }
    Ok(())
}

/// An adapter goes while another one rings it; a third one waits for the last signal.
fn removed() -> TestResult {
    let flags = CROSS | SyncFlags::NO_SIGNAL_MAX_VALUE_ON_TDR;
    let x = Side::made_on(with_doorbells("x")?, true, flags)?;
    let z = another(&x, "z")?;
    for _ in 0..rounds(10) {
        let y = another(&x, "y")?;
        let pending = y.wait(By::Packet, u64::MAX)?;
        let stop = AtomicBool::new(false);
        let before = x.fence().value();
        let last = thread::scope(|scope| -> TestResult<u64> {
            let signals = scope.spawn(|| {
                let mut value = before;
                while !stop.load(Ordering::Relaxed) {
                    value += 1;
                    if x.signal(By::Packet, value).is_err() {
                        return 0;
                    }
                }
                value
            });
            eventually("signals", || x.fence().value() > before)?;
            y.soft().disable()?;
            stop.store(true, Ordering::Relaxed);
            Ok(signals.join().unwrap_or(0))
        })?;
        ensure!(last != 0, "a signal failed");
        drop((pending, y));
        // The others go on without it, and without the OS part.
        let wait = z.wait(By::Packet, last + 1)?;
        let counts = heard(&[&x, &z], || {
            x.signal(By::Packet, last + 1)?;
            z.ends(&wait)
        })?;
        ensure_eq!(counts, [[0, 0]; 2]);
    }
    Ok(())
}

/// A CPU and the engine of another adapter wait for an adapter that is made so.
fn waited_for_by_both(attributes: &[(&str, &str)]) -> TestResult {
    let soft = selftests::soft_adapter::SoftAdapter::new("x")?;
    soft.set("fence_doorbells", "1")?;
    for (name, value) in attributes {
        soft.set(name, value)?;
    }
    soft.set("enabled", "1")?;
    let x = Side::made_on(soft, true, CROSS)?;
    let y = another(&x, "y")?;
    for value in 1..=u64::from(rounds(50)) {
        let event = EventFd::new()?;
        y.fence().wait_async(value, &event)?;
        let wait = y.wait(By::Packet, value)?;
        let counts = heard(&[&x, &y], || {
            x.signal(By::Packet, value)?;
            y.ends(&wait)?;
            ensure_eq!(event.wait(Some(soon()))?, Some(1));
            Ok(())
        })?;
        ensure_eq!(counts, [[1, 0], [0, 0]]);
    }
    Ok(())
}
