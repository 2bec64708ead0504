// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors to wait on: eventfds for asynchronous waits, and fence points.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::error::OrOs;
use crate::{Error, Result, Status};

/// An eventfd: the counter that the driver increments when an asynchronous wait is over.
///
/// It can be watched with poll or epoll ([`AsFd`]) and belongs to its owner alone; the driver
/// keeps its own reference for as long as a wait is pending.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A fresh eventfd with counter 0, non-blocking, closed on exec.
    pub fn new() -> Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(rustix::event::eventfd(0, flags).or_os()?))
    }

    /// Takes the counter and resets it to 0; 0 if nothing was signalled.
    pub fn take(&self) -> Result<u64> {
        let mut count = [0; 8];
        match rustix::io::read(&self.0, &mut count) {
            Ok(8) => Ok(u64::from_ne_bytes(count)),
            Ok(_) => Err(Error::Protocol("short read from an eventfd")),
            Err(Errno::AGAIN) => Ok(0),
            Err(errno) => Err(Error::os(errno)),
        }
    }

    /// Adds 1 to the counter.
    pub fn signal(&self) -> Result<()> {
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).or_os()?;
        Ok(())
    }

    /// Waits until the counter is not 0, and takes it; `None` after `timeout`.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<u64>> {
        if !wait_readable(self.as_fd(), timeout)? {
            return Ok(None);
        }
        match self.take()? {
            0 => Ok(None), // Another reader was faster.
            count => Ok(Some(count)),
        }
    }
}

/// Takes over a descriptor that is expected to be an eventfd. The driver refuses any other kind
/// when it is used.
impl From<OwnedFd> for EventFd {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<EventFd> for OwnedFd {
    fn from(event: EventFd) -> Self {
        event.0
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A pollable descriptor that becomes readable, for good, when a fence reaches a value.
///
/// It can be passed to another process. It does not keep the fence alive: when nobody is left who
/// could signal, it hangs up.
#[derive(Debug)]
pub struct FencePoint(OwnedFd);

impl FencePoint {
    /// Whether the fence has reached the value. As [`wait`](Self::wait) without time to wait.
    pub fn is_signalled(&self) -> Result<bool> {
        self.wait(Some(Duration::ZERO))
    }

    /// Waits until the fence has reached the value; false after `timeout`.
    ///
    /// [`Status::INVALID_HANDLE`] if it never will, because nobody is left who could signal; a
    /// blocking wait on the fence itself ends the same way.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        wait_readable(self.as_fd(), timeout)
    }
}

impl From<OwnedFd> for FencePoint {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<FencePoint> for OwnedFd {
    fn from(point: FencePoint) -> Self {
        point.0
    }
}

impl AsFd for FencePoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for FencePoint {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Polls for readability; false after `timeout`. A signal handler ends it with EINTR, the end of
/// the other side with INVALID_HANDLE.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<bool> {
    let timeout = match timeout.map(Timespec::try_from) {
        Some(Ok(timeout)) => Some(timeout),
        // None was asked for, or more seconds than a timespec can hold.
        None | Some(Err(_)) => None,
    };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, timeout.as_ref()).or_os()?;

    let events = fds[0].revents();
    if events.contains(PollFlags::HUP) && !events.contains(PollFlags::IN) {
        return Err(Status::INVALID_HANDLE.into());
    }
    Ok(events.contains(PollFlags::IN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eventfd_counts() {
        let event = EventFd::new().unwrap();
        assert_eq!(event.take().unwrap(), 0);
        assert_eq!(event.wait(Some(Duration::from_millis(1))).unwrap(), None);
        event.signal().unwrap();
        event.signal().unwrap();
        assert_eq!(event.wait(Some(Duration::MAX)).unwrap(), Some(2));
        assert_eq!(event.take().unwrap(), 0);
    }
}
