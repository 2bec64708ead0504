// SPDX-License-Identifier: GPL-2.0

//! A list that holds its first element inline, because most calls name one object. `others` is an
//! `Option`: dropping even an empty `KVVec` costs a function call.

use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A list with room for one element inline.
pub(crate) struct InlineVec<T> {
    first: Option<T>,
    others: Option<KVVec<T>>,
}

impl<T> InlineVec<T> {
    /// An empty list with room for one.
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            others: None,
        }
    }

    /// An empty list with room for `count`. May sleep.
    pub(crate) fn with_capacity(count: usize) -> Result<Self, AllocError> {
        let mut new = Self::new();

        if count > 1 {
            new.others = Some(KVVec::with_capacity(count - 1, GFP_KERNEL_ACCOUNT)?);
        }
        Ok(new)
    }

    /// Adds an element, for which there must be room; it is dropped otherwise.
    pub(crate) fn push(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else if let Some(others) = &mut self.others {
            let _room = others.push_within_capacity(element);
        }
    }

    /// Takes the last element out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.others
            .as_mut()
            .and_then(KVVec::pop)
            .or_else(|| self.first.take())
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        Iterator::chain(
            self.first.iter(),
            self.others.as_deref().unwrap_or_default(),
        )
    }
}
