// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the driver's tracepoints record.

use std::collections::BTreeMap;
use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::path::{Path, PathBuf};

use crate::{skip, TestResult};

/// Where the kernel has its tracing files.
pub const ROOT: &str = "/sys/kernel/tracing";

/// One line of the trace.
#[derive(Debug)]
pub struct Event {
    /// Number of the thread that did it.
    pub thread: i32,
    /// The tracepoint, without its prefix.
    pub name: String,
    /// Its fields.
    pub fields: BTreeMap<String, u64>,
}

impl Event {
    /// A line of the trace.
    pub fn parse(line: &str) -> TestResult<Self> {
        let (head, tail) = line
            .split_once(": dxg_")
            .ok_or(format!("not ours: {line}"))?;
        let (name, fields) = tail.split_once(": ").ok_or(format!("no fields: {line}"))?;
        // Name and number of the thread, then the processor in brackets.
        let thread = head
            .split_once(" [")
            .and_then(|(thread, _)| thread.trim_end().rsplit_once('-')?.1.parse().ok())
            .ok_or(format!("no thread: {line}"))?;
        let fields = fields.split_whitespace().map(|field| {
            let (key, value) = field.split_once('=')?;
            let value = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => value.parse(),
            };
            Some((key.into(), value.ok()?))
        });
        Ok(Self {
            thread,
            name: name.into(),
            fields: fields
                .collect::<Option<_>>()
                .ok_or(format!("not numbers: {line}"))?,
        })
    }

    /// A field; `u64::MAX` if there is none.
    pub fn get(&self, field: &str) -> u64 {
        self.fields.get(field).copied().unwrap_or(u64::MAX)
    }

    /// Name and fields in short.
    pub fn is(&self, name: &str, fields: &[(&str, u64)]) -> bool {
        self.name == name
            && self.fields.len() == fields.len()
            && fields.iter().all(|(key, value)| self.get(key) == *value)
    }
}

/// A trace buffer of its own, removed when dropped.
struct Trace(PathBuf);

/// What the driver tells.
const EVENTS: &str = "events/dxg/enable";
/// Every entry of a KMD, which a verifier tells besides.
const KMD: &str = "events/dxg/dxg_kmd/enable";
/// What the memory manager does.
pub const MEMORY: [&str; 14] = [
    "dxg_make_resident",
    "dxg_evict",
    "dxg_page_op_build",
    "dxg_page_op_submit",
    "dxg_page_op_done",
    "dxg_pt_update",
    "dxg_tlb_flush",
    "dxg_move",
    "dxg_offer",
    "dxg_reclaim",
    "dxg_discard",
    "dxg_budget_change",
    "dxg_trim",
    "dxg_page_fault",
];

impl Trace {
    fn new() -> TestResult<Self> {
        if !Path::new(ROOT).join("events/dxg").is_dir() {
            skip!("no tracepoints at {ROOT}");
        }
        let trace = Self(Path::new(ROOT).join(format!("instances/dxg-{}", std::process::id())));
        create_dir(&trace.0)?;
        write(trace.0.join("buffer_size_kb"), "1024")?;
        Ok(trace)
    }

    /// Turns events on or off.
    fn set(&self, events: &str, on: bool) -> TestResult {
        Ok(write(self.0.join(events), if on { "1" } else { "0" })?)
    }

    /// Turns the events of the memory manager on or off.
    fn set_memory(&self, on: bool) -> TestResult {
        let file = |name| format!("events/dxg/{name}/enable");
        MEMORY.iter().try_for_each(|name| self.set(&file(name), on))
    }

    /// What was recorded.
    fn stop(self) -> TestResult<Vec<Event>> {
        self.set(EVENTS, false)?;
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

/// Everything that `work` causes, but for the calls of a KMD and what becomes of memory.
pub fn traced(work: impl FnOnce() -> TestResult) -> TestResult<Vec<Event>> {
    let trace = Trace::new()?;
    trace.set(EVENTS, true)?;
    trace.set(KMD, false)?;
    trace.set_memory(false)?;
    work()?;
    trace.stop()
}

/// Everything that `work` causes but for what becomes of memory, with the calls of KMDs where there
/// is a verifier.
pub fn traced_all(work: impl FnOnce() -> TestResult) -> TestResult<Vec<Event>> {
    let trace = Trace::new()?;
    trace.set(EVENTS, true)?;
    trace.set_memory(false)?;
    work()?;
    trace.stop()
}

/// The calls of a KMD that `work` causes, where there is a verifier.
pub fn traced_kmd(work: impl FnOnce() -> TestResult) -> TestResult<Vec<Event>> {
    let trace = Trace::new()?;
    trace.set(KMD, true)?;
    work()?;
    trace.stop()
}

/// What becomes of memory by `work`.
pub fn traced_memory(work: impl FnOnce() -> TestResult) -> TestResult<Vec<Event>> {
    let trace = Trace::new()?;
    trace.set_memory(true)?;
    work()?;
    trace.stop()
}
