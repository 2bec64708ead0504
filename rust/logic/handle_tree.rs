// SPDX-License-Identifier: GPL-2.0

//! Which entries of a table are children of another one, to any depth, and how a tree of them ends.
//!
//! An entry knows its parent, its last child, and its neighbours among the children of its parent.
//! So an entry joins and leaves with two or three lookups, however many there are.
//!
//! A tree ends one entry after the other: the last child first, each after its own children, and
//! the root at last (RES-31). An entry is marked before its children are looked at; it gets no more
//! children from then on. Every marked entry is on its way out, so that it does not matter who
//! takes it out, and several that end trees inside each other help each other.

use super::handle::LAST_INDEX;
use crate::ddi::index_map::IndexMap;

/// How many levels one step goes down.
pub const LEVELS: u32 = 64;

/// Instead of an index: there is none. No entry has this index.
const NONE: u32 = 0;

/// How far a handle has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has a number and does not resolve yet.
    Reserved,
    /// It resolves.
    Published,
    /// It does not resolve any more and is taken out soon, after its children.
    Ending,
}

/// The bits of [`ChildLinks::parent_and_stage`] that are an index.
const INDEX: u32 = LAST_INDEX;
const ENDING: u32 = 1 << 29;
const PUBLISHED: u32 = 1 << 30;
const STAGE: u32 = PUBLISHED | ENDING;
/// The parent is a root. The top bit, which is the cheapest one to look at.
const BELOW_ROOT: u32 = 1 << 31;

const _: () = assert!(LAST_INDEX < ENDING && (LAST_INDEX + 1).is_power_of_two());

/// The place of an entry in its tree, and its stage. The default is that of a reserved handle
/// without relatives.
#[derive(Clone, Copy, Default)]
pub struct ChildLinks {
    parent_and_stage: u32,
    /// Before the handle is published, which only then can have children: its reservation.
    last_child: u32,
    /// The child of the same parent that was made before.
    older: u32,
    younger: u32,
}

impl ChildLinks {
    /// The index of the parent.
    pub fn parent(&self) -> Option<u32> {
        some(self.parent_and_stage & INDEX)
    }

    /// The index of the parent, if that is a root. Without a look at the parent.
    pub fn parent_if_root(&self) -> Option<u32> {
        (self.parent_and_stage & BELOW_ROOT != 0).then_some(self.parent_and_stage & INDEX)
    }

    /// The index of the child that was made last.
    pub fn last_child(&self) -> Option<u32> {
        (self.parent_and_stage & PUBLISHED != 0)
            .then_some(self.last_child)
            .and_then(some)
    }

    /// How far the handle has come.
    pub fn stage(&self) -> Stage {
        match self.parent_and_stage & STAGE {
            0 => Stage::Reserved,
            PUBLISHED => Stage::Published,
            _ => Stage::Ending,
        }
    }

    /// Says which reservation made the handle, which is new. The same index may have been reserved
    /// before.
    pub fn set_reservation(&mut self, reservation: u32) {
        self.last_child = reservation;
    }

    /// Whether the handle does not resolve yet, and this reservation made it.
    pub fn is_reserved_by(&self, reservation: u32) -> bool {
        self.stage() == Stage::Reserved && self.last_child == reservation
    }

    /// Makes the handle resolve, if it is still reserved by this reservation. Whether it was.
    pub fn publish(&mut self, reservation: u32) -> bool {
        let is_reserved = self.is_reserved_by(reservation);

        if is_reserved {
            self.parent_and_stage |= PUBLISHED;
            self.last_child = NONE;
        }
        is_reserved
    }

    /// Marks the handle: it is on its way out.
    pub fn mark_ending(&mut self) {
        self.parent_and_stage |= ENDING;
    }
}

/// An entry of a tree.
pub trait Node {
    /// Its place.
    fn links(&self) -> &ChildLinks;

    /// The same, to be changed.
    fn links_mut(&mut self) -> &mut ChildLinks;

    /// Whether it is on its way out.
    fn is_ending(&self) -> bool {
        self.links().stage() == Stage::Ending
    }
}

fn some(index: u32) -> Option<u32> {
    (index != NONE).then_some(index)
}

/// Makes the entry that will be at `index` the last child of the one at `parent`, if that is there
/// and `accept` agrees with it, which must be published. The links of the new entry.
pub fn attach<T: Node>(
    entries: &mut IndexMap<T>,
    parent: u32,
    index: u32,
    accept: impl FnOnce(&T) -> bool,
) -> Option<ChildLinks> {
    let links = entries
        .get_mut(parent)
        .filter(|entry| accept(entry))?
        .links_mut();
    let older = core::mem::replace(&mut links.last_child, index);
    let below_root = match links.parent() {
        None => BELOW_ROOT,
        Some(_) => 0,
    };

    if let Some(entry) = some(older).and_then(|older| entries.get_mut(older)) {
        entry.links_mut().younger = index;
    }
    Some(ChildLinks {
        parent_and_stage: parent & INDEX | below_root,
        older,
        ..ChildLinks::default()
    })
}

/// The index of the root that an entry with these links is below; `None` for a root. One lookup for
/// each level between them.
pub fn root<T: Node>(entries: &IndexMap<T>, links: &ChildLinks) -> Option<u32> {
    let mut links = links;

    loop {
        if let Some(root) = links.parent_if_root() {
            return Some(root);
        }
        links = entries.get(links.parent()?)?.links();
    }
}

/// An entry with these links, which has no children, was taken out.
pub fn detach<T: Node>(entries: &mut IndexMap<T>, links: &ChildLinks) {
    if let Some(entry) = some(links.older).and_then(|older| entries.get_mut(older)) {
        entry.links_mut().younger = links.younger;
    }
    if let Some(younger) = some(links.younger) {
        if let Some(entry) = entries.get_mut(younger) {
            entry.links_mut().older = links.older;
        }
    } else if let Some(entry) = links.parent().and_then(|parent| entries.get_mut(parent)) {
        entry.links_mut().last_child = links.older;
    }
}

/// The end of a tree. It takes as many steps as the tree has entries, and one more for [`LEVELS`]
/// levels.
pub struct Teardown {
    /// [`NONE`] once the root is taken out.
    root: u32,
    /// Where the next step begins: an entry of the tree that is marked.
    at: u32,
}

impl Teardown {
    /// Of the tree below the entry at `root`, which is marked.
    pub fn of(root: u32) -> Self {
        Self { root, at: root }
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.root == NONE
    }

    /// The index of the next entry to take out, which has to be done before the next step. None if
    /// there is none yet, or nothing is left.
    pub fn step<T: Node>(&mut self, entries: &mut IndexMap<T>) -> Option<u32> {
        // Another call may have taken the entry out: start from the root again.
        if !entries.get(self.at).is_some_and(Node::is_ending) {
            self.at = self.root;
        }

        let Some(mut entry) = entries.get_mut(self.at).filter(|entry| entry.is_ending()) else {
            self.root = NONE;
            return None;
        };

        for _ in 0..LEVELS {
            let links = *entry.links();
            let child = links.last_child();

            match child.and_then(|child| entries.get_mut(child)) {
                Some(child) => {
                    child.links_mut().mark_ending();
                    self.at = links.last_child;
                    entry = child;
                }
                None => {
                    let leaf = self.at;

                    if leaf == self.root {
                        self.root = NONE;
                    }
                    self.at = links.parent().unwrap_or(NONE);
                    return Some(leaf);
                }
            }
        }
        None
    }
}
