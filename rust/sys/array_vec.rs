// SPDX-License-Identifier: GPL-2.0

//! A list with room for a few elements where it is, without an allocation.

use core::{
    mem::MaybeUninit,
    ops::Deref,
    ptr,
    slice, //
};

/// A list of at most `N` elements.
pub(crate) struct ArrayVec<T, const N: usize> {
    places: [MaybeUninit<T>; N],
    /// INVARIANT: so many places are initialised, from the first on.
    len: usize,
}

impl<T, const N: usize> ArrayVec<T, N> {
    /// An empty list.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self {
            places: [const { MaybeUninit::uninit() }; N],
            len: 0,
        }
    }

    /// Adds an element at the end; hands it back if there is no room.
    pub(crate) fn push(&mut self, element: T) -> Result<(), T> {
        let Some(place) = self.places.get_mut(self.len) else {
            return Err(element);
        };

        place.write(element);
        // OVERFLOW: at most `N`.
        self.len += 1;
        Ok(())
    }

    /// The places, for who fills an empty list.
    #[inline(always)]
    pub(super) fn places(&mut self) -> &mut [MaybeUninit<T>; N] {
        &mut self.places
    }

    /// The list has so many elements, at most `N`.
    ///
    /// # Safety
    ///
    /// So many places are initialised.
    #[inline(always)]
    pub(super) unsafe fn set_len(&mut self, len: usize) {
        // INVARIANT: by the promise.
        self.len = len;
    }

    /// Takes the last element out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let place = self.places.get(last)?;

        // INVARIANT: the last one is not initialised any more.
        self.len = last;
        // SAFETY: It was initialised, and nobody uses it after this.
        Some(unsafe { place.assume_init_read() })
    }

    /// The elements.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: By the invariant so many are initialised.
        unsafe { slice::from_raw_parts_mut(self.places.as_mut_ptr().cast(), self.len) }
    }
}

impl<T, const N: usize> Deref for ArrayVec<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: By the invariant so many are initialised.
        unsafe { slice::from_raw_parts(self.places.as_ptr().cast(), self.len) }
    }
}

impl<T, const N: usize> Drop for ArrayVec<T, N> {
    fn drop(&mut self) {
        let elements: *mut [T] = self.as_mut_slice();

        // INVARIANT: none is initialised afterwards.
        self.len = 0;
        // SAFETY: They were initialised, and nobody uses them after this.
        unsafe { ptr::drop_in_place(elements) }
    }
}
