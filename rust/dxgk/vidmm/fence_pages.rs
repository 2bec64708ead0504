// SPDX-License-Identifier: GPL-2.0

//! Pages of fence values in a GPU address space (FEN-1, FEN-12).
//!
//! They are at the end of the address space, where clients map nothing. A page is mapped once,
//! however many fences it has, and is taken out with the last of them: then nobody stores to it
//! before it is used for something else.
//!
//! Engines may store to it while one of the openings of its fences may signal (FEN-133). A common
//! page of private fences is therefore mapped twice, if some of these may be signalled and some may
//! not: all openings of a private fence have the same rights. A page of a fence that may be shared
//! is its own: it is mapped once, and what engines may do changes with its openings.
//!
//! Engines look at page tables for contexts only. So the entries are written when the process has
//! its first context, and from then on at once. The addresses are there before.

use super::page_tables::PageTables;
use crate::{
    ddi::{
        paging::{
            PageEntry,
            PageTableEntry, //
        },
        segments::SYSTEM_MEMORY, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::gpu_ranges::PAGE,
    sys::{
        alloc::tree_node,
        mem::value_page::ValuePage, //
    }, //
};
use kernel::{
    prelude::*,
    rbtree::RBTree,
    sync::Arc, //
};

/// Names a mapping: the physical address of its page, and whether it began without stores.
type Key = (u64, bool);

/// A page that is mapped.
struct Mapped {
    /// The place of its address.
    place: u32,
    /// How many fences are shown by it.
    users: u32,
    /// How many openings of these let engines store.
    writers: u32,
    page: Arc<ValuePage>,
}

/// A page of fence values that an address space shows for one fence.
#[derive(Clone, Copy)]
pub(crate) struct ShownPage {
    key: Key,
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
    mapped: RBTree<Key, Mapped>,
    /// Places that were used and are not. INVARIANT: there is room for all below `used`.
    free: KVVec<u32>,
    /// Places from here on were never used.
    used: u32,
    /// Engines may look at the page tables, which therefore have the entries.
    is_walked: bool,
}

impl FencePages {
    /// None, with `room` pages from `first` on.
    pub(super) fn new(first: u64, room: u64) -> Self {
        Self {
            first,
            room,
            mapped: RBTree::new(),
            free: KVVec::new(),
            used: 0,
            is_walked: false,
        }
    }

    fn page_of(&self, place: u32) -> u64 {
        self.first.saturating_add(place.into())
    }

    /// A place that is not used, and whether it never was.
    fn take_place(&mut self) -> DxgResult<(u32, bool)> {
        if let Some(place) = self.free.pop() {
            return Ok((place, false));
        }

        let place = self.used;
        let used = place.checked_add(1).ok_or(Status::NO_MEMORY)?;

        if u64::from(used) > self.room {
            return Err(Status::NO_MEMORY.into());
        }
        // CAST: 32 bits fit a usize.
        if self.free.capacity() < used as usize {
            self.free
                .reserve((used as usize).max(16), GFP_KERNEL_ACCOUNT)?;
        }
        self.used = used;
        Ok((place, true))
    }

    /// Takes a place back; if it `is_new`, under the same hold of the lock as
    /// [`FencePages::take_place`].
    fn put_back(&mut self, place: u32, is_new: bool) {
        if is_new {
            self.used = place;
        } else {
            // There is room.
            let _room = self.free.push_within_capacity(place);
        }
    }

    /// Writes the entry of a page as it is to be, if anybody looks at it.
    fn write(&self, tables: &mut PageTables, number: u64, entry: PageTableEntry) {
        if self.is_walked {
            tables.write_one(number, entry);
            tables.flush(number, number.saturating_add(1));
        }
    }

    /// The same for one that is mapped.
    fn write_mapped(&self, tables: &mut PageTables, key: &Key) {
        if let Some(mapped) = self.mapped.get(key) {
            self.write(tables, self.page_of(mapped.place), mapped.entry());
        }
    }

    /// Engines may look at the page tables from now on.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn walk(&mut self, tables: &mut PageTables) {
        if core::mem::replace(&mut self.is_walked, true) || self.used == 0 {
            return;
        }
        for mapped in self.mapped.values() {
            tables.write_one(self.page_of(mapped.place), mapped.entry());
        }
        tables.flush(self.first, self.page_of(self.used));
    }

    /// Maps a page for one fence. Engines may store to it if `stores`.
    ///
    /// Context: a system call, the lock of the address space.
    pub(super) fn show(
        &mut self,
        tables: &mut PageTables,
        page: &Arc<ValuePage>,
        stores: bool,
    ) -> DxgResult<ShownPage> {
        let key = (page.physical(), !stores);

        if let Some(mapped) = self.mapped.get_mut(&key) {
            // OVERFLOW: a page has 64 fences at most.
            mapped.users += 1;

            let shown = ShownPage {
                key,
                number: self.first.saturating_add(mapped.place.into()),
            };

            if stores {
                self.allow(tables, shown);
            }
            return Ok(shown);
        }

        let (place, is_new) = self.take_place()?;
        let mapped = Mapped {
            place,
            users: 1,
            writers: stores.into(),
            page: page.clone(),
        };
        let made = self.map(tables, key, mapped, is_new);

        if made.is_err() {
            self.put_back(place, is_new);
        }
        made?;
        Ok(ShownPage {
            key,
            number: self.page_of(place),
        })
    }

    /// Maps a page in its place. The tables for a place are made once and stay: most processes
    /// make and destroy fences all the time, and a place is used again.
    fn map(
        &mut self,
        tables: &mut PageTables,
        key: Key,
        mapped: Mapped,
        is_new: bool,
    ) -> DxgResult {
        let number = self.page_of(mapped.place);
        let end = number.saturating_add(1);
        let node = tree_node(key, mapped)?;

        if is_new {
            tables
                .claim(number, end)
                .inspect_err(|_| tables.flush(number, end))?;
        }

        let _nothing = self.mapped.insert(node);

        self.write_mapped(tables, &key);
        Ok(())
    }

    /// One more opening of the fence lets engines store.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn allow(&mut self, tables: &mut PageTables, shown: ShownPage) {
        if let Some(mapped) = self.mapped.get_mut(&shown.key) {
            // OVERFLOW: each is a handle of the process.
            mapped.writers += 1;
            if mapped.writers == 1 {
                self.write_mapped(tables, &shown.key);
            }
        }
    }

    /// One opening less lets engines store. After the last one no engine does.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn forbid(&mut self, tables: &mut PageTables, shown: ShownPage) {
        if let Some(mapped) = self.mapped.get_mut(&shown.key) {
            mapped.writers -= 1;
            if mapped.writers == 0 {
                self.write_mapped(tables, &shown.key);
            }
        }
    }

    /// One fence less. The last one unmaps the page: on return no engine uses it, and the result
    /// keeps the page, to be dropped without the lock. `stores`: the last opening of the fence let
    /// engines store.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn hide(
        &mut self,
        tables: &mut PageTables,
        shown: ShownPage,
        stores: bool,
    ) -> Option<impl Sized> {
        let mapped = self.mapped.get_mut(&shown.key)?;

        mapped.users -= 1;
        if mapped.users != 0 {
            if stores {
                self.forbid(tables, shown);
            }
            return None;
        }

        let place = mapped.place;
        let node = self.mapped.remove_node(&shown.key);

        self.write(tables, shown.number, PageTableEntry::Invalid);
        self.put_back(place, false);
        node
    }
}

impl Mapped {
    /// Its entry in the page tables.
    fn entry(&self) -> PageTableEntry {
        PageTableEntry::Page(PageEntry {
            segment: SYSTEM_MEMORY,
            address: self.page.physical(),
            read_only: self.writers == 0,
            no_execute: true,
            system_use_only: false,
        })
    }
}
