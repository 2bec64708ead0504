// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ioctl itself: how a call is encoded and the two ways of issuing it.

use core::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::io::Result;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};

use crate::uapi;
use crate::Status;

/// Highest size an ioctl code can carry.
pub const MAX_SIZE: u32 = (1 << 14) - 1;

/// The ioctl code of call `nr` with an argument of `size` bytes: `_IOWR('G', nr, size)`.
///
/// That of EnumAdapters2 is 0xc0104714.
pub const fn code(nr: u32, size: u32) -> u32 {
    0xc000_0000 | ((size & MAX_SIZE) << 16) | ((uapi::DXG_IOCTL_TYPE as u32) << 8) | (nr & 0xff)
}

/// The code of the same call that returns its exact NTSTATUS: `_IOWR('g', nr, size)`.
pub const fn exact_code(nr: u32, size: u32) -> u32 {
    code(nr, size) | (((uapi::DXG_IOCTL_TYPE ^ uapi::DXG_IOCTL_TYPE_EXACT) as u32) << 8)
}

/// One ioctl with an arbitrary code and argument.
struct Request {
    code: u32,
    arg: *mut c_void,
}

// SAFETY: the code and the pointer are passed on unchanged and the return value is a plain int.
// That `arg` suits the code is the contract of `issue`, the only place where a `Request` is made.
unsafe impl Ioctl for Request {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.code as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.arg
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Result<i32> {
        Ok(out)
    }
}

/// Issues one ioctl.
///
/// # Safety
///
/// If the kernel accepts `code`, then `arg` and every address in the memory behind it must be
/// something the call may read and write, or an address at which nothing is mapped.
#[inline]
pub(crate) unsafe fn issue(fd: BorrowedFd<'_>, code: u32, arg: *mut c_void) -> Result<i32> {
    // SAFETY: the caller vouches for the argument.
    unsafe { rustix::ioctl::ioctl(fd, Request { code, arg }) }
}

/// Runs call `nr` as a plain ioctl, as clients of the legacy interface do.
///
/// A positive result is a success-class NTSTATUS. An error is the bare errno;
/// [`Status::from_errno`] tells which status it stands for.
///
/// # Safety
///
/// As for [`issue`]; `arg` addresses `size` bytes.
pub(crate) unsafe fn plain(
    fd: BorrowedFd<'_>,
    nr: u32,
    arg: *mut c_void,
    size: u32,
) -> Result<Status> {
    // SAFETY: the caller vouches for the argument.
    unsafe { issue(fd, code(nr, size), arg) }.map(Status)
}

/// Runs call `nr` as an ioctl that returns the exact status. An error means that no handler ran.
///
/// # Safety
///
/// As for [`plain`].
#[inline(always)]
pub(crate) unsafe fn exact(
    fd: BorrowedFd<'_>,
    nr: u32,
    arg: *mut c_void,
    size: u32,
) -> Result<Status> {
    // SAFETY: the caller vouches for the argument.
    unsafe { issue(fd, exact_code(nr, size), arg) }.map(Status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_specification() {
        for (nr, size, expected) in [
            (0x01, 12, 0xc00c_4701),
            (0x0f, 384, 0xc180_470f),
            (0x43, 808, 0xc328_4743),
            (0x8f, 0, 0xc000_478f),
        ] {
            assert_eq!(code(nr, size), expected, "nr {nr:#x}");
            assert_eq!(exact_code(nr, size), expected + 0x2000, "nr {nr:#x}");
        }
    }
}
