// SPDX-License-Identifier: GPL-2.0

//! What queues are asked when a value of a fence is to become a sync file (FEN-161). Fences are
//! named by their ids here, so that the list of queues need not know what a fence is.

use crate::sys::dma_fence::own::Unsignalled;
use kernel::rbtree::RBTreeNodeReservation;

/// A value of a fence: the first signal that gives it is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// The id of the fence.
    pub(in crate::dxgk) fence: u64,
    pub(in crate::dxgk) value: u64,
}

/// The number of an item, and that of the export.
pub(in crate::dxgk) type ExportKey = (u64, u64);

/// An exported point that is not in a queue yet, with room for it.
pub(crate) struct NewExport {
    pub(in crate::dxgk) place: RBTreeNodeReservation<ExportKey, Unsignalled>,
    pub(in crate::dxgk) point: Unsignalled,
}

/// What a search has found in a queue.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    /// There is a signal, and nothing before it can be delayed.
    Signal,
    /// The wait with this number comes before it may be known. It is bounded if what it waits for
    /// is.
    Blocked(u64),
    /// There is no signal that may be exported.
    Nothing,
}

/// What a wait waits for that is not there.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    /// Its place among all that the wait waits for.
    pub(in crate::dxgk) place: usize,
    pub(in crate::dxgk) wanted: Wanted,
}
