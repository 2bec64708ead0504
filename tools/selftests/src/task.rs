// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks of the kernel: where one is, and what is below a forked process.

use std::fs::read_to_string;

use rustix::process::Pid;
use rustix::thread::{sched_setaffinity, CpuSet};

use crate::time::eventually;
use crate::TestResult;

/// The id of the calling thread.
pub fn me() -> i32 {
    // SAFETY: plain system call.
    unsafe { libc::gettid() }
}

/// How often a thread of this process has gone to sleep.
pub fn sleeps(thread: i32) -> TestResult<u64> {
    let text = read_to_string(format!("/proc/self/task/{thread}/status"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| "no count of context switches".into())
}

/// Whether a thread of any process is asleep inside an ioctl. This is what the kernel says, not a
/// guess from the time that has passed.
pub fn is_blocked(thread: i32) -> bool {
    is_in(thread, libc::SYS_ioctl)
}

/// The same inside the system call with this number.
pub fn is_in(thread: i32, call: i64) -> bool {
    let text = read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    let number = text.split(' ').next();
    number.and_then(|number| number.parse().ok()) == Some(call)
}

/// Waits until a thread is asleep inside an ioctl.
#[track_caller]
pub fn until_blocked(thread: i32) -> TestResult {
    eventually("the thread sleeps in the call", || is_blocked(thread))
}

/// Keeps a thread on one processor, the calling one without a number. What it starts from now on
/// stays there, too. False if there is no such thread or processor.
pub fn stay_on(thread: Option<Pid>, processor: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(thread, &set).is_ok()
}

/// The processes whose names begin so. Threads of the kernel are processes here.
pub fn named(start: &str) -> TestResult<Vec<Pid>> {
    let has_name = |pid: &Pid| {
        let name = read_to_string(format!("/proc/{}/comm", pid.as_raw_pid()));
        name.is_ok_and(|name| name.starts_with(start))
    };
    let pid = |entry: std::io::Result<std::fs::DirEntry>| {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(number)
    };
    Ok(std::fs::read_dir("/proc")?
        .filter_map(pid)
        .filter(has_name)
        .collect())
}

/// Waits for the end of a process that was handed to us because its parent died.
pub fn reap(pid: i32) -> TestResult {
    let mut status = 0;
    // SAFETY: `status` is a live int.
    if unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(())
}

/// From now on this process inherits the children of its dying children.
pub fn adopt_orphans() -> TestResult {
    // SAFETY: plain system call.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(())
}

/// Makes a child that outlives this process: it runs `body` and ends. Returns its process id.
pub fn fork_survivor(body: impl FnOnce() -> TestResult) -> TestResult<i32> {
    // SAFETY: as in `Child::spawn`.
    match unsafe { libc::fork() } {
        0 => {
            let status = i32::from(body().is_err());
            // SAFETY: ends this process without running anything of the parent's.
            unsafe { libc::_exit(status) }
        }
        pid if pid > 0 => Ok(pid),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}
