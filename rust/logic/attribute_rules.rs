// SPDX-License-Identifier: GPL-2.0

//! What OBJECT_ATTRIBUTES are refused for, in the order of RES-38. The functions are in this order;
//! between them the caller's memory is copied, which may fail with a status of its own. The path of
//! the name comes last, see [`super::name`].

use super::name::MAX_UNITS;

/// Bytes of the structure.
pub const LENGTH: u32 = 48;
/// Alignment of the description of the name.
pub const STRING_ALIGN: u64 = 8;

const UNIT: u64 = 2;
const REVISION: u8 = 1;

/// Attribute bits.
pub mod bits {
    /// The descriptor stays open across exec.
    pub const INHERIT: u32 = 0x2;
    /// Objects that outlive their handles do not exist.
    pub const PERMANENT: u32 = 0x10;
    /// An existing object of the name is opened.
    pub const OPEN_IF: u32 = 0x80;
    /// Every bit that exists.
    pub const KNOWN: u32 = 0x1ff2;
}

/// Why they are refused. Each is a status of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// INVALID_PARAMETER.
    Invalid,
    /// DATATYPE_MISALIGNMENT.
    Misaligned,
    /// OBJECT_NAME_INVALID.
    Name,
    /// NAME_TOO_LONG.
    TooLong,
    /// INVALID_HANDLE: there are no handles of directories.
    Directory,
    /// UNKNOWN_REVISION.
    Revision,
    /// PRIVILEGE_NOT_HELD.
    Permanent,
}

fn refuse_if(refused: bool, refusal: Refusal) -> Result<(), Refusal> {
    if refused {
        Err(refusal)
    } else {
        Ok(())
    }
}

/// The structure by itself: its length, its attribute bits, and where the name is described.
pub fn check_structure(length: u32, attributes: u32, name: u64) -> Result<(), Refusal> {
    refuse_if(
        length != LENGTH || attributes & !bits::KNOWN != 0,
        Refusal::Invalid,
    )?;
    refuse_if(name % STRING_ALIGN != 0, Refusal::Misaligned)
}

/// The description of the name: how many units it has; 0 is no name.
pub fn check_string(bytes: u16, buffer: u64) -> Result<usize, Refusal> {
    let bytes = usize::from(bytes);

    refuse_if(buffer % UNIT != 0, Refusal::Misaligned)?;
    refuse_if(bytes % size_of::<u16>() != 0, Refusal::Name)?;

    let units = bytes / size_of::<u16>();

    refuse_if(units > MAX_UNITS, Refusal::TooLong)?;
    Ok(units)
}

/// The directory that the name starts from.
pub fn check_root(has_root: bool, has_name: bool) -> Result<(), Refusal> {
    match (has_root, has_name) {
        (false, _) => Ok(()),
        (true, false) => Err(Refusal::Name),
        (true, true) => Err(Refusal::Directory),
    }
}

/// The security descriptor, by its first byte.
pub fn check_revision(revision: u8) -> Result<(), Refusal> {
    refuse_if(revision != REVISION, Refusal::Revision)
}

/// What the attributes ask for.
pub fn check_lifetime(attributes: u32) -> Result<(), Refusal> {
    refuse_if(attributes & bits::PERMANENT != 0, Refusal::Permanent)
}
