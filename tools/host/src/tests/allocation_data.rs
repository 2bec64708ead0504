// SPDX-License-Identifier: MIT OR Apache-2.0

//! Private driver data of allocations of the software adapter.

use proptest::prelude::*;

use crate::{
    ddi::types::KmdError::InvalidParameter,
    kmd::soft::allocation_data::{DriverData, DRIVER_DATA_SIZE},
};

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
        local: false,
        accessed_physically: false,
        notify_residency: false,
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
        (10, 8),
        (10, 1 << 31),
        (11, 1),
    ] {
        let mut words = GOOD;
        words[word] = value;
        assert_eq!(
            DriverData::decode(&bytes(words)),
            Err(InvalidParameter),
            "{word}: {value:#x}"
        );
    }
    let mut empty = GOOD;
    (empty[2], empty[3]) = (0, 0);
    assert_eq!(
        DriverData::decode(&bytes(empty)),
        Err(InvalidParameter),
        "no bytes"
    );
    for size in [0, 1, 4, 40, 47, 49, 96] {
        let mut data = bytes(GOOD);
        data.resize(size, 0);
        assert_eq!(
            DriverData::decode(&data),
            Err(InvalidParameter),
            "{size} bytes"
        );
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
fn mem_3_an_allocation_may_ask_for_local_memory_and_for_one_range() {
    for (word, local, physical) in [
        (0, false, false),
        (1, true, false),
        (2, false, true),
        (3, true, true),
    ] {
        let mut words = GOOD;
        words[10] = word;
        let data = DriverData::decode(&bytes(words)).unwrap();
        assert_eq!((data.local, data.accessed_physically), (local, physical));
        assert_eq!(data.encode().to_vec(), bytes(words));
    }
}

#[test]
fn res_23_data_of_other_drivers_do_not_begin_like_ours() {
    assert!(DriverData::is_ours(&bytes(GOOD)) && DriverData::is_ours(b"DXGA"));
    for other in [&b""[..], b"DXG", b"DXGB", b"\0DXGA"] {
        assert!(!DriverData::is_ours(other));
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
        local in any::<bool>(),
        accessed_physically in any::<bool>(),
        notify_residency in any::<bool>(),
    ) {
        let data = DriverData {
            size: pages << 12,
            width,
            pitch,
            height,
            alignment: 1 << shift,
            local,
            accessed_physically,
            notify_residency,
        };
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
