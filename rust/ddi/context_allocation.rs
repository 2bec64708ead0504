// SPDX-License-Identifier: GPL-2.0

//! Context allocations: memory that a KMD makes for a context, or for all contexts of a device,
//! such as what a context is saved to (MEM-82 to MEM-90). No client has a handle of one.
//!
//! The calls are callbacks of [`Callbacks`](super::callbacks::Callbacks). They are of class P. All
//! but the destroy wait for the memory manager. So they are refused where that may wait for the
//! caller: all of them in BuildPagingBuffer, and all but the update in SetRootPageTable.

use super::types::{
    AllocationCookie,
    ContextAllocationId,
    ContextId,
    DeviceId,
    KmdResult, //
};

/// Most bytes of private data of an update.
pub const MAX_PRIVATE_DATA: usize = 4096;

/// Most bytes of a context allocation, so that the paging process can show all of it.
pub const MAX_SIZE: u64 = 2 << 20;

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedBy {
    /// Only that one has it.
    Context(ContextId),
    /// All its contexts share it.
    Device(DeviceId),
}

/// Bits of [`CreateContextAllocationArgs::flags`]. All others are reserved.
pub mod flags {
    /// `SharedAcrossContexts`: all contexts of a device use it.
    pub const SHARED_ACROSS_CONTEXTS: u32 = 1 << 0;
    /// `AccessedPhysically`: engines use physical addresses of it. It is one range of a memory
    /// segment, or of the aperture if it is in system memory.
    pub const ACCESSED_PHYSICALLY: u32 = 1 << 1;
    /// `Protected`: what is in there is nothing for clients.
    pub const PROTECTED: u32 = 1 << 2;
    /// Clients may see it, although it is protected or accessed physically.
    pub const USER_VISIBLE: u32 = 1 << 3;
    /// All of them.
    pub const KNOWN: u32 = SHARED_ACROSS_CONTEXTS | ACCESSED_PHYSICALLY | PROTECTED | USER_VISIBLE;
}

/// What CreateContextAllocation gets (`DXGKARGCB_CREATECONTEXTALLOCATION`), about a context or a
/// device of a client, on this adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateContextAllocationArgs {
    /// `hContext`; 0 with [`flags::SHARED_ACROSS_CONTEXTS`].
    pub context: ContextId,
    /// `hDevice`, with [`flags::SHARED_ACROSS_CONTEXTS`]; 0 otherwise.
    pub device: DeviceId,
    /// Bits of [`flags`].
    pub flags: u32,
    /// Bytes: whole pages, [`MAX_SIZE`] at most.
    pub size: u64,
    /// Its place is a multiple of this: a power of two, at least the page size.
    pub alignment: u32,
    /// As in [`AllocationInfo`](super::types::AllocationInfo).
    pub supported_segments: u32,
    /// Where it may go from there. Nothing of it ever does.
    pub eviction_segments: u32,
    /// Which of the supported ones it had best be in: its id.
    pub preferred_segment: u32,
    /// What the KMD calls it (`hDriverAllocation`).
    pub driver: AllocationCookie,
}

impl CreateContextAllocationArgs {
    /// Whether it has this flag.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// What MapContextAllocation gets (`DXGKARGCB_MAPCONTEXTALLOCATION`). Addresses are in bytes; 0 is
/// none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapContextAllocationArgs {
    /// Where it is to be.
    pub base: u64,
    /// The lowest address that will do.
    pub minimum: u64,
    /// The end of the last that will do.
    pub maximum: u64,
    /// The first page of the allocation.
    pub offset: u64,
    /// How many pages.
    pub pages: u64,
    /// `D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE`; 0 is read-only.
    pub protection: u64,
    /// As in [`UpdatePageTable`](super::paging::UpdatePageTable).
    pub driver_protection: u64,
}

/// The memory manager of an adapter, as its KMD asks it, where it may.
///
/// Context: class P; the KMD holds no lock of its own that its paging entries take.
pub trait ContextMemory: Send + Sync {
    /// CreateContextAllocation. Its memory is zeros, and stays where it is until its end.
    fn create(&self, args: &CreateContextAllocationArgs) -> KmdResult<ContextAllocationId>;

    /// MapContextAllocation: the GPU virtual address in the process of its context or device.
    fn map(
        &self,
        allocation: ContextAllocationId,
        args: &MapContextAllocationArgs,
    ) -> KmdResult<u64>;

    /// UpdateContextAllocation: on return the paging node has done what the KMD has built for it.
    fn update(&self, allocation: ContextAllocationId, private_data: &[u8]) -> KmdResult;

    /// DestroyContextAllocation. No engine that runs its context loses it before it is done. Waits
    /// for nothing.
    fn destroy(&self, allocation: ContextAllocationId) -> KmdResult;
}
