// SPDX-License-Identifier: GPL-2.0

//! Which page tables an address space has, and what leads to them (MEM-53 to MEM-56).
//!
//! A table is made when the first page below it gets a meaning, and goes with the last one. It is
//! full of invalid entries before anything leads to it. The root is there from the start, and says
//! nothing until it is [needed](TableTree::begin_root): most processes never have memory that is
//! resident (MEM-65). What is taken out is freed behind the next
//! flush: an engine may look at it until then.
//!
//! A change is any number of claims, writes and sweeps, and then one [`TableTree::finish`]. With
//! two levels the root has as many entries as are needed, which takes a new one now and then
//! (MEM-54). Contexts are suspended while that happens, or during every change if the KMD wants it
//! (MEM-56).
//!
//! A table of level 0 has pages of 64 KiB if it was made for such and the KMD has them (MEM-57). As
//! soon as it is to say something else, its owner has it [split](TableTree::split): the same memory
//! is then a table of 4-KiB pages, as long as it is there.
//!
//! Memory of tables, the KMD and the contexts belong to the caller, which also has the lock
//! ([`Tables`]).

use super::{
    gpu_ranges::PAGE,
    page_levels::Levels, //
};
use crate::{
    ddi::{
        caps::GpuMmuCaps,
        object::TableUpdate,
        paging::{
            Entries,
            PageEntry,
            PageSize,
            PageTableEntry,
            TableAddress,
            MAX_ENTRIES, //
        },
        segments::SYSTEM_MEMORY, //
    }, //
};

/// A table: its level, and its number among all of the level. In order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// 0 has the pages.
    pub level: u32,
    /// From the lowest address on.
    pub number: u64,
}

/// Entries for one table.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// What each entry of a table of level 0 stands for.
    pub page_size: PageSize,
    /// Index of the first one.
    pub start: u32,
    /// What to write.
    pub entries: Entries<'a>,
    /// GPU virtual address that the first one is for.
    pub address: u64,
    /// The table says nothing yet.
    pub initial: bool,
    /// What they lead to is about to go or to move.
    pub evicted: bool,
    /// That of the client's call.
    pub driver_protection: u64,
    /// What the first one shows, or would.
    pub shows: Shows,
}

impl<'a> Update<'a> {
    /// What the KMD gets for a table with this key, which is there.
    pub fn of_table(&self, key: Key, table: TableAddress<'a>) -> TableUpdate<'a> {
        TableUpdate {
            level: key.level,
            table,
            page_size: self.page_size,
            start: self.start,
            entries: self.entries,
            initial_update: self.initial,
            notify_eviction: self.evicted,
            driver_protection: self.driver_protection,
            address: self.address,
        }
    }
}

/// A place in an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shows {
    /// The number of the allocation; 0 is none.
    pub allocation: u64,
    /// Bytes from its start.
    pub offset: u64,
}

impl Shows {
    /// What the page shows that is so many pages further on.
    pub fn further(self, pages: u64) -> Self {
        match self.allocation {
            0 => self,
            allocation => Self {
                allocation,
                offset: self.offset.saturating_add(pages.saturating_mul(PAGE)),
            },
        }
    }
}

/// The tables of an address space, with all that their changes need.
pub trait Tables {
    /// Why something cannot be made.
    type Error;

    /// How much of a table is used, if it is there: pages that have a meaning, or tables below.
    fn used(&self, key: Key) -> Option<u64>;

    /// It is so much now.
    fn set_used(&mut self, key: Key, used: u64);

    /// How large the pages of a table of level 0 are; 4 KiB for all others.
    fn page_size(&self, key: Key) -> PageSize;

    /// They are so large now.
    fn set_page_size(&mut self, key: Key, size: PageSize);

    /// The first table that is there, from `key` on.
    fn next(&self, key: Key) -> Option<Key>;

    /// The number of the last table of level 0.
    fn last_leaf(&self) -> Option<u64>;

