// SPDX-License-Identifier: GPL-2.0

//! Identities of processes other than the caller.

use super::credentials::Credentials;
use crate::sys::ffi;
use core::ptr::NonNull;
use kernel::bindings;

/// The identity of a thread group: its referenced `struct pid`, because numbers are reused.
pub(crate) struct ThreadGroup(NonNull<bindings::pid>);

// SAFETY: Only compared and at the end released; both may be done anywhere.
unsafe impl Send for ThreadGroup {}
// SAFETY: As above.
unsafe impl Sync for ThreadGroup {}

impl ThreadGroup {
    /// The calling process.
    pub(crate) fn of_caller() -> Option<Self> {
        // SAFETY: May be called from any task; the result owns a reference.
        NonNull::new(unsafe { ffi::dxg_tgid_get() }).map(Self)
    }

    /// The live process with this number, as the caller numbers processes.
    pub(crate) fn by_number(number: u32) -> Option<Self> {
        // SAFETY: Any number may be asked for; the result owns a reference.
        NonNull::new(unsafe { ffi::dxg_group_by_number(number) }).map(Self)
    }

    /// The process behind a pidfd of the caller.
    ///
    /// Context: a system call.
    pub(crate) fn by_pidfd(fd: u32) -> Option<Self> {
        // SAFETY: Any descriptor may be asked for; the result owns a reference.
        NonNull::new(unsafe { ffi::dxg_group_by_pidfd(fd) }).map(Self)
    }

    /// Whether this is its number.
    pub(super) fn is(&self, tgid: NonNull<bindings::pid>) -> bool {
        self.0 == tgid
    }

    /// The credentials of the process, unless it is gone, and whether it may act for every user.
    pub(crate) fn credentials(&self) -> Option<(Credentials, bool)> {
        let mut ids = ffi::dxg_caller::default();
        let mut ipc_owner = false;
        // SAFETY: The pid is valid because we own a reference; both places are valid for writes.
        let alive =
            unsafe { ffi::dxg_group_credentials(self.0.as_ptr(), &mut ids, &mut ipc_owner) };

        alive.then(|| (Credentials::of(ids), ipc_owner))
    }
}

impl PartialEq for ThreadGroup {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Drop for ThreadGroup {
    fn drop(&mut self) {
        // SAFETY: Owns a reference to a `struct pid`, given back once.
        unsafe { bindings::put_pid(self.0.as_ptr()) }
    }
}
