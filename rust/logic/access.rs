// SPDX-License-Identifier: GPL-2.0

//! Access masks of NT handles to synchronisation objects (RES-35, RES-36).

use super::sync_flags::Rights;

/// Waiting on the object.
pub const WAIT: u32 = 0x1;
/// Signalling the object.
pub const SIGNAL: u32 = 0x2;
/// Reading what the object is.
pub const READ_CONTROL: u32 = 0x2_0000;
/// Every standard and specific right of a synchronisation object.
pub const ALL: u32 = 0x1F_0003;

const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_READ: u32 = 0x8000_0000;

/// What is granted for a desired access; `None` for unknown bits.
///
/// Every handle can at least be asked what it is.
pub fn grant(desired: u32) -> Option<u32> {
    let generic = [
        (GENERIC_ALL | MAXIMUM_ALLOWED, ALL),
        (GENERIC_READ, READ_CONTROL | WAIT),
        (GENERIC_WRITE, READ_CONTROL | SIGNAL),
        (GENERIC_EXECUTE, READ_CONTROL),
    ];
    let mut granted = READ_CONTROL;
    let mut left = desired;

    for (bits, rights) in generic {
        if desired & bits != 0 {
            granted |= rights;
            left &= !bits;
        }
    }
    (left & !ALL == 0).then_some(granted | left)
}

/// Whether `access` asks for no right to the object that `may` lacks (RES-104): access never grows on
/// the way from handle to handle.
pub fn is_part_of(access: u32, may: u32) -> bool {
    access & (WAIT | SIGNAL) & !may == 0
}

/// What a local handle may do that is opened from an NT handle with this access.
pub fn rights(access: u32) -> Rights {
    Rights {
        wait: access & WAIT != 0,
        signal: access & SIGNAL != 0,
    }
}
