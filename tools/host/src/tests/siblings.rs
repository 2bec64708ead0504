// SPDX-License-Identifier: MIT OR Apache-2.0

//! The children of devices against lists: RES-31 wants the youngest first.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::logic::index_map::{IndexMap, NewNode};
use crate::logic::siblings::{join, leave, Kin, Related};

struct Entry(Kin);

impl Related for Entry {
    fn kin(&mut self) -> &mut Kin {
        &mut self.0
    }
}

#[derive(Default)]
struct Family(IndexMap<Entry>);

impl Default for IndexMap<Entry> {
    fn default() -> Self {
        Self::new()
    }
}

impl Family {
    fn put(&mut self, index: u32, kin: Kin) {
        while let Some(missing_node) = self.0.missing_node(index) {
            self.0
                .insert_node(index, NewNode::new(missing_node).unwrap());
        }
        self.0.put(index, &mut Some(Entry(kin)));
    }

    fn add(&mut self, index: u32) {
        self.put(index, Kin::alone(index));
    }

    fn join(&mut self, head: u32, index: u32) {
        let kin = join(&mut self.0, head, index, |_| true).unwrap();

        self.put(index, kin);
    }

    fn take(&mut self, index: u32) {
        let removed = self.0.take(index).unwrap();

        leave(&mut self.0, &removed.value.0);
    }

    fn youngest(&self, head: u32) -> Option<u32> {
        self.0.get(head).unwrap().0.youngest(head)
    }

    /// Takes all children out, the youngest first.
    fn drain(&mut self, head: u32) -> Vec<u32> {
        let mut all = Vec::new();

        while let Some(index) = self.youngest(head) {
            self.take(index);
            all.push(index);
        }
        all
    }
}

/// Also when the numbers have wrapped, so that the youngest has the smallest.
#[test]
fn the_youngest_comes_first() {
    let mut family = Family::default();

    family.add(50);
    assert_eq!(family.youngest(50), None);
    for index in [60, 70, 1, 40] {
        family.join(50, index);
    }
    assert_eq!(family.drain(50), [40, 1, 70, 60]);
    assert_eq!(family.youngest(50), None);
    family.join(50, 3);
    assert_eq!(family.youngest(50), Some(3));
}

/// A table that is closed may lose a head before its children.
#[test]
fn leaving_a_head_that_is_gone_is_harmless() {
    let mut family = Family::default();

    family.add(1);
    family.join(1, 2);
    family.join(1, 3);
    family.take(1);
    family.take(3);
    family.take(2);
    assert!(family.0.first_from(0).is_none());
}

#[test]
fn nobody_joins_who_is_not_accepted() {
    let mut family = Family::default();

    assert!(join(&mut family.0, 1, 2, |_| true).is_none(), "no head");
    family.add(1);
    assert!(join(&mut family.0, 1, 2, |_| false).is_none());
    assert_eq!(family.youngest(1), None);
}

#[derive(Clone, Debug)]
enum Op {
    Head,
    Join(prop::sample::Index),
    Leave(prop::sample::Index, prop::sample::Index),
    Drain(prop::sample::Index),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 1000 }))]

    /// Joining, leaving in any order and destroying whole families, as lists do it.
    #[test]
    fn families_match_lists(ops in prop::collection::vec(
        prop_oneof![
            1 => Just(Op::Head),
            6 => any::<prop::sample::Index>().prop_map(Op::Join),
            4 => (any::<prop::sample::Index>(), any::<prop::sample::Index>())
                .prop_map(|(head, child)| Op::Leave(head, child)),
            1 => any::<prop::sample::Index>().prop_map(Op::Drain),
        ],
        0..150,
    )) {
        let mut family = Family::default();
        let mut lists = BTreeMap::<u32, Vec<u32>>::new();
        let head = |lists: &BTreeMap<u32, Vec<u32>>, which: prop::sample::Index| {
            lists.keys().copied().nth(which.index(lists.len().max(1)))
        };

        for (index, op) in (1..).zip(ops) {
            match op {
                Op::Head => {
                    family.add(index);
                    lists.insert(index, Vec::new());
                }
                Op::Join(which) => if let Some(head) = head(&lists, which) {
                    family.join(head, index);
                    lists.get_mut(&head).unwrap().push(index);
                },
                Op::Leave(which, child) => if let Some(head) = head(&lists, which) {
                    let list = lists.get_mut(&head).unwrap();

                    if !list.is_empty() {
                        family.take(list.remove(child.index(list.len())));
                    }
                },
                Op::Drain(which) => if let Some(head) = head(&lists, which) {
                    let mut list = lists.remove(&head).unwrap();

                    list.reverse();
                    prop_assert_eq!(family.drain(head), list);
                    family.take(head);
                },
            }
            for (head, list) in &lists {
                prop_assert_eq!(family.youngest(*head), list.last().copied());
            }
        }
        for (head, mut list) in lists {
            list.reverse();
            prop_assert_eq!(family.drain(head), list);
        }
    }
}