    /// Makes a table that is not there, with pages of 4 KiB. Its entries say anything.
    fn make(&mut self, key: Key) -> Result<(), Self::Error>;

    /// A table is about to be initialised.
    fn commit(&mut self, key: Key);

    /// Takes a table out, which is freed by [`Tables::flush`].
    fn take_out(&mut self, key: Key);

    /// The entry that leads to a table, with the size of its pages.
    fn entry_to(&self, key: Key) -> PageTableEntry;

    /// Has the KMD write entries of a table.
    fn update(&mut self, key: Key, update: &Update<'_>);

    /// How many entries a root has that is to have so many at least.
    fn root_entries(&self, least: u32) -> Result<u32, Self::Error>;

    /// The table `from` becomes the root instead of `to`, which is taken out, with so many entries.
    /// All contexts, which are suspended, learn of it.
    fn move_root(&mut self, from: Key, to: Key, entries: u32);

    /// Suspends all contexts: on return none of them runs.
    fn suspend(&mut self);

    /// They go on.
    fn resume(&mut self);

    /// On return no engine uses what the tables do not have any more, from the first address to
    /// before the last one; of all if both are 0. Frees what was taken out.
    fn flush(&mut self, first: u64, last: u64);

    /// Whether a long claim may go on; lets others run.
    fn go_on(&self) -> Result<(), Self::Error>;
}

/// What a KMD wants of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Contexts are suspended meanwhile.
    pub is_idle: bool,
    /// Pages that become valid need no flush.
    pub invalid_not_cached: bool,
    /// Entries are set invalid before their table goes.
    pub explicit_invalidation: bool,
    /// Entries of system memory see caches of the CPU.
    pub cache_coherent: bool,
}

impl Rules {
    /// What the caps say.
    pub fn new(caps: &GpuMmuCaps) -> Self {
        Self {
            is_idle: caps.page_table_update_require_address_space_idle,
            invalid_not_cached: caps.invalid_tlb_entries_not_cached,
            explicit_invalidation: caps.explicit_page_table_invalidation,
            cache_coherent: caps.cache_coherent,
        }
    }
}

/// What pages become.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Where they begin.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
    /// Whether some of them may have had valid entries.
    pub were_valid: bool,
    /// They become invalid because their memory is about to go.
    pub evicted: bool,
    /// That of the client's call.
    pub driver_protection: u64,
    /// What the first one shows, or would.
    pub shows: Shows,
}

/// What their entries are.
pub enum Content<'a> {
    /// All the same.
    All(PageTableEntry),
    /// By page: its entry, and for how many pages from there on the memory follows it.
    Each(&'a mut dyn FnMut(u64) -> (PageTableEntry, u64)),
}

/// The next entries of so many that a table is to have from a page on: those of memory that
/// follows, or a list of them, for which there is room in `each`. `entry` is as in
/// [`Content::Each`].
pub fn entries_of(
    each: &mut [PageTableEntry; MAX_ENTRIES],
    (first, left): (u64, u32),
    size: PageSize,
    mut entry: impl FnMut(u64) -> (PageTableEntry, u64),
) -> Entries<'_> {
    // CAST: 32 bits fit a usize.
    let count = (left as usize).min(MAX_ENTRIES);

    if size == PageSize::Kib4 {
        let (entry, pages) = entry(first);

        // A list would be no longer.
        if pages >= count as u64 && count > 1 {
            // CAST: at most `left`.
            return Entries::Following(entry, pages.min(left.into()) as u32);
        }
    }

    let each = each.get_mut(..count).unwrap_or_default();

    set_entries(each, first, size.pages(), entry);
    Entries::Each(each)
}

