// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that decide what is executed, and when.

use super::{halves, opcode, Pm4, WORD};

/// INDIRECT_BUFFER: the third word is meant.
const VALID: u32 = 1 << 23;
/// INDIRECT_BUFFER: does not come back.
const CHAIN: u32 = 1 << 20;
/// INDIRECT_BUFFER: most words of the buffer.
const MOST_WORDS: u32 = (1 << 20) - 1;
/// WAIT_REG_MEM: in memory.
const IN_MEMORY: u32 = 1 << 4;

/// How memory is compared with a reference, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Whatever it is.
    Always,
    /// Memory is less.
    Less,
    /// Memory is less or equal.
    LessOrEqual,
    /// Both are equal.
    Equal,
    /// They differ.
    NotEqual,
    /// Memory is greater or equal.
    GreaterOrEqual,
    /// Memory is greater.
    Greater,
}

impl Compare {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Always,
        Self::Less,
        Self::LessOrEqual,
        Self::Equal,
        Self::NotEqual,
        Self::GreaterOrEqual,
        Self::Greater,
    ];

    /// The number in a packet.
    fn number(self) -> u32 {
        match self {
            Self::Always => 0,
            Self::Less => 1,
            Self::LessOrEqual => 2,
            Self::Equal => 3,
            Self::NotEqual => 4,
            Self::GreaterOrEqual => 5,
            Self::Greater => 6,
        }
    }

    /// Whether memory satisfies it.
    pub fn holds(self, memory: u64, reference: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Less => memory < reference,
            Self::LessOrEqual => memory <= reference,
            Self::Equal => memory == reference,
            Self::NotEqual => memory != reference,
            Self::GreaterOrEqual => memory >= reference,
            Self::Greater => memory > reference,
        }
    }
}

impl Pm4 {
    /// INDIRECT_BUFFER: executes so many bytes at `address`, then what follows.
    ///
    /// # Panics
    ///
    /// If the length is not a number of words, or too many for a packet.
    pub fn indirect(self, address: u64, bytes: u64) -> Self {
        self.indirect_buffer(address, words_of(bytes) | VALID)
    }

    /// INDIRECT_BUFFER that continues at `address`, for so many bytes, and does not come back.
    ///
    /// # Panics
    ///
    /// As [`indirect`](Self::indirect).
    pub fn chain(self, address: u64, bytes: u64) -> Self {
        self.indirect_buffer(address, words_of(bytes) | VALID | CHAIN)
    }

    fn indirect_buffer(self, address: u64, last: u32) -> Self {
        let [low, high] = halves(address);
        self.packet(opcode::INDIRECT_BUFFER, &[low, high, last])
    }

    /// WAIT_REG_MEM: waits until the bits of `mask` in the 32 bits at `address` compare with
    /// `reference`.
    pub fn wait32(self, address: u64, compare: Compare, reference: u32, mask: u32) -> Self {
        let [low, high] = halves(address);
        let control = IN_MEMORY | compare.number();
        let words = [control, low, high, reference, mask, 0];
        self.packet(opcode::WAIT_REG_MEM, &words)
    }

    /// WAIT_REG_MEM64: the same with 64 bits.
    pub fn wait64(self, address: u64, compare: Compare, reference: u64, mask: u64) -> Self {
        let [low, high] = halves(address);
        let [reference_low, reference_high] = halves(reference);
        let [mask_low, mask_high] = halves(mask);
        let words = [
            IN_MEMORY | compare.number(),
            low,
            high,
            reference_low,
            reference_high,
            mask_low,
            mask_high,
            0,
        ];
        self.packet(opcode::WAIT_REG_MEM64, &words)
    }

    /// COND_EXEC: skips the next `words` words if the 32 bits at `address` are 0.
    pub fn skip_if_zero(self, address: u64, words: u32) -> Self {
        let [low, high] = halves(address);
        self.packet(opcode::COND_EXEC, &[low, high, 0, words])
    }
}

/// The words of a buffer of so many bytes.
fn words_of(bytes: u64) -> u32 {
    assert_eq!(bytes % WORD, 0, "bytes of an indirect buffer");
    let words = u32::try_from(bytes / WORD).unwrap_or(u32::MAX);
    assert!(words <= MOST_WORDS, "length of an indirect buffer");
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u64 = 0x1_0000_1000;

    #[test]
    fn indirect_buffer() {
        assert_eq!(
            Pm4::new().indirect(A, 64).words(),
            [0xc002_3f00, 0x1000, 1, 0x0080_0010]
        );
        assert_eq!(Pm4::new().chain(A, 0).words()[3], 0x0090_0000);
    }

    #[test]
    #[should_panic(expected = "length of an indirect buffer")]
    fn an_indirect_buffer_has_a_limit() {
        let _ = Pm4::new().indirect(A, 4 << 20);
    }

    #[test]
    fn waits() {
        assert_eq!(
            Pm4::new().wait32(A, Compare::Equal, 5, 0xff).words(),
            [0xc005_3c00, 0x13, 0x1000, 1, 5, 0xff, 0]
        );
        let wait = Pm4::new().wait64(A, Compare::GreaterOrEqual, 0x2_0000_0003, u64::MAX);
        assert_eq!(
            wait.words(),
            [0xc007_9300, 0x15, 0x1000, 1, 3, 2, u32::MAX, u32::MAX, 0]
        );
    }

    #[test]
    fn comparisons() {
        for (number, compare) in (0..).zip(Compare::ALL) {
            assert_eq!(compare.number(), number);
        }
        let holds = |memory| Compare::ALL.map(|compare| compare.holds(memory, 5));
        assert_eq!(holds(4), [true, true, true, false, true, false, false]);
        assert_eq!(holds(5), [true, false, true, true, false, true, false]);
        assert_eq!(holds(6), [true, false, false, false, true, true, true]);
    }

    #[test]
    fn conditional_execution() {
        assert_eq!(
            Pm4::new().skip_if_zero(A, 6).words(),
            [0xc003_2200, 0x1000, 1, 0, 6]
        );
    }
}
