// SPDX-License-Identifier: GPL-2.0

//! Where the words of native fences are to be in memory of the GPU: GetStandardAllocationDriverData
//! for a standard allocation of the type FENCESTORAGE (FEN-64).

use super::native_fence::NativeFenceType;

/// Which word of a fence it is for (`DXGKARG_FENCESTORAGEVALUETYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceWord {
    /// The value, which engines store.
    CurrentValue,
    /// What engines compare it with, which the OS part stores.
    MonitoredValue,
}

/// What it is asked for (`D3DKMDT_FENCESTORAGESURFACEDATA`): a page of words of one kind, of fences
/// of one type that only one process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceStorageArgs {
    /// Which word.
    pub word: FenceWord,
    /// Of which fences.
    pub ty: NativeFenceType,
}

/// What a driver says of it, of `DXGK_ALLOCATIONINFO`. Bit n of a set is segment n; the aperture
/// stands for system memory (MEM-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceStorageInfo {
    /// `SupportedWriteSegmentSet`: where it may be.
    pub supported_segments: u32,
    /// `EvictionSegmentSet`: where it may go when its segment is full. Without any, that is system
    /// memory all the same.
    pub eviction_segments: u32,
    /// `PreferredSegment`: where it is to be, one of those where it may.
    pub preferred_segment: u32,
}