/// Sets entries, each of which stands for `step` pages, from the page `first` on. `entry` is as in
/// [`Content::Each`].
pub fn set_entries(
    entries: &mut [PageTableEntry],
    first: u64,
    step: u64,
    mut entry: impl FnMut(u64) -> (PageTableEntry, u64),
) {
    let mut places = entries.iter_mut();
    let mut page = first;

    while places.len() != 0 {
        let (mut next, pages) = entry(page);
        // CAST: 64 bits fit a usize.
        let count = pages.div_ceil(step).clamp(1, places.len() as u64);

        for place in places.by_ref().take(count as usize) {
            *place = next;
            next = next.further(step.saturating_mul(PAGE));
        }
        page = page.saturating_add(count.saturating_mul(step));
    }
}

/// What an engine comes to on its way to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// An entry that leads to a table, or would.
    Above {
        /// Of the table that has the entry.
        level: u32,
        /// Which entry it is.
        index: u32,
        /// What it says.
        entry: PageTableEntry,
    },
    /// A table of level 0. What its entry says its owner knows.
    Leaf {
        /// Which entry it is.
        index: u32,
        /// What each entry stands for.
        page_size: PageSize,
    },
}

/// A root goes when so many times fewer entries would do.
const SHRINKS: u32 = 4;

/// Why a table is cleared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clear {
    /// Nothing was written to it yet.
    New,
    /// It is about to go, and nothing leads to it.
    Goes,
    /// Another one takes its place.
    Moves,
}

/// Which tables there are. All methods get the same [`Tables`].
pub struct TableTree {
    levels: Levels,
    rules: Rules,
    /// How long the table of the highest level is (MEM-59).
    root_entries: u32,
    /// The root is initialised.
    has_root: bool,
    /// Contexts are suspended until the change is finished.
    is_idle: bool,
    /// Something was written.
    is_changed: bool,
    /// Something that may have been valid is not there any more.
    is_stale: bool,
    /// A table was taken out, or is one of other pages now.
    has_dead: bool,
}

impl TableTree {
    /// A root in which nothing is.
    pub fn new<T: Tables>(levels: Levels, rules: Rules, tables: &mut T) -> Result<Self, T::Error> {
        let mut tree = Self {
            levels,
            rules,
            root_entries: levels.entries(levels.root()),
            has_root: false,
            is_idle: false,
            is_changed: false,
            is_stale: false,
            has_dead: false,
        };
        let root = tree.root();

        if levels.has_resizable_root() {
            tree.root_entries = tree.most_entries(tables.root_entries(1)?);
        }
        tables.make(root)?;
        Ok(tree)
    }

    /// The root is about to be used: it is full of invalid entries from now on.
    pub fn begin_root(&mut self, tables: &mut impl Tables) {
        if !core::mem::replace(&mut self.has_root, true) {
            self.initialise(tables, self.root());
        }
    }

    /// Makes all tables that these pages need at once (MEM-73): all of them are there before the
    /// first is initialised, and all of them are before anything leads to them. There is none of
    /// them yet. They are for nothing, until these pages get a meaning.
    pub fn prepare<T: Tables>(
        &mut self,
        tables: &mut T,
        first: u64,
        end: u64,
    ) -> Result<(), T::Error> {
        let root = self.root();
        let last = end.saturating_sub(1);
        let keys = |tree: &Self, level| {
            let (from, to) = (tree.table(level, first), tree.table(level, last));

            (from.number..=to.number).map(move |number| Key { level, number })
        };
        let least = self.levels.index(root.level, last).saturating_add(1);

        if least > self.root_entries {
            self.root_entries = self.most_entries(tables.root_entries(least)?).max(least);
        }
        for level in (0..root.level).rev() {
            for key in keys(self, level) {
                tables.go_on()?;
                tables.make(key)?;
            }
        }
        for level in (0..=root.level).rev() {
            for key in keys(self, level) {
                tables.commit(key);
            }
        }
        for level in (0..=root.level).rev() {
            for key in keys(self, level) {
                self.clear(tables, key, self.entries(tables, key), Clear::New);
            }
        }
        self.has_root = true;
        for level in 0..root.level {
            for key in keys(self, level) {
                self.lead_to(tables, key, tables.entry_to(key));
            }
        }
        Ok(())
    }

