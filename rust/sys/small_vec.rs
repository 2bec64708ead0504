// SPDX-License-Identifier: GPL-2.0

//! A list that has its elements where it is as long as they are few: the usual call takes no memory
//! for them.

use crate::sys::{
    array_vec::ArrayVec,
    user::{
        self,
        Plain,
        ReadError, //
    }, //
};
use core::ops::{
    Deref,
    DerefMut, //
};
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

    /// Makes room for so many more elements. May sleep.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), AllocError> {
        let few = match self {
            Self::Few(few) => few,
            Self::Many(many) => return many.reserve(more, GFP_KERNEL_ACCOUNT),
        };
        let count = few.len().saturating_add(more);

        if count > N {
            let mut many = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

            while let Some(last) = few.pop() {
                // There is room for all of them.
                let _room = many.push_within_capacity(last);
            }
            many.reverse();
            *self = Self::Many(many);
        }
        Ok(())
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

    /// Takes an element out; those after it move down.
    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let rest = self.as_mut_slice().get_mut(place..)?;

        if rest.is_empty() {
            return None;
        }
        for next in 1..rest.len() {
            rest.swap(next - 1, next);
        }
        self.pop()
    }

    /// Keeps the elements that satisfy `keep`, in their order, and drops the others.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut kept = 0;
        let mut next = 0;

        while let Some(element) = self.get(next) {
            if keep(element) {
                self.as_mut_slice().swap(kept, next);
                kept += 1;
            }
            next += 1;
        }
        while self.len() > kept {
            drop(self.pop());
        }
    }

    /// The elements.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::Few(few) => few.as_mut_slice(),
            Self::Many(many) => many,
        }
    }
}

impl<T: Plain, const N: usize> SmallVec<T, N> {
    /// A copy of an array of `count` elements in the memory of the caller, which is bounded. With
    /// none of them the address is not used.
    pub(crate) fn read(addr: u64, count: usize) -> Result<Self, ReadError> {
        Ok(if count == 0 {
            Self::new()
        } else if count <= N {
            Self::Few(user::read_few(addr, count).map_err(|_| ReadError::Fault)?)
        } else {
            Self::Many(user::read_vec(addr, count)?)
        })
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

impl<T, const N: usize> DerefMut for SmallVec<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a SmallVec<T, N> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, const N: usize> Default for SmallVec<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Run by every load of the module in a kernel with KUnit.
#[kernel::macros::kunit_tests(opendxg_small_vec)]
mod tests {
    use super::*;

    /// A list that grows has its elements in their order, and so has one that some are dropped of.
    #[test]
    fn elements_stay_in_order() -> Result {
        let mut list = SmallVec::<u32, 2>::new();

        list.push(1);
        list.push(2);
        list.reserve(2)?;
        list.push(3);
        list.push(4);
        assert!(*list == [1, 2, 3, 4]);
        list.retain(|element| element % 2 == 0);
        assert!(*list == [2, 4]);
        assert!(list.remove(2).is_none());
        assert!(list.remove(0) == Some(2));
        assert!(*list == [4]);
        Ok(())
    }

    /// The same where they are.
    #[test]
    fn few_elements_stay_in_order() -> Result {
        let mut list = SmallVec::<u32, 2>::new();

        list.push(1);
        list.reserve(1)?;
        list.push(2);
        assert!(matches!(list, SmallVec::Few(_)));
        list.retain(|element| *element != 1);
        assert!(*list == [2]);
        Ok(())
    }
}
