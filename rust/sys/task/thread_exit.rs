// SPDX-License-Identifier: GPL-2.0

//! Notification that one thread ends: it exits or calls exec.
//!
//! An entry of this module waits on `pid->wait_pidfd` of the thread, where a poll on the thread's
//! pidfd waits, too. Only threads with an entry pay, in their own exit.
//!
//! The kernel announces a thread that leads its process only when the other threads have ended as
//! well. Callers that cannot wait for that use [`Thread::is_dead`].

use super::thread::Thread;
use crate::sys::{
    alloc::pin_box,
    ffi, //
};
use core::mem::{
    offset_of,
    ManuallyDrop, //
};
use kernel::{
    alloc::AllocError,
    bindings,
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

/// Is notified that a thread may have ended.
pub(crate) trait ExitListener: Send + Sync + Sized + 'static {
    /// The watched thread may have ended; [`Thread::is_dead`] says whether it has. May be called
    /// more than once.
    ///
    /// Context: interrupts are off, and locks of the kernel are held. Touches atomics and queues
    /// work, nothing else. `this` is not the last reference.
    fn may_have_ended(this: ArcBorrow<'_, Self>);
}

/// What the wait queue of a thread points to.
#[pin_data]
struct Entry<T: ExitListener> {
    #[pin]
    entry: Opaque<bindings::wait_queue_entry>,
    /// INVARIANT: points to a `T` in an `Arc` that [`ExitWatch`] owns a reference of, while the
    /// entry is queued.
    listener: *const T,
}

/// Memory for a watch on a thread, allocated beforehand.
pub(crate) struct Idle<T: ExitListener>(Pin<KBox<Entry<T>>>);

// SAFETY: The entry is not queued anywhere, and its pointer is not used.
unsafe impl<T: ExitListener> Send for Idle<T> {}
// SAFETY: As above; there is nothing to call by reference.
unsafe impl<T: ExitListener> Sync for Idle<T> {}

/// A watch on a thread. Dropping it ends it.
pub(crate) struct ExitWatch<T: ExitListener> {
    /// INVARIANT: queued on `thread`.
    entry: Pin<KBox<Entry<T>>>,
    thread: Thread,
    listener: Arc<T>,
}

// SAFETY: The entry is touched under the lock of the wait queue only, by any thread; the listener
// may be used anywhere.
unsafe impl<T: ExitListener> Send for ExitWatch<T> {}
// SAFETY: As above; there is nothing to call by reference.
unsafe impl<T: ExitListener> Sync for ExitWatch<T> {}

impl<T: ExitListener> Idle<T> {
    /// Allocates it. May sleep.
    pub(crate) fn new() -> Result<Self, AllocError> {
        Ok(Self(pin_box(
            pin_init!(Entry {
                entry: Opaque::uninit(),
                listener: core::ptr::null(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?))
    }

    /// From the return on, `listener` is notified of the end of `thread`, which has not begun to
    /// exit. Allocates nothing.
    ///
    /// Context: any in which interrupts are on. LOCK: takes that of the thread's wait queue, which
    /// is inside all locks of the module.
    pub(crate) fn watch(mut self, thread: Thread, listener: Arc<T>) -> ExitWatch<T> {
        // SAFETY: Nothing is moved.
        let entry = unsafe { self.0.as_mut().get_unchecked_mut() };

        entry.listener = Arc::as_ptr(&listener);
        // SAFETY: The entry is pinned and not queued. It stays until the watch is dropped, which
        // takes it off; the thread's identity is kept as long.
        unsafe { ffi::dxg_exit_watch(entry.entry.get(), thread.as_ptr(), Some(wake::<T>)) };
        ExitWatch {
            entry: self.0,
            thread,
            listener,
        }
    }
}

impl<T: ExitListener> ExitWatch<T> {
    /// Whom it is on.
    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Ends the watch: after the return the listener is not called. Allocates and frees nothing;
    /// the caller drops what it gets.
    ///
    /// Context: as [`Idle::watch`].
    pub(crate) fn end(self) -> (Idle<T>, Arc<T>) {
        let watch = ManuallyDrop::new(self);

        watch.take_off();
        // SAFETY: Each is read once, and the drop of the watch does not run.
        let (entry, thread, listener) = unsafe {
            (
                core::ptr::read(&raw const watch.entry),
                core::ptr::read(&raw const watch.thread),
                core::ptr::read(&raw const watch.listener),
            )
        };

        drop(thread);
        (Idle(entry), listener)
    }

    fn take_off(&self) {
        // SAFETY: Queued by the invariant, on a wait queue that the thread's identity keeps. A
        // function that runs has the lock that this takes.
        unsafe {
            ffi::dxg_exit_unwatch(self.entry.entry.get(), self.thread.as_ptr());
        }
    }
}

impl<T: ExitListener> Drop for ExitWatch<T> {
    fn drop(&mut self) {
        self.take_off();
    }
}

/// # Safety
///
/// Called by the kernel as the function of a queued [`Entry`] of `T`, under the lock of the wait
/// queue.
unsafe extern "C" fn wake<T: ExitListener>(
    entry: *mut bindings::wait_queue_entry,
    _mode: c_uint,
    _flags: c_int,
    _key: *mut c_void,
) -> c_int {
    // SAFETY: The entry is that of an `Entry<T>`, which stays as long as it is queued, and so does
    // the reference to the listener.
    unsafe {
        let this = entry
            .byte_sub(offset_of!(Entry<T>, entry))
            .cast::<Entry<T>>();

        T::may_have_ended(ArcBorrow::from_raw((*this).listener));
    }
    0
}
