// SPDX-License-Identifier: MIT OR Apache-2.0

//! Page tables and the cache in front of them (GPU-63, GPU-64, GPU-66).

use super::machine::{Event, Machine, DATA, PROCESS};
use super::program::Program;
use crate::engine::command_processor::Outcome;
use crate::engine::fault::{Cause, PageFault};
use crate::engine::memory::{Memory, Physical, Place, PAGE_SIZE};
use crate::engine::page_table::{Entry, Profile};
use crate::engine::queue::Privilege;
use crate::engine::translation::{Access, Root, Scope, Target, Tlb};

const READ: Access = Access {
    write: false,
    system: false,
};
const WRITE: Access = Access {
    write: true,
    system: false,
};

#[test]
fn gpu_64_bits_of_an_entry() {
    let at = |place| Physical::new(place, 0x000f_ffff_ffff_f000);

    for (entry, bits) in [
        (Entry::INVALID, 0),
        (Entry::ZERO, 0x9),
        (Entry::to(Physical::new(Place::System, 0)), 0x1),
        (Entry::to(Physical::new(Place::Local, 0x1000)), 0x1011),
        (Entry::to(Physical::new(Place::Aperture, 0x1000)), 0x1021),
        (
            Entry::to(Physical::new(Place::Peer, 0xabc0_0000_0000_1000)),
            0xabc0_0000_0000_1031,
        ),
        (Entry::to(at(Place::System)), 0x000f_ffff_ffff_f001),
        (
            Entry::to(at(Place::System)).writable(),
            0x000f_ffff_ffff_f003,
        ),
        (Entry::to(Physical::new(Place::Local, 0)).executable(), 0x15),
        (
            Entry::to(Physical::new(Place::Local, 0)).system_only(),
            0x51,
        ),
    ] {
        assert_eq!(entry.bits(), bits);
        assert_eq!(Entry::from_bits(bits), entry);
    }
    // What does not fit is not in an entry.
    assert_eq!(
        Entry::to(Physical::new(Place::System, u64::MAX)).bits(),
        0x000f_ffff_ffff_f001
    );
}

#[test]
fn gpu_64_an_entry_says_what_it_was_made_of() {
    for place in [Place::System, Place::Local, Place::Aperture, Place::Peer] {
        for address in [0, 0x1000, 0x000f_ffff_ffff_f000] {
            let target = Physical::new(place, address);
            let entry = Entry::to(target);

            assert!(entry.is_valid() && !entry.is_writable() && !entry.is_zero());
            assert!(!entry.is_system_only());
            assert_eq!(entry.target(), target);
            assert!(entry.writable().is_writable());
            assert_eq!(entry.writable().system_only().target(), target);
            assert!(entry.system_only().is_system_only());
        }
    }

    let peer = Physical::new(Place::Peer, 0xffff_ffff_ffff_f000);

    assert_eq!(Entry::to(peer).target(), peer);
    // Bits 63:52 of what is no peer's are ignored.
    assert_eq!(
        Entry::from_bits(0xfff0_0000_0000_1001).target(),
        Physical::new(Place::System, 0x1000)
    );
}

#[test]
fn profiles_of_the_specification() {
    let vram4 = Profile::VRAM4;
    let doc2 = Profile::DOC2;

    assert_eq!(
        (vram4.va_bits(), vram4.entries(), vram4.table_bytes()),
        (48, 512, 4096)
    );
    assert_eq!(
        (doc2.va_bits(), doc2.entries(), doc2.table_bytes()),
        (32, 1024, 4096)
    );

    let va = 0x1_2345_6789_a000 & ((1 << 48) - 1);

    for level in 0..4 {
        assert_eq!(
            u64::from(vram4.index(va, level)),
            (va >> (12 + 9 * level)) & 511
        );
    }
    assert_eq!(doc2.index(0xffff_f000, 0), 1023);
    assert_eq!(doc2.index(0xffff_f000, 1), 1023);
    assert_eq!(doc2.index(0x0040_0000, 1), 1);
    // A leaf table of doc2 is 4 MiB.
    assert_eq!(doc2.index(0x003f_f000, 1), 0);
}

/// A cache, and a machine of which only memory and tables are used.
fn new() -> (Machine, Tlb) {
    (
        Machine::bare(Privilege::Normal),
        Tlb::new(Profile::VRAM4).unwrap(),
    )
}

