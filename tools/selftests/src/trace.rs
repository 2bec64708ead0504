// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the driver's tracepoints record.

use std::collections::BTreeMap;
use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::path::{Path, PathBuf};

use crate::{ensure, skip, TestResult};

/// Where the kernel has its tracing files.
pub const ROOT: &str = "/sys/kernel/tracing";

/// One line of the trace.
#[derive(Debug)]
pub struct Event {
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
        ensure!(!head.is_empty());
        let fields = fields.split_whitespace().map(|field| {
            let (key, value) = field.split_once('=')?;
            let value = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => value.parse(),
            };
            Some((key.into(), value.ok()?))
        });
        Ok(Self {
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

/// Everything that `work` causes, but for the calls of a KMD.
pub fn traced(work: impl FnOnce() -> TestResult) -> TestResult<Vec<Event>> {
    let trace = Trace::new()?;
    trace.set(EVENTS, true)?;
    trace.set(KMD, false)?;
    work()?;
    trace.stop()
}

/// Everything that `work` causes, with the calls of KMDs where there is a verifier.
pub fn traced_all(work: impl FnOnce() -> TestResult) -> TestResult<Vec<Event>> {
    let trace = Trace::new()?;
    trace.set(EVENTS, true)?;
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
