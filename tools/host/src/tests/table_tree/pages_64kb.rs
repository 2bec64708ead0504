// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables with pages of 64 KiB next to those with pages of 4 KiB (MEM-57).

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{page, Format, NoMemory, Scene, Wishes, CONTEXTS, DOC2};
use crate::{
    ddi::paging::{PageSize, PageTableEntry},
    kmd::fake::{journal::Entry, mmu::Found, operations::What},
    logic::{
        gpu_ranges::{is_64kb, PAGE},
        table_tree::{Content, Pages, Shows, Tables},
    },
};

const WISHES: Wishes = Wishes {
    idle: false,
    invalid_not_cached: false,
    explicit_invalidation: false,
    pages_64kb: true,
};

/// What pages show: the frame of each that is mapped.
type Model = BTreeMap<u64, u64>;

/// An address space that has tables of both kinds, and what it shows.
struct Mixed {
    scene: Scene,
    model: Model,
}

fn pages(first: u64, end: u64) -> Pages {
    Pages {
        first,
        end,
        were_valid: true,
        evicted: false,
        driver_protection: 0,
        shows: Shows::default(),
    }
}

fn entry(model: &Model, at: u64) -> PageTableEntry {
    model.get(&at).map_or(PageTableEntry::Invalid, |frame| {
        PageTableEntry::Page(page(frame * PAGE, true))
    })
}

impl Mixed {
    fn new(format: Format) -> Self {
        Self {
            scene: Scene::new(format, WISHES),
            model: Model::new(),
        }
    }

    /// Writes the entries of pages, which tables of 64-KiB pages can say if `fits`.
    fn write(&mut self, first: u64, end: u64, fits: bool) {
        let Scene { tree, memory, .. } = &mut self.scene;
        let mut shown = |at: u64| (entry(&self.model, at), 1);

        while let Some((from, to)) = tree.next_64kb(memory, first, end).filter(|_| !fits) {
            tree.split(memory, from);
            tree.write(memory, &pages(from, to), Content::Each(&mut shown));
            tree.end_split(memory, from);
        }
        tree.write(memory, &pages(first, end), Content::Each(&mut shown));
    }

    /// Maps pages where there are none.
    fn map(&mut self, first: u64, end: u64, frame: u64, fits: bool) -> Result<(), NoMemory> {
        let size = match fits {
            true => PageSize::Kib64,
            false => PageSize::Kib4,
        };
        let Scene { tree, memory, .. } = &mut self.scene;
        let claimed = tree.claim(memory, first, end, size);

        if claimed.is_ok() {
            self.model
                .extend((first..end).map(|at| (at, frame + at - first)));
            self.write(first, end, fits);
        }
        self.scene.tree.finish(&mut self.scene.memory, first, end);
        claimed
    }

    /// Unmaps pages that are there.
    fn unmap(&mut self, first: u64, end: u64) {
        self.scene.tree.unclaim(&mut self.scene.memory, first, end);
        self.model.retain(|at, _| !(first..end).contains(at));
        self.write(first, end, is_64kb(first) && is_64kb(end));

        let Scene { tree, memory, .. } = &mut self.scene;

        tree.sweep(memory, first, end);
        tree.finish(memory, first, end);
    }

    /// Whether engines see what there is at a page, and no other.
    fn is_right(&self, at: u64) -> bool {
        self.scene.frame(at).ok().map(|found| found.0) == self.model.get(&at).copied()
    }

    /// The leaf tables that are there, and whether they have pages of 64 KiB.
    fn leaves(&self) -> BTreeMap<u64, bool> {
        let memory = &self.scene.memory;

        memory
            .tables
            .keys()
            .filter(|key| key.level == 0)
            .map(|key| (key.number, memory.page_size(*key) == PageSize::Kib64))
            .collect()
    }

    fn end(self) {
        self.scene.end();
    }
}

