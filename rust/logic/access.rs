// SPDX-License-Identifier: GPL-2.0

//! Access masks of NT handles (RES-35, RES-36, RES-104).

use super::sync_flags::Rights;

/// Waiting on a synchronisation object.
pub const WAIT: u32 = 0x1;
/// Signalling a synchronisation object.
pub const SIGNAL: u32 = 0x2;
/// Reading what the object is.
pub const READ_CONTROL: u32 = 0x2_0000;
/// Every standard and specific right of a synchronisation object.
pub const ALL: u32 = 0x1F_0003;

/// Resources.
pub mod resource {
    /// Writing the contents and the information store.
    pub const WRITE: u32 = 0x1;
    /// Every standard and specific right of a resource.
    pub const ALL: u32 = 0xF_0001;
}

/// Sets of a resource with a synchronisation object. The mask is that of a resource: every handle
/// may wait, and one with WRITE may also signal.
pub mod set {
    use super::*;

    /// The access to the synchronisation object that this access to the set gives.
    pub fn sync_access(access: u32) -> u32 {
        match access & resource::WRITE {
            0 => READ_CONTROL | WAIT,
            _ => ALL,
        }
    }

    /// The most access to a set that a sharer with this access to its synchronisation object may
    /// grant; `None` if even waiting would be too much (RES-104).
    pub fn bound(sync: u32) -> Option<u32> {
        let write = match sync & SIGNAL {
            0 => 0,
            _ => resource::WRITE,
        };

        (sync & WAIT != 0).then_some((sync & resource::ALL & !resource::WRITE) | write)
    }
}

const SYNCHRONIZE: u32 = 0x10_0000;
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_READ: u32 = 0x8000_0000;

/// The type of an NT handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A resource, alone or with a keyed mutex and a synchronisation object.
    Resource,
    /// A synchronisation object.
    SyncObject,
}

impl Type {
    /// Every right there is.
    pub fn all(self) -> u32 {
        match self {
            Self::Resource => resource::ALL,
            Self::SyncObject => ALL,
        }
    }

    /// The right to change what others see: contents, value and information store (RES-64).
    pub fn write(self) -> u32 {
        match self {
            Self::Resource => resource::WRITE,
            Self::SyncObject => SIGNAL,
        }
    }

    /// The rights that allow no change.
    pub fn read(self) -> u32 {
        match self {
            Self::Resource => READ_CONTROL,
            Self::SyncObject => READ_CONTROL | SYNCHRONIZE | WAIT,
        }
    }
}

/// An access that was asked for, with only known bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    rights: u32,
    /// Also every right that can be granted.
    maximum: bool,
}

impl Wanted {
    /// Maps the generic rights; `None` for unknown bits. The standard rights are known for both
    /// types; SYNCHRONIZE means nothing on a resource and is dropped (RES-36).
    pub fn new(ty: Type, desired: u32) -> Option<Self> {
        let read = match ty {
            Type::Resource => 0,
            Type::SyncObject => WAIT,
        };
        let generic = [
            (GENERIC_ALL, ty.all()),
            (GENERIC_READ, READ_CONTROL | read),
            (GENERIC_WRITE, READ_CONTROL | ty.write()),
            (GENERIC_EXECUTE, READ_CONTROL),
        ];
        let mut rights = 0;
        let mut left = desired & !MAXIMUM_ALLOWED;

        for (bit, stands_for) in generic {
            if desired & bit != 0 {
                rights |= stands_for;
                left &= !bit;
            }
        }
        (left & !(ty.all() | SYNCHRONIZE) == 0).then_some(Self {
            rights: (rights | left) & ty.all(),
            maximum: desired & MAXIMUM_ALLOWED != 0,
        })
    }

    /// Whether every right asked for is one of `rights`.
    pub fn is_part_of(self, rights: u32) -> bool {
        self.rights & !rights == 0
    }

    /// What is granted if `may` is the most there is to give; `None` if more is wanted (RES-104).
    ///
    /// Every handle can at least be asked what it is.
    pub fn within(self, may: u32) -> Option<u32> {
        let more = if self.maximum { may } else { 0 };

        self.is_part_of(may | READ_CONTROL)
            .then_some(self.rights | READ_CONTROL | more)
    }
}

/// What a local handle may do that is opened from an NT handle with this access.
pub fn rights(access: u32) -> Rights {
    Rights {
        wait: access & WAIT != 0,
        signal: access & SIGNAL != 0,
    }
}
