// SPDX-License-Identifier: GPL-2.0

//! The save area of a context, or of all contexts of a device: memory that the adapter keeps for
//! them (MEM-82). It says
//! where the page tables of the context begin, so that it is the documented case of an update when
//! they move (MEM-89).
//!
//! ```text
//! dword 0     MAGIC, from InitContextResource on
//! dword 1     how many updates there were, modulo 2^32
//! dword 2, 3  physical address of the root
//! dword 4     entries of the root
//! dword 5     0
//! ```

use super::paging_buffer::write;
use crate::{
    ddi::{
        paging::{
            Built,
            InitContextResource,
            PagingBuffer,
            UpdateContextAllocation, //
        },
        types::ContextAllocationId, //
    },
    platform::{
        self,
        Shared,
        Word32, //
    }, //
};

/// Bytes of a save area.
pub const SIZE: u64 = 64 << 10;

/// The first dword of each: "DXGS".
pub const MAGIC: u32 = 0x5347_5844;

/// Bytes of the private data of an update: all behind the first dword.
pub const UPDATE_SIZE: usize = 20;

/// One of them.
pub(super) struct SaveArea {
    pub(super) allocation: ContextAllocationId,
    /// How many updates there were.
    updates: Word32,
    /// 1 once its end has begun.
    ended: Word32,
}

impl SaveArea {
    /// One that is in this memory; `None` if there is none for the rest. May sleep.
    pub(super) fn new(allocation: ContextAllocationId) -> Option<Shared<Self>> {
        platform::shared(Self {
            allocation,
            updates: platform::word32(0),
            ended: platform::word32(0),
        })
    }

    /// Its end begins; false if it has before.
    pub(super) fn end(&self) -> bool {
        platform::cmpxchg(&self.ended, 0, 1)
    }

    /// The number of the next update.
    pub(super) fn next_update(&self) -> u32 {
        // OVERFLOW: it counts modulo 2^32.
        platform::fetch_add(&self.updates, 1).wrapping_add(1)
    }
}

/// The private data of the update with this number, when page tables begin there.
pub fn update_of(number: u32, table: u64, entries: u32) -> [u8; UPDATE_SIZE] {
    let mut bytes = [0; UPDATE_SIZE];
    // CAST: the halves are meant.
    let words = [number, table as u32, (table >> 32) as u32, entries, 0];

    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// InitContextResource.
pub fn init(init: &InitContextResource, buffer: &mut PagingBuffer) -> Built {
    write(buffer, init.destination, &MAGIC.to_le_bytes())
}

/// UpdateContextAllocation: its data go behind the first dword.
pub fn update(update: &UpdateContextAllocation<'_>, buffer: &mut PagingBuffer) -> Built {
    write(
        buffer,
        update.destination.saturating_add(4),
        update.private_data,
    )
}
