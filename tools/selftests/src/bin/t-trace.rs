// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracepoints: what happens to a fence shows up in order, by numbers that say nothing about the kernel.

use std::collections::BTreeMap;
use std::fs::{create_dir, read_dir, read_to_string, remove_dir, write};
use std::path::{Path, PathBuf};

use opendxg::{Access, Device, EventFd};
use selftests::{ensure, ensure_eq, fixture, skip, Outcome, Suite};

const ROOT: &str = "/sys/kernel/tracing";
const EVENTS: [&str; 5] = [
    "dxg_create",
    "dxg_destroy",
    "dxg_wait",
    "dxg_signal",
    "dxg_wake",
];
/// What `kind` says about a monitored fence.
const MONITORED_FENCE: u64 = 5;

/// One line of the trace.
#[derive(Debug)]
struct Event {
    name: String,
    fields: BTreeMap<String, u64>,
}

impl Event {
    fn parse(line: &str) -> Outcome<Self> {
        let (head, tail) = line
            .split_once(": dxg_")
            .ok_or(format!("not ours: {line}"))?;
        let (name, fields) = tail.split_once(": ").ok_or(format!("no fields: {line}"))?;
        ensure!(!head.is_empty());
        let fields = fields.split_whitespace().map(|field| {
            let (key, value) = field.split_once('=')?;
            Some((key.into(), value.parse().ok()?))
        });
        Ok(Self {
            name: name.into(),
            fields: fields
                .collect::<Option<_>>()
                .ok_or(format!("not numbers: {line}"))?,
        })
    }

    fn get(&self, field: &str) -> u64 {
        self.fields.get(field).copied().unwrap_or(u64::MAX)
    }

    /// Name and fields in short.
    fn is(&self, name: &str, fields: &[(&str, u64)]) -> bool {
        self.name == name
            && self.fields.len() == fields.len()
            && fields.iter().all(|(key, value)| self.get(key) == *value)
    }
}

/// A trace buffer of its own, removed when dropped.
struct Trace(PathBuf);

impl Trace {
    fn start() -> Outcome<Self> {
        if !Path::new(ROOT).join("events/dxg").is_dir() {
            skip!("no tracepoints at {ROOT}");
        }
        let trace = Self(Path::new(ROOT).join(format!("instances/dxg-{}", std::process::id())));
        create_dir(&trace.0)?;
        write(trace.0.join("buffer_size_kb"), "1024")?;
        write(trace.0.join("events/dxg/enable"), "1")?;
        Ok(trace)
    }

    /// What was recorded.
    fn stop(self) -> Outcome<Vec<Event>> {
        write(self.0.join("events/dxg/enable"), "0")?;
        let text = read_to_string(self.0.join("trace"))?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(Event::parse).collect()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = remove_dir(&self.0);
    }
}

/// Everything that `work` causes.
fn traced(work: impl FnOnce() -> Outcome) -> Outcome<Vec<Event>> {
    let trace = Trace::start()?;
    work()?;
    trace.stop()
}

/// Demands that the trace is exactly this: (name, fields) in order.
fn expect(events: &[Event], expected: &[(&str, &[(&str, u64)])]) -> Outcome {
    let matches = events.len() == expected.len()
        && events
            .iter()
            .zip(expected)
            .all(|(event, (name, fields))| event.is(name, fields));
    ensure!(matches, "expected {expected:?}, got {events:?}");
    Ok(())
}

fn formats() -> Outcome {
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
    let mut expected = EVENTS.map(String::from);
    expected.sort();
    ensure_eq!(seen, expected);
    Ok(())
}

/// One fence from its beginning to its end.
fn life(device: &Device) -> Outcome {
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
fn ends(device: &Device) -> Outcome {
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
fn nothing_to_tell(device: &Device) -> Outcome {
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
fn no_spurious_wakes(device: &Device) -> Outcome {
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

fn main() {
    let on_device = |test: fn(&Device) -> Outcome| move || test(&fixture::device()?);
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
            "FEN-30 W7 a signal wakes nobody who waits for more",
            on_device(no_spurious_wakes),
        )
        .run()
}
