// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that run side by side in one machine, each on an adapter of its own.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt::Display;
use std::fs;
use std::io::{stdout, Error, Result, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use opendxg::Counters;
use selftests::fixture::ADAPTER_VARIABLE;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::Failure;

use super::seconds;

/// There can be 16 adapters: this leaves some for the module's parameter, and for those that
/// programs make.
pub(super) const MOST: usize = 8;

/// Programs that use only the adapter that they are told. The others look at the module as a
/// whole, its adapters, its parameters or the quotas of users, exhaust what all programs share, or
/// count what is of no adapter.
const ABLE: [&str; 14] = [
    "t-create",
    "t-destroy",
    "t-dmabuf",
    "t-fences",
    "t-harness",
    "t-keyed-mutex",
    "t-kinds",
    "t-lifetime",
    "t-lock",
    "t-mmap",
    "t-names",
    "t-nt-handle",
    "t-races",
    "t-store",
];

/// Whether a program can run beside others.
pub(super) fn is_able(program: &Path) -> bool {
    ABLE.iter()
        .any(|able| program.file_name().is_some_and(|name| name == *able))
}

/// Runs these programs, up to `jobs` at a time. Prints the output of each as a whole when it has
/// ended, and at last whether the module is as it was before. True if anything failed.
pub(super) fn run(mut programs: Vec<PathBuf>, jobs: usize) -> Result<bool> {
    let before = fs::read_to_string(Counters::TOTALS)?;
    // The longest first, so that none of them is left at the end.
    programs.sort_by_key(|program| Reverse(seconds(program)));
    let queue = Mutex::new(VecDeque::from(programs));
    let failed = AtomicBool::new(false);
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    };
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(program) = next() {
                    let mut text = Vec::new();
                    let bad = on_own_adapter(&program, &mut text).unwrap_or_else(|error| {
                        bail_out(&mut text, &error);
                        true
                    });
                    failed.fetch_or(bad, Relaxed);
                    // One write under one lock, so that nothing comes between.
                    let _ = stdout().lock().write_all(&text);
                }
            });
        }
    });
    Ok(failed.into_inner() | !is_as(&before)?)
}

fn bail_out(out: &mut Vec<u8>, why: &impl Display) {
    let _ = writeln!(out, "Bail out! {why}");
}

/// Runs a program on a new adapter. Nothing may be on it afterwards; then its counters go with it.
fn on_own_adapter(program: &Path, out: &mut Vec<u8>) -> Result<bool> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let adapter = SoftAdapter::enabled(&name).map_err(reason)?;
    let luid = adapter.get("luid")?;
    let counters = Path::new(Counters::ADAPTERS).join(&luid);
    let mut command = Command::new(program);
    command.env(ADAPTER_VARIABLE, &luid);
    let bad = super::run(program, command, None, out)?;
    adapter.remove().map_err(reason)?;
    if let Err(error) = eventually("adapter", || !counters.exists()) {
        let left = fs::read_to_string(&counters).unwrap_or_default();
        let left = left.replace('\n', " ");
        bail_out(out, &format!("{} of {name} is kept: {left}", reason(error)));
        return Ok(true);
    }
    Ok(bad)
}

fn reason(failure: Failure) -> Error {
    Error::other(match failure {
        Failure::Failed(text) | Failure::Skipped(text) => text,
    })
}

/// Prints as a test whether the totals are what they were: they also count what is of no adapter.
fn is_as(before: &str) -> Result<bool> {
    let mut now = String::new();
    let same = eventually("the totals", || {
        now = fs::read_to_string(Counters::TOTALS).unwrap_or_default();
        now == before
    })
    .is_ok();
    let (not, name) = (if same { "" } else { "not " }, "programs side by side");
    println!("TAP version 13\n1..1\n{not}ok 1 - {name}: the driver is as it was at the start");
    for (before, now) in before.lines().zip(now.lines()) {
        if before != now {
            println!("# {before} -> {now}");
        }
    }
    Ok(same)
}
