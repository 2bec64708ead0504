// SPDX-License-Identifier: GPL-2.0

//! Which processes have an object open, and how often: by a local handle or by an open resource.
//!
//! Most objects are open only in the process that made them. One atomic number counts the opens of
//! all processes. Processes other than the first are listed, so the count of the first is the
//! difference.
//!
//! LOCK: `others` is a leaf.

use crate::dxgk::sync::fence_mappings::FenceMappings;
use crate::sys::alloc::tree_node;
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// Opens by processes other than the first one, by the address of the process's address space.
type Others = RBTree<usize, u32>;

/// The processes that have one object open.
#[pin_data]
pub(crate) struct Openers {
    /// Which process was the first; 0 before there is any. Never changes after that.
    first: Atomic<usize>,
    total: Atomic<u32>,
    /// How many of them are not by the first process. LOCK: `others`.
    by_others: Atomic<u32>,
    #[pin]
    others: SpinLock<Others>,
}

/// The key of a process. It is unique while the process has something open, since each open handle
/// has a reference.
fn key(mappings: &Arc<FenceMappings>) -> usize {
    Arc::as_ptr(mappings).addr()
}

impl Openers {
    /// No opens.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            first: Atomic::new(0),
            total: Atomic::new(0),
            by_others: Atomic::new(0),
            others <- new_spinlock!(RBTree::new(), "Openers::others"),
        })
    }

    /// Adds an open in the process of `mappings`, which must stay referenced until
    /// [`Openers::leave`].
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn enter(&self, mappings: &Arc<FenceMappings>) -> Result<(), AllocError> {
        let key = key(mappings);

        if !self.is_first(key) && !self.count_other(key, None) {
            let node = tree_node(key, 0)?;

            self.count_other(key, Some(node));
        }
        // OVERFLOW: bounded by the handles of all processes.
        self.total.add(1, Relaxed);
        Ok(())
    }

    /// Whether a process is the first one, or becomes it.
    fn is_first(&self, key: usize) -> bool {
        match self.first.load(Relaxed) {
            0 => match self.first.cmpxchg(0, key, Relaxed) {
                Ok(_) => true,
                Err(first) => first == key,
            },
            first => first == key,
        }
    }

    /// Counts one more open handle of another process, if it is listed or there is a node for it.
    fn count_other(&self, key: usize, node: Option<RBTreeNode<usize, u32>>) -> bool {
        let mut others = self.others.lock();
        let mut unused = node;

        if others.get(&key).is_none() {
            let Some(node) = unused.take() else {
                return false;
            };

            others.insert(node);
        }
        if let Some(count) = others.get_mut(&key) {
            *count = count.saturating_add(1);
        }
        // OVERFLOW: bounded as the total is.
        self.by_others.add(1, Relaxed);
        drop(others);
        drop(unused);
        true
    }

    /// One open handle less.
    ///
    /// Context: no locks held.
    pub(in crate::dxgk) fn leave(&self, mappings: &Arc<FenceMappings>) {
        let key = key(mappings);

        self.total.fetch_sub(1, Relaxed);
        if self.first.load(Relaxed) == key {
            return;
        }

        let mut others = self.others.lock();

        self.by_others.fetch_sub(1, Relaxed);

        let gone = match others.get_mut(&key) {
            Some(count) if *count > 1 => {
                *count -= 1;
                None
            }
            Some(_) => others.remove_node(&key),
            None => None,
        };

        drop(others);
        drop(gone);
    }

    /// How many opens there are in all processes.
    pub(crate) fn total(&self) -> u32 {
        self.total.load(Relaxed)
    }

    /// How many of them are in the process of `mappings`.
    pub(crate) fn of(&self, mappings: &Arc<FenceMappings>) -> u32 {
        let key = key(mappings);
        let others = self.others.lock();

        if self.first.load(Relaxed) == key {
            // The two numbers are not counted in one step.
            self.total().saturating_sub(self.by_others.load(Relaxed))
        } else {
            others.get(&key).copied().unwrap_or(0)
        }
    }
}
