// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a call failed.

use core::fmt;

use rustix::io;

use crate::Status;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// EINTR: a signal handler interrupted a wait.
    pub const INTR: Self = Self(libc::EINTR);
    /// ENOTTY: the descriptor was opened by another process, or is no such device.
    pub const NOTTY: Self = Self(libc::ENOTTY);
    /// EBADF: the descriptor is not open.
    pub const BADF: Self = Self(libc::EBADF);
    /// EFAULT: an address cannot be read or written.
    pub const FAULT: Self = Self(libc::EFAULT);

    /// The error with this number.
    pub const fn from_raw_os_error(number: i32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn raw_os_error(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&std::io::Error::from_raw_os_error(self.0), f)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The driver ran the call and refused it.
    Status(Status),
    /// The call did not reach its handler, or the kernel refused something that is not a D3DKMT
    /// call (opening the node, making an eventfd).
    Os(Errno),
    /// The driver answered something no driver should: the text says what.
    Protocol(&'static str),
}

impl Error {
    /// A refusal of the kernel.
    pub(crate) fn os(errno: io::Errno) -> Self {
        Self::Os(Errno(errno.raw_os_error()))
    }

    /// The NTSTATUS a C caller would see for this error.
    pub fn status(self) -> Status {
        match self {
            Self::Status(status) => status,
            Self::Os(errno) => Status::from_errno(errno).unwrap_or(Status::UNSUCCESSFUL),
            Self::Protocol(_) => Status::UNSUCCESSFUL,
        }
    }

    /// True when a signal handler interrupted a blocking wait. Nothing was consumed: repeat it.
    pub fn is_interrupted(self) -> bool {
        self == Self::Os(Errno::INTR)
    }

    /// True when the descriptor was opened by another process, usually the parent before `fork`.
    ///
    /// Open the node again in this process ([`Dxg::open`](crate::Dxg::open)).
    pub fn is_foreign_process(self) -> bool {
        self == Self::Os(Errno::NOTTY)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Os(Errno::NOTTY) => {
                f.write_str("not usable in this process: opened before a fork, or not /dev/dxg")
            }
            Self::Os(errno) => write!(f, "{errno}"),
            Self::Protocol(what) => write!(f, "unexpected answer of the driver: {what}"),
        }
    }
}

impl core::error::Error for Error {}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Self::Os(errno)
    }
}

#[cfg(feature = "raw")]
impl From<io::Errno> for Error {
    fn from(errno: io::Errno) -> Self {
        Self::os(errno)
    }
}

/// Turns the results of system calls into those of this crate.
pub(crate) trait OrOs<T> {
    /// The result, with a refusal as an [`Error`].
    fn or_os(self) -> Result<T>;
}

impl<T> OrOs<T> for io::Result<T> {
    fn or_os(self) -> Result<T> {
        self.map_err(Error::os)
    }
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;

        let kind = match error {
            Error::Os(errno) => return std::io::Error::from_raw_os_error(errno.0),
            Error::Protocol(_) => ErrorKind::InvalidData,
            Error::Status(status) => match status {
                Status::ACCESS_DENIED | Status::PRIVILEGE_NOT_HELD => ErrorKind::PermissionDenied,
                Status::INVALID_PARAMETER | Status::INVALID_HANDLE => ErrorKind::InvalidInput,
                Status::NO_MEMORY | Status::QUOTA_EXCEEDED => ErrorKind::OutOfMemory,
                Status::NOT_FOUND | Status::OBJECT_NAME_NOT_FOUND => ErrorKind::NotFound,
                Status::OBJECT_NAME_COLLISION => ErrorKind::AlreadyExists,
                Status::TIMEOUT => ErrorKind::TimedOut,
                Status::NOT_SUPPORTED | Status::NOT_IMPLEMENTED => ErrorKind::Unsupported,
                _ => ErrorKind::Other,
            },
        };
        std::io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_status() {
        assert_eq!(
            Error::from(Status::ACCESS_DENIED).status(),
            Status::ACCESS_DENIED
        );
        let removed = Error::os(io::Errno::NODEV);
        assert_eq!(removed.status(), Status::DEVICE_REMOVED);
        assert_eq!(Error::from(Errno::NOTTY).status(), Status::UNSUCCESSFUL);
        assert_eq!(Error::Protocol("x").status(), Status::UNSUCCESSFUL);
    }

    #[test]
    fn errors_of_the_standard_library_have_a_kind() {
        use std::io::{Error as IoError, ErrorKind};

        for (error, kind) in [
            (
                Error::from(Status::ACCESS_DENIED),
                ErrorKind::PermissionDenied,
            ),
            (Error::from(Status::NO_MEMORY), ErrorKind::OutOfMemory),
            (Error::from(Errno::INTR), ErrorKind::Interrupted),
            (Error::Protocol("x"), ErrorKind::InvalidData),
        ] {
            assert_eq!(IoError::from(error).kind(), kind, "{error}");
        }
        assert_eq!(
            IoError::from(Error::os(io::Errno::NOENT)).raw_os_error(),
            Some(2)
        );
    }

    #[test]
    fn kinds() {
        assert!(Error::from(Errno::INTR).is_interrupted());
        assert!(Error::from(Errno::NOTTY).is_foreign_process());
        assert!(!Error::from(Status::CANCELLED).is_interrupted());
    }
}
