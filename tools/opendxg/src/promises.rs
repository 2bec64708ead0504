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
assert_impl_all!(HwQueue<'static>: Send, Sync);
assert_impl_all!(Doorbell<'static>: Send, Sync);
assert_impl_all!(PagingQueue: Send, Sync);
assert_impl_all!(MonitoredFence: Send, Sync);
assert_impl_all!(NativeFence: Send, Sync);
assert_impl_all!(IntraGpuFence: Send, Sync);
assert_impl_all!(FenceValues: Send, Sync, Clone, Default);
assert_impl_all!(SyncObject: Send, Sync);
assert_impl_all!(KeyedMutex: Send, Sync);
assert_impl_all!(Resource: Send, Sync);
assert_impl_all!(ResourceBuilder<'static>: Send, Sync);
assert_impl_all!(OpenedShare: Send, Sync);
assert_impl_all!(AnyObject: Send, Sync);
assert_impl_all!(ObjectRef<'static>: Send, Sync, Copy);
assert_impl_all!(Allocation: Send, Sync);
assert_impl_all!(Mapping<'static>: Send, Sync);
assert_impl_all!(MappingMut<'static>: Send, Sync);
assert_impl_all!(SharedBytes: Send, Sync);
assert_impl_all!(SharedBytesMut: Send, Sync);
assert_impl_all!(Pages: Send, Sync);
assert_impl_all!(NtHandle: Send, Sync);
assert_impl_all!(WeakRef: Send, Sync);
assert_impl_all!(Watch: Send, Sync);
assert_impl_all!(EventFd: Send, Sync);
assert_impl_all!(CpuEvent: Send, Sync);
assert_impl_all!(FencePoint: Send, Sync);
assert_impl_all!(SyncFile: Send, Sync);
assert_impl_all!(FenceStream: Send, Sync);
assert_impl_all!(TimelinePoint: Send, Sync);
assert_impl_all!(HandOver: Send, Sync);

// So can what describes an object, a call or an answer. Plain values can be copied.
assert_impl_all!(LogDetail: Send, Sync, Copy, Eq);
assert_impl_all!(DoorbellStatus: Send, Sync, Copy, Eq, core::hash::Hash);
assert_impl_all!(ShareOptions: Send, Sync, Clone);
assert_impl_all!(ObjectInfo: Send, Sync, Clone, PartialEq);
assert_impl_all!(Info: Send, Sync);
assert_impl_all!(Lookup: Send, Sync);
assert_impl_all!(Counters: Send, Sync, Clone, Default, PartialEq);
assert_impl_all!(FdInfo: Send, Sync, Clone, Default, PartialEq);
assert_impl_all!(InfoItem<'static>: Send, Sync, Copy);
assert_impl_all!(ResourceName<'static>: Send, Sync, Copy);
assert_impl_all!(SyncKind<'static>: Send, Sync, Copy);
assert_impl_all!(Target<'static>: Send, Sync, Copy);
assert_impl_all!(ResourceSizes: Send, Sync, Copy, PartialEq);
assert_impl_all!(InfoEntry: Send, Sync, Copy, PartialEq);
assert_impl_all!(Update: Send, Sync, Copy, PartialEq);
assert_impl_all!(WatchState: Send, Sync, Copy, PartialEq);
assert_impl_all!(Timeout: Send, Sync, Copy, PartialEq);
assert_impl_all!(Acquired: Send, Sync, Copy, PartialEq);
assert_impl_all!(Residency: Send, Sync, Copy, PartialEq);
assert_impl_all!(GpuMap: Send, Sync, Copy, Default, PartialEq);
assert_impl_all!(GpuRange: Send, Sync, Copy, PartialEq);
assert_impl_all!(GpuReserve: Send, Sync, Copy, Default, PartialEq);
assert_impl_all!(GpuUpdate<'static>: Send, Sync, Copy);
assert_impl_all!(Placement: Send, Sync, Copy);
assert_impl_all!(MemoryGroup: Send, Sync, Copy, PartialEq);
assert_impl_all!(PageFault: Send, Sync, Copy, PartialEq);
assert_impl_all!(PagingPriority: Send, Sync, Copy, Default, PartialEq);
assert_impl_all!(Reservation: Send, Sync, Copy, Default, PartialEq);
assert_impl_all!(Resident: Send, Sync, Copy, PartialEq);
assert_impl_all!(ProcessNodeStatistics: Send, Sync, Copy, PartialEq);
assert_impl_all!(SegmentStatistics: Send, Sync, Copy, PartialEq);
assert_impl_all!(BudgetNotices: Send, Sync);
assert_impl_all!(TrimNotices: Send, Sync);
assert_impl_all!(PagingLog: Send, Sync);
assert_impl_all!(TrimNotice: Send, Sync, Copy, PartialEq);
assert_impl_all!(OfferInfo: Send, Sync, Copy, PartialEq);
assert_impl_all!(OfferPriority: Send, Sync, Copy, Default, PartialEq);
assert_impl_all!(Reclaimed: Send, Sync, Copy, PartialEq);
assert_impl_all!(StatisticsOf<'_>: Send, Sync, Copy);
assert_impl_all!(VideoMemory: Send, Sync, Copy, PartialEq);
assert_impl_all!(ExecutionState: Send, Sync, Copy, PartialEq);
assert_impl_all!(ClockCalibration: Send, Sync, Copy, PartialEq);
assert_impl_all!(DeviceIds: Send, Sync, Copy, PartialEq);
assert_impl_all!(Feature: Send, Sync, Copy, PartialEq);
assert_impl_all!(Version: Send, Sync, Copy, PartialEq);
assert_impl_all!(Protocol: Send, Sync, Copy, PartialEq);
assert_impl_all!(Luid: Send, Sync, Copy, Ord, std::hash::Hash, std::str::FromStr);
assert_impl_all!(Guid: Send, Sync, Copy, Ord, std::hash::Hash, std::str::FromStr);
assert_impl_all!(LocalHandle: Send, Sync, Copy, Ord, std::hash::Hash);
assert_impl_all!(GlobalHandle: Send, Sync, Copy, Ord, std::hash::Hash);
assert_impl_all!(ObjectKind: Send, Sync, Copy, Eq, std::hash::Hash);
assert_impl_all!(Status: Send, Sync, Copy, Eq, std::hash::Hash);
assert_impl_all!(Errno: Send, Sync, Copy, Eq, std::hash::Hash);
assert_impl_all!(Error: Send, Sync, Copy, Eq, std::error::Error);
assert_impl_all!(ParseGuidError: Send, Sync, Copy, Eq, std::error::Error);
assert_impl_all!(ParseLuidError: Send, Sync, Copy, Eq, std::error::Error);

// Flags are sets of bits in the words of the C interface.
assert_impl_all!(Access: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(AdapterFilter: Send, Sync, Copy, bitflags::Flags<Bits = u64>);
assert_impl_all!(AdapterType: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(AllocationFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(EvictFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(GpuProtection: Send, Sync, Copy, bitflags::Flags<Bits = u64>);
assert_impl_all!(InfoFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(OfferFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(TrimFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(ResidentFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(SignalFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(SyncFlags: Send, Sync, Copy, bitflags::Flags<Bits = u32>);
assert_impl_all!(WatchEvents: Send, Sync, Copy, bitflags::Flags<Bits = u32>);

// The kernel gives a keyed mutex to a thread (RES-95): only that one can release it.
assert_not_impl_any!(KeyedMutexGuard<'static>: Send, Sync, Clone, Copy);

// What owns a handle or a lock is not copied by accident.
assert_not_impl_any!(Allocation: Clone, Copy);
assert_not_impl_any!(MappingMut<'static>: Clone, Copy);
assert_not_impl_any!(SharedBytesMut: Clone, Copy);
assert_not_impl_any!(Pages: Clone, Copy);
assert_not_impl_any!(Resource: Clone, Copy);
assert_not_impl_any!(KeyedMutex: Clone, Copy);
assert_not_impl_any!(MonitoredFence: Clone, Copy);
assert_not_impl_any!(NativeFence: Clone, Copy);
assert_not_impl_any!(IntraGpuFence: Clone, Copy);
assert_not_impl_any!(EventFd: Copy);
assert_not_impl_any!(NtHandle: Copy);

assert_obj_safe!(Object);

// Handles and values are as the C interface has them.
assert_eq_size!(LocalHandle, u32);
assert_eq_size!(GlobalHandle, u32);
assert_eq_size!(Guid, [u8; 16]);
assert_eq_size!(Luid, u64);
const_assert_eq!(size_of::<uapi::LUID>(), size_of::<Luid>());

/// Every type that the crate makes public has a line above.
#[test]
fn every_type_is_promised() {
    // A constant, and an alias.
    const OTHERS: [&str; 2] = ["NO_OP", "Result"];
    let names: Vec<&str> = include_str!("lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub use ")?.split_once("::"))
        .flat_map(|(_, names)| names.trim_matches(['{', '}', ';']).split(", "))
        .filter(|name| !OTHERS.contains(name))
        .collect();
    let promises = include_str!("promises.rs");

    assert!(names.len() > 50, "{names:?}");
    for name in names {
        let is_promised = [':', '<', ')']
            .iter()
            .any(|&end| promises.contains(&format!("!({name}{end}")));

        assert!(is_promised, "{name} has no line in promises.rs");
    }
}
