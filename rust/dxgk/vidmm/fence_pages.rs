// SPDX-License-Identifier: GPL-2.0

//! Pages of fence values in a GPU address space (FEN-1, FEN-12).
//!
//! They are at the end of the address space, where clients map nothing. A page is mapped once,
//! however many fences it has, and is taken out with the last of them: then nobody stores to it
//! before it is used for something else.

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

/// A page that is mapped.
struct Mapped {
    /// The place of its address.
    place: u32,
    /// How many [`ShownPage`] there are.
    users: u32,
    _page: Arc<ValuePage>,
}

/// The pages of fence values in an address space.
pub(super) struct FencePages {
    /// The first page of their addresses, and how many there are.
    first: u64,
    room: u64,
    /// By physical address, and whether it is read-only.
    mapped: RBTree<(u64, bool), Mapped>,
    /// Places that were used and are not. INVARIANT: there is room for all below `used`.
    free: KVVec<u32>,
    /// Places from here on were never used.
    used: u32,
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

    /// Maps a page, or adds a user to its mapping; returns the number of the page in the address
    /// space. Engines may store to it unless it is `read_only`.
    ///
    /// Context: a system call, the lock of the address space.
    pub(super) fn show(
        &mut self,
        tables: &mut PageTables,
        page: &Arc<ValuePage>,
        read_only: bool,
    ) -> DxgResult<u64> {
        let key = (page.physical(), read_only);

        if let Some(mapped) = self.mapped.get_mut(&key) {
            mapped.users = mapped.users.checked_add(1).ok_or(Status::NO_MEMORY)?;

            let place = mapped.place;

            return Ok(self.page_of(place));
        }

        let (place, is_new) = self.take_place()?;
        let shown = self.map(tables, page, read_only, place, is_new);

        if shown.is_err() {
            self.put_back(place, is_new);
        }
        shown?;
        Ok(self.page_of(place))
    }

    /// Maps a page in its place. The tables for a place are made once and stay: most processes
    /// make and destroy fences all the time, and a place is used again.
    fn map(
        &mut self,
        tables: &mut PageTables,
        page: &Arc<ValuePage>,
        read_only: bool,
        place: u32,
        is_new: bool,
    ) -> DxgResult {
        let number = self.page_of(place);
        let end = number.saturating_add(1);
        let address = page.physical();
        let node = tree_node(
            (address, read_only),
            Mapped {
                place,
                users: 1,
                _page: page.clone(),
            },
        )?;
        let claimed = match is_new {
            true => tables.claim(number, end),
            false => Ok(()),
        };

        if claimed.is_ok() {
            let _nothing = self.mapped.insert(node);

            tables.write(number, end, |_| {
                PageTableEntry::Page(PageEntry {
                    segment: SYSTEM_MEMORY,
                    address,
                    read_only,
                    no_execute: true,
                    system_use_only: false,
                })
            });
        }
        tables.flush(number, end);
        claimed
    }

    /// One user of a mapping less. The last one unmaps it: on return no engine uses it, and the
    /// result keeps the page, to be dropped without the lock.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn hide(
        &mut self,
        tables: &mut PageTables,
        page: &Arc<ValuePage>,
        read_only: bool,
    ) -> Option<impl Sized> {
        let key = (page.physical(), read_only);
        let mapped = self.mapped.get_mut(&key)?;

        mapped.users -= 1;
        if mapped.users != 0 {
            return None;
        }

        let place = mapped.place;
        let number = self.page_of(place);
        let end = number.saturating_add(1);
        let node = self.mapped.remove_node(&key);

        tables.write(number, end, |_| PageTableEntry::Invalid);
        tables.flush(number, end);
        self.put_back(place, false);
        node
    }
}
