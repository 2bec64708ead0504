// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a run that has only so much time.

use std::process::Child;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{kill_process_group, Pid, Signal};
use selftests::soft_adapter::ROOT;

/// Removes the adapters that a killed program has left: as long as there are any the module cannot
/// be unloaded, which ends each run.
pub(super) fn remove_adapters() -> std::io::Result<()> {
    for adapter in std::fs::read_dir(ROOT)? {
        std::fs::remove_dir(adapter?.path())?;
    }
    Ok(())
}

/// When a run ends, and how much longer than expected its programs take on this machine.
pub(super) struct Deadline {
    end: Instant,
    expected: Duration,
    taken: Duration,
}

impl Deadline {
    /// A run that ends then.
    pub(super) fn new(end: Instant) -> Self {
        Self {
            end,
            expected: Duration::ZERO,
            taken: Duration::ZERO,
        }
    }

    /// A program of which this was expected has taken that.
    pub(super) fn learn(&mut self, expected: Duration, taken: Duration) {
        self.expected += expected;
        self.taken += taken;
    }

    /// Whether a program has time to end of which this is expected: as many times longer as the
    /// programs before it.
    pub(super) fn is_far(&self, expected: Duration) -> bool {
        let slowness = if self.expected.is_zero() {
            1.0
        } else {
            self.taken.as_secs_f64() / self.expected.as_secs_f64()
        };
        Instant::now() + expected.mul_f64(slowness) < self.end
    }
}

/// Kills a program and its children at the deadline, unless the program has ended.
pub(super) struct Killer {
    ended: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Killer {
    /// Of a child that is the first of its process group.
    pub(super) fn new(child: &Child, deadline: &Deadline) -> Self {
        let group = Pid::from_child(child);
        let left = deadline.end.saturating_duration_since(Instant::now());
        let (ended, end) = channel();
        let thread = std::thread::spawn(move || {
            let is_late = end.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
            is_late && kill_process_group(group, Signal::KILL).is_ok()
        });
        Self { ended, thread }
    }

    /// The program has ended. True if it was killed.
    pub(super) fn has_killed(self) -> bool {
        let _ = self.ended.send(());
        self.thread.join().unwrap_or(false)
    }
}
