// SPDX-License-Identifier: GPL-2.0

//! What the engine wants of its surroundings, other than memory.

use super::fences::FenceIndex;

/// The GPU clock. A tick is a nanosecond.
pub trait Clock {
    /// Ticks since some moment. Does not go back.
    fn ticks(&self) -> u64;
}

/// Something that a packet reports. That a buffer is through, has faulted or is blocked is an
/// outcome of the step instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// `DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED` of this engine (GPU-44).
    MonitoredFenceSignaled,
    /// `DXGK_INTERRUPT_NATIVE_FENCE_SIGNALED`: a value above MonitoredValue was stored to
    /// CurrentValue (FEN-67).
    NativeFenceSignaled(FenceIndex),
    /// A trap (ODX_TRAP).
    Trap {
        /// What kind, as its packet says.
        class: u32,
        /// What the packet says about it.
        argument: u64,
    },
}

/// Takes what packets report.
///
/// What the queue stored before is visible to everybody before the record is reported (GPU-62).
pub trait Interrupts {
    /// Reports a record. Must not sleep.
    fn report(&mut self, record: Record);
}
