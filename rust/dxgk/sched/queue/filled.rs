// SPDX-License-Identifier: GPL-2.0

//! A HW queue that its process fills: nothing is queued here, the ring of its doorbell has it all
//! (GPU-31).
//!
//! When such a queue is closed it is disconnected, so that its process rings no more, and goes on
//! until its progress fence shows what the process has queued last (GPU-30). What the process says
//! about that only hurts itself (FEN-128): patience is the same whatever it says.

use super::Queue;
use crate::dxgk::sched::filled::Filled;
use crate::error::{
    DxgResult,
    Status, //
};
use kernel::sync::Arc;

/// The place for a ring of a queue.
pub(in crate::dxgk) struct RingClaim(Arc<Queue>);

impl RingClaim {
    /// The process fills the queue by this ring from now on. False if the queue ends.
    pub(in crate::dxgk) fn fill_from(self, ring: Arc<dyn Filled>) -> bool {
        let refused = self.0.state.lock().fill_from(ring);

        refused.is_none()
    }
}

impl Drop for RingClaim {
    fn drop(&mut self) {
        self.0.state.lock().unclaim_ring();
    }
}

impl Queue {
    /// INVALID_PARAMETER if its process fills it (GPU-31).
    pub(crate) fn check_takes_items(&self) -> DxgResult {
        if self.is_filled_by_process {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(())
    }

    /// Makes a place for a ring; `None` if there is one already, or the queue takes none. It is
    /// free again when the result is dropped.
    pub(in crate::dxgk) fn claim_ring(self: &Arc<Self>) -> Option<RingClaim> {
        let claimed = self.is_filled_by_process && self.state.lock().claim_ring();

        claimed.then(|| RingClaim(self.clone()))
    }

    /// The process has given up the ring. False if the queue is closing, and ends it.
    pub(in crate::dxgk) fn give_up_ring<T: Filled>(&self, ring: &Arc<T>) -> bool {
        let (is_given_up, given) = self.state.lock().give_up_ring(Arc::as_ptr(ring).cast());

        drop(given);
        is_given_up
    }
}
