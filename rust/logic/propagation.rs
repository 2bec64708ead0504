// SPDX-License-Identifier: GPL-2.0

//! Which adapters are told of a signal of a cross-adapter fence (FEN-138, FEN-157, FEN-159).

use super::fence_value::EVERYBODY_IS_TOLD;

/// Who has signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signaller {
    /// An engine of this adapter, by its native fence there, or the OS part for one of its devices.
    Adapter(u64),
    /// An engine of this adapter, by its native fence there, which has rung the doorbells of all
    /// the others that have one.
    Rings(u64),
    /// An engine of this adapter that does not know that the fence is native anywhere.
    Unaware(u64),
}

/// What a fence is on an adapter that has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A monitored fence.
    Monitored,
    /// A native fence.
    Native,
    /// A native fence with a doorbell, which rings those of all the others that have one.
    Rung,
}

impl Signaller {
    /// The id of the adapter.
    pub fn adapter(self) -> u64 {
        match self {
            Self::Adapter(id) | Self::Rings(id) | Self::Unaware(id) => id,
        }
    }

    /// Whether an adapter with this id, on which the fence is this, knows of the signal: its own
    /// engines have met without the OS part (FEN-139), or its doorbell was rung.
    pub fn is_known_on(self, id: u64, place: Place) -> bool {
        match self {
            Self::Adapter(own) => id == own,
            Self::Rings(own) => id == own || place == Place::Rung,
            Self::Unaware(own) => id == own && place == Place::Monitored,
        }
    }
}

/// MonitoredValue on all adapters, for what waiters want it to be. As long as somebody has to be
/// told of signals, each of them interrupts (FEN-137).
pub fn monitored(wanted: u64, mut places: impl Iterator<Item = Place>) -> u64 {
    match places.all(|place| place == Place::Rung) {
        true => wanted,
        false => EVERYBODY_IS_TOLD,
    }
}
