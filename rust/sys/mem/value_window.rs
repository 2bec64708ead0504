// SPDX-License-Identifier: GPL-2.0

//! Windows of a process: mappings whose pages of fence values come and go one by one (FEN-12).
//!
//! A page is inserted into the mapping and zapped from it under the lock of the mapping, or the
//! mmap lock if the mapping is being changed. The process may do with its mappings what it likes:
//! so each time the place is looked at first. It is still ours if the mapping that is there has our
//! file, at the page offset that only this place has. A mapping that was moved has another place's
//! page offset, wherever it goes. A page in a place of a forked child stays as long as the child
//! has it.

use super::{
    mapping::{
        Mapped,
        Mapper, //
    },
    value_page::ValuePage, //
};
use crate::sys::ffi;
use core::ops::Deref;
use kernel::{
    bindings,
    mm::{
        virt::{
            flags,
            VmaRef, //
        },
        MmWithUser,
        VmaReadGuard, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

/// A window of a process.
#[derive(Clone, Copy)]
pub(crate) struct ValueWindow(Mapped);

impl ValueWindow {
    /// The address of a place.
    pub(crate) fn addr(self, place: u32) -> usize {
        // CAST: 32 bits fit a usize. OVERFLOW: the window is in the address space.
        self.0.addr.wrapping_add(place as usize * PAGE_SIZE)
    }
}

impl Mapper {
    /// Maps a window of so many places, which show nothing.
    ///
    /// Context: as [`Mapper::map`].
    pub(crate) fn map_window(&self, places: u32) -> Result<ValueWindow> {
        // CAST: 32 bits fit a usize.
        Ok(ValueWindow(self.map_empty(places as usize)?))
    }

    /// Removes what the caller has left of a window of so many places.
    ///
    /// Context: as [`Mapper::unmap`].
    pub(crate) fn unmap_window(&self, window: ValueWindow, places: u32) {
        // CAST: 32 bits fit a usize.
        self.unmap_pages(window.0, places as usize);
    }

    /// Shows `page` in a place that shows nothing. False if the place is no longer ours, or the
    /// caller has changed what may be done with it.
    ///
    /// Context: a system call of the process, no locks held (takes the lock of the mapping).
    pub(crate) fn show(&self, window: ValueWindow, place: u32, page: &ValuePage) -> Result<bool> {
        self.with_place(window, place, |vma, addr| {
            // Forked children see it, too (FEN-11).
            if vma.flags() & (flags::READ | flags::DONTCOPY) != flags::READ {
                return Ok(false);
            }

            let Some(mixed) = vma.as_mixedmap_vma() else {
                return Ok(false);
            };

            match mixed.vm_insert_page(addr, page.page()) {
                Err(ENOMEM) => Err(ENOMEM),
                shown => Ok(shown.is_ok()),
            }
        })
        .unwrap_or(Ok(false))
    }

    /// Takes the page out of a place. False if the place is no longer ours: then nothing is done.
    ///
    /// Context: as [`Mapper::show`].
    pub(crate) fn hide(&self, window: ValueWindow, place: u32) -> bool {
        self.with_place(window, place, |vma, addr| {
            vma.zap_vma_range(addr, PAGE_SIZE);
        })
        .is_some()
    }

    /// Calls `act` with the caller's mapping at a place and the address of that, if it is ours.
    fn with_place<R>(
        &self,
        window: ValueWindow,
        place: u32,
        act: impl FnOnce(&VmaRef, usize) -> R,
    ) -> Option<R> {
        let Mapped { addr, token } = window.0;
        let at = window.addr(place);
        let current = kernel::current!();
        let locked = LockedVma::at(current.mm()?, at)?;
        let vma = &*locked;
        // SAFETY: The mapping is locked.
        let is_ours =
            unsafe { ffi::dxg_vma_is_part(vma.as_ptr(), self.file.as_ptr(), addr, token) };

        is_ours.then(|| act(vma, at))
    }
}

/// A mapping of the caller, locked.
enum LockedVma<'a> {
    Alone(VmaReadGuard<'a>),
    /// By the mmap lock.
    Mm(&'a VmaRef),
}

impl<'a> LockedVma<'a> {
    /// The mapping at an address. `None` if there is none, or if the caller is killed.
    fn at(mm: &'a MmWithUser, addr: usize) -> Option<Self> {
        if let Some(vma) = mm.lock_vma_under_rcu(addr) {
            return Some(Self::Alone(vma));
        }
        // Somebody changes mappings of the process. SAFETY: `mm` is that of the caller.
        if !unsafe { ffi::dxg_mmap_read_lock(mm.as_raw()) } {
            return None;
        }

        // SAFETY: The mmap lock is held.
        let vma = unsafe { bindings::vma_lookup(mm.as_raw(), addr) };

        if vma.is_null() {
            // SAFETY: It was taken above.
            unsafe { bindings::mmap_read_unlock(mm.as_raw()) };
            return None;
        }
        // SAFETY: There is a mapping, and the mmap lock is held until this is dropped.
        Some(Self::Mm(unsafe { VmaRef::from_raw(vma) }))
    }
}

impl Deref for LockedVma<'_> {
    type Target = VmaRef;

    fn deref(&self) -> &VmaRef {
        match self {
            Self::Alone(vma) => vma,
            Self::Mm(vma) => vma,
        }
    }
}

impl Drop for LockedVma<'_> {
    fn drop(&mut self) {
        if let Self::Mm(vma) = self {
            // SAFETY: `at` took it.
            unsafe { bindings::mmap_read_unlock(vma.mm().as_raw()) };
        }
    }
}
