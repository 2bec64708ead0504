// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command buffers: the packets that the software GPU executes.
//!
//! A packet is a header and a number of 32-bit words. [`Pm4`] collects packets; its words, little
//! endian, are what a submission points to. A buffer has no packet that ends it: its length does.
//!
//! ```
//! use opendxg::pm4::{Compare, Pm4};
//!
//! let (texture, ready) = (0x1_0000_0000, 0x2_0000_0000);
//! let commands = Pm4::new()
//!     .wait64(ready, Compare::GreaterOrEqual, 1, u64::MAX)
//!     .fill(texture, 0xff80_8080, 4096)
//!     .write64(ready, 2);
//! assert_eq!(commands.len(), 9 + 7 + 6);
//! ```
//!
//! Addresses are those of the GPU ([`PagingQueue::map`](crate::PagingQueue::map)). What the GPU
//! refuses (a misaligned address, a range that is not mapped) it finds when it executes the packet:
//! then the device is in error. So everything can be put into a buffer here, and
//! [`packet`](Pm4::packet) takes any words at all.

mod data;
mod decode;
mod fence;
mod flow;

pub use data::Atomic;
pub use decode::{name, packets, Packet};
pub use fence::{Data, Interrupt, Log};
pub use flow::Compare;

/// Numbers of the packets.
pub mod opcode {
    /// Does nothing.
    pub const NOP: u8 = 0x10;
    /// Reads, changes and writes 64 bits.
    pub const ATOMIC_MEM: u8 = 0x1e;
    /// Skips what follows unless a word is set.
    pub const COND_EXEC: u8 = 0x22;
    /// Writes words of the packet to memory.
    pub const WRITE_DATA: u8 = 0x37;
    /// Waits until 32 bits of memory satisfy a condition.
    pub const WAIT_REG_MEM: u8 = 0x3c;
    /// Executes another buffer.
    pub const INDIRECT_BUFFER: u8 = 0x3f;
    /// Moves 32 or 64 bits.
    pub const COPY_DATA: u8 = 0x40;
    /// Waits for what came before, then writes and interrupts.
    pub const RELEASE_MEM: u8 = 0x49;
    /// Copies or fills memory.
    pub const DMA_DATA: u8 = 0x50;
    /// A full barrier.
    pub const ACQUIRE_MEM: u8 = 0x58;
    /// Waits until 64 bits of memory satisfy a condition.
    pub const WAIT_REG_MEM64: u8 = 0x93;
    /// Drops translations of addresses; only on the paging node.
    pub const INVALIDATE_TLBS: u8 = 0x98;
    /// Signals a native fence.
    pub const SIGNAL_FENCE: u8 = 0xe0;
    /// Waits for a native fence.
    pub const WAIT_FENCE: u8 = 0xe1;
    /// Writes an entry of a log.
    pub const WRITE_LOG: u8 = 0xe2;
    /// Reports a trap to the driver.
    pub const TRAP: u8 = 0xe3;
    /// Takes up time.
    pub const DELAY: u8 = 0xe4;
    /// Writes entries of page tables; only on the paging node.
    pub const PT_WRITE: u8 = 0xe5;
}

/// A packet of type 3.
const TYPE_3: u32 = 3 << 30;
/// The packet of one word that does nothing and is not of type 3.
const FILLER: u32 = 2 << 30;
/// The count that stands for a NOP without further words.
const HEADER_ONLY: u32 = 0x3fff;
/// Most words that may follow the header.
const MOST_WORDS: usize = 0x3fff;
/// Bytes of a word.
const WORD: u64 = 4;

/// The header of a packet with `words` words after it.
///
/// # Panics
///
/// If there is none, or there are more than a header can count: 16383.
pub const fn header(opcode: u8, words: usize) -> u32 {
    assert!(words >= 1 && words <= MOST_WORDS, "words of a packet");
    // The check above makes it fit.
    TYPE_3 | ((words as u32 - 1) << 16) | ((opcode as u32) << 8)
}

/// The low and the high half.
fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// A buffer of packets in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Pm4 {
    words: Vec<u32>,
}

