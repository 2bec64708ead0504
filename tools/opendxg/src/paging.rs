// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for the GPU: residency, and the addresses by which the GPU reaches it.

use bitflags::bitflags;

use crate::adapter::Adapter;
use crate::allocation::Allocation;
use crate::calls::{self, call};
use crate::device::{Context, Device};
use crate::fence::MonitoredFence;
use crate::handle::LocalHandle;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::sync_object::SyncObject;
use crate::uapi::*;
use crate::{Error, Result, Status};

bitflags! {
    /// What the GPU may do with a range besides reading it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct GpuProtection: u64 {
        /// The GPU may store there.
        const WRITE = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Write;
        /// The GPU may run code from there.
        const EXECUTE = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Execute;
        /// Nothing is there: reads give 0, writes are dropped.
        const ZERO = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Zero;
        /// Nothing is there: accesses fault.
        const NO_ACCESS = D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_NoAccess;
        const _ = !0;
    }
}

bitflags! {
    /// What to do when memory is short.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ResidentFlags: u32 {
        /// May go beyond the budget: the caller has nothing left to evict.
        const CANT_TRIM_FURTHER = D3DDDI_MAKERESIDENT_FLAGS_CantTrimFurther;
        /// The device ends in error if it fails.
        const MUST_SUCCEED = D3DDDI_MAKERESIDENT_FLAGS_MustSucceed;
        const _ = !0;
    }
}

bitflags! {
    /// How to evict.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct EvictFlags: u32 {
        /// Stays in place until memory is short.
        const ONLY_IF_NECESSARY = D3DDDI_EVICT_FLAGS_EvictOnlyIfNecessary;
        /// Was not written since it became resident.
        const NOT_WRITTEN_TO = D3DDDI_EVICT_FLAGS_NotWrittenTo;
        const _ = !0;
    }
}

/// Which operations of a device are served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PagingPriority {
    /// After the others.
    BelowNormal,
    /// As most.
    #[default]
    Normal,
    /// Before the others.
    AboveNormal,
}

impl PagingPriority {
    fn raw(self) -> D3DDDI_PAGINGQUEUE_PRIORITY {
        match self {
            Self::BelowNormal => D3DDDI_PAGINGQUEUE_PRIORITY_BELOW_NORMAL,
            Self::Normal => D3DDDI_PAGINGQUEUE_PRIORITY_NORMAL,
            Self::AboveNormal => D3DDDI_PAGINGQUEUE_PRIORITY_ABOVE_NORMAL,
        }
    }
}

/// What came of a call that makes allocations resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Resident {
    /// They are, or will be when the fence of the paging queue has this value. 0 is now.
    At(u64),
    /// They are not, and nothing has changed: the caller is so many bytes over its budget.
    TooMuch {
        /// Bytes to evict first.
        bytes_to_trim: u64,
    },
}

impl Resident {
    /// The value of the fence, or NO_MEMORY.
    pub fn value(self) -> Result<u64> {
        match self {
            Self::At(value) => Ok(value),
            Self::TooMuch { .. } => Err(Error::Status(Status::NO_MEMORY)),
        }
    }
}

/// Where to map, and what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuMap {
    /// Start of the range; 0 lets the driver choose.
    pub base: u64,
    /// Lowest address to choose.
    pub minimum: u64,
    /// End of what may be chosen; 0 for no limit.
    pub maximum: u64,
    /// Page of the allocation to begin with; pages have 4096 bytes.
    pub first_page: u64,
    /// Number of pages.
    pub pages: u64,
    /// What the GPU may do.
    pub protection: GpuProtection,
    /// Bits for the miniport.
    pub driver_protection: u64,
}

/// A range of GPU addresses that a call has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuRange {
    /// Its first address.
    pub address: u64,
    /// It holds when the fence of the paging queue has this value. 0 is now.
    pub value: u64,
}

/// What lies behind a range that is reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reservation {
    /// Nothing: accesses fault.
    #[default]
    NoAccess,
    /// Nothing: reads give 0, writes are dropped.
    Zero,
}

/// Which range to reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuReserve {
    /// Start of the range; 0 lets the driver choose.
    pub base: u64,
    /// Lowest address to choose.
    pub minimum: u64,
    /// End of what may be chosen; 0 for no limit.
    pub maximum: u64,
    /// Bytes, a multiple of 65536.
    pub size: u64,
    /// What lies behind it.
    pub kind: Reservation,
}

impl GpuReserve {
    fn argument(&self) -> D3DDDI_RESERVEGPUVIRTUALADDRESS {
        let mut arg = D3DDDI_RESERVEGPUVIRTUALADDRESS::zeroed();
        arg.BaseAddress = self.base;
        arg.MinimumAddress = self.minimum;
        arg.MaximumAddress = self.maximum;
        arg.Size = self.size;
        arg.__bindgen_anon_2.ReservationType = match self.kind {
            Reservation::NoAccess => D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_ACCESS,
            Reservation::Zero => D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO,
        };
        arg
    }
}