/// MEM-57: one entry says what 16 say, and engines see the same.
#[test]
fn mem_57_a_table_of_pages_of_64_kib() {
    for (format, entries, leaf) in [(DOC2, 64, 1024), (Format::Uma, 32, 512)] {
        let mut mixed = Mixed::new(format);
        let before = mixed.scene.operations.count();
        let first = 3 * leaf;

        mixed.map(first, first + 32, 0x100, true).unwrap();

        let written: Vec<_> = mixed
            .scene
            .told(before)
            .iter()
            .filter_map(|what| match what {
                What::UpdatePageTable {
                    level: 0,
                    page_size,
                    count,
                    initial_update,
                    ..
                } => Some((*page_size, *count, *initial_update)),
                _ => None,
            })
            .collect();

        assert_eq!(
            written,
            [
                (PageSize::Kib64, entries, true),
                (PageSize::Kib64, 2, false)
            ]
        );
        for at in first - 1..first + 40 {
            assert!(mixed.is_right(at), "{at:#x}");
        }
        // Nobody had to stop for that.
        assert_eq!(mixed.scene.journal.count(Entry::SuspendContext), 0);
        mixed.unmap(first, first + 32);
        assert!(mixed.leaves().is_empty());
        mixed.end();
    }
}

/// MEM-57: contexts are suspended, the entries are written, the one of level 1 is written, they are
/// resumed. There is no way back while the table is there.
#[test]
fn mem_57_a_table_gets_pages_of_4_kib_while_contexts_are_suspended() {
    let mut mixed = Mixed::new(Format::Uma);
    let first = 0x3000;
    let count = |mixed: &Mixed, entry| mixed.scene.journal.count(entry);

    mixed.map(first, first + 64, 0x100, true).unwrap();
    assert_eq!(mixed.leaves(), [(first >> 9, true)].into());
    // It is in the caches of engines.
    assert!(mixed.is_right(first + 17));

    let before = mixed.scene.operations.count();

    mixed.unmap(first + 17, first + 18);
    assert_eq!(mixed.leaves(), [(first >> 9, false)].into());
    assert_eq!(count(&mixed, Entry::SuspendContext), CONTEXTS.len());
    assert_eq!(count(&mixed, Entry::ResumeContext), CONTEXTS.len());

    let told = mixed.scene.told(before);
    let above = told
        .iter()
        .position(|what| matches!(what, What::UpdatePageTable { level: 1, .. }))
        .expect("the entry of level 1");
    let small: usize = told[..above]
        .iter()
        .map(|what| match what {
            What::UpdatePageTable {
                level: 0,
                page_size: PageSize::Kib4,
                count,
                ..
            } => *count,
            other => panic!("{other:?}"),
        })
        .sum();

    assert_eq!(small, 512, "all entries come first");
    assert_eq!(told.last(), Some(&What::FlushTlb { first: 0, last: 0 }));
    for at in first..first + 70 {
        assert!(mixed.is_right(at), "{at:#x}");
    }
    mixed.map(first + 17, first + 18, 0x111, true).unwrap();
    assert_eq!(mixed.leaves(), [(first >> 9, false)].into());
    mixed.unmap(first, first + 64);
    mixed.map(first, first + 16, 0x200, true).unwrap();
    assert_eq!(mixed.leaves(), [(first >> 9, true)].into(), "a new table");
    mixed.end();
}

/// The double finds a change of pages that contexts could see.
#[test]
fn mem_57_a_double_finds_who_runs_meanwhile() {
    let mut mixed = Mixed::new(Format::Uma);

    mixed.map(0x3000, 0x3010, 0x100, true).unwrap();

    let key = *mixed.scene.memory.tables.keys().next().unwrap();

    mixed.scene.memory.set_page_size(key, PageSize::Kib4);
    mixed.scene.tree.end_split(&mut mixed.scene.memory, 0x3000);
    assert_ne!(mixed.scene.journal.broken(), 0);
}

