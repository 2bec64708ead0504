// SPDX-License-Identifier: GPL-2.0

//! A list that has its elements where it is as long as they are few: the usual call takes no memory
//! for them.

use crate::sys::array_vec::ArrayVec;
use core::ops::Deref;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A list that takes memory for more than `N` elements.
pub(crate) enum SmallVec<T, const N: usize> {
    /// Room for `N`.
    Few(ArrayVec<T, N>),
    /// In allocated memory.
    Many(KVVec<T>),
}

impl<T, const N: usize> SmallVec<T, N> {
    /// An empty list with room for `count`. May sleep if these are more than `N`.
    pub(crate) fn with_capacity(count: usize) -> Result<Self, AllocError> {
        Ok(match count <= N {
            true => Self::Few(ArrayVec::new()),
            false => Self::Many(KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?),
        })
    }

    /// Adds an element, for which there must be room; it is dropped otherwise.
    pub(crate) fn push(&mut self, element: T) {
        match self {
            Self::Few(few) => {
                let _room = few.push(element);
            }
            Self::Many(many) => {
                let _room = many.push_within_capacity(element);
            }
        }
    }
}

impl<T, const N: usize> Deref for SmallVec<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Few(few) => few,
            Self::Many(many) => many,
        }
    }
}
