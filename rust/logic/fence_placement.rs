// SPDX-License-Identifier: GPL-2.0

//! Where the words of a native fence are: in system memory, or in a segment of the adapter
//! (FEN-63, FEN-64).

use super::allocation_properties::is_in;
use crate::ddi::{
    fence_storage::{
        FenceStorageInfo,
        FenceWord, //
    },
    native_fence::NativeFenceType,
};

/// What decides about the words of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Who uses it.
    pub ty: NativeFenceType,
    /// Others than its process may have it. A cross-adapter fence is one of these.
    pub is_shareable: bool,
    /// The OS part offers MonitoredValue in memory of the GPU for the default type, and the driver
    /// asks for it.
    pub is_optimized: bool,
}

/// In which kind of memory a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// System memory.
    System,
    /// Memory of the adapter, as the driver says.
    Local,
}

impl Kind {
    /// Where a word is to be (FEN-63).
    pub fn place(self, word: FenceWord) -> Place {
        match (self.ty, word) {
            _ if self.is_shareable => Place::System,
            (NativeFenceType::IntraGpu, _) => Place::Local,
            (NativeFenceType::Default, FenceWord::MonitoredValue) if self.is_optimized => {
                Place::Local
            }
            (NativeFenceType::Default, _) => Place::System,
        }
    }

    /// Whether some word of it is not in system memory.
    pub fn is_local(self) -> bool {
        [FenceWord::CurrentValue, FenceWord::MonitoredValue]
            .into_iter()
            .any(|word| self.place(word) == Place::Local)
    }
}

/// Why what a driver says of a page of words cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It names segments that there are not, or prefers one where it may not be.
    NoSense,
    /// MonitoredValue would be where processors cannot store to it.
    NotVisible,
}

/// The segment that a driver prefers for a page of words, on an adapter that has the segments
/// `known`. `is_hidden` says whether a segment is memory that processors cannot see.
pub fn preferred(
    info: &FenceStorageInfo,
    word: FenceWord,
    known: u32,
    is_hidden: impl FnOnce(u32) -> bool,
) -> Result<u32, Refusal> {
    let segment = info.preferred_segment;

    if (info.supported_segments | info.eviction_segments) & !known != 0
        || !is_in(info.supported_segments, segment)
    {
        return Err(Refusal::NoSense);
    }
    match word {
        FenceWord::MonitoredValue if is_hidden(segment) => Err(Refusal::NotVisible),
        _ => Ok(segment),
    }
}
