// SPDX-License-Identifier: GPL-2.0

//! What tests inside a kernel need of it: an address space to map memory into, and memory of kinds
//! that the module has no use for yet.

use super::mem::{
    pages::{
        Caching,
        Frame,
        PageSource, //
    },
    value_page::ValuePage, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    bindings,
    error::to_result,
    page::PAGE_SIZE,
    prelude::*,
    sync::atomic::Atomic, //
};

/// Gives the running test an address space of its own, until the test ends. `sys::user` reaches it.
pub(crate) fn attach_address_space() -> Result {
    // SAFETY: A test runs in a thread of the kernel; the function looks whether it has one already.
    to_result(unsafe { bindings::kunit_attach_mm() })
}

/// Maps ordinary memory of a process; the address, or an error value.
pub(crate) fn map_ordinary(count: usize) -> usize {
    /// PROT_READ and PROT_WRITE.
    const PROT: usize = 3;
    /// MAP_PRIVATE and MAP_ANONYMOUS.
    const FLAGS: usize = 0x22;

    // SAFETY: The test has an address space, which ends with it.
    unsafe { bindings::vm_mmap(ptr::null_mut(), 0, count * PAGE_SIZE, PROT, FLAGS, 0) }
}

/// Pages of the kernel that are all there from the start, as those of a segment are.
pub(crate) struct Ram {
    pages: KVVec<ValuePage>,
    /// A page that cannot be had.
    missing: Option<usize>,
}

impl Ram {
    /// Zeroed pages; taking the page `missing` fails.
    pub(crate) fn new(count: usize, missing: Option<usize>) -> Result<Self> {
        let mut pages = KVVec::with_capacity(count, GFP_KERNEL)?;

        for _ in 0..count {
            pages.push(ValuePage::new()?, GFP_KERNEL)?;
        }
        Ok(Self { pages, missing })
    }

    /// The first word of a page.
    pub(crate) fn word(&self, index: usize) -> Option<&Atomic<u64>> {
        Some(self.pages.get(index)?.word(0))
    }
}

impl PageSource for Ram {
    fn count(&self) -> usize {
        self.pages.len()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(ENOMEM)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        let page = self.pages.get(index)?.page().as_ptr();

        if self.missing == Some(index) {
            return None;
        }
        // SAFETY: The page stays allocated and in place as long as `self`.
        Some(unsafe { Frame::of_page(NonNull::new(page)?) })
    }

    fn taken(&self) -> usize {
        self.pages.len() - usize::from(self.missing.is_some())
    }
}

/// The registers of the timer that every virtual PC has (HPET), as one page of memory behind a bus
/// that is cached like this.
pub(crate) struct TimerRegisters(pub(crate) Caching);

impl TimerRegisters {
    const ADDRESS: usize = 0xfed0_0000;

    /// The vendor of the timer, in the upper half of its first word.
    pub(crate) const VENDOR: u32 = 0x8086;
}

impl PageSource for TimerRegisters {
    fn count(&self) -> usize {
        1
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        // SAFETY: The registers never go. The test reads one that reading does not change.
        (index == 0).then(|| unsafe { Frame::of_number(Self::ADDRESS / PAGE_SIZE, self.0) })
    }

    fn taken(&self) -> usize {
        1
    }
}
