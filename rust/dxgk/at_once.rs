// SPDX-License-Identifier: GPL-2.0

//! How much of the retirement of an object may run in the drop of the last reference. The module's
//! worker does the rest (see [`super::retire`]).

use crate::logic::waiters::BATCH;

/// The most waits, watches or pages that step two handles in the drop: as many as a signal releases
/// under one hold of the lock.
// CAST: a small number.
pub(crate) const AT_ONCE: usize = BATCH as usize;

/// What is left of an object, or of a part of it, for step two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// Not more than may be done at once.
    Little,
    /// More, or something that others share.
    Much,
}
