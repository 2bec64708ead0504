// SPDX-License-Identifier: MIT OR Apache-2.0

//! Page tables, with a double below them whose engines go through what it has written (MEM-52 to
//! MEM-59).

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::{
    ddi::{
        caps::{AdapterQuery, DriverCaps, Luid, StartInfo},
        class::{DeviceInterrupt, Passive},
        object::{Context, Device, Process, Suspension, Suspensions},
        paging::{
            is_removed, Entries, PageEntry, PageSize, PageTableEntry, RootPageTable, TableAddress,
            MAX_ENTRIES,
        },
        port::Port,
        queue::{Fault, QueueCallbacks},
        reserve::NoAddresses,
        segments::SYSTEM_MEMORY,
        types::{ContextId, CreateContextArgs, DeviceId, ProcessId, Scheduling},
    },
    kmd::fake::{
        journal::{Broken, Entry, Journal},
        mmu::{Found, Mmu, Tables as Format, Wishes},
        operations::{Operations, What},
        queues::Queues,
        Behaviour, FakeKmd,
    },
    logic::{
        gpu_ranges::PAGE,
        page_levels::Levels,
        table_tree::{
            entries_of, set_entries, Content, Key, Pages, Rules, Shows, TableTree, Tables, Update,
            Visit,
        },
    },
    physical::Frame,
    platform::Shared,
};

mod pages_64kb;

/// Callbacks of a context that only tell of the end of its suspensions.
struct Ear(Shared<Suspension>);

impl QueueCallbacks for Ear {
    fn completed(&self, _: &DeviceInterrupt, _: u64) {}

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

    fn faulted(&self, _: &DeviceInterrupt, _: &Fault) {}

    fn invalidated(&self) {}

    fn suspended(&self, _: &DeviceInterrupt, id: u64) {
        self.0.ended(id);
    }
}

/// There is no memory.
#[derive(Debug, PartialEq, Eq)]
struct NoMemory;

/// The tables of a process, and its contexts.
struct Memory {
    tables: BTreeMap<Key, (Frame, u64)>,
    /// The tables of level 0 that have pages of 64 KiB.
    large: BTreeSet<Key>,
    dead: Vec<Frame>,
    /// How many more can be made.
    left: usize,
    process: Shared<Process>,
    suspensions: Shared<Suspensions>,
    contexts: Vec<(Shared<Context>, Shared<Suspension>)>,
    id: u32,
}

impl Tables for Memory {
    type Error = NoMemory;

    fn used(&self, key: Key) -> Option<u64> {
        self.tables.get(&key).map(|table| table.1)
    }

    fn set_used(&mut self, key: Key, used: u64) {
        self.tables.get_mut(&key).expect("there is a table").1 = used;
    }

    fn page_size(&self, key: Key) -> PageSize {
        match self.large.contains(&key) {
            true => PageSize::Kib64,
            false => PageSize::Kib4,
        }
    }

    fn set_page_size(&mut self, key: Key, size: PageSize) {
        assert!(key.level == 0 && self.tables.contains_key(&key));
        match size {
            PageSize::Kib64 => self.large.insert(key),
            PageSize::Kib4 => self.large.remove(&key),
        };
    }

    fn next(&self, key: Key) -> Option<Key> {
        self.tables.range(key..).next().map(|(key, _)| *key)
    }

    fn last_leaf(&self) -> Option<u64> {
        let (key, _) = self
            .tables
            .range(
                ..Key {
                    level: 1,
                    number: 0,
                },
            )
            .last()?;

        Some(key.number)
    }

    fn make(&mut self, key: Key) -> Result<(), NoMemory> {
        self.left = self.left.checked_sub(1).ok_or(NoMemory)?;
        assert!(self.tables.insert(key, (Frame::new(), 0)).is_none());
        Ok(())
    }

    fn commit(&mut self, key: Key) {
        assert!(self.tables.contains_key(&key));
    }

    fn take_out(&mut self, key: Key) {
        self.large.remove(&key);
        self.dead
            .push(self.tables.remove(&key).expect("it is there").0);
    }

