// SPDX-License-Identifier: MIT OR Apache-2.0
//! What chance chose. A program keeps the bytes from which its values were made: the same bytes
//! make the same values, and a changed byte changes one of them.

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
