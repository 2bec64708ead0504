// SPDX-License-Identifier: MIT OR Apache-2.0
//! ShareObjects.

use std::os::fd::{FromRawFd, OwnedFd};

use opendxg::raw::{Argument, Raw};
use opendxg::uapi::*;

use crate::call::succeeds;
use crate::TestResult;

/// The argument for a set of local handles, with attributes at an address or 0. The handle goes
/// into the slot.
pub fn share_call(
    objects: &[u32],
    access: u32,
    attributes: u64,
    slot: &mut u64,
) -> D3DKMT_SHAREOBJECTS {
    let mut arg = D3DKMT_SHAREOBJECTS::zeroed();
    arg.ObjectCount = objects.len() as u32;
    arg.ObjectHandleArray = objects.as_ptr() as u64;
    arg.pObjectAttributes = attributes;
    arg.DesiredAccess = access;
    arg.pSharedNtHandle = (&raw mut *slot) as u64;
    arg
}

/// Makes an NT handle, which has to succeed.
#[track_caller]
pub fn share_raw(raw: &Raw, objects: &[u32], access: u32, attributes: u64) -> TestResult<OwnedFd> {
    let mut slot = u64::MAX;
    succeeds(raw, &mut share_call(objects, access, attributes, &mut slot))?;
    // SAFETY: written by the call; read anew because the compiler does not see that.
    let slot = unsafe { (&raw const slot).read_volatile() };
    let fd = i32::try_from(slot).map_err(|_| "ShareObjects returned no descriptor")?;
    // SAFETY: the call made the descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
