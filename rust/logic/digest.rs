// SPDX-License-Identifier: GPL-2.0

//! A digest of numbers (FNV-1a over whole words), to recognise a list without keeping it. It does
//! not resist an attacker.

/// A digest of the numbers so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// The digest of no numbers.
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a number.
    #[must_use]
    pub fn with(self, number: u64) -> Self {
        let mixed = (self.0 ^ number).wrapping_mul(0x0000_0100_0000_01b3);

        // The upper half of a number must count as much as the lower one.
        Self(mixed ^ (mixed >> 32))
    }

    /// The value.
    pub fn get(self) -> u64 {
        self.0
    }
}
