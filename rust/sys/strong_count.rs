// SPDX-License-Identifier: GPL-2.0

//! Counts of references, with the functions of the kernel's `refcount_t` that
//! [`kernel::sync::Refcount`] lacks.

use crate::sys::ffi;
use core::ptr;
use kernel::{
    bindings,
    sync::{
        atomic::Relaxed,
        Refcount, //
    }, //
};

/// How many references keep something alive. It starts at 1 and stays 0 once it is.
///
/// It saturates: what has too many references is never freed, instead of too early.
pub(crate) struct StrongCount(Refcount);

impl StrongCount {
    /// One reference.
    pub(crate) fn new() -> Self {
        Self(Refcount::new(1))
    }

    fn as_ptr(&self) -> *mut bindings::refcount_t {
        ptr::from_ref(&self.0).cast_mut().cast()
    }

    /// How many there are now.
    pub(crate) fn get(&self) -> u32 {
        // CAST: it is negative only if it is saturated.
        self.0.as_atomic().load(Relaxed) as u32
    }

    /// Adds a reference. The caller has one, or keeps the last one from being dropped.
    pub(crate) fn inc(&self) {
        self.0.inc();
    }

    /// Adds a reference, unless the last one is gone. True on success.
    #[must_use]
    pub(crate) fn inc_not_zero(&self) -> bool {
        // SAFETY: A `Refcount` has the representation of a `refcount_t`, and may change while it is
        // shared.
        unsafe { ffi::dxg_refcount_inc_not_zero(self.as_ptr()) }
    }

    /// Drops a reference. True if it was the last one; what the others did is visible then.
    #[must_use]
    pub(crate) fn dec_and_test(&self) -> bool {
        self.0.dec_and_test()
    }

    /// Drops a reference, unless it is the last one. True on success.
    #[must_use]
    pub(crate) fn dec_not_one(&self) -> bool {
        // SAFETY: As in `inc_not_zero`.
        unsafe { bindings::refcount_dec_not_one(self.as_ptr()) }
    }
}
