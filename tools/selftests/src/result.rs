// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a test ends.

use core::fmt;

use opendxg::Status;
use rustix::io::Errno;

/// What a test returns.
pub type TestResult<T = ()> = Result<T, Failure>;

/// Why a test did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Something was not as required.
    Failed(String),
    /// The test cannot be done here.
    Skipped(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => f.write_str(text),
            Self::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::Failed(text.into())
    }
}

impl From<opendxg::Error> for Failure {
    #[track_caller]
    fn from(error: opendxg::Error) -> Self {
        Self::Failed(format!("{}: {error}", core::panic::Location::caller()))
    }
}

impl From<Errno> for Failure {
    #[track_caller]
    fn from(errno: Errno) -> Self {
        Self::Failed(format!("{}: {errno}", core::panic::Location::caller()))
    }
}

impl From<std::io::Error> for Failure {
    #[track_caller]
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!("{}: {error}", core::panic::Location::caller()))
    }
}

/// Demands that a call of the typed interface is refused with exactly this status.
#[track_caller]
pub fn fails_with<T>(result: opendxg::Result<T>, status: Status) -> TestResult {
    let place = core::panic::Location::caller();
    match result {
        Err(opendxg::Error::Status(got)) if got == status => Ok(()),
        Err(error) => Err(Failure::Failed(format!(
            "{place}: expected {status}, got {error}"
        ))),
        Ok(_) => Err(Failure::Failed(format!(
            "{place}: expected {status}, but the call succeeded"
        ))),
    }
}

/// Fails the test unless the condition holds. Further arguments are a message as for `format!`.
#[macro_export]
macro_rules! ensure {
    ($condition:expr $(,)?) => {
        $crate::ensure!($condition, "not true: {}", stringify!($condition))
    };
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Failure::Failed(format!(
                "{}:{}: {}", file!(), line!(), format_args!($($message)+)
            )));
        }
    };
}

/// Fails the test unless both sides are equal, and shows them. Further arguments are a message.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr $(,)?) => {
        $crate::ensure_eq!($left, $right, "{}", stringify!($left))
    };
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => $crate::ensure!(
                left == right,
                "{}: got {left:?}, expected {right:?}", format_args!($($message)+)
            ),
        }
    };
}

/// Skips the test, with a reason as for `format!`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {
        return Err($crate::Failure::Skipped(format!($($reason)+)))
    };
}
