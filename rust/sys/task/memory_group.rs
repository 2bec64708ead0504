// SPDX-License-Identifier: GPL-2.0

//! Memory cgroups: whom work of the module's worker is charged to.

use crate::sys::ffi;
use kernel::bindings;

/// A reference to the memory cgroup of a task.
pub(crate) struct MemoryGroup(*mut bindings::mem_cgroup);

// SAFETY: Groups are counted, and may be used from any thread.
unsafe impl Send for MemoryGroup {}
// SAFETY: As above.
unsafe impl Sync for MemoryGroup {}

impl MemoryGroup {
    /// The one that allocations of the calling thread are charged to, with a reference.
    pub(crate) fn of_caller() -> Self {
        // SAFETY: May be called from any task; the result owns a reference, or is null in a kernel
        // without such groups.
        Self(unsafe { ffi::dxg_memory_group_get() })
    }

    /// Runs `work`, whose allocations are charged to the group instead of the caller's.
    pub(crate) fn charge<T>(&self, work: impl FnOnce() -> T) -> T {
        // SAFETY: The group is valid as long as this, and so at least until it is exchanged below.
        let before = unsafe { ffi::dxg_memory_group_exchange(self.0) };
        let result = work();

        // SAFETY: What was there before is kept by who has set it.
        unsafe { ffi::dxg_memory_group_exchange(before) };
        result
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // SAFETY: Releases our own reference, or nothing.
        unsafe { ffi::dxg_memory_group_put(self.0) }
    }
}
