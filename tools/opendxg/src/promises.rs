// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the types promise to their users, checked by the compiler.

use static_assertions::{
    assert_eq_size, assert_impl_all, assert_not_impl_any, assert_obj_safe, const_assert_eq,
};

use crate::*;

// Everything that stands for an object can be used by several threads.
assert_impl_all!(Dxg: Send, Sync);
assert_impl_all!(Adapter: Send, Sync, Clone);
assert_impl_all!(Device: Send, Sync, Clone);
assert_impl_all!(Context: Send, Sync);
assert_impl_all!(MonitoredFence: Send, Sync);
assert_impl_all!(SyncObject: Send, Sync);
assert_impl_all!(KeyedMutex: Send, Sync);
assert_impl_all!(Resource: Send, Sync);
assert_impl_all!(Allocation: Send, Sync);
assert_impl_all!(Mapping<'static>: Send, Sync);
assert_impl_all!(MappingMut<'static>: Send, Sync);
assert_impl_all!(NtHandle: Send, Sync);
assert_impl_all!(WeakRef: Send, Sync);
assert_impl_all!(Watch: Send, Sync);
assert_impl_all!(EventFd: Send, Sync);
assert_impl_all!(FencePoint: Send, Sync);
assert_impl_all!(Error: Send, Sync, std::error::Error);

// The kernel gives a keyed mutex to a thread (RES-95): only that one can release it.
assert_not_impl_any!(KeyedMutexGuard<'static>: Send, Sync, Clone, Copy);

// What owns a handle or a lock is not copied by accident.
assert_not_impl_any!(Allocation: Clone, Copy);
assert_not_impl_any!(MappingMut<'static>: Clone, Copy);
assert_not_impl_any!(EventFd: Copy);
assert_not_impl_any!(NtHandle: Copy);

assert_obj_safe!(Object);

// Handles and values are as the C interface has them.
assert_eq_size!(LocalHandle, u32);
assert_eq_size!(GlobalHandle, u32);
assert_eq_size!(Guid, [u8; 16]);
assert_eq_size!(Luid, u64);
const_assert_eq!(size_of::<uapi::LUID>(), size_of::<Luid>());
