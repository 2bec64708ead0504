// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables with pages of 64 KiB, and the cache that remembers pages of both sizes (GPU-63, MEM-57).

use proptest::prelude::*;

use super::machine::{Machine, PROCESS};
use crate::engine::fault::Cause;
use crate::engine::memory::{Memory, Physical, Place, PAGE_SIZE};
use crate::engine::page_table::{Entry, Profile};
use crate::engine::queue::Privilege;
use crate::engine::translation::{Access, Scope, Target, Tlb};

const READ: Access = Access {
    write: false,
    system: false,
};
const WRITE: Access = Access {
    write: true,
    system: false,
};

/// What a table of level 0 stands for, its pages, and those in a large one.
const LEAF: u64 = 2 << 20;
const PAGES: u64 = LEAF / PAGE_SIZE;
const LARGE: u64 = 64 << 10;
const PARTS: u64 = 16;

/// Where the table is that a test changes.
const BASE: u64 = 5 * LEAF;

/// A machine with an empty leaf table at [`BASE`], the entry that leads to it, and a cache.
struct Scene {
    machine: Machine,
    tlb: Tlb,
    above: Physical,
    leaf: Physical,
}

fn local(address: u64) -> Physical {
    Physical::new(Place::Local, address)
}

impl Scene {
    fn new() -> Self {
        let mut machine = Machine::bare(Privilege::Normal);
        let profile = Profile::VRAM4;
        let leaf = machine.entry_at(BASE);
        let mut above = machine.root.table;

        for level in [3, 2] {
            let at = profile.entry_at(above, profile.index(BASE, level));

            above = Entry::from_bits(machine.ram.load64(at).unwrap()).target();
        }
        Self {
            machine,
            tlb: Tlb::new(profile).unwrap(),
            above: profile.entry_at(above, profile.index(BASE, 1)),
            leaf,
        }
    }

    /// The table has pages of 64 KiB, or of 4 KiB.
    fn set_large(&mut self, is_large: bool) {
        let entry = Entry::to(self.leaf);

        self.machine.set_entry(
            self.above,
            match is_large {
                true => entry.to_large_pages(),
                false => entry,
            },
        );
    }

    fn set(&mut self, index: u64, entry: Entry) {
        self.machine.set_entry(self.leaf.plus(index * 8), entry);
    }

    fn find(&mut self, va: u64, access: Access) -> Result<Target, (u8, Cause)> {
        let Self { machine, tlb, .. } = self;

        tlb.translate(&machine.ram, &machine.root, va, access)
            .map_err(|fault| (fault.level, fault.cause))
    }
}

#[test]
fn mem_57_the_bit_of_an_entry_that_leads_to_large_pages() {
    let entry = Entry::to(local(0x3000)).to_large_pages();

    assert_eq!(entry.bits(), 0x3091);
    assert!(entry.leads_to_large_pages());
    assert!(!Entry::to(local(0x3000)).leads_to_large_pages());
    assert_eq!(entry.target(), local(0x3000));
    assert_eq!(
        (
            Profile::VRAM4.large_entries(),
            Profile::DOC2.large_entries()
        ),
        (32, 64)
    );
}

#[test]
fn mem_57_an_entry_of_a_large_page() {
    let mut scene = Scene::new();

    scene.set_large(true);
    scene.set(0, Entry::to(local(0x12_0000)).writable());
    // The low 16 bits come from the address (MEM-2), whatever the entry has there.
    scene.set(31, Entry::to(local(0x34_5000)));
    scene.set(7, Entry::ZERO);
    // It would be that of another page in a table of small ones.
    scene.set(32, Entry::to(local(0x77_0000)).writable());

    for (va, access, expected) in [
        (BASE, WRITE, Ok(Target::Memory(local(0x12_0000)))),
        (BASE + 0xf238, WRITE, Ok(Target::Memory(local(0x12_f238)))),
        (BASE + LARGE, READ, Err((0, Cause::Invalid))),
        (BASE + 7 * LARGE + 0x8000, WRITE, Ok(Target::Zero)),
        (
            BASE + 31 * LARGE + 0x5008,
            READ,
            Ok(Target::Memory(local(0x34_5008))),
        ),
        (BASE + LEAF - 8, WRITE, Err((0, Cause::WriteProtected))),
        (BASE + LEAF, READ, Err((1, Cause::Invalid))),
        (BASE + 2 * LARGE, READ, Err((0, Cause::Invalid))),
    ] {
        for _ in 0..2 {
            assert_eq!(scene.find(va, access), expected, "{va:#x}");
        }
    }
}

