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
pub(crate) struct Queue<T: ?Sized>(RBTree<WaitKey, Arc<T>>);

/// A waiter in its node.
pub(crate) type Node<T> = RBTreeNode<WaitKey, Arc<T>>;

/// A node that is not in a queue yet, and the waiter it will hold.
pub(crate) type NewNode<T> = (RBTreeNodeReservation<WaitKey, Arc<T>>, Arc<T>);

/// Allocates a node for a waiter.
///
/// Context: may sleep.
pub(crate) fn new_node<T: ?Sized>(waiter: Arc<T>) -> Result<NewNode<T>, AllocError> {
    Ok((tree_place()?, waiter))
}

impl<T: ?Sized> Queue<T> {
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

/// A waiter that may wait for a change.
pub(crate) trait Knows {
    /// The value that it knows while it waits for another one. Otherwise it does not matter.
    fn known(&self) -> u64 {
        0
    }
}

impl<T: ?Sized + Knows> WaitMap for Queue<T> {
    type Node = Node<T>;
    type NewNode = NewNode<T>;

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

    fn known(&self) -> u64 {
        self.0
            .cursor_front()
            .map_or(0, |cursor| cursor.current().1.known())
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

    fn name(new_node: Self::NewNode, key: WaitKey) -> Self::Node {
        new_node.0.into_node(key, new_node.1)
    }
}

/// The kernel's tree behind the rules that the host tests check with another map. Run by every
/// load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_wait_queue)]
mod tests {
    use super::*;
    use crate::{
        logic::{
            sleepers::Woken,
            waiters::{
                EnqueueResult,
                Waiters, //
            }, //
        },
        platform::{
            load_acquire,
            Word64, //
        }, //
    };

    impl Knows for () {}

    /// An empty test queue.
    type Tree = Queue<()>;

    fn enqueue(waiters: &mut Waiters<Tree>, word: &Word64, value: u64) -> Result<WaitKey> {
        let new_node = new_node(Arc::new((), GFP_KERNEL)?)?;

        match waiters.enqueue(word, value, new_node) {
            EnqueueResult::Queued(key) => Ok(key),
            EnqueueResult::Satisfied(_) | EnqueueResult::Orphaned(_) => Err(EINVAL),
        }
    }

    fn values(due: &Tree) -> Result<KVec<u64>> {
        let mut values = KVec::new();

        for (key, _) in due.iter() {
            values.push(key.value, GFP_KERNEL)?;
        }
        Ok(values)
    }

    /// FEN-23, FEN-30: exactly the waiters for at most the value, in order.
    #[test]
    fn a_signal_takes_the_waiters_it_satisfies() -> Result {
        let word = Word64::new(0);
        let mut waiters = Waiters::new(Queue::new());
        let mut due = Queue::new();

        for value in [7, 3, u64::MAX, 5, 3, 1] {
            enqueue(&mut waiters, &word, value)?;
        }
        assert_eq!(waiters.monitored(), 0);
        let sweep = waiters.signal(&word, 5, false).map_err(|_| EINVAL)?;

        let sweep = sweep.ok_or(EINVAL)?;

        assert!(waiters.sweep(sweep, &mut due, &mut Woken::new()).is_none());
        assert_eq!(values(&due)?.as_slice(), &[1, 3, 3, 5]);
        assert_eq!(waiters.monitored(), 6);
        Ok(())
    }

    /// FEN-32.
    #[test]
    fn a_refused_rewind_takes_nobody() -> Result {
        let word = Word64::new(9);
        let mut waiters = Waiters::new(Queue::new());

        enqueue(&mut waiters, &word, 10)?;
        assert!(waiters.signal(&word, 8, false).is_err());
        assert_eq!(load_acquire(&word), 9);
        assert_eq!(waiters.monitored(), 9);
        Ok(())
    }

    /// FEN-85.
    #[test]
    fn a_waiter_leaves_once() -> Result {
        let word = Word64::new(0);
        let mut waiters = Waiters::new(Queue::new());
        let key = enqueue(&mut waiters, &word, 4)?;
        let other = enqueue(&mut waiters, &word, 4)?;

        assert!(waiters.cancel(&key).is_some());
        assert!(waiters.cancel(&key).is_none());
        assert!(waiters.cancel(&other).is_some());
        assert_eq!(waiters.monitored(), u64::MAX);
        Ok(())
    }
}
