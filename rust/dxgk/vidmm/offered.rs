// SPDX-License-Identifier: GPL-2.0

//! OfferAllocations and ReclaimAllocations: lists of allocations (MEM-29, MEM-31).

use super::{
    device_queues::Operation,
    paging_queue::PagingQueue,
    residency::{
        offers::{
            OfferPlaces,
            Taken, //
        },
        AllocationMemory, //
    },
    resident_list::{
        with_room,
        NotResident, //
    }, //
};
use crate::{
    dxgk::{
        device::Device,
        quota::queued::QueuedCharge,
        sched::queued_work::AfterWork,
        stats::{
            self,
            next_id,
            CountedOn,
            Stats,
            RETIRING, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::PAGE,
        invalid_if,
        offer_rules::{
            self,
            Reclaimed,
            Request, //
        },
        paging_rules::AT_ONCE_PAGES, //
    },
    sys::{
        alloc::pin_arc,
        work, //
    }, //
};
use core::ops::Range;
use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// Allocations that a call names, and which of them each element of its list stands for.
pub(crate) struct Named {
    memories: KVVec<Arc<AllocationMemory>>,
    /// Where each element ends.
    ends: KVVec<usize>,
}

impl Named {
    /// None, with room for so many elements.
    pub(crate) fn with_capacity(count: usize) -> DxgResult<Self> {
        Ok(Self {
            memories: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
            ends: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
        })
    }

    /// Adds an allocation to the element that is being added.
    pub(crate) fn push(&mut self, memory: &Arc<AllocationMemory>) -> DxgResult {
        Ok(self.memories.push(memory.clone(), GFP_KERNEL_ACCOUNT)?)
    }

    /// The element that was being added is complete.
    pub(crate) fn end_element(&mut self) -> DxgResult {
        Ok(self.ends.push(self.memories.len(), GFP_KERNEL_ACCOUNT)?)
    }

    /// How many allocations it has.
    pub(crate) fn len(&self) -> usize {
        self.memories.len()
    }

    /// INVALID_PARAMETER unless the device has all of them open.
    fn check_open_by(&self, device: &Device) -> DxgResult {
        let is_open = |memory: &Arc<AllocationMemory>| memory.is_open_by(device.id());

        Ok(invalid_if(!self.memories.iter().all(is_open))?)
    }

    /// The places of the allocations of each element.
    fn elements(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ends
            .iter()
            .scan(0, |start, end| Some(core::mem::replace(start, *end)..*end))
    }
}

/// An offer that takes effect when the work is done that was queued before.
#[pin_data]
struct LaterOffer {
    device: u64,
    /// The number of the call.
    call: u64,
    named: Named,
    _charge: QueuedCharge,
    /// Does it, if the adapter's worker would have to.
    #[pin]
    work: Work<LaterOffer>,
    /// The counters of its adapter.
    stats: Option<Arc<Stats>>,
}

impl LaterOffer {
    fn take_effect(&self) {
        for memory in &self.named.memories {
            memory.take_effect(self.device, self.call);
        }
    }
}

impl AfterWork for LaterOffer {
    /// The adapter's worker leaves it to the module's worker, as the end of an open.
    fn run(self: Arc<Self>) {
        stats::add::<RETIRING>(&*self, 1);
        work::leave_to_worker(self);
    }
}

impl_has_work! {
    impl HasWork<Self> for LaterOffer { self.work }
}

impl WorkItem for LaterOffer {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.take_effect();
        stats::sub::<RETIRING>(&*this, 1);
    }
}

impl CountedOn for LaterOffer {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.stats.as_ref()
    }
}

/// OfferAllocations of these by a device: all of them, or none (MEM-29).
///
/// Context: may sleep, no locks held.
pub(crate) fn offer(device: &Device, named: Named, request: &Request) -> DxgResult {
    named.check_open_by(device)?;

    let call = next_id();
    let mut places = KVVec::with_capacity(named.len(), GFP_KERNEL_ACCOUNT)?;

    for _ in &named.memories {
        places.push(OfferPlaces::new()?, GFP_KERNEL_ACCOUNT)?;
    }

    let offer = |named: &Named| {
        for (memory, places) in named.memories.iter().zip(places) {
            memory.offer(device.id(), request, call, places);
        }
    };

    if request.immediately {
        offer(&named);
        return Ok(());
    }

    let bytes = named
        .len()
        .saturating_mul(size_of::<Arc<AllocationMemory>>() + size_of::<usize>())
        .saturating_add(size_of::<LaterOffer>());
    let cut = device.process.work.cut()?;
    let charge = QueuedCharge::new(device.owner.account(), bytes)?;
    let stats = device.stats().cloned();
    let later = pin_arc(
        pin_init!(LaterOffer {
            device: device.id(),
            call,
            named,
            _charge: charge,
            work <- new_work!("LaterOffer::work"),
            stats,
        }),
        GFP_KERNEL_ACCOUNT,
    )?;

    offer(&later.named);
    cut.after(later);
    Ok(())
}

