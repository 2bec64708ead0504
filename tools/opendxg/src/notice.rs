// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors that tell the process about memory.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, ReadWriteFlags};

use crate::calls;
use crate::device::Device;
use crate::error::OrOs;
use crate::event::wait_readable;
use crate::uapi::*;
use crate::{Error, Result, Status};

/// A request to give up memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrimNotice {
    /// Bytes that the process uses above its budgets, if that has changed.
    pub to_budget: Option<u64>,
    /// Memory has become short.
    pub restart: bool,
    /// Memory is short, as it was when that was told last.
    pub periodic: bool,
}

impl TrimNotice {
    fn of(record: u64) -> Self {
        let has = |flag: u32| record & u64::from(flag) != 0;
        let bytes = record & !u64::from(OPENDXG_TRIM_FLAGS);
        Self {
            to_budget: has(OPENDXG_TRIM_TO_BUDGET).then_some(bytes),
            restart: has(OPENDXG_TRIM_RESTART),
            periodic: has(OPENDXG_TRIM_PERIODIC),
        }
    }
}

/// Requests to give up memory, for an event loop: readable while there is one that was not read.
/// What was not read is replaced by what comes later.
#[derive(Debug)]
pub struct TrimNotices(OwnedFd);

/// Budgets of the process in local memory, for an event loop: readable when there is another one
/// than the last that was known.
#[derive(Debug)]
pub struct BudgetNotices(OwnedFd);

/// What the memory manager of an adapter does for this process.
#[derive(Debug)]
pub struct PagingLog(OwnedFd);

/// The next record; `None` after `timeout`. [`Status::INVALID_HANDLE`] if there never will be one.
fn next(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<Option<u64>> {
    if !wait_readable(fd, timeout)? {
        return Ok(None);
    }
    let mut bytes = [0; 8];
    // What was there may not be true any more.
    let length = rustix::io::preadv2(
        fd,
        &mut [IoSliceMut::new(&mut bytes)],
        u64::MAX,
        ReadWriteFlags::NOWAIT,
    );
    match length {
        Err(Errno::AGAIN) => Ok(None),
        length => match length.or_os()? {
            8 => Ok(Some(u64::from_ne_bytes(bytes))),
            0 => Err(Status::INVALID_HANDLE.into()),
            _ => Err(Error::Protocol("short read from a notice")),
        },
    }
}

impl TrimNotices {
    /// Waits for the next request; `None` after `timeout`. [`Status::INVALID_HANDLE`] when the
    /// process has no device on the adapter any more.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<TrimNotice>> {
        Ok(next(self.as_fd(), timeout)?.map(TrimNotice::of))
    }
}

impl BudgetNotices {
    /// Waits for another budget; otherwise as [`TrimNotices::wait`].
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<u64>> {
        next(self.as_fd(), timeout)
    }
}

impl AsFd for TrimNotices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for BudgetNotices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PagingLog {
    /// What it has done since the last call: lines of the operation log, each with its newline.
    /// A line `log lost=N` stands for N records that were not read in time.
    pub fn read(&self) -> Result<String> {
        let mut text = Vec::new();
        // More than a line has.
        let mut lines = [0; 16384];
        loop {
            match rustix::io::read(&self.0, &mut lines).or_os()? {
                0 => break,
                length => text.extend_from_slice(&lines[..length]),
            }
        }
        String::from_utf8(text).map_err(|_| Error::Protocol("an operation log that is no text"))
    }
}

impl AsFd for PagingLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Device {
    /// Tells this process on the adapter of the device when memory should be given up.
    pub fn trim_notices(&self) -> Result<TrimNotices> {
        calls::memory_notice(self.node(), self.handle(), OPENDXG_NOTICE_TRIM).map(TrimNotices)
    }

    /// Tells the budget of this process on the adapter of the device.
    pub fn budget_notices(&self) -> Result<BudgetNotices> {
        calls::memory_notice(self.node(), self.handle(), OPENDXG_NOTICE_BUDGET).map(BudgetNotices)
    }

    /// Tells what the memory manager does for this process on the adapter of the device, from now
    /// on.
    pub fn paging_log(&self) -> Result<PagingLog> {
        calls::memory_notice(self.node(), self.handle(), OPENDXG_NOTICE_PAGING_LOG).map(PagingLog)
    }
}
