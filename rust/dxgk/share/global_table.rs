// SPDX-License-Identifier: GPL-2.0

//! Global (KMT) handles: system-wide numbers that name an object and do not keep it (RES-9 to
//! RES-12).
//!
//! LOCK: the table's lock is a leaf, taken when a global handle is made, opened or removed, never
//! when an object is used. The end of the last strong reference to an object removes its entry.

use crate::dxgk::quota::account::{
    Account,
    Charge,
    Limit, //
};
use crate::{
    ddi::index_map::NewNode,
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        bucket_map::{
            BucketMap,
            ChainNode, //
        },
        handle, //
    },
    sys::random, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// How often a random index is tried before the space counts as full.
const TRIES: u32 = 64;

struct Entry<T> {
    handle: u32,
    id: u64,
    object: T,
    published: bool,
    _charge: Charge,
}

/// A number that is reserved for an object and does not resolve yet. The object gives it back at
/// its end.
pub(crate) struct ReservedGlobal<'a, T> {
    table: &'a GlobalTable<T>,
    handle: u32,
    id: u64,
}

impl<T> ReservedGlobal<'_, T> {
    /// The number.
    pub(crate) fn handle(&self) -> u32 {
        self.handle
    }

    /// Makes it resolve.
    pub(crate) fn commit(self) {
        let Some((index, _)) = handle::global_parts(self.handle) else {
            return;
        };

        // The object may have been destroyed already, through a guessed local handle, and the
        // number may belong to another object.
        if let Some(entry) = self.table.entries.lock().get_mut(index) {
            entry.published |= entry.id == self.id;
        }
    }
}

/// The table of global handles of objects, each of which is found as a `T`.
#[pin_data]
pub(crate) struct GlobalTable<T> {
    /// By index.
    #[pin]
    entries: SpinLock<BucketMap<Entry<T>>>,
}

impl<T: Clone> GlobalTable<T> {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_spinlock!(BucketMap::new(random::number()), "GlobalTable::entries"),
        })
    }

    /// Takes a random free number for `object`, which has this id. Charged to `account`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(
        &self,
        object: T,
        id: u64,
        account: &Account,
    ) -> DxgResult<ReservedGlobal<'_, T>> {
        let entry = Entry {
            handle: 0,
            id,
            object,
            published: false,
            _charge: account.charge(Limit::Globals, 1)?,
        };
        // What is not used is declared before the lock, to be dropped after it.
        let mut link = KBox::new(ChainNode::new(0, entry), GFP_KERNEL_ACCOUNT)?;
        let mut new_node = None;

        loop {
            let _freed;
            let mut entries = self.entries.lock();

            _freed = new_node
                .take()
                .and_then(|new_node| entries.insert_node(new_node));
            if let Some(missing_node) = entries.missing_node() {
                drop(entries);
                new_node = Some(NewNode::new(missing_node).ok_or(AllocError)?);
                continue;
            }

            let index = (0..TRIES)
                .map(|_| handle::FIRST_INDEX + random::below(handle::LAST_INDEX))
                .find(|index| entries.get(*index).is_none())
                .ok_or(Status::NO_MEMORY)?;
            let unique = handle::UNIQUE.start() + random::below(*handle::UNIQUE.end());
            let handle = handle::global(index, unique);

            link.key = index;
            link.value.handle = handle;
            entries.put(link);
            return Ok(ReservedGlobal {
                table: self,
                handle,
                id,
            });
        }
    }

    /// Takes a number out; it never resolves again.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn remove(&self, global: u32) {
        let Some((index, _)) = handle::global_parts(global) else {
            return;
        };
        let removed = self.entries.lock().take(index);

        drop(removed);
    }

    /// The object that a global handle names. It may be retiring.
    pub(crate) fn find(&self, global: u32) -> Option<T> {
        let (index, _) = handle::global_parts(global)?;
        let entries = self.entries.lock();
        let entry = entries.get(index)?;

        (entry.published && entry.handle == global).then(|| entry.object.clone())
    }
}
