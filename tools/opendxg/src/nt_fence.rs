// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fence of an NT handle, without the device.

use std::os::fd::AsFd;

use crate::calls::object::call_on;
use crate::handle::NtHandle;
use crate::keyed_mutex::Timeout;
use crate::raw::Argument;
use crate::uapi::*;
use crate::{Result, Status};

/// A wait without a limit. The generator of the types takes the number for -1.
pub(crate) const NO_DEADLINE: u64 = OPENDXG_NO_DEADLINE as u64;

/// The fence of an NT handle, by calls on the descriptor itself: the process need not have the
/// device open, nor a local handle. Each call takes fewer steps than that of a local handle.
///
/// INVALID_PARAMETER if the handle is not that of one monitored or native fence.
///
/// ```no_run
/// use std::time::Duration;
///
/// use opendxg::{NtHandle, Timeout};
///
/// /// A compositor, which has got both over a socket.
/// fn frame(drawn: &NtHandle, shown: &NtHandle, frame: u64) -> opendxg::Result<()> {
///     if drawn.wait_until(frame, Timeout::After(Duration::from_millis(16)))? {
///         shown.signal(frame)?;
///     }
///     Ok(())
/// }
/// ```
impl NtHandle {
    /// Raises the value. INVALID_PARAMETER if the fence is already higher, ACCESS_DENIED without
    /// [`Access::SIGNAL`](crate::Access::SIGNAL).
    #[inline]
    pub fn signal(&self, value: u64) -> Result<()> {
        self.signal_with(value, 0)
    }

    /// Sets the value, which may go down.
    pub fn signal_rewind(&self, value: u64) -> Result<()> {
        self.signal_with(value, OPENDXG_SIGNAL_ALLOW_REWIND)
    }

    #[inline]
    fn signal_with(&self, value: u64, flags: u32) -> Result<()> {
        let mut arg = opendxg_signal_nt {
            value,
            flags,
            reserved: 0,
        };
        call_on(self.as_fd(), &mut arg).map(|_| ())
    }

    /// Waits until the fence reaches `value`. ACCESS_DENIED without
    /// [`Access::WAIT`](crate::Access::WAIT).
    ///
    /// A signal handler without `SA_RESTART` ends it with an error for which
    /// [`Error::is_interrupted`](crate::Error::is_interrupted) holds: wait again.
    #[inline]
    pub fn wait(&self, value: u64) -> Result<()> {
        self.wait_for(value, (NO_DEADLINE, 0)).map(|_| ())
    }

    /// The same with a limit. Whether the fence has reached `value`.
    pub fn wait_until(&self, value: u64, timeout: Timeout) -> Result<bool> {
        let status = self.wait_for(value, timeout.deadline())?;
        Ok(status != Status::TIMEOUT)
    }

    #[inline]
    fn wait_for(&self, value: u64, (deadline, flags): (u64, u32)) -> Result<Status> {
        let mut arg = opendxg_wait_nt {
            value,
            deadline,
            flags,
            reserved: 0,
        };
        call_on(self.as_fd(), &mut arg)
    }

    /// The value of the fence now. Needs no right.
    pub fn fence_value(&self) -> Result<u64> {
        let mut arg = opendxg_value_nt::zeroed();
        call_on(self.as_fd(), &mut arg)?;
        Ok(arg.value)
    }
}
