// SPDX-License-Identifier: GPL-2.0

//! A map from indices to values, for handle tables. The cost of a lookup does not depend on the
//! number of values.
//!
//! A leaf has 32 values; a node above has 128 children. There are as many levels as the largest
//! index needs: two up to 4096, three up to 2^19.
//!
//! The map is used under a spinlock, so these calls neither allocate nor drop. An insertion asks
//! for the [`MissingNode`], makes a node for it without the lock, and inserts that; what is left
//! over is returned as [`FreedNodes`]. Empty nodes are removed, except the most recently inserted
//! leaf: this avoids an allocation for each create and destroy pair.

use crate::platform::{
    none_array,
    Boxed, //
};

const LEAF_BITS: u32 = 5;
const INNER_BITS: u32 = 7;
const LEAF: usize = 1 << LEAF_BITS;
const INNER: usize = 1 << INNER_BITS;

/// A part of the map. Counts what it has.
enum Node<T> {
    Leaf {
        used: u32,
        slots: Boxed<[Option<T>; LEAF]>,
    },
    Inner {
        used: u16,
        /// How many bits of the index are left to its children.
        shift: u16,
        children: Boxed<[Option<Node<T>>; INNER]>,
    },
}

impl<T> Node<T> {
    /// How many bits of the index it and what is below it tell apart.
    fn bits(&self) -> u32 {
        match self {
            Self::Leaf { .. } => LEAF_BITS,
            Self::Inner { shift, .. } => u32::from(*shift).saturating_add(INNER_BITS),
        }
    }
}

/// The highest number of this many bits.
fn highest(bits: u32) -> u32 {
    1u32.checked_shl(bits).unwrap_or(0).wrapping_sub(1)
}

/// Where the way to `index` goes on from a node whose children tell `shift` bits apart.
fn child_of(index: u32, shift: u16) -> usize {
    // CAST: 32 bits fit a usize.
    index.wrapping_shr(shift.into()) as usize % INNER
}

/// The place of `index` in its leaf.
fn slot_of(index: u32) -> usize {
    // CAST: 32 bits fit a usize.
    index as usize % LEAF
}

/// What an insertion needs and the map does not have; [`NewNode`] is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingNode {
    bits: u32,
}

/// An empty node, to be put in.
pub struct NewNode<T>(Node<T>);

impl<T> NewNode<T> {
    /// A node for the missing place; `None` without memory. May sleep.
    pub fn new(missing_node: MissingNode) -> Option<Self> {
        Some(Self(if missing_node.bits == LEAF_BITS {
            Node::Leaf {
                used: 0,
                slots: none_array()?,
            }
        } else {
            Node::Inner {
                used: 0,
                // CAST: below 32.
                shift: missing_node.bits.saturating_sub(INNER_BITS) as u16,
                children: none_array()?,
            }
        }))
    }
}

