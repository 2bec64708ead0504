// SPDX-License-Identifier: GPL-2.0

//! UpdateAllocationProperty: an allocation is to be somewhere else, or to lie in another way
//! (MEM-8).
//!
//! Room in the new place is taken first, so that nothing has changed if there is none. Then the
//! allocation loses its placement, as by an eviction, and gets the new one. In between its
//! addresses fault.

use super::{
    AllocationMemory,
    Turn, //
};
use crate::{
    dxgk::vidmm::{
        pinned_pages::take_pages,
        segment::AdapterMemory,
        shortage::Shortage,
        site::Site, //
    },
    error::Status,
    logic::allocation_properties::Update, //
};
use kernel::sync::{
    atomic::Relaxed,
    Arc, //
};

/// What has become of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::dxgk::vidmm) enum Changed {
    /// The allocation is as it is to be.
    Done,
    /// It is wanted and has lost its placement: there is no memory for another one.
    Lost,
}

impl Turn {
    /// Nothing is held yet for this site.
    fn empty(site: Site) -> Self {
        Self {
            site,
            local: None,
            home: None,
            shown: None,
            pinned: None,
        }
    }
}

impl AllocationMemory {
    /// Changes what decides where it is placed, on the adapter with this memory; the update was
    /// checked. On return it is there.
    ///
    /// Context: a system call that is charged, no locks held.
    pub(in crate::dxgk::vidmm) fn change(
        self: &Arc<Self>,
        memory: &AdapterMemory,
        update: &Update,
    ) -> Result<Changed, Shortage> {
        // Dropped after the lock.
        let (_left, _old);
        let mut turn = self.lock_turn();
        let properties = update.apply(turn.site.properties);
        let site = Site::new(memory, properties, self.kmd.info.alignment);
        let (storage, is_wanted) = {
            let mut state = self.state.lock();
            let is_wanted = state.users.are_wanted();

            // Who wants it may have written to it, and has not said anything else.
            state.is_written |= is_wanted;
            (state.storage.clone(), is_wanted)
        };

        if !site.differs(&turn.site) {
            turn.site = site;

            let mut state = self.state.lock();

            state.unmoveable = properties.unmoveable;
            self.is_physical
                .store(properties.accessed_physically, Relaxed);
            self.relist(&mut state);
            return Ok(Changed::Done);
        }

        let mut new = Turn::empty(site);

        if let (true, Some(storage)) = (is_wanted, &storage) {
            self.take_room(&mut new, storage)?;
            // It cannot be moved while it is pinned, and is pinned again where it is then.
            new.pinned = None;
            if let Some(home) = &turn.home {
                take_pages(&**home)?;
            }
        }

        let placement = self.state.lock().take_placement();
        // Who waits for it gives it its placement; if nobody wants it, it has none.
        let place_again = is_wanted && placement.is_some();

        _left = self.give_up(&mut turn, placement, storage.clone(), |turn, storage| {
            self.go_home(turn, storage)
        });
        if turn.local.is_some() {
            // The bytes have to stay in their segment.
            return match (&storage, place_again) {
                (Some(storage), true) if self.place(&mut turn, storage).is_err() => {
                    Ok(Changed::Lost)
                }
                _ => Err(Status::NO_MEMORY.into()),
            };
        }

        {
            // Whoever counts does so before, in the old group, or after, in the new one.
            let mut state = self.state.lock();
            let before = self.usage();

            state.unmoveable = properties.unmoveable;

            self.group.store(new.site.group(), Relaxed);
            self.is_physical
                .store(properties.accessed_physically, Relaxed);
            self.wants_64kb.store(new.site.wants_64kb_pages(), Relaxed);
            state.users.move_usage(before, self.usage());
        }
        _old = core::mem::replace(&mut *turn, new);

        match (&storage, place_again) {
            (Some(storage), true) if self.place(&mut turn, storage).is_err() => Ok(Changed::Lost),
            _ => Ok(Changed::Done),
        }
    }
}