    /// Names the table of the highest level.
    pub fn root(&self) -> Key {
        Key {
            level: self.levels.root(),
            number: 0,
        }
    }

    /// How addresses are divided.
    pub fn levels(&self) -> Levels {
        self.levels
    }

    /// How many entries it has.
    pub fn root_entries(&self) -> u32 {
        self.root_entries
    }

    /// As many entries of a root as a KMD says, if there are so many.
    fn most_entries(&self, entries: u32) -> u32 {
        entries.clamp(1, self.levels.entries(self.levels.root()))
    }

    fn entries(&self, tables: &impl Tables, key: Key) -> u32 {
        match key.level {
            0 => self.levels.leaf_entries(tables.page_size(key)),
            _ if key == self.root() => self.root_entries,
            _ => self.levels.entries(key.level),
        }
    }

    /// The table of this level that has `page`.
    fn table(&self, level: u32, page: u64) -> Key {
        Key {
            level,
            number: self.levels.table(level, page),
        }
    }

    /// The first page of a table, and the one after the last.
    fn pages_of(&self, key: Key) -> (u64, u64) {
        let pages = self.levels.pages_of_table(key.level);
        let first = key.number.saturating_mul(pages);

        (first, first.saturating_add(pages))
    }

    /// From here on until the change is finished no context runs.
    fn suspend(&mut self, tables: &mut impl Tables) {
        if !self.is_idle {
            tables.suspend();
            self.is_idle = true;
        }
    }

    /// Entries are about to be written.
    fn begin(&mut self, tables: &mut impl Tables) {
        self.is_changed = true;
        if self.rules.is_idle {
            self.suspend(tables);
        }
    }

    /// Makes all entries of a table invalid.
    fn clear(&mut self, tables: &mut impl Tables, key: Key, entries: u32, why: Clear) {
        let update = Update {
            page_size: tables.page_size(key),
            start: 0,
            entries: Entries::Repeat(PageTableEntry::Invalid, entries),
            address: self.pages_of(key).0.saturating_mul(PAGE),
            initial: why == Clear::New,
            evicted: why == Clear::Moves,
            driver_protection: 0,
            shows: Shows::default(),
        };

        self.begin(tables);
        tables.update(key, &update);
    }

    /// The table is new.
    fn initialise(&mut self, tables: &mut impl Tables, key: Key) {
        tables.commit(key);
        self.clear(tables, key, self.entries(tables, key), Clear::New);
    }

    /// Writes the entry of the table above that leads to `key`.
    fn write_above(&mut self, tables: &mut impl Tables, key: Key, entry: PageTableEntry) {
        let page = self.pages_of(key).0;
        let level = key.level.saturating_add(1);
        let update = Update {
            page_size: PageSize::Kib4,
            start: self.levels.index(level, page),
            entries: Entries::Repeat(self.completed(entry), 1),
            address: page.saturating_mul(PAGE),
            initial: false,
            evicted: false,
            driver_protection: 0,
            shows: Shows::default(),
        };

        self.begin(tables);
        tables.update(self.table(level, page), &update);
    }

    /// Writes the entry of the table above that leads to `key`, or none if that is about to go.
    fn lead_to(&mut self, tables: &mut impl Tables, key: Key, entry: PageTableEntry) {
        let page = self.pages_of(key).0;
        let above = self.table(key.level.saturating_add(1), page);
        let used = tables.used(above).unwrap_or(0);
        let is_there = entry != PageTableEntry::Invalid;

        self.is_stale |= !is_there;
        self.write_above(tables, key, entry);
        tables.set_used(
            above,
            match is_there {
                true => used.saturating_add(1),
                false => used.saturating_sub(1),
            },
        );
    }

