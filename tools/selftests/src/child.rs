// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other processes: forked children that run a part of a test and report how it went.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::panic::{catch_unwind, AssertUnwindSafe};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::time::{eventually, soon};
use crate::{fds, Failure, TestResult};

/// A forked child. Killed and reaped when dropped.
pub struct Child {
    pid: i32,
    report: OwnedFd,
    reaped: bool,
}

/// Exit status of a child that was asked to report and did.
const REPORTED: i32 = 0;

impl Child {
    /// Runs `body` in a forked child. What it returns arrives at [`Child::join`]. The child dies
    /// with its parent.
    pub fn spawn(body: impl FnOnce() -> TestResult) -> TestResult<Self> {
        let (report, mut output) = {
            let (reader, writer) = fds::pipe()?;
            (reader, std::fs::File::from(writer))
        };
        let parent = std::process::id();
        // SAFETY: the child runs `body` on the only thread it has and then `_exit`s. The C library
        // keeps its allocator usable in it; other locks of this process are not held by threads
        // that use what the tests use.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        if pid > 0 {
            drop(output);
            let reaped = false;
            return Ok(Self {
                pid,
                report,
                reaped,
            });
        }
        // SAFETY: plain system call.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if std::os::unix::process::parent_id() == parent {
            let outcome = catch_unwind(AssertUnwindSafe(body))
                .unwrap_or_else(|_| Err("panic in a child process".into()));
            let text = match outcome {
                Ok(()) => String::new(),
                Err(Failure::Skipped(reason)) => format!("S{reason}"),
                Err(Failure::Failed(text)) => format!("F{text}"),
            };
            let _ = output.write_all(text.as_bytes());
        }
        // SAFETY: ends this process without running anything of the parent's.
        unsafe { libc::_exit(REPORTED) }
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) -> TestResult {
        // SAFETY: our own child, not reaped yet.
        if unsafe { libc::kill(self.pid, signal) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(())
    }

    /// Waits until the child has reported or died, without reaping it. Fails if that does not come
    /// soon.
    #[track_caller]
    pub fn ends_soon(&self) -> TestResult {
        let stat = format!("/proc/{}/stat", self.pid);
        eventually("the child ends", || {
            // The state follows the name, which may hold anything.
            let text = std::fs::read_to_string(&stat).unwrap_or_default();
            let state = text
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.chars().next());
            matches!(state, Some('Z' | 'X'))
        })
    }

    /// Waits for the end of the child and returns what its body returned.
    pub fn join(mut self) -> TestResult {
        let mut text = String::new();
        std::fs::File::from(self.report.try_clone()?).read_to_string(&mut text)?;
        let status = self.reap()?;
        if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != REPORTED {
            return Err(format!("child process ended with wait status {status:#x}").into());
        }
        match text.split_at_checked(1) {
            None => Ok(()),
            Some(("S", reason)) => Err(Failure::Skipped(reason.into())),
            Some((_, text)) => Err(Failure::Failed(format!("in a child process: {text}"))),
        }
    }

    /// Kills the child and waits for its end.
    pub fn kill(mut self) -> TestResult {
        self.signal(libc::SIGKILL)?;
        let status = self.reap()?;
        if !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != libc::SIGKILL {
            return Err(format!("killed child ended with wait status {status:#x}").into());
        }
        Ok(())
    }

    /// Waits for the end of the child, which has to come by this signal.
    pub fn dies_of(mut self, signal: i32) -> TestResult {
        let status = self.reap()?;
        if !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != signal {
            return Err(format!("wait status {status:#x}, not signal {signal}").into());
        }
        Ok(())
    }

    fn reap(&mut self) -> TestResult<i32> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is a live int.
            match unsafe { libc::waitpid(self.pid, &mut status, 0) } {
                -1 => {
                    let error = std::io::Error::last_os_error();
                    if error.kind() != std::io::ErrorKind::Interrupted {
                        return Err(error.into());
                    }
                }
                _ => {
                    self.reaped = true;
                    return Ok(status);
                }
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.signal(libc::SIGKILL);
            let _ = self.reap();
        }
    }
}

/// Runs `body` in a forked child and waits for it.
pub fn in_child(body: impl FnOnce() -> TestResult) -> TestResult {
    Child::spawn(body)?.join()
}

/// A step that one process waits for and another one takes. Make it before the fork.
pub struct Gate {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> TestResult<Self> {
        let (reader, writer) = fds::pipe()?;
        Ok(Self { reader, writer })
    }

    /// Lets one waiter through.
    pub fn open(&self) -> TestResult {
        rustix::io::write(&self.writer, &[1])?;
        Ok(())
    }

    /// Waits for [`Gate::open`]. Fails if that does not come soon: then the other side has failed.
    pub fn wait(&self) -> TestResult {
        let limit = Timespec::try_from(soon()).map_err(|_| "time limit too long")?;
        self.wait_or(None, Some(&limit))
    }

    /// Waits for [`Gate::open`] by the parent, however long it has to do: a child does not outlive
    /// it.
    pub fn wait_for_parent(&self) -> TestResult {
        self.wait_or(None, None)
    }

    /// Waits for [`Gate::open`] by this child, however long it has to do. Fails if it ends instead.
    pub fn wait_for_child(&self, child: &Child) -> TestResult {
        self.wait_or(Some(&child.report), None)
    }

    fn wait_or(&self, end: Option<&OwnedFd>, limit: Option<&Timespec>) -> TestResult {
        loop {
            let gate = PollFd::new(&self.reader, PollFlags::IN);
            let mut fds = vec![gate];
            // It is closed at the end of a child, if not before.
            fds.extend(end.map(|end| PollFd::new(end, PollFlags::IN)));
            match rustix::event::poll(&mut fds, limit) {
                Ok(0) => return Err("the other process never came".into()),
                Ok(_) if fds[0].revents().is_empty() => {
                    return Err("the other process has ended before".into());
                }
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            rustix::io::read(&self.reader, &mut [0u8; 1])?;
            return Ok(());
        }
    }
}
