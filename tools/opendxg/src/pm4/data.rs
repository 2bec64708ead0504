// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that move data.

use super::{halves, opcode, Pm4};

/// WRITE_DATA: to memory, confirmed.
const WRITE_TO_MEMORY: u32 = (5 << 8) | (1 << 20);
/// WRITE_DATA: every word to the same address.
const WRITE_SAME: u32 = 1 << 16;

/// DMA_DATA: wait for it before the next packet.
const DMA_SYNC: u32 = 1 << 31;
/// DMA_DATA: the source is a pattern of the packet.
const DMA_PATTERN: u32 = 2 << 29;
/// DMA_DATA: most bytes of one packet.
const DMA_MOST: u64 = (1 << 26) - 1;
/// DMA_DATA: bytes of one packet where there are several, a whole number of pages.
const DMA_PART: u64 = 1 << 25;

/// COPY_DATA: from memory.
const COPY_MEMORY: u32 = 1;
/// COPY_DATA: a value of the packet.
const COPY_IMMEDIATE: u32 = 5;
/// COPY_DATA: the clock of the GPU.
const COPY_CLOCK: u32 = 9;
/// COPY_DATA: to memory, confirmed.
const COPY_TO_MEMORY: u32 = (5 << 8) | (1 << 20);
/// COPY_DATA: 64 bits instead of 32.
const COPY_64: u32 = 1 << 16;

/// ATOMIC_MEM: again until the comparison holds.
const ATOMIC_LOOP: u32 = 1 << 8;

/// What ATOMIC_MEM does with the 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Atomic {
    /// Replaces them.
    Swap,
    /// Replaces them if they are equal to the comparand.
    CompareSwap,
    /// Adds; wraps at the end.
    Add,
    /// Subtracts.
    Sub,
    /// The larger of both, unsigned.
    Max,
    /// The bits that are set in both.
    And,
    /// The bits that are set in one of both.
    Or,
}

impl Atomic {
    /// Number of the form that returns the value from before.
    fn number(self) -> u32 {
        match self {
            Self::Swap => 0x27,
            Self::CompareSwap => 0x28,
            Self::Add => 0x2f,
            Self::Sub => 0x30,
            Self::Max => 0x34,
            Self::And => 0x35,
            Self::Or => 0x36,
        }
    }
}

impl Pm4 {
    /// WRITE_DATA of words to `address` and what follows it.
    pub fn write(self, address: u64, words: &[u32]) -> Self {
        self.write_data(WRITE_TO_MEMORY, address, words)
    }

    /// WRITE_DATA of words to one address, one after the other.
    pub fn write_same(self, address: u64, words: &[u32]) -> Self {
        self.write_data(WRITE_TO_MEMORY | WRITE_SAME, address, words)
    }

    /// WRITE_DATA of 64 bits, in one store.
    pub fn write64(self, address: u64, value: u64) -> Self {
        self.write(address, &halves(value))
    }

    fn write_data(self, control: u32, address: u64, words: &[u32]) -> Self {
        let [low, high] = halves(address);
        let mut all = vec![control, low, high];
        all.extend_from_slice(words);
        self.packet(opcode::WRITE_DATA, &all)
    }

    /// DMA_DATA from `source` to `destination`, in as many packets as it takes.
    pub fn copy(mut self, destination: u64, source: u64, bytes: u64) -> Self {
        for (offset, bytes) in parts(bytes) {
            self = self.dma(
                DMA_SYNC,
                source.wrapping_add(offset),
                destination.wrapping_add(offset),
                bytes,
            );
        }
        self
    }

    /// DMA_DATA that fills memory with a pattern, in as many packets as it takes.
    pub fn fill(mut self, destination: u64, pattern: u32, bytes: u64) -> Self {
        for (offset, bytes) in parts(bytes) {
            let destination = destination.wrapping_add(offset);
            self = self.dma(DMA_SYNC | DMA_PATTERN, pattern.into(), destination, bytes);
        }
        self
    }

    /// One DMA_DATA with any control word and any last word.
    pub fn dma(self, control: u32, source: u64, destination: u64, last: u32) -> Self {
        let ([from, from_high], [to, to_high]) = (halves(source), halves(destination));
        let words = [control, from, from_high, to, to_high, last];
        self.packet(opcode::DMA_DATA, &words)
    }

    /// COPY_DATA of 32 bits.
    pub fn move32(self, destination: u64, source: u64) -> Self {
        self.copy_data(COPY_MEMORY, source, destination)
    }

    /// COPY_DATA of 64 bits, in one load and one store.
    pub fn move64(self, destination: u64, source: u64) -> Self {
        self.copy_data(COPY_MEMORY | COPY_64, source, destination)
    }

    /// COPY_DATA of a 32-bit value to memory.
    pub fn set32(self, destination: u64, value: u32) -> Self {
        self.copy_data(COPY_IMMEDIATE, value.into(), destination)
    }

    /// COPY_DATA of a 64-bit value to memory, in one store.
    pub fn set64(self, destination: u64, value: u64) -> Self {
        self.copy_data(COPY_IMMEDIATE | COPY_64, value, destination)
    }