    fn entry_to(&self, key: Key) -> PageTableEntry {
        PageTableEntry::Page(PageEntry {
            page_size: self.page_size(key),
            ..page(self.tables[&key].0.address(), true)
        })
    }

    fn update(&mut self, key: Key, update: &Update<'_>) {
        self.process.update_page_table(
            &Passive::here(),
            &update.of_table(key, TableAddress::CpuVirtual(self.tables[&key].0.words())),
        );
    }

    fn root_entries(&self, least: u32) -> Result<u32, NoMemory> {
        let (entries, bytes) = self
            .process
            .root_page_table_size(&Passive::here(), least)
            .map_err(|_| NoMemory)?;

        assert_eq!(bytes, entries * 4, "doc2 has entries of 4 bytes");
        Ok(entries)
    }

    fn move_root(&mut self, from: Key, to: Key, entries: u32) {
        self.take_out(to);

        let table = self.tables.remove(&from).expect("it is there");
        let root = root(&table.0, entries);

        self.tables.insert(to, table);
        for (context, _) in &self.contexts {
            context.move_root_page_table(&Passive::here(), &root);
        }
    }

    fn suspend(&mut self) {
        let contexts = self.contexts.iter();

        self.id += 1;
        self.suspensions.suspend(
            &mut Passive::here(),
            self.id,
            contexts.map(|(context, suspension)| (&**context, &**suspension)),
        );
    }

    fn resume(&mut self) {
        let contexts = self.contexts.iter().map(|(context, _)| &**context);

        self.suspensions.resume(&mut Passive::here(), contexts);
    }

    fn flush(&mut self, first: u64, last: u64) {
        self.process.flush_tlb(&Passive::here(), first, last);
        self.dead.clear();
    }

    fn go_on(&self) -> Result<(), NoMemory> {
        Ok(())
    }
}

fn root(table: &Frame, entries: u32) -> RootPageTable {
    RootPageTable {
        segment: SYSTEM_MEMORY,
        address: table.address(),
        entries,
    }
}

fn page(address: u64, write: bool) -> PageEntry {
    PageEntry {
        segment: SYSTEM_MEMORY,
        address,
        page_size: PageSize::Kib4,
        read_only: !write,
        no_execute: false,
        system_use_only: false,
        cache_coherent: false,
    }
}

/// An address space with two contexts on a double.
struct Scene {
    journal: Shared<Journal>,
    mmu: Shared<Mmu>,
    operations: Shared<Operations>,
    levels: Levels,
    tree: TableTree,
    memory: Memory,
    device: Shared<Device>,
}

/// Ids of the contexts.
const CONTEXTS: [u64; 2] = [70, 71];

impl Scene {
    fn new(format: Format, wishes: Wishes) -> Self {
        let class = Passive::here();
        let journal = Shared::new(Journal::new());
        let mmu = Shared::new(Mmu::new(&journal, format, wishes).unwrap());
        let operations = Shared::new(Operations::new().unwrap());
        let behaviour = Behaviour {
            mmu: Some(mmu.clone()),
            operations: Some(operations.clone()),
            queues: Some(Shared::new(Queues::new(journal.clone()).unwrap())),
            suspends_at_once: true,
            ..Behaviour::default()
        };
        let kmd = FakeKmd::add_device(journal.clone(), behaviour);
        let luid = Luid { low: 1, high: 2 };
        let port = Port::start(Box::new(kmd), &class, &StartInfo::of(luid).unwrap()).unwrap();
        let mut caps = DriverCaps::default();

        port.enter()
            .unwrap()
            .query_adapter_info(&class, AdapterQuery::DriverCaps(&mut caps));

        let levels = Levels::new(&caps.gpu_mmu).expect("good caps");
        let process = Process::create(&port, &class, ProcessId(1), &mut NoAddresses).unwrap();
        let device = Device::create(&process, &class, DeviceId(2)).unwrap();
        let mut memory = Memory {
            tables: BTreeMap::new(),
            large: BTreeSet::new(),
            dead: Vec::new(),
            left: usize::MAX,
            suspensions: Suspensions::new(&process).unwrap(),
            process,
            contexts: Vec::new(),
            id: 0,
        };
        let mut tree = TableTree::new(levels, Rules::new(&caps.gpu_mmu), &mut memory).unwrap();

        tree.begin_root(&mut memory);
        tree.finish(&mut memory, 0, 0);

        let mut scene = Self {
            journal,
            mmu,
            operations,
            levels,
            tree,
            memory,
            device,
        };

        for id in CONTEXTS {
            scene.add_context(id);
        }
        scene
    }

