// SPDX-License-Identifier: GPL-2.0

//! Paths of named objects (RES-38, RES-39).
//!
//! Names are kept in directories, which exist without being made:
//!
//! ```text
//! \BaseNamedObjects                  the directory of session 0
//! \Sessions\<n>\BaseNamedObjects     the directory of session n
//! <directory>\Global                 link to \BaseNamedObjects
//! <directory>\Local                  link to <directory>
//! ```
//!
//! Case does not matter in directories and names. A path leads to a session and the last component;
//! two paths with the same ones are one name.

use super::upcase::upcase;

/// Longest name, in UTF-16 units.
pub const MAX_UNITS: usize = 1024;

const BACKSLASH: u16 = b'\\' as u16; // CAST: widens.

/// Why a path cannot name an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not start with a backslash.
    Syntax,
    /// It has an empty component.
    Invalid,
    /// A directory on the way does not exist.
    NoDirectory,
    /// It is the path of a directory.
    Directory,
}

/// Where a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedName<'a> {
    /// The session whose directory it is in.
    pub session: u32,
    /// The last component, as it was written.
    pub leaf: &'a [u16],
}

/// A directory on the way.
#[derive(Clone, Copy)]
enum Directory {
    Root,
    Sessions,
    Session(u32),
    Names(u32),
}

impl Directory {
    /// The directory that a component leads to from here.
    fn enter(self, component: &[u16]) -> Option<Self> {
        let is = |name| matches(component, name);

        match self {
            Self::Root if is("BaseNamedObjects") => Some(Self::Names(0)),
            Self::Root if is("Sessions") => Some(Self::Sessions),
            Self::Sessions => number(component).map(Self::Session),
            Self::Session(session) if is("BaseNamedObjects") => Some(Self::Names(session)),
            Self::Names(_) if is("Global") => Some(Self::Names(0)),
            Self::Names(session) if is("Local") => Some(Self::Names(session)),
            _ => None,
        }
    }
}

/// Whether a component is this ASCII name, in any case.
fn matches(component: &[u16], name: &str) -> bool {
    component.len() == name.len()
        && Iterator::eq(
            component.iter().map(|unit| upcase(*unit)),
            name.bytes().map(|byte| byte.to_ascii_uppercase().into()),
        )
}

/// The number of a session: decimal, without leading zeros.
fn number(component: &[u16]) -> Option<u32> {
    if matches!(component, [ZERO, _, ..]) {
        return None;
    }
    component.iter().try_fold(0u32, |number, unit| {
        let digit = unit.checked_sub(ZERO).filter(|digit| *digit < 10)?;

        number.checked_mul(10)?.checked_add(digit.into())
    })
}

const ZERO: u16 = b'0' as u16; // CAST: widens.

/// Where a path leads to. Its length is for the caller to check.
pub fn resolve(path: &[u16]) -> Result<ResolvedName<'_>, Refusal> {
    let Some((&BACKSLASH, inner)) = path.split_first() else {
        return Err(Refusal::Syntax);
    };
    let components = || inner.split(|unit| *unit == BACKSLASH);

    // The last component of a path with a trailing backslash is empty, too.
    if components().any(|component| component.is_empty()) {
        return Err(Refusal::Invalid);
    }

    let mut directory = Directory::Root;
    let mut rest = components().peekable();

    while let Some(component) = rest.next() {
        match (directory.enter(component), directory) {
            (Some(next), _) => directory = next,
            (None, Directory::Names(session)) if rest.peek().is_none() => {
                return Ok(ResolvedName {
                    session,
                    leaf: component,
                });
            }
            (None, _) => return Err(Refusal::NoDirectory),
        }
    }
    Err(Refusal::Directory)
}

/// The characters of a name for display. What would spoil a line, or is half a character, becomes
/// U+FFFD.
pub fn characters(units: &[u16]) -> impl Iterator<Item = char> + '_ {
    char::decode_utf16(units.iter().copied()).map(|character| {
        character
            .ok()
            .filter(|character| !character.is_control())
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    })
}
