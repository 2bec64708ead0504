// SPDX-License-Identifier: GPL-2.0

//! One page of fence values, seen by the kernel as atomic words and by processes as read-only
//! memory.

use super::pages::Frame;
use crate::sys::ffi;
use core::{
    ptr::NonNull,
    slice, //
};
use kernel::{
    alloc::{
        flags::__GFP_ZERO,
        AllocError, //
    },
    bindings,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Release, //
    }, //
};

/// 64-bit words in a page.
pub(crate) const WORDS: usize = PAGE_SIZE / size_of::<u64>();

/// A zeroed page of 64-bit words, charged to the allocating process's memory cgroup.
///
/// # Invariants
///
/// `words` is the address of `page` in the kernel's direct map: valid for `WORDS` aligned words as
/// long as `page` is.
pub(crate) struct ValuePage {
    page: Page,
    words: NonNull<u64>,
    changes: Atomic<u64>,
}

// SAFETY: The page is only accessed through atomics.
unsafe impl Send for ValuePage {}
// SAFETY: The page is only accessed through atomics.
unsafe impl Sync for ValuePage {}

impl ValuePage {
    /// Allocates a page. May sleep.
    pub(crate) fn new() -> Result<Self, AllocError> {
        // Without __GFP_HIGHMEM the page is part of the direct map on every architecture.
        let page = Page::alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO)?;
        // SAFETY: `page` is a valid page outside high memory.
        let addr = unsafe { ffi::dxg_page_address(page.as_ptr()) };
        let words = NonNull::new(addr.cast::<u64>()).ok_or(AllocError)?;

        // INVARIANT: A page of the direct map stays mapped while it is allocated, and a page is
        // aligned for words.
        Ok(Self {
            page,
            words,
            changes: Atomic::new(0),
        })
    }

    /// The word at `index`, counted modulo [`WORDS`].
    pub(crate) fn word(&self, index: usize) -> &Atomic<u64> {
        // SAFETY: By the type invariant the word lies in the page and lives as long as `self`; all
        // accesses to it, in the kernel and in processes, are single 64-bit accesses (FEN-9).
        unsafe { Atomic::from_ptr(self.words.as_ptr().add(index % WORDS)) }
    }

    /// All words, for the driver that keeps page tables in them.
    pub(crate) fn words(&self) -> &[Atomic<u64>] {
        // SAFETY: By the type invariant these words lie in the page and live as long as `self`; all
        // accesses to them are single 64-bit accesses. An atomic has the layout of its word.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast::<Atomic<u64>>(), WORDS) }
    }

    /// Its place in system memory: what page tables of the GPU have.
    pub(crate) fn physical(&self) -> u64 {
        self.frame().physical()
    }

    /// The page as mappings have it.
    pub(in crate::sys) fn frame(&self) -> Frame<'_> {
        // SAFETY: The page is allocated as long as `self`.
        unsafe { Frame::of_page(self.raw_page()) }
    }

    fn raw_page(&self) -> NonNull<bindings::page> {
        // SAFETY: The address of a page that there is.
        unsafe { NonNull::new_unchecked(self.page.as_ptr()) }
    }

    /// How often a mapping of the page was copied or removed: by a fork, or because its owner moved
    /// or unmapped it. A copy counts before it shows the page.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    /// Counts a copy or a removal.
    pub(in crate::sys) fn add_change(&self) {
        self.changes.fetch_add(1, Release);
    }

    /// The page itself, for mapping it.
    pub(in crate::sys) fn page(&self) -> &Page {
        &self.page
    }
}
