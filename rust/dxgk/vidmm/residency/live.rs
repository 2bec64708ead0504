// SPDX-License-Identifier: GPL-2.0

//! An allocation that is there: how the memory manager comes to know it, and how that ends.

use super::{
    reclaim,
    AllocationMemory,
    State,
    Turn, //
};
use crate::{
    ddi::object,
    dxgk::{
        memory::storage::Storage,
        vidmm::{
            mover::Mover,
            segment::AdapterMemory,
            site::Site, //
        }, //
    },
    logic::users::Users,
    sys::alloc::{
        pin_arc,
        tree_place, //
    }, //
};
use core::ops::Deref;
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            AtomicFlag, //
        },
        Arc, //
    }, //
};

/// What the memory manager knows of an allocation that is there: its drop is the end.
pub(crate) struct LiveMemory(Arc<AllocationMemory>);

impl Deref for LiveMemory {
    type Target = Arc<AllocationMemory>;

    fn deref(&self) -> &Arc<AllocationMemory> {
        &self.0
    }
}

impl Drop for LiveMemory {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.0.end();
    }
}

impl LiveMemory {
    /// An allocation of these bytes, which is to be at `site`, of the adapter with this memory.
    pub(crate) fn new(
        kmd: Arc<object::Allocation>,
        mover: Mover,
        adapter: &AdapterMemory,
        storage: Option<Arc<Storage>>,
        site: Site,
        size: u64,
        priority: u32,
    ) -> Result<Self, AllocError> {
        let unmoveable = site.properties.unmoveable;
        let may_move = storage.as_ref().is_some_and(|storage| storage.may_move());
        let (victim, item) = match may_move {
            true => reclaim::places(&adapter.shrinker)
                .map(|(victim, item)| (Some(victim), Some(item)))?,
            false => (None, None),
        };
        let (all, number) = (&adapter.allocations, kmd.id());
        let place = tree_place()?;
        let memory = pin_arc(
            pin_init!(AllocationMemory {
                kmd,
                group: Atomic::new(site.group()),
                is_physical: Atomic::new(site.properties.accessed_physically),
                wants_64kb: Atomic::new(site.wants_64kb_pages()),
                size: Atomic::new(size),
                priority: Atomic::new(priority),
                mover,
                is_notified: AtomicFlag::new(false),
                victim,
                turn <- new_mutex!(
                    Turn {
                        site,
                        local: None,
                        home: None,
                        shown: None,
                        pinned: None,
                    },
                    "AllocationMemory::turn"
                ),
                state <- new_mutex!(
                    State {
                        storage,
                        ended: false,
                        users: Users::new(),
                        placement: None,
                        is_idle: false,
                        unmoveable,
                        idle: None,
                        idle_place: None,
                        offered: None,
                        offered_place: None,
                        is_decommitted: false,
                        is_written: false,
                        item,
                        told: None,
                        among: Some(all.among(number)),
                    },
                    "AllocationMemory::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        all.add(place, number, memory.clone());
        Ok(Self(memory))
    }
}
