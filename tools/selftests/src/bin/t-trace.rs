// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracepoints: what happens to a fence or in a queue shows up in order, by numbers that say
//! nothing about the kernel.

use std::fs::{read_dir, read_to_string};
use std::path::Path;

use opendxg::pm4::Pm4;
use opendxg::{Access, Device, EventFd, ExecutionState};
use selftests::gpu::{one, Gpu};
use selftests::trace::{traced, Event, MEMORY, ROOT};
use selftests::{ensure, ensure_eq, fixture, skip, Suite, TestResult};

const EVENTS: [&str; 19] = [
    "dxg_create",
    "dxg_destroy",
    "dxg_wait",
    "dxg_signal",
    "dxg_wake",
    "dxg_queue",
    "dxg_reset",
    "dxg_run",
    "dxg_complete",
    "dxg_block",
    "dxg_unblock",
    "dxg_fault",
    "dxg_fence_queued",
    "dxg_fence_done",
    "dxg_kmd",
    "dxg_propagate",
    "dxg_native_interrupt",
    "dxg_log_entry",
    "dxg_log_lost",
];
/// What `kind` says about a monitored fence.
const MONITORED_FENCE: u64 = 5;

/// Demands that the trace is exactly this: (name, fields) in order.
fn expect(events: &[Event], expected: &[(&str, &[(&str, u64)])]) -> TestResult {
    let matches = events.len() == expected.len()
        && events
            .iter()
            .zip(expected)
            .all(|(event, (name, fields))| event.is(name, fields));
    ensure!(matches, "expected {expected:?}, got {events:?}");
    Ok(())
}

