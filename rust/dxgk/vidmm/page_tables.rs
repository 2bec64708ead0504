// SPDX-License-Identifier: GPL-2.0

//! The page tables of one address space (MEM-51 to MEM-58).
//!
//! A table is a page of words. The KMD writes its entries: by the processor (CPU_VIRTUAL), or by
//! the paging node of the adapter, when what is to be written was collected (GPU_VIRTUAL). They are
//! there when a change is finished. Which tables there are is for `logic::table_tree` to say; here
//! is what they are made of. A table is charged to the memory cgroup of the task that makes it, and
//! to the user as a page that stays in memory (MEM-50).
//!
//! A table that is taken out is freed behind the next flush: an engine may look at it until then.

use super::{
    contexts::{
        Contexts,
        Why, //
    },
    paging_log::LogAbout,
    table_changes::{
        self,
        TableAt,
        TableChanges,
        TableWriter,
        UPDATES, //
    },
    table_page::{
        TablePage,
        TableSites, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        object,
        paging::{
            PageEntry,
            PageSize,
            PageTableEntry,
            RootPageTable,
            TableAddress, //
        },
        segments::SYSTEM_MEMORY, //
    },
    dxgk::quota::holder::Holder,
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::PAGE,
        page_levels::Levels,
        paging_log::{
            Action,
            Kind,
            Operation, //
        },
        table_tree::{
            Content,
            Key,
            Pages,
            Rules,
            Shows,
            TableTree,
            Tables,
            Update,
            Visit, //
        }, //
    },
    platform::load_acquire,
    sys::{
        alloc::tree_node,
        mem::shmem::Payer,
        task::sleep,
        work, //
    }, //
};
use core::cell::Cell;
use kernel::{
    fmt,
    prelude::*,
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
    page: TablePage,
    used: u64,
    /// Of its entries, if it is one of level 0.
    page_size: PageSize,
    /// The next one of those that are out of use.
    next: Option<KBox<Table>>,
    _paid: Paid,
}

/// The tables of an address space, and who has to know of them.
struct Store {
    kmd: Arc<object::Process>,
    /// What writes them; `None`: the processor.
    node: Option<Arc<dyn TableWriter>>,
    /// What it is to write.
    changes: TableChanges,
    /// Where they are to be.
    sites: TableSites,
    root: Key,
    holder: Arc<Holder>,
    /// `None` only while the first table is made.
    contexts: Option<Arc<Contexts>>,
    tables: RBTree<Key, KBox<Table>>,
    /// How many those are.
    count: usize,
    /// Out of use, until the next flush.
    dead: Option<KBox<Table>>,
    log: LogAbout,
    /// The number of the change that is being made; 0 between two of them.
    batch: Cell<u64>,
}

/// The page tables of one address space. The owner has a lock around it, so that nobody else
/// changes them.
pub(super) struct PageTables {
    tree: TableTree,
    store: Store,
}

impl Store {
    /// Writes a record of the change that is being made.
    fn write(&self, action: impl FnOnce() -> Action) {
        self.log.write(|| {
            if self.batch.get() == 0 {
                self.batch.set(self.log.log.batch());
            }
            Action {
                batch: self.batch.get(),
                ..action()
            }
        });
    }

    /// Where a table is, if it is there.
    fn table_at(&self, key: Key) -> Option<TableAt> {
        let (segment, offset) = self.tables.get(&key)?.page.place();

        Some(TableAt {
            key,
            segment,
            offset,
        })
    }

    fn update_by_processor(&self, key: Key, update: &Update<'_>) {
        let Some(table) = self.tables.get(&key) else {
            return;
        };
        let class = Passive::here();
        let words = TableAddress::CpuVirtual(table.page.words());

        self.write(|| table_changes::recorded(key.level, update));
        self.kmd
            .update_page_table(&class, &update.of_table(key, words));
        work::breathe();
    }

    fn flush_by_processor(&self, first: u64, last: u64) {
        self.write(|| Action {
            operation: Operation::FlushTlb,
            address: first,
            size: last.saturating_sub(first),
            ..Action::default()
        });
        self.kmd.flush_tlb(&Passive::here(), first, last);
    }

