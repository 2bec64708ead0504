// SPDX-License-Identifier: MIT OR Apache-2.0

//! Command buffers for tests, written from the specification and not from the decoder.

/// The header of a packet with so many dwords behind it.
pub fn header(opcode: u32, dwords: usize) -> u32 {
    let count = u32::try_from(dwords).unwrap().checked_sub(1).unwrap();

    assert!(count < 1 << 14);
    (3 << 30) | (count << 16) | (opcode << 8)
}

/// A packet.
pub fn packet(opcode: u32, payload: &[u32]) -> Vec<u32> {
    [&[header(opcode, payload.len())], payload].concat()
}

fn low(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

/// WAIT_REG_MEM functions.
pub const EQUAL: u32 = 3;
pub const GREATER_OR_EQUAL: u32 = 5;

/// RELEASE_MEM.
pub const DATA_NONE: u32 = 0;
pub const DATA_LOW: u32 = 1;
pub const DATA_QWORD: u32 = 2;
pub const DATA_CLOCK: u32 = 3;

/// INDIRECT_BUFFER: VALID and CHAIN.
pub const VALID: u32 = 1 << 23;
pub const CHAIN: u32 = 1 << 20;

/// DMA_DATA, sixth dword: SAIC and DAIC.
pub const SOURCE_FIXED: u32 = 1 << 28;
pub const TARGET_FIXED: u32 = 1 << 29;

/// Packets one after the other.
#[derive(Clone, Debug, Default)]
pub struct Program(pub Vec<u32>);

impl Program {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn dwords(mut self, dwords: &[u32]) -> Self {
        self.0.extend(dwords);
        self
    }

    fn packet(self, opcode: u32, payload: &[u32]) -> Self {
        self.dwords(&packet(opcode, payload))
    }

    pub fn write(self, to: u64, data: &[u32]) -> Self {
        self.packet(0x37, &[&[2 << 8, low(to), high(to)], data].concat())
    }

    /// WRITE_DATA of all dwords to the same address.
    pub fn write_fixed(self, to: u64, data: &[u32]) -> Self {
        self.packet(
            0x37,
            &[&[(5 << 8) | (1 << 16), low(to), high(to)], data].concat(),
        )
    }

    pub fn write64(self, to: u64, value: u64) -> Self {
        self.write(to, &[low(value), high(value)])
    }

    pub fn copy(self, from: u64, to: u64, bytes: u32) -> Self {
        self.copy_with(from, to, bytes, 0)
    }

    /// DMA_DATA with these bits beside BYTE_COUNT.
    pub fn copy_with(self, from: u64, to: u64, bytes: u32, flags: u32) -> Self {
        self.packet(
            0x50,
            &[
                1 << 31,
                low(from),
                high(from),
                low(to),
                high(to),
                bytes | flags,
            ],
        )
    }

    pub fn fill(self, to: u64, pattern: u32, bytes: u32) -> Self {
        self.fill_with(to, pattern, bytes, 0)
    }

    pub fn fill_with(self, to: u64, pattern: u32, bytes: u32, flags: u32) -> Self {
        self.packet(
            0x50,
            &[
                2 << 29,
                pattern,
                0xdead_beef,
                low(to),
                high(to),
                bytes | flags,
            ],
        )
    }

    /// COPY_DATA between two places in memory.
    pub fn move_word(self, from: u64, to: u64, is_qword: bool) -> Self {
        let wide = u32::from(is_qword) << 16;

        self.packet(
            0x40,
            &[
                1 | (2 << 8) | wide,
                low(from),
                high(from),
                low(to),
                high(to),
            ],
        )
    }

    /// COPY_DATA of a value in the packet.
    pub fn store_word(self, value: u64, to: u64, is_qword: bool) -> Self {
        let wide = u32::from(is_qword) << 16;

        self.packet(
            0x40,
            &[
                5 | (5 << 8) | wide,
                low(value),
                high(value),
                low(to),
                high(to),
            ],
        )
    }

    /// COPY_DATA of the clock.
    pub fn store_clock(self, to: u64, is_qword: bool) -> Self {
        let wide = u32::from(is_qword) << 16;

        self.packet(0x40, &[9 | (2 << 8) | wide, 0, 0, low(to), high(to)])
    }

    pub fn wait(self, va: u64, function: u32, reference: u32, mask: u32, interval: u32) -> Self {
        self.packet(
            0x3c,
            &[
                function | (1 << 4),
                low(va),
                high(va),
                reference,
                mask,
                interval,
            ],
        )
    }

    pub fn wait64(self, va: u64, function: u32, reference: u64, mask: u64, interval: u32) -> Self {
        self.packet(
            0x93,
            &[
                function | (1 << 4),
                low(va),
                high(va),
                low(reference),
                high(reference),
                low(mask),
                high(mask),
                interval,
            ],
        )
    }

    /// ODX_SIGNAL_FENCE, with flags.
    pub fn signal_fence(self, flags: u32, va: u64, value: u64) -> Self {
        self.fence(0xe0, flags, [va, value], [0, !0])
    }

    /// The same with an entry of the log: the handle of the fence, and the place of the entry.
    pub fn logged_signal(self, va: u64, value: u64, entry: [u32; 2]) -> Self {
        self.fence(0xe0, 1, [va, value], entry)
    }

    /// ODX_WAIT_FENCE.
    pub fn wait_fence(self, va: u64, value: u64) -> Self {
        self.fence(0xe1, 0, [va, value], [0, !0])
    }

    /// The same with an entry of the log.
    pub fn logged_wait(self, va: u64, value: u64, entry: [u32; 2]) -> Self {
        self.fence(0xe1, 1, [va, value], entry)
    }

    fn fence(self, opcode: u32, flags: u32, [va, value]: [u64; 2], entry: [u32; 2]) -> Self {
        let words = [low(va), high(va), low(value), high(value)];

        self.packet(opcode, &[&[flags], &words[..], &entry, &[0, 0]].concat())
    }

    /// ODX_WRITE_LOG.
    pub fn write_log(
        self,
        select: u32,
        handle: u32,
        value: u64,
        index: u32,
        takes_observed: bool,
    ) -> Self {
        let words = [select, handle, low(value), high(value), index];

        self.packet(0xe2, &[&words[..], &[takes_observed.into(), 0]].concat())
    }

    pub fn release(self, data_sel: u32, int_sel: u32, va: u64, value: u64) -> Self {
        self.packet(
            0x49,
            &[
                0x14,
                (int_sel << 24) | (data_sel << 29),
                low(va),
                high(va),
                low(value),
                high(value),
                0,
            ],
        )
    }

    pub fn acquire(self) -> Self {
        self.packet(0x58, &[0; 6])
    }

    pub fn indirect(self, va: u64, dwords: u32, flags: u32) -> Self {
        self.packet(0x3f, &[low(va), high(va), dwords | VALID | flags])
    }

    pub fn atomic(self, op: u32, va: u64, source: u64, compare: u64) -> Self {
        self.packet(
            0x1e,
            &[
                op,
                low(va),
                high(va),
                low(source),
                high(source),
                low(compare),
                high(compare),
                0,
            ],
        )
    }

    pub fn cond_exec(self, va: u64, dwords: u32) -> Self {
        self.packet(0x22, &[low(va), high(va), 0, dwords])
    }

    pub fn trap(self, class: u32, argument: u64) -> Self {
        self.packet(0xe3, &[class, low(argument), high(argument), 0])
    }

    pub fn delay(self, steps: u32) -> Self {
        self.packet(0xe4, &[steps])
    }

    pub fn table_write(self, to: u64, count: u32, entry: u64, increment: u64) -> Self {
        self.packet(
            0xe5,
            &[
                count,
                low(to),
                high(to),
                low(entry),
                high(entry),
                low(increment),
                high(increment),
                0,
            ],
        )
    }

    pub fn invalidate(self, process: u16) -> Self {
        self.packet(0x98, &[u32::from(process) << 5])
    }
}
