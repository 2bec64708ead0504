// SPDX-License-Identifier: GPL-2.0

//! Weak references (RES-72, RES-73): descriptors that do not keep an object alive. They report its
//! end, and give a strong reference while it lives.
//!
//! The first weak reference or watch of an object makes its [`WeakTarget`], which points to the
//! object until the object retires. After that the weak target stays as long as a descriptor refers
//! to it.
//!
//! LOCK: `WeakTarget::state` is a leaf.

use super::watch::{
    next_number,
    Event,
    Watch, //
};
use crate::dxgk::{
    at_once::AT_ONCE,
    object::{
        Object,
        Strong, //
    },
    stats::Kind, //
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
        task::caller::Credentials,
        wait_queue::WaitQueue,
        work, //
    }, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        SpinLock, //
    }, //
};

struct State {
    /// `None`: the object has retired.
    object: Option<Object>,
    /// By id; ids only grow.
    watches: RBTree<u64, Arc<Watch>>,
}

/// What weak references and watches of one object refer to.
#[pin_data]
pub(crate) struct WeakTarget {
    object_id: u64,
    kind: Kind,
    /// Who made the object.
    creator: Credentials,
    #[pin]
    state: SpinLock<State>,
    /// Polls of weak references and watches.
    #[pin]
    pollers: WaitQueue,
    /// 1 once polls report the object's end.
    gone: Atomic<u32>,
}

impl WeakTarget {
    /// The weak target of a live object; makes it if it is missing.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn of(object: &Object) -> DxgResult<Arc<Self>> {
        let header = object.header();

        if let Some(link) = header.attachments.link() {
            return Ok(link);
        }

        let back = object.clone();
        let fresh = pin_arc(
            pin_init!(Self {
                object_id: header.id(),
                kind: header.kind(),
                creator: header.creator,
                state <- new_spinlock!(
                    State {
                        object: Some(back),
                        watches: RBTree::new(),
                    },
                    "WeakTarget::state"
                ),
                pollers <- WaitQueue::new(),
                gone: Atomic::new(0),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        header.attachments.keep_link(&fresh)
    }

    /// The id of the object.
    pub(crate) fn object_id(&self) -> u64 {
        self.object_id
    }

    /// What the object is.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// A strong reference to the object, unless it has retired (RES-73).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn resolve(&self) -> Option<Strong> {
        let object = self.state.lock().object.clone()?;

        // The count decides; the pointer may be there a moment longer.
        Strong::upgrade(&object)
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
        if self.gone.load(Acquire) != 0 {
            events::HANG_UP
        } else {
            0
        }
    }

    /// What wakes up polls.
    pub(crate) fn pollers(&self) -> &WaitQueue {
        &self.pollers
    }

    /// Adds a watch.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn add(&self, watch: &Arc<Watch>) -> DxgResult {
        let node = tree_node(watch.number(), watch.clone())?;
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

    /// The watch with the lowest number that is at least `number`.
    fn at_or_after(&self, number: u64) -> Option<Arc<Watch>> {
        let state = self.state.lock();
        let cursor = state.watches.cursor_lower_bound(&number)?;

        Some(cursor.current().1.clone())
    }

    /// Reports `event` to every watch that was there when this began.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn tell(&self, event: Event) {
        let end = next_number();
        let mut number = 0;

        while let Some(watch) = self.at_or_after(number).filter(|next| next.number() < end) {
            watch.tell(event);
            number = watch.number() + 1;
        }
    }

    /// Called when the object has retired: nothing resolves any more. True if there are only a few
    /// watches; looks at no more than that.
    pub(in crate::dxgk) fn die(&self) -> bool {
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
    pub(in crate::dxgk) fn finish(&self) {
        self.gone.store(1, Release);
        while let Some(watch) = self.at_or_after(0) {
            // Both this and the watch's release may remove it; the one that does decides whether it
            // is signalled.
            let node = self.state.lock().watches.remove_node(&watch.number());

            if node.is_some() {
                watch.tell(Event::Destroy);
            }
            work::breathe();
        }
        self.pollers.wake();
    }
}
