// SPDX-License-Identifier: GPL-2.0

//! The memory of a segment that a software adapter has: pages of the kernel, taken when the OS part
//! first gives their place to an allocation, and kept until the adapter has done with them
//! (MEM-110). Engines take none: they find only what is there.
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
use core::ptr::NonNull;
use kernel::{
    bindings,
    page::PAGE_SIZE,
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
            // The slots stay as long as the pages, whoever uses them first.
            slots: PageSlots::new(count, GFP_KERNEL)?,
            taken: Atomic::new(0),
        })
    }

    /// Takes a page, and puts it into its slot, which is empty as far as we know.
    fn take(&self, index: usize) -> Result<NonNull<bindings::page>> {
        // SAFETY: May be called wherever sleeping is allowed; the result is null or owned.
        let fresh = NonNull::new(unsafe { ffi::dxg_segment_page() }).ok_or(ENOMEM)?;
        // INVARIANT: The slot owns the page if it is put there.
        let placed = self.slots.put(index, fresh);

        if !matches!(placed, Ok(Ok(()))) {
            // SAFETY: This owns the page, and nobody has seen it.
            unsafe { bindings::__free_pages(fresh.as_ptr(), 0) };
        }
        match placed? {
            Ok(()) => {
                self.taken.fetch_add(1, Relaxed);
                Ok(fresh)
            }
            Err(known) => Ok(known),
        }
    }

    /// The address of a page in the direct map, if it was taken, and how many of the pages from
    /// there on follow it there: with it, at most `most`. Valid as long as `self`, and aligned.
    /// Does not sleep.
    pub(in crate::sys) fn addresses(
        &self,
        index: usize,
        most: usize,
    ) -> Option<(NonNull<u8>, usize)> {
        let (page, count) = self.slots.following(index, most)?;
        // SAFETY: By the type invariant it is allocated, and in the direct map; so are those whose
        // numbers follow.
        let address = NonNull::new(unsafe { ffi::dxg_page_address(page.as_ptr()) }.cast())?;

        Some((address, count))
    }
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
