// SPDX-License-Identifier: GPL-2.0

//! OBJECT_ATTRIBUTES: name and inheritance of an NT handle (RES-38).
//!
//! Every structure is copied once. The checks are in the order of the specification's table; memory
//! is read when its check comes.

use super::call::invalid_if;
use crate::{
    dxgk::share::name::Name,
    error::{
        DxgResult,
        Status, //
    },
    logic::name::{
        self,
        Refusal, //
    },
    sys::user,
    uapi::*, //
};
use kernel::prelude::*;

/// Attribute bits that exist.
const OBJ_KNOWN: u32 = 0x1ff2;

/// What OBJECT_ATTRIBUTES asks for.
#[derive(Default)]
pub(super) struct Attributes {
    /// The descriptor stays open across exec.
    pub(super) inherit: bool,
    /// An existing object of this name is opened.
    pub(super) open_if: bool,
    /// `None` for an object without a name.
    pub(super) name: Option<Name>,
}

/// Those of a call that makes a share; the address may be 0.
pub(super) fn for_share(addr: u64) -> DxgResult<Attributes> {
    if addr == 0 {
        return Ok(Attributes::default());
    }
    read(addr, Status::OBJECT_NAME_COLLISION)
}

/// The name that a call opens, and whether the descriptor stays open across exec.
pub(super) fn for_open(addr: u64) -> DxgResult<(Name, bool)> {
    invalid_if(addr == 0)?;

    let attributes = read(addr, Status::OBJECT_TYPE_MISMATCH)?;
    // A missing name does not start with a backslash either.
    let name = attributes.name.ok_or(Status::OBJECT_PATH_SYNTAX_BAD)?;

    Ok((name, attributes.inherit))
}

/// `directory` is the status for the path of a directory.
fn read(addr: u64, directory: Status) -> DxgResult<Attributes> {
    let attributes = user::read::<OBJECT_ATTRIBUTES>(addr)?;
    let has = |bit: u32| attributes.Attributes & bit != 0;

    // CAST: 48 bytes.
    invalid_if(attributes.Length != size_of::<OBJECT_ATTRIBUTES>() as u32 || has(!OBJ_KNOWN))?;

    let string = string(attributes.ObjectName)?;

    if attributes.RootDirectory != 0 {
        // There are no handles of directories.
        return Err(match string {
            None => Status::OBJECT_NAME_INVALID,
            Some(_) => Status::INVALID_HANDLE,
        }
        .into());
    }
    if attributes.SecurityDescriptor != 0
        && user::read::<u8>(attributes.SecurityDescriptor)? != SECURITY_DESCRIPTOR_REVISION
    {
        return Err(Status::UNKNOWN_REVISION.into());
    }
    if has(OBJ_PERMANENT) {
        return Err(Status::PRIVILEGE_NOT_HELD.into());
    }

    let name = match string {
        None => None,
        Some(string) => Some(name(&string, directory)?),
    };

    Ok(Attributes {
        inherit: has(OBJ_INHERIT),
        open_if: has(OBJ_OPENIF),
        name,
    })
}

const SECURITY_DESCRIPTOR_REVISION: u8 = 1;

/// Where the units of a name are; `None` for no name or an empty one.
fn string(addr: u64) -> DxgResult<Option<UNICODE_STRING>> {
    if addr == 0 {
        return Ok(None);
    }
    // CAST: widens.
    if addr % align_of::<UNICODE_STRING>() as u64 != 0 {
        return Err(Status::DATATYPE_MISALIGNMENT.into());
    }

    let string = user::read::<UNICODE_STRING>(addr)?;
    let bytes = usize::from(string.Length);

    // CAST: widens.
    if string.Buffer % size_of::<u16>() as u64 != 0 {
        return Err(Status::DATATYPE_MISALIGNMENT.into());
    }
    if bytes % size_of::<u16>() != 0 {
        return Err(Status::OBJECT_NAME_INVALID.into());
    }
    if bytes / size_of::<u16>() > name::MAX_UNITS {
        return Err(Status::NAME_TOO_LONG.into());
    }
    Ok((bytes != 0).then_some(string))
}

/// Copies a name of good length and looks at its path.
fn name(string: &UNICODE_STRING, directory: Status) -> DxgResult<Name> {
    let units = usize::from(string.Length) / size_of::<u16>();
    let mut path = KVec::from_elem(0u16, units, GFP_KERNEL_ACCOUNT)?;

    user::read_slice(string.Buffer, &mut path)?;
    Name::new(path)?.map_err(|refusal| {
        match refusal {
            Refusal::Syntax => Status::OBJECT_PATH_SYNTAX_BAD,
            Refusal::Invalid => Status::OBJECT_NAME_INVALID,
            Refusal::NoDirectory => Status::OBJECT_PATH_NOT_FOUND,
            Refusal::Directory => directory,
        }
        .into()
    })
}