#[test]
fn gpu_63_a_walk_ends_at_the_level_that_is_missing() {
    let va = 0x1234_5678_9000;

    for level in 0..4 {
        for write in [false, true] {
            let (mut machine, mut tlb) = new();
            let page = machine.new_page();

            machine.map(va, Entry::to(page).writable());

            // The entry of that level goes.
            let mut table = machine.root.table;
            let mut at = table;

            for level in (level..4).rev() {
                at = table.plus(((va >> (12 + 9 * level)) & 511) * 8);
                table = Entry::from_bits(machine.ram.word(at).unwrap()).target();
            }

            let access = Access { write, ..READ };
            let mut expect = |machine: &Machine, cause| {
                assert_eq!(
                    tlb.translate(&machine.ram, &machine.root, va + 0x123, access),
                    Err(PageFault {
                        va: va + 0x123,
                        write,
                        level,
                        cause,
                    })
                );
            };

            machine.set_entry(at, Entry::INVALID);
            expect(&machine, Cause::Invalid);
            // A table that is nowhere is found at the level below it.
            if level != 0 {
                let nowhere = Physical::new(Place::Local, 0x7777_0000);

                machine.set_entry(at, Entry::to(nowhere));

                assert_eq!(
                    tlb.translate(&machine.ram, &machine.root, va, access)
                        .map_err(|fault| (fault.level, fault.cause)),
                    Err((level - 1, Cause::NoMemory))
                );
            }
        }
    }
}

#[test]
fn mem_59_the_root_has_so_many_entries() {
    let (mut machine, mut tlb) = new();
    let page = machine.new_page();
    let va = 5 << 39;

    machine.map(va, Entry::to(page));
    for (entries, is_there) in [(0, false), (1, false), (5, false), (6, true), (512, true)] {
        let root = Root {
            entries,
            process: entries as u16,
            ..machine.root
        };
        let found = tlb.translate(&machine.ram, &root, va, READ);

        if is_there {
            assert_eq!(found, Ok(Target::Memory(page)));
        } else {
            let fault = found.unwrap_err();

            assert_eq!((fault.level, fault.cause), (3, Cause::Range));
        }
    }
}

#[test]
fn addresses_have_48_bits() {
    let (mut machine, mut tlb) = new();
    let page = machine.new_page();

    machine.map(0x1000, Entry::to(page));
    machine.map(0xffff_ffff_f000, Entry::to(page));
    assert_eq!(
        tlb.translate(&machine.ram, &machine.root, 0xffff_ffff_ffff, READ),
        Ok(Target::Memory(page.plus(0xfff)))
    );
    for va in [
        0x1_0000_0000_1000,
        0xffff_8000_0000_0000,
        u64::MAX,
        (1 << 63) | 0x1000,
    ] {
        let fault = tlb
            .translate(&machine.ram, &machine.root, va, READ)
            .unwrap_err();

        assert_eq!((fault.va, fault.level, fault.cause), (va, 3, Cause::Range));
    }
}

#[test]
fn rights_are_those_of_the_page() {
    let (mut machine, mut tlb) = new();
    let page = machine.new_page();
    let read_only = Entry::to(page);
    let mut expect = |machine: &Machine, access, expected: Result<Target, Cause>| {
        // From the tables, and from the cache.
        for _ in 0..2 {
            assert_eq!(
                tlb.translate(&machine.ram, &machine.root, DATA + 8, access)
                    .map_err(|fault| fault.cause),
                expected
            );
        }
        tlb.invalidate(Scope::All, 0, u64::MAX);
    };
    let system = |write| Access {
        write,
        system: true,
    };
    let found = Ok(Target::Memory(page.plus(8)));

    for (entry, read, write, system_read, system_write) in [
        (
            read_only,
            found,
            Err(Cause::WriteProtected),
            found,
            Err(Cause::WriteProtected),
        ),
        (read_only.writable(), found, found, found, found),
        (
            read_only.writable().system_only(),
            Err(Cause::SystemUseOnly),
            Err(Cause::SystemUseOnly),
            found,
            found,
        ),
        (
            Entry::ZERO,
            Ok(Target::Zero),
            Ok(Target::Zero),
            Ok(Target::Zero),
            Ok(Target::Zero),
        ),
    ] {
        machine.map(DATA, entry);
        expect(&machine, READ, read);
        expect(&machine, WRITE, write);
        expect(&machine, system(false), system_read);
        expect(&machine, system(true), system_write);
    }
}