    fn add_context(&mut self, id: u64) {
        let class = Passive::here();
        let suspension = self.memory.suspensions.add().unwrap();
        let callbacks: Shared<dyn QueueCallbacks> = Shared::new(Ear(suspension.clone()));
        let args = CreateContextArgs {
            id: ContextId(id),
            scheduling: Scheduling::Packets,
            node: 0,
            engines: 1,
            is_system: false,
            private_data: &[],
            callbacks: &callbacks,
        };
        let context = Context::create(&self.device, &class, &args).unwrap();
        let table = &self.memory.tables[&self.tree.root()].0;

        context
            .set_root_page_table(&class, &root(table, self.tree.root_entries()))
            .unwrap();
        self.memory.contexts.push((context, suspension));
    }

    /// Maps pages to frames, the first of them to `frame`.
    fn map(&mut self, first: u64, end: u64, frame: u64, were_valid: bool) -> Result<(), NoMemory> {
        let claimed = self
            .tree
            .claim(&mut self.memory, first, end, PageSize::Kib4);

        if claimed.is_ok() {
            let pages = Pages {
                first,
                end,
                were_valid,
                evicted: false,
                driver_protection: 7,
                shows: Shows::default(),
            };
            let mut entry = |at: u64| {
                let entry = page((frame + at - first) * PAGE, at % 2 == 0);

                (PageTableEntry::Page(entry), 1)
            };

            self.tree
                .write(&mut self.memory, &pages, Content::Each(&mut entry));
        }
        self.tree.finish(&mut self.memory, first, end);
        claimed
    }

    /// The reverse.
    fn unmap(&mut self, first: u64, end: u64) {
        let pages = Pages {
            first,
            end,
            were_valid: true,
            evicted: false,
            driver_protection: 0,
            shows: Shows::default(),
        };

        self.tree.unclaim(&mut self.memory, first, end);
        self.tree.write(
            &mut self.memory,
            &pages,
            Content::All(PageTableEntry::Invalid),
        );
        self.tree.sweep(&mut self.memory, first, end);
        self.tree.finish(&mut self.memory, first, end);
    }

    /// The frame that a context finds at a page, and whether it may write there.
    fn frame(&self, page: u64) -> Result<(u64, bool), u8> {
        let found = CONTEXTS.map(|id| self.mmu.access(id, page * PAGE));

        assert_eq!(found[0], found[1], "contexts of one process");
        match found[0] {
            Found::Page(entry) => Ok((entry.target().address / PAGE, entry.is_writable())),
            Found::Fault(level) => Err(level),
            Found::Suspended => panic!("it is not suspended"),
        }
    }

    fn root_entries(&self) -> u32 {
        assert_eq!(self.mmu.root_entries(CONTEXTS[0]), self.tree.root_entries());
        assert_eq!(self.mmu.root_entries(CONTEXTS[1]), self.tree.root_entries());
        self.tree.root_entries()
    }

    /// What was told to the double since an operation.
    fn told(&self, from: usize) -> Vec<What> {
        self.operations.since(from).map(|said| said.what).collect()
    }

    fn end(mut self) {
        let journal = self.journal.clone();

        self.memory.contexts.clear();
        self.tree.end(&mut self.memory);
        drop(self);
        assert!(journal.is_good_end(), "broken: {}", journal.broken());
    }
}

const DOC2: Format = Format::Doc2 { rounds_to: 16 };

/// Every set of wishes.
fn wishes() -> impl Iterator<Item = Wishes> {
    (0..8).map(|bits| Wishes {
        idle: bits & 1 != 0,
        invalid_not_cached: bits & 2 != 0,
        explicit_invalidation: bits & 4 != 0,
        // Which nobody asks for here.
        pages_64kb: bits & 1 != 0,
    })
}

