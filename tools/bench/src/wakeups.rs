// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is woken while something runs, from the scheduler's tracepoint.

use std::collections::BTreeMap;
use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::io::Result;
use std::path::{Path, PathBuf};

/// Where the kernel has its tracing files.
const ROOT: &str = "/sys/kernel/tracing";
/// The tracepoint: somebody wakes a task.
const EVENT: &str = "events/sched/sched_waking/enable";

/// How often tasks were woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeUps {
    /// Tasks of processes, this one among them.
    pub processes: u64,
    /// Threads of the software GPU.
    pub engines: u64,
    /// Workers of the kernel: those of the module, and whoever else has work.
    pub workers: u64,
}

/// A trace buffer of its own, removed when dropped.
struct Trace(PathBuf);

impl Trace {
    fn start() -> Result<Self> {
        let name = format!("instances/bench-{}", std::process::id());
        let trace = Self(Path::new(ROOT).join(name));
        create_dir(&trace.0)?;
        write(trace.0.join("buffer_size_kb"), "4096")?;
        write(trace.0.join(EVENT), "1")?;
        Ok(trace)
    }

    fn stop(self) -> Result<String> {
        write(self.0.join(EVENT), "0")?;
        read_to_string(self.0.join("trace"))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = remove_dir(&self.0);
    }
}

/// Who is woken while `work` runs, in the whole machine.
///
/// # Errors
///
/// There is no such tracepoint, or this user may not use it.
pub fn during(work: impl FnOnce()) -> Result<WakeUps> {
    let trace = Trace::start()?;
    work();
    let recorded = trace.stop()?;
    let mut all = WakeUps::default();
    for ((pid, command), times) in count(&recorded) {
        match command {
            engine if engine.starts_with("opendxg/") => all.engines += times,
            worker if worker.starts_with("kworker/") => all.workers += times,
            _ if is_kernel(pid) => {}
            _ => all.processes += times,
        }
    }
    Ok(all)
}

/// How often each task was woken, by its number and name.
fn count(trace: &str) -> BTreeMap<(u32, &str), u64> {
    let mut woken = BTreeMap::new();
    let lines = trace.lines().filter_map(|line| {
        let (_, fields) = line.split_once(": sched_waking: comm=")?;
        // A name may hold anything, this text too: what counts is the last one.
        let (command, rest) = fields.rsplit_once(" pid=")?;
        let pid = rest.split_whitespace().next()?.parse().ok()?;
        Some((pid, command))
    });
    for task in lines {
        *woken.entry(task).or_default() += 1;
    }
    woken
}

/// Whether a task is one of the kernel. What has ended meanwhile is taken for one of a process.
fn is_kernel(pid: u32) -> bool {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line == "Kthread:\t1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_told_apart() {
        let trace = "# tracer: nop\n#\n\
            bench-130 [000] d..2. 12.5: sched_waking: comm=opendxg/0:3d pid=91 prio=120 target_cpu=000\n\
            opendxg/0:3d-91 [001] d..2. 12.6: sched_waking: comm=kworker/u8:1 pid=12 prio=120 target_cpu=001\n\
            opendxg/0:3d-91 [001] d..2. 12.6: sched_waking: comm=opendxg/0:3d pid=91 prio=120 target_cpu=001\n\
            x-1 [001] d..2. 12.6: sched_waking: comm=a pid=7 b pid=8 prio=120 target_cpu=001\n\
            x-1 [001] d..2. 12.7: sched_switch: prev_comm=a prev_pid=7\n";
        let expected = [
            ((8, "a pid=7 b"), 1),
            ((12, "kworker/u8:1"), 1),
            ((91, "opendxg/0:3d"), 2),
        ];
        assert_eq!(count(trace), expected.into());
    }

    #[test]
    fn this_process_is_not_the_kernel() {
        assert!(!is_kernel(std::process::id()));
    }
}
