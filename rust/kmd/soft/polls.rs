// SPDX-License-Identifier: GPL-2.0

//! When engines have to look at a word in memory again: what they tell the CMP.

use super::nodes;
use crate::platform::{
    self,
    BoxedWakeup,
    Word64, //
};
use core::array;

/// No moment.
pub(super) const NEVER: u64 = u64::MAX;

/// When each engine has to be woken.
pub struct Polls {
    /// Nanoseconds, by engine. The engine stores it before it sleeps.
    pub(super) at: [Word64; nodes::COUNT as usize],
    /// Rings when there is a moment that the CMP has not seen.
    pub(super) wakeup: BoxedWakeup,
}

impl Polls {
    /// No engine has to be woken; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        Some(Self {
            at: array::from_fn(|_| platform::word64(NEVER)),
            wakeup: platform::wakeup()?,
        })
    }

    /// An engine sleeps until then, unless it gets work; for ever if that is `None`.
    pub fn set(&self, engine: usize, at: Option<u64>) {
        let Some(word) = self.at.get(engine) else {
            return;
        };

        platform::store_release(word, at.unwrap_or(NEVER));
        // A moment that has gone needs no look: the CMP looks once more than it has to, then.
        if at.is_some() {
            self.wakeup.ring();
        }
    }
}
