// SPDX-License-Identifier: MIT OR Apache-2.0

//! How page tables divide addresses (MEM-51), against division.

use proptest::prelude::*;

use crate::{
    ddi::caps::{GpuMmuCaps, PageTableLevel, PageTableUpdateMode},
    logic::page_levels::Levels,
};

pub(super) fn caps(bits: &[u32], table_bytes: u32) -> GpuMmuCaps {
    let mut caps = GpuMmuCaps {
        address_bits: 12 + bits.iter().sum::<u32>(),
        page_table_levels: bits.len() as u32,
        ..GpuMmuCaps::default()
    };
    for (level, bits) in caps.levels.iter_mut().zip(bits) {
        *level = PageTableLevel {
            index_bits: *bits,
            table_bytes,
            segment: 0,
            paging_process_segment: 0,
        };
    }
    caps
}

/// The same, and tables of so many bytes with pages of 64 KiB.
fn with_64kb(bits: &[u32], table_bytes: u32) -> GpuMmuCaps {
    GpuMmuCaps {
        leaf_table_bytes_64kb: table_bytes,
        ..caps(bits, 4096)
    }
}

#[test]
fn mem_51_what_is_refused() {
    assert!(Levels::new(&caps(&[9, 9, 9, 9], 4096)).is_some(), "vram4");
    assert!(Levels::new(&caps(&[10, 10], 4096)).is_some(), "doc2");
    assert!(Levels::new(&with_64kb(&[9, 9], 128)).is_some(), "MEM-57");
    assert!(Levels::new(&with_64kb(&[4, 9], 4)).is_some(), "MEM-57");
    for (why, caps) in [
        ("one level", caps(&[9], 4096)),
        ("no level", caps(&[], 4096)),
        ("tables larger than a page", caps(&[9, 9], 8192)),
        ("more entries than bytes", caps(&[10, 10], 2048)),
        ("too many bits", caps(&[11, 9], 4096)),
        ("no entries", caps(&[0, 9], 4096)),
        (
            "more than addresses",
            GpuMmuCaps {
                address_bits: 29,
                ..caps(&[9, 9], 4096)
            },
        ),
        (
            "updates by an engine",
            GpuMmuCaps {
                page_table_update_mode: PageTableUpdateMode::GpuPhysical,
                ..caps(&[9, 9], 4096)
            },
        ),
        ("64 KiB: more entries than bytes", with_64kb(&[9, 9], 127)),
        ("64 KiB: larger than a page", with_64kb(&[9, 9], 4097)),
        ("64 KiB: no entry", with_64kb(&[3, 9], 64)),
        (
            "7 levels",
            GpuMmuCaps {
                page_table_levels: 7,
                ..caps(&[9, 9], 4096)
            },
        ),
    ] {
        assert_eq!(Levels::new(&caps), None, "{why}");
    }
}

proptest! {
    #[test]
    fn mem_51_indices_and_leaves(
        bits in proptest::collection::vec(1..10u32, 2..=4),
        page in any::<u64>(),
        pages in 0..4096u64,
    ) {
        let levels = Levels::new(&caps(&bits, 4096)).expect("good");
        let page = page % levels.pages();
        let mut rest = page;
        for (level, bits) in (0..).zip(&bits) {
            prop_assert_eq!(levels.entries(level), 1 << bits);
            prop_assert_eq!(u64::from(levels.index(level, page)), rest % (1 << bits));
            rest >>= bits;
            prop_assert_eq!(levels.table(level, page), rest);
            prop_assert_eq!(page / levels.pages_of_table(level), rest);
        }
        prop_assert_eq!(levels.table(levels.root(), page), 0);

        let end = (page + pages).min(levels.pages());
        let mut at = page;
        for (first, count) in levels.leaves(page, end) {
            prop_assert_eq!(first, at);
            prop_assert_eq!(levels.table(0, first), levels.table(0, first + count - 1));
            at += count;
            prop_assert!(at == end || at % levels.pages_of_table(0) == 0);
        }
        prop_assert_eq!(at, end.max(page));
    }
}