impl Pm4 {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// What a command buffer holds, in order.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The bytes, as they have to be in memory.
    pub fn bytes(&self) -> Vec<u8> {
        let words = self.words.iter();
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Appends a word as it is, which need not be part of a packet.
    pub fn word(mut self, word: u32) -> Self {
        self.words.push(word);
        self
    }

    /// Appends the packets of another buffer.
    pub fn append(mut self, other: &Self) -> Self {
        self.words.extend_from_slice(&other.words);
        self
    }

    /// Appends a packet with any number and any words.
    ///
    /// # Panics
    ///
    /// As [`header`].
    pub fn packet(mut self, opcode: u8, words: &[u32]) -> Self {
        self.words.push(header(opcode, words.len()));
        self.words.extend_from_slice(words);
        self
    }

    /// NOP with so many words after the header, all 0.
    ///
    /// # Panics
    ///
    /// For more than 16382 words: the next count means none.
    pub fn nop(self, words: usize) -> Self {
        assert!(words < MOST_WORDS, "words of a NOP");
        match words {
            0 => self.word(TYPE_3 | (HEADER_ONLY << 16) | (u32::from(opcode::NOP) << 8)),
            words => self.packet(opcode::NOP, &vec![0; words]),
        }
    }

    /// NOPs of one word until there are so many words.
    pub fn pad_to(mut self, words: usize) -> Self {
        while self.len() < words {
            self = self.nop(0);
        }
        self
    }

    /// A packet of type 2: one word that does nothing.
    pub fn filler(self) -> Self {
        self.word(FILLER)
    }

    /// ODX_DELAY: takes up so many steps of the engine.
    pub fn delay(self, steps: u32) -> Self {
        self.packet(opcode::DELAY, &[steps])
    }

    /// ODX_TRAP: reports a record to the driver.
    pub fn trap(self, class: u32, argument: u64) -> Self {
        let [low, high] = halves(argument);
        self.packet(opcode::TRAP, &[class, low, high, 0])
    }

    /// INVALIDATE_TLBS of one address space, or of all with 0xffff.
    pub fn invalidate_tlbs(self, space: u16) -> Self {
        self.packet(opcode::INVALIDATE_TLBS, &[u32::from(space) << 5])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_33_headers_of_the_specification() {
        assert_eq!(header(opcode::DMA_DATA, 6), 0xc005_5000);
        assert_eq!(Pm4::new().nop(0).words(), [0xffff_1000]);
    }

    #[test]
    fn gpu_34_a_filler_is_one_word() {
        assert_eq!(Pm4::new().filler().words(), [0x8000_0000]);
    }

    #[test]
    fn gpu_35_a_nop_skips_its_words() {
        assert_eq!(Pm4::new().nop(2).words(), [0xc001_1000, 0, 0]);
        let most = Pm4::new().nop(MOST_WORDS - 1);
        assert_eq!(most.words()[0], 0xfffd_1000);
        assert_eq!(most.len(), MOST_WORDS);
    }

    #[test]
    #[should_panic(expected = "words of a NOP")]
    fn gpu_35_a_nop_has_a_limit() {
        let _ = Pm4::new().nop(MOST_WORDS);
    }

    #[test]
    #[should_panic(expected = "words of a packet")]
    fn a_packet_has_words() {
        let _ = Pm4::new().packet(opcode::DELAY, &[]);
    }

    #[test]
    fn padding_and_bytes() {
        let commands = Pm4::new().delay(7).pad_to(1024);
        assert_eq!(commands.len(), 1024);
        assert_eq!(commands.words()[..3], [0xc000_e400, 7, 0xffff_1000]);
        let bytes = commands.bytes();
        assert_eq!(bytes.len(), 4096);
        assert_eq!(bytes[..4], [0, 0xe4, 0, 0xc0]);
    }

    #[test]
    fn the_rest() {
        let trap = Pm4::new().trap(3, 0x1_0000_0002);
        assert_eq!(trap.words(), [0xc003_e300, 3, 2, 1, 0]);
        let invalidate = Pm4::new().invalidate_tlbs(0xffff);
        assert_eq!(invalidate.words(), [0xc000_9800, 0x001f_ffe0]);
        let two = Pm4::new().word(1).append(&Pm4::new().word(2));
        assert_eq!(two.words(), [1, 2]);
        assert!(Pm4::new().is_empty() && !two.is_empty());
    }
}
