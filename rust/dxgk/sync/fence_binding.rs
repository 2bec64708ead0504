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

use crate::{
    ddi::index_map::{
        FreedNodes,
        IndexMap,
        MissingNode,
        NewNode,
        SlotState, //
    },
    logic::handle::{
        Cursor,
        LAST_INDEX, //
    },
    sys::{
        alloc::pin_arc,
        work, //
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
    /// MonitoredValue there, of a native fence.
    pub(crate) monitored_gpu: u64,
}

/// A fence as its adapter knows it.
pub(in crate::dxgk) trait BoundFence: Send + Sync {
    /// The adapter ends next: nothing of it may be rung any more (FEN-159).
    ///
    /// Context: may sleep, no locks held.
    fn adapter_ends(self: Arc<Self>) {}

    /// The adapter is removed.
    ///
    /// Context: may sleep, no locks held.
    fn adapter_removed(self: Arc<Self>);

    /// An engine has stored a value that somebody waits for, or may have: looks at it, if it is a
    /// native fence.
    ///
    /// Context: may sleep, no locks held.
    fn native_signaled(self: Arc<Self>);
}

/// A cross-adapter fence as its native fence on one adapter knows it.
pub(in crate::dxgk) trait CrossAdapterFence: Send + Sync {
    /// What traces call it.
    fn id(&self) -> u64;

    /// An engine of the adapter with this id has stored a value, which its native fence there has
    /// told: tells the other adapters, and then releases waiters. False if there are neither.
    ///
    /// Context: may sleep, no locks held.
    fn signaled_on(self: Arc<Self>, adapter: u64) -> bool;

    /// Some adapter has it open now that had not, or no longer: MonitoredValue follows.
    ///
    /// Context: may sleep, no locks held.
    fn adapters_changed(self: Arc<Self>);

    /// The adapter with this id ends: its doorbell is rung no more on return.
    ///
    /// Context: may sleep, no locks held.
    fn silence(self: Arc<Self>, adapter: u64);

    /// It has become native on an adapter: those who look for stores of engines look at it.
    ///
    /// Context: may sleep, no locks held.
    fn became_native(self: Arc<Self>);
}

/// A fence that engines log what they do with.
pub(crate) trait LoggedFence: Send + Sync {
    /// What traces call it.
    fn id(&self) -> u64;

    /// A queue of the adapter with this id has signalled this value, not before `end_ns` of the CPU
    /// clock: who waits for it or less is released, whatever CurrentValue is by now (FEN-82,
    /// FEN-97). If somebody has begun to wait since, nobody knows whom it was for, and only
    /// CurrentValue counts (FEN-80).
    ///
    /// Context: may sleep, no spinlock held.
    fn logged(self: Arc<Self>, value: u64, end_ns: u64, adapter: u64);
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

/// How many numbers an insertion looks at in one hold of the lock: all users of the adapter share
/// it, and after the first round of numbers many in a row may be taken.
const CANDIDATES: u32 = 64;

/// The result of an insertion.
enum Insertion {
    /// It has this number.
    Done(u32),
    /// A node is missing.
    Missing(MissingNode),
    /// The next [`CANDIDATES`] numbers are taken.
    Taken,
}

impl Bindings {
    /// Takes the binding, which is there, and gives it a number. `new_node` is what was missing
    /// before, and is taken if it is used; `freed` is to be dropped without the lock.
    fn insert(
        &mut self,
        binding: &mut Option<FenceBinding>,
        new_node: &mut Option<NewNode<FenceBinding>>,
        freed: &mut Option<FreedNodes<FenceBinding>>,
    ) -> Insertion {
        let Self { by_number, cursor } = self;
        let mut slot = SlotState::Taken;
        let free = cursor.take_among(CANDIDATES, |number| {
            slot = by_number.slot_state(number);
            slot != SlotState::Taken
        });
        let Some(number) = free else {
            return Insertion::Taken;
        };

        if slot == SlotState::Missing {
            *freed = new_node
                .take()
                .and_then(|new_node| by_number.insert_node(number, new_node));
            if let Some(missing_node) = by_number.missing_node(number) {
                cursor.put_back(number);
                return Insertion::Missing(missing_node);
            }
        }
        by_number.put(number, binding);
        Insertion::Done(number)
    }
}

impl FenceBindings {
    /// None.
    pub(crate) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                bindings <- new_spinlock!(
                    Bindings {
                        by_number: IndexMap::new(),
                        cursor: Cursor::new(),
                    },
                    "FenceBindings::bindings"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// The interrupt of the fence with this number was raised.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn signaled(&self, number: u32) {
        let fence = self
            .bindings
            .lock()
            .by_number
            .get(number)
            .map(|binding| binding.fence.clone());

        if let Some(fence) = fence {
            fence.native_signaled();
        }
    }

    /// Some interrupt was raised (FEN-93).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn scan(&self) {
        let mut seen = 0;

        while let Some((number, fence)) = self.after(seen) {
            fence.native_signaled();
            seen = number;
            work::breathe();
        }
    }

    /// Binds a fence, until it is taken out by the number that is returned.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn add(&self, fence: Arc<dyn BoundFence>) -> Result<u32, AllocError> {
        let mut binding = Some(FenceBinding { fence });
        let mut new_node = None;
        let mut seen = 0;

        while seen < LAST_INDEX {
            // Dropped after the lock.
            let mut freed = None;
            let mut bindings = self.bindings.lock();

            match bindings.insert(&mut binding, &mut new_node, &mut freed) {
                Insertion::Done(number) => return Ok(number),
                Insertion::Missing(missing_node) => {
                    drop(bindings);
                    new_node = Some(NewNode::new(missing_node).ok_or(AllocError)?);
                }
                Insertion::Taken => {
                    drop(bindings);
                    seen += CANDIDATES;
                    work::breathe();
                }
            }
        }
        Err(AllocError)
    }

    /// Takes a fence out. The caller has a reference to it.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn remove(&self, number: u32) {
        let removed = self.bindings.lock().by_number.take(number);

        drop(removed);
    }

    /// Tells all fences that their adapter ends.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn adapter_ends(&self) {
        self.for_each(|fence| fence.adapter_ends());
    }

    /// Tells all fences that their adapter is removed. Nothing is added any more.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn adapter_removed(&self) {
        self.for_each(|fence| fence.adapter_removed());
    }

    fn for_each(&self, tell: impl Fn(Arc<dyn BoundFence>)) {
        let mut seen = 0;

        while let Some((number, fence)) = self.after(seen) {
            tell(fence);
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
