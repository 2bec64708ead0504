// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this process puts into its queues, told to whoever draws a timeline
//! (`Documentation/timeline.md`, GPU-89).
//!
//! The kernel sees nothing of the packets that a process writes to a ring. So `opendxg trace` names
//! a file of its trace in the environment, and each wait and signal is a line there. Without that
//! it is one branch.

use core::sync::atomic::{AtomicU8, Ordering};
use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{fstatfs, Mode, OFlags};
use rustix::io::Result;

use crate::handle::LocalHandle;

/// Names the file.
const VARIABLE: &str = "OPENDXG_TRACE_MARKER";

/// `TRACEFS_MAGIC`.
const TRACEFS: i64 = 0x7472_6163;

/// Nobody has looked at the environment.
const UNKNOWN: u8 = 0;
/// Nobody wants to know.
const OFF: u8 = 1;
/// Somebody wants to know.
const ON: u8 = 2;

/// The trace of this process.
pub(crate) static TRACE: Trace = Trace::new();

/// What a queue does with a fence, by its number in an entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Signal = 0,
    Wait = 1,
}

/// A local handle, and the number of its object in all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) handle: LocalHandle,
    pub(crate) object: u64,
}

/// Where a timeline is told what is queued.
pub(crate) struct Trace {
    state: AtomicU8,
    path: OnceLock<Option<PathBuf>>,
}

impl Trace {
    const fn new() -> Self {
        Self {
            state: AtomicU8::new(UNKNOWN),
            path: OnceLock::new(),
        }
    }

    /// Tells what is queued; `what` is only asked if somebody wants to know.
    #[inline]
    pub(crate) fn tell(
        &self,
        operation: Operation,
        value: u64,
        what: impl FnOnce() -> Option<(Named, Named)>,
    ) {
        // ORDERING: relaxed: the path is published by its cell.
        if self.state.load(Ordering::Relaxed) != OFF {
            self.tell_now(operation, value, what);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_now(
        &self,
        operation: Operation,
        value: u64,
        what: impl FnOnce() -> Option<(Named, Named)>,
    ) {
        let Some(path) = self.path(std::env::var_os(VARIABLE)) else {
            return;
        };
        if let Some((queue, fence)) = what() {
            let process = rustix::process::getpid().as_raw_nonzero();
            let line = format!(
                "dxg_fence_queued: queue={} fence={} value={value} operation={} process={process} \
                 queue_handle={:#x} fence_handle={:#x}\n",
                queue.object, fence.object, operation as u8, queue.handle.0, fence.handle.0,
            );
            // A trace that has ended is no matter of this process.
            let _ = write(path, &line);
        }
    }

    /// Where to write. A program that has more rights than who calls it writes nowhere.
    fn path(&self, asked: Option<OsString>) -> Option<&PathBuf> {
        let path = self.path.get_or_init(|| {
            // SAFETY: no precondition.
            let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
            let asked = asked.filter(|path| !is_secure && !path.is_empty());
            let state = if asked.is_some() { ON } else { OFF };
            self.state.store(state, Ordering::Relaxed);
            asked.map(PathBuf::from)
        });
        path.as_ref()
    }
}

/// The number of the object behind a local handle, from the fdinfo of the device, which shows the
/// first 16384 handles.
pub(crate) fn object_of(device: BorrowedFd<'_>, handle: LocalHandle) -> Option<u64> {
    let path = format!("/proc/thread-self/fdinfo/{}", device.as_raw_fd());
    find(&std::fs::read_to_string(path).ok()?, handle)
}

/// The same in the text of it: `dxg-handle: HANDLE KIND NUMBER ...`.
fn find(info: &str, handle: LocalHandle) -> Option<u64> {
    let handle = format!("{:#010x}", handle.0);
    let lines = info
        .lines()
        .filter_map(|line| line.strip_prefix("dxg-handle:"));
    let mut words = lines.map(str::split_whitespace);
    let mut words = words.find_map(|mut words| (words.next()? == handle).then_some(words))?;
    words.nth(1)?.parse().ok()
}

/// Writes a line. The file is opened each time: a number that is kept might be closed by the
/// program, and then belong to a file of its own.
fn write(path: &PathBuf, line: &str) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    // Only a trace is written to, whatever the environment says.
    if fstatfs(&file)?.f_type == TRACEFS {
        rustix::io::write(&file, line.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMED: Named = Named {
        handle: LocalHandle(0x4000_0040),
        object: 7,
    };

    #[test]
    fn gpu_89_handles_have_numbers_in_all_processes() {
        let info = "pos:\t0\ndxg-process:\t3\ndxg-handle:\t0x40000000 device 6\n\
                    dxg-handle:\t0x40000040 hw-queue 7\n\
                    dxg-handle:\t0x40000080 native-fence 8 refs=1 access=0x1 waiters=0\n";
        let object = |handle| find(info, LocalHandle(handle));
        assert_eq!(
            (object(0x4000_0040), object(0x4000_0080)),
            (Some(7), Some(8))
        );
        assert_eq!((object(0x4000_00c0), object(0x0400_0004)), (None, None));
    }

    #[test]
    fn gpu_89_nobody_is_asked_when_tracing_is_off() {
        for asked in [None, Some(OsString::new())] {
            let trace = Trace::new();
            assert_eq!(trace.path(asked), None);
            trace.tell(Operation::Wait, 5, || panic!("asked"));
        }
    }

    #[test]
    fn gpu_89_only_a_trace_is_written_to() {
        let path = std::env::temp_dir().join(format!("opendxg-queued-{}", std::process::id()));
        std::fs::write(&path, "before").unwrap();
        let trace = Trace::new();
        assert_eq!(trace.path(Some(path.clone().into())), Some(&path));
        let mut was_asked = false;
        trace.tell(Operation::Signal, 5, || {
            was_asked = true;
            Some((NAMED, NAMED))
        });
        assert!(was_asked);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        std::fs::remove_file(&path).unwrap();
        // A file that is gone is no error.
        trace.tell(Operation::Signal, 5, || Some((NAMED, NAMED)));
    }
}
