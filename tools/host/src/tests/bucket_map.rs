// SPDX-License-Identifier: MIT OR Apache-2.0

//! The map of global handles against a `BTreeMap`, and how long its chains are.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::ddi::index_map::NewNode;
use crate::logic::bucket_map::{BucketMap, ChainNode};

fn put(map: &mut BucketMap<u32>, key: u32, value: u32) {
    while let Some(missing_node) = map.missing_node() {
        map.insert_node(NewNode::new(missing_node).unwrap());
    }
    map.put(Box::new(ChainNode::new(key, value)));
}

fn take(map: &mut BucketMap<u32>, key: u32) -> Option<u32> {
    map.take(key).map(|taken| taken.link.value)
}

const SECRET: u32 = 0x9e37_79b9;

/// The values in the fullest bucket.
fn longest(map: &BucketMap<u32>) -> usize {
    map.lengths().max().unwrap_or(0)
}

#[test]
fn an_empty_map_has_nothing() {
    let mut map = BucketMap::<u32>::new(SECRET);

    for key in [0, 1, u32::MAX] {
        assert_eq!(map.get(key), None);
        assert_eq!(map.get_mut(key), None);
        assert_eq!(take(&mut map, key), None);
    }
}

/// With hashes that differ in their low bits, each value has a bucket for itself, at any size.
#[test]
fn buckets_follow_the_values() {
    // Multiplied by one, a number is its own hash, in another order of bytes.
    let mut map = BucketMap::new(1);

    for key in (0..1000).map(u32::swap_bytes) {
        put(&mut map, key, key);
        assert_eq!(longest(&map), 1);
    }
    for key in (0..1000).rev().map(u32::swap_bytes) {
        assert_eq!(take(&mut map, key), Some(key));
        assert!(longest(&map) <= 1);
    }
    assert_eq!(longest(&map), 0);
}

/// Numbers as they are drawn: however many there are, no chain is long.
#[test]
fn chains_stay_short() {
    let mut map = BucketMap::new(SECRET);
    let mut seed = 1u32;

    for _ in 0..20_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);

        let key = seed >> 8;

        if map.get(key).is_none() {
            put(&mut map, key, key);
        }
    }
    assert!(longest(&map) <= 16, "{}", longest(&map));
}

/// RES-12: who keeps only handles whose numbers have all low, or all high, bits in common gets no
/// long chain either. 2^24 numbers exist.
#[test]
fn chosen_numbers_are_spread() {
    for secret in [SECRET, 0x1234_5679, 0xdead_beef, 0x0bad_cafe] {
        for shift in [0, 6, 12] {
            let mut map = BucketMap::new(secret);

            for key in (0..4096).map(|number| number << shift) {
                put(&mut map, key, key);
            }
            assert!(
                longest(&map) <= 32,
                "{secret:#x} {shift}: {}",
                longest(&map)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 300 }))]

    /// Every answer is that of a `BTreeMap`, after every step. Few different numbers, so that they
    /// meet in buckets, and some that have all low bits in common.
    #[test]
    fn the_map_matches_a_model(ops in prop::collection::vec(
        (any::<bool>(), prop_oneof![0..64u32, (0..32u32).prop_map(|high| high << 16)], any::<bool>()),
        0..300,
    )) {
        let mut map = BucketMap::new(SECRET);
        let mut model = BTreeMap::new();

        for (step, (insert, key, change)) in (0..).zip(ops) {
            if !insert {
                prop_assert_eq!(take(&mut map, key), model.remove(&key));
            } else if let std::collections::btree_map::Entry::Vacant(place) = model.entry(key) {
                put(&mut map, key, step);
                place.insert(step);
            } else if change {
                *map.get_mut(key).unwrap() = step;
                model.insert(key, step);
            }
            for probe in (0..64).chain((0..32).map(|high| high << 16)) {
                prop_assert_eq!(map.get(probe), model.get(&probe));
                prop_assert_eq!(map.get_mut(probe).is_some(), model.contains_key(&probe));
            }
        }
        for (key, value) in model {
            prop_assert_eq!(take(&mut map, key), Some(value));
        }
        prop_assert_eq!(longest(&map), 0);
    }
}
