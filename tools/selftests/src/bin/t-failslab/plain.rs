// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that are an argument struct and nothing else.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::opendxg_signal_on_event;
use opendxg::{Counters, EventFd, FenceStream, MonitoredFence, Status};
use rustix::io::{preadv2, Errno, ReadWriteFlags};
use selftests::leak::Watch;
use selftests::time::eventually;
use selftests::{fixture, TestResult};

use crate::t_failslab::Call;

/// What raises the number of the step that fails, as long as one does.
pub(crate) type Sweep<'a> = &'a mut dyn FnMut(&mut dyn Call) -> TestResult;

/// Makes a call and gives it to the sweep.
pub(crate) type Maker = fn(Sweep<'_>) -> TestResult;

/// What a success is undone with.
type Undo<T> = Box<dyn Fn(&Raw, &T) -> TestResult>;

/// A call with an argument struct, filled in anew each time.
pub(crate) struct Plain<T> {
    raw: Raw,
    fresh: T,
    arg: T,
    undo: Undo<T>,
    handles: u32,
}

impl<T: Argument + Copy> Plain<T> {
    pub(crate) fn new(
        fresh: T,
        handles: u32,
        undo: impl Fn(&Raw, &T) -> TestResult + 'static,
    ) -> TestResult<Self> {
        let undo = Box::new(undo);
        let raw = fixture::raw()?;
        let arg = fresh;
        Ok(Self {
            raw,
            fresh,
            arg,
            undo,
            handles,
        })
    }
}

impl<T: Argument + Copy> Call for Plain<T> {
    fn run(&mut self) -> rustix::io::Result<Status> {
        self.arg = self.fresh;
        self.raw.exec(&mut self.arg)
    }

    fn undo(&mut self) -> TestResult {
        (self.undo)(&self.raw, &self.arg)
    }

    fn handles(&self) -> u32 {
        self.handles
    }
}

/// A read from a fence stream. One that fails has not taken the value.
pub(crate) struct Reading {
    fence: MonitoredFence,
    stream: FenceStream,
}

impl Reading {
    pub(crate) fn sweep(sweep: Sweep<'_>) -> TestResult {
        let fence = fixture::device()?.create_fence(1)?;
        let stream = fence.stream(0)?;
        sweep(&mut Self { fence, stream })
    }
}

impl Call for Reading {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let mut bytes = [0; 8];
        let mut memory = [IoSliceMut::new(&mut bytes)];
        match preadv2(&self.stream, &mut memory, u64::MAX, ReadWriteFlags::NOWAIT) {
            Ok(8) => Ok(Status::SUCCESS),
            Ok(_) => Err(Errno::IO),
            Err(Errno::NOMEM) => Ok(Status::NO_MEMORY),
            Err(errno) => Err(errno),
        }
    }

    fn undo(&mut self) -> TestResult {
        Ok(self.fence.signal(self.fence.value() + 1)?)
    }
}

/// A signal of a fence by an event, which has come or will come.
pub(crate) struct OnEvent {
    raw: Raw,
    fence: MonitoredFence,
    event: EventFd,
    is_signalled: bool,
    /// From before anything waited for the event.
    watch: Watch,
}

impl OnEvent {
    pub(crate) fn sweep(sweep: Sweep<'_>, is_signalled: bool) -> TestResult {
        let fence = fixture::device()?.create_fence(0)?;
        let event = EventFd::new()?;
        if is_signalled {
            event.signal()?;
        }
        sweep(&mut Self {
            raw: fixture::raw()?,
            fence,
            event,
            is_signalled,
            watch: Watch::start()?,
        })
    }

    /// Whether nothing waits for the event any more.
    fn is_over(&self) -> bool {
        let (start, now) = (self.watch.at_start(), self.watch.now());
        now.is_ok_and(|now| {
            let notices = |counters: &Counters| counters.other_totals.get("notices").copied();
            now.process_waiters == start.process_waiters && notices(&now) == notices(&start)
        })
    }
}

impl Call for OnEvent {
    fn run(&mut self) -> rustix::io::Result<Status> {
        let mut arg = opendxg_signal_on_event::zeroed();
        arg.sync_object = self.fence.handle().0;
        arg.value = self.fence.value() + 1;
        arg.event = self.event.as_raw_fd() as u64;
        self.raw.exec(&mut arg)
    }

    fn undo(&mut self) -> TestResult {
        let next = match self.is_signalled {
            // It was signalled in the call, and not by one that failed.
            true => return Ok(()),
            false => self.fence.value() + 1,
        };
        self.event.signal()?;
        eventually("the event signals the fence", || self.fence.value() == next)?;
        // What waited for the event goes a moment later.
        eventually("the wait ends", || self.is_over())?;
        self.event.take()?;
        Ok(())
    }
}

/// Undoes nothing.
pub(crate) fn keep<T>(_: &Raw, _: &T) -> TestResult {
    Ok(())
}

/// Closes a descriptor that a call returned.
pub(crate) fn close(fd: u64) -> TestResult {
    let fd = i32::try_from(fd).map_err(|_| "not a descriptor")?;
    // SAFETY: made by the call for us.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}
