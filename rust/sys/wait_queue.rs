// SPDX-License-Identifier: GPL-2.0

//! The wait queue behind a pollable descriptor, or of what sleeps for one thing.
//!
//! The drop of the kernel crate's `PollCondVar` waits for an RCU grace period, because it may go
//! while its file lives. Ours lives in the file's private data: epoll and io_uring leave the queue
//! before the file is released, so closing a descriptor need not wait.

use super::ffi;
use kernel::{
    bindings,
    fs::File,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Full, //
    },
    types::Opaque, //
};

/// A wait queue that outlives its file.
#[pin_data]
pub(crate) struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A wait queue has its own lock.
unsafe impl Send for WaitQueue {}
// SAFETY: A wait queue has its own lock.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// An empty queue.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: `head` points at memory for a wait queue.
            head <- Opaque::ffi_init(|head| unsafe { ffi::dxg_waitqueue_init(head) }),
        })
    }

    /// Sleeps until `count` reaches `target`, or the caller is killed. The count goes up one by one
    /// and wraps; [`WaitQueue::wake`] is called after each step.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn wait_until_reached(&self, count: &Atomic<u32>, target: u32) {
        let head = self.head.get();
        // SAFETY: The queue was initialised in `new` and is pinned, and `Atomic<u32>` has the
        // layout of the kernel's counter.
        let _is_killed = unsafe { ffi::dxg_wait_reached(head, count.as_ptr().cast(), target) } != 0;
    }

    /// Sleeps while `count` is `old`; [`WaitQueue::wake`] is called after each change. False if a
    /// signal ended the sleep.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn wait_while_equal(&self, count: &Atomic<u32>, old: u32) -> bool {
        let head = self.head.get();

        // SAFETY: The queue was initialised in `new` and is pinned, and `Atomic<u32>` has the
        // layout of the kernel's counter.
        unsafe { ffi::dxg_wait_while_equal(head, count.as_ptr().cast(), old) == 0 }
    }

    /// The queue itself, for functions of the C half.
    pub(in crate::sys) fn as_ptr(&self) -> *mut bindings::wait_queue_head {
        self.head.get()
    }

    /// Wakes everybody in it. Does not sleep.
    ///
    /// Context: none of our locks held if it can be polled, because epoll calls back; otherwise
    /// spinlocks may be held.
    pub(crate) fn wake(&self) {
        // SAFETY: The queue was initialised in `new` and is pinned.
        unsafe { ffi::dxg_waitqueue_wake(self.head.get()) }
    }

    /// Adds the poller behind `table` to the queue.
    ///
    /// # Safety
    ///
    /// `table` is NULL or valid, and `self` lives as long as `file`.
    pub(super) unsafe fn register(&self, file: &File, table: *mut bindings::poll_table_struct) {
        // SAFETY: `file` and, by the caller's promise, `table` are valid; the queue outlives the
        // file and so everything that polls it.
        unsafe { ffi::dxg_poll_wait(file.as_ptr(), self.head.get(), table) }
    }
}

/// Counts what happens in any context, and can be waited for. Nobody polls it.
#[pin_data]
pub(crate) struct Arrivals {
    count: Atomic<u32>,
    #[pin]
    queue: WaitQueue,
}

impl Arrivals {
    /// Nothing has happened.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count: Atomic::new(0),
            queue <- WaitQueue::new(),
        })
    }

    /// How much has happened so far, modulo 2^32.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Acquire)
    }

    /// One more.
    ///
    /// Context: any; it takes no lock but that of the wait queue, with interrupts off.
    pub(crate) fn arrive(&self) {
        self.count.fetch_add(1, Full);
        self.queue.wake();
    }

    /// Returns when so much has happened, whatever happens to the caller.
    ///
    /// Context: may sleep, no spinlocks held.
    pub(crate) fn wait_until(&self, count: u32) {
        // SAFETY: The queue was initialised in `new` and is pinned, and `Atomic<u32>` has the
        // layout of the kernel's counter.
        unsafe {
            ffi::dxg_wait_surely_reached(self.queue.head.get(), self.count.as_ptr().cast(), count)
        }
    }
}
