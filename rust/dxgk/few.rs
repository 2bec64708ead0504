// SPDX-License-Identifier: GPL-2.0

//! A list that has room for its first elements in itself. Most calls name one object, and then a
//! list costs no memory.

use kernel::prelude::*;

/// Up to `N` elements in place, the others in allocated memory.
pub(crate) struct Few<T, const N: usize> {
    near: [Option<T>; N],
    far: Option<KVVec<T>>,
    len: usize,
}

impl<T, const N: usize> Few<T, N> {
    /// An empty list with room for `N`.
    pub(crate) const fn new() -> Self {
        Self {
            near: [const { None }; N],
            far: None,
            len: 0,
        }
    }

    /// An empty list with room for `count`. May sleep.
    pub(crate) fn with_capacity(count: usize) -> Result<Self> {
        let mut few = Self::new();

        if count > N {
            few.far = Some(KVVec::with_capacity(count - N, GFP_KERNEL_ACCOUNT)?);
        }
        Ok(few)
    }

    /// Adds an element, for which there must be room; it is dropped otherwise.
    pub(crate) fn push(&mut self, element: T) {
        if let Some(place) = self.near.get_mut(self.len) {
            *place = Some(element);
        } else if let Some(far) = &mut self.far {
            let _room = far.push_within_capacity(element);
        }
        self.len += 1;
    }

    /// Takes the last element out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        match self.near.get_mut(self.len) {
            Some(place) => place.take(),
            None => self.far.as_mut()?.pop(),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        Iterator::chain(
            self.near.iter().flatten(),
            self.far.as_deref().unwrap_or_default(),
        )
    }
}