/// Nodes that are no longer used, to be dropped without a lock.
pub struct FreedNodes<T>(#[allow(dead_code)] Node<T>);

/// A value that was taken out, with what is to be dropped together with it.
pub struct Removed<T> {
    pub value: T,
    freed: Option<FreedNodes<T>>,
}

#[cfg(test)]
impl<T> Removed<T> {
    /// Whether nodes went with the value.
    pub fn has_freed_nodes(&self) -> bool {
        self.freed.is_some()
    }
}

/// Whether a value can be put at an index.
#[derive(Debug, PartialEq, Eq)]
pub enum SlotState {
    /// There is one.
    Taken,
    /// Nothing is missing.
    Free,
    /// There is a [`MissingNode`].
    Missing,
}

/// What is at an index.
enum Look<'a, T> {
    Value(&'a T),
    /// Nothing, nor at the other indices that differ in this many low bits only.
    Nothing(u32),
    /// The index is larger than the map has levels for.
    Outside,
}

/// A map with indices as keys.
pub struct IndexMap<T> {
    root: Option<Node<T>>,
    /// The largest index that a root has room for.
    end: u32,
    /// The number of the leaf that was inserted last.
    kept: u32,
}

impl<T> IndexMap<T> {
    /// An empty map.
    pub const fn new() -> Self {
        Self {
            root: None,
            end: 0,
            kept: 0,
        }
    }

    fn look(&self, index: u32) -> Look<'_, T> {
        let Some(mut node) = self.root.as_ref().filter(|_| index <= self.end) else {
            return Look::Outside;
        };

        loop {
            match node {
                Node::Leaf { slots, .. } => {
                    return match slots.get(slot_of(index)) {
                        Some(Some(value)) => Look::Value(value),
                        _ => Look::Nothing(0),
                    }
                }
                Node::Inner {
                    shift, children, ..
                } => match children.get(child_of(index, *shift)) {
                    Some(Some(child)) => node = child,
                    _ => return Look::Nothing((*shift).into()),
                },
            }
        }
    }

    /// The leaf of an index, and how many values are in it.
    fn leaf_mut(&mut self, index: u32) -> Option<(&mut u32, &mut [Option<T>; LEAF])> {
        let mut node = self.root.as_mut().filter(|_| index <= self.end)?;

        loop {
            match node {
                Node::Leaf { used, slots } => return Some((used, slots)),
                Node::Inner {
                    shift, children, ..
                } => node = children.get_mut(child_of(index, *shift))?.as_mut()?,
            }
        }
    }

    /// The place of the node of this many bits on the way to an index, and how many children the
    /// node above has. `None` for the root, which has nothing above.
    fn child_mut(&mut self, index: u32, bits: u32) -> Option<(&mut u16, &mut Option<Node<T>>)> {
        let mut node = self.root.as_mut()?;

        while let Node::Inner {
            used,
            shift,
            children,
        } = node
        {
            let child = children.get_mut(child_of(index, *shift))?;

            if u32::from(*shift) == bits {
                return Some((used, child));
            }
            node = child.as_mut()?;
        }
        None
    }

    /// What is at an index.
    pub fn get(&self, index: u32) -> Option<&T> {
        match self.look(index) {
            Look::Value(value) => Some(value),
            _ => None,
        }
    }

    /// What is at an index, to be changed.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (_, slots) = self.leaf_mut(index)?;

        slots.get_mut(slot_of(index))?.as_mut()
    }

    /// The first value from index `from` on, and its index.
    pub fn first_from(&self, from: u32) -> Option<(u32, &T)> {
        let mut index = from;

        loop {
            match self.look(index) {
                Look::Value(value) => return Some((index, value)),
                Look::Nothing(bits) => index = (index | highest(bits)).checked_add(1)?,
                Look::Outside => return None,
            }
        }
    }

    /// The last value below index `bound`, and its index.
    pub fn last_below(&self, bound: u32) -> Option<(u32, &T)> {
        let mut index = bound.checked_sub(1)?.min(self.end);

        loop {
            match self.look(index) {
                Look::Value(value) => return Some((index, value)),
                Look::Nothing(bits) => index = (index & !highest(bits)).checked_sub(1)?,
                Look::Outside => return None,
            }
        }
    }

    /// Whether a value can be put at an index.
    pub fn slot_state(&self, index: u32) -> SlotState {
        match self.look(index) {
            Look::Value(_) => SlotState::Taken,
            Look::Nothing(0) => SlotState::Free,
            _ => SlotState::Missing,
        }
    }

    /// The node that is missing before a value can be put at an index, if any. Another one may be
    /// missing after it.
    pub fn missing_node(&self, index: u32) -> Option<MissingNode> {
        let bits = match (self.look(index), &self.root) {
            (Look::Value(_) | Look::Nothing(0), _) => return None,
            (Look::Nothing(bits), _) => bits,
            (Look::Outside, Some(root)) => root.bits().saturating_add(INNER_BITS),
            (Look::Outside, None) => {
                let mut bits = LEAF_BITS;

                while index > highest(bits) {
                    bits = bits.saturating_add(INNER_BITS);
                }
                bits
            }
        };

        Some(MissingNode { bits })
    }

    /// Inserts a node for an index, if it is still the one that is missing.
    pub fn insert_node(&mut self, index: u32, new_node: NewNode<T>) -> Option<FreedNodes<T>> {
        let NewNode(mut node) = new_node;
        let bits = node.bits();

        if self.missing_node(index) != Some(MissingNode { bits }) {
            return Some(FreedNodes(node));
        }
        if let Some((used, place)) = self.child_mut(index, bits) {
            // OVERFLOW: it counts the children.
            *used = used.saturating_add(1);
            *place = Some(node);
        } else {
            let old = self.root.take();

            // The old root has the lowest indices.
            if let (Node::Inner { used, children, .. }, Some(_)) = (&mut node, &old) {
                *used = 1;
                children[0] = old;
            }
            self.root = Some(node);
            self.end = highest(bits);
        }
        if bits != LEAF_BITS {
            return None;
        }

        let kept = core::mem::replace(&mut self.kept, index >> LEAF_BITS);
        let first = kept << LEAF_BITS;
        let is_empty = self.leaf_mut(first).is_some_and(|(used, _)| *used == 0);

        if is_empty && kept != self.kept {
            self.cut(first)
        } else {
            None
        }
    }

    /// Puts a value at a free index for which no node is missing. Otherwise the value stays with
    /// the caller.
    pub fn put(&mut self, index: u32, value: &mut Option<T>) {
        if let Some((used, slots)) = self.leaf_mut(index) {
            if let Some(slot @ None) = slots.get_mut(slot_of(index)) {
                *slot = value.take();
                // OVERFLOW: it counts the slots.
                *used = used.saturating_add(slot.is_some().into());
            }
        }
    }

    /// Takes the value at an index out.
    pub fn take(&mut self, index: u32) -> Option<Removed<T>> {
        self.take_if(index, |_| true)
    }

    /// The same if `accept` agrees with the value.
    #[inline(always)]
    pub fn take_if(&mut self, index: u32, accept: impl FnOnce(&T) -> bool) -> Option<Removed<T>> {
        let (used, slots) = self.leaf_mut(index)?;
        let value = slots
            .get_mut(slot_of(index))?
            .take_if(|value| accept(value))?;

        *used = used.saturating_sub(1);

        let freed = if *used == 0 && index >> LEAF_BITS != self.kept {
            self.cut(index)
        } else {
            None
        };

        Some(Removed { value, freed })
    }

    /// Removes the empty leaf of an index, and all nodes above it without other children.
    fn cut(&mut self, index: u32) -> Option<FreedNodes<T>> {
        let mut node = self.root.as_ref()?;
        // The largest node without other children.
        let mut bits = node.bits();

        while let Node::Inner {
            used,
            shift,
            children,
        } = node
        {
            if *used > 1 {
                bits = (*shift).into();
            }
            node = children.get(child_of(index, *shift))?.as_ref()?;
        }

        let node = match self.child_mut(index, bits) {
            Some((used, child)) => {
                *used = used.saturating_sub(1);
                child.take()
            }
            None => self.root.take(),
        };

        node.map(FreedNodes)
    }
}
