// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which functions wait for the end of which container: a hash table whose places never move.
//!
//! Everything but [`Table::with_capacity`] and dropping leaves the heap alone, so that it can be
//! done under a lock that signal handlers take, too.

use core::ffi::c_void;
use std::os::fd::OwnedFd;

use super::Function;

/// No place.
const NONE: u32 = u32::MAX;

/// A function of the program.
#[derive(Clone, Copy)]
pub(super) struct Cleanup {
    pub(super) function: Function,
    pub(super) context: *mut c_void,
}

/// How a container is found again when its device is destroyed. Only the first function of a
/// container needs it.
#[derive(Default)]
pub(super) struct Witness {
    /// A local handle of it, which may be gone by now.
    pub(super) handle: u32,
    /// It was the only one when it was looked at.
    pub(super) alone: bool,
    /// A weak reference, where the handle is gone and others are not.
    pub(super) weak: Option<OwnedFd>,
}

struct Slot {
    id: u64,
    cleanup: Option<Cleanup>,
    /// The container is gone: the function is about to be run.
    is_due: bool,
    witness: Witness,
    /// The next place of the same bucket, or the next free one.
    next: u32,
}

/// A table of cleanup functions, by the container whose end they wait for.
pub(super) struct Table {
    slots: Box<[Slot]>,
    /// The first place of each bucket.
    buckets: Box<[u32]>,
    free: u32,
    len: usize,
}

// SAFETY: the program lets any thread call the functions with their contexts.
unsafe impl Send for Table {}

impl Table {
    /// An empty table for so many functions, at least one; `None` when there is no memory.
    pub(super) fn with_capacity(capacity: u32) -> Option<Self> {
        let capacity = capacity.max(1);
        let slot = |index: u32| Slot {
            id: 0,
            cleanup: None,
            is_due: false,
            witness: Witness::default(),
            next: if index + 1 == capacity {
                NONE
            } else {
                index + 1
            },
        };
        Some(Self {
            slots: boxed(capacity, slot)?,
            buckets: boxed(capacity, |_| NONE)?,
            free: 0,
            len: 0,
        })
    }

    pub(super) fn capacity(&self) -> u32 {
        // CAST: made of a u32.
        self.slots.len() as u32
    }

    /// How many functions there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a function, unless the table is full.
    pub(super) fn insert(&mut self, id: u64, handle: u32, cleanup: Cleanup) -> bool {
        let index = self.free;
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return false;
        };
        self.free = slot.next;
        slot.id = id;
        slot.cleanup = Some(cleanup);
        slot.is_due = false;
        slot.witness.handle = handle;
        self.append(index);
        self.len += 1;
        true
    }

    /// Puts a place at the end of its bucket, so that functions run in the order in which they
    /// were set.
    fn append(&mut self, index: u32) {
        let bucket = self.bucket(self.slots[index as usize].id);
        self.slots[index as usize].next = NONE;
        let mut at = self.buckets[bucket];
        if at == NONE {
            self.buckets[bucket] = index;
            return;
        }
        while self.slots[at as usize].next != NONE {
            at = self.slots[at as usize].next;
        }
        self.slots[at as usize].next = index;
    }

    fn bucket(&self, id: u64) -> usize {
        // Ids are counted up: the multiplication spreads them.
        let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (hash % self.buckets.len() as u64) as usize
    }

    /// The places of a bucket.
    fn chain(&self, id: u64) -> impl Iterator<Item = (u32, &Slot)> {
        let at = move |index: u32| Some((index, self.slots.get(index as usize)?));
        let first = at(self.buckets[self.bucket(id)]);
        core::iter::successors(first, move |(_, slot)| at(slot.next))
    }

    /// The first function that waits for the end of a container.
    fn head(&self, id: u64) -> Option<u32> {
        let waits = |slot: &Slot| slot.id == id && slot.cleanup.is_some() && !slot.is_due;
        let mut chain = self.chain(id);
        chain.find(|(_, slot)| waits(slot)).map(|(index, _)| index)
    }

    /// Whether a function waits for the end of a container.
    pub(super) fn knows(&self, id: u64) -> bool {
        self.head(id).is_some()
    }

    /// The container and the witness at a place, if it is the first function of a container.
    pub(super) fn at(&self, index: u32) -> Option<(u64, &Witness)> {
        let slot = self.slots.get(index as usize)?;
        let is_head = slot.cleanup.is_some() && self.head(slot.id) == Some(index);
        is_head.then_some((slot.id, &slot.witness))
    }

    /// The witness of a container.
    pub(super) fn witness(&mut self, id: u64) -> Option<&mut Witness> {
        let head = self.head(id)?;
        self.slots
            .get_mut(head as usize)
            .map(|slot| &mut slot.witness)
    }

    /// The container is gone: its functions are due. Later ones are not, if it comes back.
    pub(super) fn set_due(&mut self, id: u64) {
        while let Some(head) = self.head(id) {
            self.slots[head as usize].is_due = true;
        }
    }

    /// Every function is due.
    pub(super) fn set_all_due(&mut self) {
        for slot in &mut self.slots {
            slot.is_due = slot.cleanup.is_some();
        }
    }

    /// Takes out a function that is due, of a container or of any; also what is to be dropped
    /// later.
    pub(super) fn take_due(&mut self, id: Option<u64>) -> Option<(Cleanup, Witness)> {
        let is_due = |slot: &Slot| slot.cleanup.is_some() && slot.is_due;
        let index = match id {
            Some(id) => {
                let mut chain = self.chain(id);
                let found = chain.find(|(_, slot)| slot.id == id && is_due(slot));
                found?.0
            }
            // CAST: fewer than `capacity`.
            None => self.slots.iter().position(is_due)? as u32,
        };
        self.unlink(index);
        let slot = &mut self.slots[index as usize];
        slot.next = core::mem::replace(&mut self.free, index);
        self.len -= 1;
        Some((slot.cleanup.take()?, core::mem::take(&mut slot.witness)))
    }

    /// Takes a place out of its bucket.
    fn unlink(&mut self, index: u32) {
        let next = self.slots[index as usize].next;
        let bucket = self.bucket(self.slots[index as usize].id);
        if self.buckets[bucket] == index {
            self.buckets[bucket] = next;
            return;
        }
        let id = self.slots[index as usize].id;
        let before = self.chain(id).find(|(_, slot)| slot.next == index);
        if let Some(before) = before.map(|(before, _)| before) {
            self.slots[before as usize].next = next;
        }
    }

    /// Moves everything into a larger empty table, to the same places. What is left is empty.
    pub(super) fn grow_into(&mut self, mut larger: Self) -> Self {
        core::mem::swap(self, &mut larger);
        let from = &mut larger;
        // The free places of the old table come first.
        let mut last_free = NONE;
        self.len = core::mem::take(&mut from.len);
        self.free = from.capacity();
        for (index, old) in from.slots.iter_mut().enumerate() {
            core::mem::swap(&mut self.slots[index], old);
        }
        for index in (0..from.capacity()).rev() {
            if self.slots[index as usize].cleanup.is_none() {
                let next = if last_free == NONE {
                    self.free
                } else {
                    last_free
                };
                self.slots[index as usize].next = next;
                last_free = index;
            }
        }
        if last_free != NONE {
            self.free = last_free;
        }
        // In the order of the old buckets, which is that of setting.
        for bucket in 0..from.buckets.len() {
            let mut at = core::mem::replace(&mut from.buckets[bucket], NONE);
            while let Some(slot) = self.slots.get(at as usize) {
                let next = slot.next;
                self.append(at);
                at = next;
            }
        }
        larger
    }
}

