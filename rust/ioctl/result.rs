// SPDX-License-Identifier: GPL-2.0

//! Codes and results of ioctls. Each call has two codes, which differ in how its NTSTATUS travels
//! (abi.md section 3): mapped to an errno, or exactly.

use crate::{
    error::{
        DxgError,
        DxgResult, //
    },
    uapi::{
        DXG_IOCTL_TYPE,
        DXG_IOCTL_TYPE_EXACT, //
    }, //
};
use kernel::error::code::{
    ENOTTY,
    ERESTARTSYS, //
};

/// Where the type is in a code.
const TYPE_SHIFT: u32 = 8;

/// The bit of a code that asks for the exact status.
// CAST: a type has 8 bits.
const EXACT: u32 = ((DXG_IOCTL_TYPE ^ DXG_IOCTL_TYPE_EXACT) as u32) << TYPE_SHIFT;

const _: () = assert!(EXACT.is_power_of_two());
const _: () = assert!(DXG_IOCTL_TYPE & DXG_IOCTL_TYPE_EXACT == DXG_IOCTL_TYPE);

/// `_IOWR('G', number, size)`. The numbers and sizes are those of the header, which the generated
/// codes confirm at build time.
pub(super) const fn code(number: u32, size: usize) -> u32 {
    // CAST: an ioctl size has 14 bits.
    0xc000_0000 | (size as u32) << 16 | (DXG_IOCTL_TYPE as u32) << TYPE_SHIFT | number
}

/// How the caller wants the status.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// As an errno, which old clients map back.
    Plain,
    /// The number itself.
    Exact,
}

/// The plain code of the same call, and the form that is asked for.
#[inline(always)]
pub(super) fn split(cmd: u32) -> (u32, Form) {
    match cmd & EXACT {
        0 => (cmd, Form::Plain),
        _ => (cmd & !EXACT, Form::Exact),
    }
}

/// Whether a plain code has the type of our calls.
pub(super) fn is_type(code: u32) -> bool {
    (code >> TYPE_SHIFT) & 0xff == u32::from(DXG_IOCTL_TYPE)
}

/// What the ioctl returns.
#[inline(always)]
pub(super) fn result_of(outcome: DxgResult, form: Form) -> isize {
    match (outcome, form) {
        (Ok(()), _) => 0,
        (Err(DxgError::Status(status)), Form::Exact) => status.exact_result(),
        (Err(DxgError::Status(status)), Form::Plain) => status.ioctl_result(),
        (Err(DxgError::Interrupted), _) => interrupted(),
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
