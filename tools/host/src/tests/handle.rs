// SPDX-License-Identifier: MIT OR Apache-2.0

//! Handle numbers: encoding, refusals for every class of bits, and the order of numbers.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::logic::handle::{
    global, global_parts, local, local_index, nt_fd, Cursor, FIRST_INDEX, LAST_INDEX, UNIQUE,
};

/// The tests of abi.md section 5, written down there for clients.
fn looks_local(handle: u32) -> bool {
    handle & 0xc000_0000 != 0 && handle & 0x3f == 0
}

fn looks_global(handle: u32) -> bool {
    handle & 0xc000_0000 != 0 && handle & 0x3f == 2
}

#[test]
fn first_and_last_numbers() {
    assert_eq!(local(FIRST_INDEX), 0x4000_0040);
    assert_eq!(local(FIRST_INDEX + 1), 0x4000_0080);
    assert_eq!(local(LAST_INDEX), 0x7fff_ffc0);
    assert_eq!(global(FIRST_INDEX, 1), 0x4000_0042);
    assert_eq!(global(LAST_INDEX, 3), 0xffff_ffc2);
}

/// Every index of 24 bits, not a sample: it takes a second.
#[test]
#[cfg_attr(miri, ignore = "16 million rounds")]
fn every_index_round_trips() {
    for index in FIRST_INDEX..=LAST_INDEX {
        let handle = local(index);

        assert!(looks_local(handle) && !looks_global(handle));
        assert_eq!(local_index(handle), Some(index));
        assert_eq!(global_parts(handle), None);
        for unique in UNIQUE {
            let handle = global(index, unique);

            assert!(looks_global(handle) && !looks_local(handle));
            assert_eq!(global_parts(handle), Some((index, unique)));
            assert_eq!(local_index(handle), None);
        }
    }
}

/// Each class of `uniq` and `instance` with some indices: exactly one decoder accepts, or none.
#[test]
fn every_bit_class_is_decoded_or_refused() {
    for unique in 0..4u32 {
        for instance in 0..64u32 {
            for index in [0, 1, 2, 0x55_5555, 0xaa_aaaa, 0xff_fffe, 0xff_ffff] {
                let handle = (unique << 30) | (index << 6) | instance;
                let valid = unique != 0 && index != 0;
                let is_local = valid && instance == 0 && unique == 1;
                let is_global = valid && instance == 2;

                assert_eq!(
                    local_index(handle),
                    is_local.then_some(index),
                    "{handle:#x}"
                );
                assert_eq!(
                    global_parts(handle),
                    is_global.then_some((index, unique)),
                    "{handle:#x}"
                );
            }
        }
    }
}

/// 0 is never a handle, 0x40000000 is never valid.
#[test]
fn the_zero_index_is_nobody() {
    for handle in [0, 2, 0x4000_0000, 0x4000_0002, 0x8000_0000, 0xc000_0002] {
        assert_eq!(local_index(handle), None, "{handle:#x}");
        assert_eq!(global_parts(handle), None, "{handle:#x}");
    }
}

/// RES-13: an NT handle is a descriptor number, never a KMT handle, never 0.
#[test]
fn nt_handles_are_small_positive_numbers() {
    for (slot, expected) in [
        (0, None),
        (1, Some(1)),
        (0x3fff_ffff, Some(0x3fff_ffff)),
        (0x4000_0000, None),
        (0x4000_0040, None),
        (0x8000_0000, None),
        (0xffff_ffff, None),
        (0x1_0000_0000, None),
        (0x1_0000_0003, None),
        (u64::MAX, None),
    ] {
        assert_eq!(nt_fd(slot), expected, "{slot:#x}");
    }
}

/// RES-4, RES-6: +0x40 each time, a failed call consumes none, a freed number does not come back.
#[test]
fn numbers_are_one_chain() {
    let mut cursor = Cursor::new();
    let mut take = |free: bool| cursor.take(|_| free).map(local);

    assert_eq!(take(true), Some(0x4000_0040));
    assert_eq!(take(true), Some(0x4000_0080));

    let third = cursor.take(|_| true).unwrap();
    cursor.put_back(third);
    assert_eq!(cursor.take(|_| true), Some(third), "given back");
    assert_eq!(cursor.take(|_| true), Some(third + 1));
    cursor.put_back(third);
    assert_eq!(cursor.take(|_| true), Some(third + 2), "not the last one");
}

