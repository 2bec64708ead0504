// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three kinds of names an object can have.

use core::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::error::OrOs;

/// A handle of this process (a *local* KMT handle). It owns a reference to its object.
///
/// The number alone does nothing: the typed objects ([`Device`](crate::Device), …) destroy the
/// handle they own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalHandle(pub u32);

/// A system-wide number of a shared object (a *global* KMT handle). It owns no reference and is
/// dead as soon as the object is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GlobalHandle(pub u32);

impl LocalHandle {
    /// Value 0, never a handle.
    pub const NONE: Self = Self(0);
}

impl fmt::Debug for LocalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalHandle({:#010x})", self.0)
    }
}

impl fmt::Debug for GlobalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalHandle({:#010x})", self.0)
    }
}

/// A shared object as a file descriptor: an *NT handle*. It holds a reference, can be passed over
/// a socket, and is closed when dropped.
#[derive(Debug)]
pub struct NtHandle(OwnedFd);

impl NtHandle {
    /// The handle as it travels in a 64-bit slot of an argument struct.
    pub fn slot(&self) -> u64 {
        slot(self.as_fd())
    }

    /// Another descriptor of the same handle.
    pub fn try_clone(&self) -> crate::Result<Self> {
        Ok(Self(rustix::io::fcntl_dupfd_cloexec(&self.0, 3).or_os()?))
    }
}

impl From<OwnedFd> for NtHandle {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<NtHandle> for OwnedFd {
    fn from(handle: NtHandle) -> Self {
        handle.0
    }
}

impl AsFd for NtHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for NtHandle {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl IntoRawFd for NtHandle {
    fn into_raw_fd(self) -> RawFd {
        self.0.into_raw_fd()
    }
}

/// A descriptor as it travels in a 64-bit slot of an argument struct.
pub(crate) fn slot(fd: BorrowedFd<'_>) -> u64 {
    // Descriptors are never negative, so this does not sign-extend.
    fd.as_raw_fd() as u64
}

/// Takes over a descriptor that the driver made for a call that has just succeeded.
pub(crate) fn adopt_checked(fd: i32) -> crate::Result<OwnedFd> {
    // SAFETY: only used on outputs of successful calls that make descriptors: nobody else knows
    // it.
    unsafe { adopt(fd) }
}

/// Takes over a descriptor that the driver returned in an argument struct.
///
/// # Safety
///
/// `fd` is an open descriptor that nobody else owns.
pub(crate) unsafe fn adopt(fd: i32) -> crate::Result<OwnedFd> {
    if fd < 0 {
        return Err(crate::Error::Protocol("negative descriptor"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