/// Allocations that a device has taken back. Dropping it offers them again.
pub(crate) struct ReclaimedList {
    device: u64,
    named: Named,
    taken: KVVec<Taken>,
    /// Those for which room was taken, and that are not resident yet.
    prepared: KVVec<Arc<AllocationMemory>>,
    /// What the caller waits for.
    pub(crate) value: u64,
    is_done: bool,
}

impl ReclaimedList {
    /// Takes these back for a device. What it does not have offered is as it was.
    ///
    /// Context: a system call, no locks held.
    fn new(device: &Device, named: Named) -> DxgResult<Self> {
        named.check_open_by(device)?;

        let count = named.len();
        let mut list = Self {
            device: device.id(),
            named,
            taken: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
            prepared: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
            value: 0,
            is_done: false,
        };

        for memory in &list.named.memories {
            // There is room.
            let _room = list
                .taken
                .push_within_capacity(memory.take_back(list.device));
        }
        list.keep_elements_whole();
        Ok(list)
    }

    /// Of an element that has no memory nothing is taken back.
    fn keep_elements_whole(&mut self) {
        for element in self.named.elements() {
            let memories = self.named.memories.get(element.clone()).unwrap_or_default();
            let taken = self.taken.get_mut(element).unwrap_or_default();

            if offer_rules::of_resource(taken.iter().map(|one| one.result))
                != Reclaimed::NotCommitted
            {
                continue;
            }
            for (memory, taken) in memories.iter().zip(taken) {
                memory.restore_offer(self.device, taken);
                *taken = Taken::not_committed();
            }
        }
    }

    /// The results of the elements, as the caller is told.
    pub(crate) fn results(&self) -> impl Iterator<Item = Reclaimed> + '_ {
        self.named.elements().map(|element| {
            let taken = self.taken.get(element).unwrap_or_default();

            offer_rules::of_resource(taken.iter().map(|one| one.result))
        })
    }

    /// Takes what those need that are wanted and not resident; returns how many pages have to be
    /// made usable.
    fn prepare(&mut self, device: &Device) -> Result<u64, NotResident> {
        let mut pages = 0u64;

        for (memory, taken) in self.named.memories.iter().zip(&self.taken) {
            if taken.result == Reclaimed::NotCommitted || !memory.is_missing() {
                continue;
            }
            with_room(device, || memory.prepare())?;
            pages = pages.saturating_add(memory.size() / PAGE);
            // There is room.
            let _room = self.prepared.push_within_capacity(memory.clone());
        }
        Ok(pages)
    }

    fn finish(&mut self) -> DxgResult {
        for memory in &self.prepared {
            memory.finish()?;
        }
        self.prepared.clear();
        Ok(())
    }

    /// ReclaimAllocations2: those that the device of `queue` wants are resident when the fence of
    /// the queue shows the value.
    ///
    /// Context: a system call that is charged, no locks held.
    pub(crate) fn by_queue(queue: &PagingQueue, named: Named) -> DxgResult<Self> {
        let mut list = Self::new(&queue.device, named)?;
        let pages = list.prepare(&queue.device).map_err(no_room)?;

        if pages > AT_ONCE_PAGES || pages != 0 && !queue.is_idle() {
            let mut left = KVVec::with_capacity(list.prepared.len(), GFP_KERNEL_ACCOUNT)?;

            for memory in &list.prepared {
                left.push(memory.clone(), GFP_KERNEL_ACCOUNT)?;
            }
            list.value = queue.submit(Operation::Finish(left))?;
            list.prepared.clear();
        } else {
            list.finish()?;
            list.value = queue.done()?;
        }
        Ok(list)
    }

    /// ReclaimAllocations: those that the device wants are resident on return. NO_MEMORY unless all
    /// have memory.
    ///
    /// Context: as [`ReclaimedList::by_queue`].
    pub(crate) fn at_once(device: &Device, named: Named) -> DxgResult<Self> {
        let mut list = Self::new(device, named)?;

        if list.results().any(|one| one == Reclaimed::NotCommitted) {
            return Err(Status::NO_MEMORY.into());
        }
        list.prepare(device).map_err(no_room)?;
        list.finish()?;
        Ok(list)
    }

    /// The caller knows of it.
    pub(crate) fn commit(mut self) {
        self.is_done = true;
        for (memory, taken) in self.named.memories.iter().zip(&self.taken) {
            memory.tell_reclaimed(self.device, taken.result);
        }
    }
}

/// Nothing gives way any more.
fn no_room(error: NotResident) -> crate::error::DxgError {
    match error {
        NotResident::OverBudget(_) => Status::NO_MEMORY.into(),
        NotResident::Failed(error) => error,
    }
}

impl Drop for ReclaimedList {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        for (memory, taken) in self.named.memories.iter().zip(&self.taken) {
            memory.restore_offer(self.device, taken);
        }
        // The room that they have is that of whoever needs it.
        for memory in &self.prepared {
            let _ready = memory.finish();
        }
    }
}
