// SPDX-License-Identifier: GPL-2.0

//! The memory of a segment that a software adapter has: pages of the kernel, taken at their first
//! use and kept until the adapter has done with them (MEM-110).
//!
//! They belong to the adapter, so they are charged to no process. What they hold from an earlier
//! owner is for the OS part to clear (MEM-7).

use super::{
    page_slots::PageSlots,
    pages::{
        Frame,
        PageSource,
        MAX_PAGES, //
    }, //
};
use crate::sys::{
    ffi,
    work, //
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    alloc::flags::{
        __GFP_NOWARN,
        __GFP_ZERO, //
    },
    bindings,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// Pages between two pauses of the end of a memory.
const BATCH: usize = 512;

/// A range of memory of its own, addressed by offset.
///
/// # Invariants
///
/// Each page of `slots` is allocated, in the direct map, and owned by its slot. There are `taken`
/// of them, unless one is being taken.
pub(crate) struct LocalMemory {
    slots: PageSlots,
    taken: Atomic<usize>,
}

impl LocalMemory {
    /// Memory of so many pages, none of which is taken yet.
    ///
    /// Context: may sleep.
    pub(crate) fn new(count: usize) -> Result<Self> {
        if count > MAX_PAGES {
            return Err(ENOMEM);
        }
        // INVARIANT: There are no pages.
        Ok(Self {
            slots: PageSlots::new(count)?,
            taken: Atomic::new(0),
        })
    }

    /// Takes a page, and puts it into its slot, which is empty as far as we know.
    fn take(&self, index: usize) -> Result<NonNull<bindings::page>> {
        // Without __GFP_HIGHMEM the page is part of the direct map on every architecture.
        let fresh = Page::alloc_page(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN)?;
        let raw = NonNull::new(fresh.as_ptr()).ok_or(ENOMEM)?;

        match self.slots.put(index, raw)? {
            Ok(()) => {
                // INVARIANT: The slot owns the page from now on.
                let _owned_by_the_slot = ManuallyDrop::new(fresh);

                self.taken.fetch_add(1, Relaxed);
                Ok(raw)
            }
            Err(known) => Ok(known),
        }
    }

    /// The address of a page in the direct map, taken now if it was not there yet. Valid as long as
    /// `self`, and aligned. May sleep.
    pub(in crate::sys) fn address(&self, index: usize) -> Option<NonNull<u8>> {
        if index >= self.count() {
            return None;
        }
        match self.slots.get(index) {
            Some(page) => address(page),
            None => address(self.take(index).ok()?),
        }
    }
}

/// The address of a page of a [`LocalMemory`].
fn address(page: NonNull<bindings::page>) -> Option<NonNull<u8>> {
    // SAFETY: By the invariant of `LocalMemory` it is allocated, and in the direct map.
    NonNull::new(unsafe { ffi::dxg_page_address(page.as_ptr()) }.cast())
}

impl PageSource for LocalMemory {
    fn count(&self) -> usize {
        self.slots.count()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        if index >= self.count() {
            return Err(EINVAL);
        }
        if let Some(page) = self.present(index) {
            return Ok(page);
        }

        let page = self.take(index)?;

        // SAFETY: By the type invariant the page stays as long as `self` lives.
        Ok(unsafe { Frame::of_page(page) })
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        let page = self.slots.get(index)?;

        // SAFETY: By the type invariant the page stays as long as `self` lives.
        Some(unsafe { Frame::of_page(page) })
    }

    fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

impl Drop for LocalMemory {
    fn drop(&mut self) {
        for (number, page) in self.slots.pages().enumerate() {
            // SAFETY: By the type invariant the slot owns the page; nobody looks at it again.
            unsafe { bindings::__free_pages(page.as_ptr(), 0) };
            if number % BATCH == BATCH - 1 {
                work::breathe();
            }
        }
    }
}

/// How many pages so many bytes are; `None` if they are not whole pages, or too many.
pub(crate) fn page_count(bytes: u64) -> Option<usize> {
    let bytes = usize::try_from(bytes).ok()?;

    (bytes % PAGE_SIZE == 0).then_some(bytes / PAGE_SIZE)
}
