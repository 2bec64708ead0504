// SPDX-License-Identifier: GPL-2.0

//! Pages of fence values in a GPU address space (FEN-1, FEN-12).
//!
//! They are at an end of the address space, where clients map nothing. A page is taken out with
//! the last fence in it, or stays for the next fences of the same process: so nobody stores to it
//! when it is used for something else. Engines may store to it as long as somebody says so
//! (FEN-133).
//!
//! Engines look at page tables for contexts only. So the entries are written when the process has
//! its first context, with the tables, and from then on at once. The addresses are there before.

use super::{
    fence_page::FencePage,
    page_tables::PageTables, //
};
use crate::{
    ddi::paging::{
        PageEntry,
        PageSize,
        PageTableEntry, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::gpu_ranges::{
        Bounds,
        PAGE, //
    }, //
};
use kernel::prelude::*;

/// A page that is mapped.
struct Mapped {
    /// How many have said that engines may store, see [`FencePages::allow`].
    writers: u32,
    page: FencePage,
}

impl Mapped {
    /// Its entry in the page tables.
    fn entry(&self) -> PageTableEntry {
        let (segment, address) = self.page.place();

        PageTableEntry::Page(PageEntry {
            segment,
            address,
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

/// Pages beside each other that an address space shows: a power of two of them.
#[derive(Clone, Copy)]
pub(crate) struct ShownPages {
    first: ShownPage,
    order: u8,
}

impl ShownPages {
    /// The GPU address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.first.address(0)
    }
}

/// How many pages may be beside each other, as a power of two.
const MOST: u8 = 4;

/// What there may be beside each other: `1 << MOST`.
const MOST_PAGES: usize = 16;

/// Places beside each other that are not used: the first one of each group of one size.
#[derive(Default)]
struct FreePlaces {
    /// INVARIANT: there is room for all groups.
    groups: KVVec<u32>,
    /// How many groups there are, used or not.
    count: usize,
}

/// The pages of fence values in an address space.
pub(super) struct FencePages {
    /// The first page of their addresses, and how many there are.
    first: u64,
    room: u64,
    /// What is at each place that was ever used.
    places: KVVec<Option<Mapped>>,
    /// Those that are not used, by the size of their groups. A place stays in its group, so that
    /// there is always one that is large enough where there was one.
    free: [FreePlaces; MOST as usize + 1],
    /// Those whose pages may move.
    movable: KVec<u32>,
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
            free: Default::default(),
            movable: KVec::new(),
            is_walked: false,
        }
    }

    fn page_of(&self, place: u32) -> u64 {
        self.first.saturating_add(place.into())
    }

    /// So many places beside each other, as a power of two, that are not used and have tables: the
    /// first one.
    fn take_places(&mut self, tables: &mut PageTables, order: u8) -> DxgResult<u32> {
        let free = self
            .free
            .get_mut(usize::from(order))
            .ok_or(Status::NO_MEMORY)?;

        if let Some(place) = free.groups.pop() {
            return Ok(place);
        }

        // OVERFLOW: 16 at most.
        let count = 1_u32 << order;
        let place = u32::try_from(self.places.len()).map_err(|_| Status::NO_MEMORY)?;
        let number = self.first.saturating_add(place.into());
        let end = number.saturating_add(count.into());

        if end.saturating_sub(self.first) > self.room {
            return Err(Status::NO_MEMORY.into());
        }
        // CAST: as above. OVERFLOW: there is memory for all of them.
        if self.places.len() + count as usize > self.places.capacity() {
            let more = self.places.len().max(MOST_PAGES);

            self.places.reserve(more, GFP_KERNEL_ACCOUNT)?;
        }
        if free.groups.capacity() <= free.count {
            // OVERFLOW: as above.
            let room = (2 * free.count).max(MOST_PAGES);

            free.groups.reserve(room, GFP_KERNEL_ACCOUNT)?;
        }
        // They are made once and stay: most processes make and destroy fences all the time, and a
        // place is used again. Until the process has a context nobody needs them (MEM-65).
        if self.is_walked {
            if let Err(error) = tables.claim(number, end, PageSize::Kib4) {
                tables.finish(number, end);
                return Err(error);
            }
        }

        free.count += 1;
        for _ in 0..count {
            // There is room.
            let _room = self.places.push_within_capacity(None);
        }

        Ok(place)
    }

    /// The first place of a group is not used any more.
    fn give_places(&mut self, place: u32, order: u8) {
        if let Some(free) = self.free.get_mut(usize::from(order)) {
            // There is room.
            let _room = free.groups.push_within_capacity(place);
        }
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
    /// Context: a system call, the lock of the address space.
    pub(super) fn walk(&mut self, tables: &mut PageTables) -> DxgResult {
        if self.is_walked {
            return Ok(());
        }
        if !self.places.is_empty() {
            // CAST: a usize fits 64 bits.
            let end = self.first.saturating_add(self.places.len() as u64);

            if let Err(error) = tables.claim(self.first, end, PageSize::Kib4) {
                tables.finish(self.first, end);
                return Err(error);
            }
        }
        self.is_walked = true;

        let mut number = self.first;

        for place in &self.places {
            if let Some(mapped) = place {
                tables.write_one(number, mapped.entry(), false);
            }
            number = number.saturating_add(1);
        }
        tables.finish(self.first, number);
        Ok(())
    }

    /// Maps a page. Engines may store to it if `stores`, which is as a first
    /// [`FencePages::allow`].
    ///
    /// Context: a system call, the lock of the address space.
    pub(super) fn show(
        &mut self,
        tables: &mut PageTables,
        page: &FencePage,
        stores: bool,
    ) -> DxgResult<ShownPage> {
        if page.local().is_some() {
            self.movable.reserve(1, GFP_KERNEL_ACCOUNT)?;
        }

        let place = self.take_places(tables, 0)?;
        let number = self.page_of(place);
        let mapped = Mapped {
            writers: stores.into(),
            page: page.clone(),
        };

        if page.local().is_some() {
            // There is room.
            let _room = self.movable.push_within_capacity(place);
        }

        self.write(tables, number, mapped.entry(), false);
        // CAST: 32 bits fit a usize.
        if let Some(free) = self.places.get_mut(place as usize) {
            *free = Some(mapped);
        }
        Ok(ShownPage { place, number })
    }

    /// Maps pages beside each other, to which engines may store: as many as there are of `pages`,
    /// which is a power of two, 16 at most.
    ///
    /// Context: a system call, the lock of the address space.
    pub(super) fn show_pages<'a>(
        &mut self,
        tables: &mut PageTables,
        pages: impl ExactSizeIterator<Item = &'a FencePage>,
    ) -> DxgResult<ShownPages> {
        // CAST: below 32.
        let order = pages.len().trailing_zeros() as u8;
        let place = self.take_places(tables, order)?;
        let number = self.page_of(place);
        let mut at = number;

        // CAST: 32 bits fit a usize.
        for (free, page) in self.places.iter_mut().skip(place as usize).zip(pages) {
            let mapped = Mapped {
                writers: 1,
                page: page.clone(),
            };

            if self.is_walked {
                tables.write_one(at, mapped.entry(), false);
            }
            *free = Some(mapped);
            at = at.saturating_add(1);
        }
        tables.finish(number, at);
        Ok(ShownPages {
            first: ShownPage { place, number },
            order,
        })
    }

    /// Unmaps pages beside each other: on return no engine uses them. The result keeps the pages,
    /// to be dropped without the lock.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn hide_pages(&mut self, tables: &mut PageTables, shown: ShownPages) -> impl Sized {
        let ShownPage { place, number } = shown.first;
        let mut gone = [const { None::<Mapped> }; MOST_PAGES];
        let mut at = number;
        // CAST: 32 bits fit a usize. OVERFLOW: 16 at most.
        let places = self.places.iter_mut().skip(place as usize);

        for (mapped, gone) in places.take(1_usize << shown.order).zip(&mut gone) {
            *gone = mapped.take();
            if self.is_walked {
                tables.write_one(at, PageTableEntry::Invalid, true);
            }
            at = at.saturating_add(1);
        }
        tables.finish(number, at);
        self.give_places(place, shown.order);
        gone
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

    /// The page with this name is somewhere else now, wherever it is mapped. On return no engine
    /// finds it where it was.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn refresh(&self, tables: &mut PageTables, name: u64) {
        for place in &self.movable {
            // CAST: 32 bits fit a usize.
            let mapped = self.places.get(*place as usize).and_then(Option::as_ref);
            let is_it = |mapped: &&Mapped| mapped.page.name() == name;

            if let Some(mapped) = mapped.filter(is_it) {
                self.write(tables, self.page_of(*place), mapped.entry(), true);
            }
        }
    }

    /// Unmaps a page: on return no engine uses it. The result keeps the page, to be dropped without
    /// the lock.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn hide(&mut self, tables: &mut PageTables, shown: ShownPage) -> Option<impl Sized> {
        // CAST: as above.
        let gone = self.places.get_mut(shown.place as usize)?.take()?;

        if gone.page.local().is_some() {
            self.movable.retain(|place| *place != shown.place);
        }
        self.write(tables, shown.number, PageTableEntry::Invalid, true);
        self.give_places(shown.place, 0);
        Some(gone)
    }
}
