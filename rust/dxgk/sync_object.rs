// SPDX-License-Identifier: GPL-2.0

//! What all synchronisation objects have in common, and what keeps them alive.
//!
//! There are two counts. Memory is held by [`Arc`]. Life as D3DKMT means it is held by [`Strong`]:
//! one for each local handle and each NT handle. When the last of these goes, nobody can signal the
//! object any more: its global handle stops resolving and its waits end, although waits and lookups
//! in flight may hold the memory a little longer (RES-10, FEN-27, FEN-28).

use super::{
    adapter::Adapter,
    census::{
        Identified,
        Kind, //
    },
    global_table::GlobalTable,
    legacy_sync::LegacySync,
    monitored_fence::MonitoredFence, //
};
use crate::{
    logic::sync_flags::Sharing,
    sys::caller::Credentials, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The common part of a synchronisation object.
pub(crate) struct Header {
    identified: Identified,
    /// The adapter it was made on.
    pub(crate) adapter: Arc<Adapter>,
    /// How it may be shared.
    pub(crate) sharing: Sharing,
    /// Whether devices of other adapters may use it.
    pub(crate) cross_adapter: bool,
    /// Who made it.
    pub(crate) creator: Credentials,
    globals: Arc<GlobalTable>,
    /// Its global handle, or 0. Set once, before anybody else can see the object.
    global: Atomic<u32>,
    /// How many [`Strong`] there are. Never goes up again from 0.
    strong: Atomic<u32>,
    /// How many local handles there are, for fdinfo.
    pub(crate) openings: Atomic<u32>,
}

impl Header {
    /// The header of a new object that nothing refers to yet.
    pub(crate) fn new(
        kind: Kind,
        adapter: Arc<Adapter>,
        sharing: Sharing,
        cross_adapter: bool,
        globals: Arc<GlobalTable>,
    ) -> Self {
        Self {
            identified: Identified::new(kind),
            adapter,
            sharing,
            cross_adapter,
            creator: Credentials::of_caller(),
            globals,
            global: Atomic::new(0),
            strong: Atomic::new(1),
            openings: Atomic::new(0),
        }
    }

    /// The object's id.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }

    /// What it is.
    pub(crate) fn kind(&self) -> Kind {
        self.identified.kind
    }

    /// Counts one more reference, unless the last one is gone already.
    fn grab(&self) -> bool {
        let mut count = self.strong.load(Relaxed);

        loop {
            // The count is bounded by handles and open files; refusing to overflow costs nothing.
            if count == 0 || count == u32::MAX {
                return false;
            }
            match self.strong.cmpxchg(count, count + 1, Full) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
    }

    /// Counts one less; true if that was the last one.
    fn drop_one(&self) -> bool {
        self.strong.fetch_sub(1, Full) == 1
    }
}

/// A synchronisation object of any kind.
#[derive(Clone)]
pub(crate) enum SyncObject {
    /// Types that the CPU waits on and signals.
    Fence(Arc<MonitoredFence>),
    /// Types that only queued work uses.
    Legacy(Arc<LegacySync>),
}

impl SyncObject {
    /// The common part.
    pub(crate) fn header(&self) -> &Header {
        match self {
            Self::Fence(fence) => &fence.header,
            Self::Legacy(object) => &object.header,
        }
    }

    /// The last strong reference is gone.
    fn retire(&self) {
        let header = self.header();
        let global = header.global.load(Acquire);

        if global != 0 {
            header.globals.remove(global);
        }
        if let Self::Fence(fence) = self {
            fence.orphan();
        }
    }
}

/// A reference that keeps an object alive in the D3DKMT sense.
pub(crate) struct Strong {
    object: SyncObject,
}

impl Strong {
    /// The first reference to a new object.
    pub(crate) fn first(object: SyncObject) -> Self {
        // The header starts with a count of 1, which is this.
        Self { object }
    }

    /// A reference to an object that is found by its global handle; none if it is dying.
    pub(crate) fn upgrade(object: &SyncObject) -> Option<Self> {
        object.header().grab().then(|| Self {
            object: object.clone(),
        })
    }

    /// The object.
    pub(crate) fn object(&self) -> &SyncObject {
        &self.object
    }

    /// Gives the object a global handle, which still has to be published.
    pub(crate) fn name_globally(&self) -> Result<u32> {
        let header = self.object.header();
        let handle = header.globals.reserve(&self.object)?;

        // A failure from here on drops this reference, which takes the handle back.
        header.global.store(handle, kernel::sync::atomic::Release);
        Ok(handle)
    }
}

impl Drop for Strong {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        if self.object.header().drop_one() {
            self.object.retire();
        }
    }
}