#[test]
fn a_zero_entry_of_a_directory_is_a_range_of_zero_pages() {
    for level in 1..4 {
        let (machine, mut tlb) = new();
        let profile = Profile::VRAM4;
        let va = 3_u64 << 39;
        let mut table = machine.root.table;

        for above in (level + 1..4).rev() {
            let at = profile.entry_at(table, profile.index(va, above));

            table = Physical::new(Place::Local, 0x10_0000 * u64::from(above));
            machine.ram.put_page(table);
            machine.set_entry(at, Entry::to(table));
        }
        machine.set_entry(
            profile.entry_at(table, profile.index(va, level)),
            Entry::ZERO,
        );

        let last = va + (1 << (12 + 9 * level)) - 1;

        for va in [va, last] {
            assert_eq!(
                tlb.translate(&machine.ram, &machine.root, va, WRITE),
                Ok(Target::Zero)
            );
        }
        assert!(tlb
            .translate(&machine.ram, &machine.root, last + 1, READ)
            .is_err());
    }
}

#[test]
fn doc2_has_two_levels_of_short_entries() {
    let machine = Machine::bare(Privilege::Normal);
    let mut tlb = Tlb::new(Profile::DOC2).unwrap();
    let (root, leaf) = (0x10_0000, 0x20_0000);
    let page = Physical::new(Place::System, 0x3000);

    for table in [root, leaf] {
        machine.ram.put_page(Physical::new(Place::Local, table));
    }

    let at = |table, index: u64| Physical::new(Place::Local, table + index * 4);
    let entry = |target| Entry::to(target).writable().bits() as u32;

    machine
        .ram
        .store32(at(root, 3), entry(Physical::new(Place::Local, leaf)));
    machine.ram.store32(at(leaf, 1023), entry(page));

    let root = Root {
        table: Physical::new(Place::Local, root),
        entries: 4,
        process: 1,
    };

    for (va, expected) in [
        (0x00ff_f008, Ok(Target::Memory(page.plus(8)))),
        (0x00ff_e008, Err((0, Cause::Invalid))),
        (0x0080_0000, Err((1, Cause::Invalid))),
        // Beyond the root's entries, and beyond 32 bits.
        (0x0100_0000, Err((1, Cause::Range))),
        (0x1_00ff_f008, Err((1, Cause::Range))),
    ] {
        assert_eq!(
            tlb.translate(&machine.ram, &root, va, WRITE)
                .map_err(|fault| (fault.level, fault.cause)),
            expected,
            "{va:#x}"
        );
    }
}

#[test]
fn gpu_66_gpu_113_the_cache_is_sticky_until_it_is_invalidated() {
    let (mut machine, mut tlb) = new();
    let (old, new) = (machine.new_page(), machine.new_page());
    let find =
        |machine: &Machine, tlb: &mut Tlb| tlb.translate(&machine.ram, &machine.root, DATA, WRITE);

    machine.map(DATA, Entry::to(old).writable());
    assert_eq!(find(&machine, &mut tlb), Ok(Target::Memory(old)));
    machine.ram.take_trace();

    // Whatever becomes of the entry, and without a look at it.
    for entry in [
        Entry::to(new).writable(),
        Entry::INVALID,
        Entry::ZERO,
        Entry::to(new),
    ] {
        machine.map(DATA, entry);
        assert_eq!(find(&machine, &mut tlb), Ok(Target::Memory(old)));
        assert_eq!(machine.ram.take_trace(), []);
    }

    // Nobody else's invalidation helps.
    for (scope, first, last) in [
        (Scope::Process(PROCESS + 1), 0, u64::MAX),
        (Scope::Root(machine.root.table.plus(PAGE_SIZE)), 0, u64::MAX),
        (Scope::All, DATA + PAGE_SIZE, u64::MAX),
        (Scope::All, 0, DATA - 1),
        // Backwards: nothing.
        (Scope::All, u64::MAX, 0),
    ] {
        tlb.invalidate(scope, first, last);
        assert_eq!(find(&machine, &mut tlb), Ok(Target::Memory(old)));
    }

    machine.map(DATA, Entry::to(new).writable());
    for (scope, first, last) in [
        (Scope::Process(PROCESS), 0, u64::MAX),
        (Scope::Root(machine.root.table), DATA, DATA),
        (Scope::All, DATA + PAGE_SIZE - 1, DATA + PAGE_SIZE - 1),
    ] {
        tlb.invalidate(scope, first, last);
        assert_eq!(find(&machine, &mut tlb), Ok(Target::Memory(new)));
        // Back to the old one, unseen.
        machine.map(DATA, Entry::to(old).writable());
        assert_eq!(find(&machine, &mut tlb), Ok(Target::Memory(new)));
        machine.map(DATA, Entry::to(new).writable());
    }
}