/// MEM-52: the OS part gives the same orders whatever the tables look like.
/// Memory is asked for once where it follows, and entries are as if each page had been asked for.
#[test]
fn entries_of_memory_that_follows_are_those_of_its_pages() {
    // Where memory begins that follows, and what is there.
    let starts = [
        (0, Some(700)),
        (3, None),
        (4, Some(90)),
        (20, Some(91)),
        (52, Some(9)),
    ];
    let start = |at: u64| *starts.iter().rfind(|(first, _)| *first <= at).unwrap();
    let entry = |at: u64| {
        let (first, frame) = start(at);

        frame.map_or(PageTableEntry::Invalid, |frame: u64| {
            PageTableEntry::Page(page((frame + at - first) * PAGE, true))
        })
    };
    let run = |at: u64| {
        let next = starts.iter().map(|(first, _)| *first);
        let end = next.into_iter().find(|first| *first > at).unwrap_or(100);

        (entry(at), end - at)
    };

    for (first, step, count) in [
        (0, 1, 64),
        (2, 1, 1),
        (3, 1, 18),
        (4, 16, 4),
        (0, 4, 16),
        (7, 1, 0),
    ] {
        let mut entries = [PageTableEntry::Zero; 64];
        let mut asked = 0;

        set_entries(&mut entries[..count], first, step, |at| {
            asked += 1;
            run(at)
        });
        for (at, found) in (first..).step_by(step as usize).zip(&entries[..count]) {
            assert_eq!(*found, entry(at), "{first} {step} {at}");
        }
        assert!(entries[count..]
            .iter()
            .all(|entry| *entry == PageTableEntry::Zero));

        let begin = |at: u64| at == first || start(at).0 > at - step;
        let pages = (first..).step_by(step as usize).take(count);

        assert_eq!(
            asked,
            pages.filter(|at| begin(*at)).count(),
            "{first} {step}"
        );
    }
}

/// Memory that follows for as long as a list would be is said by its first page.
#[test]
fn entries_are_a_list_only_where_memory_does_not_follow() {
    let first = PageTableEntry::Page(page(5 * PAGE, true));
    let mut each = [PageTableEntry::Invalid; MAX_ENTRIES];

    for (left, pages, expected) in [(300, 300, 300), (300, 64, 64), (30, 100, 30), (2, 2, 2)] {
        let entries = entries_of(&mut each, (7, left), PageSize::Kib4, |at| {
            assert_eq!(at, 7);
            (first, pages)
        });

        assert!(matches!(entries, Entries::Following(entry, _) if entry == first));
        assert_eq!(entries.count(), expected);
        for (page, entry) in (0..).zip(entries.iter()) {
            assert_eq!(entry, first.further(page * PAGE));
        }
    }
    for (left, pages, size, expected) in [
        (300, 63, PageSize::Kib4, 64),
        (30, 29, PageSize::Kib4, 30),
        (1, 1, PageSize::Kib4, 1),
        // Pages of 64 KiB are listed.
        (4, 64, PageSize::Kib64, 4),
    ] {
        let entries = entries_of(&mut each, (7, left), size, |_| (first, pages));

        assert!(matches!(entries, Entries::Each(list) if list.len() == expected));
    }
}

#[test]
fn mem_52_the_same_pages_in_every_format() {
    for format in [DOC2, Format::Uma] {
        for wishes in wishes() {
            let mut scene = Scene::new(format, wishes);

            assert_eq!(scene.frame(0x3000), Err(scene.levels.root() as u8));
            scene.map(0x3000, 0x3003, 0x99, false).unwrap();
            assert_eq!(scene.frame(0x3000), Ok((0x99, true)));
            assert_eq!(scene.frame(0x3001), Ok((0x9a, false)));
            assert_eq!(scene.frame(0x3002), Ok((0x9b, true)));
            assert_eq!(scene.frame(0x3003), Err(0));
            scene.unmap(0x3000, 0x3003);
            assert_eq!(scene.frame(0x3000), Err(scene.levels.root() as u8));
            assert_eq!(scene.memory.tables.len(), 1, "the root alone is left");
            scene.end();
        }
    }
}

