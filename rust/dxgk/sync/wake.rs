// SPDX-License-Identifier: GPL-2.0

//! What a wait can end in: a thread, an event, a descriptor that is polled.

use super::pending_waits::PendingWaits;
use crate::{
    logic::wait_set::WaitSet,
    sys::{
        file::eventfd::EventFd,
        task::sleep,
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    prelude::*,
    sync::aref::ARef,
    task::Task, //
};

/// What fdinfo calls a thread that sleeps in its call.
pub(crate) const THREAD: &str = "thread";

/// The receiver of the end of a wait.
pub(crate) trait Wake: Send + Sync {
    /// Whether the woken thread takes its waiter out of the queues itself.
    const UNLINKS: bool = false;

    /// What it is, for fdinfo.
    const NAME: &'static str = "queue";

    /// The number of the thread that sleeps, if one does.
    fn thread(&self) -> u32 {
        0
    }

    /// Tells it, once, that the wait has ended. The state of `set` was changed before.
    ///
    /// Context: no locks held.
    fn wake(&self, set: &WaitSet);

    /// The wait, which has this id, is in no fence any more.
    ///
    /// Context: may sleep, no locks held.
    fn unlinked(&self, _id: u64, _waits: &PendingWaits) {}
}

/// A thread that sleeps in its call.
pub(crate) struct WakeThread(ARef<Task>);

impl WakeThread {
    /// The calling thread.
    pub(crate) fn of_caller() -> Self {
        Self(sleep::me())
    }
}

impl Wake for WakeThread {
    const UNLINKS: bool = true;
    const NAME: &'static str = THREAD;

    fn thread(&self) -> u32 {
        sleep::number(&self.0)
    }

    fn wake(&self, set: &WaitSet) {
        if set.is_there() {
            sleep::wake(&self.0);
        }
    }
}

/// The eventfd of an asynchronous wait (FEN-20). The wait is listed in its process.
pub(crate) struct SignalEvent(EventFd);

impl SignalEvent {
    /// Adds 1 to `event`.
    pub(crate) fn new(event: EventFd) -> Self {
        Self(event)
    }
}

impl Wake for SignalEvent {
    const NAME: &'static str = "event";

    fn wake(&self, _set: &WaitSet) {
        self.0.signal();
    }

    fn unlinked(&self, id: u64, waits: &PendingWaits) {
        waits.forget(id);
    }
}

/// The pollers of a descriptor (FEN-168).
#[pin_data]
pub(crate) struct WakePollers {
    /// Where they wait.
    #[pin]
    pub(crate) queue: WaitQueue,
}

impl WakePollers {
    /// Nobody polls yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- WaitQueue::new(),
        })
    }
}

impl Wake for WakePollers {
    const NAME: &'static str = "poll";

    fn wake(&self, _set: &WaitSet) {
        self.queue.wake();
    }
}
