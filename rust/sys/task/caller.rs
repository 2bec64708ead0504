// SPDX-License-Identifier: GPL-2.0

//! The process identity that handles belong to.

use super::group::ThreadGroup;
use crate::sys::ffi;
use core::ptr::NonNull;
use kernel::{
    bindings,
    mm::Mm,
    prelude::*,
    sync::aref::ARef, //
};

/// A process as handles see it: one thread group with one address space (RES-8).
///
/// Both parts are referenced, so neither address is reused while this exists.
pub(crate) struct Identity {
    tgid: NonNull<bindings::pid>,
    mm: ARef<Mm>,
}

// SAFETY: Only compared and, at the end, released; both functions may be called anywhere.
unsafe impl Send for Identity {}
// SAFETY: As above.
unsafe impl Sync for Identity {}

impl Identity {
    /// The calling process; fails for tasks without user memory.
    pub(crate) fn of_caller() -> Result<Self> {
        let mm = NonNull::new(current_mm()).ok_or(ESRCH)?;
        // SAFETY: `current->mm` is not NULL and stays valid while the task runs this.
        let mm = ARef::from(unsafe { Mm::from_raw(mm.as_ptr()) });
        // SAFETY: May be called from any task; the result owns a reference.
        let tgid = NonNull::new(unsafe { ffi::dxg_tgid_get() }).ok_or(ESRCH)?;

        Ok(Self { tgid, mm })
    }

    /// Whether the caller is this process, with the same address space.
    pub(crate) fn is_caller(&self) -> bool {
        // SAFETY: Only compares the pointers, which are valid because we own references.
        unsafe { ffi::dxg_process_is(self.tgid.as_ptr(), self.mm.as_raw()) }
    }

    /// Whether the caller belongs to this thread group, even if its address space is another one.
    pub(crate) fn is_caller_group(&self) -> bool {
        // SAFETY: Only compares the pointer, which is valid because we own a reference.
        unsafe { ffi::dxg_tgid_is(self.tgid.as_ptr()) }
    }

    /// Whether it is the process of this thread group.
    pub(crate) fn is_group(&self, group: &ThreadGroup) -> bool {
        group.is(self.tgid)
    }

    /// The number of the process, as the first namespace of process ids has it; 0 if the process is
    /// gone.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: Only looks at the `struct pid`, which is valid because we own a reference.
        unsafe { ffi::dxg_tgid_number(self.tgid.as_ptr()) }
    }

    /// The address space. The caller uses it if it is this process.
    pub(crate) fn mm(&self) -> &Mm {
        &self.mm
    }

    /// Which process it is.
    pub(crate) fn key(&self) -> ProcessKey {
        ProcessKey {
            tgid: self.tgid.as_ptr().addr(),
            mm: self.mm.as_raw().addr(),
        }
    }
}

/// Which process it is, among the identities that exist. It is made of addresses, so there is no
/// way to show it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessKey {
    tgid: usize,
    mm: usize,
}

impl ProcessKey {
    /// The next higher key.
    pub(crate) fn next(self) -> Self {
        Self {
            // Addresses are not that high.
            mm: self.mm.saturating_add(1),
            ..self
        }
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // SAFETY: `tgid` owns a reference to a `struct pid`, given back once.
        unsafe { bindings::put_pid(self.tgid.as_ptr()) }
    }
}

/// Whether every thread of the calling thread group is exiting.
pub(crate) fn group_is_dead() -> bool {
    // SAFETY: Looks at the current task only.
    unsafe { ffi::dxg_group_is_dead() }
}

/// Whether a signal ends the calling thread group.
pub(crate) fn group_is_killed() -> bool {
    // SAFETY: Looks at the current task only.
    unsafe { ffi::dxg_group_is_killed() }
}

/// Gives the calling kernel thread, which runs a test, an address space that ends with it.
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) fn attach_mm() -> Result {
    // SAFETY: The caller is the thread of a test.
    kernel::error::to_result(unsafe { bindings::kunit_attach_mm() })
}

fn current_mm() -> *mut bindings::mm_struct {
    // SAFETY: Reads a pointer of the current task.
    unsafe { ffi::dxg_current_mm() }
}
