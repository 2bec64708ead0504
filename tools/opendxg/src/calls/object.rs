// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls about an object of any kind, through a local handle or on the descriptor of an NT handle.

use std::os::fd::BorrowedFd;

use super::{check, SelfContained};
use crate::handle::LocalHandle;
use crate::node::Node;
use crate::object_argument::ObjectArgument;
use crate::raw::call_descriptor;
use crate::uapi::*;
use crate::{Result, Status};

/// How a call reaches an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// Through the node, by local handle.
    Local(&'a Node, LocalHandle),
    /// On the descriptor itself: no device is needed.
    Own(BorrowedFd<'a>),
}

/// Runs a call about an object whose argument holds no address.
pub(crate) fn call_about<T: ObjectArgument + SelfContained>(
    place: Place<'_>,
    arg: &mut T,
) -> Result<Status> {
    // SAFETY: `arg` is borrowed for the call and refers to nothing else.
    unsafe { about_with_addresses(place, arg) }
}

/// Runs a call about an object.
///
/// # Safety
///
/// Every address in `arg` is 0 or one the call may use as the specification says.
pub(super) unsafe fn about_with_addresses<T: ObjectArgument>(
    place: Place<'_>,
    arg: &mut T,
) -> Result<Status> {
    match place {
        Place::Local(node, handle) => {
            arg.about(handle.0.into(), OPENDXG_HANDLE_LOCAL);
            // SAFETY: the caller's promise.
            unsafe { super::call_with_addresses(node, arg) }
        }
        Place::Own(fd) => {
            arg.about(0, OPENDXG_HANDLE_SELF);
            // SAFETY: the caller's promise.
            check(unsafe { call_descriptor(fd, arg) })
        }
    }
}

/// Runs a call without addresses on a descriptor of the driver that is not the node.
pub(crate) fn call_on<T: SelfContained>(fd: BorrowedFd<'_>, arg: &mut T) -> Result<Status> {
    // SAFETY: `arg` is borrowed for the call and refers to nothing else.
    check(unsafe { call_descriptor(fd, arg) })
}

/// QueryObject of a handle of this kind, with a buffer for the name.
pub(crate) fn query(
    node: &Node,
    (handle, handle_type): (u64, u32),
    arg: &mut opendxg_query_object,
    name: &mut [u16],
) -> Result<Status> {
    arg.about(handle, handle_type);
    name_buffer(arg, name)?;
    // SAFETY: the address of the name is that of the borrowed slice, with its size.
    unsafe { super::call_with_addresses(node, arg) }
}

/// QueryObject of an object at hand, with a buffer for the name.
pub(crate) fn query_at(
    place: Place<'_>,
    arg: &mut opendxg_query_object,
    name: &mut [u16],
) -> Result<Status> {
    name_buffer(arg, name)?;
    // SAFETY: the address of the name is that of the borrowed slice, with its size.
    unsafe { about_with_addresses(place, arg) }
}

fn name_buffer(arg: &mut opendxg_query_object, name: &mut [u16]) -> Result<()> {
    arg.name = name.as_mut_ptr() as u64;
    arg.name_size = super::count(core::mem::size_of_val(name))?;
    Ok(())
}
