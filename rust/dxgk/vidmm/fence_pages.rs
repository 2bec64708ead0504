// SPDX-License-Identifier: GPL-2.0

//! Pages of fence values in a GPU address space (FEN-1, FEN-12).
//!
//! They are at the end of the address space, where clients map nothing. A page is mapped once,
//! however many fences it has, and is taken out with the last of them: then nobody stores to it
//! before it is used for something else.

use super::address_space::{
    AddressSpace,
    State, //
};
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

    /// Takes back what [`FencePages::take_place`] gave last, under the same hold of the lock.
    fn put_back(&mut self, place: u32, is_new: bool) {
        if is_new {
            self.used = place;
        } else {
            // There is room.
            let _room = self.free.push_within_capacity(place);
        }
    }
}

/// A page of fence values that an address space shows, until this is dropped.
pub(crate) struct ShownPage {
    space: Arc<AddressSpace>,
    key: (u64, bool),
    page: u64,
}

impl ShownPage {
    /// The GPU address of a byte of the page.
    pub(crate) fn address(&self, offset: u64) -> u64 {
        self.page.saturating_mul(PAGE).saturating_add(offset)
    }
}

impl AddressSpace {
    /// Maps a page of fence values, or adds a user to its mapping. Engines may store to it unless
    /// it is `read_only`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn show_page(
        self: &Arc<Self>,
        page: &Arc<ValuePage>,
        read_only: bool,
    ) -> DxgResult<ShownPage> {
        let key = (page.physical(), read_only);
        let mut state = self.state.lock();

        if let Some(mapped) = state.fences.mapped.get_mut(&key) {
            mapped.users = mapped.users.checked_add(1).ok_or(Status::NO_MEMORY)?;

            let place = mapped.place;

            return Ok(ShownPage {
                space: self.clone(),
                key,
                page: state.fences.page_of(place),
            });
        }

        let (place, is_new) = state.fences.take_place()?;
        let shown = state.map_page(key, place, is_new, page);

        if shown.is_err() {
            state.fences.put_back(place, is_new);
        }
        shown?;
        Ok(ShownPage {
            space: self.clone(),
            key,
            page: state.fences.page_of(place),
        })
    }
}

impl State {
    /// Maps a page in its place. The tables for a place are made once and stay: most processes
    /// make and destroy fences all the time, and a place is used again.
    fn map_page(
        &mut self,
        key: (u64, bool),
        place: u32,
        is_new: bool,
        page: &Arc<ValuePage>,
    ) -> DxgResult {
        let number = self.fences.page_of(place);
        let end = number.saturating_add(1);
        let (address, read_only) = key;
        let node = tree_node(
            key,
            Mapped {
                place,
                users: 1,
                _page: page.clone(),
            },
        )?;
        let claimed = match is_new {
            true => self.tables.claim(number, end),
            false => Ok(()),
        };

        if claimed.is_ok() {
            let _nothing = self.fences.mapped.insert(node);

            self.tables.write(number, end, |_| {
                PageTableEntry::Page(PageEntry {
                    segment: SYSTEM_MEMORY,
                    address,
                    read_only,
                    no_execute: true,
                    system_use_only: false,
                })
            });
        }
        self.tables.flush(number, end);
        claimed
    }
}

impl Drop for ShownPage {
    /// On return no engine uses the address, if this was the last user of the page.
    ///
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let mut state = self.space.state.lock();
        let is_last = state
            .fences
            .mapped
            .get_mut(&self.key)
            .is_some_and(|mapped| {
                mapped.users -= 1;
                mapped.users == 0
            });

        if !is_last {
            return;
        }

        let node = state.fences.mapped.remove_node(&self.key);
        let (number, end) = (self.page, self.page.saturating_add(1));

        state.tables.write(number, end, |_| PageTableEntry::Invalid);
        state.tables.flush(number, end);
        if let Some(place) = number
            .checked_sub(state.fences.first)
            .and_then(|place| u32::try_from(place).ok())
        {
            // There is room.
            let _room = state.fences.free.push_within_capacity(place);
        }
        drop(state);
        // The page may go now.
        drop(node);
    }
}
