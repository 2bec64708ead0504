// SPDX-License-Identifier: MIT OR Apache-2.0

//! Creations of allocations, and private driver data.

use proptest::prelude::*;

use crate::logic::allocation_rules::{
    answered_flags, check_flags, check_standard, DriverData, Refused, Standard, DRIVER_DATA_SIZE,
};

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
        assert_eq!(check_flags(CREATE_SHARED | NT | (1 << bit)), Err(Refused));
    }
}

/// New memory is zero, whatever the caller says; existing memory is what it is.
#[test]
fn mem_3_the_answer_says_what_is_zero() {
    for (flags, answered) in [
        (0, ZEROED),
        (ZEROED, ZEROED),
        (CREATE_SHARED, CREATE_SHARED | ZEROED),
        (SYS_MEM, SYS_MEM),
        (SYS_MEM | ZEROED, SYS_MEM),
        (SECTION | ZEROED | CREATE_SHARED, SECTION | CREATE_SHARED),
    ] {
        assert_eq!(answered_flags(flags), answered, "{flags:#x}");
    }
}

#[test]
fn res_23_a_standard_allocation_is_one_existing_heap_of_pages() {
    let good = || Standard {
        driver_data_size: 0,
        count: 1,
        kind: 1,
        size: 0x3000,
        flags: 0,
    };
    type Change = (&'static str, fn(&mut Standard));
    const WRONG: [Change; 9] = [
        ("driver data", |it| it.driver_data_size = 1),
        ("no allocation", |it| it.count = 0),
        ("two allocations", |it| it.count = 2),
        ("kind 0", |it| it.kind = 0),
        ("kind 2", |it| it.kind = 2),
        ("no bytes", |it| it.size = 0),
        ("a byte more", |it| it.size = 0x3001),
        ("half a page", |it| it.size = 0x800),
        ("flags", |it| it.flags = 1),
    ];
    for memory in [SYS_MEM, SECTION] {
        assert_eq!(check_standard(&good(), memory), Ok(()));
        for (what, change) in WRONG {
            let mut standard = good();
            change(&mut standard);
            assert_eq!(check_standard(&standard, memory), Err(Refused), "{what}");
        }
    }
    // Nothing says where the memory is.
    assert_eq!(check_standard(&good(), CREATE_SHARED), Err(Refused));
    let large = Standard {
        size: u64::MAX & !0xfff,
        ..good()
    };
    assert_eq!(check_standard(&large, SYS_MEM), Ok(()));
}

/// The bytes of `struct opendxg_allocation_data`, field by field.
fn bytes(words: [u32; 12]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Two pages and 2^32 of them, a picture of 640 x 480, aligned to 64 KiB.
const GOOD: [u32; 12] = [
    0x4147_5844,
    1,
    0x2000,
    0x1000,
    640,
    1,
    2560,
    2,
    480,
    0x1_0000,
    0,
    0,
];

#[test]
fn res_20_driver_data_field_by_field() {
    let expected = DriverData {
        size: 0x1000_0000_2000,
        width: (1 << 32) | 640,
        pitch: (2 << 32) | 2560,
        height: 480,
        alignment: 0x1_0000,
    };
    assert_eq!(&bytes(GOOD)[..4], b"DXGA");
    assert_eq!(DriverData::decode(&bytes(GOOD)), Ok(expected));
    assert_eq!(expected.encode().to_vec(), bytes(GOOD));
}

#[test]
fn res_20_driver_data_that_is_not_understood() {
    for (word, value) in [
        (0, 0),
        (0, 0x4147_5845),
        (1, 0),
        (1, 2),
        (2, 0x2001),
        (2, 0x800),
        (9, 3),
        (9, 0x1_0001),
        (9, 0x2_0000),
        (9, 0x8000_0000),
        (10, 1),
        (11, 1),
    ] {
        let mut words = GOOD;
        words[word] = value;
        assert_eq!(
            DriverData::decode(&bytes(words)),
            Err(Refused),
            "{word}: {value:#x}"
        );
    }
    let mut empty = GOOD;
    (empty[2], empty[3]) = (0, 0);
    assert_eq!(DriverData::decode(&bytes(empty)), Err(Refused), "no bytes");
    for size in [0, 1, 4, 40, 47, 49, 96] {
        let mut data = bytes(GOOD);
        data.resize(size, 0);
        assert_eq!(DriverData::decode(&data), Err(Refused), "{size} bytes");
    }
}

#[test]
fn res_20_alignments_are_powers_of_two() {
    for alignment in core::iter::once(0).chain((0..=16).map(|bit| 1 << bit)) {
        let mut words = GOOD;
        words[9] = alignment;
        let decoded = DriverData::decode(&bytes(words));
        assert_eq!(decoded.map(|data| data.alignment), Ok(alignment));
    }
}

#[test]
fn res_26_a_standard_allocation_is_one_row() {
    let row = DriverData::linear(0x5000);
    assert_eq!((row.size, row.width, row.pitch), (0x5000, 0x5000, 0x5000));
    assert_eq!((row.height, row.alignment), (1, 0));
    assert_eq!(DriverData::decode(&row.encode()), Ok(row));
}

proptest! {
    #[test]
    fn driver_data_survives_the_way_there_and_back(
        pages in 1u64..1 << 52,
        width in any::<u64>(),
        pitch in any::<u64>(),
        height in any::<u32>(),
        shift in 0u32..17,
    ) {
        let data = DriverData { size: pages << 12, width, pitch, height, alignment: 1 << shift };
        prop_assert_eq!(DriverData::decode(&data.encode()), Ok(data));
    }

    /// Any bytes are refused, or are what they say.
    #[test]
    fn driver_data_of_anybody(mut data in proptest::collection::vec(any::<u8>(), 0..64), real in any::<bool>()) {
        if real && data.len() >= 8 {
            data[..8].copy_from_slice(&bytes(GOOD)[..8]);
        }
        if let Ok(decoded) = DriverData::decode(&data) {
            prop_assert_eq!(data.len(), DRIVER_DATA_SIZE);
            prop_assert_eq!(decoded.encode().to_vec(), data);
        }
    }
}
