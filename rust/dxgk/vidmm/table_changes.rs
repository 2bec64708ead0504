// SPDX-License-Identifier: GPL-2.0

//! What a change of an address space writes to its page tables, kept until it can be given to the
//! paging node as a whole: tables with pages first, and what leads to them last (MEM-69).

use crate::{
    ddi::{
        object,
        paging::{
            Entries,
            PageSize,
            PageTableEntry, //
        }, //
    },
    logic::{
        paging_log::{
            self,
            Action,
            Operation, //
        },
        table_tree::{
            Key,
            Shows,
            Update, //
        }, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// Most updates that are kept.
pub(super) const UPDATES: usize = 32;

/// Most entries that are kept.
const ENTRIES: usize = 512;

/// Where a page table is.
#[derive(Clone, Copy)]
pub(in crate::dxgk) struct TableAt {
    pub(super) key: Key,
    /// The segment; 0 is system memory.
    pub(super) segment: u32,
    /// Its place there, in bytes.
    pub(super) offset: u64,
}

/// Writes page tables, where the processor does not.
pub(in crate::dxgk) trait TableWriter: Send + Sync {
    /// Changes page tables of a process, and has translations forgotten if there is a range to be
    /// flushed: of all addresses if both are 0. The root is the first of `tables`, and all that are
    /// changed are there. On return false nothing of it is done later, and the processor has to do
    /// it.
    ///
    /// Context: may sleep; the lock of the address space.
    fn change_tables(
        self: Arc<Self>,
        process: &object::Process,
        numbers: (u64, u64),
        tables: &[TableAt],
        changes: &TableChanges,
        flush: Option<(u64, u64)>,
    ) -> bool;
}

/// What one update writes.
#[derive(Clone, Copy)]
enum Written {
    /// So many of the entries that are kept, from this one on.
    Each(usize, usize),
    /// So many times the same.
    Repeat(PageTableEntry, u32),
    /// So many pages that follow each other.
    Following(PageTableEntry, u32),
}

/// An update that is kept.
struct Kept {
    key: Key,
    page_size: PageSize,
    start: u32,
    written: Written,
    address: u64,
    initial: bool,
    evicted: bool,
    driver_protection: u64,
    shows: Shows,
}

/// The updates of one change, in the order in which they were made.
#[derive(Default)]
pub(in crate::dxgk) struct TableChanges {
    updates: KVec<Kept>,
    entries: KVec<PageTableEntry>,
    /// The level of the highest table.
    highest: u32,
}

impl TableChanges {
    /// Takes the memory for what is kept, once.
    pub(super) fn make_room(&mut self) -> Result<(), AllocError> {
        if self.updates.capacity() < UPDATES {
            self.updates.reserve(UPDATES, GFP_KERNEL_ACCOUNT)?;
        }
        if self.entries.capacity() < ENTRIES {
            self.entries.reserve(ENTRIES, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(())
    }

    /// Keeps an update. False if there is no room for it.
    pub(super) fn keep(&mut self, key: Key, update: &Update<'_>) -> bool {
        let room = ENTRIES.min(self.entries.capacity());
        let written = match update.entries {
            Entries::Repeat(entry, count) => Written::Repeat(entry, count),
            Entries::Following(entry, count) => Written::Following(entry, count),
            Entries::Each(entries) => {
                let first = self.entries.len();

                if entries.len() > room.saturating_sub(first) {
                    return false;
                }
                Written::Each(first, entries.len())
            }
        };
        let kept = Kept {
            key,
            page_size: update.page_size,
            start: update.start,
            written,
            address: update.address,
            initial: update.initial,
            evicted: update.evicted,
            driver_protection: update.driver_protection,
            shows: update.shows,
        };

        if self.updates.len() >= UPDATES || self.updates.push_within_capacity(kept).is_err() {
            return false;
        }
        if let Entries::Each(entries) = update.entries {
            for entry in entries {
                // There is room.
                let _room = self.entries.push_within_capacity(*entry);
            }
        }
        self.highest = self.highest.max(key.level);
        true
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        self.updates.clear();
        self.entries.clear();
        self.highest = 0;
    }

    /// All of them, those of lower levels first. For one table they are in the order in which they
    /// were made.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Update<'_>)> {
        (0..=self.highest).flat_map(|level| {
            let of_level = self
                .updates
                .iter()
                .filter(move |kept| kept.key.level == level);

            of_level.map(|kept| (kept.key, self.update(kept)))
        })
    }

    fn update(&self, kept: &Kept) -> Update<'_> {
        Update {
            page_size: kept.page_size,
            start: kept.start,
            entries: match kept.written {
                Written::Repeat(entry, count) => Entries::Repeat(entry, count),
                Written::Following(entry, count) => Entries::Following(entry, count),
                Written::Each(first, count) => Entries::Each(
                    self.entries
                        .get(first..first.saturating_add(count))
                        .unwrap_or_default(),
                ),
            },
            address: kept.address,
            initial: kept.initial,
            evicted: kept.evicted,
            driver_protection: kept.driver_protection,
            shows: kept.shows,
        }
    }
}

/// What a record says of an update.
pub(super) fn recorded(level: u32, update: &Update<'_>) -> Action {
    let first = update.entries.iter().next().unwrap_or_default();
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let mut flags = flag(update.initial, paging_log::INITIAL_UPDATE)
        | flag(update.evicted, paging_log::NOTIFY_EVICTION)
        | flag(
            matches!(update.entries, Entries::Repeat(..)),
            paging_log::REPEAT,
        )
        | flag(update.page_size == PageSize::Kib64, paging_log::PAGES_64KB);
    let (segment, offset) = match first {
        PageTableEntry::Page(page) => {
            flags |= paging_log::VALID;
            (page.segment, page.address)
        }
        PageTableEntry::Zero => {
            flags |= paging_log::ZERO;
            (0, 0)
        }
        PageTableEntry::Invalid => (0, 0),
    };

    Action {
        operation: Operation::UpdatePageTable,
        object: update.shows.allocation,
        level,
        start: update.start.into(),
        // CAST: a usize fits 64 bits.
        count: update.entries.count() as u64,
        segment,
        offset,
        source: update.shows.offset,
        address: update.address,
        flags,
        ..Action::default()
    }
}