/// A boxed slice; `None` when there is no memory.
fn boxed<T>(len: u32, make: impl Fn(u32) -> T) -> Option<Box<[T]>> {
    let mut all = Vec::new();
    all.try_reserve_exact(len as usize).ok()?;
    all.extend((0..len).map(make));
    Some(all.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C-unwind" fn nothing(_: *mut c_void) {}

    fn cleanup(number: usize) -> Cleanup {
        Cleanup {
            function: nothing,
            context: number as *mut c_void,
        }
    }

    fn taken(table: &mut Table, id: u64) -> Vec<usize> {
        table.set_due(id);
        let take = || Some(table.take_due(Some(id))?.0.context as usize);
        core::iter::from_fn(take).collect()
    }

    #[test]
    fn functions_of_a_container_run_in_their_order() {
        let mut table = Table::with_capacity(4).unwrap();
        for number in 1..=3 {
            assert!(table.insert(7, 0x40, cleanup(number)));
        }
        assert!(table.insert(8, 0x80, cleanup(4)));
        assert!(!table.insert(9, 0xc0, cleanup(5)));
        assert_eq!(taken(&mut table, 7), [1, 2, 3]);
        assert!(!table.knows(7) && table.knows(8));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn what_is_due_is_not_found_again_and_what_is_set_later_is_not_due() {
        let mut table = Table::with_capacity(4).unwrap();
        table.insert(7, 0x40, cleanup(1));
        table.insert(7, 0x40, cleanup(2));
        table.set_due(7);
        assert!(!table.knows(7));
        table.insert(7, 0x80, cleanup(3));
        assert_eq!(
            table.at(2).map(|(id, witness)| (id, witness.handle)),
            Some((7, 0x80))
        );
        let run: Vec<_> = core::iter::from_fn(|| table.take_due(Some(7))).collect();
        assert_eq!(run.len(), 2);
        assert!(table.knows(7));
    }

    #[test]
    fn only_the_first_function_has_a_witness() {
        let mut table = Table::with_capacity(4).unwrap();
        table.insert(7, 0x40, cleanup(1));
        table.insert(7, 0x80, cleanup(2));
        assert!(table.at(0).is_some() && table.at(1).is_none() && table.at(4).is_none());
        table.witness(7).unwrap().alone = true;
        assert!(table.at(0).unwrap().1.alone);
        assert!(table.witness(8).is_none());
    }

    /// Against a list, with growing in between.
    #[test]
    fn any_order_of_calls() {
        let mut table = Table::with_capacity(1).unwrap();
        let mut model: Vec<(u64, usize)> = Vec::new();
        let mut random = 1u64;
        for number in 0..3000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let id = (random >> 40) % 50;
            if (random >> 33) % 3 == 0 {
                let expected: Vec<_> = model.iter().filter(|(other, _)| *other == id).collect();
                let expected: Vec<_> = expected.into_iter().map(|&(_, number)| number).collect();
                model.retain(|(other, _)| *other != id);
                assert_eq!(taken(&mut table, id), expected);
            } else {
                if !table.insert(id, 0x40, cleanup(number)) {
                    let larger = Table::with_capacity(table.capacity() * 2).unwrap();
                    let old = table.grow_into(larger);
                    assert_eq!(old.len(), 0);
                    assert!(table.insert(id, 0x40, cleanup(number)));
                }
                model.push((id, number));
            }
            assert_eq!(table.len(), model.len());
            assert_eq!(table.knows(id), model.iter().any(|(other, _)| *other == id));
        }
        table.set_all_due();
        let rest = core::iter::from_fn(|| table.take_due(None)).count();
        assert_eq!((rest, table.len()), (model.len(), 0));
    }
}