    /// Makes the tables above `page` that are missing, that of level 0 with pages of this size.
    /// Those that were made for nothing are taken out by [`TableTree::sweep`].
    fn make_above<T: Tables>(
        &mut self,
        tables: &mut T,
        page: u64,
        size: PageSize,
    ) -> Result<(), T::Error> {
        let root = self.levels.root();
        let index = self.levels.index(root, page);

        self.begin_root(tables);
        if index >= self.root_entries {
            self.resize_root(tables, index.saturating_add(1))?;
        }
        for level in (0..root).rev() {
            let key = self.table(level, page);

            if tables.used(key).is_none() {
                tables.make(key)?;
                if level == 0 && self.levels.has_64kb_pages() {
                    tables.set_page_size(key, size);
                }
                self.initialise(tables, key);
                self.lead_to(tables, key, tables.entry_to(key));
            }
        }
        Ok(())
    }

    /// Makes a root with so many entries at least, which leads to what the old one led to, and
    /// takes that out. There are two levels.
    fn resize_root<T: Tables>(&mut self, tables: &mut T, least: u32) -> Result<(), T::Error> {
        let entries = self.most_entries(tables.root_entries(least)?).max(least);
        let old = self.root();
        // No table has this number: the root is one.
        let new = Key { number: 1, ..old };

        // MEM-76.
        self.suspend(tables);
        tables.make(new)?;
        tables.commit(new);
        self.clear(tables, new, entries, Clear::New);

        let mut at = Key {
            level: 0,
            number: 0,
        };

        while let Some(leaf) = tables.next(at).filter(|leaf| leaf.level == 0) {
            let page = self.pages_of(leaf).0;
            let update = Update {
                page_size: PageSize::Kib4,
                start: self.levels.index(old.level, page),
                entries: Entries::Repeat(self.completed(tables.entry_to(leaf)), 1),
                address: page.saturating_mul(PAGE),
                initial: false,
                evicted: false,
                driver_protection: 0,
                shows: Shows::default(),
            };

            tables.update(new, &update);
            at.number = leaf.number.saturating_add(1);
        }

        let used = tables.used(old).unwrap_or(0);

        tables.set_used(new, used);
        // MEM-55, MEM-59.
        self.clear(tables, old, self.root_entries, Clear::Moves);
        tables.move_root(new, old, entries);
        self.root_entries = entries;
        self.is_stale = true;
        self.has_dead = true;
        Ok(())
    }

    /// Makes the root smaller if it is far too large. It stays if there is no memory for another.
    fn shrink_root(&mut self, tables: &mut impl Tables) {
        if !self.levels.has_resizable_root() {
            return;
        }

        let root = self.levels.root();
        let page = |number| self.pages_of(Key { level: 0, number }).0;
        let least = tables.last_leaf().map_or(1, |last| {
            self.levels.index(root, page(last)).saturating_add(1)
        });

        // What goes to and fro is not worth it.
        if least <= self.root_entries / SHRINKS {
            if let Ok(entries) = tables.root_entries(least) {
                if self.most_entries(entries) <= self.root_entries / 2 {
                    let _resized = self.resize_root(tables, least);
                }
            }
        }
    }

    /// These pages get a meaning: makes the tables for them, those of level 0 with pages of this
    /// size if the KMD has them. All or nothing.
    pub fn claim<T: Tables>(
        &mut self,
        tables: &mut T,
        first: u64,
        end: u64,
        size: PageSize,
    ) -> Result<(), T::Error> {
        for (at, pages) in self.levels.leaves(first, end) {
            let made = match tables.go_on() {
                Ok(()) => self.make_above(tables, at, size),
                error => error,
            };

            if let Err(error) = made {
                self.unclaim(tables, first, at);
                self.sweep(tables, first, at);
                self.sweep(tables, at, at.saturating_add(1));
                return Err(error);
            }
            self.count(tables, at, |used| used.saturating_add(pages));
        }
        Ok(())
    }

