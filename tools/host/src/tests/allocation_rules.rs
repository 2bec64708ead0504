// SPDX-License-Identifier: MIT OR Apache-2.0

//! Creations of allocations.

use crate::logic::allocation_rules::{
    answered_flags, Creation, Existing, Source, Standard, MAX_ALLOCATIONS, MAX_PRIVATE_DATA,
};
use crate::logic::Invalid;

/// A creation of one allocation with these flags.
fn creation(flags: u32) -> Creation {
    Creation {
        flags,
        count: 1,
        has_infos: true,
        driver_data_size: 0,
        runtime_data_size: 0,
        standard: None,
    }
}

fn check_flags(flags: u32) -> Result<(), Invalid> {
    creation(flags).check_flags()
}

const PAGE: u64 = 4096;
const CREATE_RESOURCE: u32 = 1 << 0;
const CREATE_SHARED: u32 = 1 << 1;
const SYS_MEM: u32 = 1 << 5;
const NT: u32 = 1 << 6;
const ZEROED: u32 = 1 << 14;
const SECTION: u32 = 1 << 17;

/// Numbers of the bits that are accepted.
const ACCEPTED: [u32; 15] = [0, 1, 2, 4, 5, 6, 7, 10, 11, 14, 16, 17, 18, 19, 20];

#[test]
fn res_19_every_bit_alone() {
    for bit in 0..32 {
        // An NT handle needs something that is shared.
        let expected = ACCEPTED.contains(&bit) && 1 << bit != NT;
        assert_eq!(check_flags(1 << bit).is_ok(), expected, "bit {bit}");
    }
    assert_eq!(check_flags(0), Ok(()));
}

#[test]
fn res_19_every_combination_of_known_bits() {
    for chosen in 0u32..1 << ACCEPTED.len() {
        let flags = (0..ACCEPTED.len())
            .filter(|at| chosen & (1 << at) != 0)
            .fold(0, |flags, at| flags | (1 << ACCEPTED[at]));
        let set = |mask| flags & mask == mask;
        let broken = set(NT) && !set(CREATE_SHARED) || set(SYS_MEM | SECTION);
        assert_eq!(check_flags(flags).is_err(), broken, "{flags:#x}");
    }
}

#[test]
fn res_19_an_unknown_bit_spoils_good_ones() {
    for bit in (0..32).filter(|bit| !ACCEPTED.contains(bit)) {
        assert_eq!(check_flags(CREATE_SHARED | NT | (1 << bit)), Err(Invalid));
    }
}

/// New memory is zero, whatever the caller says; existing memory is what it is.
#[test]
fn mem_3_the_answer_says_what_is_zero() {
    for (flags, zeroed, answered) in [
        (0, true, ZEROED),
        (ZEROED, true, ZEROED),
        (CREATE_SHARED, true, CREATE_SHARED | ZEROED),
        (0, false, 0),
        (SYS_MEM, false, SYS_MEM),
        (SYS_MEM | ZEROED, false, SYS_MEM),
        (
            SECTION | ZEROED | CREATE_SHARED,
            false,
            SECTION | CREATE_SHARED,
        ),
    ] {
        assert_eq!(answered_flags(flags, zeroed), answered, "{flags:#x}");
    }
}

/// An address is that of the caller's memory, with or without the flag.
#[test]
fn res_21_where_the_bytes_are() {
    for flags in [0, CREATE_SHARED] {
        assert_eq!(Source::new(flags, 0, PAGE), Ok(Source::New));
    }
    for flags in [0, CREATE_SHARED, SYS_MEM] {
        let high = u64::MAX & !0xfff;

        for address in [PAGE, 0x7fff_0000, high] {
            assert_eq!(
                Source::new(flags, address, PAGE),
                Ok(Source::Caller(address))
            );
        }
        for address in [1, PAGE - 1, PAGE + 8, u64::MAX] {
            assert_eq!(Source::new(flags, address, PAGE), Err(Invalid));
        }
        // Larger pages: an address in the middle of one would show the bytes before it.
        assert_eq!(Source::new(flags, PAGE, 4 * PAGE), Err(Invalid));
    }
    assert_eq!(Source::new(SYS_MEM, 0, PAGE), Err(Invalid));
    for value in [0, 3, PAGE] {
        assert_eq!(
            Source::new(SECTION, value, PAGE),
            Ok(Source::Section(value))
        );
    }
}

