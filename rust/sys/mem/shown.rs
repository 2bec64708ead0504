// SPDX-License-Identifier: GPL-2.0

//! Showing pages in processes, and taking them out again.
//!
//! Pages are inserted into mappings by number when they are touched. The memory manager does not
//! know them as pages of the process: it neither moves nor reclaims them, and they cannot be pinned
//! through the mapping (RES-21). So their owner must keep them in place as long as a mapping has
//! them. It may take them out at any time; then the next touch asks the owner again.

use super::pages::PageSource;
use crate::sys::ffi;
use core::ops::Range;
use kernel::{
    bindings,
    fs::File,
    page::PAGE_SIZE,
    prelude::*,
    sync::aref::ARef, //
};

/// Memory that files show to processes, and that may change its place meanwhile.
pub(crate) trait Memory: Send + Sync {
    /// How many pages it has; never changes.
    fn count(&self) -> usize;

    /// Takes the page at `index` if it is not there yet, and calls `look` with the pages where they
    /// are now. That page is present, and all pages stay where they are until it returns.
    ///
    /// Context: may sleep; page faults call this inside the mmap lock.
    fn with_page(&self, index: usize, look: &mut dyn FnMut(&dyn PageSource)) -> Result;

    /// A file shows the memory from now on. Where the memory moves, its pages are taken out of the
    /// mappings of the file.
    ///
    /// Context: may sleep, no locks held.
    fn add_file(&self, file: &ShownFile) -> Result;

    /// The file shows the memory no longer, and no mapping of it has a page of the memory.
    ///
    /// Context: may sleep, no locks held.
    fn remove_file(&self, file: &ShownFile);
}

/// A file whose mappings show memory. It has an inode of its own, by which they are found.
#[derive(Clone)]
pub(crate) struct ShownFile(ARef<File>);

impl ShownFile {
    /// A file with an inode that no other file has.
    pub(in crate::sys) fn new(file: ARef<File>) -> Self {
        Self(file)
    }

    /// The file itself.
    pub(in crate::sys) fn as_ptr(&self) -> *mut bindings::file {
        self.0.as_ptr()
    }

    /// A number that no other file has while this exists.
    pub(super) fn key(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Takes these pages out of every process that has the file mapped. The mappings stay. The next
    /// touch is a fault, which shows what the owner of the file has for it then.
    ///
    /// When this returns, no processor uses an entry that was there when it was called.
    ///
    /// Context: may sleep. Takes locks of page tables and of the list of mappings, which are inside
    /// the mmap lock, and no mmap lock. So locks that a fault takes may be held.
    pub(in crate::sys) fn invalidate(&self, pages: Range<usize>) {
        // SAFETY: The file is open.
        unsafe { ffi::dxg_zap_file(self.as_ptr(), pages.start, pages.len()) }
    }
}

/// Pages that one fault shows at most: what one page table holds.
const AHEAD: usize = PAGE_SIZE / size_of::<u64>();

/// A table without operations.
pub(in crate::sys) const NO_FAULTS: bindings::vm_operations_struct =
    // SAFETY: All members are nullable pointers and optional functions.
    unsafe { core::mem::MaybeUninit::zeroed().assume_init() };

/// A table in static memory.
pub(in crate::sys) struct Faults(pub(in crate::sys) bindings::vm_operations_struct);

// SAFETY: Nobody writes the table.
unsafe impl Sync for Faults {}

/// Serves a page fault in a mapping of a memory.
///
/// # Safety
///
/// As for [`show`], but until `with_page` returns the pages stay in place by themselves.
pub(in crate::sys) unsafe fn fault(
    vmf: *mut bindings::vm_fault,
    memory: &dyn Memory,
) -> bindings::vm_fault_t {
    // SAFETY: `vmf` is valid during the operation.
    let index = unsafe { (*vmf).__bindgen_anon_1.pgoff };
    let mut result = 0;

    if index >= memory.count() {
        return fault_error(EFAULT);
    }
    // Below, a lock is held under which nobody can wait for as much memory.
    // SAFETY: `vmf` is valid during the operation.
    unsafe { ffi::dxg_fault_prepare(vmf) };
    memory
        .with_page(index, &mut |pages| {
            // SAFETY: By the caller's promise.
            result = unsafe { show(vmf, pages) };
        })
        .map_or_else(fault_error, |()| result)
}

/// Shows the page that is touched, if it is present, in a mapping of `source`.
///
/// # Safety
///
/// `vmf` must be the argument of a `fault` operation of a mapping that `dxg_show_pages` set up, and
/// the pages must stay in place until they are taken out of the mappings of its file.
pub(in crate::sys) unsafe fn show(
    vmf: *mut bindings::vm_fault,
    source: &dyn PageSource,
) -> bindings::vm_fault_t {
    // SAFETY: `vmf` is valid during the operation.
    let index = unsafe { (*vmf).__bindgen_anon_1.pgoff };
    let Some(frame) = source.present(index) else {
        return fault_error(EFAULT);
    };

    // SAFETY: As above, and the frame is valid.
    let result = unsafe { ffi::dxg_fault_frame(vmf, frame.number(), frame.caching()) };

    // A mapping of memory that is there already should not fault for each page of it.
    for ahead in 1..AHEAD {
        let Some(frame) = index
            .checked_add(ahead)
            .and_then(|index| source.present(index))
        else {
            break;
        };

        // SAFETY: As above; the helper looks whether the mapping is that long.
        if unsafe { !ffi::dxg_fault_ahead(vmf, ahead, frame.number(), frame.caching()) } {
            break;
        }
    }
    result
}

/// The answer to a fault that cannot be served.
pub(in crate::sys) fn fault_error(error: Error) -> bindings::vm_fault_t {
    // SAFETY: Only computes.
    unsafe { ffi::dxg_fault_error(error.to_errno()) }
}
