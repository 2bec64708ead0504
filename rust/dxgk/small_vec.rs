// SPDX-License-Identifier: GPL-2.0

//! A list that has its elements where it is as long as they are few: the usual call takes no memory
//! for them.

use crate::sys::array_vec::ArrayVec;
use core::ops::Deref;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A list whose only element is where it is, because most calls name one object.
pub(crate) type InlineVec<T> = SmallVec<T, 1>;

/// A list that takes memory for more than `N` elements.
pub(crate) enum SmallVec<T, const N: usize> {
    /// Room for `N`.
    Few(ArrayVec<T, N>),
    /// In allocated memory.
    Many(KVVec<T>),
}

impl<T, const N: usize> SmallVec<T, N> {
    /// An empty list with room for `N`.
    pub(crate) const fn new() -> Self {
        Self::Few(ArrayVec::new())
    }

    /// An empty list with room for `count`. May sleep if these are more than `N`.
    pub(crate) fn with_capacity(count: usize) -> Result<Self, AllocError> {
        Ok(match count <= N {
            true => Self::new(),
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

    /// Takes the last element out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        match self {
            Self::Few(few) => few.pop(),
            Self::Many(many) => many.pop(),
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