/// A look at a few candidates takes the first free one of them. The next look goes on behind them,
/// also across the wrap.
#[test]
fn a_few_candidates_at_a_time() {
    let mut cursor = Cursor::starting_at(LAST_INDEX - 2);
    let mut looked_at = Vec::new();

    for free in [false, false, true] {
        let taken = cursor.take_among(2, |index| {
            looked_at.push(index);
            free
        });

        assert_eq!(taken, free.then_some(FIRST_INDEX + 1));
    }
    assert_eq!(
        looked_at,
        [
            LAST_INDEX - 2,
            LAST_INDEX - 1,
            LAST_INDEX,
            FIRST_INDEX,
            FIRST_INDEX + 1
        ]
    );
}

/// The chain starts over after 24 bits and then takes the next free index upwards.
#[test]
#[cfg_attr(miri, ignore = "16 million rounds")]
fn the_chain_wraps() {
    let mut cursor = Cursor::new();

    for expected in FIRST_INDEX..=LAST_INDEX {
        assert_eq!(cursor.take(|_| true), Some(expected));
    }
    assert_eq!(cursor.take(|index| index != 1 && index != 2), Some(3));
    assert_eq!(cursor.take(|_| true), Some(4));
}

/// Giving back works across the wrap as well.
#[test]
#[cfg_attr(miri, ignore = "16 million rounds")]
fn the_last_number_can_be_given_back() {
    let mut cursor = Cursor::new();

    assert_eq!(cursor.take(|index| index == LAST_INDEX), Some(LAST_INDEX));
    cursor.put_back(LAST_INDEX);
    assert_eq!(cursor.take(|_| true), Some(LAST_INDEX));
    assert_eq!(cursor.take(|_| true), Some(FIRST_INDEX));
}

/// A full table is looked at once and refused, whatever the cursor's position.
#[test]
#[cfg_attr(miri, ignore = "16 million rounds")]
fn a_full_table_refuses() {
    let mut cursor = Cursor::new();
    let mut looked_at = 0u32;

    cursor.take(|_| true);
    assert_eq!(
        cursor.take(|_| {
            looked_at += 1;
            false
        }),
        None
    );
    assert_eq!(looked_at, LAST_INDEX);
    assert_eq!(cursor.take(|_| true), Some(2), "and nothing was consumed");
}

#[derive(Clone, Debug)]
enum Op {
    Take,
    TakeAndGiveBack,
    Free(prop::sample::Index),
}

proptest! {
    #[test]
    fn decoders_accept_what_clients_are_told(handle: u32) {
        if let Some(index) = local_index(handle) {
            prop_assert_eq!(local(index), handle);
            prop_assert!(looks_local(handle));
        }
        if let Some((index, unique)) = global_parts(handle) {
            prop_assert_eq!(global(index, unique), handle);
            prop_assert!(looks_global(handle));
        }
        prop_assert_eq!(global_parts(handle).is_some(), looks_global(handle) && handle & 0x3fff_ffc0 != 0);
        prop_assert!(!(looks_local(handle) || looks_global(handle)) || nt_fd(handle.into()).is_none());
    }

    /// Against a counter and a set: numbers increase by one and none is used twice.
    #[test]
    fn the_chain_matches_a_counter(ops in prop::collection::vec(
        prop_oneof![
            4 => Just(Op::Take),
            1 => Just(Op::TakeAndGiveBack),
            2 => any::<prop::sample::Index>().prop_map(Op::Free),
        ],
        0..200,
    )) {
        let mut cursor = Cursor::new();
        let mut used = BTreeSet::new();
        let mut counter = FIRST_INDEX;

        for op in ops {
            match op {
                Op::Take => {
                    let index = cursor.take(|index| !used.contains(&index)).unwrap();

                    prop_assert_eq!(index, counter);
                    prop_assert!(used.insert(index));
                    counter += 1;
                }
                Op::TakeAndGiveBack => {
                    let index = cursor.take(|index| !used.contains(&index)).unwrap();

                    prop_assert_eq!(index, counter);
                    cursor.put_back(index);
                }
                Op::Free(which) => {
                    if let Some(index) = used.iter().copied().nth(which.index(used.len().max(1))) {
                        used.remove(&index);
                    }
                }
            }
        }
    }
}
