// SPDX-License-Identifier: GPL-2.0

//! Who may open an object by its name (RES-43, RES-45).
//!
//! A name has an owner and a mode like a file: for the owner, for the owner's group, and for
//! others. Only `r` and `w` have a meaning. `r` grants READ_CONTROL, WAIT and SYNCHRONIZE; `w`
//! grants the other rights. A caller without `r` does not learn from a refusal that the name
//! exists.

use super::{
    access::{
        Type,
        Wanted,
        READ_CONTROL, //
    },
    Invalid, //
};

/// The mode of a name whose owner gave none.
pub const PRIVATE: u32 = 0o600;

const ALL: u32 = 0o666;
const READ: u32 = 0o4;
const WRITE: u32 = 0o2;

/// Whether a mode has no bits without a meaning.
pub fn is_valid(mode: u32) -> bool {
    mode & !ALL == 0
}

/// What a call that opens a name asks for; `None` is no access at all, which is refused once the
/// name is found (RES-43).
pub fn wanted(ty: Type, desired: u32) -> Result<Option<Wanted>, Invalid> {
    match desired {
        0 => Ok(None),
        _ => Wanted::new(ty, desired).map(Some).ok_or(Invalid),
    }
}

/// How an opener relates to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeClass {
    /// The user who gave it.
    Owner,
    /// A member of the group of that user.
    Group,
    /// Any other user.
    Other,
    /// A caller that overrides the mode.
    Privileged,
}

/// What decides about opening a name.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// What is behind the name.
    pub ty: Type,
    /// Permission bits.
    pub mode: u32,
    /// The most rights that an open gets (RES-104).
    pub may: u32,
}

/// Why a name is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The opener must not learn that it exists.
    Hidden,
    /// It is of the other type.
    Mismatch,
    /// A right is not granted.
    Denied,
}

impl Rule {
    /// The rights that a class has.
    fn rights(&self, class: ModeClass) -> u32 {
        let bits = match class {
            ModeClass::Owner => self.mode >> 6,
            ModeClass::Group => self.mode >> 3,
            ModeClass::Other => self.mode,
            ModeClass::Privileged => READ | WRITE,
        };
        let granted = |bit, rights| if bits & bit != 0 { rights } else { 0 };
        let (read, all) = (self.ty.read(), self.ty.all());

        (self.may | READ_CONTROL) & (granted(READ, read) | granted(WRITE, all & !read))
    }

    /// The access that an opener of this class gets for what it has [`wanted`].
    pub fn open(&self, class: ModeClass, ty: Type, wanted: Option<Wanted>) -> Result<u32, Refusal> {
        let rights = self.rights(class);
        let refuse = |why| {
            if rights & READ_CONTROL != 0 {
                why
            } else {
                Refusal::Hidden
            }
        };

        if rights == 0 || self.ty != ty {
            return Err(refuse(Refusal::Mismatch));
        }
        wanted
            .filter(|wanted| wanted.is_part_of(rights))
            .and_then(|wanted| wanted.within(rights))
            .ok_or(refuse(Refusal::Denied))
    }
}