    /// COPY_DATA of the clock of the GPU.
    pub fn timestamp(self, destination: u64) -> Self {
        self.copy_data(COPY_CLOCK | COPY_64, 0, destination)
    }

    fn copy_data(self, control: u32, source: u64, destination: u64) -> Self {
        let ([from, from_high], [to, to_high]) = (halves(source), halves(destination));
        let words = [control | COPY_TO_MEMORY, from, from_high, to, to_high];
        self.packet(opcode::COPY_DATA, &words)
    }

    /// ATOMIC_MEM, once. Only [`Atomic::CompareSwap`] looks at `compare`.
    pub fn atomic(self, operation: Atomic, address: u64, source: u64, compare: u64) -> Self {
        self.atomic_mem(operation.number(), address, source, compare)
    }

    /// ATOMIC_MEM with [`Atomic::CompareSwap`], again and again until the memory was equal to
    /// `compare`.
    pub fn compare_swap_loop(self, address: u64, source: u64, compare: u64) -> Self {
        let operation = Atomic::CompareSwap.number() | ATOMIC_LOOP;
        self.atomic_mem(operation, address, source, compare)
    }

    fn atomic_mem(self, operation: u32, address: u64, source: u64, compare: u64) -> Self {
        let [low, high] = halves(address);
        let [source_low, source_high] = halves(source);
        let [compare_low, compare_high] = halves(compare);
        let words = [
            operation,
            low,
            high,
            source_low,
            source_high,
            compare_low,
            compare_high,
            0,
        ];
        self.packet(opcode::ATOMIC_MEM, &words)
    }
}

/// Where the packets of a transfer begin, and their bytes. A transfer of nothing is one packet.
fn parts(bytes: u64) -> impl Iterator<Item = (u64, u32)> {
    let size = if bytes <= DMA_MOST {
        DMA_MOST
    } else {
        DMA_PART
    };
    let count = bytes.div_ceil(size).max(1);
    (0..count).map(move |index| {
        let offset = index * size;
        // At most DMA_MOST.
        (offset, (bytes - offset).min(size) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u64 = 0x1_0000_1000;
    const B: u64 = 0x2_0000_2000;

    #[test]
    fn write_data() {
        assert_eq!(
            Pm4::new().write(A, &[7]).words(),
            [0xc003_3700, 0x0010_0500, 0x1000, 1, 7]
        );
        assert_eq!(
            Pm4::new().write64(A, 0x3_0000_0004).words(),
            [0xc004_3700, 0x0010_0500, 0x1000, 1, 4, 3]
        );
        assert_eq!(Pm4::new().write_same(A, &[7]).words()[1], 0x0011_0500);
    }

    #[test]
    fn dma_data() {
        assert_eq!(
            Pm4::new().copy(A, B, 8).words(),
            [0xc005_5000, 0x8000_0000, 0x2000, 2, 0x1000, 1, 8]
        );
        assert_eq!(
            Pm4::new().fill(A, 0xabcd, 4096).words(),
            [0xc005_5000, 0xc000_0000, 0xabcd, 0, 0x1000, 1, 4096]
        );
    }

    #[test]
    fn long_transfers_are_several_packets() {
        assert_eq!(parts(0).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(parts(DMA_MOST).count(), 1);
        let long: Vec<_> = parts(DMA_MOST + 2).collect();
        assert_eq!(
            long,
            [
                (0, DMA_PART as u32),
                (DMA_PART, DMA_PART as u32),
                (2 * DMA_PART, 1),
            ]
        );
        assert_eq!(Pm4::new().copy(A, B, DMA_MOST + 2).len(), 21);
    }

    #[test]
    fn copy_data() {
        assert_eq!(
            Pm4::new().move64(A, B).words(),
            [0xc004_4000, 0x0011_0501, 0x2000, 2, 0x1000, 1]
        );
        assert_eq!(Pm4::new().move32(A, B).words()[1], 0x0010_0501);
        assert_eq!(
            Pm4::new().set64(A, 0x3_0000_0004).words(),
            [0xc004_4000, 0x0011_0505, 4, 3, 0x1000, 1]
        );
        assert_eq!(Pm4::new().set32(A, 9).words()[1..4], [0x0010_0505, 9, 0]);
        assert_eq!(Pm4::new().timestamp(A).words()[1], 0x0011_0509);
    }

    #[test]
    fn atomic_mem() {
        assert_eq!(
            Pm4::new().atomic(Atomic::Add, A, 0x5_0000_0001, 0).words(),
            [0xc007_1e00, 0x2f, 0x1000, 1, 1, 5, 0, 0, 0]
        );
        assert_eq!(
            Pm4::new().compare_swap_loop(A, 1, 0x2_0000_0003).words(),
            [0xc007_1e00, 0x128, 0x1000, 1, 1, 0, 3, 2, 0]
        );
        let all = [
            Atomic::Swap,
            Atomic::CompareSwap,
            Atomic::Add,
            Atomic::Sub,
            Atomic::Max,
            Atomic::And,
            Atomic::Or,
        ];
        assert_eq!(
            all.map(Atomic::number),
            [0x27, 0x28, 0x2f, 0x30, 0x34, 0x35, 0x36]
        );
    }
}
