// SPDX-License-Identifier: MIT OR Apache-2.0

//! Transfers over many pages, whatever these are, and the entries of neighbours that are read
//! together for them (GPU-42, GPU-65, GPU-66).

use proptest::prelude::*;

use super::machine::{Event, Machine, PROCESS};
use super::program::Program;
use crate::engine::command_processor::Outcome;
use crate::engine::fault::{Cause, FaultKind, PageFault};
use crate::engine::memory::{Physical, Place, PAGE_SIZE};
use crate::engine::page_table::{Entry, Profile};
use crate::engine::queue::Privilege;
use crate::engine::translation::{Access, Scope, Target, Tlb};

/// Pages on each side, from some pages before the end of a table of level 0 on.
const PAGES: u64 = 40;
const LEAF: u64 = 2 << 20;
const SOURCE: u64 = 9 * LEAF - 13 * PAGE_SIZE;
const TARGET: u64 = 21 * LEAF - 30 * PAGE_SIZE;

/// Entries that are read together: those of as much memory as a large page.
const LINE: u64 = 16;
const LARGE: u64 = LINE * PAGE_SIZE;

/// Where neighbours begin, and what is asked of them.
const BASE: u64 = 5 * LEAF;
const WRITE: Access = Access {
    write: true,
    system: false,
};

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Writable,
    ReadOnly,
    Zero,
    Invalid,
    /// Its entry is valid, and leads to where no memory is.
    Nowhere,
}

/// A page, and whether it follows in memory what is before it.
type Page = (Kind, bool);

fn kind() -> impl Strategy<Value = Page> {
    let kind = prop_oneof![
        30 => Just(Kind::Writable),
        2 => Just(Kind::Zero),
        1 => prop_oneof![Just(Kind::ReadOnly), Just(Kind::Invalid), Just(Kind::Nowhere)],
    ];

    (kind, prop::bool::weighted(0.8))
}

fn kinds() -> impl Strategy<Value = Vec<Page>> {
    prop::collection::vec(kind(), PAGES as usize)
}

/// Maps pages of these kinds, each byte of which says where it is.
fn map(machine: &mut Machine, va: u64, kinds: &[Page], salt: u8) {
    let mut memory = Physical::new(Place::Local, u64::from(salt) << 32);

    for (page, (kind, follows)) in (0..).zip(kinds) {
        let va = va + page * PAGE_SIZE;

        // What follows nothing has a gap before it.
        memory = memory.plus(if *follows { PAGE_SIZE } else { 2 * PAGE_SIZE });

        let entry = Entry::to(memory);

        machine.map(
            va,
            match kind {
                Kind::Writable => entry.writable(),
                Kind::ReadOnly => entry,
                Kind::Zero => Entry::ZERO,
                Kind::Invalid => Entry::INVALID,
                Kind::Nowhere => entry.writable(),
            },
        );
        if *kind == Kind::Nowhere {
            continue;
        }
        machine.ram.put_page(memory);

        let bytes: Vec<u8> = (0..PAGE_SIZE)
            .map(|at| (at as u8).wrapping_mul(3) ^ (at >> 8) as u8 ^ (page as u8) ^ salt)
            .collect();

        machine.ram.write(memory, &bytes).unwrap();
    }
}

/// The bytes of all pages as they are read; what is not memory has zeros.
fn bytes(machine: &Machine, va: u64, kinds: &[Page]) -> Vec<u8> {
    (0..)
        .zip(kinds)
        .flat_map(|(page, (kind, _))| match kind {
            Kind::Writable | Kind::ReadOnly => machine.bytes(va + page * PAGE_SIZE, PAGE_SIZE),
            _ => vec![0; PAGE_SIZE as usize],
        })
        .collect()
}

/// Why a page cannot be read or written.
fn refused(kind: Kind, write: bool) -> Option<Cause> {
    match kind {
        Kind::Writable | Kind::Zero => None,
        Kind::ReadOnly => write.then_some(Cause::WriteProtected),
        Kind::Invalid => Some(Cause::Invalid),
        Kind::Nowhere => Some(Cause::NoMemory),
    }
}