    /// The same for pages whose tables are there because they have a meaning already: this takes no
    /// memory.
    pub fn claim_again(&mut self, tables: &mut impl Tables, first: u64, end: u64) {
        for (at, pages) in self.levels.leaves(first, end) {
            self.count(tables, at, |used| used.saturating_add(pages));
        }
    }

    /// These pages have a meaning less. [`TableTree::sweep`] takes out the tables that are for
    /// nothing then.
    pub fn unclaim(&mut self, tables: &mut impl Tables, first: u64, end: u64) {
        for (at, pages) in self.levels.leaves(first, end) {
            self.count(tables, at, |used| used.saturating_sub(pages));
        }
    }

    /// Changes how much of the table of level 0 with `page` is used, if there is one.
    fn count(&self, tables: &mut impl Tables, page: u64, change: impl Fn(u64) -> u64) {
        let leaf = self.table(0, page);

        if let Some(used) = tables.used(leaf) {
            tables.set_used(leaf, change(used));
        }
    }

    /// The first table of level 0 in these pages that is there.
    fn next_leaf(&self, tables: &impl Tables, first: u64, end: u64) -> Option<Key> {
        let last = self.table(0, end.checked_sub(1)?);

        tables
            .next(self.table(0, first))
            .filter(|leaf| *leaf <= last)
    }

    /// Takes out the tables above these pages that are for nothing, with those above that are for
    /// nothing then.
    pub fn sweep(&mut self, tables: &mut impl Tables, first: u64, end: u64) {
        let mut at = first;

        while let Some(leaf) = self.next_leaf(tables, at, end) {
            self.take_out(tables, leaf);
            at = self.pages_of(leaf).1;
        }
        // Where making them failed half way, there may be none of level 0.
        for level in 1..self.levels.root() {
            self.take_out(tables, self.table(level, first));
        }
        self.shrink_root(tables);
    }

    /// Takes a table out if it is for nothing, and those above that are for nothing then.
    fn take_out(&mut self, tables: &mut impl Tables, key: Key) {
        let mut key = key;

        while key.level < self.levels.root() && tables.used(key) == Some(0) {
            self.lead_to(tables, key, PageTableEntry::Invalid);
            if self.rules.explicit_invalidation {
                self.clear(tables, key, self.entries(tables, key), Clear::Goes);
            }
            tables.take_out(key);
            self.has_dead = true;
            key = self.table(key.level.saturating_add(1), self.pages_of(key).0);
        }
    }

    /// The pages of the first table with pages of 64 KiB that is there for some of these pages.
    pub fn next_64kb(&self, tables: &impl Tables, first: u64, end: u64) -> Option<(u64, u64)> {
        let mut at = first;

        if !self.levels.has_64kb_pages() {
            return None;
        }
        while let Some(leaf) = self.next_leaf(tables, at, end) {
            let pages = self.pages_of(leaf);

            if tables.page_size(leaf) == PageSize::Kib64 {
                return Some(pages);
            }
            at = pages.1;
        }
        None
    }

    /// The table of level 0 with `page` has pages of 4 KiB from here on (MEM-57). No context runs
    /// until the change is finished. The caller writes the entries of all its pages, and then calls
    /// [`TableTree::end_split`].
    pub fn split(&mut self, tables: &mut impl Tables, page: u64) {
        self.suspend(tables);
        self.is_stale = true;
        self.has_dead = true;
        tables.set_page_size(self.table(0, page), PageSize::Kib4);
    }

    /// What leads to the table that was split says so.
    pub fn end_split(&mut self, tables: &mut impl Tables, page: u64) {
        let leaf = self.table(0, page);

        self.write_above(tables, leaf, tables.entry_to(leaf));
    }

