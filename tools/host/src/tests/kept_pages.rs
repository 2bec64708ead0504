// SPDX-License-Identifier: MIT OR Apache-2.0

//! Who has which GPU addresses of a process (MEM-40, FEN-65).

use proptest::prelude::*;

use crate::ddi::native_fence::NativeFenceCaps;
use crate::logic::gpu_ranges::{Bounds, FIRST};
use crate::logic::gpu_va_rules::ClientSpace;
use crate::logic::kept_pages::{divide, wish, Division};
use crate::logic::page_levels::Levels;

use super::page_levels::caps;

/// 48 bits, in tables of 512 pages.
fn four() -> Levels {
    Levels::new(&caps(&[9, 9, 9, 9], 4096)).unwrap()
}

/// 32 bits, in tables of 1024 pages, with a resizable root.
fn two() -> Levels {
    Levels::new(&caps(&[10, 10], 4096)).unwrap()
}

fn bounds(first: u64, end: u64) -> Bounds {
    Bounds { first, end }
}

/// The first page and the end of clients, and of what is kept.
fn parts(levels: &Levels, wish: Option<Bounds>) -> Option<[u64; 4]> {
    let Division { clients, kept } = divide(levels, wish)?;

    Some([clients.first, clients.end, kept.first, kept.end])
}

#[test]
fn mem_40_fences_are_in_nobodys_way() {
    let end = 1 << 36;

    assert_eq!(
        parts(&four(), None),
        Some([FIRST, end - (1 << 20), end - (1 << 20), end])
    );
    // The first entry of the root leads nowhere, and the next ones are always used.
    assert_eq!(
        parts(&two(), None),
        Some([17 << 10, 1 << 20, 1 << 10, 17 << 10])
    );
}

#[test]
fn fen_65_fences_are_where_the_gpu_wants_them() {
    let end = 1 << 36;

    for (wish, expected) in [
        // All addresses will do.
        (
            bounds(0, u64::MAX),
            [FIRST, end - (1 << 20), end - (1 << 20), end],
        ),
        // Within 4 GiB: clients have what is above.
        (bounds(0, 1 << 20), [1 << 20, end, FIRST, 1 << 20]),
        (bounds(512, 514), [1024, end, 512, 514]),
        (bounds(511, 513), [1024, end, 511, 513]),
        // Near the end.
        (
            bounds(end - 700, end - 600),
            [FIRST, end - 1024, end - 700, end - 600],
        ),
        (bounds(end - 1, end + 5), [FIRST, end - 512, end - 1, end]),
    ] {
        assert_eq!(parts(&four(), Some(wish)), Some(expected), "{wish:?}");
    }
    for (wish, expected) in [
        (bounds(0, 1 << 20), [17 << 10, 1 << 20, 1 << 10, 17 << 10]),
        (bounds(0, 1026), [2 << 10, 1 << 20, 1 << 10, 1026]),
        (
            bounds(1 << 19, u64::MAX),
            [
                (1 << 19) + (16 << 10),
                1 << 20,
                1 << 19,
                (1 << 19) + (16 << 10),
            ],
        ),
    ] {
        // As much below as above goes to those above.
        let parts = parts(&two(), Some(wish)).unwrap();

        assert_eq!(parts[2..], expected[2..], "{wish:?}");
        if wish.first == 0 {
            assert_eq!(parts, expected, "{wish:?}");
        }
    }
    // There are no such pages, or clients cannot have them.
    for wish in [
        bounds(5, 5),
        bounds(6, 5),
        bounds(0, FIRST),
        bounds(end, end + 9),
        bounds(u64::MAX, u64::MAX),
    ] {
        assert_eq!(parts(&four(), Some(wish)), None, "{wish:?}");
    }
    assert_eq!(parts(&two(), Some(bounds(0, 1 << 10))), None);
}

/// Only whole pages will do.
#[test]
fn fen_65_what_a_gpu_says_of_addresses() {
    let pages = |minimum_address, maximum_address| {
        wish(&NativeFenceCaps {
            minimum_address,
            maximum_address,
            ..NativeFenceCaps::default()
        })
    };

    assert_eq!(pages(0, 0), bounds(0, u64::MAX));
    assert_eq!(pages(0x1000, 0x3000), bounds(1, 3));
    assert_eq!(pages(0x1001, 0x3fff), bounds(2, 3));
    assert_eq!(pages(u64::MAX, 0), bounds(1 << 52, u64::MAX));
}

proptest! {
    /// Nobody has what another one has, not even in the same table of level 0.
    #[test]
    fn fen_65_clients_and_fences_share_no_table(
        first in any::<u64>(),
        end in any::<u64>(),
        shift in 0u32..63,
        levels in prop_oneof![Just(four()), Just(two())],
    ) {
        let wish = bounds(first >> shift, end >> shift);

        if let Some(Division { clients, kept }) = divide(&levels, Some(wish)) {
            let ClientSpace { first, end } = clients;
            let table = levels.pages_of_table(0);
            let tables = |first: u64, end: u64| (first / table, end.div_ceil(table));
            let (own, others) = (tables(kept.first, kept.end), tables(first, end));

            prop_assert!(kept.first < kept.end && first < end);
            prop_assert!(kept.first >= wish.first && kept.end <= wish.end);
            prop_assert!(kept.end <= levels.pages() && end <= levels.pages());
            prop_assert!(kept.end - kept.first <= 1 << 20);
            prop_assert!(own.1 <= others.0 || others.1 <= own.0);
        }
    }
}
