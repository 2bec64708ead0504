// SPDX-License-Identifier: MIT OR Apache-2.0

//! Groups of a sorted list against a map of lists.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::logic::groups::{best, firsts};

/// A rank that does not follow the order of members.
fn rank(member: u64) -> u64 {
    member.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60
}

proptest! {
    #[test]
    fn one_of_each_group(mut pairs in prop::collection::vec([0..6_u64, 0..40_u64], 0..60)) {
        pairs.sort();

        let mut groups = BTreeMap::<u64, Vec<u64>>::new();

        for [group, member] in &pairs {
            groups.entry(*group).or_default().push(*member);
        }

        let smallest: Vec<u64> = groups.values().filter_map(|all| all.iter().min().copied()).collect();
        let ranked: Vec<u64> = groups
            .values()
            .filter_map(|all| all.iter().min_by_key(|member| (rank(**member), **member)).copied())
            .collect();

        prop_assert_eq!(firsts(&pairs).collect::<Vec<_>>(), smallest);
        prop_assert_eq!(best(&pairs, rank).collect::<Vec<_>>(), ranked);
    }
}

/// In proportion to the list, whatever it looks like.
#[test]
fn each_pair_is_looked_at_once() {
    for groups in [1, 2, 500, 1000] {
        let pairs: Vec<[u64; 2]> = (0..1000).map(|n| [n * groups / 1000, n]).collect();
        let looks = Cell::new(0);
        let found = best(&pairs, |member| {
            looks.set(looks.get() + 1);
            member
        })
        .count();

        assert_eq!((found as u64, looks.get()), (groups, 1000));
    }
}
