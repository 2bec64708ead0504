// SPDX-License-Identifier: GPL-2.0

//! The worker of the paging queues of an adapter (MEM-14).
//!
//! It waits for the paging node of its adapter, which may hang. So it has a work queue of its own,
//! and keeps neither other adapters nor the module's worker waiting (MEM-112).
//!
//! Devices are served one after the other: one operation, then it is the turn of the next device.
//! So nobody who fills queues delays another device by more than one operation. Which queue of a
//! device it is says `logic::paging_rules::next_queue`.
//!
//! Root may hold it for tests: then it begins no operation until it is released, or the adapter is
//! removed (MEM-107).
//!
//! LOCK: `ready` is a leaf, inside `DeviceQueues::state`.

use super::{
    paging_log::PagingLog,
    paging_switches::PagingSwitches, //
};
use crate::sys::{
    alloc::pin_arc,
    work::{
        self,
        OrderedWorker, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    },
    time::Jiffies,
    workqueue::{
        HasDelayedWork,
        HasWork,
        Work,
        WorkItem, //
    }, //
};

/// The paging queues of a device, as the worker knows them.
pub(crate) trait Served: Send + Sync {
    /// Runs one operation. `place` is the memory of the place that it had among the devices that
    /// are ready; it takes a new place if there is more to do.
    ///
    /// Context: the worker, no locks held.
    fn run_one(self: Arc<Self>, place: ReadyPlace);
}

/// Memory for the place of a device among those that are ready.
pub(crate) type ReadyPlace = RBTreeNodeReservation<u64, Arc<dyn Served>>;

struct Ready {
    /// By turn.
    devices: RBTree<u64, Arc<dyn Served>>,
    /// The last turn that was given out.
    turn: u64,
    /// Nothing is begun.
    is_held: bool,
    /// It cannot be held any more.
    has_ended: bool,
}

/// The worker of an adapter.
#[pin_data]
pub(crate) struct PagingWorker {
    /// What it does, and others on this adapter.
    pub(super) log: Arc<PagingLog>,
    /// What tests want of the memory manager.
    pub(super) switches: Arc<PagingSwitches>,
    #[pin]
    ready: SpinLock<Ready>,
    #[pin]
    work: Work<PagingWorker>,
    /// Runs it.
    queue: OrderedWorker,
}

impl_has_work! {
    impl HasWork<Self> for PagingWorker { self.work }
}

impl PagingWorker {
    /// A worker with nothing to do.
    pub(super) fn new(
        log: Arc<PagingLog>,
        switches: Arc<PagingSwitches>,
    ) -> Result<Arc<Self>, AllocError> {
        let queue = OrderedWorker::start(c"dxg-paging")?;

        pin_arc(
            pin_init!(Self {
                log,
                switches,
                ready <- new_spinlock!(
                    Ready {
                        devices: RBTree::new(),
                        turn: 0,
                        is_held: false,
                        has_ended: false,
                    },
                    "PagingWorker::ready"
                ),
                work <- new_work!("PagingWorker::work"),
                queue,
            }),
            GFP_KERNEL,
        )
    }

    /// A device has something to do, and is not waiting for its turn. Called with its lock held.
    pub(super) fn add(self: &Arc<Self>, place: ReadyPlace, device: Arc<dyn Served>) {
        let mut ready = self.ready.lock();

        // OVERFLOW: 2^64 operations take longer than any machine runs.
        ready.turn = ready.turn.wrapping_add(1);

        let turn = ready.turn;
        // Turns are different.
        let _nothing = ready.devices.insert(place.into_node(turn, device));

        drop(ready);
        self.wake();
    }

    /// It begins no operation until [`PagingWorker::release`].
    pub(super) fn hold(&self) {
        let mut ready = self.ready.lock();

        ready.is_held = !ready.has_ended;
    }

    /// Whether it begins nothing.
    pub(super) fn is_held(&self) -> bool {
        self.ready.lock().is_held
    }

    /// It goes on, if it was held.
    ///
    /// Context: no locks held.
    pub(super) fn release(self: &Arc<Self>) {
        self.ready.lock().is_held = false;
        self.wake();
    }

    /// The adapter is removed: it goes on, and is not held again.
    ///
    /// Context: no locks held.
    pub(in crate::dxgk) fn end_holds(self: &Arc<Self>) {
        self.ready.lock().has_ended = true;
        self.release();
    }

    /// Runs something else after so many jiffies, between two operations.
    pub(super) fn enqueue_delayed<T>(&self, item: Arc<T>, after: Jiffies)
    where
        T: WorkItem<0, Pointer = Arc<T>> + HasDelayedWork<T, 0> + Send + Sync + 'static,
    {
        self.queue.enqueue_delayed::<_, 0>(item, after);
    }

    /// Leaves other work to it, unless it is queued already. In any context.
    pub(super) fn leave<T>(&self, item: Arc<T>)
    where
        T: WorkItem<Pointer = Arc<T>> + HasWork<T> + Send + Sync + 'static,
    {
        self.queue.enqueue(item);
    }

    fn wake(self: &Arc<Self>) {
        self.queue.enqueue(self.clone());
    }

    /// The device whose turn it is, and the memory for its next place.
    fn next(&self) -> Option<(ReadyPlace, Arc<dyn Served>)> {
        let mut ready = self.ready.lock();

        if ready.is_held {
            return None;
        }

        let first = ready.devices.cursor_front_mut()?;
        let device = first.current().1.clone();

        // Another reference was made above, so that nothing ends here.
        Some((first.remove_current().1.into_reservation(), device))
    }
}

impl WorkItem for PagingWorker {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        while let Some((place, device)) = this.next() {
            device.run_one(place);
            work::breathe();
        }
    }
}
