// SPDX-License-Identifier: GPL-2.0

//! Logs of native fences: which values a queue has signalled and waited for, and when (gpu.md
//! section 7).
//!
//! A log is a ring of entries behind a header, in memory that the process of the queue can write to
//! by packets too. So nothing that is read there is trusted: where an entry goes is checked against
//! what the shell has said of the log, and not against what its header says.
//!
//! The entry is stored first, and then the header word that makes it one. There is no full barrier
//! between the two, and the entry may even come late: whoever reads the log has to ask for it
//! (GPU-76, GPU-78).

use super::{
    fault::{
        FaultKind,
        Illegal, //
    },
    memory::Memory,
    space::Space, //
};

/// Bytes before the first entry.
pub const HEADER_SIZE: u64 = 40;
/// Bytes of an entry.
pub const ENTRY_SIZE: u64 = 48;

/// Which log of a queue (`DXGK_NATIVE_FENCE_LOG_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogType {
    /// Of waits that are over (`WAIT_UNBLOCKED`).
    Waits,
    /// Of signals (`SIGNAL_EXECUTED`).
    Signals,
}

impl LogType {
    /// `OperationType` of its entries.
    fn operation(self) -> u32 {
        match self {
            Self::Signals => 0,
            Self::Waits => 1,
        }
    }

    /// That of a packet with this type and this operation, which have to belong together.
    pub(super) fn of_packet(ty: u32, operation: u32) -> Option<Self> {
        match (ty, operation) {
            (1, 1) => Some(Self::Waits),
            (2, 0) => Some(Self::Signals),
            _ => None,
        }
    }
}

/// Where the log of a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// GPU virtual address of its header, a multiple of 8.
    pub va: u64,
    /// How many entries it has, at least one.
    pub entries: u32,
}

/// The logs of a queue. Only one that its process fills has any (GPU-71).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Logs {
    waits: Option<Log>,
    signals: Option<Log>,
}

impl Logs {
    pub(super) const NONE: Self = Self {
        waits: None,
        signals: None,
    };

    pub(super) fn get(&self, ty: LogType) -> Option<Log> {
        match ty {
            LogType::Waits => self.waits,
            LogType::Signals => self.signals,
        }
    }

    pub(super) fn set(&mut self, ty: LogType, log: Option<Log>) {
        match ty {
            LogType::Waits => self.waits = log,
            LogType::Signals => self.signals = log,
        }
    }

    /// Whether there are any.
    pub(super) fn are_there(&self) -> bool {
        self.waits.is_some() || self.signals.is_some()
    }
}

/// What a packet wants to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRequest {
    /// The fence, as its process calls it.
    pub(super) handle: u32,
    /// Which entry it becomes; `None` for the next one.
    pub(super) index: Option<u32>,
}

impl LogRequest {
    /// That of a packet with these fields.
    pub(super) fn of_packet(handle: u32, index: u32) -> Self {
        /// The next one.
        const APPEND: u32 = u32::MAX;

        Self {
            handle,
            index: (index != APPEND).then_some(index),
        }
    }

    /// Whether there can be such an entry.
    pub(super) fn check(&self, log: Log) -> Result<Log, Illegal> {
        match self.index {
            Some(index) if index >= log.entries => Err(Illegal::Log),
            _ => Ok(log),
        }
    }
}

/// What happened, in ticks of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) value: u64,
    /// When the wait was first tried; 0 for a signal.
    pub(super) observed: u64,
    pub(super) end: u64,
}

impl<M: Memory> Space<'_, M> {
    /// Steps 2 and 3 of GPU-76: an entry, and the header word that makes it one.
    pub(super) fn write_log(
        &mut self,
        ty: LogType,
        log: Log,
        request: LogRequest,
        event: &Event,
    ) -> Result<(), FaultKind> {
        let header = self.load64(log.va)?;
        // CAST: two halves. The process may have written anything there.
        let (first_free, wraparounds) = (header as u32, (header >> 32) as u32);
        let index = request.index.unwrap_or(first_free);
        let index = index.checked_rem(log.entries).ok_or(Illegal::Log)?;
        let words = [
            event.value,
            u64::from(request.handle) | (u64::from(ty.operation()) << 32),
            0,
            event.observed,
            0,
            event.end,
        ];
        // OVERFLOW: an address that wraps is beyond every page table.
        let mut to = log
            .va
            .wrapping_add(HEADER_SIZE)
            .wrapping_add(u64::from(index).wrapping_mul(ENTRY_SIZE));

        for word in words {
            self.store64_late(to, word)?;
            to = to.wrapping_add(8);
        }

        // OVERFLOW: below the number of entries; wraparounds are counted modulo 2^32.
        let (index, wraparounds) = match index.wrapping_add(1) {
            next if next == log.entries => (0, wraparounds.wrapping_add(1)),
            next => (next, wraparounds),
        };

        // ORDERING: releases the entry. Pairs with the barrier of UpdateNativeFenceLogs (GPU-78).
        Ok(self.store64_release(log.va, (u64::from(wraparounds) << 32) | u64::from(index))?)
    }
}