/// MEM-93: tables of each format come and go without an operation that WDDM 2 has removed.
#[test]
fn mem_93_removed_operations_are_not_issued_for_page_tables() {
    let removed: BTreeSet<u32> = (0..=20).filter(|number| is_removed(*number)).collect();

    assert_eq!(removed, BTreeSet::from([0, 1, 2, 3, 4, 7]));
    for format in [DOC2, Format::Uma] {
        for wishes in wishes() {
            let mut scene = Scene::new(format, wishes);

            scene.map(0x3000, 0x3040, 0x99, false).unwrap();
            scene.unmap(0x3000, 0x3040);

            let numbers: BTreeSet<u32> =
                scene.operations.since(0).map(|told| told.number).collect();

            assert!(numbers.is_subset(&BTreeSet::from([11, 12])));
            assert!(!numbers.is_empty() && numbers.is_disjoint(&removed));
            scene.end();
        }
    }
}

/// MEM-53: nothing leads to a table before it is full of invalid entries, and those of pages come
/// before those that lead to them are looked at.
#[test]
fn mem_53_tables_are_initialised_before_something_leads_to_them() {
    let mut scene = Scene::new(Format::Uma, Wishes::default());
    let before = scene.operations.count();

    scene.map(0x3000, 0x3001, 0x99, false).unwrap();

    let told = scene.told(before);
    let levels: Vec<_> = told
        .iter()
        .filter_map(|what| match what {
            What::UpdatePageTable {
                level,
                count,
                first,
                initial_update,
                ..
            } => Some((
                *level,
                *count,
                *initial_update,
                *first != PageTableEntry::Invalid,
            )),
            _ => None,
        })
        .collect();

    assert_eq!(
        levels,
        [
            (2, 512, true, false),
            (3, 1, false, true),
            (1, 512, true, false),
            (2, 1, false, true),
            (0, 512, true, false),
            (1, 1, false, true),
            (0, 1, false, true),
        ]
    );
    assert!(matches!(told.last(), Some(What::FlushTlb { .. })));
    scene.end();
}

/// MEM-54: the root has as many entries as are needed, rounded up by the KMD, and what it led to
/// stays. Contexts that run meanwhile are suspended, and know the new one.
#[test]
fn mem_54_a_root_of_two_levels_grows_and_shrinks() {
    for wishes in wishes() {
        let mut scene = Scene::new(DOC2, wishes);
        let at = |index: u64| index << 10;

        assert_eq!(scene.root_entries(), 16);
        scene.map(at(5), at(5) + 1, 0x55, false).unwrap();
        assert_eq!(scene.root_entries(), 16);
        assert_eq!(scene.frame(at(100)), Err(1), "beyond the root");
        scene.map(at(100), at(100) + 1, 0x66, false).unwrap();
        assert_eq!(scene.root_entries(), 112);
        assert_eq!(scene.frame(at(5)), Ok((0x55, true)));
        assert_eq!(scene.frame(at(100)), Ok((0x66, true)));
        scene.map(at(1023), at(1024), 0x77, false).unwrap();
        assert_eq!(scene.root_entries(), 1024);
        scene.unmap(at(1023), at(1024));
        assert_eq!(scene.root_entries(), 112);
        assert_eq!(scene.frame(at(1023)), Err(1));
        scene.unmap(at(100), at(100) + 1);
        assert_eq!(scene.root_entries(), 16);
        assert_eq!(scene.frame(at(5)), Ok((0x55, true)));
        assert_eq!(scene.memory.tables.len(), 2);
        scene.end();
    }
}