#[test]
fn gpu_66_what_is_not_valid_is_not_remembered() {
    let (mut machine, mut tlb) = new();
    let page = machine.new_page();
    let root = machine.root;

    assert!(tlb.translate(&machine.ram, &root, DATA, READ).is_err());
    machine.map(DATA, Entry::to(page));
    assert!(tlb.translate(&machine.ram, &root, DATA, READ).is_ok());
    // A write that is refused now is refused until the invalidation.
    machine.map(DATA, Entry::to(page).writable());
    assert!(tlb.translate(&machine.ram, &root, DATA, WRITE).is_err());
    tlb.invalidate(Scope::All, 0, u64::MAX);
    assert!(tlb.translate(&machine.ram, &root, DATA, WRITE).is_ok());
}

#[test]
fn translations_belong_to_a_process_and_a_root() {
    let (mut machine, mut tlb) = new();
    let page = machine.new_page();

    machine.map(DATA, Entry::to(page));

    // The same place in the cache, for other processes or from other tables.
    let empty = Physical::new(Place::Local, 0x9_0000);

    machine.ram.put_page(empty);
    for _ in 0..2 {
        assert!(tlb
            .translate(&machine.ram, &machine.root, DATA, READ)
            .is_ok());

        let moved = Root {
            table: empty,
            ..machine.root
        };

        assert!(tlb.translate(&machine.ram, &moved, DATA, READ).is_err());
        for process in 0..u16::MAX {
            let other = Root { process, ..moved };

            assert!(tlb.translate(&machine.ram, &other, DATA, READ).is_err());
        }
    }
}

#[test]
fn gpu_66_a_missing_invalidation_shows_and_none_is_missing_with_it() {
    let mut machine = Machine::new();
    let (old, new) = (machine.find(DATA).unwrap(), machine.new_page());

    machine.set_word(DATA, 1);
    machine.ram.write(new, &[2]).unwrap();
    machine.done(&Program::new().copy(DATA, DATA + PAGE_SIZE, 8).0);

    // Unmapped and used for something else, without an invalidation.
    machine.map(DATA, Entry::to(new).writable());
    machine.done(&Program::new().copy(DATA, DATA + PAGE_SIZE, 8).0);
    assert_eq!(machine.word(DATA + PAGE_SIZE), 1, "the old page");
    machine.done(&Program::new().write(DATA, &[7]).0);
    assert_eq!(machine.ram.word(old), Some(7));

    // With one, no access goes to the old page.
    machine
        .engine
        .invalidate(Scope::Process(PROCESS), DATA, DATA);
    machine.ram.take_trace();
    machine.done(
        &Program::new()
            .copy(DATA, DATA + PAGE_SIZE, 8)
            .write(DATA, &[9])
            .0,
    );
    assert_eq!(machine.word(DATA + PAGE_SIZE), 2, "the new page");
    assert_eq!(machine.ram.word(old), Some(7));
    assert!(!machine
        .ram
        .take_trace()
        .iter()
        .any(|event| matches!(event, Event::Store32(at, _) if *at == old)));
}

#[test]
fn another_root_is_used_from_the_next_step_on() {
    let mut machine = Machine::new();

    machine.submit(&[0x8000_0000; 8]);
    assert_eq!(machine.step(1), Outcome::Ran);
    machine.queue.set_root(Root {
        entries: 0,
        ..machine.root
    });
    // The cache was not invalidated: the root table is the same one.
    assert_eq!(machine.step(1), Outcome::Ran);

    let empty = Physical::new(Place::Local, 0x9_0000);

    machine.ram.put_page(empty);
    machine.queue.set_root(Root {
        table: empty,
        ..machine.root
    });
    assert!(matches!(machine.step(1), Outcome::Faulted(_)));
}
