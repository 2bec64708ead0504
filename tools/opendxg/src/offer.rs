// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the process can go without for a while.

use bitflags::bitflags;

use crate::allocation::Allocation;
use crate::budget::StatisticsOf;
use crate::calls::{self, call};
use crate::device::Device;
use crate::dxg::Dxg;
use crate::paging::PagingQueue;
use crate::raw::Argument;
use crate::resource::Resource;
use crate::uapi::*;
use crate::{Error, Result};

bitflags! {
    /// How to offer memory.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct OfferFlags: u32 {
        /// At once: work that is queued does not use it.
        const IMMEDIATELY = D3DKMT_OFFER_FLAGS_OfferImmediately;
        /// The system memory that backs it may go, too.
        const ALLOW_DECOMMIT = D3DKMT_OFFER_FLAGS_AllowDecommit;
        const _ = !0;
    }
}

/// How late offered memory loses its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferPriority {
    /// Before the others.
    Low,
    /// As most.
    #[default]
    Normal,
    /// After the others.
    High,
    /// As the priority of the allocation says.
    Auto,
}

impl OfferPriority {
    fn raw(self) -> u32 {
        match self {
            Self::Low => D3DKMT_OFFER_PRIORITY_LOW,
            Self::Normal => D3DKMT_OFFER_PRIORITY_NORMAL,
            Self::High => D3DKMT_OFFER_PRIORITY_HIGH,
            Self::Auto => D3DKMT_OFFER_PRIORITY_AUTO,
        }
    }
}

/// What has become of memory that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaimed {
    /// It is as it was.
    Kept,
    /// It is zeros.
    Discarded,
    /// There is no system memory for it; it is still offered.
    NotCommitted,
}

impl Reclaimed {
    fn of(result: u32) -> Result<Self> {
        match result {
            D3DDDI_RECLAIM_RESULT_OK => Ok(Self::Kept),
            D3DDDI_RECLAIM_RESULT_DISCARDED => Ok(Self::Discarded),
            D3DDDI_RECLAIM_RESULT_NOT_COMMITTED => Ok(Self::NotCommitted),
            _ => Err(Error::Protocol("unknown result of a reclaim")),
        }
    }
}

/// Memory that a process has offered with [`OfferFlags::ALLOW_DECOMMIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferInfo {
    /// Bytes of system memory that it could go without.
    pub decommittable_bytes: u64,
    /// Changes whenever that memory does.
    pub uniqueness: u64,
}

bitflags! {
    /// Which offered memory to take.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct TrimFlags: u32 {
        /// It may take its time.
        const LAZY = D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS_Lazy;
        /// Only what has lost its bytes already.
        const ONLY_REPURPOSED = D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS_OnlyRepurposed;
        const _ = !0;
    }
}

fn allocations(list: &[&Allocation]) -> Vec<u32> {
    list.iter().map(|one| one.handle().0).collect()
}

fn resources(list: &[&Resource]) -> Vec<u32> {
    list.iter().map(|one| one.handle().0).collect()
}

impl Device {
    /// Lets the driver drop the bytes of allocations, when the work is done that is queued now.
    pub fn offer(
        &self,
        list: &[&Allocation],
        priority: OfferPriority,
        flags: OfferFlags,
    ) -> Result<()> {
        self.offer_any(
            calls::offer::List::Allocations(&allocations(list)),
            priority,
            flags,
        )
    }

    /// The same for all allocations of resources.
    pub fn offer_resources(
        &self,
        list: &[&Resource],
        priority: OfferPriority,
        flags: OfferFlags,
    ) -> Result<()> {
        self.offer_any(
            calls::offer::List::Resources(&resources(list)),
            priority,
            flags,
        )
    }

    fn offer_any(
        &self,
        list: calls::offer::List<'_>,
        priority: OfferPriority,
        flags: OfferFlags,
    ) -> Result<()> {
        let mut arg = D3DKMT_OFFERALLOCATIONS::zeroed();
        arg.hDevice = self.handle().0;
        arg.Priority = priority.raw();
        arg.Flags = flags.bits();
        calls::offer::offer(self.node(), &mut arg, list).map(|_| ())
    }

    /// Takes allocations back, and waits until they are resident that have to be. Says for each
    /// whether its bytes were dropped.
    pub fn reclaim(&self, list: &[&Allocation]) -> Result<Vec<bool>> {
        let handles = allocations(list);
        let mut arg = D3DKMT_RECLAIMALLOCATIONS::zeroed();
        arg.hDevice = self.handle().0;
        let list = calls::offer::List::Allocations(&handles);
        let discarded = calls::offer::reclaim(self.node(), &mut arg, list)?;
        Ok(discarded.into_iter().map(|one| one != 0).collect())
    }
}

impl PagingQueue {
    /// Takes allocations back; says what has become of each, and the value at which those are
    /// resident that have to be.
    pub fn reclaim(&self, list: &[&Allocation]) -> Result<(Vec<Reclaimed>, u64)> {
        self.reclaim_any(calls::offer::List::Allocations(&allocations(list)))
    }

    /// The same for all allocations of resources.
    pub fn reclaim_resources(&self, list: &[&Resource]) -> Result<(Vec<Reclaimed>, u64)> {
        self.reclaim_any(calls::offer::List::Resources(&resources(list)))
    }

    fn reclaim_any(&self, list: calls::offer::List<'_>) -> Result<(Vec<Reclaimed>, u64)> {
        let mut arg = D3DKMT_RECLAIMALLOCATIONS2::zeroed();
        arg.hPagingQueue = self.handle().0;
        let results = calls::offer::reclaim2(self.device().node(), &mut arg, list)?;
        let results: Result<Vec<Reclaimed>> = results.into_iter().map(Reclaimed::of).collect();
        Ok((results?, arg.PagingFenceValue))
    }
}

impl Dxg {
    /// How much memory a process has offered together with its system memory.
    pub fn offer_info(&self, process: StatisticsOf<'_>) -> Result<OfferInfo> {
        let mut arg = D3DKMT_QUERYPROCESSOFFERINFO::zeroed();
        arg.cbSize = D3DKMT_QUERYPROCESSOFFERINFO::SIZE;
        arg.hProcess = process.raw();
        call(self.node(), &mut arg)?;
        Ok(OfferInfo {
            decommittable_bytes: arg.DecommittableBytes,
            uniqueness: arg.DecommitUniqueness,
        })
    }

    /// Takes so many bytes of such memory from a process, or all there are; says how many.
    pub fn trim_commitment(
        &self,
        process: StatisticsOf<'_>,
        bytes: u64,
        flags: TrimFlags,
    ) -> Result<u64> {
        let mut arg = D3DKMT_TRIMPROCESSCOMMITMENT::zeroed();
        arg.cbSize = D3DKMT_TRIMPROCESSCOMMITMENT::SIZE;
        arg.hProcess = process.raw();
        arg.Flags = flags.bits();
        arg.DecommitRequested = bytes;
        call(self.node(), &mut arg)?;
        Ok(arg.NumBytesDecommitted)
    }
}
