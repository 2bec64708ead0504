// SPDX-License-Identifier: GPL-2.0

//! An allocation: bytes that belong to a container, and what its driver knows about them.
//!
//! An allocation has no count of its own: whoever holds one holds its container (RES-77). Its
//! storage ends with the container, or before it when an unshared resource gives one of its
//! allocations up (RES-82).

use super::{
    census::{
        Identified,
        Kind, //
    },
    storage::Storage, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// Priority of an allocation that nobody has given one: `D3DDDI_ALLOCATIONPRIORITY_NORMAL`.
const PRIORITY_NORMAL: u32 = 0x7800_0000;

/// See the module.
#[pin_data]
pub(crate) struct Allocation {
    identified: Identified,
    /// Bytes.
    pub(crate) size: u64,
    /// Private driver data, as given at creation or made for a standard allocation.
    pub(crate) driver_data: KVVec<u8>,
    /// How late it would be evicted (MEM-9).
    pub(crate) priority: Atomic<u32>,
    /// How many duplicated handles of this allocation alone there are.
    duplicates: Atomic<u32>,
    /// The bytes; none after the end. LOCK: leaf among ours.
    #[pin]
    storage: Mutex<Option<Arc<Storage>>>,
}

impl Allocation {
    /// An allocation of these bytes.
    pub(crate) fn new(
        size: u64,
        driver_data: KVVec<u8>,
        priority: Option<u32>,
        storage: Arc<Storage>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                identified: Identified::new(Kind::Allocation),
                size,
                driver_data,
                priority: Atomic::new(priority.unwrap_or(PRIORITY_NORMAL)),
                duplicates: Atomic::new(0),
                storage <- new_mutex!(Some(storage), "Allocation::storage"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Its own id, which differs from that of its container.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }

    /// Counts a duplicated handle.
    pub(crate) fn duplicate(&self) {
        self.duplicates.add(1, Relaxed);
    }

    /// A duplicated handle is gone.
    pub(crate) fn end_duplicate(&self) {
        self.duplicates.fetch_sub(1, Relaxed);
    }

    /// Whether something else than the bundles of its container uses it (RES-82).
    pub(crate) fn is_used_by_itself(&self) -> bool {
        self.duplicates.load(Relaxed) != 0
    }

    /// The end: nothing can reach the bytes through this allocation any more.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn cleanup(&self) {
        let storage = self.storage.lock().take();

        drop(storage);
    }
}