    /// The tables that are to be written, the root first; how many.
    fn changed(&self, tables: &mut [TableAt; UPDATES + 1]) -> usize {
        let keys = self.changes.iter().map(|(key, _)| key);
        let mut count = 0;

        for key in Iterator::chain(core::iter::once(self.root), keys) {
            let is_known = tables.iter().take(count).any(|one| one.key == key);

            if is_known {
                continue;
            }
            if let Some((place, table)) = tables.get_mut(count).zip(self.table_at(key)) {
                *place = table;
                count += 1;
            }
        }
        count
    }

    /// The paging node writes what is kept, and flushes these addresses; the processor does so if
    /// it cannot.
    fn carry_out(&mut self, flush: Option<(u64, u64)>) {
        let Some(node) = self.node.clone() else {
            return;
        };

        if self.changes.is_empty() && flush.is_none() {
            return;
        }
        if self.batch.get() == 0 {
            self.batch.set(self.log.log.batch());
        }

        let mut tables = [TableAt {
            key: self.root,
            segment: SYSTEM_MEMORY,
            offset: 0,
        }; UPDATES + 1];
        let count = self.changed(&mut tables);
        let numbers = (self.log.process_id(), self.batch.get());
        let tables = tables.get(..count).unwrap_or_default();

        if !node.change_tables(&self.kmd, numbers, tables, &self.changes, flush) {
            for (key, update) in self.changes.iter() {
                self.update_by_processor(key, &update);
            }
            if let Some((first, last)) = flush {
                self.flush_by_processor(first, last);
            }
        }
        self.changes.clear();
        work::breathe();
    }

    /// Frees what is out of use.
    fn bury(&mut self) {
        let mut dead = self.dead.take();

        // One after the other, so that a long list is not dropped by a deep recursion.
        while let Some(mut table) = dead {
            dead = table.next.take();

            let (segment, offset) = table.page.place();

            self.write(|| Action {
                kind: Kind::PtFree,
                segment,
                offset,
                ..Action::default()
            });
        }
    }

    fn root_at(&self, key: Key, entries: u32) -> RootPageTable {
        let root = self.tables.get(&key).map(|root| root.page.place());
        let (segment, address) = root.unwrap_or((SYSTEM_MEMORY, 0));

        RootPageTable {
            segment,
            address,
            entries,
        }
    }
}

impl Tables for Store {
    type Error = DxgError;

    fn used(&self, key: Key) -> Option<u64> {
        self.tables.get(&key).map(|table| table.used)
    }

    fn set_used(&mut self, key: Key, used: u64) {
        if let Some(table) = self.tables.get_mut(&key) {
            table.used = used;
        }
    }

    fn page_size(&self, key: Key) -> PageSize {
        self.tables
            .get(&key)
            .map_or(PageSize::Kib4, |table| table.page_size)
    }

    fn set_page_size(&mut self, key: Key, size: PageSize) {
        if let Some(table) = self.tables.get_mut(&key) {
            table.page_size = size;
        }
    }

    fn next(&self, key: Key) -> Option<Key> {
        let next = self.tables.cursor_lower_bound(&key)?;

        Some(*next.current().0)
    }

    fn last_leaf(&self) -> Option<u64> {
        let above = Key {
            level: 1,
            number: 0,
        };
        let last = match self.tables.cursor_lower_bound(&above) {
            Some(next) => *next.peek_prev()?.0,
            None => *self.tables.cursor_back()?.current().0,
        };

        Some(last.number)
    }

    fn make(&mut self, key: Key) -> DxgResult {
        let paid = Paid::new(&self.holder)?;
        let table = Table {
            page: self.sites.take(key.level)?,
            used: 0,
            page_size: PageSize::Kib4,
            next: None,
            _paid: paid,
        };
        let (segment, offset) = table.page.place();
        let node = tree_node(key, KBox::new(table, GFP_KERNEL_ACCOUNT)?)?;

        // There is no such table.
        let _nothing = self.tables.insert(node);

        self.count += 1;
        self.write(|| Action {
            kind: Kind::PtCreate,
            level: key.level,
            start: key.number,
            segment,
            offset,
            ..Action::default()
        });
        Ok(())
    }

