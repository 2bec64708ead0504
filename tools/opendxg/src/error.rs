// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a call failed.

use core::fmt;

use rustix::io::Errno;

use crate::Status;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Os(errno) => errno.into(),
            other => std::io::Error::other(other),
        }
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
        assert_eq!(Error::from(Errno::NODEV).status(), Status::DEVICE_REMOVED);
        assert_eq!(Error::from(Errno::NOTTY).status(), Status::UNSUCCESSFUL);
        assert_eq!(Error::Protocol("x").status(), Status::UNSUCCESSFUL);
    }

    #[test]
    fn kinds() {
        assert!(Error::from(Errno::INTR).is_interrupted());
        assert!(Error::from(Errno::NOTTY).is_foreign_process());
        assert!(!Error::from(Status::CANCELLED).is_interrupted());
    }
}
