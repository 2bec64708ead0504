// SPDX-License-Identifier: GPL-2.0

//! The page tables of one address space (MEM-51 to MEM-53, MEM-58).
//!
//! A table is a page of words. The KMD writes its entries; the processor does that, so that they
//! are there when the call returns (CPU_VIRTUAL). A table is made when the first page below it gets
//! a meaning, and goes with the last one. It is charged to the memory cgroup of the task that makes
//! it, and to the user as a page that stays in memory (MEM-50).
//!
//! A table that is taken out is buried after the next flush: an engine may look at it until then.

use crate::{
    ddi::{
        class::Passive,
        object::{
            self,
            TableUpdate, //
        },
        paging::{
            PageEntry,
            PageTableEntry,
            RootPageTable,
            MAX_ENTRIES, //
        },
        segments::SYSTEM_MEMORY, //
    },
    dxgk::quota::holder::Holder,
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::PAGE,
        page_levels::Levels, //
    },
    sys::{
        alloc::tree_node,
        mem::{
            shmem::Payer,
            value_page::ValuePage, //
        },
        task::sleep,
        work, //
    }, //
};
use kernel::{
    rbtree::RBTree,
    sync::Arc, //
};

/// The charge of a page to a user.
struct Paid(Arc<Holder>);

impl Paid {
    fn new(holder: &Arc<Holder>) -> DxgResult<Self> {
        if !holder.take_page() {
            return Err(Status::NO_MEMORY.into());
        }
        Ok(Self(holder.clone()))
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        self.0.give_back(1);
    }
}

/// One page table of any level, and how much of it is used.
struct Table {
    page: ValuePage,
    /// Pages below a table of level 0 that have a meaning; tables below another one.
    used: u64,
    _paid: Paid,
}

/// The level of a table, and its number among all of that level.
type Key = (u32, u64);

/// The page tables of one address space. The owner has a lock around it, so that nobody else
/// changes them.
pub(super) struct PageTables {
    levels: Levels,
    kmd: Arc<object::Process>,
    holder: Arc<Holder>,
    /// INVARIANT: has the root, and with each other table the one above.
    tables: RBTree<Key, Table>,
    /// How many those are.
    count: usize,
    /// Out of use, until the next flush.
    dead: RBTree<Key, Table>,
}

/// An entry that leads to a table.
fn entry_of(table: &Table) -> PageTableEntry {
    PageTableEntry::Page(PageEntry {
        segment: SYSTEM_MEMORY,
        address: table.page.physical(),
        read_only: false,
        no_execute: false,
        system_use_only: false,
    })
}

