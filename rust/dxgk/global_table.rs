// SPDX-License-Identifier: GPL-2.0

//! Global (KMT) handles: system-wide numbers that name an object and do not keep it (RES-9 to
//! RES-12).
//!
//! LOCK: the table's lock is a leaf, taken when a global handle is made, opened or removed, never
//! when an object is used. An entry goes with the last strong reference to its object; opening
//! takes a strong reference unless that has happened, so a lookup gets a living object or nothing.

use super::sync_object::{
    Strong,
    SyncObject, //
};
use crate::{
    logic::handle,
    sys::{
        caller::Credentials,
        params,
        random, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    xarray::{
        AllocKind,
        XArray, //
    }, //
};

/// How often a random index is tried before the space counts as full.
const TRIES: u32 = 64;

struct Entry {
    handle: u32,
    object: SyncObject,
    published: bool,
}

/// See the module.
#[pin_data]
pub(crate) struct GlobalTable {
    /// Held by whoever stores into the table.
    #[pin]
    making: Mutex<()>,
    #[pin]
    entries: XArray<KBox<Entry>>,
}

impl GlobalTable {
    /// An empty table.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                making <- new_mutex!((), "GlobalTable::making"),
                entries <- XArray::new(AllocKind::Alloc),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a random free number for `object`. It does not resolve before it is published.
    pub(crate) fn reserve(&self, object: &SyncObject) -> Result<u32> {
        let mut entry = KBox::new(
            Entry {
                handle: 0,
                object: object.clone(),
                published: false,
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        let _making = self.making.lock();

        for _ in 0..TRIES {
            let index = handle::FIRST_INDEX + random::below(handle::LAST_INDEX);
            let unique = handle::UNIQUE.start() + random::below(*handle::UNIQUE.end());
            // CAST: an index has 24 bits.
            let slot = index as usize;
            let mut entries = self.entries.lock();

            if entries.get(slot).is_some() {
                continue;
            }
            entry.handle = handle::global(index, unique);

            let wanted = entry.handle;

            // The store may drop the lock to allocate, but nobody else stores meanwhile.
            return match entries.store(slot, entry, GFP_KERNEL_ACCOUNT) {
                Ok(_nothing) => Ok(wanted),
                Err(error) => {
                    drop(entries);
                    Err(error.into())
                }
            };
        }
        Err(ENOMEM)
    }

    /// Makes a reserved number resolve.
    pub(crate) fn publish(&self, global: u32) {
        let Some((index, _)) = handle::global_parts(global) else {
            return;
        };

        // CAST: an index has 24 bits.
        if let Some(entry) = self.entries.lock().get_mut(index as usize) {
            if entry.handle == global {
                entry.published = true;
            }
        }
    }

    /// Takes a number out; it never resolves again.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn remove(&self, global: u32) {
        let Some((index, _)) = handle::global_parts(global) else {
            return;
        };
        // CAST: an index has 24 bits.
        let removed = self.entries.lock().remove(index as usize);

        drop(removed);
    }

    /// A strong reference to the object that a global handle names, if the caller may have it.
    ///
    /// A refusal looks like a dead handle (RES-103).
    pub(crate) fn open(&self, global: u32) -> Option<Strong> {
        let (index, _) = handle::global_parts(global)?;
        let object = {
            let mut entries = self.entries.lock();
            // CAST: an index has 24 bits.
            let entry = entries.get_mut(index as usize)?;

            (entry.published && entry.handle == global).then(|| entry.object.clone())?
        };

        if !may_open(&object) {
            return None;
        }
        Strong::upgrade(&object)
    }
}

/// Whether the caller may open `object` by its global handle: module parameter `global_access`.
fn may_open(object: &SyncObject) -> bool {
    let creator = &object.header().creator;
    let caller = Credentials::of_caller();

    caller.shares_ipc_with(creator)
        && match params::global_access() {
            0 => caller.acts_as(creator) || Credentials::caller_is_ipc_owner(),
            1 => true,
            _ => false,
        }
}
