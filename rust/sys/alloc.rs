// SPDX-License-Identifier: GPL-2.0

//! Allocations that say in their type that memory is all that can be missing.
//!
//! The kernel crate's own constructors return its `Error` where only ENOMEM is possible. With
//! these, a caller need not think about errnos that never come.

use kernel::{
    alloc::{
        AllocError,
        Flags, //
    },
    prelude::*,
    rbtree::{
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        UniqueArc, //
    }, //
};
use pin_init::InPlaceWrite;

/// [`Arc::pin_init`] of something whose initialisation cannot fail.
pub(crate) fn pin_arc<T>(init: impl PinInit<T>, flags: Flags) -> Result<Arc<T>, AllocError> {
    match UniqueArc::new_uninit(flags)?.write_pin_init(init) {
        Ok(made) => Ok(made.into()),
        Err(never) => match never {},
    }
}

/// [`KBox::pin_init`] of something whose initialisation cannot fail.
pub(crate) fn pin_box<T>(init: impl PinInit<T>, flags: Flags) -> Result<Pin<KBox<T>>, AllocError> {
    match KBox::new_uninit(flags)?.write_pin_init(init) {
        Ok(made) => Ok(made),
        Err(never) => match never {},
    }
}

/// [`RBTreeNode::new`], which fails for want of memory only.
pub(crate) fn tree_node<K, V>(key: K, value: V) -> Result<RBTreeNode<K, V>, AllocError> {
    Ok(tree_place()?.into_node(key, value))
}

/// A node of a tree without contents.
pub(crate) fn tree_place<K, V>() -> Result<RBTreeNodeReservation<K, V>, AllocError> {
    RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT).map_err(|_| AllocError)
}