    fn commit(&mut self, key: Key) {
        if let Some(table) = self.table_at(key) {
            self.write(|| Action {
                kind: Kind::Commit,
                level: key.level,
                start: key.number,
                count: 1,
                segment: table.segment,
                offset: table.offset,
                ..Action::default()
            });
        }
    }

    fn take_out(&mut self, key: Key) {
        if let Some(node) = self.tables.remove_node(&key) {
            let (_, mut table) = node.to_key_value();

            table.next = self.dead.take();
            self.dead = Some(table);
            self.count -= 1;
        }
    }

    fn entry_to(&self, key: Key) -> PageTableEntry {
        self.tables
            .get(&key)
            .map_or(PageTableEntry::Invalid, |table| {
                let (segment, address) = table.page.place();

                PageTableEntry::Page(PageEntry {
                    segment,
                    address,
                    page_size: table.page_size,
                    read_only: false,
                    no_execute: false,
                    system_use_only: false,
                    cache_coherent: false,
                })
            })
    }

    fn update(&mut self, key: Key, update: &Update<'_>) {
        if self.node.is_none() {
            return self.update_by_processor(key, update);
        }
        if self.changes.make_room().is_err() || self.changes.keep(key, update) {
            // What was kept comes first.
            if self.changes.is_empty() {
                self.update_by_processor(key, update);
            }
            return;
        }
        self.carry_out(None);
        if !self.changes.keep(key, update) {
            self.update_by_processor(key, update);
        }
    }

    fn root_entries(&self, least: u32) -> DxgResult<u32> {
        let (entries, bytes) = self.kmd.root_page_table_size(&Passive::here(), least)?;

        // No table is larger than a page.
        if u64::from(bytes) > PAGE {
            return Err(Status::NO_MEMORY.into());
        }
        Ok(entries)
    }

    fn move_root(&mut self, from: Key, to: Key, entries: u32) {
        // Nobody may look at the new root before it is written.
        self.carry_out(None);

        let Some(node) = self.tables.remove_node(&from) else {
            return;
        };
        let (_, table) = node.to_key_value();

        if let Some(place) = self.tables.get_mut(&to) {
            let mut old = core::mem::replace(place, table);

            old.next = self.dead.take();
            self.dead = Some(old);
        }
        self.count -= 1;
        if let Some(contexts) = &self.contexts {
            contexts.move_root(self.root_at(to, entries));
        }
    }

    fn suspend(&mut self) {
        if let Some(contexts) = &self.contexts {
            contexts.suspend(Why::PageTables);
        }
    }

    fn resume(&mut self) {
        self.carry_out(None);
        if let Some(contexts) = &self.contexts {
            contexts.resume(Why::PageTables);
        }
    }

    fn flush(&mut self, first: u64, last: u64) {
        match self.node {
            Some(_) => self.carry_out(Some((first, last))),
            None => self.flush_by_processor(first, last),
        }
        self.bury();
    }

    fn go_on(&self) -> DxgResult {
        if sleep::is_killed() {
            return Err(Status::NO_MEMORY.into());
        }
        work::breathe();
        Ok(())
    }
}

