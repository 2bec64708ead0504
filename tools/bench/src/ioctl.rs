// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain ioctls, for the competitors and for the floor.

use core::ffi::c_void;
use core::mem::size_of;
use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};

struct Request {
    code: u32,
    arg: *mut c_void,
}

// SAFETY: code and pointer are passed on unchanged; that they suit each other is the contract of
// `ioctl`.
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

/// Issues an ioctl.
///
/// # Safety
///
/// The code is one whose argument is a `T`, and every address in `arg` is one the call may use.
pub unsafe fn ioctl<T>(fd: impl AsFd, code: u32, arg: &mut T) -> Result<i32> {
    let arg = (&raw mut *arg).cast();
    // SAFETY: the caller's promise.
    unsafe { rustix::ioctl::ioctl(fd, Request { code, arg }) }
}

const WRITE: u32 = 1 << 30;
const READ: u32 = 2 << 30;

const fn code<T>(direction: u32, letter: u8, nr: u32) -> u32 {
    direction | ((size_of::<T>() as u32) << 16) | ((letter as u32) << 8) | nr
}

/// Code of an ioctl whose argument is read by the kernel.
pub const fn iow<T>(letter: u8, nr: u32) -> u32 {
    code::<T>(WRITE, letter, nr)
}

/// Code of an ioctl whose argument is written by the kernel.
pub const fn ior<T>(letter: u8, nr: u32) -> u32 {
    code::<T>(READ, letter, nr)
}

/// Code of an ioctl whose argument is read and written by the kernel.
pub const fn iowr<T>(letter: u8, nr: u32) -> u32 {
    code::<T>(READ | WRITE, letter, nr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(iowr::<[u8; 40]>(b'N', 0x82), 0xc028_4e82);
        assert_eq!(ior::<u32>(b'N', 0x88), 0x8004_4e88);
        assert_eq!(iow::<u64>(b'N', 0x87), 0x4008_4e87);
    }
}
