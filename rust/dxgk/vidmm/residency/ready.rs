// SPDX-License-Identifier: GPL-2.0

//! The two steps that make an allocation ready: it takes room, and then its placement.

use super::{
    AllocationMemory,
    Turn, //
};
use crate::{
    ddi::{
        class::Passive,
        types::Place, //
    },
    dxgk::{
        memory::storage::Storage,
        vidmm::{
            aperture::{
                Aperture,
                ShownRange, //
            },
            freed::Look,
            pinned_pages::{
                take_pages,
                PinnedPages, //
            },
            placement::Placement,
            segment::LocalPages,
            shortage::{
                Room,
                Shortage, //
            }, //
        }, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::paging_log::{
        self,
        Action,
        Operation, //
    },
    sys::mem::movable::moving::MoveError, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Full,
        Arc, //
    }, //
};

impl AllocationMemory {
    /// Pays for the pages of system memory that [`AllocationMemory::prepare`] will take, until
    /// [`AllocationMemory::pay_back`].
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn pay_ahead(&self) -> DxgResult {
        // Dropped after the lock.
        let storage;
        let turn = self.lock_turn();

        storage = {
            let state = self.state.lock();

            match state.placement {
                Some(_) => None,
                None => state.storage.clone(),
            }
        };
        match &storage {
            Some(storage) if turn.site.segment.is_none() || !storage.may_move() => {
                storage.pages().pay_ahead().map_err(DxgError::from_errno)
            }
            _ => Ok(()),
        }
    }

    /// Ends what was paid for and not taken.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn pay_back(&self) {
        let storage = self.state.lock().storage.clone();

        if let Some(storage) = storage {
            storage.pages().pay_back();
        }
    }

    /// Takes what residency needs: pages of system memory, or a place in the segment.
    ///
    /// Context: a system call that is charged, no locks held.
    pub(crate) fn prepare(self: &Arc<Self>) -> Result<(), Shortage> {
        // Dropped after the lock.
        let storage;
        let mut turn = self.lock_turn();

        self.commit()?;

        {
            let state = self.state.lock();

            if state.placement.is_some() {
                return Ok(());
            }
            storage = state.storage.clone();
        }

        let storage = storage.as_ref().ok_or(Status::INVALID_PARAMETER)?;

        self.take_room(&mut turn, storage)
    }

    pub(super) fn take_room(
        &self,
        turn: &mut Turn,
        storage: &Arc<Storage>,
    ) -> Result<(), Shortage> {
        let Turn {
            site,
            local,
            shown,
            pinned,
            ..
        } = turn;

        if let (Some(segment), true, None) = (&site.segment, storage.may_move(), &pinned) {
            if local.is_none() {
                let look = Look::take(&segment.freed);
                let taken = segment
                    .take(storage.count(), site.layout, Some(&self.mover.log))
                    .map_err(|error| {
                        let available = segment.available();

                        let properties = &site.properties;
                        let room = Room {
                            idle: segment.idle.clone(),
                            segment: Some((segment.id, look)),
                            stays: properties.unmoveable || properties.accessed_physically,
                        };

                        Shortage::of_room(error, self.size(), available, room)
                    })?;

                take_pages(&*taken)?;
                *local = Some(taken);
            }
            return Ok(());
        }
        if let (Some(aperture), None) = (&site.aperture, &shown) {
            let taken = self.range_of(aperture, storage).map_err(|error| {
                let available = aperture.available();

                let room = Room {
                    idle: aperture.idle.clone(),
                    segment: None,
                    stays: true,
                };

                Shortage::of_room(error, self.size(), available, room)
            })?;

            *shown = Some(taken);
        }
        if pinned.is_none() {
            *pinned = Some(PinnedPages::new(storage, &self.mover.log)?);
        }
        Ok(())
    }

    /// Takes a range of the aperture for all of it.
    fn range_of(&self, aperture: &Arc<Aperture>, storage: &Storage) -> Result<Arc<ShownRange>> {
        let alignment = self.kmd.info.alignment;

        aperture.take(self.kmd.clone(), storage.count(), alignment.into())
    }

    /// Gives it its placement, after [`AllocationMemory::prepare`]. Nothing happens if it has one,
    /// or if nobody wants it any more.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn finish(self: &Arc<Self>) -> DxgResult {
        // Dropped after the lock.
        let storage;
        let mut turn = self.lock_turn();

        self.commit()?;

        {
            let state = self.state.lock();

            if !state.users.are_wanted() || state.placement.is_some() {
                return Ok(());
            }
            storage = state.storage.clone();
        }

        let storage = storage.as_ref().ok_or(Status::INVALID_PARAMETER)?;

        self.place(&mut turn, storage)
    }

    /// Gives it its placement.
    pub(super) fn place(self: &Arc<Self>, turn: &mut Turn, storage: &Arc<Storage>) -> DxgResult {
        let local = match turn.local.clone() {
            Some(local) => self.moved(turn, storage, local)?,
            None => None,
        };
        let placement = match local {
            Some(placement) => placement,
            None => {
                let pinned = match turn.pinned.take() {
                    Some(pinned) => pinned,
                    None => PinnedPages::new(storage, &self.mover.log)?,
                };

                if let (Some(aperture), None) = (&turn.site.aperture, &turn.shown) {
                    let shown = self.range_of(aperture, storage);

                    turn.shown = Some(shown.map_err(DxgError::from_errno)?);
                }
                if let Some(shown) = &turn.shown {
                    shown.show(pinned.source())?;
                }
                Placement::System(pinned, turn.shown.clone())
            }
        };

        let at = placement.physical();

        {
            let mut state = self.state.lock();

            // Nobody wanted it before, or somebody who waits for this does.
            state.placement = Some(placement);
            self.relist(&mut state);
        }
        self.refresh();
        self.notify(at);
        Ok(())
    }

    /// NotifyResidency, if the KMD has asked for it (MEM-77).
    pub(super) fn notify(&self, at: Option<(u32, u64)>) {
        if !self.kmd.info.explicit_residency_notification {
            return;
        }

        let (segment, offset) = at.unwrap_or_default();

        // It may have lost its physical addresses by UpdateAllocationProperty.
        if self.is_notified.xchg(at.is_some(), Full) == at.is_some() {
            return;
        }
        self.mover.log.write(|| Action {
            operation: Operation::NotifyResidency,
            segment,
            offset,
            flags: if at.is_some() { paging_log::VALID } else { 0 },
            ..Action::default()
        });
        self.kmd.notify_residency(&Passive::here(), at);
    }

    /// Moves the bytes into a segment. `None`: they stay where they are, because something else
    /// holds them there.
    fn moved(
        &self,
        turn: &mut Turn,
        storage: &Arc<Storage>,
        local: Arc<LocalPages>,
    ) -> DxgResult<Option<Placement>> {
        let place = Place::Segment(local.segment());

        if storage.place() != place {
            let home = storage.pages();

            home.take_used().map_err(DxgError::from_errno)?;
            self.mover
                .clear(&local, &*home)
                .map_err(DxgError::from_errno)?;
            match self.mover.move_to(storage, place, local.clone()) {
                Ok(()) => {
                    turn.home = Some(home);
                    self.state.lock().is_written = false;
                }
                Err(MoveError::Failed(error)) => return Err(DxgError::from_errno(error)),
                Err(_) => {
                    turn.local = None;
                    return Ok(None);
                }
            }
        }
        let pinned = Arc::new(storage.pin()?, GFP_KERNEL_ACCOUNT)?;

        Ok(Some(Placement::Local(local, pinned)))
    }
}