    /// Writes the entries of these pages, where there are tables for them. Where those have pages
    /// of 64 KiB, these pages are whole ones, and all of each shows what its first one shows.
    pub fn write(&mut self, tables: &mut impl Tables, pages: &Pages, mut content: Content<'_>) {
        let mut at = pages.first;

        while let Some(leaf) = self.next_leaf(tables, at, pages.end) {
            let (first, end) = self.pages_of(leaf);
            let mut page = at.max(first);
            let stop = pages.end.min(end);
            let size = tables.page_size(leaf);
            let step = size.pages();

            self.begin(tables);
            self.is_stale |= pages.were_valid;
            while page < stop {
                // CAST: at most as many as a table has.
                let left = (stop - page).div_ceil(step) as u32;
                let mut each = [PageTableEntry::Invalid; MAX_ENTRIES];
                let entries = match &mut content {
                    Content::All(entry) => Entries::Repeat(self.completed(*entry), left),
                    Content::Each(entry) => entries_of(&mut each, (page, left), size, |page| {
                        let (entry, pages) = entry(page);

                        (self.completed(entry), pages)
                    }),
                };
                let update = Update {
                    page_size: size,
                    start: self.levels.leaf_index(size, page),
                    entries,
                    address: page.saturating_mul(PAGE),
                    initial: false,
                    evicted: pages.evicted,
                    driver_protection: pages.driver_protection,
                    shows: pages.shows.further(page.saturating_sub(pages.first)),
                };

                tables.update(leaf, &update);
                // CAST: a usize fits 64 bits.
                let count = update.entries.count() as u64;

                page = page.saturating_add(count.saturating_mul(step));
            }
            at = end;
        }
    }

    /// The way of an engine to a page, from the root down to where it ends; nothing if the root has
    /// no entry for it.
    pub fn walk(&self, tables: &impl Tables, page: u64, mut visit: impl FnMut(Visit)) {
        let root = self.levels.root();

        if page >= self.levels.pages() || self.levels.index(root, page) >= self.root_entries {
            return;
        }
        for level in (1..=root).rev() {
            let below = self.table(level.saturating_sub(1), page);
            let entry = match tables.used(below) {
                Some(_) => self.completed(tables.entry_to(below)),
                None => PageTableEntry::Invalid,
            };

            visit(Visit::Above {
                level,
                index: self.levels.index(level, page),
                entry,
            });
            if entry == PageTableEntry::Invalid {
                return;
            }
        }

        let page_size = tables.page_size(self.table(0, page));

        visit(Visit::Leaf {
            index: self.levels.leaf_index(page_size, page),
            page_size,
        });
    }

    /// An entry, with what only the adapter decides.
    fn completed(&self, entry: PageTableEntry) -> PageTableEntry {
        match entry {
            PageTableEntry::Page(page) => PageTableEntry::Page(PageEntry {
                cache_coherent: self.rules.cache_coherent && page.segment == SYSTEM_MEMORY,
                ..page
            }),
            other => other,
        }
    }

    /// The end of a change of these pages. On return no engine uses what the tables do not have any
    /// more, what was taken out is freed, and contexts go on.
    pub fn finish(&mut self, tables: &mut impl Tables, first: u64, end: u64) {
        if self.is_changed && (self.is_stale || !self.rules.invalid_not_cached) {
            // Such a table stands for more than these pages.
            match self.has_dead {
                true => tables.flush(0, 0),
                false => tables.flush(first.saturating_mul(PAGE), end.saturating_mul(PAGE)),
            }
        }
        if self.is_idle {
            tables.resume();
        }
        self.is_idle = false;
        self.is_changed = false;
        self.is_stale = false;
        self.has_dead = false;
    }

    /// The end of the address space: its tables are about to go, and no context is there.
    pub fn end(&mut self, tables: &mut impl Tables) {
        let mut at = Key {
            level: 0,
            number: 0,
        };

        if !self.rules.explicit_invalidation {
            return;
        }
        while let Some(key) = tables.next(at) {
            self.clear(tables, key, self.entries(tables, key), Clear::Goes);
            at = Key {
                number: key.number.saturating_add(1),
                ..key
            };
        }
        self.is_stale = true;
        self.has_dead = true;
        self.finish(tables, 0, 0);
    }
}
