// SPDX-License-Identifier: MIT OR Apache-2.0
//! Argument structs filled with a pattern, to see what a call wrote.

use opendxg::raw::Argument;

/// The pattern, as a word.
pub const POISON: u32 = 0x1ead_beed;

/// A struct filled with [`POISON`].
pub fn poisoned<T: Argument>() -> T {
    let mut value = T::zeroed();
    for (index, byte) in bytes_mut(&mut value).iter_mut().enumerate() {
        *byte = POISON.to_ne_bytes()[index % 4];
    }
    value
}

/// The bytes of an argument struct.
pub fn bytes<T: Argument>(value: &T) -> &[u8] {
    let start = (&raw const *value).cast();
    // SAFETY: the memory of a live struct of integers; none of them has implicit padding.
    unsafe { core::slice::from_raw_parts(start, size_of::<T>()) }
}

/// The bytes of an argument struct, to be written.
pub fn bytes_mut<T: Argument>(value: &mut T) -> &mut [u8] {
    let start = (&raw mut *value).cast();
    // SAFETY: as in `bytes`; every pattern of bytes is a valid value.
    unsafe { core::slice::from_raw_parts_mut(start, size_of::<T>()) }
}