/// MEM-54: without memory for another root everything stays as it was.
#[test]
fn mem_54_a_root_that_cannot_grow_stays() {
    let mut scene = Scene::new(DOC2, Wishes::default());

    scene.map(5 << 10, (5 << 10) + 1, 0x55, false).unwrap();
    // A root, and no table below.
    for left in 0..2 {
        scene.memory.left = left;
        assert_eq!(scene.map(100 << 10, 101 << 10, 0x66, false), Err(NoMemory));
        assert_eq!(scene.frame(5 << 10), Ok((0x55, true)));
        assert_eq!(scene.frame(100 << 10), Err(1));
        assert_eq!(scene.memory.tables.len(), 2);
        assert!(scene.memory.dead.is_empty());
    }
    // The second time there was one for the root, which stays. Nor is there any to shrink it.
    assert_eq!(scene.root_entries(), 112);
    scene.memory.left = 1;
    scene.map(100 << 10, 101 << 10, 0x66, false).unwrap();
    scene.unmap(100 << 10, 101 << 10);
    assert_eq!(scene.root_entries(), 112);
    assert_eq!(scene.frame(5 << 10), Ok((0x55, true)));
    scene.end();
}

/// MEM-55, MEM-59: the old root is given up with NotifyEviction, by contexts that are suspended,
/// and they learn of the new one before they go on.
#[test]
fn mem_55_mem_59_a_root_moves_while_its_contexts_are_suspended() {
    let mut scene = Scene::new(DOC2, Wishes::default());

    // They have had work, so that the double minds.
    assert_eq!(scene.frame(0x3000), Err(1));

    let before = scene.operations.count();
    let calls = |entry| scene.journal.count(entry);
    let (suspends, resumes) = (calls(Entry::SuspendContext), calls(Entry::ResumeContext));
    let roots = calls(Entry::SetRootPageTable);

    assert_eq!((suspends, resumes, roots), (0, 0, 2));
    scene.map(100 << 10, (100 << 10) + 1, 0x66, false).unwrap();

    let calls = |entry| scene.journal.count(entry);

    assert_eq!(calls(Entry::SuspendContext), 2);
    assert_eq!(calls(Entry::SetRootPageTable), 4);
    assert_eq!(calls(Entry::ResumeContext), 2);
    assert_eq!(
        scene
            .told(before)
            .iter()
            .filter(|what| matches!(
                what,
                What::UpdatePageTable {
                    level: 1,
                    count: 16,
                    first: PageTableEntry::Invalid,
                    notify_eviction: true,
                    ..
                }
            ))
            .count(),
        1
    );
    assert_eq!(
        scene.told(before).last(),
        Some(&What::FlushTlb { first: 0, last: 0 })
    );
    scene.end();
}

/// MEM-56: contexts are suspended during every change, and only if the KMD wants it.
#[test]
fn mem_56_the_address_space_is_idle_while_it_changes() {
    for idle in [false, true] {
        let wishes = Wishes {
            idle,
            ..Wishes::default()
        };
        let mut scene = Scene::new(Format::Uma, wishes);

        scene.map(0x3000, 0x3010, 0x99, false).unwrap();
        scene.unmap(0x3000, 0x3008);
        // What changes nothing suspends nobody.
        scene.tree.finish(&mut scene.memory, 0, 0);
        assert_eq!(
            scene.journal.count(Entry::SuspendContext),
            if idle { 4 } else { 0 }
        );
        assert_eq!(
            scene.journal.count(Entry::ResumeContext),
            if idle { 4 } else { 0 }
        );
        scene.end();
    }
}

/// The double notices an address space that is not idle.
#[test]
fn mem_56_a_double_finds_who_runs_meanwhile() {
    let wishes = Wishes {
        idle: true,
        ..Wishes::default()
    };
    let scene = Scene::new(Format::Uma, wishes);

    scene.memory.process.flush_tlb(&Passive::here(), 0, 0);
    assert_eq!(scene.journal.broken(), Broken::NotIdle as u32);
}

