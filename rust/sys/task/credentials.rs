// SPDX-License-Identifier: GPL-2.0

//! The credentials that decide about global handles, names and limits.

use crate::sys::ffi;

/// Credentials and namespaces, as plain numbers that are never reused.
///
/// Packed, so that the small fields of an object fit beside it: every object has one.
#[derive(Clone, Copy)]
#[repr(Rust, packed(4))]
pub(crate) struct Credentials {
    ipc_ns: u64,
    user_ns: u64,
    euid: u32,
    fsuid: u32,
    egid: u32,
}

impl Credentials {
    /// Those of the calling task.
    pub(crate) fn of_caller() -> Self {
        let mut ids = ffi::dxg_caller::default();

        // SAFETY: `ids` is valid for the write.
        unsafe { ffi::dxg_caller(&mut ids) };
        Self::of(ids)
    }

    /// Those that were read from a task.
    pub(in crate::sys) fn of(ids: ffi::dxg_caller) -> Self {
        let ffi::dxg_caller {
            ipc_ns,
            user_ns,
            euid,
            fsuid,
            egid,
            ..
        } = ids;

        Self {
            ipc_ns,
            user_ns,
            euid,
            fsuid,
            egid,
        }
    }

    /// Whether both live in one IPC namespace.
    pub(crate) fn shares_ipc_with(&self, creator: &Self) -> bool {
        self.ipc_ns == creator.ipc_ns
    }

    /// Whether the caller acts as the user that created something (RES-103).
    pub(crate) fn acts_as(&self, creator: &Self) -> bool {
        self.user_ns == creator.user_ns && self.fsuid == creator.euid
    }

    /// The id of the IPC namespace, which is never used for another one.
    pub(crate) fn ipc_ns(&self) -> u64 {
        self.ipc_ns
    }

    /// The effective user, as the kernel numbers users of all namespaces.
    pub(crate) fn user(&self) -> u32 {
        self.euid
    }

    /// Whether the calling task may make its work go before that of others (CAP_SYS_NICE).
    pub(crate) fn may_raise_priority() -> bool {
        // SAFETY: Looks at the current task only.
        unsafe { ffi::dxg_caller_may_raise_priority() }
    }

    /// Whether the calling task may control the machine.
    pub(crate) fn may_administrate() -> bool {
        // SAFETY: Looks at the current task only.
        unsafe { ffi::dxg_caller_may_administrate() }
    }

    /// The effective user, as the calling task sees it.
    pub(crate) fn uid_for_caller(&self) -> u32 {
        // SAFETY: Looks at the current task only.
        unsafe { ffi::dxg_uid_for_caller(self.euid) }
    }

    /// Whether the calling task, whose credentials these are, is in the group of `owner` (RES-45).
    pub(crate) fn in_group_of(&self, owner: &Self) -> bool {
        // SAFETY: Looks at the current task only.
        self.user_ns == owner.user_ns && unsafe { ffi::dxg_caller_in_group(owner.egid) }
    }

    /// Whether the calling task, whose credentials these are, may see ids and names of what
    /// `creator` made (RES-15).
    pub(crate) fn may_inspect(&self, creator: &Self) -> bool {
        // SAFETY: Looks at the current task only.
        self.acts_as(creator) || unsafe { ffi::dxg_caller_may_ptrace(creator.user_ns) }
    }

    /// Whether the calling task has CAP_IPC_OWNER over its IPC namespace.
    pub(crate) fn caller_is_ipc_owner() -> bool {
        // SAFETY: Looks at the current task only.
        unsafe { ffi::dxg_caller_is_ipc_owner() }
    }
}
