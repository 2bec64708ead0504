// SPDX-License-Identifier: GPL-2.0

//! Memory of a process, pinned where it is (RES-21).
//!
//! The pages count against RLIMIT_MEMLOCK of the user who had them pinned, for as long as they are
//! pinned. The process shows them as `VmPin`. After a fork the process keeps the pinned pages, and
//! the child gets copies.

use super::pages::{
    Frame,
    PageSource,
    MAX_PAGES, //
};
use crate::sys::ffi;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    bindings,
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

/// Pages that are charged to a user. Releasing the charge takes no lock and may be done anywhere.
struct Charge {
    payer: ffi::dxg_payer,
    count: usize,
}

// SAFETY: Both references may be given back by any thread.
unsafe impl Send for Charge {}
// SAFETY: Nothing is done with a shared reference.
unsafe impl Sync for Charge {}

impl Charge {
    /// Fails with ENOMEM over the limit. Context: a system call.
    fn caller(count: usize) -> Result<Self> {
        let mut payer = ffi::dxg_payer {
            user: ptr::null_mut(),
            mm: ptr::null_mut(),
        };

        // SAFETY: May be called by any task; `payer` is valid for the write and owns references
        // unless this fails.
        to_result(unsafe { ffi::dxg_pins_charge(&mut payer, count) })?;
        Ok(Self { payer, count })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // SAFETY: `payer` was charged with as much and is referenced; given back once.
        unsafe { ffi::dxg_pins_uncharge(&self.payer, self.count) }
    }
}

/// Pinned pages of a process.
///
/// # Invariants
///
/// All entries of `pages` are pinned.
pub(crate) struct Pinned {
    pages: KVVec<*mut bindings::page>,
    write: bool,
    _charge: Charge,
}

// SAFETY: Pages may be used and unpinned by any thread.
unsafe impl Send for Pinned {}
// SAFETY: The array does not change.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Pins pages of the caller: ENOMEM over the limit, EINTR if the caller is killed, EFAULT for
    /// what is not there, must not be written to or cannot be pinned.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn new(addr: usize, count: usize, write: bool) -> Result<Self> {
        let end = count
            .checked_mul(PAGE_SIZE)
            .and_then(|size| addr.checked_add(size))
            .ok_or(EFAULT)?;

        // An address without memory must not fail as too much memory. Pinning checks it again.
        // SAFETY: Looks at numbers and at the caller's address space only.
        to_result(unsafe { ffi::dxg_check_ordinary(addr, end) })?;
        if count > MAX_PAGES {
            return Err(ENOMEM);
        }

        let charge = Charge::caller(count)?;
        let mut pages = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

        for _ in 0..count {
            pages.push(ptr::null_mut(), GFP_KERNEL_ACCOUNT)?;
        }
        // SAFETY: The array has room for `count` pages, and any address may be asked for.
        to_result(unsafe { ffi::dxg_pin_user(addr, count, write, pages.as_mut_ptr()) })?;

        // INVARIANT: The call pinned all pages.
        Ok(Self {
            pages,
            write,
            _charge: charge,
        })
    }
}

impl PageSource for Pinned {
    fn count(&self) -> usize {
        self.pages.len()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        let page = self.pages.get(index).copied().and_then(NonNull::new)?;

        // SAFETY: By the type invariant the page stays pinned as long as `self` lives.
        Some(unsafe { Frame::of_page(page) })
    }

    fn taken(&self) -> usize {
        self.pages.len()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: By the type invariant all pages are pinned; they are given back once.
        unsafe { ffi::dxg_unpin_user(self.pages.as_mut_ptr(), self.pages.len(), self.write) }
    }
}
