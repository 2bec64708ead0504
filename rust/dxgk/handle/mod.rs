// SPDX-License-Identifier: GPL-2.0

//! The local handles of one process: one table for all kinds of objects (RES-6, RES-7).
//!
//! A handle is made in two steps. A *reserved* handle has its number, so that the number can be
//! copied out, but does not resolve; *committing* it cannot fail and is the last thing a call does
//! (RES-3). A reserved handle that is dropped gives its number back (RES-4).
//!
//! Numbers increase until they wrap, so an [`IndexMap`] is dense and keeps the order of creation.
//! The kernel's `XArray` would allocate under its own lock. It would also allocate and free a node
//! for every object of a client that makes and destroys one after the other.
//!
//! LOCK: `state` is a leaf. Lookups clone references under it; entries and nodes are allocated
//! before it and dropped after it.

pub(crate) mod chosen_allocations;
mod device_handles;
mod entry;
mod fdinfo;
pub(crate) mod lookup;
pub(crate) mod more_handles;
pub(crate) mod open_allocation;
pub(crate) mod open_resource;
pub(crate) mod open_sync_object;
mod removal;
pub(crate) mod reserved_handles;
mod tests;

use crate::{
    ddi::index_map::{
        FreedNodes,
        IndexMap,
        MissingNode,
        NewNode,
        Removed,
        SlotState, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        handle::{
            self,
            Cursor, //
        },
        handle_tree::{
            self,
            ChildLinks,
            Node,
            Teardown, //
        }, //
    },
    sys::{
        params,
        seq, //
    }, //
};
use entry::Entry;
use fdinfo::{
    Adapters,
    Infos,
    Line,
    Waits, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        lock::{
            spinlock::SpinLockBackend,
            Guard, //
        },
        Arc,
        SpinLock, //
    }, //
};

pub(crate) use entry::{
    HandleTarget,
    Parent,
    Shareable, //
};

/// Lookups under one hold of the lock.
const LOOKUPS: usize = 64;

/// The most handles that fdinfo shows of one process. No ordinary program has more.
const HANDLES_SHOWN: u32 = 16384;

/// Entries that were taken out of a table. Dropping it ends them, last one first.
pub(crate) struct TakenHandles(KVVec<Removed<Entry>>);

impl TakenHandles {
    /// What one of them stands for, in the order of their numbers.
    pub(crate) fn item(&self, place: usize) -> Option<&HandleTarget> {
        self.0.get(place).map(|removed| &removed.value.item)
    }
}

impl Drop for TakenHandles {
    fn drop(&mut self) {
        while let Some(removed) = self.0.pop() {
            drop(removed);
        }
    }
}

/// Result of an insertion.
enum Insertion {
    Done {
        index: u32,
        reservation: u32,
    },
    /// A node is missing.
    Missing(MissingNode),
}

struct State {
    /// By index, which is the order of creation until the numbers wrap.
    entries: IndexMap<Entry>,
    cursor: Cursor,
    count: u32,
    /// The number of the last reservation. It tells reservations of one index apart.
    reservation: u32,
    /// The process is gone; nothing may be added.
    closed: bool,
}

impl State {
    /// The entry behind a handle, if it is published.
    #[inline(always)]
    fn find(&self, local: u32) -> Option<&Entry> {
        let index = handle::local_index(local)?;

        self.entries.get(index).filter(|entry| entry.is_published())
    }

    /// The handle of the device that an entry is below, at any depth: a device is the root of all
    /// that is made on it. What was made on the device itself costs no lookup.
    fn device_of(&self, entry: &Entry) -> Option<u32> {
        handle_tree::root(&self.entries, entry.links()).map(handle::local)
    }

    /// INVALID_PARAMETER unless all of these resolve and `accept` agrees with each.
    fn check(
        &self,
        locals: &[u32],
        mut accept: impl FnMut(Option<u32>, &HandleTarget) -> bool,
    ) -> DxgResult {
        let good = locals.iter().all(|local| {
            self.find(*local)
                .is_some_and(|entry| accept(self.device_of(entry), &entry.item))
        });

        if good {
            Ok(())
        } else {
            Err(Status::INVALID_PARAMETER.into())
        }
    }

