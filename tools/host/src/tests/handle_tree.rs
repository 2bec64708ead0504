// SPDX-License-Identifier: MIT OR Apache-2.0

//! Trees of handles against lists: RES-31 wants the last child first, and children before parents.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::ddi::index_map::{IndexMap, NewNode};
use crate::logic::handle_tree::{attach, detach, root, ChildLinks, Node, Stage, Teardown, LEVELS};

struct Entry(ChildLinks);

impl Node for Entry {
    fn links(&self) -> &ChildLinks {
        &self.0
    }

    fn links_mut(&mut self) -> &mut ChildLinks {
        &mut self.0
    }
}

struct Table(IndexMap<Entry>);

impl Table {
    fn new() -> Self {
        Self(IndexMap::new())
    }

    fn put(&mut self, index: u32, links: ChildLinks) {
        while let Some(missing_node) = self.0.missing_node(index) {
            self.0
                .insert_node(index, NewNode::new(missing_node).unwrap());
        }
        self.0.put(index, &mut Some(Entry(links)));
    }

    /// Whether there is such a parent that takes children. The new entry is reserved.
    fn reserve(&mut self, parent: u32, index: u32, reservation: u32) -> bool {
        let links = match parent {
            0 => Some(ChildLinks::default()),
            _ => attach(&mut self.0, parent, index, |entry| {
                entry.0.stage() == Stage::Published
            }),
        };
        let added = links.map(|mut links| {
            links.set_reservation(reservation);
            self.put(index, links);
        });

        added.is_some()
    }

    /// The same; the new entry is published.
    fn add(&mut self, parent: u32, index: u32) -> bool {
        self.reserve(parent, index, index) && self.0.get_mut(index).unwrap().0.publish(index)
    }

    fn take(&mut self, index: u32) {
        let removed = self.0.take(index).unwrap();

        detach(&mut self.0, &removed.value.0);
    }

    fn last_child(&self, index: u32) -> Option<u32> {
        self.0.get(index).unwrap().0.last_child()
    }

    fn root(&self, index: u32) -> Option<u32> {
        root(&self.0, &self.0.get(index).unwrap().0)
    }

    fn begin(&mut self, root: u32) -> Teardown {
        self.0.get_mut(root).unwrap().0.mark_ending();
        Teardown::of(root)
    }

    /// One step: what was taken out.
    fn step(&mut self, teardown: &mut Teardown) -> Option<u32> {
        let taken = teardown.step(&mut self.0);

        if let Some(index) = taken {
            assert_eq!(self.last_child(index), None, "{index} has children");
            self.take(index);
        }
        taken
    }

    /// Takes a whole tree out, and says in which order and in how many steps.
    fn end(&mut self, root: u32) -> (Vec<u32>, usize) {
        let mut teardown = self.begin(root);
        let mut all = Vec::new();
        let mut steps = 0;

        while !teardown.is_done() {
            all.extend(self.step(&mut teardown));
            steps += 1;
        }
        (all, steps)
    }
}