/// A queue of operations on the memory of the GPU. They are done in order; the queue's fence tells
/// how far they are.
#[derive(Debug)]
pub struct PagingQueue {
    /// Dies with the queue.
    fence: MonitoredFence,
    owned: Owned,
    device: Device,
}

impl PagingQueue {
    /// The device of the queue.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// The fence that counts the operations that are done. Only the driver signals it.
    pub fn fence(&self) -> &MonitoredFence {
        &self.fence
    }

    /// Waits until the operation with this value is done; 0 is done.
    pub fn wait(&self, value: u64) -> Result<()> {
        match self.fence.is_reached(value) {
            true => Ok(()),
            false => self.fence.wait(value),
        }
    }

    /// Puts allocations on the device's list of what has to be resident, each as often as it is
    /// named.
    pub fn make_resident(
        &self,
        allocations: &[&Allocation],
        flags: ResidentFlags,
    ) -> Result<Resident> {
        let handles: Vec<u32> = allocations.iter().map(|one| one.handle().0).collect();
        let mut arg = D3DDDI_MAKERESIDENT::zeroed();
        arg.hPagingQueue = self.handle().0;
        arg.Flags = flags.bits();
        match calls::gpu::make_resident(self.device.node(), &mut arg, &handles) {
            Ok(_) => Ok(Resident::At(arg.PagingFenceValue)),
            Err(error) if error.status() == Status::NO_MEMORY && arg.NumBytesToTrim != 0 => {
                Ok(Resident::TooMuch {
                    bytes_to_trim: arg.NumBytesToTrim,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Maps pages of an allocation, or with [`GpuProtection::ZERO`] or
    /// [`GpuProtection::NO_ACCESS`] none. The range ends with the allocation, or by
    /// [`Adapter::free_gpu_range`].
    pub fn map(&self, allocation: Option<&Allocation>, map: &GpuMap) -> Result<GpuRange> {
        let mut arg = D3DDDI_MAPGPUVIRTUALADDRESS::zeroed();
        arg.hPagingQueue = self.handle().0;
        arg.BaseAddress = map.base;
        arg.MinimumAddress = map.minimum;
        arg.MaximumAddress = map.maximum;
        arg.hAllocation = allocation.map_or(0, |one| one.handle().0);
        arg.OffsetInPages = map.first_page;
        arg.SizeInPages = map.pages;
        arg.Protection = map.protection.bits();
        arg.DriverProtection = map.driver_protection;
        call(self.device.node(), &mut arg)?;
        Ok(GpuRange {
            address: arg.VirtualAddress,
            value: arg.PagingFenceValue,
        })
    }

    /// Reserves a range in which to map later.
    pub fn reserve(&self, reserve: &GpuReserve) -> Result<GpuRange> {
        let mut arg = reserve.argument();
        arg.__bindgen_anon_1.hPagingQueue = self.handle().0;
        call(self.device.node(), &mut arg)?;
        Ok(GpuRange {
            address: arg.VirtualAddress,
            // SAFETY: both arms are the same integer.
            value: unsafe { arg.__bindgen_anon_4.PagingFenceValue },
        })
    }

    /// Waits for the operations that are queued, destroys the queue and reports what the driver
    /// said.
    pub fn destroy(self) -> Result<()> {
        self.owned.destroy()
    }

    /// Gives the handle away: nobody destroys it until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }
}

impl Device {
    /// Makes a paging queue.
    pub fn create_paging_queue(&self) -> Result<PagingQueue> {
        self.create_paging_queue_with(PagingPriority::Normal)
    }

    /// Makes a paging queue of any priority.
    pub fn create_paging_queue_with(&self, priority: PagingPriority) -> Result<PagingQueue> {
        let mut arg = D3DKMT_CREATEPAGINGQUEUE::zeroed();
        arg.hDevice = self.handle().0;
        arg.Priority = priority.raw();
        let value = calls::gpu::create_paging_queue(self.node(), &mut arg)?;
        let fence = Owned::new(self.node(), arg.hSyncObject, Kind::InQueue);
        let fence = SyncObject::new(fence, Some(self.clone()), None);
        Ok(PagingQueue {
            fence: MonitoredFence::new(fence, value, 0),
            owned: Owned::new(self.node(), arg.hPagingQueue, Kind::PagingQueue),
            device: self.clone(),
        })
    }

    /// Takes allocations off the list of what has to be resident, once for each time they are
    /// named. Returns how many bytes the device is over its budget.
    pub fn evict(&self, allocations: &[&Allocation], flags: EvictFlags) -> Result<u64> {
        let handles: Vec<u32> = allocations.iter().map(|one| one.handle().0).collect();
        let mut arg = D3DKMT_EVICT::zeroed();
        arg.hDevice = self.handle().0;
        arg.Flags = flags.bits();
        calls::gpu::evict(self.node(), &mut arg, &handles)?;
        Ok(arg.NumBytesToTrim)
    }
}

impl Adapter {
    /// Reserves a range at once, without a paging queue.
    pub fn reserve_gpu_range(&self, reserve: &GpuReserve) -> Result<u64> {
        let mut arg = reserve.argument();
        arg.__bindgen_anon_1.hAdapter = self.handle().0;
        // The older form has no kinds.
        arg.__bindgen_anon_2.Reserved0 = 0;
        call(self.node(), &mut arg)?;
        Ok(arg.VirtualAddress)
    }

    /// Frees GPU addresses of this process, at once.
    pub fn free_gpu_range(&self, address: u64, size: u64) -> Result<()> {
        let mut arg = D3DKMT_FREEGPUVIRTUALADDRESS::zeroed();
        arg.hAdapter = self.handle().0;
        arg.BaseAddress = address;
        arg.Size = size;
        call(self.node(), &mut arg).map(|_| ())
    }

    /// Finishes pending changes of memory segments.
    pub fn flush_heap_transitions(&self) -> Result<()> {
        let mut arg = D3DKMT_FLUSHHEAPTRANSITIONS::zeroed();
        arg.hAdapter = self.handle().0;
        call(self.node(), &mut arg).map(|_| ())
    }
}

/// One change of a reserved range.
#[derive(Clone, Copy, Debug)]
pub enum GpuUpdate<'a> {
    /// Maps a part of an allocation, again and again until the range is full.
    Map {
        /// Start of the range.
        address: u64,
        /// Bytes of the range.
        size: u64,
        /// What to map.
        allocation: &'a Allocation,
        /// Byte of the allocation to begin with.
        offset: u64,
        /// Bytes of the allocation; 0 for all.
        length: u64,
        /// What the GPU may do, where that is not everything.
        protection: Option<GpuProtection>,
    },
    /// Nothing is there any more.
    Unmap {
        /// Start of the range.
        address: u64,
        /// Bytes of the range.
        size: u64,
        /// [`GpuProtection::ZERO`] or [`GpuProtection::NO_ACCESS`].
        protection: GpuProtection,
    },
    /// What is mapped in one range is mapped in another one, too.
    Copy {
        /// Start of the range to copy from.
        source: u64,
        /// Start of the range to change.
        destination: u64,
        /// Bytes of both.
        size: u64,
    },
}

impl GpuUpdate<'_> {
    fn raw(&self) -> D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION {
        // SAFETY: a struct of integers, of which 0 is one.
        let mut operation: D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION =
            unsafe { core::mem::zeroed() };
        let arms = &mut operation.__bindgen_anon_1;
        operation.OperationType = match *self {
            Self::Map {
                address,
                size,
                allocation,
                offset,
                length,
                protection,
            } => {
                // The arm without rights is the beginning of the one with them.
                arms.MapProtect.BaseAddress = address;
                arms.MapProtect.SizeInBytes = size;
                arms.MapProtect.hAllocation = allocation.handle().0;
                arms.MapProtect.AllocationOffsetInBytes = offset;
                arms.MapProtect.AllocationSizeInBytes = length;
                match protection {
                    None => D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP,
                    Some(protection) => {
                        arms.MapProtect.Protection = protection.bits();
                        D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP_PROTECT
                    }
                }
            }
            Self::Unmap {
                address,
                size,
                protection,
            } => {
                arms.Unmap.BaseAddress = address;
                arms.Unmap.SizeInBytes = size;
                arms.Unmap.Protection = protection.bits();
                D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP
            }
            Self::Copy {
                source,
                destination,
                size,
            } => {
                arms.Copy.SourceAddress = source;
                arms.Copy.SizeInBytes = size;
                arms.Copy.DestAddress = destination;
                D3DDDI_UPDATEGPUVIRTUALADDRESS_COPY
            }
        };
        operation
    }
}

impl Context {
    /// Changes reserved ranges when `fence` has reached `value`, and then signals it to the next
    /// one. Work of this context that is submitted later sees the changes.
    pub fn update_gpu_ranges(
        &self,
        operations: &[GpuUpdate<'_>],
        fence: &SyncObject,
        value: u64,
    ) -> Result<()> {
        self.update(operations, fence, value, 0)
    }

    /// The same without waiting for the fence.
    pub fn update_gpu_ranges_now(
        &self,
        operations: &[GpuUpdate<'_>],
        fence: &SyncObject,
        value: u64,
    ) -> Result<()> {
        let flags = D3DKMT_UPDATEGPUVIRTUALADDRESS_Flags_DoNotWait;
        self.update(operations, fence, value, flags)
    }

    fn update(
        &self,
        operations: &[GpuUpdate<'_>],
        fence: &SyncObject,
        value: u64,
        flags: u32,
    ) -> Result<()> {
        let operations: Vec<_> = operations.iter().map(GpuUpdate::raw).collect();
        let mut arg = D3DKMT_UPDATEGPUVIRTUALADDRESS::zeroed();
        arg.hDevice = self.device().handle().0;
        arg.hContext = self.handle().0;
        arg.hFenceObject = fence.handle().0;
        arg.FenceValue = value;
        arg.Flags = flags;
        calls::gpu::update_gpu_addresses(self.device().node(), &mut arg, &operations).map(|_| ())
    }
}
