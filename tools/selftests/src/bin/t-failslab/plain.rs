// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that are an argument struct and nothing else.

use std::os::fd::{FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::Status;
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
