// SPDX-License-Identifier: GPL-2.0

//! Weak references (RES-72, RES-73): descriptors that do not keep an object alive. They report its
//! end, and give a strong reference while it lives.
//!
//! The first weak reference or watch of an object makes its [`WeakTarget`], which points to the
//! object until the object retires. After that the weak target stays as long as a descriptor
//! refers to it.
//!
//! LOCK: `WeakTarget::state` is a leaf.

use crate::dxgk::{
    at_once::AT_ONCE,
    stats::{
        CountedOn,
        ObjectKind,
        OwnStats,
        Stats, //
    }, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    sys::{
        alloc::{
            pin_arc,
            tree_node, //
        },
        file::object_file::events,
        task::credentials::Credentials,
        wait_queue::WaitQueue,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// What can happen to an object.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    /// It has retired.
    Destroy,
    /// Its store has this generation now.
    Change(u64),
}

/// Who is told what happens to an object: a watch.
pub(in crate::dxgk) trait EventListener: Send + Sync {
    /// This has happened. Nothing comes after the end of the object.
    ///
    /// Context: no locks held.
    fn tell(&self, event: Event);
}

/// A new watch id. Ids only grow.
pub(in crate::dxgk) fn next_number() -> u64 {
    static NEXT: Atomic<u64> = Atomic::new(1);

    // OVERFLOW: 2^64 watches take longer than any machine runs.
    NEXT.fetch_add(1, Full)
}

struct State<T> {
    /// `None`: the object has retired.
    object: Option<T>,
    /// By id; ids only grow.
    watches: RBTree<u64, Arc<dyn EventListener>>,
}

/// What weak references and watches of one object refer to. It keeps the memory of the object, as
/// a `T`, until the object retires.
#[pin_data]
pub(crate) struct WeakTarget<T> {
    object_id: u64,
    kind: ObjectKind,
    /// Who made the object.
    creator: Credentials,
    /// Where weak references and watches are counted.
    stats: OwnStats,
    #[pin]
    state: SpinLock<State<T>>,
    /// Polls of weak references and watches.
    #[pin]
    pollers: WaitQueue,
    /// Whether polls report the object's end.
    gone: Atomic<bool>,
}

impl<T> CountedOn for WeakTarget<T> {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.stats.stats()
    }
}

impl<T: Unpin> WeakTarget<T> {
    /// A weak target of a live object with this id.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        object: T,
        object_id: u64,
        kind: ObjectKind,
        creator: Credentials,
        stats: OwnStats,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                object_id,
                kind,
                creator,
                stats,
                state <- new_spinlock!(
                    State {
                        object: Some(object),
                        watches: RBTree::new(),
                    },
                    "WeakTarget::state"
                ),
                pollers <- WaitQueue::new(),
                gone: Atomic::new(false),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// The id that the object has, or had.
    pub(crate) fn object_id(&self) -> u64 {
        self.object_id
    }

    /// What the object is.
    pub(crate) fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// The object, unless it has retired. It may be retiring.
    pub(in crate::dxgk) fn object(&self) -> Option<T>
    where
        T: Clone,
    {
        self.state.lock().object.clone()
    }

    /// Prints the id into fdinfo, for readers that may inspect the object's creator (RES-15).
    pub(crate) fn show_id(&self, m: &SeqFile) {
        if Credentials::of_caller().may_inspect(&self.creator) {
            seq_print!(m, "dxg-object:\t{}\n", self.object_id);
        }
    }

    /// How many watches there are. Only for fdinfo: walks them.
    pub(in crate::dxgk) fn watches(&self) -> usize {
        self.state.lock().watches.keys().count()
    }

    /// Events of a poll.
    pub(crate) fn events(&self) -> u32 {
        if self.gone.load(Acquire) {
            events::HANG_UP
        } else {
            0
        }
    }

    /// What wakes up polls.
    pub(crate) fn pollers(&self) -> &WaitQueue {
        &self.pollers
    }

    /// Adds the watch with this id.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn add(&self, number: u64, watch: Arc<dyn EventListener>) -> DxgResult {
        let node = tree_node(number, watch)?;
        let mut state = self.state.lock();

        if state.object.is_none() {
            drop(state);
            drop(node);
            return Err(Status::INVALID_PARAMETER.into());
        }
        // Numbers are unique, so that nothing is replaced.
        let _nothing = state.watches.insert(node);

        Ok(())
    }

    /// Removes the watch with this id.
    pub(in crate::dxgk) fn remove(&self, number: u64) {
        let node = self.state.lock().watches.remove_node(&number);

        drop(node);
    }

    /// The watch with the lowest number that is at least `number`, and its number.
    fn at_or_after(&self, number: u64) -> Option<(u64, Arc<dyn EventListener>)> {
        let state = self.state.lock();
        let cursor = state.watches.cursor_lower_bound(&number)?;
        let (number, watch) = cursor.current();

        Some((*number, watch.clone()))
    }

    /// Reports `event` to every watch that was there when this began.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn tell(&self, event: Event) {
        let end = next_number();
        let mut number = 0;

        while let Some((at, watch)) = self.at_or_after(number).filter(|(at, _)| *at < end) {
            watch.tell(event);
            number = at + 1;
        }
    }

    /// Called when the object has retired: nothing resolves any more. True if there are only a few
    /// watches; looks at no more than that.
    pub(in crate::dxgk) fn retire(&self) -> bool {
        let (object, watches) = {
            let mut state = self.state.lock();

            (
                state.object.take(),
                state.watches.keys().take(AT_ONCE + 1).count(),
            )
        };

        drop(object);
        watches <= AT_ONCE
    }

    /// Reports the end to watches and polls. A watch that is closed before its turn gets nothing
    /// (RES-74).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn cleanup(&self) {
        self.gone.store(true, Release);
        while let Some((number, watch)) = self.at_or_after(0) {
            // Both this and the watch's release may remove it; the one that does decides whether
            // it is signalled.
            let node = self.state.lock().watches.remove_node(&number);

            if node.is_some() {
                watch.tell(Event::Destroy);
            }
            work::breathe();
        }
        self.pollers.wake();
    }
}
