// SPDX-License-Identifier: GPL-2.0

//! Entries of logs that an engine has written and that are not in memory yet (GPU-78).
//!
//! A GPU with a cache of its own for what it writes does so. The OS part has to ask for the
//! entries, by UpdateNativeFenceLogs, and an engine sends them ahead of an interrupt.

use crate::{
    engine::memory::{
        Memory,
        Physical,
        Place, //
    },
    platform::{
        self,
        PhysicalMemory,
        Shared,
        ShortLock, //
    }, //
};

/// How many stores there is room for: those of 16 entries.
const ROOM: usize = 96;

/// The stores of the engines of an adapter that are on their way, in their order.
pub(super) struct LateStores {
    memory: Shared<PhysicalMemory>,
    kept: ShortLock<Kept>,
}

struct Kept {
    stores: [(Physical, u64); ROOM],
    count: usize,
}

impl Kept {
    fn drain(&mut self, memory: &PhysicalMemory) {
        let count = core::mem::take(&mut self.count);

        for (at, value) in self.stores.iter().take(count) {
            // There was memory when the store was kept.
            let _stored = memory.store64(*at, *value);
        }
    }
}

impl LateStores {
    /// None yet; `None` if there is no memory. May sleep.
    pub(super) fn new(memory: &Shared<PhysicalMemory>) -> Option<Self> {
        let kept = Kept {
            stores: [(Physical::new(Place::System, 0), 0); ROOM],
            count: 0,
        };

        Some(Self {
            memory: memory.clone(),
            kept: platform::short_lock!(kept, "soft::LateStores::kept")?,
        })
    }

    /// A store that becomes visible later. Without room, those before it do so now.
    pub(super) fn keep(&self, at: Physical, value: u64) -> Option<()> {
        self.memory.load64(at)?;

        let mut kept = self.kept.lock();

        if kept.count == ROOM {
            kept.drain(&self.memory);
        }

        let count = kept.count;

        *kept.stores.get_mut(count)? = (at, value);
        // OVERFLOW: there is a place.
        kept.count = count.wrapping_add(1);
        Some(())
    }

    /// All stores are visible on return.
    ///
    /// Context: does not sleep.
    pub(super) fn drain(&self) {
        self.kept.lock().drain(&self.memory);
    }
}
