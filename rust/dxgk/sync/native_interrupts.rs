// SPDX-License-Identifier: GPL-2.0

//! Interrupts of native fences: from the KMD, which may tell of them in any context, to a worker
//! that looks at the fences (FEN-91 to FEN-101).
//!
//! A fence is told of once until the worker looks at it. Its number goes into a record of a fixed
//! size; if that is full, the worker looks at all native fences of the adapter instead, so that
//! nothing is lost (FEN-100).

use super::fence_binding::FenceBindings;
use crate::{
    ddi::native_fence::NativeFenceCallbacks,
    sys::{
        alloc::pin_arc,
        work::OrderedWorker, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// How many fences the record names (GPU-59).
const RECORD: usize = 64;

/// How many of its places are tried for one fence.
const TRIES: usize = 8;

/// What is counted. OVERFLOW: counts wrap.
pub(super) enum Count {
    /// Interrupts that engines raised.
    Interrupts,
    /// Those of them that were due when they were looked at, and released nobody.
    Spurious,
    /// Looks at all fences.
    Scans,
    /// Stores to MonitoredValue.
    MonitoredUpdates,
}

/// What debugfs calls these.
const NAMES: [&str; 4] = ["interrupts", "spurious", "scans", "monitored-updates"];

/// The native-fence interrupts of an adapter.
#[pin_data]
pub(in crate::dxgk) struct NativeInterrupts {
    /// The numbers of fences that were told of; 0 where there is none.
    record: [Atomic<u32>; RECORD],
    /// All fences are to be looked at.
    scan: Atomic<bool>,
    counts: [Atomic<u64>; NAMES.len()],
    bindings: Arc<FenceBindings>,
    worker: OrderedWorker,
    #[pin]
    work: Work<NativeInterrupts>,
}

impl_has_work! {
    impl HasWork<Self> for NativeInterrupts { self.work }
}

impl WorkItem for NativeInterrupts {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        for place in &this.record {
            // ORDERING: full: values are looked at after this (FEN-101). Pairs with `post`.
            let number = place.xchg(0, Full);

            if number != 0 {
                this.bindings.signaled(number);
            }
        }
        if this.scan.xchg(false, Full) {
            this.count(Count::Scans);
            this.bindings.scan();
        }
    }
}

impl NativeInterrupts {
    /// Those of the adapter with these fences.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new(
        bindings: &Arc<FenceBindings>,
        worker: OrderedWorker,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                record: [const { Atomic::new(0) }; RECORD],
                scan: Atomic::new(false),
                counts: [const { Atomic::new(0) }; NAMES.len()],
                bindings: bindings.clone(),
                worker,
                work <- new_work!("NativeInterrupts::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// What there was, by name (FEN-173).
    pub(in crate::dxgk) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let numbers = self.counts.iter().map(|number| number.load(Relaxed));

        NAMES.into_iter().zip(numbers)
    }

    fn count(&self, what: Count) {
        // CAST: a few.
        if let Some(count) = self.counts.get(what as usize) {
            count.add(1, Relaxed);
        }
    }

    /// The worker has to look at the fence with this number. In any context.
    fn post(self: &Arc<Self>, number: u32) {
        // CAST: 32 bits fit a usize.
        let first = number as usize;
        let is_recorded = (0..TRIES).any(|turn| {
            let place = self.record.get(first.wrapping_add(turn) % RECORD);

            // ORDERING: full: the worker that takes it sees the value (FEN-101).
            place.is_some_and(|place| place.cmpxchg(0, number, Full).is_ok())
        });

        if !is_recorded {
            self.scan.store(true, kernel::sync::atomic::Release);
        }
        self.worker.enqueue(self.clone());
    }
}

/// The interrupt of one fence, which its KMD raises.
pub(super) struct Interrupt {
    /// The number of the fence's binding, from when it has one.
    number: Atomic<u32>,
    /// It was raised, and nobody has looked since.
    is_due: Atomic<bool>,
    all: Arc<NativeInterrupts>,
}

impl Interrupt {
    /// One that was not raised.
    pub(super) fn new(all: &Arc<NativeInterrupts>) -> Result<Arc<Self>, AllocError> {
        Arc::new(
            Self {
                number: Atomic::new(0),
                is_due: Atomic::new(false),
                all: all.clone(),
            },
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Where the number is.
    pub(super) fn number(&self) -> &Atomic<u32> {
        &self.number
    }

    /// Somebody looks now. Whether it was raised since the last time.
    pub(super) fn take(&self) -> bool {
        // ORDERING: full: CurrentValue is looked at after this. Pairs with `signaled`.
        self.is_due.xchg(false, Full)
    }

    /// Counts something for the adapter.
    pub(super) fn count(&self, what: Count) {
        self.all.count(what);
    }
}

impl NativeFenceCallbacks for Interrupt {
    fn signaled(&self) {
        self.count(Count::Interrupts);
        // ORDERING: full: the value was stored before. Pairs with `take`.
        if !self.is_due.xchg(true, Full) {
            self.all.post(self.number.load(Relaxed));
        }
    }
}
