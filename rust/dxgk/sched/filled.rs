// SPDX-License-Identifier: GPL-2.0

//! What a queue knows of the ring that its process fills. `queue/filled.rs` has what it does.

use crate::logic::doorbell::DoorbellStatus;

/// The ring of a queue.
pub(in crate::dxgk) trait Filled: Send + Sync {
    /// How far the queue is, which only goes up.
    fn progress(&self) -> u64;

    /// How far it will be when it has done all that the process has queued, as the process says.
    fn last_queued(&self) -> u64;

    /// Whether it has done all that the process has queued, as the process says.
    fn is_idle(&self) -> bool;

    /// The process rings no more.
    ///
    /// Context: may sleep, no locks held.
    fn disconnect(&self);

    /// The process rings no more before it has connected its doorbell again (GPU-22).
    ///
    /// Context: may sleep; no locks held that are inside `doorbell::Ring::live`.
    fn disconnect_for_now(&self);

    /// Nothing of it runs any more, once this has returned. May be called more than once.
    ///
    /// Context: may sleep, no locks held.
    fn end(&self);

    /// What the status of its doorbell says.
    fn status(&self) -> DoorbellStatus;
}
