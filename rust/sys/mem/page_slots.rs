// SPDX-License-Identifier: GPL-2.0

//! Slots for the pages of a memory, allocated where pages are touched.
//!
//! There is a pointer for each run of 512 pages. It leads to a slot for each page of the run, once
//! one of them was touched. So the cost follows the touched pages, not the claimed ones; an
//! untouched run costs 8 bytes for 2 MiB. The pointer of the only run is where the slots are.
//!
//! Looking up takes two loads and no lock.

use crate::sys::ffi;
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    alloc::{
        flags::__GFP_NOWARN,
        Flags, //
    },
    bindings,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed, //
    }, //
};

/// The place of one page.
type Slot = Atomic<*mut bindings::page>;

/// Slots of a run.
const RUN: usize = 512;

/// The pointers of the runs. Most memories have one, which takes no memory of its own.
enum Runs {
    One(Atomic<*mut Slot>),
    Many(KVVec<Atomic<*mut Slot>>),
}

impl Runs {
    /// Null pointers for so many runs.
    fn new(number: usize, flags: Flags) -> Result<Self> {
        if number <= 1 {
            return Ok(Self::One(Atomic::new(ptr::null_mut())));
        }

        let mut runs = KVVec::with_capacity(number, flags | __GFP_NOWARN)?;

        for _ in 0..number {
            runs.push(Atomic::new(ptr::null_mut()), flags)?;
        }
        Ok(Self::Many(runs))
    }
}

impl Deref for Runs {
    type Target = [Atomic<*mut Slot>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::One(run) => slice::from_ref(run),
            Self::Many(runs) => runs,
        }
    }
}

/// The pages of one memory.
///
/// # Invariants
///
/// A pointer of `runs` is null, or that of an array of [`PageSlots::run_len`] slots which this
/// owns. It changes from null to an array once. The page of a slot changes from null to a page
/// once.
pub(in crate::sys) struct PageSlots {
    count: usize,
    /// How slots are allocated: charged to whoever touches a page first, or to nobody.
    flags: Flags,
    runs: Runs,
}

impl PageSlots {
    /// Empty slots for so many pages. `flags` is how they are allocated.
    pub(in crate::sys) fn new(count: usize, flags: Flags) -> Result<Self> {
        // INVARIANT: All pointers are null.
        Ok(Self {
            count,
            flags,
            runs: Runs::new(count.div_ceil(RUN), flags)?,
        })
    }

    /// How many there are.
    pub(in crate::sys) fn count(&self) -> usize {
        self.count
    }

    /// The page in a slot, if there is one.
    pub(in crate::sys) fn get(&self, index: usize) -> Option<NonNull<bindings::page>> {
        // ORDERING: pairs with the exchange in `put`; the page was made ready before.
        NonNull::new(self.run(index / RUN)?.get(index % RUN)?.load(Acquire))
    }

    /// The page in a slot, if there is one, and how many of the next slots have pages whose numbers
    /// follow each other from there on: with it, at most `most`, and none of another run.
    pub(in crate::sys) fn following(
        &self,
        index: usize,
        most: usize,
    ) -> Option<(NonNull<bindings::page>, usize)> {
        let slots = self.run(index / RUN)?.get(index % RUN..)?;
        // ORDERING: as in `get`. So do the loads of the others, which are in C.
        let page = NonNull::new(slots.first()?.load(Acquire))?;
        let count = match slots.len().min(most) {
            0 | 1 => 1,
            // SAFETY: A slot has the layout of a pointer. There are so many, of which the first has
            // a page for good, and C only reads them, each by one load.
            count => unsafe { ffi::dxg_following_pages(slots.as_ptr().cast(), count) },
        };

        Some((page, count))
    }

    /// Puts a page into its slot, or returns the one that is there already.
    ///
    /// Context: may sleep.
    pub(in crate::sys) fn put(
        &self,
        index: usize,
        page: NonNull<bindings::page>,
    ) -> Result<core::result::Result<(), NonNull<bindings::page>>> {
        let slot = self.made_run(index / RUN)?.get(index % RUN).ok_or(EINVAL)?;

        // INVARIANT: The slot is filled only if it was empty.
        Ok(match slot.cmpxchg(ptr::null_mut(), page.as_ptr(), Full) {
            Ok(_) => Ok(()),
            Err(known) => NonNull::new(known).map_or(Ok(()), Err),
        })
    }

    /// All pages, in order.
    pub(in crate::sys) fn pages(&self) -> impl Iterator<Item = NonNull<bindings::page>> + '_ {
        (0..self.runs.len())
            .filter_map(|number| self.run(number))
            .flatten()
            .filter_map(|slot| NonNull::new(slot.load(Acquire)))
    }

    /// How many slots a run has: fewer at the end.
    fn run_len(&self, number: usize) -> usize {
        self.count
            .saturating_sub(number.saturating_mul(RUN))
            .min(RUN)
    }

    /// The slots of a run, if it was made.
    fn run(&self, number: usize) -> Option<&[Slot]> {
        // ORDERING: pairs with the exchange in `made_run`; the slots were made before.
        let start = NonNull::new(self.runs.get(number)?.load(Acquire))?;

        // SAFETY: By the type invariant there are so many slots, as long as `self` lives.
        Some(unsafe { slice::from_raw_parts(start.as_ptr(), self.run_len(number)) })
    }

    /// The slots of a run, made if need be.
    fn made_run(&self, number: usize) -> Result<&[Slot]> {
        if let Some(run) = self.run(number) {
            return Ok(run);
        }

        let len = self.run_len(number);
        let mut slots = KVec::with_capacity(len, self.flags)?;

        for _ in 0..len {
            slots.push(Atomic::new(ptr::null_mut()), self.flags)?;
        }

        let (start, ..) = slots.into_raw_parts();
        let place = self.runs.get(number).ok_or(EINVAL);
        let taken = place.map(|place| place.cmpxchg(ptr::null_mut(), start, Full).is_ok());

        // INVARIANT: The array has the length of the run, and is given away only if there was none.
        if !matches!(taken, Ok(true)) {
            // SAFETY: It is the array from above, which nobody else has seen.
            drop(unsafe { run_from_raw(start, len) });
        }
        self.run(number).ok_or(EINVAL)
    }
}

/// # Safety
///
/// `start` must be the start of an array of `len` slots that was allocated as a [`KVec`], and that
/// the caller owns.
unsafe fn run_from_raw(start: *mut Slot, len: usize) -> KVec<Slot> {
    // SAFETY: By the requirement. There was room for at least as many.
    unsafe { KVec::from_raw_parts(start, len, len) }
}

impl Drop for PageSlots {
    fn drop(&mut self) {
        for (number, run) in self.runs.iter().enumerate() {
            let start = run.load(Relaxed);

            if !start.is_null() {
                // SAFETY: By the type invariant; nobody looks at it again.
                drop(unsafe { run_from_raw(start, self.run_len(number)) });
            }
        }
    }
}