/// Parents and lists of children.
#[derive(Clone, Default)]
struct Model {
    parents: BTreeMap<u32, u32>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl Model {
    fn add(&mut self, parent: u32, index: u32) {
        self.parents.insert(index, parent);
        self.children.insert(index, Vec::new());
        self.children.entry(parent).or_default().push(index);
    }

    fn take(&mut self, index: u32) {
        let parent = self.parents.remove(&index).unwrap();

        assert!(self.children.remove(&index).unwrap().is_empty());
        self.children
            .get_mut(&parent)
            .unwrap()
            .retain(|child| *child != index);
    }

    /// Everything below and with `root`, in the order of RES-31. Without recursion, because trees
    /// are deep.
    fn order(&self, root: u32) -> Vec<u32> {
        let mut order = Vec::new();
        let mut open = vec![root];

        // The root, then its children from the first to the last: read backwards it is the order
        // of the end.
        while let Some(index) = open.pop() {
            order.push(index);
            open.extend(self.children[&index].iter().rev());
        }
        order.reverse();
        order
    }

    /// `None` for a root.
    fn root(&self, index: u32) -> Option<u32> {
        let mut at = index;

        while self.parents[&at] != 0 {
            at = self.parents[&at];
        }
        (at != index).then_some(at)
    }

    fn is_below(&self, index: u32, root: u32) -> bool {
        let mut at = index;

        while at != 0 && at != root {
            at = self.parents[&at];
        }
        at == root
    }
}

/// Also when the numbers have wrapped, so that the last child has the smallest.
#[test]
fn the_last_child_ends_first() {
    let mut table = Table::new();

    assert!(table.add(0, 50));
    assert_eq!(table.last_child(50), None);
    for index in [60, 70, 1, 40] {
        assert!(table.add(50, index));
    }
    assert_eq!(table.last_child(50), Some(40));
    assert_eq!(table.end(50).0, [40, 1, 70, 60, 50]);
    assert!(table.0.first_from(0).is_none());
}

/// Device, context, HW queue, doorbell: each with a sibling on both sides.
#[test]
fn grandchildren_end_before_children() {
    let mut table = Table::new();

    for (parent, index) in [
        (0, 1),
        (1, 2),
        (1, 3),
        (3, 4),
        (3, 5),
        (5, 6),
        (3, 7),
        (1, 8),
        (5, 9),
    ] {
        assert!(table.add(parent, index));
    }
    assert_eq!(table.end(3).0, [7, 9, 6, 5, 4, 3]);
    assert_eq!(table.last_child(1), Some(8));
    assert_eq!(table.end(1).0, [8, 2, 1]);
}

/// What is directly below the root knows it, all others ask their parents; at every stage.
#[test]
fn the_root_is_known_at_any_depth() {
    let mut table = Table::new();

    for (parent, index) in [(0, 0xff_ffff), (0, 1), (0xff_ffff, 2), (2, 3), (3, 4)] {
        assert!(table.add(parent, index));
    }
    assert!(table.reserve(3, 5, 7));
    assert_eq!(table.root(0xff_ffff), None);
    assert_eq!(table.root(1), None);
    for index in 2..=5 {
        let links = table.0.get(index).unwrap().0;

        assert_eq!(table.root(index), Some(0xff_ffff));
        assert_eq!(links.parent_if_root(), (index == 2).then_some(0xff_ffff));
    }

    let mut teardown = table.begin(2);

    assert_eq!(table.step(&mut teardown), Some(5));
    for index in 2..=4 {
        assert_eq!(table.root(index), Some(0xff_ffff));
    }
}

#[test]
fn a_parent_that_is_ending_or_gone_gets_no_child() {
    let mut table = Table::new();

    assert!(!table.add(1, 2), "no parent");
    assert!(table.add(0, 1));

    let mut teardown = table.begin(1);

    assert!(!table.add(1, 2), "ending");
    assert_eq!(table.step(&mut teardown), Some(1));
    assert!(teardown.is_done());
    assert!(!table.add(1, 2), "gone");
}

/// A table that is closed may lose a parent before its children.
#[test]
fn leaving_a_parent_that_is_gone_is_harmless() {
    let mut table = Table::new();

    assert!(table.add(0, 1));
    assert!(table.add(1, 2));
    assert!(table.add(1, 3));
    table.take(1);
    table.take(3);
    table.take(2);
    assert!(table.0.first_from(0).is_none());
}

/// A chain of thousands ends from its end, and a step goes down a bounded number of levels.
#[test]
fn the_end_takes_as_many_steps_as_there_are_entries() {
    let count = if cfg!(miri) { 300 } else { 20_000 };
    let mut table = Table::new();

    for index in 1..=count {
        assert!(table.add(index - 1, index));
    }

    let mut end = table.begin(1);

    assert_eq!(table.step(&mut end), None, "the leaf is too far down");
    assert!(!end.is_done());

    let (order, steps) = table.end(1);

    assert!(order.into_iter().eq((1..=count).rev()));
    assert!(steps <= (count + count / LEVELS + 1) as usize, "{steps}");

    // A wide one, with chains at the sides.
    assert!(table.add(0, 1));
    for index in 2..=count {
        assert!(table.add(if index % 4 == 2 { 1 } else { index - 1 }, index));
    }
    assert_eq!(table.end(1).1, count as usize);
}

/// Ending a part of a tree that another thread ends helps it, and both come to an end.
#[test]
fn an_end_inside_another_one_helps() {
    let mut table = Table::new();

    for (parent, index) in [(0, 1), (1, 2), (2, 3), (3, 4), (3, 5), (2, 6)] {
        assert!(table.add(parent, index));
    }

    let mut inner = table.begin(3);

    assert_eq!(table.step(&mut inner), Some(5));

    let mut outer = table.begin(1);

    assert_eq!(table.step(&mut outer), Some(6));
    assert_eq!(table.step(&mut outer), Some(4));
    assert_eq!(table.step(&mut outer), Some(3));
    assert_eq!(table.step(&mut inner), None, "its tree is gone");
    assert!(inner.is_done());
    assert_eq!(table.step(&mut outer), Some(2));
    assert_eq!(table.step(&mut outer), Some(1));
    assert!(outer.is_done());
}

/// RES-3: a handle that is ending is not published any more, no matter who tries.
#[test]
fn stages_go_forward_only() {
    let mut table = Table::new();

    assert!(table.add(0, 1));
    assert!(table.reserve(1, 0xff_ffff, 7));
    assert!(!table.add(0xff_ffff, 2), "not published");

    let links = &mut table.0.get_mut(0xff_ffff).unwrap().0;

    assert_eq!(links.stage(), Stage::Reserved);
    assert!(links.publish(7));
    assert_eq!(links.stage(), Stage::Published);
    assert!(!links.publish(7), "a second time");
    links.mark_ending();
    assert_eq!(links.stage(), Stage::Ending);
    assert!(!links.publish(7));
    assert_eq!(links.stage(), Stage::Ending);
    assert_eq!(links.parent(), Some(1));
    assert_eq!(table.last_child(1), Some(0xff_ffff));

    assert!(table.reserve(1, 3, 8));
    let reserved = &mut table.0.get_mut(3).unwrap().0;

    reserved.mark_ending();
    assert!(!reserved.is_reserved_by(8));
    assert!(!reserved.publish(8));
    assert_eq!(reserved.stage(), Stage::Ending);
    assert_eq!(reserved.last_child(), None);
    assert_eq!(table.end(1).0, [3, 0xff_ffff, 1]);
}

/// RES-3, RES-4: an index that is reserved again is not that of the first reservation, and the
/// number of a reservation is no child.
#[test]
fn a_reservation_knows_its_own_entry() {
    let mut table = Table::new();

    assert!(table.add(0, 1));
    assert!(table.reserve(1, 2, 3));
    assert!(table.add(1, 3));
    assert_eq!(table.last_child(2), None);
    assert_eq!(table.end(1).0, [3, 2, 1]);

    assert!(table.reserve(0, 2, 4));

    let links = &mut table.0.get_mut(2).unwrap().0;

    assert!(!links.is_reserved_by(3));
    assert!(!links.publish(3));
    assert_eq!(links.stage(), Stage::Reserved);
    assert!(links.is_reserved_by(4));
    assert!(links.publish(4));
    assert!(!links.is_reserved_by(4));
    assert_eq!(links.last_child(), None);
}

#[derive(Clone, Debug)]
enum Op {
    Root,
    Add(prop::sample::Index),
    /// A leaf leaves.
    Take(prop::sample::Index),
    End(prop::sample::Index),
}

fn any_of(model: &Model, which: prop::sample::Index) -> Option<u32> {
    let count = model.parents.len();

    (count != 0).then(|| {
        *model
            .parents
            .keys()
            .nth(which.index(count))
            .expect("it is below the count")
    })
}

/// A number that no other one has, and not in the order of creation.
fn scattered(number: u32) -> u32 {
    ((number.wrapping_mul(2_654_435_761) >> 8) & 0xff_ffff) | 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 1000 }))]

    /// Adding anywhere, leaving in any order and ending any tree, as lists do it.
    #[test]
    fn trees_match_lists(
        deep in any::<bool>(),
        ops in prop::collection::vec(
            prop_oneof![
                1 => Just(Op::Root),
                8 => any::<prop::sample::Index>().prop_map(Op::Add),
                3 => any::<prop::sample::Index>().prop_map(Op::Take),
                1 => any::<prop::sample::Index>().prop_map(Op::End),
            ],
            0..200,
        ),
    ) {
        let mut table = Table::new();
        let mut model = Model::default();
        let mut last = None;

        for (number, op) in (1..).zip(ops) {
            let index = scattered(number);

            if model.parents.contains_key(&index) {
                continue;
            }
            match op {
                Op::Root => {
                    table.add(0, index);
                    model.add(0, index);
                }
                // A chain, or anywhere.
                Op::Add(which) => {
                    let known = last.filter(|last| deep && model.parents.contains_key(last));

                    if let Some(parent) = known.or_else(|| any_of(&model, which)) {
                        prop_assert!(table.add(parent, index));
                        model.add(parent, index);
                        last = Some(index);
                    }
                }
                Op::Take(which) => {
                    if let Some(leaf) = any_of(&model, which).and_then(|top| model.order(top).first().copied()) {
                        table.take(leaf);
                        model.take(leaf);
                    }
                }
                Op::End(which) => if let Some(root) = any_of(&model, which) {
                    let order = model.order(root);

                    prop_assert_eq!(&table.end(root).0, &order);
                    for index in order {
                        model.take(index);
                    }
                },
            }
            if model.parents.contains_key(&index) {
                prop_assert_eq!(table.root(index), model.root(index));
            }
            for (index, parent) in &model.parents {
                let links = table.0.get(*index).unwrap().0;

                prop_assert_eq!(links.parent().unwrap_or(0), *parent);
                prop_assert_eq!(
                    links.parent_if_root(),
                    Some(*parent).filter(|parent| model.parents.get(parent) == Some(&0))
                );
                prop_assert_eq!(links.last_child(), model.children[index].last().copied());
            }
        }
        while let Some(root) = model.children.get(&0).and_then(|roots| roots.last().copied()) {
            let order = model.order(root);

            prop_assert_eq!(&table.end(root).0, &order);
            for index in order {
                model.take(index);
            }
        }
        prop_assert!(table.0.first_from(0).is_none());
    }

    /// Several ends inside and beside each other, in any order of their steps, while others add
    /// and leave: all come to an end, take each entry once and after its children, and nothing
    /// else.
    #[test]
    fn ends_may_meet(
        shape in prop::collection::vec(any::<prop::sample::Index>(), 1..120),
        roots in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        turns in prop::collection::vec((0..5usize, any::<prop::sample::Index>()), 0..300),
    ) {
        let mut table = Table::new();
        let mut model = Model::default();

        for (number, which) in (1..).zip(shape) {
            let parent = any_of(&model, which).unwrap_or(0);

            prop_assert!(table.add(parent, number));
            model.add(parent, number);
        }

        let mut whole = model.clone();
        let roots: Vec<_> = roots.into_iter().filter_map(|which| any_of(&model, which)).collect();
        let mut ends: Vec<_> = roots.iter().map(|root| table.begin(*root)).collect();
        let mut number = 1000;
        let turns = turns.into_iter().map(|(turn, which)| (turn, Some(which)));

        for (turn, which) in turns.chain((0..).map(|turn| (turn % 5, None))) {
            if ends.iter().all(Teardown::is_done) {
                break;
            }
            match ends.get_mut(turn) {
                Some(end) if !end.is_done() => {
                    if let Some(index) = table.step(end) {
                        prop_assert!(roots.iter().any(|root| whole.is_below(index, *root)));
                        model.take(index);
                    }
                }
                Some(_) => {}
                None => if let Some(parent) = which.and_then(|which| any_of(&model, which)) {
                    number += 1;
                    if table.add(parent, number) {
                        model.add(parent, number);
                        whole.add(parent, number);
                    }
                }
            }
        }
        for root in &roots {
            prop_assert!(!model.parents.contains_key(root));
        }
        for index in model.parents.keys() {
            prop_assert!(table.0.get(*index).is_some());
        }
    }
}