    /// Gives an entry, which is there, its number and puts it in. `new_node` is a node that was
    /// made because it was missing before, and is taken if it is used; `freed` is to be dropped
    /// without the lock.
    fn insert(
        &mut self,
        entry: &mut Option<Entry>,
        parent: Option<&Parent>,
        new_node: &mut Option<NewNode<Entry>>,
        freed: &mut Option<FreedNodes<Entry>>,
    ) -> DxgResult<Insertion> {
        if self.closed || self.count >= params::max_handles() {
            return Err(Status::NO_MEMORY.into());
        }

        let Self {
            entries, cursor, ..
        } = self;
        let mut slot = SlotState::Taken;
        let index = cursor
            .take(|index| {
                slot = entries.slot_state(index);
                slot != SlotState::Taken
            })
            .ok_or(Status::NO_MEMORY)?;

        if slot == SlotState::Missing {
            *freed = new_node
                .take()
                .and_then(|new_node| entries.insert_node(index, new_node));
            if let Some(missing_node) = entries.missing_node(index) {
                cursor.put_back(index);
                return Ok(Insertion::Missing(missing_node));
            }
        }

        let mut links = ChildLinks::default();

        if let Some(parent) = parent {
            links = handle_tree::attach(entries, parent.index, index, |entry| {
                entry.is_parent(parent.id)
            })
            .ok_or_else(|| {
                cursor.put_back(index);
                Status::INVALID_PARAMETER
            })?;
        }
        self.reservation = self.reservation.wrapping_add(1);
        links.set_reservation(self.reservation);
        if let Some(entry) = entry {
            *entry.links_mut() = links;
        }
        self.entries.put(index, entry);
        self.count += 1;
        Ok(Insertion::Done {
            index,
            reservation: self.reservation,
        })
    }

    /// Takes the entries of all these handles out, which are there.
    fn take_all(&mut self, handles: &[u32], taken: &mut TakenHandles) {
        for local in handles {
            let removed = handle::local_index(*local).and_then(|index| self.take(index));

            // There is room for all of them.
            if let Some(removed) = removed {
                let _room = taken.0.push_within_capacity(removed);
            }
        }
    }

    /// Takes the entry at `index` out.
    fn take(&mut self, index: u32) -> Option<Removed<Entry>> {
        self.take_if(index, |_| true)
    }

    /// The same if `accept` agrees with the entry.
    #[inline(always)]
    fn take_if(
        &mut self,
        index: u32,
        accept: impl FnOnce(&Entry) -> bool,
    ) -> Option<Removed<Entry>> {
        let removed = self.entries.take_if(index, accept)?;

        handle_tree::detach(&mut self.entries, removed.value.links());
        self.count -= 1;
        Some(removed)
    }
}

/// The handle table of one process.
#[pin_data]
pub(crate) struct HandleTable {
    #[pin]
    state: SpinLock<State>,
}

/// A handle that has a number and does not resolve yet.
///
/// Its entry is taken out with the parent or with the process. The number can be reserved again by
/// then, so the entry must also be of this reservation.
pub(crate) struct Reserved<'a> {
    table: &'a HandleTable,
    index: u32,
    reservation: u32,
}

impl Reserved<'_> {
    /// The number.
    pub(crate) fn handle(&self) -> u32 {
        handle::local(self.index)
    }

    /// Makes it resolve. False if it was destroyed meanwhile.
    pub(crate) fn commit(self) -> bool {
        let is_published = self
            .table
            .state
            .lock()
            .entries
            .get_mut(self.index)
            .is_some_and(|entry| entry.links_mut().publish(self.reservation));

        core::mem::forget(self);
        is_published
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.table.state.lock();
        let is_ours = state
            .entries
            .get(self.index)
            .is_some_and(|entry| entry.links().is_reserved_by(self.reservation));
        let removed = is_ours.then(|| state.take(self.index)).flatten();

        state.cursor.put_back(self.index);
        drop(state);
        drop(removed);
    }
}

