// SPDX-License-Identifier: GPL-2.0

//! Pages that an owner keeps in place, and showing them in processes.
//!
//! Pages are inserted into mappings by number when they are touched. The memory manager does not
//! know them as pages of the process: it neither moves nor reclaims them, and they cannot be pinned
//! through the mapping (RES-21). So their owner must keep them in place.

use crate::sys::{
    ffi,
    task::sleep, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    ffi::{
        c_uint,
        c_ulong, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// One page of memory as page tables know it: a number, which is valid for as long as what the
/// frame came from. Memory behind a bus has no `struct page`.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    number: c_ulong,
    page: Option<NonNull<bindings::page>>,
    _keeper: PhantomData<&'a ()>,
}

impl Frame<'_> {
    /// The frame of a page of the kernel.
    ///
    /// # Safety
    ///
    /// The page must stay allocated and in place for the lifetime of the result.
    pub(in crate::sys) unsafe fn of_page(page: NonNull<bindings::page>) -> Self {
        Self {
            // SAFETY: The page is allocated.
            number: unsafe { ffi::dxg_page_number(page.as_ptr()) },
            page: Some(page),
            _keeper: PhantomData,
        }
    }

    /// The page, for functions of the kernel that need one.
    fn page(self) -> Option<NonNull<bindings::page>> {
        self.page
    }
}

/// Memory in pages.
pub(crate) trait PageSource: Send + Sync {
    /// How many pages it has; never changes.
    fn count(&self) -> usize;

    /// The page at an index, taken now if it was not there yet. May sleep and fail, even below
    /// [`PageSource::count`]: a file may have been truncated.
    fn page(&self, index: usize) -> Result<Frame<'_>>;

    /// The page at an index, if it is there already. Does not sleep.
    fn present(&self, index: usize) -> Option<Frame<'_>>;
}

/// Pages that one fault shows at most: what one page table holds.
const AHEAD: usize = PAGE_SIZE / size_of::<u64>();

/// The most pages that one array describes. The kernel's allocator of large arrays ends at 2^31
/// bytes, and warns above.
pub(crate) const MAX_PAGES: usize = (1 << 30) / size_of::<usize>();

/// Pages between two checks whether the caller was killed.
const BATCH: usize = 512;

/// All pages of a memory, and the memory that keeps them: in the form that the kernel's functions
/// take.
pub(crate) struct Whole {
    /// INVARIANT: the pages of `keeper`, which keeps each of them where it is.
    pages: KVVec<*mut bindings::page>,
    _keeper: Arc<dyn PageSource>,
}

// SAFETY: The array does not change, and pages may be used by any thread.
unsafe impl Send for Whole {}
// SAFETY: As above.
unsafe impl Sync for Whole {}

impl Whole {
    /// Takes all pages of `keeper`; EINTR if the caller is killed meanwhile.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(keeper: Arc<dyn PageSource>) -> Result<Self> {
        let count = keeper.count();

        if count > MAX_PAGES {
            return Err(ENOMEM);
        }

        let mut pages = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

        for index in 0..count {
            if index % BATCH == 0 && sleep::is_killed() {
                return Err(EINTR);
            }
            let page = keeper.page(index)?.page().ok_or(EINVAL)?;

            pages.push(page.as_ptr(), GFP_KERNEL_ACCOUNT)?;
        }
        // INVARIANT: Pages of a source stay where they are as long as the source.
        Ok(Self {
            pages,
            _keeper: keeper,
        })
    }

    /// The array and its length, for functions that only read it.
    pub(in crate::sys) fn as_raw(&self) -> (*mut *mut bindings::page, c_uint) {
        // CAST: at most `MAX_PAGES`.
        (self.pages.as_ptr().cast_mut(), self.pages.len() as c_uint)
    }
}

impl PageSource for Whole {
    fn count(&self) -> usize {
        self.pages.len()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        let page = self.pages.get(index).copied().and_then(NonNull::new)?;

        // SAFETY: By the invariant of `pages`, as long as `self` keeps the keeper.
        Some(unsafe { Frame::of_page(page) })
    }
}

/// A table without operations.
pub(in crate::sys) const NO_FAULTS: bindings::vm_operations_struct =
    // SAFETY: All members are nullable pointers and optional functions.
    unsafe { core::mem::MaybeUninit::zeroed().assume_init() };

/// A table in static memory.
pub(in crate::sys) struct Faults(pub(in crate::sys) bindings::vm_operations_struct);

// SAFETY: Nobody writes the table.
unsafe impl Sync for Faults {}

/// Serves a page fault in a mapping of `source`.
///
/// # Safety
///
/// `vmf` must be the argument of a `fault` operation of a mapping that `dxg_show_pages` set up, and
/// the pages must stay in place until they are zapped from the file of the mapping.
pub(in crate::sys) unsafe fn fault(
    vmf: *mut bindings::vm_fault,
    source: Option<&dyn PageSource>,
) -> bindings::vm_fault_t {
    // SAFETY: `vmf` is valid during the operation.
    let index = unsafe { (*vmf).__bindgen_anon_1.pgoff };
    let frame = match source {
        Some(source) if index < source.count() => source.page(index),
        _ => Err(EFAULT),
    };

    let result = match frame {
        // SAFETY: As above, and the frame is valid.
        Ok(frame) => unsafe { ffi::dxg_fault_frame(vmf, frame.number) },
        // SAFETY: Only computes.
        Err(error) => return unsafe { ffi::dxg_fault_error(error.to_errno()) },
    };

    // A mapping of memory that is there already should not fault for each page of it.
    if let Some(source) = source {
        for ahead in 1..AHEAD {
            let Some(frame) = index
                .checked_add(ahead)
                .and_then(|index| source.present(index))
            else {
                break;
            };

            // SAFETY: As above; the helper looks whether the mapping is that long.
            if unsafe { !ffi::dxg_fault_ahead(vmf, ahead, frame.number) } {
                break;
            }
        }
    }
    result
}
