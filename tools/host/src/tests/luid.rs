// SPDX-License-Identifier: MIT OR Apache-2.0

//! LUIDs: stable for each kind and number, and each given once.

use std::collections::HashSet;

use crate::{
    ddi::caps::Luid,
    logic::luid::{luid_of, AdapterKind},
};

const KINDS: [AdapterKind; AdapterKind::COUNT] = [AdapterKind::Software, AdapterKind::TestDouble];

/// Clients may write these down.
#[test]
fn the_luids_of_software_adapters() {
    for (index, low, high) in [
        (0, 0x0d9a_0000, 0),
        (1, 0x0d9a_0001, 0),
        (0xffff, 0x0d9a_ffff, 0),
        (0x1_0000, 0x0d9a_0000, 1),
        (u32::MAX, 0x0d9a_ffff, 0xffff),
    ] {
        assert_eq!(luid_of(AdapterKind::Software, index), Luid { low, high });
    }
}

#[test]
fn no_two_adapters_have_the_same() {
    let numbers = (0..3).chain(0xfffe..0x1_0003).chain([0x2_0000, u32::MAX]);
    let all: Vec<_> = numbers
        .flat_map(|index| KINDS.map(|kind| (kind, index)))
        .collect();
    let luids = all.iter().map(|(kind, index)| {
        let Luid { low, high } = luid_of(*kind, *index);
        (low, high)
    });
    let ids = all.iter().map(|(kind, index)| kind.id_of(*index));

    assert_eq!(luids.collect::<HashSet<_>>().len(), all.len());
    assert_eq!(ids.collect::<HashSet<_>>().len(), all.len());
}
