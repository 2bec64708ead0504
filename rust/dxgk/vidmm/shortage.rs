// SPDX-License-Identifier: GPL-2.0

//! Why an allocation cannot be resident, and where room for it may be made.

use super::{
    freed::Look,
    idle::IdleList, //
};
use crate::error::DxgError;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Why an allocation cannot be resident now.
pub(crate) enum Shortage {
    /// Its segment or the aperture lacks so many bytes, unless something there gives way.
    Room(u64, Room),
    /// Something else is the matter.
    Failed(DxgError),
}

/// Where room may be made.
pub(crate) struct Room {
    pub(super) idle: Arc<IdleList>,
    /// The segment, as it was before; `None` is the aperture.
    pub(super) segment: Option<(u32, Look)>,
    /// What is to be there does not leave again, so that it gets only room that nobody wants.
    pub(super) stays: bool,
}

impl Room {
    /// Has the allocation give way that goes first, of those that nobody wants; false if there is
    /// none.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn make(&self) -> bool {
        self.idle.make_room()
    }

    /// Whether some has come back since it was looked for, or is about to.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn comes_back(&self) -> bool {
        let look = self.segment.as_ref().map(|(_, look)| look);

        look.is_some_and(Look::is_outdated)
    }
}

impl Shortage {
    /// Why there is no `room` for `bytes` where `available` are not in use.
    pub(super) fn of_room(error: Error, bytes: u64, available: u64, room: Room) -> Self {
        match error == ENOSPC {
            // What is left may lie in pieces.
            true => Self::Room(
                bytes
                    .checked_sub(available)
                    .filter(|missing| *missing != 0)
                    .unwrap_or(bytes),
                room,
            ),
            false => Self::Failed(DxgError::from_errno(error)),
        }
    }
}

impl<T: Into<DxgError>> From<T> for Shortage {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}
