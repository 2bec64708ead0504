// SPDX-License-Identifier: GPL-2.0

//! A work queue of our own: what runs on it is gone before the module is.

use super::ffi;
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    container_of,
    prelude::*,
    workqueue::{
        DelayedWork,
        Queue,
        Work, //
    }, //
};

/// Owns a work queue. Dropping it finishes what is queued; not from one of its own items.
pub(crate) struct OwnQueue(NonNull<bindings::workqueue_struct>);

// SAFETY: Work queues may be used from any thread.
unsafe impl Send for OwnQueue {}
// SAFETY: As above.
unsafe impl Sync for OwnQueue {}

impl OwnQueue {
    /// A queue whose workers carry this name.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        // SAFETY: The name is copied during the call.
        NonNull::new(unsafe { ffi::dxg_workqueue(name.as_char_ptr()) })
            .map(Self)
            .ok_or(ENOMEM)
    }

    /// Waits until the queue is empty. Delayed work that still has to wait is not in it.
    ///
    /// Context: may sleep; not from an item of the queue.
    pub(crate) fn drain(&self) {
        // SAFETY: Valid until dropped.
        unsafe { bindings::drain_workqueue(self.0.as_ptr()) }
    }
}

impl Deref for OwnQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        // SAFETY: Valid until dropped.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for OwnQueue {
    fn drop(&mut self) {
        // SAFETY: Owned, and nobody can queue anything any more.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) }
    }
}

/// Runs delayed work now if it is waiting, and waits until it has run.
///
/// Context: may sleep; not from the work itself.
pub(crate) fn run_now<T, const ID: u64>(work: &DelayedWork<T, ID>) {
    // SAFETY: The reference makes all pointers valid, and the work was initialised with it.
    unsafe {
        let work = Work::raw_get(DelayedWork::raw_as_work(work));

        bindings::flush_delayed_work(container_of!(work, bindings::delayed_work, work));
    }
}
