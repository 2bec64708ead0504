// SPDX-License-Identifier: GPL-2.0

//! Which adapters are told of a signal of a cross-adapter fence (FEN-138, FEN-157).

/// Who has signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signaller {
    /// An engine of this adapter, by its native fence there, or the OS part for one of its devices.
    Adapter(u64),
    /// An engine of this adapter that does not know that the fence is native anywhere.
    Unaware(u64),
}

impl Signaller {
    /// The id of the adapter.
    pub fn adapter(self) -> u64 {
        match self {
            Self::Adapter(id) | Self::Unaware(id) => id,
        }
    }

    /// Whether an adapter with this id, which has a native fence or not, knows of the signal: its
    /// own engines have met without the OS part (FEN-139).
    pub fn is_known_on(self, id: u64, is_native: bool) -> bool {
        match self {
            Self::Adapter(own) => id == own,
            Self::Unaware(own) => id == own && !is_native,
        }
    }
}
