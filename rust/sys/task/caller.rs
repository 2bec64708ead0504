// SPDX-License-Identifier: GPL-2.0

//! The caller: the process identity that handles belong to, and the credentials that decide about
//! global handles.

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
        self.is_caller_group() && current_mm() == self.mm.as_raw()
    }

    /// Whether the caller belongs to this thread group, even if its address space is another one.
    pub(crate) fn is_caller_group(&self) -> bool {
        // SAFETY: Only compares the pointer, which is valid because we own a reference.
        unsafe { ffi::dxg_tgid_is(self.tgid.as_ptr()) }
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

/// Credentials and namespaces, as plain numbers that are never reused.
#[derive(Clone, Copy)]
pub(crate) struct Credentials {
    ids: ffi::dxg_caller,
}

impl Credentials {
    /// Those of the calling task.
    pub(crate) fn of_caller() -> Self {
        let mut ids = ffi::dxg_caller::default();

        // SAFETY: `ids` is valid for the write.
        unsafe { ffi::dxg_caller(&mut ids) };
        Self { ids }
    }

    /// Those that were read from a task.
    pub(in crate::sys) fn of(ids: ffi::dxg_caller) -> Self {
        Self { ids }
    }

    /// Whether both live in one IPC namespace.
    pub(crate) fn shares_ipc_with(&self, creator: &Self) -> bool {
        self.ids.ipc_ns == creator.ids.ipc_ns
    }

    /// Whether the caller acts as the user that created something (RES-103).
    pub(crate) fn acts_as(&self, creator: &Self) -> bool {
        self.ids.user_ns == creator.ids.user_ns && self.ids.fsuid == creator.ids.euid
    }

    /// The id of the IPC namespace, which is never used for another one.
    pub(crate) fn ipc_ns(&self) -> u64 {
        self.ids.ipc_ns
    }

    /// The effective user, as the kernel numbers users of all namespaces.
    pub(crate) fn user(&self) -> u32 {
        self.ids.euid
    }

    /// The effective user, as the calling task sees it.
    pub(crate) fn uid_for_caller(&self) -> u32 {
        // SAFETY: Looks at the current task only.
        unsafe { ffi::dxg_uid_for_caller(self.ids.euid) }
    }

    /// Whether the calling task, whose credentials these are, is in the group of `owner` (RES-45).
    pub(crate) fn in_group_of(&self, owner: &Self) -> bool {
        // SAFETY: Looks at the current task only.
        self.ids.user_ns == owner.ids.user_ns && unsafe { ffi::dxg_caller_in_group(owner.ids.egid) }
    }

    /// Whether the calling task, whose credentials these are, may see ids and names of what
    /// `creator` made (RES-15).
    pub(crate) fn may_inspect(&self, creator: &Self) -> bool {
        // SAFETY: Looks at the current task only.
        self.acts_as(creator) || unsafe { ffi::dxg_caller_may_ptrace(creator.ids.user_ns) }
    }

    /// Whether the calling task has CAP_IPC_OWNER over its IPC namespace.
    pub(crate) fn caller_is_ipc_owner() -> bool {
        // SAFETY: Looks at the current task only.
        unsafe { ffi::dxg_caller_is_ipc_owner() }
    }
}
