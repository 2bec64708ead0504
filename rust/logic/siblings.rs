// SPDX-License-Identifier: GPL-2.0

//! Which entries of a table go with another one, in the order in which they joined it.
//!
//! An entry and those that go with it, its children, form a ring of indices: the head, its youngest
//! child, the next older one, and so on back to the head. Joining and leaving take a few lookups,
//! however many there are. A head leaves the table after its children.

use super::index_map::IndexMap;

/// The neighbours of an entry in its ring.
pub struct Kin {
    /// The next older one; the head after the oldest, the youngest after the head.
    older: u32,
    younger: u32,
}

/// What has neighbours.
pub trait Related {
    /// Its neighbours.
    fn kin(&mut self) -> &mut Kin;
}

impl Kin {
    /// The entry at `index` is a ring of its own.
    pub const fn alone(index: u32) -> Self {
        Self {
            older: index,
            younger: index,
        }
    }

    /// The youngest child of the entry at `head` with these neighbours.
    pub fn youngest(&self, head: u32) -> Option<u32> {
        (self.older != head).then_some(self.older)
    }
}

/// Makes the entry that will be at `index` the youngest child of the one at `head`, if that is
/// there and `accept` agrees with it. The neighbours of the new entry.
pub fn join<T: Related>(
    entries: &mut IndexMap<T>,
    head: u32,
    index: u32,
    accept: impl FnOnce(&T) -> bool,
) -> Option<Kin> {
    let parent = entries.get_mut(head).filter(|entry| accept(entry))?;
    let older = core::mem::replace(&mut parent.kin().older, index);
    let youngest = if older == head {
        Some(parent)
    } else {
        entries.get_mut(older)
    };

    if let Some(entry) = youngest {
        entry.kin().younger = index;
    }
    Some(Kin {
        older,
        younger: head,
    })
}

/// An entry with these neighbours was taken out.
pub fn leave<T: Related>(entries: &mut IndexMap<T>, kin: &Kin) {
    if let Some(entry) = entries.get_mut(kin.older) {
        entry.kin().younger = kin.younger;
    }
    if let Some(entry) = entries.get_mut(kin.younger) {
        entry.kin().older = kin.older;
    }
}
