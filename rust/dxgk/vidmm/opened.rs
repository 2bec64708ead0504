// SPDX-License-Identifier: GPL-2.0

//! An open of an allocation by a device, as the memory manager knows it: what residency is counted
//! for, and what ranges of the address space show.
//!
//! It ends once, after its handle: behind the work that the process has queued on the adapter
//! (RES-30), or at once. No work uses what no call has, so that an open that was never used takes
//! no room behind work.

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
            Cut,
            QueuedWork, //
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
            AtomicFlag,
            Relaxed,
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

/// How an open ends.
struct End {
    /// It has begun.
    begun: bool,
    /// What it takes behind work that may use the allocation.
    cut: Option<Cut>,
    /// How many have it as it is, see [`Opened::hold`].
    holders: u32,
    /// It is to end when the last of them is gone; at once, or behind work.
    wanted: Option<bool>,
}

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
    /// The work of its process on the adapter.
    queued: Arc<QueuedWork>,
    /// There is room for its end behind that.
    used: AtomicFlag,
    /// LOCK: leaf.
    #[pin]
    end: Mutex<End>,
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
        let queued = device.process.work.clone();
        let stats = device.stats().cloned();
        let opened = pin_arc(
            pin_init!(Self {
                id: next_id(),
                device: device.id(),
                write,
                memory: memory.clone(),
                space: space.clone(),
                queued,
                used: AtomicFlag::new(false),
                end <- new_mutex!(
                    End {
                        begun: false,
                        cut: None,
                        holders: 0,
                        wanted: None,
                    },
                    "Opened::end"
                ),
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

    /// Work may use it from now on, so that it ends behind what is queued then.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn will_be_used(&self) -> DxgResult {
        if self.used.load(Relaxed) {
            return Ok(());
        }

        let cut = self.queued.cut()?;
        let mut end = self.end.lock();

        // If it ends already, work finds nothing to use. Another thread may have come first.
        let _other = match end.begun {
            false => end.cut.replace(cut),
            true => None,
        };
        drop(end);
        self.used.store(true, Relaxed);
        Ok(())
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

    /// Keeps the allocation resident and the open as it is until the result is dropped, which ends
    /// what was to end meanwhile (GPU-13). `None` unless the device has it resident, or it ends.
    pub(crate) fn hold(self: &Arc<Self>) -> Option<Held> {
        let kept = self.keep()?;
        let mut end = self.end.lock();

        if end.begun || end.wanted.is_some() {
            drop(end);
            drop(kept);
            return None;
        }
        // OVERFLOW: as many as there are doorbells.
        end.holders += 1;
        drop(end);
        Some(Held {
            opened: self.clone(),
            _kept: kept,
        })
    }

    /// Whether its device has offered the allocation.
    pub(crate) fn is_offered(&self) -> bool {
        self.memory.is_offered_by(self.device)
    }

    /// Ends it when the work is gone that is queued now; at once if there is none, or if `at_once`.
    /// Later, if somebody holds it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn end(self: &Arc<Self>, at_once: bool) {
        let cut = {
            let mut end = self.end.lock();

            if end.holders != 0 {
                end.wanted.get_or_insert(at_once);
                return;
            }
            if core::mem::replace(&mut end.begun, true) {
                return;
            }
            end.cut.take()
        };

        match cut {
            Some(cut) if !at_once => cut.after(self.clone()),
            _ => self.end_now(),
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

/// An allocation that a doorbell uses.
pub(crate) struct Held {
    _kept: Kept,
    opened: Arc<Opened>,
}

impl Held {
    /// How many bytes it has.
    pub(crate) fn size(&self) -> u64 {
        self.opened.memory.size()
    }

    /// Where it is mapped as a whole in the GPU addresses of the process, if it is.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn address(&self) -> Option<u64> {
        self.opened.space.address_of(self.opened.id, self.size())
    }
}

impl Drop for Held {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let wanted = {
            let mut end = self.opened.end.lock();

            end.holders -= 1;
            end.wanted.filter(|_| end.holders == 0)
        };

        if let Some(at_once) = wanted {
            self.opened.end(at_once);
        }
    }
}

impl AfterWork for Opened {
    /// Users decide how many ranges there are and how many bytes move, and the adapter's worker has
    /// the queues of others to serve: it leaves this to the module's worker.
    fn run(self: Arc<Self>) {
        stats::add::<RETIRING>(&*self, 1);
        // It is given up once: the cut was taken.
        work::leave_to_worker(self);
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
