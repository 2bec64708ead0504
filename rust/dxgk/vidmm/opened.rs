// SPDX-License-Identifier: GPL-2.0

//! An open of an allocation by a device, as the memory manager knows it: what residency is counted
//! for, and what ranges of the address space show.
//!
//! It ends once, after its handle: behind the work that the process has queued on the adapter
//! (RES-30), or at once.

use super::{
    address_space::AddressSpace,
    residency::{
        AllocationMemory,
        Opening, //
    }, //
};
use crate::{
    dxgk::{
        device::Device,
        sched::queued_work::{
            AfterWork,
            Cut, //
        },
        stats::{
            self,
            next_id,
            CountedOn,
            Stats,
            RETIRING, //
        }, //
    },
    error::DxgResult,
    sys::{
        alloc::pin_arc,
        wait_queue::WaitQueue,
        work, //
    }, //
};
use kernel::{
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Release, //
        },
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// An open of an allocation by a device.
#[pin_data]
pub(crate) struct Opened {
    /// Its number; not 0.
    pub(crate) id: u64,
    /// Id of who has opened it.
    pub(crate) device: u64,
    /// Whether it may write.
    pub(crate) write: bool,
    /// What it opens.
    pub(crate) memory: Arc<AllocationMemory>,
    /// Where it can be mapped.
    pub(crate) space: Arc<AddressSpace>,
    /// What its end takes; `None` once that has begun. LOCK: leaf.
    #[pin]
    cut: Mutex<Option<Cut>>,
    /// See [`Opening`].
    closed: Atomic<bool>,
    /// 1 when it has ended.
    ended: Atomic<u32>,
    #[pin]
    over: WaitQueue,
    /// Ends it, if the adapter's worker would have to.
    #[pin]
    work: Work<Opened>,
    /// The counters of its adapter.
    stats: Option<Arc<Stats>>,
}

impl Opened {
    /// An open of `memory` by `device`, if the adapter of the device has GPU addresses.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        device: &Device,
        memory: &Arc<AllocationMemory>,
        write: bool,
    ) -> DxgResult<Option<Arc<Self>>> {
        let Some(space) = &device.process.space else {
            return Ok(None);
        };
        let cut = device.process.work.cut()?;
        let stats = device.stats().cloned();
        let opened = pin_arc(
            pin_init!(Self {
                id: next_id(),
                device: device.id(),
                write,
                memory: memory.clone(),
                space: space.clone(),
                cut <- new_mutex!(Some(cut), "Opened::cut"),
                closed: Atomic::new(false),
                ended: Atomic::new(0),
                over <- WaitQueue::new(),
                work <- new_work!("Opened::work"),
                stats,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        memory.enter(opened.id, opened.device, space.clone())?;
        Ok(Some(opened))
    }

    /// It, for those who show the allocation.
    pub(crate) fn opening(&self) -> Opening<'_> {
        Opening {
            id: self.id,
            memory: &self.memory,
            closed: &self.closed,
        }
    }

    /// Keeps the allocation on the list of the device, if it is there, as long as the result is
    /// (MEM-47).
    pub(crate) fn keep(self: &Arc<Self>) -> Option<Kept> {
        let is_kept = self.memory.keep(self.id, self.device);

        is_kept.then(|| Kept(self.clone()))
    }

    /// Ends it when the work is gone that is queued now; at once if there is none, or if `at_once`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn end(self: &Arc<Self>, at_once: bool) {
        let cut = self.cut.lock().take();

        match cut {
            Some(cut) if !at_once => cut.after(self.clone()),
            Some(_) => self.end_now(),
            None => {}
        }
    }

    /// Waits until it has ended, or the caller is killed.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn wait_for_end(&self) {
        self.over.wait_until_reached(&self.ended, 1);
    }

    /// Frees the ranges that show the allocation (MEM-49), and what the device wants to be resident
    /// of it.
    fn end_now(&self) {
        self.space.end_opening(self.opening());
        self.memory.leave(self.id);
        self.ended.store(1, Release);
        self.over.wake();
    }
}

/// An allocation that stays on the list of a device, whatever is evicted.
pub(crate) struct Kept(Arc<Opened>);

impl Drop for Kept {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.0.memory.let_go(self.0.id);
    }
}

impl AfterWork for Opened {
    /// Users decide how many ranges there are and how many bytes move, and the adapter's worker has
    /// the queues of others to serve: it leaves this to the module's worker.
    fn run(self: Arc<Self>) {
        let Some(worker) = work::worker().filter(|_| work::is_worker()) else {
            self.end_now();
            return;
        };

        stats::add::<RETIRING>(&*self, 1);
        // It is queued once: the cut was taken.
        let _queued = worker.enqueue::<_, 0>(self).is_ok();
    }
}

impl_has_work! {
    impl HasWork<Self> for Opened { self.work }
}

impl WorkItem for Opened {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.end_now();
        stats::sub::<RETIRING>(&*this, 1);
    }
}

impl CountedOn for Opened {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.stats.as_ref()
    }
}