/// MEM-56: pages that become valid are not flushed, and all others are.
#[test]
fn mem_56_invalid_entries_that_no_engine_remembers_need_no_flush() {
    for invalid_not_cached in [false, true] {
        let wishes = Wishes {
            invalid_not_cached,
            ..Wishes::default()
        };
        let mut scene = Scene::new(Format::Uma, wishes);
        let flushes = |scene: &Scene| scene.journal.count(Entry::FlushTlb);
        let before = flushes(&scene);
        let more = usize::from(!invalid_not_cached);

        assert_eq!(scene.frame(0x3000), Err(3));
        scene.map(0x3000, 0x3010, 0x99, false).unwrap();
        assert_eq!(flushes(&scene), before + more);
        assert_eq!(scene.frame(0x3000), Ok((0x99, true)));
        scene.map(0x3000, 0x3010, 0x88, true).unwrap();
        assert_eq!(flushes(&scene), before + more + 1);
        assert_eq!(scene.frame(0x3000), Ok((0x88, true)));
        scene.unmap(0x3000, 0x3010);
        assert_eq!(flushes(&scene), before + more + 2);
        assert_eq!(scene.frame(0x3000), Err(0));
        scene.end();
    }
}

/// MEM-56: with ExplicitPageTableInvalidation a table is full of invalid entries when it goes, and
/// so are all of them at the end.
#[test]
fn mem_56_tables_are_invalidated_before_they_go() {
    for explicit_invalidation in [false, true] {
        let wishes = Wishes {
            explicit_invalidation,
            ..Wishes::default()
        };
        let mut scene = Scene::new(Format::Uma, wishes);

        scene.map(0x3000, 0x3010, 0x99, false).unwrap();

        let before = scene.operations.count();
        let cleared = |what: &&What| {
            matches!(
                what,
                What::UpdatePageTable {
                    count: 512,
                    first: PageTableEntry::Invalid,
                    initial_update: false,
                    notify_eviction: false,
                    ..
                }
            )
        };

        scene.unmap(0x3000, 0x3010);
        assert_eq!(
            scene.told(before).iter().filter(cleared).count(),
            if explicit_invalidation { 3 } else { 0 }
        );
        scene.map(0x3000, 0x3010, 0x99, false).unwrap();

        let before = scene.operations.count();

        scene.memory.contexts.clear();
        scene.tree.end(&mut scene.memory);
        assert_eq!(
            scene.told(before).iter().filter(cleared).count(),
            if explicit_invalidation { 4 } else { 0 }
        );
        scene.end();
    }
}

/// MEM-43: DriverProtection is passed on unchanged, with the entries that it is for.
#[test]
fn mem_43_driver_protection_comes_with_the_entries() {
    let mut scene = Scene::new(Format::Uma, Wishes::default());
    let before = scene.operations.count();

    scene.map(0x3000, 0x3010, 0x99, false).unwrap();
    for what in scene.told(before) {
        if let What::UpdatePageTable {
            first,
            level,
            driver_protection,
            ..
        } = what
        {
            let is_page = level == 0 && first != PageTableEntry::Invalid;

            assert_eq!(driver_protection, if is_page { 7 } else { 0 });
        }
    }
    scene.end();
}

