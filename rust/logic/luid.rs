// SPDX-License-Identifier: GPL-2.0

//! LUIDs: the system-wide names of adapters.
//!
//! Each kind of adapter has numbers of its own, from 0. A LUID is made of the kind and the number,
//! and of nothing else. So the first adapter of a kind has the same LUID at every load, whatever
//! other kinds there are and in whatever order adapters arrive.

use crate::ddi::caps::Luid;

/// What adapters are counted by. It is given when an adapter is added; nothing else depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AdapterKind {
    /// A software adapter.
    Software = 0,
    /// One that a KUnit or host test drives (`kmd/fake`).
    #[cfg(any(test, CONFIG_KUNIT = "y"))]
    TestDouble = 1,
}

impl AdapterKind {
    /// How many kinds there may be.
    pub const COUNT: usize = 2;

    /// The number that an adapter has among those of all kinds.
    pub fn id_of(self, index: u32) -> u64 {
        // CAST: the number of the variant.
        (u64::from(self as u32) << 32) | u64::from(index)
    }
}

/// The upper half of the low part of the LUIDs of software adapters; the other kinds follow. It is
/// our own choice and only has to stay the same.
const BASE: u32 = 0x0d9a;

/// The LUID of the adapter of this kind with this number.
pub fn luid_of(kind: AdapterKind, index: u32) -> Luid {
    // CAST: the number of the variant. OVERFLOW: there are few kinds.
    let base = BASE.wrapping_add(kind as u32);

    Luid {
        low: (base << 16) | (index & 0xffff),
        // CAST: 16 bits.
        high: (index >> 16) as i32,
    }
}
