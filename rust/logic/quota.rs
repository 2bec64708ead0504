// SPDX-License-Identifier: GPL-2.0

//! A counter that never passes its limit, and how large limits are (RES-105).

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

    /// Adds `amount`, unless that would exceed `limit`.
    ///
    /// Other threads never see a failed attempt: it must not make theirs fail.
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

/// The machine, from which limits follow that no parameter sets. A user who reaches one of them has
/// most of what there is: a single user of a desktop never does.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Pages of memory.
    pub pages: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// How many files there may be.
    pub files: u64,
}

/// Memory for which the kernel allows one file by itself, in bytes.
const BYTES_PER_FILE: u64 = 10 << 10;

impl Machine {
    /// Pages that a user may claim, touched or not: `mib` MiB, or if that is 0 four times what
    /// there is. A claim costs next to nothing until it is touched.
    pub fn claimed(&self, mib: u32) -> u32 {
        match mib {
            0 => saturate(self.pages.saturating_mul(4)),
            _ => self.pages_of(mib),
        }
    }

    /// Pages that may stay in memory for a user: `mib` MiB, or if that is 0 half of what there is,
    /// as for buffers of graphics drivers.
    pub fn resident(&self, mib: u32) -> u32 {
        match mib {
            0 => saturate(self.pages / 2),
            _ => self.pages_of(mib),
        }
    }

    /// Files that may be held for a user: `given`, or if that is 0 half of those that there may be.
    /// Where the administrator has lifted that limit, of those that the kernel would allow by
    /// itself.
    pub fn held_files(&self, given: u32) -> u32 {
        let by_memory = self.pages.saturating_mul(self.page_size) / BYTES_PER_FILE;

        match given {
            0 => saturate(self.files.min(by_memory) / 2),
            _ => given,
        }
    }

    fn pages_of(&self, mib: u32) -> u32 {
        saturate((u64::from(mib) << 20) / self.page_size.max(1))
    }
}

fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
