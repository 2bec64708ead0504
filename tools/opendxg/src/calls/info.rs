// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the information store.

use std::os::fd::OwnedFd;

use super::object::{about_with_addresses, Place};
use super::{buffer, count};
use crate::handle::adopt;
use crate::raw::Argument;
use crate::store::InfoItem;
use crate::uapi::*;
use crate::{Error, Result, Status};

/// SetInfo. The generation in the argument tells about a mismatch as well.
pub(crate) fn set(place: Place<'_>, items: &[InfoItem<'_>]) -> (Result<Status>, u64) {
    let run = |arg: &mut opendxg_set_info| {
        let raw = items.iter().map(InfoItem::raw);
        let raw = raw.collect::<Result<Vec<opendxg_info_item>>>()?;
        arg.item_count = count(raw.len())?;
        arg.items = raw.as_ptr() as u64;
        // SAFETY: the items are those of `raw`, only read; their addresses and sizes are those of
        // the slices that `items` borrows, only read.
        unsafe { about_with_addresses(place, arg) }
    };
    let mut arg = opendxg_set_info::zeroed();
    let result = run(&mut arg);
    (result, arg.generation)
}

/// GetInfo with a buffer for the bytes. The argument is filled as far as the status says.
pub(crate) fn get(
    place: Place<'_>,
    arg: &mut opendxg_get_info,
    bytes: &mut [u8],
) -> (Result<Status>, Option<OwnedFd>) {
    let buffer = buffer(bytes);
    let result = buffer.and_then(|(address, size)| {
        (arg.data, arg.size) = (address, size);
        // SAFETY: the address and the size are those of the borrowed slice.
        unsafe { about_with_addresses(place, arg) }
    });
    let has_file = result.is_ok() && arg.flags & OPENDXG_GET_FD != 0 && arg.fd >= 0;
    // SAFETY: the driver made the descriptor for this call.
    let file = has_file.then(|| unsafe { adopt(arg.fd) }.ok()).flatten();
    (result, file)
}

/// EnumInfo: fills `entries`; returns how many entries exist and the generation of the object.
pub(crate) fn enumerate(
    place: Place<'_>,
    entries: &mut [opendxg_info_entry],
) -> Result<(Status, usize, u64)> {
    let mut arg = opendxg_enum_info::zeroed();
    arg.count = count(entries.len())?;
    if !entries.is_empty() {
        arg.entries = entries.as_mut_ptr() as u64;
    }
    // SAFETY: the address is 0 or that of the `count` entries of the borrowed slice.
    let answer = unsafe { about_with_addresses(place, &mut arg) };
    let status = match answer {
        Err(Error::Status(status @ Status::BUFFER_TOO_SMALL)) => status,
        answer => answer?,
    };
    Ok((status, arg.count as usize, arg.generation))
}
