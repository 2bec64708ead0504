// SPDX-License-Identifier: MIT OR Apache-2.0
//! A descriptor from which the values of a fence are read.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::{Errno, ReadWriteFlags};

use crate::error::OrOs;
use crate::event::wait_readable;
use crate::{Error, Result, Status};

/// The values of a fence, one after the other, for an event loop.
///
/// The descriptor is readable while the fence has another value than the one that was read last.
/// Changes between two reads coalesce: a read returns the present value. It can be passed to
/// another process; all who have it read from one stream. It does not keep the fence alive: when
/// nobody is left who could signal, it hangs up.
#[derive(Debug)]
pub struct FenceStream(OwnedFd);

impl FenceStream {
    /// Waits until the fence has another value than the last one, and returns it.
    ///
    /// [`Status::INVALID_HANDLE`] if it never will. EAGAIN instead of waiting if the descriptor has
    /// O_NONBLOCK; EINTR if a signal handler ran that does not restart calls.
    pub fn read(&self) -> Result<u64> {
        let mut bytes = [0; 8];
        value(rustix::io::read(&self.0, &mut bytes), bytes)
    }

    /// The present value if it is another than the last one, without waiting.
    pub fn try_read(&self) -> Result<Option<u64>> {
        let mut bytes = [0; 8];
        let length = rustix::io::preadv2(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            u64::MAX,
            ReadWriteFlags::NOWAIT,
        );
        match length {
            Err(Errno::AGAIN) => Ok(None),
            length => value(length, bytes).map(Some),
        }
    }

    /// Waits until the fence has another value than the last one, and returns it; `None` after
    /// `timeout`.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<u64>> {
        if !wait_readable(self.as_fd(), timeout)? {
            return Ok(None);
        }
        self.try_read()
    }
}

/// What a read says. The stream of a fence that has retired ends.
fn value(length: rustix::io::Result<usize>, bytes: [u8; 8]) -> Result<u64> {
    match length.or_os()? {
        8 => Ok(u64::from_ne_bytes(bytes)),
        0 => Err(Status::INVALID_HANDLE.into()),
        _ => Err(Error::Protocol("short read from a fence stream")),
    }
}

impl From<OwnedFd> for FenceStream {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<FenceStream> for OwnedFd {
    fn from(stream: FenceStream) -> Self {
        stream.0
    }
}

impl AsFd for FenceStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for FenceStream {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
