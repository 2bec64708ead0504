// SPDX-License-Identifier: MIT OR Apache-2.0

//! GPU addresses that a KMD reserves in each process (MEM-64).

use crate::ddi::caps::GpuMmuCaps;
use crate::ddi::reserve::{ReserveAddresses, ReserveRange};
use crate::ddi::types::KmdError;
use crate::logic::gpu_va_rules::ClientSpace;
use crate::logic::kmd_ranges::{KmdRanges, MAX_RANGES};
use crate::logic::page_levels::Levels;

use super::page_levels::caps;

const MIB: u64 = 1 << 20;

/// Of four levels, whose tables have 2 MiB each.
fn four() -> KmdRanges {
    ranges(&caps(&[9, 9, 9, 9], 4096), 16, (1 << 36) - 1000)
}

/// Of two levels, whose tables have 4 MiB each.
fn two() -> KmdRanges {
    ranges(&caps(&[10, 10], 4096), 17 * 1024, 1 << 20)
}

fn ranges(caps: &GpuMmuCaps, first: u64, end: u64) -> KmdRanges {
    KmdRanges::new(&Levels::new(caps).unwrap(), ClientSpace { first, end })
}

fn wish(size: u64, alignment: u64) -> ReserveRange {
    ReserveRange {
        size,
        alignment,
        allow_user_mode_mapping: false,
    }
}

#[test]
fn mem_64_sizes_and_alignments_are_those_of_tables() {
    for (size, alignment) in [
        (0, 2 * MIB),
        (2 * MIB, 0),
        (MIB, 2 * MIB),
        (3 * MIB, 2 * MIB),
        (2 * MIB, MIB),
        (2 * MIB + 1, 2 * MIB),
        (2 * MIB, 2 * MIB + 4096),
        (u64::MAX, 2 * MIB),
    ] {
        assert_eq!(
            four().reserve(&wish(size, alignment)),
            Err(KmdError::InvalidParameter),
            "{size:#x} {alignment:#x}"
        );
    }
    // A table of two levels has twice as much.
    assert_eq!(
        two().reserve(&wish(2 * MIB, 4 * MIB)),
        Err(KmdError::InvalidParameter)
    );
    assert!(two().reserve(&wish(4 * MIB, 4 * MIB)).is_ok());
}

#[test]
fn mem_64_ranges_are_out_of_the_way_and_apart() {
    let mut high = four();
    let first = high.reserve(&wish(4 * MIB, 2 * MIB)).unwrap();
    let second = high.reserve(&wish(2 * MIB, 64 * MIB)).unwrap();
    let third = high.reserve(&wish(2 * MIB, 2 * MIB)).unwrap();

    // The last 1000 pages are not there.
    assert_eq!(first, (1 << 48) - 8 * MIB);
    assert_eq!(second, (1 << 48) - 64 * MIB);
    assert_eq!(third, second - 2 * MIB);

    let mut low = two();

    assert_eq!(low.reserve(&wish(8 * MIB, 4 * MIB)), Ok(68 * MIB));
    assert_eq!(low.reserve(&wish(4 * MIB, 32 * MIB)), Ok(96 * MIB));
    assert_eq!(low.reserve(&wish(4 * MIB, 4 * MIB)), Ok(100 * MIB));
}

#[test]
fn mem_64_there_is_no_more_than_clients_could_have() {
    let mut low = two();
    let left = (1 << 32) - 68 * MIB;

    assert_eq!(
        low.reserve(&wish(left + 4 * MIB, 4 * MIB)),
        Err(KmdError::NoMemory)
    );
    assert_eq!(low.reserve(&wish(left, 4 * MIB)), Ok(68 * MIB));
    assert_eq!(
        low.reserve(&wish(4 * MIB, 4 * MIB)),
        Err(KmdError::NoMemory)
    );

    let mut high = four();
    let all = (1u64 << 48) - 4096 * 1000;

    assert_eq!(
        high.reserve(&wish(all.next_multiple_of(2 * MIB), 2 * MIB)),
        Err(KmdError::NoMemory)
    );
    for _ in 0..MAX_RANGES {
        assert!(high.reserve(&wish(2 * MIB, 2 * MIB)).is_ok());
    }
    assert_eq!(
        high.reserve(&wish(2 * MIB, 2 * MIB)),
        Err(KmdError::NoMemory)
    );
    assert_eq!(high.iter().count(), MAX_RANGES);
}
