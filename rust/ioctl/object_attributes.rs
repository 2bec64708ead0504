// SPDX-License-Identifier: GPL-2.0

//! OBJECT_ATTRIBUTES: name and inheritance of an NT handle (RES-38).
//!
//! Every structure is copied once. The checks are in the order of the specification's table; memory
//! is read when its check comes.

use super::call::invalid_if;
use crate::{
    dxgk::share::name::Name,
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        attribute_rules::{
            self,
            bits,
            Refusal, //
        },
        name, //
    },
    sys::user,
    uapi::*, //
};
use kernel::prelude::*;

const _: () = assert!(
    // CAST: a small number.
    attribute_rules::LENGTH as usize == size_of::<OBJECT_ATTRIBUTES>()
        && attribute_rules::STRING_ALIGN as usize == align_of::<UNICODE_STRING>()
        && bits::INHERIT == OBJ_INHERIT
        && bits::PERMANENT == OBJ_PERMANENT
        && bits::OPEN_IF == OBJ_OPENIF
);

impl From<Refusal> for DxgError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid => Status::INVALID_PARAMETER,
            Refusal::Misaligned => Status::DATATYPE_MISALIGNMENT,
            Refusal::Name => Status::OBJECT_NAME_INVALID,
            Refusal::TooLong => Status::NAME_TOO_LONG,
            Refusal::Directory => Status::INVALID_HANDLE,
            Refusal::Revision => Status::UNKNOWN_REVISION,
            Refusal::Permanent => Status::PRIVILEGE_NOT_HELD,
        }
        .into()
    }
}

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
    let given = user::read::<OBJECT_ATTRIBUTES>(addr)?;

    attribute_rules::check_structure(given.Length, given.Attributes, given.ObjectName)?;

    let string = read_string(given.ObjectName)?;

    attribute_rules::check_root(given.RootDirectory != 0, string.is_some())?;
    if given.SecurityDescriptor != 0 {
        attribute_rules::check_revision(user::read(given.SecurityDescriptor)?)?;
    }
    attribute_rules::check_lifetime(given.Attributes)?;
    Ok(Attributes {
        inherit: given.Attributes & bits::INHERIT != 0,
        open_if: given.Attributes & bits::OPEN_IF != 0,
        name: string
            .map(|string| string.read_name(directory))
            .transpose()?,
    })
}

/// Where the units of a name are.
struct NameString {
    units: usize,
    buffer: u64,
}

/// Copies the description of a name; `None` for no name or an empty one.
fn read_string(addr: u64) -> DxgResult<Option<NameString>> {
    if addr == 0 {
        return Ok(None);
    }

    let string = user::read::<UNICODE_STRING>(addr)?;
    let units = attribute_rules::check_string(string.Length, string.Buffer)?;

    Ok((units != 0).then_some(NameString {
        units,
        buffer: string.Buffer,
    }))
}

impl NameString {
    /// Copies the name and looks at its path.
    fn read_name(&self, directory: Status) -> DxgResult<Name> {
        let path = user::read_vec(self.buffer, self.units)?;

        Name::new(path)?.map_err(|refusal| {
            match refusal {
                name::Refusal::Syntax => Status::OBJECT_PATH_SYNTAX_BAD,
                name::Refusal::Invalid => Status::OBJECT_NAME_INVALID,
                name::Refusal::NoDirectory => Status::OBJECT_PATH_NOT_FOUND,
                name::Refusal::Directory => directory,
            }
            .into()
        })
    }
}
