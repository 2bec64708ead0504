// SPDX-License-Identifier: GPL-2.0

//! The kernel's sort.

use super::ffi;

/// Sorts in increasing order, in place. Cannot panic.
///
/// Context: no locks held, because a long list takes long.
pub(crate) fn sort(words: &mut [u32]) {
    // SAFETY: The words are valid for reads and writes.
    unsafe { ffi::dxg_sort(words.as_mut_ptr(), words.len()) }
}

/// The same for pairs, by their first halves and then by their second ones.
pub(crate) fn sort_pairs(pairs: &mut [[u64; 2]]) {
    // SAFETY: The pairs are valid for reads and writes, and have no padding.
    unsafe { ffi::dxg_sort_pairs(pairs.as_mut_ptr(), pairs.len()) }
}
