// SPDX-License-Identifier: GPL-2.0

//! Waiters in the order in which they are served, in preallocated nodes: a wait allocates its node
//! before the lock, and queueing neither allocates nor frees.

use crate::logic::waiters::{
    WaitKey,
    WaitMap, //
};
use crate::sys::alloc::tree_place;
use kernel::{
    alloc::AllocError,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::Arc, //
};

/// Waiters in order.
pub(crate) struct Queue<T>(RBTree<WaitKey, Arc<T>>);

/// A waiter in its place.
pub(crate) type Node<T> = RBTreeNode<WaitKey, Arc<T>>;

/// A place that is not in a queue yet, and the waiter it will hold.
pub(crate) type Spare<T> = (RBTreeNodeReservation<WaitKey, Arc<T>>, Arc<T>);

/// Allocates a place for a waiter.
///
/// Context: may sleep.
pub(crate) fn spare<T>(waiter: &Arc<T>) -> Result<Spare<T>, AllocError> {
    Ok((tree_place()?, waiter.clone()))
}

impl<T> Queue<T> {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Self(RBTree::new())
    }

    /// All waiters, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&WaitKey, &Arc<T>)> {
        self.0.iter()
    }

    /// The waiter in a place.
    pub(crate) fn get(&self, key: &WaitKey) -> Option<&Arc<T>> {
        self.0.get(key)
    }
}

impl<T> WaitMap for Queue<T> {
    type Node = Node<T>;
    type Spare = Spare<T>;

    fn first(&self) -> Option<WaitKey> {
        self.0.cursor_front().map(|cursor| *cursor.current().0)
    }

    fn next(&self, key: &WaitKey) -> Option<WaitKey> {
        // Keys of one value differ in their arrival number, which never reaches the last one.
        let above = WaitKey {
            value: key.value,
            seq: key.seq.saturating_add(1),
        };

        self.0
            .cursor_lower_bound(&above)
            .map(|cursor| *cursor.current().0)
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