/// A step of a random sequence: a range of pages, by leaf tables, and whether it is mapped, and how
/// many tables can be made.
type Step = (u64, u64, u64, bool, Option<usize>);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// MEM-53, MEM-54, MEM-58: after every step engines see what is mapped and nothing else, and
    /// there are just the tables that are needed; also when there is no memory.
    #[test]
    fn mem_53_engines_see_what_is_mapped(
        is_doc2 in any::<bool>(),
        bits in 0..8u32,
        steps in proptest::collection::vec(
            (1..1023u64, 0..1024u64, 1..600u64, any::<bool>(), proptest::option::weighted(0.3, 0..4usize)),
            1..24,
        ),
    ) {
        let format = if is_doc2 { DOC2 } else { Format::Uma };
        let wishes = wishes().nth(bits as usize).expect("eight");
        let mut scene = Scene::new(format, wishes);
        let mut model: BTreeMap<u64, u64> = BTreeMap::new();
        let mut next = 1000;
        let steps: Vec<Step> = steps;

        for (leaf, offset, count, maps, left) in steps {
            let first = leaf * 1024 + offset;
            let pages: Vec<u64> = (first..first + count).collect();

            scene.memory.left = left.unwrap_or(usize::MAX);
            if maps {
                // Only what is free.
                let Some(free) = pages.iter().find(|page| !model.contains_key(page)) else {
                    continue;
                };
                let end = (*free..first + count)
                    .find(|page| model.contains_key(page))
                    .unwrap_or(first + count);

                // Engines that remember that nothing was there.
                let _nothing = scene.frame(*free);

                if scene.map(*free, end, next, false).is_ok() {
                    model.extend((*free..end).map(|page| (page, next + page - *free)));
                    next += end - *free;
                } else {
                    prop_assert!(left.is_some());
                }
            } else {
                let mut rest = first;

                while let Some((&from, _)) = model.range(rest..first + count).next() {
                    let end = (from..first + count)
                        .find(|page| !model.contains_key(page))
                        .unwrap_or(first + count);

                    let _something = scene.frame(from);

                    scene.unmap(from, end);
                    model.retain(|page, _| !(from..end).contains(page));
                    rest = end;
                }
            }

            for page in [first - 1, first, first + count / 2, first + count - 1, first + count] {
                let expected = model.get(&page).copied();

                prop_assert_eq!(scene.frame(page).ok().map(|found| found.0), expected);
            }

            let levels = scene.levels;
            let needed: BTreeSet<Key> = model
                .keys()
                .flat_map(|page| {
                    (0..levels.root()).map(move |level| Key {
                        level,
                        number: levels.table(level, *page),
                    })
                })
                .chain([scene.tree.root()])
                .collect();
            let there: BTreeSet<Key> = scene.memory.tables.keys().copied().collect();

            prop_assert_eq!(there, needed);
            prop_assert!(scene.memory.dead.is_empty());
            prop_assert_eq!(scene.journal.broken(), 0);
        }
        scene.memory.left = usize::MAX;
        scene.end();
    }
}

/// The way of an engine, which is that of the double, up to where both end.
#[test]
fn mem_59_gpu_67_the_way_to_a_page() {
    for format in [DOC2, Format::Uma] {
        let mut scene = Scene::new(format, Wishes::default());
        let root = scene.levels.root();

        scene.map(0x3000, 0x3001, 0x99, false).unwrap();
        for page in [0x3000, 0x3001, 0x7_0000, scene.levels.pages() - 1] {
            let mut visits = Vec::new();

            scene
                .tree
                .walk(&scene.memory, page, |visit| visits.push(visit));
            for (visit, level) in visits.iter().zip((0..=root).rev()) {
                match visit {
                    Visit::Above {
                        level: own, index, ..
                    } => {
                        assert_eq!((*own, *index), (level, scene.levels.index(level, page)));
                    }
                    Visit::Leaf { index, .. } => {
                        assert_eq!((0, *index), (level, scene.levels.index(0, page)));
                    }
                }
            }
            match (scene.frame(page), visits.last()) {
                (Ok(_) | Err(0), Some(Visit::Leaf { .. })) => {
                    // Each entry leads to the next table.
                    for visit in &visits[..visits.len() - 1] {
                        let Visit::Above { level, entry, .. } = visit else {
                            panic!("{visits:?}");
                        };
                        let below = Key {
                            level: level - 1,
                            number: scene.levels.table(level - 1, page),
                        };

                        let frame = scene.memory.tables[&below].0.address();

                        assert!(
                            matches!(entry, PageTableEntry::Page(page) if page.address == frame),
                            "{entry:?}"
                        );
                    }
                }
                (Err(at), Some(Visit::Above { level, entry, .. })) => {
                    assert_eq!((u32::from(at), *entry), (*level, PageTableEntry::Invalid));
                }
                (Err(at), None) => {
                    // The root has no entry for it.
                    assert_eq!(u32::from(at), root);
                    assert!(scene.levels.index(root, page) >= scene.root_entries());
                }
                (frame, last) => panic!("{page:#x}: {frame:?} {last:?}"),
            }
        }
        // There is nothing beyond them.
        scene
            .tree
            .walk(&scene.memory, scene.levels.pages(), |visit| {
                panic!("{visit:?}")
            });
        scene.unmap(0x3000, 0x3001);
        scene.end();
    }
}
