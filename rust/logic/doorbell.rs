// SPDX-License-Identifier: GPL-2.0

//! The status of a doorbell (GPU-20): what it says, and what may follow what.

use crate::platform::{
    full_fence,
    store_release,
    Word64, //
};

/// What the status says (`D3DDDI_DOORBELLSTATUS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DoorbellStatus {
    /// Rings reach the GPU.
    Connected = 0,
    /// And the process tells the KMD of each.
    ConnectedNotify = 1,
    /// The process may connect it.
    Retry = 2,
    /// The queue will not run any more. Nothing follows this.
    Abort = 3,
}

impl DoorbellStatus {
    /// What a word says; whatever it is, it is not connected by mistake.
    pub fn from_word(word: u64) -> Self {
        match word {
            0 => Self::Connected,
            1 => Self::ConnectedNotify,
            2 => Self::Retry,
            _ => Self::Abort,
        }
    }

    /// The same as a word.
    pub fn word(self) -> u64 {
        // CAST: the number of the variant.
        u64::from(self as u32)
    }

    /// Says so in the word that the process looks at after it has rung. Who looks at the write
    /// pointer next sees what a process had written that rang before it could see this (GPU-23).
    pub fn say(self, word: &Word64) {
        // ORDERING: release: the page was rotated before.
        store_release(word, self.word());
        // ORDERING: step 3 of GPU-23. Pairs with the barrier of the process, between its ring and
        // its look at the status.
        full_fence();
    }

    /// Whether rings reach the GPU.
    pub fn is_connected(self) -> bool {
        matches!(self, Self::Connected | Self::ConnectedNotify)
    }

    /// Whether a disconnection that says `next` changes this.
    pub fn may_disconnect(self, next: Self) -> bool {
        match next {
            Self::Abort => self != Self::Abort,
            _ => self.is_connected(),
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::ConnectedNotify => "notify",
            Self::Retry => "retry",
            Self::Abort => "abort",
        }
    }
}
