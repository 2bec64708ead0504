// SPDX-License-Identifier: GPL-2.0

//! The credentials that decide about global handles, names and limits.

use crate::sys::ffi;

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

    /// Whether the calling task may make its work go before that of others (CAP_SYS_NICE).
    pub(crate) fn may_raise_priority() -> bool {
        // SAFETY: Looks at the current task only.
        unsafe { ffi::dxg_caller_may_raise_priority() }
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