fn standard(kind: u32) -> Standard {
    Standard {
        driver_data_size: 0,
        count: 1,
        kind,
        size: 0x3000,
        flags: 0,
        existing: Some(if kind == 1 { PAGE } else { 0 }),
    }
}

type Change = (&'static str, fn(&mut Standard));

/// What is wrong with either type.
const WRONG: [Change; 10] = [
    ("no array", |it| it.existing = None),
    ("driver data", |it| it.driver_data_size = 1),
    ("no allocation", |it| it.count = 0),
    ("two allocations", |it| it.count = 2),
    ("kind 0", |it| it.kind = 0),
    ("kind 3", |it| it.kind = 3),
    ("no bytes", |it| it.size = 0),
    ("a byte more", |it| it.size = 0x3001),
    ("half a page", |it| it.size = 0x800),
    ("flags", |it| it.flags = 1),
];

fn spoilt(kind: u32, flags: u32) {
    for (what, change) in WRONG {
        let mut standard = standard(kind);
        change(&mut standard);
        assert_eq!(standard.check(flags, PAGE), Err(Invalid), "{kind}: {what}");
    }
}

#[test]
fn res_19_an_existing_heap_is_memory_that_is_there() {
    for memory in [SYS_MEM, SECTION] {
        let mut good = standard(1);
        assert_eq!(good.check(memory, PAGE), Ok(()));
        good.existing = Some(0x5000);
        assert_eq!(good.check(memory, PAGE), Ok(()));
        assert!(!good.is_cross_adapter());
        good.size = u64::MAX & !0xfff;
        assert_eq!(good.check(memory, PAGE), Ok(()));
        spoilt(1, memory);
    }
    for address in [0, 1, PAGE + 8] {
        let mut unaligned = standard(1);
        unaligned.existing = Some(address);
        assert_eq!(unaligned.check(SYS_MEM, PAGE), Err(Invalid), "{address:#x}");
        // The number of a descriptor is looked at when the file is.
        assert_eq!(unaligned.check(SECTION, PAGE), Ok(()), "{address:#x}");
    }
    assert_eq!(standard(1).check(SYS_MEM, 4 * PAGE), Err(Invalid));
    // Nothing says where the memory is.
    assert_eq!(standard(1).check(CREATE_SHARED, PAGE), Err(Invalid));
}

#[test]
fn res_19_a_cross_adapter_allocation_is_memory_of_ours() {
    for flags in [0, CREATE_SHARED, CREATE_SHARED | NT] {
        assert_eq!(standard(2).check(flags, PAGE), Ok(()));
        assert!(standard(2).is_cross_adapter());
        spoilt(2, flags);

        let mut existing = standard(2);
        existing.existing = Some(0x1000);
        assert_eq!(existing.check(flags, PAGE), Err(Invalid));
    }
    for memory in [SYS_MEM, SECTION] {
        assert_eq!(standard(2).check(memory, PAGE), Err(Invalid));
    }
}

#[test]
fn res_19_existing_memory_only_for_standard_allocations() {
    for (flags, good) in [
        (0, true),
        (SYS_MEM, false),
        (SECTION, false),
        (1 << 16, false),
    ] {
        assert_eq!(
            creation(flags).check_standard(PAGE, false).is_ok(),
            good,
            "{flags:#x}"
        );
    }
}

#[test]
fn res_19_a_standard_allocation_is_described() {
    for (flags, address, expected) in [
        (0, 0, Ok(false)),
        (0, 0x1000, Ok(false)),
        (1 << 16, 0x1000, Ok(true)),
        (1 << 16, 0, Err(Invalid)),
    ] {
        assert_eq!(
            creation(flags).describes_standard(address),
            expected,
            "{flags:#x} {address:#x}"
        );
    }
}

#[test]
fn res_19_every_entry_of_the_array() {
    for (flags, reserved_is_zero, size, good) in [
        (0, true, 0, true),
        (7, true, MAX_PRIVATE_DATA, true),
        (8, true, 0, false),
        ((1 << 31) | 1, true, 0, false),
        (0, false, 0, false),
        (0, true, MAX_PRIVATE_DATA + 1, false),
    ] {
        assert_eq!(
            Creation::check_entry(flags, reserved_is_zero, size).is_ok(),
            good,
            "{flags:#x} {reserved_is_zero} {size}"
        );
    }
}

#[test]
fn res_24_a_resource_that_can_be_added_to() {
    let good = Existing {
        same_device: true,
        is_whole: true,
        shared: false,
    };
    assert_eq!(creation(0).check_existing(good), Ok(()));
    for flags in [CREATE_RESOURCE, 1 << 16] {
        assert_eq!(creation(flags).check_existing(good), Err(Invalid));
    }
    for bad in [
        Existing {
            same_device: false,
            ..good
        },
        Existing {
            is_whole: false,
            ..good
        },
        Existing {
            shared: true,
            ..good
        },
    ] {
        assert_eq!(creation(0).check_existing(bad), Err(Invalid));
    }
}

#[test]
fn res_19_numbers_and_sizes() {
    let alone = creation(0);
    let resource = creation(CREATE_RESOURCE);
    let shared = creation(CREATE_SHARED);
    let both = creation(CREATE_RESOURCE | CREATE_SHARED);
    for (good, creation) in [
        (true, alone),
        (true, resource),
        (false, shared),
        (true, both),
        (false, Creation { count: 0, ..alone }),
        (
            true,
            Creation {
                count: 0,
                ..resource
            },
        ),
        (
            true,
            Creation {
                count: 0,
                has_infos: false,
                ..resource
            },
        ),
        (
            false,
            Creation {
                has_infos: false,
                ..resource
            },
        ),
        (
            true,
            Creation {
                count: MAX_ALLOCATIONS,
                ..alone
            },
        ),
        (
            false,
            Creation {
                count: MAX_ALLOCATIONS + 1,
                ..alone
            },
        ),
        (
            true,
            Creation {
                driver_data_size: MAX_PRIVATE_DATA,
                ..alone
            },
        ),
        (
            false,
            Creation {
                driver_data_size: MAX_PRIVATE_DATA + 1,
                ..alone
            },
        ),
        (
            true,
            Creation {
                runtime_data_size: MAX_PRIVATE_DATA,
                ..alone
            },
        ),
        (
            false,
            Creation {
                runtime_data_size: MAX_PRIVATE_DATA + 1,
                ..alone
            },
        ),
    ] {
        assert_eq!(creation.check_sizes().is_ok(), good);
        // What cannot be copied is refused by the rule.
        assert!(creation.has_readable_infos() || creation.count == 0 || !good);
    }
}

/// RES-23 amended: private data that the driver does not know, over memory of the caller, with or
/// without the flag.
#[test]
fn res_23_memory_of_the_caller_with_driver_data() {
    for (flags, data, good) in [
        (0, false, true),
        (0, true, true),
        (SYS_MEM, true, true),
        (SYS_MEM, false, false),
        (SECTION, true, false),
        (1 << 16, true, false),
    ] {
        assert_eq!(
            creation(flags).check_standard(PAGE, data).is_ok(),
            good,
            "{flags:#x} {data}"
        );
    }
}
