// SPDX-License-Identifier: GPL-2.0

//! Codes and results of ioctls, and the `exec` ioctl, which returns exact ones.

use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    sys::user,
    uapi::{
        opendxg_exec,
        DXG_IOCTL_TYPE, //
    }, //
};
use core::mem::offset_of;
use kernel::{
    error::code::{
        ENOTTY,
        ERESTARTSYS, //
    },
    prelude::*, //
};

/// Number of the ioctl that runs another one and returns its exact status.
pub(super) const EXEC: u32 = 0x80;

/// `_IOWR('G', number, size)`. The numbers and sizes are those of the header, which the generated
/// codes confirm at build time below.
pub(super) const fn code(number: u32, size: usize) -> u32 {
    // CAST: an ioctl size has 14 bits.
    0xc000_0000 | (size as u32) << 16 | (DXG_IOCTL_TYPE as u32) << 8 | number
}

/// The code of a number and a size from a caller; `None` if there is no such code.
pub(super) fn checked_code(number: u32, size: u32) -> Option<u32> {
    // CAST: 32 bits fit a usize.
    (number < 1 << 8 && size < 1 << 14).then(|| code(number, size as usize))
}

/// What a plain ioctl returns.
pub(super) fn result_of(outcome: DxgResult) -> isize {
    match outcome {
        Ok(()) => 0,
        Err(DxgError::Status(status)) => status.ioctl_result(),
        Err(DxgError::Interrupted) => interrupted(),
    }
}

/// DXG_IOCTL_EXEC (0x80): runs another ioctl (abi.md section 3.2). 0 and an exact status, or an
/// errno and nothing done. `find` gives the call with a number and a size of arguments.
pub(super) fn run_exec<R: FnOnce(u64) -> DxgResult>(
    cmd: u32,
    arg: u64,
    find: impl FnOnce(u32, u32) -> Option<R>,
) -> isize {
    if cmd != code(EXEC, size_of::<opendxg_exec>()) {
        return not_ours();
    }

    let Ok(exec) = user::read::<opendxg_exec>(arg) else {
        return Status::ACCESS_VIOLATION.ioctl_result();
    };

    if exec.reserved != 0 || exec.nr == EXEC {
        return Status::INVALID_PARAMETER.ioctl_result();
    }

    match find(exec.nr, exec.size) {
        Some(run) => deliver(arg, || run(exec.arg)),
        None => not_ours(),
    }
}

/// Runs the call and writes its exact status into the `opendxg_exec` at `arg`.
fn deliver(arg: u64, run: impl FnOnce() -> DxgResult) -> isize {
    // CAST: an offset is small.
    let place = arg.wrapping_add(offset_of!(opendxg_exec, ntstatus) as u64);

    // The status must be writable before anything happens.
    if user::write(place, &0).is_err() {
        return Status::ACCESS_VIOLATION.ioctl_result();
    }

    let status = match run() {
        Ok(()) => return 0,
        Err(DxgError::Status(status)) => status,
        Err(DxgError::Interrupted) => return interrupted(),
    };

    match user::write(place, &status.ntstatus()) {
        Ok(()) => 0,
        Err(_) => Status::ACCESS_VIOLATION.ioctl_result(),
    }
}

pub(super) fn not_ours() -> isize {
    // CAST: an errno is a small number.
    ENOTTY.to_errno() as isize
}

fn interrupted() -> isize {
    // CAST: an errno is a small number.
    ERESTARTSYS.to_errno() as isize
}
