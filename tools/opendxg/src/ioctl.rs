// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ioctl itself: how a call is encoded and the two ways of issuing it.

use core::ffi::c_void;
use core::mem::size_of;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};

use crate::uapi;
use crate::Status;

/// Number of the call that runs another call and returns its exact NTSTATUS.
pub const EXEC: u32 = uapi::DXG_NR_EXEC;

/// Highest size an ioctl code can carry.
pub const MAX_SIZE: u32 = (1 << 14) - 1;

/// The ioctl code of call `nr` with an argument of `size` bytes: `_IOWR('G', nr, size)`.
///
/// That of EnumAdapters2 is 0xc0104714.
pub const fn code(nr: u32, size: u32) -> u32 {
    0xc000_0000 | ((size & MAX_SIZE) << 16) | ((b'G' as u32) << 8) | (nr & 0xff)
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

/// Runs call `nr` through the exec extension. An error means that no handler ran.
///
/// # Safety
///
/// As for [`plain`].
pub(crate) unsafe fn exec(
    fd: BorrowedFd<'_>,
    nr: u32,
    arg: *mut c_void,
    size: u32,
) -> Result<Status> {
    let mut request = uapi::opendxg_exec {
        nr,
        size,
        arg: arg as u64,
        ntstatus: 0,
        reserved: 0,
    };
    // SAFETY: `request` lives across the call; the caller vouches for what it refers to.
    unsafe { exec_request(fd, &mut request) }?;
    Ok(Status(request.ntstatus))
}

/// Issues the exec extension with a request filled in by the caller.
///
/// # Safety
///
/// As for [`plain`], for the argument that `request` refers to.
pub(crate) unsafe fn exec_request(
    fd: BorrowedFd<'_>,
    request: &mut uapi::opendxg_exec,
) -> Result<()> {
    let code = code(EXEC, size_of::<uapi::opendxg_exec>() as u32);
    // SAFETY: `request` is a live struct of the size in the code; the caller vouches for the rest.
    match unsafe { issue(fd, code, (&raw mut *request).cast()) }? {
        0 => Ok(()),
        // Another driver's call behind the same number.
        _ => Err(Errno::NOTTY),
    }
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
            (EXEC, 24, 0xc018_4780),
            (0x8f, 0, 0xc000_478f),
        ] {
            assert_eq!(code(nr, size), expected, "nr {nr:#x}");
        }
    }
}
