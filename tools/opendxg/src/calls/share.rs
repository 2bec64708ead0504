// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that make and find NT handles.

use std::os::fd::OwnedFd;

use super::{call_with_addresses, count};
use crate::handle::adopt;
use crate::node::Node;
use crate::raw::Argument;
use crate::uapi::*;
use crate::{Error, Result, Status};

/// The name and the OBJ_* bits of an NT handle.
pub(crate) struct Attributes<'a> {
    /// UTF-16 units of the name, if it has one.
    pub(crate) name: Option<&'a [u16]>,
    /// OBJ_* bits.
    pub(crate) bits: u32,
}

impl Attributes<'_> {
    /// Runs `f` with the address of the OBJECT_ATTRIBUTES, valid while `f` runs.
    fn with<T>(&self, f: impl FnOnce(u64) -> T) -> Result<T> {
        let mut name = UNICODE_STRING::default();
        let mut attributes = OBJECT_ATTRIBUTES {
            Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
            Attributes: self.bits,
            ..OBJECT_ATTRIBUTES::default()
        };
        if let Some(units) = self.name {
            name.Length = u16::try_from(core::mem::size_of_val(units))
                .map_err(|_| Error::Status(Status::NAME_TOO_LONG))?;
            name.MaximumLength = name.Length;
            name.Buffer = units.as_ptr() as u64;
            attributes.ObjectName = (&raw const name) as u64;
        }
        Ok(f((&raw const attributes) as u64))
    }
}

/// ShareObjects without attributes.
pub(crate) fn share(node: &Node, objects: &[u32], access: u32) -> Result<OwnedFd> {
    share_raw(node, objects, access, 0, None).map(|(_, fd)| fd)
}

/// ShareObjects with a name or attributes; with a mode through the call that takes one.
pub(crate) fn share_with(
    node: &Node,
    objects: &[u32],
    access: u32,
    attributes: &Attributes<'_>,
    mode: Option<u32>,
) -> Result<(Status, OwnedFd)> {
    attributes.with(|address| share_raw(node, objects, access, address, mode))?
}

fn share_raw(
    node: &Node,
    objects: &[u32],
    access: u32,
    attributes: u64,
    mode: Option<u32>,
) -> Result<(Status, OwnedFd)> {
    let mut slot = 0u64;
    let mut arg = D3DKMT_SHAREOBJECTS::zeroed();
    arg.ObjectCount = count(objects.len())?;
    arg.ObjectHandleArray = objects.as_ptr() as u64;
    arg.pObjectAttributes = attributes;
    arg.DesiredAccess = access;
    arg.pSharedNtHandle = (&raw mut slot) as u64;
    let status = match mode {
        // SAFETY: the addresses are those of the borrowed slice and of the attributes, only read,
        // and of `slot`.
        None => unsafe { call_with_addresses(node, &mut arg) }?,
        Some(mode) => {
            let mut arg = opendxg_share_objects {
                share: arg,
                mode,
                ..opendxg_share_objects::zeroed()
            };
            // SAFETY: as above.
            unsafe { call_with_addresses(node, &mut arg) }?
        }
    };
    // SAFETY: the driver made the descriptor for this call.
    Ok((status, unsafe { descriptor(slot) }?))
}

/// OpenNtHandleFromName, for resources.
pub(crate) fn open_resource_name(
    node: &Node,
    access: u32,
    attributes: &Attributes<'_>,
) -> Result<OwnedFd> {
    let mut arg = D3DKMT_OPENNTHANDLEFROMNAME::zeroed();
    arg.dwDesiredAccess = access;
    attributes.with(|address| {
        arg.pObjAttrib = address;
        // SAFETY: the address is that of live attributes, only read.
        unsafe { call_with_addresses(node, &mut arg) }
    })??;
    // SAFETY: the driver made the descriptor for this call.
    unsafe { descriptor(arg.hNtHandle) }
}

/// OpenSyncObjectNtHandleFromName.
pub(crate) fn open_sync_name(
    node: &Node,
    access: u32,
    attributes: &Attributes<'_>,
) -> Result<OwnedFd> {
    let mut arg = D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME::zeroed();
    arg.dwDesiredAccess = access;
    attributes.with(|address| {
        arg.pObjAttrib = address;
        // SAFETY: the address is that of live attributes, only read.
        unsafe { call_with_addresses(node, &mut arg) }
    })??;
    // SAFETY: the driver made the descriptor for this call.
    unsafe { descriptor(arg.hNtHandle) }
}

/// The descriptor in a 64-bit slot.
///
/// # Safety
///
/// As for [`adopt`].
unsafe fn descriptor(slot: u64) -> Result<OwnedFd> {
    let fd = i32::try_from(slot).map_err(|_| Error::Protocol("not a descriptor"))?;
    // SAFETY: the caller's promise.
    unsafe { adopt(fd) }
}