impl PageTables {
    /// A root in which nothing is.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn new(
        levels: Levels,
        kmd: Arc<object::Process>,
        holder: Arc<Holder>,
    ) -> DxgResult<Self> {
        let mut tables = Self {
            levels,
            kmd,
            holder,
            tables: RBTree::new(),
            count: 0,
            dead: RBTree::new(),
        };

        tables.make((levels.root(), 0))?;
        Ok(tables)
    }

    /// Where the tables begin.
    pub(super) fn root(&self) -> RootPageTable {
        let level = self.levels.root();
        let root = self.tables.get(&(level, 0));

        RootPageTable {
            segment: SYSTEM_MEMORY,
            address: root.map_or(0, |root| root.page.physical()),
            entries: self.levels.entries(level),
        }
    }

    /// How many tables there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Writes entries of one table, from `start` on.
    fn update(&self, (level, number): Key, table: &Table, start: u32, entries: &[PageTableEntry]) {
        let first = number.saturating_mul(self.levels.pages_of_table(level));
        let further = u64::from(start).saturating_mul(self.levels.pages_of_entry(level));
        let update = TableUpdate {
            level,
            table: table.page.words(),
            start,
            entries,
            address: first.saturating_add(further).saturating_mul(PAGE),
        };

        self.kmd.update_page_table(&Passive::here(), &update);
    }

    /// Makes a table in which nothing is, and adds it. Nothing leads to it yet.
    fn make(&mut self, key: Key) -> DxgResult {
        let paid = Paid::new(&self.holder)?;
        let table = Table {
            page: ValuePage::new()?,
            used: 0,
            _paid: paid,
        };
        let node = tree_node(key, table)?;
        let entries = self.levels.entries(key.0);
        let nothing = [PageTableEntry::Invalid; MAX_ENTRIES];

        // There is no such table.
        let _nothing = self.tables.insert(node);

        self.count += 1;
        if let Some(table) = self.tables.get(&key) {
            for start in (0..entries).step_by(MAX_ENTRIES) {
                // CAST: 32 bits fit a usize.
                let count = (entries - start) as usize;
                let part = nothing.get(..count.min(MAX_ENTRIES)).unwrap_or(&nothing);

                self.update(key, table, start, part);
            }
        }
        Ok(())
    }

    /// Makes the tables above `page` that are missing. Those that were made for nothing are taken
    /// out by [`PageTables::sweep`].
    fn make_above(&mut self, page: u64) -> DxgResult {
        for level in (0..self.levels.root()).rev() {
            let key = (level, self.levels.table(level, page));

            if self.tables.get(&key).is_some() {
                continue;
            }
            self.make(key)?;

            let above = (level + 1, self.levels.table(level + 1, page));
            let index = self.levels.index(level + 1, page);

            if let Some(table) = self.tables.get_mut(&above) {
                table.used = table.used.saturating_add(1);
            }
            if let (Some(made), Some(table)) = (self.tables.get(&key), self.tables.get(&above)) {
                self.update(above, table, index, &[entry_of(made)]);
            }
        }
        Ok(())
    }

    /// These pages get a meaning: makes the tables for them. All or nothing.
    ///
    /// Context: a system call, the lock of the address space.
    pub(super) fn claim(&mut self, first: u64, end: u64) -> DxgResult {
        for (at, pages) in self.levels.leaves(first, end) {
            let made = match sleep::is_killed() {
                true => Err(Status::NO_MEMORY.into()),
                false => self.make_above(at),
            };

            if let Err(error) = made {
                self.release(first, at);
                self.sweep(at, at.saturating_add(1));
                return Err(error);
            }
            self.count_leaf(at, pages);
            work::breathe();
        }
        Ok(())
    }

    /// The same for pages whose tables are there because they have a meaning already: this takes no
    /// memory, whoever does it.
    ///
    /// Context: the lock of the address space.
    pub(super) fn claim_again(&mut self, first: u64, end: u64) {
        for (at, pages) in self.levels.leaves(first, end) {
            self.count_leaf(at, pages);
        }
    }

    /// So many pages more of the table of level 0 that has `page` have a meaning.
    fn count_leaf(&mut self, page: u64, pages: u64) {
        if let Some(leaf) = self.tables.get_mut(&(0, self.levels.table(0, page))) {
            leaf.used = leaf.used.saturating_add(pages);
        }
    }

    /// These pages have a meaning less. [`PageTables::sweep`] takes out the tables that are for
    /// nothing then.
    pub(super) fn unclaim(&mut self, first: u64, end: u64) {
        for (at, pages) in self.levels.leaves(first, end) {
            if let Some(leaf) = self.tables.get_mut(&(0, self.levels.table(0, at))) {
                leaf.used = leaf.used.saturating_sub(pages);
            }
        }
    }

    /// Both.
    fn release(&mut self, first: u64, end: u64) {
        self.unclaim(first, end);
        self.sweep(first, end);
    }

    /// The number of the first table of level 0 in these pages that there is.
    fn next_leaf(&self, first: u64, end: u64) -> Option<u64> {
        let last = self.levels.table(0, end.checked_sub(1)?);
        let next = self
            .tables
            .cursor_lower_bound(&(0, self.levels.table(0, first)))?;
        let (level, number) = *next.current().0;

        (level == 0 && number <= last).then_some(number)
    }

    /// Takes out the tables above these pages that are for nothing, with those above that are for
    /// nothing then.
    pub(super) fn sweep(&mut self, first: u64, end: u64) {
        let mut at = first;

        while let Some(number) = self.next_leaf(at, end) {
            self.take_out((0, number));
            at = (number + 1).saturating_mul(self.levels.pages_of_table(0));
            work::breathe();
        }
        // Where making them failed half way, there may be none of level 0.
        for level in 1..self.levels.root() {
            self.take_out((level, self.levels.table(level, first)));
        }
    }

    /// Takes a table out if it is for nothing.
    fn take_out(&mut self, key: Key) {
        let mut key = key;

        while key.0 < self.levels.root() {
            if self.tables.get(&key).is_none_or(|table| table.used != 0) {
                return;
            }

            let page = key.1.saturating_mul(self.levels.pages_of_table(key.0));
            let above = (key.0 + 1, self.levels.table(key.0 + 1, page));
            let index = self.levels.index(above.0, page);

            if let Some(table) = self.tables.get_mut(&above) {
                table.used = table.used.saturating_sub(1);
            }
            if let Some(table) = self.tables.get(&above) {
                self.update(above, table, index, &[PageTableEntry::Invalid]);
            }
            if let Some(node) = self.tables.remove_node(&key) {
                self.count -= 1;
                // A table with this key is taken out once between two flushes: what is claimed
                // again is flushed before that.
                let _nothing = self.dead.insert(node);
            }
            key = above;
        }
    }

    /// Writes the entries of these pages, where there are tables for them.
    pub(super) fn write(&self, first: u64, end: u64, mut entry: impl FnMut(u64) -> PageTableEntry) {
        let mut at = first;

        while let Some(number) = self.next_leaf(at, end) {
            let pages = self.levels.pages_of_table(0);
            let start = number.saturating_mul(pages);
            let next = start.saturating_add(pages);
            let mut page = at.max(start);
            let stop = end.min(next);

            if let Some(table) = self.tables.get(&(0, number)) {
                while page < stop {
                    let mut entries = [PageTableEntry::Invalid; MAX_ENTRIES];
                    // CAST: at most 64.
                    let count = (stop - page).min(MAX_ENTRIES as u64) as usize;

                    for (place, number) in entries.iter_mut().take(count).zip(page..) {
                        *place = entry(number);
                    }
                    if let Some(entries) = entries.get(..count) {
                        self.update((0, number), table, self.levels.index(0, page), entries);
                    }
                    // CAST: as above.
                    page += count as u64;
                }
            }
            at = next;
            work::breathe();
        }
    }

    /// Writes the entry of one page, if there is a table for it.
    pub(super) fn write_one(&self, page: u64, entry: PageTableEntry) {
        let leaf = (0, self.levels.table(0, page));

        if let Some(table) = self.tables.get(&leaf) {
            self.update(leaf, table, self.levels.index(0, page), &[entry]);
        }
    }

    /// No engine uses what the tables do not have any more. Then tables that are out of use are
    /// freed.
    pub(super) fn flush(&mut self, first: u64, end: u64) {
        let (first, end) = match self.dead.is_empty() {
            true => (first.saturating_mul(PAGE), end.saturating_mul(PAGE)),
            // Tables stand for more than these pages.
            false => (0, 0),
        };
        self.kmd.flush_tlb(&Passive::here(), first, end);
        self.dead = RBTree::new();
    }
}
