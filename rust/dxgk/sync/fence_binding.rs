// SPDX-License-Identifier: GPL-2.0

//! Fences on adapters.
//!
//! A *binding* is a fence on one adapter. A fence that may be shared is bound to the adapter of the
//! device that made it, from its creation until it retires. With the local handles of all processes
//! these are all fences of the adapter that somebody can still wait for, so the removal of the
//! adapter finds them (FEN-105). It finds a private fence by the handles of its process.
//!
//! A monitored fence has nothing on an adapter but that: CurrentValue is the fence's own, one word
//! for all adapters (FEN-136). So a device of another adapter that opens it makes no binding. While
//! that device has it open the adapter could signal it, and the removal of the adapter finds the
//! handle (FEN-143).
//!
//! LOCK: `bindings` is a leaf.

use crate::logic::{
    handle::Cursor,
    index_map::{
        FreedNodes,
        IndexMap,
        MissingNode,
        NewNode,
        SlotState, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// Where a process and its GPU see CurrentValue; 0 where they do not.
#[derive(Clone, Copy, Default)]
pub(crate) struct FenceAddresses {
    /// In the memory of the process, read-only.
    pub(crate) user_cpu: u64,
    /// In the GPU address space of the process.
    pub(crate) process_gpu: u64,
}

/// A fence as its adapter knows it.
pub(in crate::dxgk) trait BoundFence: Send + Sync {
    /// The adapter is removed.
    ///
    /// Context: may sleep, no locks held.
    fn adapter_removed(self: Arc<Self>);
}

/// A fence on one adapter.
struct FenceBinding {
    fence: Arc<dyn BoundFence>,
}

/// The bindings of one adapter.
#[pin_data]
pub(crate) struct FenceBindings {
    #[pin]
    bindings: SpinLock<Bindings>,
}

struct Bindings {
    by_number: IndexMap<FenceBinding>,
    cursor: Cursor,
}

/// The result of an insertion.
enum Insertion {
    /// It has this number.
    Done(u32),
    /// A node is missing.
    Missing(MissingNode),
}

impl Bindings {
    /// Takes the binding, which is there, and gives it a number. `new_node` is what was
    /// missing before; `freed` is to be dropped without the lock.
    fn insert(
        &mut self,
        binding: &mut Option<FenceBinding>,
        new_node: Option<NewNode<FenceBinding>>,
        freed: &mut Option<FreedNodes<FenceBinding>>,
    ) -> Result<Insertion, AllocError> {
        let Self { by_number, cursor } = self;
        let mut slot = SlotState::Taken;
        let number = cursor
            .take(|number| {
                slot = by_number.slot_state(number);
                slot != SlotState::Taken
            })
            .ok_or(AllocError)?;

        if slot == SlotState::Missing {
            *freed = new_node.and_then(|new_node| by_number.insert_node(number, new_node));
            if let Some(missing_node) = by_number.missing_node(number) {
                cursor.put_back(number);
                return Ok(Insertion::Missing(missing_node));
            }
        }
        by_number.put(number, binding);
        Ok(Insertion::Done(number))
    }
}

impl FenceBindings {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            bindings <- new_spinlock!(
                Bindings {
                    by_number: IndexMap::new(),
                    cursor: Cursor::new(),
                },
                "FenceBindings::bindings"
            ),
        })
    }

    /// Binds a fence, until it is taken out by the number that is returned.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn add(&self, fence: Arc<dyn BoundFence>) -> Result<u32, AllocError> {
        let mut binding = Some(FenceBinding { fence });
        let mut new_node = None;

        loop {
            // Dropped after the lock.
            let mut freed = None;
            let mut bindings = self.bindings.lock();

            match bindings.insert(&mut binding, new_node.take(), &mut freed)? {
                Insertion::Done(number) => return Ok(number),
                Insertion::Missing(missing_node) => {
                    drop(bindings);
                    new_node = Some(NewNode::new(missing_node).ok_or(AllocError)?);
                }
            }
        }
    }

    /// Takes a fence out. The caller has a reference to it.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn remove(&self, number: u32) {
        let removed = self.bindings.lock().by_number.take(number);

        drop(removed);
    }

    /// Tells all fences that their adapter is removed. Nothing is added any more.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn adapter_removed(&self) {
        let mut seen = 0;

        while let Some((number, fence)) = self.after(seen) {
            fence.adapter_removed();
            seen = number;
        }
    }

    /// The first fence whose number is above `seen`, and its number. Numbers start at 1.
    fn after(&self, seen: u32) -> Option<(u32, Arc<dyn BoundFence>)> {
        let bindings = self.bindings.lock();
        let (number, binding) = bindings.by_number.first_from(seen.checked_add(1)?)?;

        Some((number, binding.fence.clone()))
    }
}