/// How a transfer of `count` bytes to an offset of the target ends: how many of them are moved, and
/// the fault behind those. A copy also has a source.
fn expected(
    source: Option<(&[Page], u64)>,
    (target, to): (&[Page], u64),
    count: u64,
) -> (u64, Option<PageFault>) {
    let mut done = 0;

    while done < count {
        let at = |offset: u64| (offset + done) / PAGE_SIZE;
        let sides = [
            source.map(|(kinds, from)| (kinds[at(from) as usize].0, SOURCE + from, false)),
            Some((target[at(to) as usize].0, TARGET + to, true)),
        ];
        let is_zero = target[at(to) as usize].0 == Kind::Zero;
        let fault = |memory: bool| {
            sides.into_iter().flatten().find_map(|(kind, va, write)| {
                let cause = refused(kind, write)?;
                // Where memory is missing is found when the bytes are moved, if they are.
                let is_it = (cause == Cause::NoMemory) == memory && !(memory && is_zero);

                is_it.then_some(PageFault {
                    va: va + done,
                    write,
                    level: 0,
                    cause,
                })
            })
        };

        if let Some(fault) = fault(false).or_else(|| fault(true)) {
            return (done, Some(fault));
        }

        let left = |offset: u64| PAGE_SIZE - (offset + done) % PAGE_SIZE;
        let some = source
            .map_or(u64::MAX, |(_, from)| left(from))
            .min(left(to));

        done += some.min(count - done);
    }
    (done, None)
}

