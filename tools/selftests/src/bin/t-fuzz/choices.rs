// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chance, and what it chose. A program keeps the bytes from which its values were made: the same
//! bytes make the same values, and a changed byte changes one of them.

/// Numbers by chance: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    /// One of so many, of which there has to be one.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// Whether one in so many times came.
    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// The bytes of one call, read from the front. Where they end they are 0, which is the plainest
/// choice everywhere.
pub(crate) struct Choices<'bytes> {
    rest: &'bytes [u8],
}

impl<'bytes> Choices<'bytes> {
    pub(crate) fn new(bytes: &'bytes [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => 0,
        }
    }

    /// One of so many. 0 is chosen more often than the others if they are not a power of two.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let wide = count > 256;
        let number = usize::from(self.byte())
            | if wide {
                usize::from(self.byte()) << 8
            } else {
                0
            };
        number % count.max(1)
    }

    /// Whether something happens that happens in so many of 256 times.
    pub(crate) fn rarely(&mut self, times: u8) -> bool {
        self.byte() > u8::MAX - times
    }

    pub(crate) fn word(&mut self) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|_| self.byte()))
    }
}
