// SPDX-License-Identifier: GPL-2.0

//! Pages of fence values in a GPU address space (FEN-1, FEN-12).
//!
//! They are at an end of the address space, where clients map nothing. A page is taken out with
//! the last fence in it: then nobody stores to it before it is used for something else. Engines may
//! store to it as long as somebody says so (FEN-133).
//!
//! Engines look at page tables for contexts only. So the entries are written when the process has
//! its first context, and from then on at once. The addresses are there before.

use super::page_tables::PageTables;
use crate::{
    ddi::{
        paging::{
            PageEntry,
            PageSize,
            PageTableEntry, //
        },
        segments::SYSTEM_MEMORY, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::gpu_ranges::{
        Bounds,
        PAGE, //
    },
    sys::mem::value_page::ValuePage,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A page that is mapped.
struct Mapped {
    /// How many have said that engines may store, see [`FencePages::allow`].
    writers: u32,
    page: Arc<ValuePage>,
}

impl Mapped {
    /// Its entry in the page tables.
    fn entry(&self) -> PageTableEntry {
        PageTableEntry::Page(PageEntry {
            segment: SYSTEM_MEMORY,
            address: self.page.physical(),
            page_size: PageSize::Kib4,
            read_only: self.writers == 0,
            no_execute: true,
            system_use_only: false,
            cache_coherent: false,
        })
    }
}

/// A page of fence values that an address space shows.
#[derive(Clone, Copy)]
pub(crate) struct ShownPage {
    place: u32,
    /// Its number in the address space.
    number: u64,
}

impl ShownPage {
    /// The GPU address of a byte of the page.
    pub(crate) fn address(&self, offset: u64) -> u64 {
        self.number.saturating_mul(PAGE).saturating_add(offset)
    }
}

/// The pages of fence values in an address space.
pub(super) struct FencePages {
    /// The first page of their addresses, and how many there are.
    first: u64,
    room: u64,
    /// What is at each place that was ever used.
    places: KVVec<Option<Mapped>>,
    /// Those that are not used. INVARIANT: there is room for all places.
    free: KVVec<u32>,
    /// Engines may look at the page tables, which therefore have the entries.
    is_walked: bool,
}

impl FencePages {
    /// None, at these pages.
    pub(super) fn new(pages: Bounds) -> Self {
        Self {
            first: pages.first,
            room: pages.end.saturating_sub(pages.first),
            places: KVVec::new(),
            free: KVVec::new(),
            is_walked: false,
        }
    }

    fn page_of(&self, place: u32) -> u64 {
        self.first.saturating_add(place.into())
    }

    /// A place that is not used, and has tables.
    fn take_place(&mut self, tables: &mut PageTables) -> DxgResult<u32> {
        if let Some(place) = self.free.pop() {
            return Ok(place);
        }

        let place = u32::try_from(self.places.len()).map_err(|_| Status::NO_MEMORY)?;
        let number = self.page_of(place);

        if u64::from(place) >= self.room {
            return Err(Status::NO_MEMORY.into());
        }
        if self.places.len() == self.places.capacity() {
            let more = self.places.len().max(16);

            self.places.reserve(more, GFP_KERNEL_ACCOUNT)?;
        }
        if self.free.capacity() < self.places.capacity() {
            self.free
                .reserve(self.places.capacity(), GFP_KERNEL_ACCOUNT)?;
        }
        // They are made once and stay: most processes make and destroy fences all the time, and a
        // place is used again.
        if let Err(error) = tables.claim(number, number.saturating_add(1), PageSize::Kib4) {
            tables.finish(number, number.saturating_add(1));
            return Err(error);
        }

        // There is room.
        let _room = self.places.push_within_capacity(None);

        Ok(place)
    }

    /// Writes the entry of a page as it is to be, if anybody looks at it. `was_valid`: it may have
    /// had a valid one.
    fn write(&self, tables: &mut PageTables, number: u64, entry: PageTableEntry, was_valid: bool) {
        if self.is_walked {
            tables.write_one(number, entry, was_valid);
        }
        tables.finish(number, number.saturating_add(1));
    }

    /// The entry that page tables have for a page, if it is one of these.
    pub(super) fn entry_of(&self, page: u64) -> Option<PageTableEntry> {
        let place = page
            .checked_sub(self.first)
            .filter(|place| *place < self.room)?;
        // CAST: 64 bits fit a usize.
        let mapped = self.places.get(place as usize).and_then(Option::as_ref);

        Some(match mapped {
            Some(mapped) if self.is_walked => mapped.entry(),
            _ => PageTableEntry::Invalid,
        })
    }

    /// What is at a place.
    fn get(&mut self, shown: ShownPage) -> Option<&mut Mapped> {
        // CAST: 32 bits fit a usize.
        self.places.get_mut(shown.place as usize)?.as_mut()
    }

    /// Engines may look at the page tables from now on.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn walk(&mut self, tables: &mut PageTables) {
        if core::mem::replace(&mut self.is_walked, true) || self.places.is_empty() {
            return;
        }

        let mut number = self.first;

        for place in &self.places {
            if let Some(mapped) = place {
                tables.write_one(number, mapped.entry(), false);
            }
            number = number.saturating_add(1);
        }
        tables.finish(self.first, number);
    }

    /// Maps a page. Engines may store to it if `stores`, which is as a first
    /// [`FencePages::allow`].
    ///
    /// Context: a system call, the lock of the address space.
    pub(super) fn show(
        &mut self,
        tables: &mut PageTables,
        page: &Arc<ValuePage>,
        stores: bool,
    ) -> DxgResult<ShownPage> {
        let place = self.take_place(tables)?;
        let number = self.page_of(place);
        let mapped = Mapped {
            writers: stores.into(),
            page: page.clone(),
        };

        self.write(tables, number, mapped.entry(), false);
        // CAST: 32 bits fit a usize.
        if let Some(free) = self.places.get_mut(place as usize) {
            *free = Some(mapped);
        }
        Ok(ShownPage { place, number })
    }

    /// Engines may store to a page, until as many [`FencePages::forbid`] as there were of this.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn allow(&mut self, tables: &mut PageTables, shown: ShownPage) {
        let Some(mapped) = self.get(shown) else {
            return;
        };

        // OVERFLOW: each is an open in progress, or the first one that stores.
        mapped.writers += 1;
        if mapped.writers == 1 {
            let entry = mapped.entry();

            self.write(tables, shown.number, entry, true);
        }
    }

    /// Ends one [`FencePages::allow`]. On return from the last one engines do not store.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn forbid(&mut self, tables: &mut PageTables, shown: ShownPage) {
        let Some(mapped) = self.get(shown) else {
            return;
        };

        mapped.writers -= 1;
        if mapped.writers == 0 {
            let entry = mapped.entry();

            self.write(tables, shown.number, entry, true);
        }
    }

    /// Unmaps a page: on return no engine uses it. The result keeps the page, to be dropped without
    /// the lock.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn hide(&mut self, tables: &mut PageTables, shown: ShownPage) -> Option<impl Sized> {
        // CAST: as above.
        let gone = self.places.get_mut(shown.place as usize)?.take()?;

        self.write(tables, shown.number, PageTableEntry::Invalid, true);
        // There is room.
        let _room = self.free.push_within_capacity(shown.place);

        Some(gone)
    }
}
