// SPDX-License-Identifier: GPL-2.0

//! A counter that never passes its limit (RES-105).

use crate::platform::{
    cmpxchg,
    fetch_sub,
    load32_acquire,
    word32,
    Word32, //
};

/// How much of something is in use.
pub struct Usage(Word32);

impl Usage {
    /// Nothing is in use.
    pub fn new() -> Self {
        Self(word32(0))
    }

    /// Takes `amount` more, unless that makes more than `limit`.
    ///
    /// An attempt that fails is never seen by others: it must not make theirs fail.
    pub fn take(&self, amount: u32, limit: u32) -> bool {
        loop {
            let used = load32_acquire(&self.0);
            let Some(more) = used.checked_add(amount).filter(|more| *more <= limit) else {
                return false;
            };

            if cmpxchg(&self.0, used, more) {
                return true;
            }
        }
    }

    /// Gives back what was taken.
    pub fn give_back(&self, amount: u32) {
        fetch_sub(&self.0, amount);
    }

    /// The present number.
    pub fn get(&self) -> u32 {
        load32_acquire(&self.0)
    }
}
