// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw calls, and what they have to answer.

use core::panic::Location;

use opendxg::raw::{Argument, Raw};
use opendxg::Status;
use rustix::io::Errno;

use crate::poison::{bytes, bytes_mut};
use crate::{Failure, TestResult};

/// The errno by which a plain ioctl reports a status (abi.md section 3.1).
pub fn errno_of(status: Status) -> Errno {
    match status {
        Status::OBJECT_NAME_COLLISION => Errno::EXIST,
        Status::NO_MEMORY => Errno::NOMEM,
        Status::OBJECT_NAME_INVALID | Status::OBJECT_NAME_NOT_FOUND => Errno::NOENT,
        Status::BUFFER_TOO_SMALL => Errno::OVERFLOW,
        Status::DEVICE_REMOVED => Errno::NODEV,
        Status::ACCESS_DENIED => Errno::ACCESS,
        Status::NOT_SUPPORTED | Status::NOT_IMPLEMENTED => Errno::PERM,
        Status::ILLEGAL_INSTRUCTION => Errno::OPNOTSUPP,
        Status::INVALID_HANDLE => Errno::BADF,
        Status::GRAPHICS_ALLOCATION_BUSY => Errno::INPROGRESS,
        Status::OBJECT_TYPE_MISMATCH => Errno::PROTOTYPE,
        Status::UNSUCCESSFUL => Errno::IO,
        Status::ACCESS_VIOLATION => Errno::FAULT,
        _ => Errno::INVAL,
    }
}

/// Runs a call that has to succeed.
#[track_caller]
pub fn succeeds<T: Argument>(raw: &Raw, arg: &mut T) -> TestResult {
    let place = Location::caller();
    match raw.exec(arg) {
        Ok(Status::SUCCESS) => Ok(()),
        Ok(status) => Err(Failure::Failed(format!("{place}: {}: {status}", T::NAME))),
        Err(errno) => Err(Failure::Failed(format!("{place}: {}: {errno}", T::NAME))),
    }
}

/// Runs a call that has to be refused: through exec with exactly this status, as a plain ioctl
/// with its errno, both times with the argument left as it was.
#[track_caller]
pub fn refused<T: Argument>(raw: &Raw, arg: &mut T, status: Status) -> TestResult {
    refuse(raw, arg, status)
        .map_err(|text| Failure::Failed(format!("{}: {}: {text}", Location::caller(), T::NAME)))
}

fn refuse<T: Argument>(raw: &Raw, arg: &mut T, status: Status) -> Result<(), String> {
    let before = bytes(arg).to_vec();
    match raw.exec(arg) {
        Ok(got) if got == status => {}
        got => return Err(format!("expected {status}, exec gave {got:?}")),
    }
    unchanged(arg, &before)?;
    let errno = errno_of(status);
    match raw.plain(arg) {
        Err(got) if got == errno => {}
        got => return Err(format!("expected {errno:?}, the plain ioctl gave {got:?}")),
    }
    unchanged(arg, &before)
}

fn unchanged<T: Argument>(arg: &mut T, before: &[u8]) -> Result<(), String> {
    if let Some(at) = (0..before.len()).find(|&at| bytes(arg)[at] != before[at]) {
        let got = bytes(arg)[at];
        bytes_mut(arg).copy_from_slice(before);
        return Err(format!(
            "the refused call changed byte {at} of its argument: {:#x} -> {got:#x}",
            before[at]
        ));
    }
    Ok(())
}