impl PageTables {
    /// A root in which nothing is, and the contexts that will use it: none yet.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn new(
        levels: Levels,
        rules: Rules,
        kmd: Arc<object::Process>,
        node: Option<Arc<dyn TableWriter>>,
        sites: TableSites,
        (holder, log): (Arc<Holder>, LogAbout),
    ) -> DxgResult<(Self, Arc<Contexts>)> {
        let mut store = Store {
            kmd,
            node,
            changes: TableChanges::default(),
            sites,
            root: Key {
                level: levels.root(),
                number: 0,
            },
            holder,
            contexts: None,
            tables: RBTree::new(),
            count: 0,
            dead: None,
            log,
            batch: Cell::new(0),
        };
        let tree = TableTree::new(levels, rules, &mut store)?;
        let root = store.root_at(tree.root(), tree.root_entries());
        let contexts = Contexts::new(&store.kmd, root, &store.log)?;

        store.contexts = Some(contexts.clone());
        Ok((Self { tree, store }, contexts))
    }

    /// Prints them, see [`AddressSpace::show_tables`].
    ///
    /// [`AddressSpace::show_tables`]: super::address_space::AddressSpace::show_tables
    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "root entries={}", self.tree.root_entries())?;
        for (key, table) in self.store.tables.iter() {
            let at = self.store.table_at(*key);
            let (segment, offset) = at.map_or((0, 0), |at| (at.segment, at.offset));

            writeln!(
                f,
                "table level={} number={} segment={segment} offset={offset:#x}",
                key.level, key.number
            )?;
            for (index, word) in table.page.words().iter().enumerate() {
                match load_acquire(word) {
                    0 => {}
                    word => writeln!(f, "{index} {word:#x}")?,
                }
            }
            work::breathe();
        }
        Ok(())
    }

    /// How addresses are divided.
    pub(super) fn levels(&self) -> Levels {
        self.tree.levels()
    }

    /// How many tables there are.
    pub(super) fn count(&self) -> usize {
        self.store.count
    }

    /// As [`TableTree::begin_root`]: the end of a change.
    ///
    /// Context: may sleep, the lock of the address space.
    pub(super) fn begin_root(&mut self) {
        self.tree.begin_root(&mut self.store);
        self.finish(0, 0);
    }

    /// As [`TableTree::prepare`].
    ///
    /// Context: the same.
    pub(super) fn prepare(&mut self, first: u64, end: u64) -> DxgResult {
        self.tree.prepare(&mut self.store, first, end)?;
        // It may have more entries now.
        if let Some(contexts) = &self.store.contexts {
            contexts.move_root(
                self.store
                    .root_at(self.tree.root(), self.tree.root_entries()),
            );
        }
        Ok(())
    }

    /// As [`TableTree::claim`].
    ///
    /// Context: a system call, the lock of the address space; so are all of these.
    pub(super) fn claim(&mut self, first: u64, end: u64, size: PageSize) -> DxgResult {
        self.tree.claim(&mut self.store, first, end, size)
    }

    /// As [`TableTree::claim_again`].
    pub(super) fn claim_again(&mut self, first: u64, end: u64) {
        self.tree.claim_again(&mut self.store, first, end);
    }

    /// As [`TableTree::unclaim`].
    pub(super) fn unclaim(&mut self, first: u64, end: u64) {
        self.tree.unclaim(&mut self.store, first, end);
    }

    /// As [`TableTree::sweep`].
    pub(super) fn sweep(&mut self, first: u64, end: u64) {
        self.tree.sweep(&mut self.store, first, end);
    }

    /// As [`TableTree::next_64kb`].
    pub(super) fn next_64kb(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        self.tree.next_64kb(&self.store, first, end)
    }

    /// As [`TableTree::split`].
    pub(super) fn split(&mut self, page: u64) {
        self.tree.split(&mut self.store, page);
    }

    /// As [`TableTree::end_split`].
    pub(super) fn end_split(&mut self, page: u64) {
        self.tree.end_split(&mut self.store, page);
    }

    /// As [`TableTree::write`].
    pub(super) fn write(&mut self, pages: &Pages, content: Content<'_>) {
        self.tree.write(&mut self.store, pages, content);
    }

    /// The same for one page of the OS part.
    pub(super) fn write_one(&mut self, number: u64, entry: PageTableEntry, was_valid: bool) {
        let page = Pages {
            first: number,
            end: number.saturating_add(1),
            were_valid: was_valid,
            evicted: false,
            driver_protection: 0,
            shows: Shows::default(),
        };

        self.write(&page, Content::All(entry));
    }

    /// The change that begins belongs to this batch.
    pub(super) fn begin(&mut self, batch: u64) {
        self.store.batch.set(batch);
    }

    /// As [`TableTree::walk`].
    pub(super) fn walk(&self, page: u64, visit: impl FnMut(Visit)) {
        self.tree.walk(&self.store, page, visit);
    }

    /// As [`TableTree::finish`]: the end of every change.
    pub(super) fn finish(&mut self, first: u64, end: u64) {
        self.tree.finish(&mut self.store, first, end);
        self.store.carry_out(None);
        self.store.batch.set(0);
    }

    /// Where the table of level 0 with this number is, if it is there.
    pub(super) fn leaf(&self, number: u64) -> Option<TableAt> {
        self.store.table_at(Key { level: 0, number })
    }
}

impl Drop for PageTables {
    /// No context is left.
    fn drop(&mut self) {
        self.tree.end(&mut self.store);
        self.store.bury();
    }
}
