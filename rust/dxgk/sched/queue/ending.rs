// SPDX-License-Identifier: GPL-2.0

//! The end of a queue.
//!
//! ```text
//! Open --close--> Closing --nothing left--> Ended
//!   \                |                       ^
//!    +----stop-------+----stop--> Stopped ---+
//! ```
//!
//! A closing queue has no handle any more. It goes on until everything is done, until a wait is not
//! satisfied when it is its turn, or until patience with it is at an end (FEN-46). Then the rest is
//! discarded. Its commands may take [`PATIENCE_MS`] without progress (GPU-30), and five times that
//! altogether, because nobody is left who could say that it is enough. A queue that its process has
//! filled is looked at more often, because nothing tells of its progress.
//!
//! A stopped queue discards everything: its device is in error, its adapter is removed, or patience
//! is at an end. The end destroys what the KMD has, which stops commands that still run.

use super::{
    state::{
        Rest,
        Runner, //
    },
    Queue,
    PATIENCE, //
};
use crate::{
    dxgk::stats::{
        self,
        RETIRING, //
    },
    sys::work, //
};
use kernel::{
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// How long the commands of a closing queue may take without progress.
const PATIENCE_MS: u32 = 2000;
/// How long it is between two looks at a ring.
const RING_MS: u32 = 20;

impl WorkItem<PATIENCE> for Queue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.state
            .lock()
            .look_at_patience(PATIENCE_MS / this.look_after_ms());
        this.advance(Runner::Patient);

        // Only now: the end takes it back, and waits for it if it runs, which is here.
        let mut state = this.state.lock();

        if state.is_patient() {
            this.look_later();
        }
    }
}

impl Queue {
    /// Its handle is gone: it does what it can do and ends.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(self: &Arc<Self>) {
        // What its ring may use stays until it ends.
        let mut epoch = self
            .is_filled_by_process
            .then(|| self.device.process.work.epoch());
        let ring = {
            let mut state = self.state.lock();

            if !state.close(&mut epoch) {
                return;
            }
            stats::add::<RETIRING>(&self.device, 1);
            state.ring()
        };

        if let Some(ring) = ring {
            ring.disconnect();
            // What is in there is done, although nobody has rung.
            if !ring.is_idle() {
                self.adapter().power.wake_for_work();
            }
        }
        self.advance(Runner::Patient);

        let mut state = self.state.lock();

        state.begin_patience();
        if state.is_patient() {
            self.look_later();
        }
    }

    /// How long it is between two looks at the patience.
    fn look_after_ms(&self) -> u32 {
        match self.is_filled_by_process {
            true => RING_MS,
            false => PATIENCE_MS,
        }
    }

    /// Looks at the patience later. Called with the lock held, so that the end, which takes it
    /// back, comes after it.
    fn look_later(self: &Arc<Self>) {
        if let Some(worker) = work::worker() {
            // It fails only if it is queued already.
            let _queued = worker
                .enqueue_delayed::<_, PATIENCE>(
                    self.clone(),
                    msecs_to_jiffies(self.look_after_ms()),
                )
                .is_ok();
        }
    }

    /// Discards everything and ends.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn stop_now(self: &Arc<Self>) {
        self.state.lock().stop();
        self.advance(Runner::Patient);
    }

    /// The end, by who has the turn: the KMD destroys what it has, and nothing is left.
    pub(super) fn end(self: &Arc<Self>) {
        let ring = self.state.lock().take_ring();

        if let Some(ring) = ring {
            ring.end();
        }

        // What is in flight is used until the KMD has stopped it, so that goes first.
        let own = self.state.lock().take_kmd();
        let last = self.kmd.lock().take();

        drop((own, last));

        let Rest {
            running,
            waiting,
            exports,
            is_awaited,
            was_retiring,
            epoch,
        } = self.state.lock().end();

        Self::discard(running);
        Self::discard(waiting);
        drop((epoch, exports));
        if is_awaited {
            work::cancel::<_, PATIENCE>(self);
        }
        self.end_watch();
        if was_retiring {
            stats::sub::<RETIRING>(&self.device, 1);
        }
        // Who waits for the last queue of an adapter goes on.
        self.adapter().queues.remove(self.key());
    }
}
