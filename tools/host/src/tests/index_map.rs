// SPDX-License-Identifier: MIT OR Apache-2.0

//! The map of handle tables against a `BTreeMap`, and which nodes it has.

use std::collections::{btree_map::Entry, BTreeMap};

use proptest::prelude::*;

use crate::ddi::index_map::{IndexMap, NewNode, SlotState};
use crate::logic::handle::LAST_INDEX;

/// Values per leaf, and indices below one node above the leaves.
const LEAF: u32 = 32;
const SPAN: u32 = LEAF * 128;

/// Puts a value in if nothing is missing. Whether it did.
fn try_put(map: &mut IndexMap<u32>, index: u32, value: u32) -> bool {
    let mut value = Some(value);

    map.put(index, &mut value);
    value.is_none()
}

/// Puts a value in as the kernel does. How many nodes that took.
fn put(map: &mut IndexMap<u32>, index: u32, value: u32) -> usize {
    let mut nodes = 0;

    assert_ne!(map.slot_state(index), SlotState::Taken);
    assert_eq!(
        map.slot_state(index) == SlotState::Free,
        map.missing_node(index).is_none()
    );

    while let Some(missing_node) = map.missing_node(index) {
        map.insert_node(index, NewNode::new(missing_node).unwrap());
        nodes += 1;
        assert!(nodes <= 8, "every node closes a missing_node");
    }
    assert_eq!(map.slot_state(index), SlotState::Free);
    assert!(try_put(map, index, value));
    assert_eq!(map.slot_state(index), SlotState::Taken);
    nodes
}

fn take(map: &mut IndexMap<u32>, index: u32) -> Option<u32> {
    map.take(index).map(|removed| removed.value)
}

/// A map with one value at each of these indices, which is the index.
fn map_of(indices: &[u32]) -> IndexMap<u32> {
    let mut map = IndexMap::new();

    for index in indices {
        put(&mut map, *index, *index);
    }
    map
}

#[test]
fn an_empty_map_has_nothing() {
    let mut map = IndexMap::<u32>::new();

    for index in [0, 1, SPAN, u32::MAX] {
        assert_eq!(map.get(index), None);
        assert_eq!(map.get_mut(index), None);
        assert_eq!(take(&mut map, index), None);
        assert_eq!(map.first_from(index), None);
        assert_eq!(map.last_below(index), None);
        assert_eq!(map.slot_state(index), SlotState::Missing);
        assert!(!try_put(&mut map, index, 7), "there is a missing_node");
    }
}

/// The first leaf is the root; a second one gets a node above; and so on to the last index.
#[test]
fn levels_come_with_the_indices() {
    let mut map = IndexMap::new();

    for (index, nodes) in [
        (1, 1),
        (LEAF - 1, 0),
        (LEAF, 2),
        (LEAF + 1, 0),
        (SPAN - 1, 1),
        (SPAN, 3),
        (SPAN * 128, 4),
        (LAST_INDEX, 3),
        (u32::MAX, 5),
    ] {
        assert_eq!(put(&mut map, index, index), nodes, "{index:#x}");
    }
    for index in [1, LEAF, SPAN - 1, SPAN, SPAN * 128, LAST_INDEX, u32::MAX] {
        assert_eq!(map.get(index), Some(&index));
        assert_eq!(map.get(index ^ 2), None);
    }
}

/// Making and destroying one thing after the other takes a leaf for every 32nd.
#[test]
fn the_last_leaf_stays() {
    let mut map = map_of(&[1]);
    let mut leaves = 0;

    for index in 2..SPAN {
        leaves += put(&mut map, index, 0);

        let removed = map.take(index).unwrap();

        assert!(!removed.has_freed_nodes());
    }
    assert_eq!(leaves, SPAN as usize / LEAF as usize, "and the root");
    // All of them but the first and the last have gone.
    assert_eq!(map.missing_node(0), None);
    assert_eq!(map.missing_node(SPAN - 1), None);
    for leaf in 1..SPAN / LEAF - 1 {
        assert!(map.missing_node(leaf * LEAF).is_some());
    }
}

/// An empty leaf takes along the nodes that led to nothing else, and no others.
#[test]
fn empty_nodes_go() {
    let mut map = map_of(&[1, SPAN + 1, SPAN + LEAF, 3 * SPAN]);

    assert!(map.take(SPAN + 1).unwrap().has_freed_nodes());
    assert_eq!(map.get(SPAN + LEAF), Some(&(SPAN + LEAF)));
    assert!(map.take(SPAN + LEAF).unwrap().has_freed_nodes());
    assert_eq!(put(&mut map, SPAN + 1, 0), 2, "the node above has gone too");
    assert_eq!(map.get(1), Some(&1));
    assert_eq!(map.get(3 * SPAN), Some(&(3 * SPAN)));
}