fn formats() -> TestResult {
    if !Path::new(ROOT).join("events/dxg").is_dir() {
        skip!("no tracepoints at {ROOT}");
    }
    let mut seen = Vec::new();
    for entry in read_dir(format!("{ROOT}/events/dxg"))?.flatten() {
        if entry.path().is_dir() {
            let format = read_to_string(entry.path().join("format"))?;
            for line in format.lines().filter(|line| line.contains("field:")) {
                let common = line.contains("field:unsigned") || line.contains("field:int");
                let number = line.contains("field:u64") || line.contains("field:u32");
                ensure!((common || number) && !line.contains('*'), "{line}");
            }
            ensure!(
                !format.contains("%p") && !format.contains("%llx"),
                "{format}"
            );
            seen.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    seen.sort();
    let mut expected: Vec<_> = EVENTS
        .iter()
        .chain(&MEMORY)
        .map(ToString::to_string)
        .collect();
    expected.sort();
    ensure_eq!(seen, expected);
    Ok(())
}

/// One fence from its beginning to its end.
fn life(device: &Device) -> TestResult {
    let event = EventFd::new()?;
    let events = traced(|| {
        let fence = device.create_fence(0)?;
        fence.wait_async(10, &event)?;
        fence.signal(9)?;
        fence.signal(10)?;
        Ok(fence.destroy()?)
    })?;
    let object = events.first().map_or(0, |event| event.get("object"));
    let waiter = events.get(1).map_or(0, |event| event.get("waiter"));
    ensure!(object > 0 && waiter > 0 && object < 1 << 40 && waiter < 1 << 40);
    expect(
        &events,
        &[
            ("create", &[("object", object), ("kind", MONITORED_FENCE)]),
            (
                "wait",
                &[("object", object), ("value", 10), ("waiter", waiter)],
            ),
            ("signal", &[("object", object), ("value", 9)]),
            ("signal", &[("object", object), ("value", 10)]),
            ("wake", &[("waiter", waiter), ("outcome", 1)]),
            ("destroy", &[("object", object), ("kind", MONITORED_FENCE)]),
        ],
    )
}

/// The other ways a wait ends: its owner gives up, nobody is left to signal.
fn ends(device: &Device) -> TestResult {
    let fence = device.create_fence(0)?;
    let point = fence.point(5)?;
    let event = EventFd::new()?;
    fence.wait_async(6, &event)?;
    let events = traced(|| {
        drop(point);
        Ok(fence.destroy()?)
    })?;
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    ensure_eq!(names, ["wake", "wake", "destroy"]);
    ensure_eq!((events[0].get("outcome"), events[1].get("outcome")), (3, 2));
    Ok(())
}

/// A satisfied wait queues nothing, and a refused signal stores nothing.
fn nothing_to_tell(device: &Device) -> TestResult {
    let fence = device.create_fence(5)?;
    let event = EventFd::new()?;
    let events = traced(|| {
        fence.wait(5)?;
        fence.wait_async(0, &event)?;
        selftests::fails_with(fence.signal(4), opendxg::Status::INVALID_PARAMETER)
    })?;
    expect(&events, &[])
}

/// Waiters on higher values: not one of them wakes.
fn no_spurious_wakes(device: &Device) -> TestResult {
    const WAITERS: u64 = 1000;
    let fence = device.create_shareable_fence(0)?;
    let nt = fence.share(Access::ALL)?;
    let event = EventFd::new()?;
    for value in 0..WAITERS {
        fence.wait_async(1000 + value, &event)?;
    }
    let events = traced(|| {
        for value in 1..=100 {
            fence.signal(value)?;
        }
        Ok(())
    })?;
    let wakes = |events: &[Event]| events.iter().filter(|event| event.name == "wake").count();
    ensure_eq!((events.len(), wakes(&events)), (100, 0));
    let events = traced(|| Ok(fence.signal(1000 + WAITERS / 2 - 1)?))?;
    ensure_eq!(wakes(&events), WAITERS as usize / 2);
    drop(nt);
    Ok(())
}

/// The events about queues, without those about what is queued.
fn of_queues(events: Vec<Event>) -> (Vec<Event>, usize) {
    let all = events.len();
    let kept: Vec<Event> = events
        .into_iter()
        .filter(|event| event.name != "queue")
        .collect();
    let queued = all - kept.len();
    let about = ["run", "complete", "block", "unblock", "fault"];
    let kept = kept.into_iter();
    let kept = kept.filter(|event| about.contains(&event.name.as_str()));
    (kept.collect(), queued)
}

/// Work behind a wait: it is queued, blocked, goes on, runs and ends.
fn queued_work(device: &Device) -> TestResult {
    let gpu = Gpu::on(device, 0)?;
    let fence = device.create_fence(0)?;
    let commands = gpu.commands(&Pm4::new().nop(0))?;
    let events = traced(|| {
        gpu.context().wait(&one(&fence, 5))?;
        gpu.submit(&commands)?;
        fence.signal(5)?;
        gpu.finish()
    })?;
    let object = events.iter().find(|event| event.name == "signal");
    let object = object.map_or(0, |event| event.get("object"));
    let (events, queued) = of_queues(events);
    let queue = events.first().map_or(0, |event| event.get("queue"));
    // The wait, the commands, and the signal that tells of their end.
    ensure_eq!(queued, 3);
    expect(
        &events,
        &[
            (
                "block",
                &[("queue", queue), ("object", object), ("value", 5)],
            ),
            ("unblock", &[("queue", queue)]),
            ("run", &[("queue", queue), ("number", 1)]),
            ("complete", &[("queue", queue), ("number", 1)]),
        ],
    )
}

/// Commands that are none: where the queue has stopped.
fn fault() -> TestResult {
    let gpu = Gpu::new()?;
    let events = traced(|| gpu.fails(&Pm4::new().nop(0).word(7), ExecutionState::DmaFault))?;
    let (events, _) = of_queues(events);
    let faults: Vec<_> = events
        .iter()
        .filter(|event| event.name == "fault")
        .collect();
    ensure_eq!(faults.len(), 1);
    // Behind the NOP, in a buffer that begins on a page.
    ensure_eq!(faults[0].get("packet") % 4096, 4);
    Ok(())
}

pub(crate) fn main() {
    let on_device = |test: fn(&Device) -> TestResult| move || test(&fixture::device()?);
    Suite::new("trace")
        .test(
            "FEN-174 RES-107 every event has numbers and no addresses",
            formats,
        )
        .test(
            "FEN-174 create, wait, signal, wake, destroy in this order",
            on_device(life),
        )
        .test(
            "FEN-174 FEN-28 waits that are cancelled and orphaned",
            on_device(ends),
        )
        .test(
            "FEN-30 FEN-32 satisfied waits and refused signals",
            on_device(nothing_to_tell),
        )
        .test(
            "FEN-30 a signal wakes nobody who waits for more",
            on_device(no_spurious_wakes),
        )
        .test(
            "FEN-174 GPU-9 work that is queued, blocked, runs and ends",
            on_device(queued_work),
        )
        .test("FEN-174 GPU-36 where a queue has stopped", fault)
        .run()
}
