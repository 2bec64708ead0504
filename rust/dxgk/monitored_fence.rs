// SPDX-License-Identifier: GPL-2.0

//! A monitored fence: a 64-bit value that processes read in their own memory, CPU waits on it, and
//! CPU signals (fences.md section 2).
//!
//! LOCK: `waiters` is the fence lock. It is never held together with the lock of another fence;
//! waiters are told and nodes freed after it is released. CurrentValue is stored only under it, and
//! read by everybody without it.

use super::{
    sync_object::Header,
    value_cell::ValueCell,
    waiter::Waiter, //
};
use crate::{
    logic::{
        fence_value,
        waiters::{
            Admission,
            WaitKey,
            WaitMap,
            Waiters,
            WouldRewind, //
        }, //
    },
    platform::load_acquire,
    sys::trace, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// Queued waiters, ordered by value, in preallocated nodes.
pub(crate) struct Queue(RBTree<WaitKey, Arc<Waiter>>);

impl Queue {
    fn new() -> Self {
        Self(RBTree::new())
    }
}

/// A node that is not queued yet, and the waiter it will hold.
pub(crate) type Spare = (RBTreeNodeReservation<WaitKey, Arc<Waiter>>, Arc<Waiter>);

impl WaitMap for Queue {
    type Node = RBTreeNode<WaitKey, Arc<Waiter>>;
    type Spare = Spare;

    fn first(&self) -> Option<WaitKey> {
        self.0.cursor_front().map(|cursor| *cursor.current().0)
    }

    fn take_first(&mut self) -> Option<Self::Node> {
        self.0
            .cursor_front_mut()
            .map(|cursor| cursor.remove_current().1)
    }

    fn take(&mut self, key: &WaitKey) -> Option<Self::Node> {
        self.0.remove_node(key)
    }

    fn put(&mut self, node: Self::Node) {
        // Keys are unique, so that nothing is replaced.
        let _nothing = self.0.insert(node);
    }

    fn name(spare: Self::Spare, key: WaitKey) -> Self::Node {
        spare.0.into_node(key, spare.1)
    }
}

/// A monitored fence.
#[pin_data]
pub(crate) struct MonitoredFence {
    /// What it has in common with other synchronisation objects.
    pub(crate) header: Header,
    /// CurrentValue.
    pub(crate) cell: ValueCell,
    #[pin]
    waiters: SpinLock<Waiters<Queue>>,
}

impl MonitoredFence {
    /// A fence whose value lives in `cell`.
    pub(crate) fn new(header: Header, cell: ValueCell) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                header,
                cell,
                waiters <- new_spinlock!(Waiters::new(Queue::new()), "MonitoredFence::waiters"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// CurrentValue now, with acquire ordering.
    pub(crate) fn value(&self) -> u64 {
        load_acquire(self.cell.word())
    }

    /// Whether a wait for `value` would be satisfied now.
    pub(crate) fn satisfies(&self, value: u64) -> bool {
        fence_value::satisfies(self.value(), value)
    }

    /// Stores `value` and releases every waiter for at most `value` (FEN-31 to FEN-34).
    ///
    /// Context: may sleep after the fact (wake-ups free memory), no locks held. Allocates nothing.
    pub(crate) fn signal(
        &self,
        value: u64,
        allow_rewind: bool,
    ) -> core::result::Result<(), WouldRewind> {
        let mut due = Queue::new();

        self.waiters
            .lock()
            .signal(self.cell.word(), value, allow_rewind, &mut due)?;
        trace::signal(self.header.id(), value);
        for waiter in due.0.values() {
            waiter.satisfied();
        }
        Ok(())
    }

    /// Queues `waiter` for `value`, or tells it at once that there is nothing to wait for.
    ///
    /// Returns false if the wait has ended already and needs no more elements.
    pub(super) fn enqueue(self: &Arc<Self>, waiter: &Waiter, value: u64, spare: Spare) -> bool {
        let admission = self.waiters.lock().admit(self.cell.word(), value, spare);

        match admission {
            Admission::Queued(key) => {
                trace::wait(self.header.id(), value);
                waiter.queued(self.clone(), key);
            }
            Admission::Satisfied(_) => waiter.satisfied(),
            Admission::Orphaned(_) => waiter.orphaned(),
        }
        waiter.set.outcome().is_none()
    }

    /// Takes a waiter out, if it is still queued.
    pub(super) fn cancel(&self, key: &WaitKey) {
        let node = self.waiters.lock().cancel(key);

        drop(node);
    }

    /// Nobody is left who could signal: ends the waits (FEN-28).
    pub(super) fn orphan(&self) {
        let orphans = self.waiters.lock().orphan(Queue::new());

        for waiter in orphans.0.values() {
            waiter.orphaned();
        }
    }
}
