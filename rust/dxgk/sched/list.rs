// SPDX-License-Identifier: GPL-2.0

//! The queues of one adapter, those of one device side by side. A queue is here from its creation
//! until its end, which may be later than that of its handle.
//!
//! LOCK: `listed` is a leaf.

use super::{
    export::{
        Found,
        Missing,
        NewExport,
        Wanted, //
    },
    snapshot::Snapshot, //
};
use crate::sys::{
    alloc::tree_node,
    dma_fence::DmaFence, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        Completion,
        SpinLock, //
    }, //
};

/// The ids of a device and of one of its queues.
pub(super) type Key = (u64, u64);

/// A queue, as its adapter and its device know it.
pub(crate) trait ListedQueue: Send + Sync {
    /// Its handle is gone: it does what it can do and ends.
    ///
    /// Context: may sleep, no locks held.
    fn close(self: Arc<Self>);

    /// Discards everything and ends: its device is in error, or its adapter is removed.
    ///
    /// Context: may sleep, no locks held.
    fn stop(self: Arc<Self>);

    /// Where its work runs.
    fn node(&self) -> u32;

    /// Its doorbell is disconnected, if it has one, and can be connected again.
    ///
    /// Context: may sleep; no locks held that are inside `doorbell::Ring::live`.
    fn disconnect_doorbell(&self);

    /// Whether it gets larger logs when its doorbell is connected the next time (GPU-80).
    ///
    /// Context: may sleep, no locks held.
    fn wants_other_logs(&self) -> bool;

    /// Puts its device in error if a reset has hit its context: as one that hangs, or as one that
    /// others are the reason of.
    ///
    /// Context: may sleep, no locks held.
    fn end_if_lost(&self, hangs: bool);

    /// The number that it is known by, also outside of the module.
    fn id(&self) -> u64;

    /// Looks for a signal that may become a sync file, and makes it one, as
    /// [`super::queue::Queue::find`] says.
    ///
    /// Context: may sleep, no locks held.
    fn find(
        &self,
        wanted: Wanted,
        is_assumed: &dyn Fn(u64) -> bool,
        export: &mut Option<NewExport>,
    ) -> Found;

    /// What the wait with this number waits for and is not there, from a place on; `None` if there
    /// is nothing, or the wait is over.
    ///
    /// Context: may sleep, no locks held.
    fn missing(&self, number: u64, from: usize) -> Option<Missing>;

    /// The wait with this number is over when all these have signalled, if it is not before.
    ///
    /// Context: may sleep, no locks held.
    fn bind(self: Arc<Self>, number: u64, fences: &[DmaFence]) -> Result<(), AllocError>;

    /// How it is now.
    fn snapshot(&self) -> Snapshot;
}

struct Listed {
    queues: RBTree<Key, Arc<dyn ListedQueue>>,
    /// Somebody waits for the end of the last one.
    is_awaited: bool,
}

/// The queues of one adapter.
#[pin_data]
pub(crate) struct Queues {
    #[pin]
    listed: SpinLock<Listed>,
    /// The last one that somebody waits for has ended.
    #[pin]
    gone: Completion,
}

impl Queues {
    /// None.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            listed <- new_spinlock!(
                Listed {
                    queues: RBTree::new(),
                    is_awaited: false,
                },
                "Queues::listed"
            ),
            gone <- Completion::new(),
        })
    }

    /// Adds a queue.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn add(&self, key: Key, queue: Arc<dyn ListedQueue>) -> Result<(), AllocError> {
        let node = tree_node(key, queue)?;

        // Ids are unique, so that nothing is replaced.
        let _nothing = self.listed.lock().queues.insert(node);

        Ok(())
    }

    /// Takes a queue out. The caller has a reference to it.
    pub(super) fn remove(&self, key: Key) {
        let mut listed = self.listed.lock();
        let node = listed.queues.remove_node(&key);
        let is_last = listed.is_awaited && listed.queues.is_empty();

        drop(listed);
        drop(node);
        if is_last {
            self.gone.complete_all();
        }
    }

    /// Whether there are none.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(in crate::dxgk) fn is_empty(&self) -> bool {
        self.listed.lock().queues.is_empty()
    }

    /// Waits until all have ended. All were told to, and none is added any more.
    ///
    /// Context: may sleep, no locks held; not from a worker, which may have to end them.
    pub(in crate::dxgk) fn wait_until_gone(&self) {
        {
            let mut listed = self.listed.lock();

            if listed.queues.is_empty() {
                return;
            }
            listed.is_awaited = true;
        }
        self.gone.wait_for_completion();
    }

    /// The first queue from this key on.
    fn from(&self, key: Key) -> Option<(Key, Arc<dyn ListedQueue>)> {
        let listed = self.listed.lock();
        let cursor = listed.queues.cursor_lower_bound(&key)?;
        let (key, queue) = cursor.current();

        Some((*key, queue.clone()))
    }

    /// All queues, one after the other. The lock is held for one at a time.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<dyn ListedQueue>> + '_ {
        self.iter_from((0, 0)).map(|(_, queue)| queue)
    }

    /// The queues of the device with this id.
    pub(in crate::dxgk) fn of_device(
        &self,
        device: u64,
    ) -> impl Iterator<Item = Arc<dyn ListedQueue>> + '_ {
        self.iter_from((device, 0))
            .take_while(move |((own, _), _)| *own == device)
            .map(|(_, queue)| queue)
    }

    fn iter_from(&self, mut next: Key) -> impl Iterator<Item = (Key, Arc<dyn ListedQueue>)> + '_ {
        core::iter::from_fn(move || {
            let found = self.from(next)?;

            // OVERFLOW: ids never reach the last number.
            next = (found.0 .0, found.0 .1.saturating_add(1));
            Some(found)
        })
    }
}
