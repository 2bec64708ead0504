// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that tell others how far the engine has come.

use super::{halves, opcode, Pm4};
use crate::handle::LocalHandle;

/// RELEASE_MEM: the event of the end of the pipe, which the software GPU does not look at.
const END_OF_PIPE: u32 = 0x14 | (5 << 8);

/// Index of an entry that goes where the log ends.
const APPEND: u32 = u32::MAX;

/// A log of a hardware queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Of waits for native fences that are over.
    Waits,
    /// Of signals of native fences.
    Signals,
}

/// What RELEASE_MEM writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Data {
    /// Nothing.
    None,
    /// 32 bits.
    Low(u32),
    /// 64 bits, in one store.
    Full(u64),
    /// The clock of the GPU.
    Clock,
}

impl Data {
    /// The selector, and the value of the packet.
    fn parts(self) -> (u32, u64) {
        match self {
            Self::None => (0, 0),
            Self::Low(value) => (1, value.into()),
            Self::Full(value) => (2, value),
            Self::Clock => (3, 0),
        }
    }
}

/// When RELEASE_MEM interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interrupt {
    /// Not at all.
    None,
    /// At once.
    Only,
    /// When the data can be seen.
    AfterData,
    /// Not at all, but the packet ends when the data can be seen.
    Confirm,
    /// Without looking at the memory.
    Always,
    /// Nothing is written: if the value is above MonitoredValue, which is at the address of the
    /// packet, the interrupt of its native fence.
    AboveMonitored(u64),
}

impl Interrupt {
    /// The selector.
    fn number(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Only => 1,
            Self::AfterData => 2,
            Self::Confirm => 3,
            Self::Always => 4,
            Self::AboveMonitored(_) => 6,
        }
    }
}

impl Pm4 {
    /// RELEASE_MEM: when all that came before is done, writes to `address`, then interrupts.
    pub fn release(self, address: u64, data: Data, interrupt: Interrupt) -> Self {
        let (selector, value) = match interrupt {
            Interrupt::AboveMonitored(value) => (0, value),
            _ => data.parts(),
        };
        let [low, high] = halves(address);
        let [value_low, value_high] = halves(value);
        let select = (selector << 29) | (interrupt.number() << 24);
        let words = [END_OF_PIPE, select, low, high, value_low, value_high, 0];
        self.packet(opcode::RELEASE_MEM, &words)
    }

    /// RELEASE_MEM that signals a monitored fence: its value is at `address`.
    pub fn signal(self, address: u64, value: u64) -> Self {
        self.release(address, Data::Full(value), Interrupt::AfterData)
    }

    /// ODX_SIGNAL_FENCE: signals a native fence whose CurrentValue is at `address`, and interrupts
    /// if somebody on the CPU waits for that.
    pub fn signal_native(self, address: u64, value: u64) -> Self {
        self.native(opcode::SIGNAL_FENCE, address, value)
    }

    /// The same with an entry in the log of signals of the queue, which calls the fence by its
    /// handle. Only a queue that its process fills has logs.
    pub fn signal_native_logged(self, address: u64, value: u64, handle: LocalHandle) -> Self {
        self.logged(opcode::SIGNAL_FENCE, address, value, handle)
    }

    /// ODX_WAIT_FENCE: waits until a native fence has reached a value.
    pub fn wait_native(self, address: u64, value: u64) -> Self {
        self.native(opcode::WAIT_FENCE, address, value)
    }

    /// The same with an entry in the log of waits of the queue.
    pub fn wait_native_logged(self, address: u64, value: u64, handle: LocalHandle) -> Self {
        self.logged(opcode::WAIT_FENCE, address, value, handle)
    }

    fn logged(self, opcode: u8, address: u64, value: u64, handle: LocalHandle) -> Self {
        let [low, high] = halves(address);
        let [value_low, value_high] = halves(value);
        let words = [1, low, high, value_low, value_high, handle.0, APPEND, 0, 0];
        self.packet(opcode, &words)
    }

    /// ODX_WRITE_LOG: an entry in a log of the queue about what earlier packets did. The entry of a
    /// wait tells when the last wait of the queue was first tried.
    pub fn write_log(self, log: Log, handle: LocalHandle, value: u64) -> Self {
        let [low, high] = halves(value);
        let (select, takes_observed) = match log {
            Log::Waits => (1 | (1 << 8), 1),
            Log::Signals => (2, 0),
        };
        let words = [select, handle.0, low, high, APPEND, takes_observed, 0];
        self.packet(opcode::WRITE_LOG, &words)
    }

    fn native(self, opcode: u8, address: u64, value: u64) -> Self {
        let [low, high] = halves(address);
        let [value_low, value_high] = halves(value);
        self.packet(opcode, &[0, low, high, value_low, value_high, 0, 0, 0, 0])
    }

    /// ACQUIRE_MEM: a full barrier.
    pub fn acquire(self) -> Self {
        self.packet(opcode::ACQUIRE_MEM, &[0; 6])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u64 = 0x1_0000_1000;

    #[test]
    fn release_mem() {
        assert_eq!(
            Pm4::new().signal(A, 0x3_0000_0004).words(),
            [0xc006_4900, 0x514, 0x4200_0000, 0x1000, 1, 4, 3, 0]
        );
        let control = |data, interrupt| Pm4::new().release(A, data, interrupt).words()[2];
        assert_eq!(control(Data::None, Interrupt::Only), 0x0100_0000);
        assert_eq!(control(Data::Low(1), Interrupt::Confirm), 0x2300_0000);
        assert_eq!(control(Data::Clock, Interrupt::Always), 0x6400_0000);
        assert_eq!(control(Data::Full(1), Interrupt::None), 0x4000_0000);
    }

    #[test]
    fn acquire_mem() {
        assert_eq!(
            Pm4::new().acquire().words(),
            [0xc005_5800, 0, 0, 0, 0, 0, 0]
        );
    }
}
