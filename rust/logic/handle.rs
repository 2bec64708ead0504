// SPDX-License-Identifier: GPL-2.0

//! D3DKMT handle numbers: their encoding and the order in which they are given out.
//!
//! Two number spaces share one 32-bit form (abi.md section 5, RES-6, RES-9, RES-12):
//!
//! ```text
//!  31 30 29                                  6 5         0
//! +-----+--------------------------------------+-----------+
//! | uniq|              index (24 bits)         | instance  |
//! +-----+--------------------------------------+-----------+
//! ```
//!
//! `instance` is 0 for a local handle and 2 for a global one. `uniq` is 1, 2 or 3, so that the two
//! top bits are never both 0: those values are file descriptors (NT handles).

/// Lowest index that is ever given out; index 0 would make the number look uninitialised.
pub const FIRST_INDEX: u32 = 1;
/// Highest index: 24 bits.
pub const LAST_INDEX: u32 = (1 << INDEX_BITS) - 1;

const INDEX_BITS: u32 = 24;
const INDEX_SHIFT: u32 = 6;
const UNIQUE_SHIFT: u32 = 30;
const INSTANCE_MASK: u32 = (1 << INDEX_SHIFT) - 1;
const LOCAL_INSTANCE: u32 = 0;
const GLOBAL_INSTANCE: u32 = 2;

/// `uniq` of every local handle.
pub const LOCAL_UNIQUE: u32 = 1;

/// Which `uniq` values exist.
pub const UNIQUE: core::ops::RangeInclusive<u32> = 1..=3;

/// Splits a number into index and `uniq` if its instance is `instance`.
fn decode(handle: u32, instance: u32) -> Option<(u32, u32)> {
    let unique = handle >> UNIQUE_SHIFT;
    let index = (handle >> INDEX_SHIFT) & LAST_INDEX;
    let known = UNIQUE.contains(&unique) && index >= FIRST_INDEX;

    (known && handle & INSTANCE_MASK == instance).then_some((index, unique))
}

fn encode(index: u32, unique: u32, instance: u32) -> u32 {
    (unique << UNIQUE_SHIFT) | ((index & LAST_INDEX) << INDEX_SHIFT) | instance
}

/// The number of the local handle at `index` of a process's table.
pub fn local(index: u32) -> u32 {
    encode(index, LOCAL_UNIQUE, LOCAL_INSTANCE)
}

/// The table index of a local handle; `None` for global handles, NT handles and noise.
pub fn local_index(handle: u32) -> Option<u32> {
    match decode(handle, LOCAL_INSTANCE) {
        Some((index, LOCAL_UNIQUE)) => Some(index),
        _ => None,
    }
}

/// The number of the global handle at `index`; `unique` must be one of [`UNIQUE`].
pub fn global(index: u32, unique: u32) -> u32 {
    encode(index, unique, GLOBAL_INSTANCE)
}

/// Index and `uniq` of a global handle; `None` for everything else.
pub fn global_parts(handle: u32) -> Option<(u32, u32)> {
    decode(handle, GLOBAL_INSTANCE)
}

/// Highest descriptor number that can be an NT handle: the two top bits mark KMT handles.
pub const LAST_FD: u32 = (1 << UNIQUE_SHIFT) - 1;

/// Whether an NT handle slot holds a value that may be a file descriptor.
///
/// 0 is "none", and numbers with one of the two top bits are KMT handles (RES-13).
pub fn nt_fd(slot: u64) -> Option<u32> {
    let fd = u32::try_from(slot).ok()?;

    (1..=LAST_FD).contains(&fd).then_some(fd)
}

/// Gives out indices in one increasing chain and starts over after the last one.
///
/// A number is not used again before the chain has wrapped (RES-6), and a failed call gives its
/// number back (RES-4).
pub struct Cursor {
    next: u32,
}

impl Cursor {
    /// A chain that starts at [`FIRST_INDEX`].
    pub const fn new() -> Self {
        Self::starting_at(FIRST_INDEX)
    }

    /// A chain that starts elsewhere; for tests of what happens later.
    pub const fn starting_at(next: u32) -> Self {
        Self { next }
    }

    /// Takes the next index for which `free` is true.
    ///
    /// Before the chain has wrapped for the first time every index is free, so that this looks at
    /// one candidate. `None` if no index is free.
    pub fn take(&mut self, free: impl FnMut(u32) -> bool) -> Option<u32> {
        self.take_among(LAST_INDEX, free)
    }

    /// The same, but looks at the next `count` candidates only, for who holds a lock. If none of
    /// them is free, the next call goes on behind them.
    pub fn take_among(&mut self, count: u32, mut free: impl FnMut(u32) -> bool) -> Option<u32> {
        for _ in 0..count {
            let index = self.next;

            self.next = Self::after(index);
            if free(index) {
                return Some(index);
            }
        }
        None
    }

    /// Gives back `index`, if nothing was taken after it.
    pub fn put_back(&mut self, index: u32) {
        if Self::after(index) == self.next {
            self.next = index;
        }
    }

    fn after(index: u32) -> u32 {
        if index >= LAST_INDEX {
            FIRST_INDEX
        } else {
            index + 1
        }
    }
}