impl HandleTable {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        Self::starting_with(Cursor::new())
    }

    /// An empty table whose numbers `cursor` gives.
    fn starting_with(cursor: Cursor) -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_spinlock!(
                State {
                    entries: IndexMap::new(),
                    cursor,
                    count: 0,
                    reservation: 0,
                    closed: false,
                },
                "HandleTable::state"
            ),
        })
    }

    /// How many handles there are.
    pub(crate) fn count(&self) -> u32 {
        self.state.lock().count
    }

    /// Gives `item` a number. With `parent`, a device or context of this table, the new handle is
    /// a child of that one's handle. DEVICE_REMOVED if the adapter of the parent, or that of the
    /// object, is removed.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(
        &self,
        item: HandleTarget,
        parent: Option<&Parent>,
    ) -> DxgResult<Reserved<'_>> {
        // An object of another adapter than the parent's, or without a parent.
        let other = item
            .adapter()
            .filter(|own| parent.is_none_or(|parent| !Arc::ptr_eq(own, &parent.device.adapter)))
            .cloned();
        // What is not used is declared before the lock, to be dropped after it.
        let mut entry = Some(Entry::new(item));
        let mut new_node = None;

        loop {
            let mut freed = None;
            let mut state = self.state.lock();

            match state.insert(&mut entry, parent, &mut new_node, &mut freed)? {
                Insertion::Done { index, reservation } => {
                    drop(state);

                    let reserved = Reserved {
                        table: self,
                        index,
                        reservation,
                    };

                    // The removal of the adapter, or the error of the device, has seen the handle,
                    // or the check fails here.
                    if let Some(parent) = parent {
                        parent.device.check()?;
                    }
                    if let Some(other) = other {
                        other.check()?;
                    }
                    return Ok(reserved);
                }
                Insertion::Missing(missing_node) => {
                    drop(state);
                    new_node = Some(NewNode::new(missing_node).ok_or(Status::NO_MEMORY)?);
                }
            }
        }
    }

    /// Prints a line for each of the first [`HANDLES_SHOWN`] handles, and how many more there are.
    /// An adapter comes before its first handle, what belongs to an object after its first one. The
    /// lock is held for one handle at a time, so a table of any size delays no other call.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn show(&self, m: &SeqFile) {
        let mut adapters = Adapters::new();
        let mut infos = Infos::new();
        let mut waits = Waits::new();
        let mut seen = 0;
        let mut shown = 0;

        while let Some((index, line)) = self.after(seen, |_, entry| {
            let item = &entry.item;

            entry
                .is_published()
                .then(|| (adapters.of(item), Line::of(item)))
        }) {
            if !seq::wants_more(m) {
                return;
            }
            if shown == HANDLES_SHOWN {
                let more = self.count().saturating_sub(shown);

                seq_print!(m, "dxg-handles-more:\t{more}\n");
                break;
            }
            if let Some((adapter, line)) = line {
                if let Some(adapter) = adapter {
                    adapters.print(m, &adapter);
                }
                line.print(m, handle::local(index), &mut infos, &mut waits);
                shown += 1;
            }
            seen = index;
        }
        infos.finish(m);
        waits.finish(m);
    }

    /// What `look` says about the first entry above the index `seen`, and its index.
    fn after<T>(&self, seen: u32, look: impl FnOnce(&State, &Entry) -> T) -> Option<(u32, T)> {
        let state = self.state.lock();
        let (index, entry) = state.entries.first_from(seen.checked_add(1)?)?;

        Some((index, look(&state, entry)))
    }

    /// Takes the entries of all these handles out at once, if `accept` agrees with each; otherwise
    /// nothing is taken. `sorted` are different numbers in increasing order.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn take_all_if(
        &self,
        sorted: &[u32],
        mut accept: impl FnMut(Option<u32>, &HandleTarget) -> bool,
    ) -> DxgResult<TakenHandles> {
        let mut taken = TakenHandles(KVVec::with_capacity(sorted.len(), GFP_KERNEL_ACCOUNT)?);

        // Checked first in short holds, so a list that will be refused delays no one.
        for chunk in sorted.chunks(LOOKUPS) {
            self.state.lock().check(chunk, &mut accept)?;
        }

        let mut state = self.state.lock();

        state.check(sorted, accept)?;
        state.take_all(sorted, &mut taken);
        Ok(taken)
    }

    /// Destroys a handle whose target satisfies `accept`: its children first, last created first
    /// and each after its own children, then the handle (RES-31). The objects are dropped before
    /// this returns.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn destroy(
        &self,
        local: u32,
        accept: impl FnOnce(&HandleTarget) -> bool,
    ) -> DxgResult {
        let index = handle::local_index(local).ok_or(Status::INVALID_PARAMETER)?;
        let mut has_children = false;
        let mut state = self.state.lock();
        let removed = state.take_if(index, |entry| {
            let is_accepted = entry.is_published() && accept(&entry.item);

            has_children = is_accepted && entry.links().last_child().is_some();
            is_accepted && !has_children
        });

        if has_children {
            if let Some(entry) = state.entries.get_mut(index) {
                entry.links_mut().mark_ending();
            }
            self.tear_down(state, index);
            return Ok(());
        }
        drop(state);
        removed.map(drop).ok_or(Status::INVALID_PARAMETER.into())
    }

    /// Takes the entry at `index`, which is marked, and all below it out. The lock is held for one
    /// of them at a time.
    fn tear_down<'a>(&'a self, mut state: Guard<'a, State, SpinLockBackend>, index: u32) {
        let mut teardown = Teardown::of(index);

        loop {
            let removed = teardown
                .step(&mut state.entries)
                .and_then(|index| state.take(index));

            drop(state);
            drop(removed);
            if teardown.is_done() {
                return;
            }
            state = self.state.lock();
        }
    }

    /// Destroys every handle, last created first, and takes no more (RES-8). The lock is held for
    /// one handle at a time.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        let mut bound = u32::MAX;

        self.state.lock().closed = true;
        loop {
            let mut state = self.state.lock();
            let Some((index, _)) = state.entries.last_below(bound) else {
                break;
            };

            // It has children only if their numbers have wrapped.
            if let Some(entry) = state.entries.get_mut(index) {
                entry.links_mut().mark_ending();
            }
            self.tear_down(state, index);
            bound = index;
        }
    }
}