/// One look at the tables is enough for all of a large page, and one address of it is enough to
/// forget it.
#[test]
fn mem_58_a_large_page_is_remembered_and_forgotten_as_one() {
    for (scope, first, last) in [
        (Scope::Process(PROCESS), BASE + 0x3000, BASE + 0x3fff),
        (Scope::Process(PROCESS), BASE, BASE + LEAF - 1),
        (Scope::All, BASE + 0xffff, BASE + 0xffff),
    ] {
        let mut scene = Scene::new();

        scene.set_large(true);
        scene.set(0, Entry::to(local(0x12_0000)));
        assert!(scene.find(BASE + 0x7000, READ).is_ok());
        scene.machine.ram.take_trace();
        for part in 0..PARTS {
            assert!(scene.find(BASE + part * PAGE_SIZE, READ).is_ok());
        }
        assert_eq!(scene.machine.ram.take_trace(), []);
        scene.set(0, Entry::INVALID);
        // What is around it does not matter.
        scene.tlb.invalidate(scope, BASE + LARGE, BASE + LARGE);
        scene.tlb.invalidate(scope, BASE - 1, BASE - 1);
        assert!(scene.find(BASE, READ).is_ok());
        scene.tlb.invalidate(scope, first, last);
        for part in 0..PARTS {
            assert_eq!(
                scene.find(BASE + part * PAGE_SIZE, READ),
                Err((0, Cause::Invalid))
            );
        }
    }
}

/// A step: which page, where it leads to, whether as a whole large one, which pages are looked at
/// before, and whose translations are invalidated.
type Step = (u64, u64, bool, Vec<u64>, u8);

proptest! {
    /// MEM-57, MEM-58: tables of both kinds take turns, in any order. Who invalidates what has
    /// changed never sees what was there before.
    #[test]
    fn mem_57_pages_of_both_sizes_take_turns(
        steps in proptest::collection::vec(
            (
                0..PAGES,
                1..4096u64,
                any::<bool>(),
                proptest::collection::vec(0..PAGES, 0..8),
                0..3u8,
            ),
            1..60,
        ),
    ) {
        let mut scene = Scene::new();
        let mut model: Vec<Option<u64>> = vec![None; PAGES as usize];
        let mut was_large = false;
        let steps: Vec<Step> = steps;

        for (page, frame, is_large, known, scope) in steps {
            for page in known {
                let _remembered = scene.find(BASE + page * PAGE_SIZE, WRITE);
            }

            // What changes; a table of the other kind says the same of the rest, if it can.
            let (mut first, mut end) = (page, page + 1);

            if is_large {
                (first, end) = (page / PARTS * PARTS, page / PARTS * PARTS + PARTS);
                if !was_large {
                    model.fill(None);
                    (first, end) = (0, PAGES);
                }
                for part in 0..PARTS {
                    model[(page / PARTS * PARTS + part) as usize] = Some(frame * PARTS + part);
                }
            } else {
                model[page as usize] = Some(frame);
            }
            was_large = is_large;
            scene.set_large(is_large);

            let step = if is_large { PARTS } else { 1 };

            for index in 0..PAGES / step {
                let entry = model[(index * step) as usize].map_or(Entry::INVALID, |frame| {
                    Entry::to(local(frame * PAGE_SIZE)).writable()
                });

                scene.set(index, entry);
            }

            let scope = match scope {
                0 => Scope::All,
                1 => Scope::Process(PROCESS),
                _ => Scope::Root(scene.machine.root.table),
            };

            scene
                .tlb
                .invalidate(scope, BASE + first * PAGE_SIZE, BASE + end * PAGE_SIZE - 1);
            for (page, frame) in (0..).zip(&model) {
                let expected = match frame {
                    Some(frame) => Ok(Target::Memory(local(frame * PAGE_SIZE + 8))),
                    None => Err((0, Cause::Invalid)),
                };

                prop_assert_eq!(scene.find(BASE + page * PAGE_SIZE + 8, WRITE), expected);
            }
        }
    }
}