/// Tables of 64-KiB pages are for KMDs that have them.
#[test]
fn mem_57_no_such_table_where_there_are_no_such_pages() {
    let mut scene = Scene::new(Format::Uma, Wishes::default());

    scene
        .tree
        .claim(&mut scene.memory, 0x3000, 0x3010, PageSize::Kib64)
        .unwrap();
    assert_eq!(scene.tree.next_64kb(&scene.memory, 0, 1 << 20), None);
    assert!(matches!(
        scene.mmu.access(CONTEXTS[0], 0x3000 * PAGE),
        Found::Fault(0)
    ));
    scene.tree.finish(&mut scene.memory, 0x3000, 0x3010);
    scene.tree.end(&mut scene.memory);
}

/// A step: a leaf table, the first unit of 16 pages in it, how many units, how many pages that is
/// off at the front and at the end, whether frames are off too, whether it maps, and how many
/// tables can be made.
type Step = (u64, u64, u64, (u64, u64, bool), bool, Option<usize>);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// MEM-57, MEM-58: whatever is mapped next to what, engines see that and nothing else. A table
    /// has pages of 64 KiB if it was made for such and nothing else was ever in it.
    #[test]
    fn mem_57_engines_see_what_is_mapped(
        is_doc2 in any::<bool>(),
        steps in proptest::collection::vec(
            (
                1..3u64,
                0..40u64,
                1..40u64,
                (
                    prop_oneof![3 => Just(0u64), 1 => 1..16u64],
                    prop_oneof![3 => Just(0u64), 1 => 1..16u64],
                    proptest::bool::weighted(0.2),
                ),
                proptest::bool::weighted(0.6),
                proptest::option::weighted(0.2, 0..3usize),
            ),
            1..30,
        ),
    ) {
        let (format, leaf_pages) = if is_doc2 { (DOC2, 1024) } else { (Format::Uma, 512) };
        let mut mixed = Mixed::new(format);
        // The leaf tables that have, or had, to have small pages.
        let mut small: BTreeSet<u64> = BTreeSet::new();
        let mut next = 0x1000;
        let steps: Vec<Step> = steps;

        for (leaf, unit, units, (front, back, is_off), maps, left) in steps {
            let first = leaf * leaf_pages + unit * 16 + front;
            let end = (leaf * leaf_pages + (unit + units) * 16 - back).max(first + 1);
            let is_free = (first..end).all(|at| !mixed.model.contains_key(&at));
            let is_whole = is_64kb(first) && is_64kb(end);
            let leaves = first / leaf_pages..=(end - 1) / leaf_pages;

            mixed.scene.memory.left = left.unwrap_or(usize::MAX);
            // What engines know before.
            let _known = mixed.scene.frame(first);
            let _known = mixed.scene.frame(end - 1);

            if maps && is_free {
                let frame = next + u64::from(is_off);
                let fits = is_whole && !is_off;

                next += (end - first).next_multiple_of(16) + 16;
                match mixed.map(first, end, frame, fits) {
                    Ok(()) if !fits => small.extend(leaves),
                    Ok(()) => {}
                    Err(NoMemory) => prop_assert!(left.is_some()),
                }
            } else if !maps {
                let runs: Vec<u64> = (first..end)
                    .filter(|at| mixed.model.contains_key(at))
                    .collect();

                for run in runs.chunk_by(|one, other| one + 1 == *other) {
                    let (from, to) = (run[0], run[run.len() - 1] + 1);

                    if !is_64kb(from) || !is_64kb(to) {
                        small.extend(from / leaf_pages..=(to - 1) / leaf_pages);
                    }
                    mixed.unmap(from, to);
                }
            }
            for at in [first - 1, first, first + 1, first.midpoint(end), end - 1, end] {
                prop_assert!(mixed.is_right(at), "{:#x} of {:#x}..{:#x}", at, first, end);
            }

            let there = mixed.leaves();

            small.retain(|leaf| there.contains_key(leaf));
            for (leaf, is_large) in there {
                prop_assert_eq!(is_large, !small.contains(&leaf), "leaf {:#x}", leaf);
            }
            prop_assert_eq!(mixed.scene.journal.broken(), 0);
        }
        mixed.scene.memory.left = usize::MAX;

        let region = leaf_pages..4 * leaf_pages;

        for at in region.step_by(5) {
            prop_assert!(mixed.is_right(at), "{:#x}", at);
        }
        mixed.end();
    }
}
