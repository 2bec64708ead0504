// SPDX-License-Identifier: GPL-2.0

//! Global (KMT) handles: system-wide numbers that name an object and do not keep it (RES-9 to
//! RES-12).
//!
//! LOCK: the table's lock is a leaf, taken when a global handle is made, opened or removed, never
//! when an object is used. An entry goes with the last strong reference to its object; opening
//! takes a strong reference unless that has happened, so a lookup gets a living object or nothing.

use crate::dxgk::{
    memory::resource::Resource,
    object::{
        Object,
        Strong, //
    },
    quota::account::{
        Charge,
        Limit, //
    }, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        bucket_map::{
            BucketMap,
            ChainNode, //
        },
        global_access::{
            self,
            OpenPolicy,
            Opener,
            Policy, //
        },
        handle,
        index_map::NewNode, //
    },
    sys::{
        params,
        random,
        task::{
            caller::Credentials,
            group::ThreadGroup, //
        }, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// How often a random index is tried before the space counts as full.
const TRIES: u32 = 64;

struct Entry {
    handle: u32,
    object: Object,
    published: bool,
    _charge: Charge,
}

/// A number that is reserved for an object and does not resolve yet. The object gives it back at
/// its end.
pub(crate) struct ReservedGlobal<'a> {
    table: &'a GlobalTable,
    handle: u32,
    object: u64,
}

impl ReservedGlobal<'_> {
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
            entry.published |= entry.object.header().id() == self.object;
        }
    }
}

/// The table of global handles.
#[pin_data]
pub(crate) struct GlobalTable {
    /// By index.
    #[pin]
    entries: SpinLock<BucketMap<Entry>>,
}

impl GlobalTable {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_spinlock!(BucketMap::new(random::number()), "GlobalTable::entries"),
        })
    }

    /// Takes a random free number for `object`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(&self, object: &Object) -> DxgResult<ReservedGlobal<'_>> {
        let entry = Entry {
            handle: 0,
            object: object.clone(),
            published: false,
            _charge: object.header().charge.account().charge(Limit::Globals, 1)?,
        };
        // What is not used is declared before the lock, to be dropped after it.
        let mut link = KBox::new(ChainNode::new(0, entry), GFP_KERNEL_ACCOUNT)?;
        let mut spare = None;

        loop {
            let _waste;
            let mut entries = self.entries.lock();

            _waste = spare.take().and_then(|spare| entries.insert_node(spare));
            if let Some(missing_node) = entries.missing_node() {
                drop(entries);
                spare = Some(NewNode::new(missing_node).ok_or(AllocError)?);
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
                object: object.header().id(),
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

    /// A strong reference to the object that a global handle names, if the caller may have it.
    ///
    /// A refusal looks like a dead handle (RES-103).
    pub(crate) fn open(&self, global: u32) -> Option<Strong> {
        let (index, _) = handle::global_parts(global)?;
        let object = {
            let entries = self.entries.lock();
            let entry = entries.get(index)?;

            (entry.published && entry.handle == global).then(|| entry.object.clone())?
        };

        if !may_open(&object) {
            return None;
        }
        Strong::upgrade(&object)
    }
}

/// What the administrator allows.
fn policy() -> Policy {
    Policy {
        global_access: params::global_access(),
        allow_nonsecure: params::allow_nonsecure(),
    }
}

/// Whether the caller may open `object` by its global handle.
fn may_open(object: &Object) -> bool {
    let creator = &object.header().creator;
    let caller = Credentials::of_caller();
    let (audience, admitted) = match object {
        Object::Resource(resource) => {
            let audience = resource.description.audience;

            (
                audience,
                audience == OpenPolicy::Restricted && resource.allows_caller(),
            )
        }
        _ => (OpenPolicy::Default, false),
    };
    let opener = Opener {
        same_namespace: caller.shares_ipc_with(creator),
        same_user: caller.acts_as(creator) || Credentials::caller_is_ipc_owner(),
        admitted,
    };

    global_access::may_open(policy(), audience, opener)
}

/// Whether the process `group` may open `resource` by its global handle.
pub(crate) fn may_group_open(resource: &Resource, group: &ThreadGroup) -> bool {
    let creator = &resource.header.creator;
    let Some((credentials, ipc_owner)) = group.credentials() else {
        return false;
    };
    let opener = Opener {
        same_namespace: credentials.shares_ipc_with(creator),
        same_user: credentials.acts_as(creator) || ipc_owner,
        admitted: resource.allows(group),
    };

    global_access::may_open(policy(), resource.description.audience, opener)
}