/// The leaf that stayed goes when it is empty and another one comes.
#[test]
fn the_last_leaf_goes_when_another_one_comes() {
    let mut map = map_of(&[1, SPAN]);

    assert!(!map.take(SPAN).unwrap().has_freed_nodes());

    let index = 2 * SPAN;
    let inner = NewNode::new(map.missing_node(index).unwrap()).unwrap();

    assert!(map.insert_node(index, inner).is_none());

    let leaf = NewNode::new(map.missing_node(index).unwrap()).unwrap();

    assert!(map.insert_node(index, leaf).is_some());
    assert_eq!(put(&mut map, SPAN, 0), 2, "with the node above");
}

/// Two callers have made a node for the same missing place.
#[test]
fn a_node_that_came_too_late_is_handed_back() {
    let mut map = map_of(&[1]);
    let missing_node = map.missing_node(LEAF).unwrap();
    let (first, second) = (
        NewNode::new(missing_node).unwrap(),
        NewNode::new(missing_node).unwrap(),
    );

    assert!(map.insert_node(LEAF, first).is_none());
    assert!(map.insert_node(LEAF, second).is_some());
    put(&mut map, LEAF, 5);

    let late = NewNode::new(missing_node).unwrap();

    assert!(
        map.insert_node(LEAF, late).is_some(),
        "there is no missing_node"
    );
    assert_eq!(map.get(1), Some(&1));
    assert_eq!(map.get(LEAF), Some(&5));
}

#[test]
fn a_taken_place_is_not_put_over() {
    let mut map = map_of(&[1]);

    assert!(!try_put(&mut map, 1, 2));
    assert_eq!(take(&mut map, 1), Some(1));
    assert_eq!(take(&mut map, 1), None);
    assert!(try_put(&mut map, 1, 2));
}

#[derive(Clone, Debug)]
enum Op {
    Put(u32),
    /// The next index, as a table of handles does.
    PutNext,
    Take(prop::sample::Index),
    TakeNothing(u32),
    Change(prop::sample::Index, u32),
}

/// Indices that meet in leaves and in nodes of each level.
fn indices() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0..3 * LEAF,
        2 => (0..4u32, 0..4u32, 0..3u32).prop_map(|(a, b, c)| a * SPAN * 127 + b * SPAN + c * LEAF),
        1 => LAST_INDEX - 3 * LEAF..=LAST_INDEX,
        1 => any::<u32>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 300 }))]

    /// Every answer is that of a `BTreeMap`, after every step; when all has been taken, at most
    /// the last leaf is left.
    #[test]
    fn the_map_matches_a_model(ops in prop::collection::vec(
        prop_oneof![
            3 => indices().prop_map(Op::Put),
            3 => Just(Op::PutNext),
            4 => any::<prop::sample::Index>().prop_map(Op::Take),
            1 => indices().prop_map(Op::TakeNothing),
            1 => (any::<prop::sample::Index>(), any::<u32>()).prop_map(|(which, value)| Op::Change(which, value)),
        ],
        0..120,
    ), probes in prop::collection::vec(indices(), 8)) {
        let mut map = IndexMap::new();
        let mut model = BTreeMap::new();
        let mut last = 0u32;
        let key = |model: &BTreeMap<u32, u32>, which: prop::sample::Index| {
            model.keys().copied().nth(which.index(model.len().max(1)))
        };

        for (step, op) in (0..).zip(ops) {
            let op = match op {
                Op::PutNext => Op::Put(last.wrapping_add(1)),
                op => op,
            };

            match op {
                Op::Put(index) => {
                    match model.entry(index) {
                        Entry::Occupied(_) => prop_assert!(!try_put(&mut map, index, step)),
                        Entry::Vacant(entry) => {
                            put(&mut map, index, step);
                            entry.insert(step);
                        }
                    }
                    last = index;
                }
                Op::PutNext => unreachable!(),
                Op::Take(which) => if let Some(index) = key(&model, which) {
                    prop_assert_eq!(take(&mut map, index), model.remove(&index));
                },
                Op::TakeNothing(index) => prop_assert_eq!(take(&mut map, index), model.remove(&index)),
                Op::Change(which, value) => if let Some(index) = key(&model, which) {
                    *map.get_mut(index).unwrap() = value;
                    model.insert(index, value);
                },
            }
            for probe in probes.iter().copied().chain([last, last.wrapping_add(1), u32::MAX]) {
                prop_assert_eq!(map.get(probe), model.get(&probe));
                prop_assert_eq!(map.get_mut(probe).map(|value| *value), model.get(&probe).copied());
                prop_assert_eq!(map.first_from(probe), model.range(probe..).next().map(|(index, value)| (*index, value)));
                prop_assert_eq!(map.last_below(probe), model.range(..probe).next_back().map(|(index, value)| (*index, value)));
            }
        }
        for index in model.into_keys() {
            take(&mut map, index);
        }
        prop_assert_eq!(map.first_from(0), None);

        let leaves = probes.iter().filter(|probe| map.missing_node(**probe).is_none());
        let numbers: std::collections::BTreeSet<u32> = leaves.map(|probe| probe / LEAF).collect();

        prop_assert!(numbers.len() <= 1, "{:?}", numbers);
    }
}
