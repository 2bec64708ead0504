// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls by number, below the typed interface: for tests, tracers and the C library.
//!
//! ```no_run
//! # #[cfg(feature = "raw")]
//! # fn main() -> opendxg::Result<()> {
//! use opendxg::raw::Argument;
//! use opendxg::uapi::D3DKMT_CLOSEADAPTER;
//! use opendxg::{Dxg, Status};
//!
//! let dxg = Dxg::open()?;
//! // SAFETY: every address handed in below is 0 or belongs to a live buffer.
//! let raw = unsafe { dxg.raw() };
//! let mut arg = D3DKMT_CLOSEADAPTER::zeroed();
//! assert_eq!(raw.exec(&mut arg), Ok(Status::INVALID_PARAMETER));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "raw"))]
//! # fn main() {}
//! ```

use core::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

pub use rustix::io::Errno;
use rustix::io::Result;

pub use crate::arguments::{Argument, CALLS};
use crate::ioctl;
pub use crate::ioctl::{code, exact_code, MAX_SIZE};
use crate::node::Node;
pub use crate::object_argument::ObjectArgument;
use crate::Status;

/// Permission to issue any call.
///
/// Made by [`Dxg::raw`](crate::Dxg::raw), whose caller promises to hand in only harmless addresses
/// and not to destroy objects that the typed interface still uses.
#[derive(Clone, Debug)]
pub struct Raw {
    node: Arc<Node>,
}

impl Raw {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    /// Runs the call by the protocol of this kernel, as the typed interface does.
    pub fn call<T: Argument>(&self, arg: &mut T) -> Result<Status> {
        // SAFETY: promised when `self` was made.
        unsafe { self.node.call(T::NR, pointer(arg), T::SIZE) }
    }

    /// Runs the call as an ioctl that returns the exact status: the handler's answer, or the errno
    /// if no handler ran.
    pub fn exec<T: Argument>(&self, arg: &mut T) -> Result<Status> {
        // SAFETY: promised when `self` was made.
        unsafe { ioctl::exact(self.fd()?, T::NR, pointer(arg), T::SIZE) }
    }

    /// Runs the call as a plain ioctl: 0 or a positive status, or the bare errno.
    pub fn plain<T: Argument>(&self, arg: &mut T) -> Result<Status> {
        // SAFETY: promised when `self` was made.
        unsafe { ioctl::plain(self.fd()?, T::NR, pointer(arg), T::SIZE) }
    }

    /// Issues an ioctl with any code and any argument (an address or not); returns what the kernel
    /// returned.
    pub fn ioctl(&self, code: u32, arg: u64) -> Result<i32> {
        // SAFETY: promised when `self` was made.
        unsafe { ioctl::issue(self.fd()?, code, arg as usize as *mut c_void) }
    }

    /// Issues an ioctl on another descriptor, for example one inherited or received from another
    /// process.
    pub fn ioctl_on(&self, fd: impl AsFd, code: u32, arg: u64) -> Result<i32> {
        // SAFETY: promised when `self` was made.
        unsafe { ioctl::issue(fd.as_fd(), code, arg as usize as *mut c_void) }
    }

    /// The descriptor of the node.
    pub fn fd(&self) -> Result<BorrowedFd<'_>> {
        self.node.fd().ok_or(Errno::NXIO)
    }
}

/// Runs a call on a descriptor of the driver that is not the node: an NT handle or a watch. The
/// status is exact where the kernel returns such. ENOTTY for any other file.
///
/// # Safety
///
/// Every address in `arg` is 0 or one the call may use as the specification says.
pub unsafe fn call_descriptor<T: Argument>(fd: BorrowedFd<'_>, arg: &mut T) -> Result<Status> {
    let address = pointer(arg);
    // SAFETY: `arg` is a struct of that size; the caller vouches for the addresses in it.
    match unsafe { ioctl::exact(fd, T::NR, address, T::SIZE) } {
        // SAFETY: as above.
        Err(Errno::NOTTY) => match unsafe { ioctl::plain(fd, T::NR, address, T::SIZE) } {
            Err(errno) => Status::of_errno(errno).ok_or(errno),
            answer => answer,
        },
        answer => answer,
    }
}

/// The address of an argument struct.
fn pointer<T>(arg: &mut T) -> *mut c_void {
    (&raw mut *arg).cast()
}
