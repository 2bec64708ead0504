// SPDX-License-Identifier: GPL-2.0

//! Identities of threads.

use crate::sys::ffi;
use core::ptr::NonNull;
use kernel::{
    bindings,
    prelude::*, //
};

/// The identity of a thread: its referenced `struct pid`, because numbers are reused (RES-100).
///
/// It outlives the thread. After exec by a thread that does not lead its process, the caller has
/// the leader's identity, and its own `struct pid` has no task.
pub(crate) struct Thread(NonNull<bindings::pid>);

// SAFETY: Only compared, asked for numbers and at the end released; all of that may be done
// anywhere.
unsafe impl Send for Thread {}
// SAFETY: As above.
unsafe impl Sync for Thread {}

impl Thread {
    /// The calling thread.
    pub(crate) fn of_caller() -> Result<Self> {
        // SAFETY: May be called from any task; the result owns a reference.
        NonNull::new(unsafe { ffi::dxg_thread_get() })
            .map(Self)
            .ok_or(ESRCH)
    }

    /// Whether the caller is this thread.
    pub(crate) fn is_caller(&self) -> bool {
        // SAFETY: Only compares the pointer, which is valid because we own a reference.
        unsafe { ffi::dxg_thread_is(self.0.as_ptr()) }
    }

    /// Its number as the calling task sees it; 0 if it is in another pid namespace.
    pub(crate) fn number_for_caller(&self) -> i32 {
        // SAFETY: Valid because we own a reference.
        unsafe { bindings::pid_vnr(self.0.as_ptr()) }
    }

    /// Whether the thread will make no more calls: it has exited, or called exec and taken over
    /// another identity.
    pub(crate) fn is_dead(&self) -> bool {
        // SAFETY: Valid because we own a reference.
        unsafe { ffi::dxg_thread_is_dead(self.0.as_ptr()) }
    }

    /// The `struct pid`.
    pub(crate) fn as_ptr(&self) -> *mut bindings::pid {
        self.0.as_ptr()
    }
}

impl Clone for Thread {
    fn clone(&self) -> Self {
        // SAFETY: Valid because we own a reference; the copy owns the new one.
        unsafe { ffi::dxg_thread_ref(self.0.as_ptr()) };
        Self(self.0)
    }
}

impl PartialEq for Thread {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: Owns a reference to a `struct pid`, given back once.
        unsafe { bindings::put_pid(self.0.as_ptr()) }
    }
}