/// Runs a program to its end. The fault, if there is one.
fn run(machine: &mut Machine, program: Program) -> Option<PageFault> {
    machine.submit(&program.0);
    match machine.run() {
        Outcome::Done(_) => None,
        Outcome::Faulted(record) => match record.kind {
            FaultKind::Page(fault) => Some(fault),
            kind => panic!("{kind:x?}"),
        },
        outcome => panic!("{outcome:x?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is before a fault is moved, what is behind it is not, and the fault says where it is.
    #[test]
    fn gpu_65_a_copy_of_many_pages(
        (source, target) in (kinds(), kinds()),
        // Often whole pages.
        (from, to) in (0..8 * PAGE_SIZE, 0..8 * PAGE_SIZE),
        is_whole in any::<bool>(),
        count in 1..30 * PAGE_SIZE,
    ) {
        let round = |at: u64| if is_whole { at / PAGE_SIZE * PAGE_SIZE } else { at };
        let (from, to, count) = (round(from), round(to), round(count).max(1));
        let mut machine = Machine::new();

        map(&mut machine, SOURCE, &source, 0x5a);
        map(&mut machine, TARGET, &target, 0xa5);

        let read = bytes(&machine, SOURCE, &source);
        let mut written = bytes(&machine, TARGET, &target);
        let (done, fault) = expected(Some((&source, from)), (&target, to), count);
        let moved = &read[from as usize..(from + done) as usize];

        written[to as usize..(to + done) as usize].copy_from_slice(moved);
        prop_assert_eq!(
            run(&mut machine, Program::new().copy(SOURCE + from, TARGET + to, count as u32)),
            fault
        );
        // What goes to a zero page is dropped.
        for (page, (kind, _)) in target.iter().enumerate() {
            if *kind == Kind::Zero {
                written[page * 4096..][..4096].fill(0);
            }
        }
        prop_assert!(bytes(&machine, TARGET, &target) == written);
        prop_assert!(bytes(&machine, SOURCE, &source) == read);
    }

    #[test]
    fn gpu_65_a_fill_of_many_pages(
        target in kinds(),
        to in 0..8 * PAGE_SIZE / 4,
        count in 1..30 * PAGE_SIZE / 4,
    ) {
        let (to, count) = (to * 4, count * 4);
        let mut machine = Machine::new();

        map(&mut machine, TARGET, &target, 0xa5);

        let mut written = bytes(&machine, TARGET, &target);
        let (done, fault) = expected(None, (&target, to), count);

        for (at, byte) in written[to as usize..(to + done) as usize].iter_mut().enumerate() {
            *byte = 0x1122_3344_u32.to_le_bytes()[at % 4];
        }
        prop_assert_eq!(
            run(&mut machine, Program::new().fill(TARGET + to, 0x1122_3344, count as u32)),
            fault
        );
        for (page, (kind, _)) in target.iter().enumerate() {
            if *kind == Kind::Zero {
                written[page * 4096..][..4096].fill(0);
            }
        }
        prop_assert!(bytes(&machine, TARGET, &target) == written);
    }
}

/// Pages of a large one follow each other; those of the other side do not.
#[test]
fn mem_57_a_copy_between_large_and_small_pages() {
    let large = Physical::new(Place::Local, 0x40_0000);
    let count = 2 * LINE * PAGE_SIZE;

    for to_large in [false, true] {
        let mut machine = Machine::new();
        let at = BASE;
        let leaf = machine.entry_at(at);

        for page in 0..2 * LINE {
            machine.ram.put_page(large.plus(page * PAGE_SIZE));
        }
        machine.set_entry(leaf, Entry::to(large).writable());
        machine.set_entry(leaf.plus(8), Entry::to(large.plus(LARGE)).writable());

        let profile = Profile::VRAM4;
        let mut above = machine.root.table;

        for level in [3, 2] {
            let entry = profile.entry_at(above, profile.index(at, level));

            above = Entry::from_bits(machine.ram.word(entry).unwrap()).target();
        }
        machine.set_entry(
            profile.entry_at(above, profile.index(at, 1)),
            Entry::to(leaf).to_large_pages(),
        );
        machine.map_new(TARGET, PAGES);

        let (from, to) = if to_large { (TARGET, at) } else { (at, TARGET) };
        let place = |va: u64| match va >= at && va < at + count {
            true => large.plus(va - at),
            false => machine.find(va).unwrap(),
        };
        let (sources, targets): (Vec<_>, Vec<_>) = (0..2 * LINE)
            .map(|page| (place(from + page * PAGE_SIZE), place(to + page * PAGE_SIZE)))
            .unzip();

        for (page, source) in (1..).zip(&sources) {
            machine.ram.write(*source, &[page; 4096]).unwrap();
        }
        assert_eq!(
            run(&mut machine, Program::new().copy(from, to, count as u32)),
            None
        );
        for (page, target) in (1..).zip(&targets) {
            assert_eq!(machine.ram.read(*target, 4096).unwrap(), [page; 4096]);
        }
    }
}

/// The accesses by which a program moves bytes: how many bytes each of them moves.
fn moves(machine: &mut Machine, program: Program) -> (Vec<u32>, Option<PageFault>) {
    machine.ram.take_trace();

    let fault = run(machine, program);
    let moved = machine.ram.take_trace();
    let moved = moved.into_iter().filter_map(|event| match event {
        Event::Copy(_, _, bytes) | Event::Fill(_, _, bytes) => Some(bytes),
        _ => None,
    });

    (moved.collect(), fault)
}

/// What follows in memory is moved at once, up to the end of a line, of a slice, or of what follows
/// on the other side.
#[test]
fn gpu_41_pages_that_follow_each_other_are_moved_at_once() {
    let line = LARGE as u32;
    let page = PAGE_SIZE as u32;
    let follow = [(Kind::Writable, true); PAGES as usize];
    let mut gap = follow;

    gap[20].1 = false;
    for (source, target, expected) in [
        // The first line has 13 pages of the source, and 14 of the target.
        (
            follow,
            follow,
            vec![13 * page, page, 2 * page, 13 * page, page],
        ),
        (
            gap,
            follow,
            vec![13 * page, page, 2 * page, 4 * page, 9 * page, page],
        ),
    ] {
        let mut machine = Machine::new();

        map(&mut machine, SOURCE, &source, 1);
        map(&mut machine, TARGET, &target, 2);

        let (moved, fault) = moves(&mut machine, Program::new().copy(SOURCE, TARGET, 30 * page));

        assert_eq!((moved, fault), (expected, None));
    }

    let mut machine = Machine::new();
    let at = TARGET + 14 * PAGE_SIZE;

    map(&mut machine, TARGET, &follow, 2);

    let (moved, fault) = moves(&mut machine, Program::new().fill(at, 7, line + 100));

    assert_eq!((moved, fault), (vec![line, 100], None));
}

/// A page that is missing within what follows ends it, on either side, and nothing behind is moved.
#[test]
fn gpu_65_a_missing_page_among_those_that_follow_each_other() {
    for kind in [Kind::Invalid, Kind::Nowhere, Kind::ReadOnly] {
        for missing in [1, 7, 13, 14, 29] {
            let follow = [(Kind::Writable, true); PAGES as usize];
            let mut machine = Machine::new();
            let mut target = follow;

            target[missing].0 = kind;
            map(&mut machine, SOURCE, &follow, 1);
            map(&mut machine, TARGET, &target, 2);

            let size = 30 * PAGE_SIZE as u32;
            let fault = run(&mut machine, Program::new().copy(SOURCE, TARGET, size));

            assert_eq!(
                fault,
                Some(PageFault {
                    va: TARGET + missing as u64 * PAGE_SIZE,
                    write: true,
                    level: 0,
                    cause: refused(kind, true).unwrap(),
                })
            );

            let written = bytes(&machine, TARGET, &target);
            let read = bytes(&machine, SOURCE, &follow);
            let done = missing * PAGE_SIZE as usize;

            assert!(written[..done] == read[..done]);
            // Each byte says where it is, so nothing is equal.
            assert!(written[done..]
                .iter()
                .zip(&read[done..])
                .all(|(a, b)| a != b || *a == 0));
        }
    }
}

/// Entries of a page table are written page by page; those before a missing one are there.
#[test]
fn gpu_65_entries_that_cross_pages() {
    let words = PAGE_SIZE / 8;

    for (offset, count, missing) in [
        (3, 20, None),
        (510, 4, None),
        (5, 1600, None),
        (1, 600, Some(1)),
    ] {
        let mut machine = Machine::with(Privilege::Paging);
        let to = TARGET + offset * 8;

        for page in (0..4).filter(|page| missing != Some(*page)) {
            let memory = machine.new_page();

            machine.map(TARGET + page * PAGE_SIZE, Entry::to(memory).writable());
        }

        let program = Program::new().table_write(to, count, 0x1000, u64::MAX - 1);
        let fault = run(&mut machine, program);
        let done = match missing {
            Some(page) => page * words - offset,
            None => count.into(),
        };

        assert_eq!(
            fault.map(|fault| fault.va),
            missing.map(|page| TARGET + page * PAGE_SIZE)
        );
        for index in 0..done {
            let expected = 0x1000_u64.wrapping_sub(2 * index);

            assert_eq!(machine.word(to + index * 8), expected, "{index}");
        }
        if missing.is_none() {
            assert_eq!(machine.word(to + done * 8), 0);
        }
        assert_eq!(machine.word(to - 8), 0);
    }
}

/// GPU-42: other bytes than those of the ranges stay, in either direction.
#[test]
fn gpu_42_a_copy_to_where_it_comes_from() {
    let count = 20 * PAGE_SIZE;

    for distance in [8, 100, PAGE_SIZE, 3 * PAGE_SIZE + 24] {
        for is_up in [false, true] {
            let mut machine = Machine::new();
            let kinds = [(Kind::Writable, false); PAGES as usize];
            let (low, high) = (SOURCE + PAGE_SIZE, SOURCE + PAGE_SIZE + distance);
            let (from, to) = if is_up { (low, high) } else { (high, low) };

            map(&mut machine, SOURCE, &kinds, 7);

            let before = bytes(&machine, SOURCE, &kinds);

            assert_eq!(
                run(&mut machine, Program::new().copy(from, to, count as u32)),
                None
            );

            let after = bytes(&machine, SOURCE, &kinds);
            let at = |va: u64| (va - SOURCE) as usize;

            assert!(after[..at(to)] == before[..at(to)]);
            assert!(after[at(to + count)..] == before[at(to + count)..]);
        }
    }
}

/// Neighbours at the start of a line, with their entries and new pages for them.
struct Neighbours {
    machine: Machine,
    tlb: Tlb,
    old: Vec<Physical>,
    new: Vec<Physical>,
}

impl Neighbours {
    fn new() -> Self {
        let mut machine = Machine::bare(Privilege::Normal);
        let mut pages = || (0..LINE).map(|_| machine.new_page()).collect();
        let (old, new) = (pages(), pages());
        let profile = Profile::VRAM4;

        Self {
            machine,
            tlb: Tlb::new(profile).unwrap(),
            old,
            new,
        }
    }

    fn map(&mut self, page: u64, memory: Physical) {
        let entry = Entry::to(memory).writable();

        self.machine.map(BASE + page * PAGE_SIZE, entry);
    }

    fn find(&mut self, page: u64) -> Result<Target, Cause> {
        let va = BASE + page * PAGE_SIZE;

        self.tlb
            .translate(&self.machine.ram, &self.machine.root, va, WRITE)
            .map_err(|fault| fault.cause)
    }
}

/// One walk is enough for neighbours, and what it has found stays.
#[test]
fn gpu_66_entries_of_neighbours_are_read_together() {
    let mut all = Neighbours::new();

    for page in 0..LINE {
        all.map(page, all.old[page as usize]);
    }
    all.machine.ram.take_trace();
    assert_eq!(all.find(7), Ok(Target::Memory(all.old[7])));
    assert_eq!(all.machine.ram.take_trace().len(), 3 + LINE as usize);
    for page in 0..LINE {
        all.map(page, all.new[page as usize]);
        all.machine.ram.take_trace();
        assert_eq!(all.find(page), Ok(Target::Memory(all.old[page as usize])));
        assert_eq!(all.machine.ram.take_trace(), []);
    }
    // Others are not among them.
    all.map(LINE, all.new[0]);
    assert_eq!(all.find(LINE), Ok(Target::Memory(all.new[0])));
}

/// The table of a line is remembered for the next lines, until something is invalidated.
#[test]
fn gpu_66_a_table_is_remembered_until_something_is_invalidated() {
    for scope in [
        Scope::All,
        Scope::Process(PROCESS),
        Scope::Process(PROCESS + 1),
    ] {
        let mut all = Neighbours::new();
        let profile = Profile::VRAM4;
        let table = all.machine.new_page();
        let mut above = all.machine.root.table;

        for line in 0..3 {
            let at = BASE + line * LARGE;

            all.map(line * LINE, all.old[line as usize]);
            all.machine.set_entry(
                profile.entry_at(table, profile.index(at, 0)),
                Entry::to(all.new[line as usize]).writable(),
            );
        }
        for level in [3, 2] {
            let entry = profile.entry_at(above, profile.index(BASE, level));

            above = Entry::from_bits(all.machine.ram.word(entry).unwrap()).target();
        }
        assert_eq!(all.find(0), Ok(Target::Memory(all.old[0])));
        all.machine.set_entry(
            profile.entry_at(above, profile.index(BASE, 1)),
            Entry::to(table),
        );
        assert_eq!(all.find(LINE), Ok(Target::Memory(all.old[1])));
        // Any page.
        all.tlb.invalidate(scope, TARGET, TARGET);
        assert_eq!(all.find(2 * LINE), Ok(Target::Memory(all.new[2])));
    }
}

/// What becomes valid is found without an invalidation. Its neighbours stay what they were.
#[test]
fn gpu_66_a_new_entry_does_not_hide_a_missing_invalidation() {
    let mut all = Neighbours::new();

    all.map(3, all.old[3]);
    assert_eq!(all.find(3), Ok(Target::Memory(all.old[3])));
    assert_eq!(all.find(4), Err(Cause::Invalid));
    all.map(3, all.new[3]);
    all.map(4, all.new[4]);
    assert_eq!(all.find(4), Ok(Target::Memory(all.new[4])));
    assert_eq!(all.find(3), Ok(Target::Memory(all.old[3])));
}

/// The pages of an invalidation are forgotten, and no others.
#[test]
fn mem_58_an_invalidation_forgets_some_of_the_neighbours() {
    for scope in [Scope::All, Scope::Process(PROCESS)] {
        for (first, last) in [(0, 0), (5, 6), (15, 15), (0, 15), (9, 40), (20, 30)] {
            let mut all = Neighbours::new();

            for page in 0..LINE {
                all.map(page, all.old[page as usize]);
            }
            assert!(all.find(0).is_ok());
            for page in 0..LINE {
                all.map(page, all.new[page as usize]);
            }
            all.tlb.invalidate(
                scope,
                BASE + first * PAGE_SIZE + 8,
                BASE + last * PAGE_SIZE + 8,
            );
            // Those that stay are looked at first.
            for stays in [true, false] {
                for page in (0..LINE).filter(|page| (first..=last).contains(page) != stays) {
                    let pages = if stays { &all.old } else { &all.new };
                    let expected = pages[page as usize];

                    assert_eq!(all.find(page), Ok(Target::Memory(expected)));
                }
            }
        }
    }
}

/// A copy finds what it has learned of one side when it has learned of the other one.
#[test]
fn gpu_66_two_sides_that_are_a_power_of_two_apart_do_not_displace_each_other() {
    for shift in LARGE.trailing_zeros()..47 {
        let mut all = Neighbours::new();
        let pages = (1 << shift) / PAGE_SIZE;

        all.map(0, all.old[0]);
        all.map(pages, all.old[1]);
        assert_eq!(all.find(0), Ok(Target::Memory(all.old[0])));
        assert_eq!(all.find(pages), Ok(Target::Memory(all.old[1])));
        all.machine.ram.take_trace();
        assert!(all.find(0).is_ok());
        assert_eq!(all.machine.ram.take_trace(), [], "{shift}");
    }
}
