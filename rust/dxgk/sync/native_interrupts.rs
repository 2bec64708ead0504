// SPDX-License-Identifier: GPL-2.0

//! Interrupts of native fences: from the KMD, which may tell of them in any context, to a worker
//! that looks at the fences (FEN-91 to FEN-101).
//!
//! | the driver names | the worker looks at |
//! |---|---|
//! | fences | their values |
//! | nothing | the values of all native fences of the adapter (FEN-93) |
//! | a queue, if that is its way | the log of the queue's signals (FEN-97) |
//! | nothing, if that is its way | the logs of all queues of the engine |
//!
//! A fence is told of once until the worker looks at it. Its number goes into a record of a fixed
//! size, and so does that of a queue. If a record is full, the worker looks at everything, so that
//! nothing is lost (FEN-100).

use super::fence_binding::FenceBindings;
use crate::{
    ddi::{
        class::DeviceInterrupt,
        native_fence::NativeFenceCallbacks,
        slab::{
            self,
            SharedSlab,
            Slab, //
        }, //
    },
    logic::interrupt_record::InterruptRecord,
    platform,
    sys::{
        alloc::pin_arc,
        trace,
        work::{
            self,
            OrderedWorker, //
        }, //
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
    /// Looks at a log that had lost entries.
    LogOverflows,
    /// Entries of logs that were not believed (GPU-84).
    IgnoredEntries,
    /// Times in a log that were before the one before (GPU-82).
    BackwardTimes,
    /// Signals of other adapters that this one was told of.
    Propagations,
    /// Interrupts of monitored fences.
    LegacyInterrupts,
    /// Waits that were queued on native fences. What is not queued any more was released or
    /// cancelled.
    WaitsAdded,
    /// Those that a value has released.
    WaitsReleased,
    /// Those that ended in another way.
    WaitsCancelled,
    /// Those that were released and with which a call or a queue went on, or an event was told.
    Wakes,
    /// Interrupts of fences that the driver had destroyed (FEN-96).
    BadDriverHandles,
    /// Updates that the driver has failed in (FEN-108).
    FailedUpdates,
}

/// What debugfs calls these.
const NAMES: [&str; 15] = [
    "interrupts",
    "spurious",
    "scans",
    "monitored-updates",
    "log-overflows",
    "ignored-entries",
    "backward-times",
    "propagations",
    "legacy-interrupts",
    "waits-added",
    "waits-released",
    "waits-cancelled",
    "wakes",
    "bad-driver-handles",
    "failed-updates",
];

/// The logs of one queue.
pub(super) trait Logs: Send + Sync {
    /// Whose engine writes to them.
    fn node(&self) -> u32;

    /// Reads what is new, and does what follows from it.
    ///
    /// Context: may sleep, no locks held.
    fn read(&self);
}

/// The bit of an engine. Those that there are not have all of them.
fn engine_bit(node: u32) -> u64 {
    1_u64.checked_shl(node).unwrap_or(u64::MAX)
}

/// The native-fence interrupts of an adapter.
#[pin_data]
pub(in crate::dxgk) struct NativeInterrupts {
    /// The numbers of fences.
    fences: InterruptRecord,
    /// The numbers of logs, see [`NativeInterrupts::add_logs`].
    queues: InterruptRecord,
    /// The engines all of whose logs are to be read, as one more than their nodes.
    engines: InterruptRecord,
    /// The adapter, for traces.
    adapter: u64,
    /// The driver names queues (`OptimizedNativeFenceSignaledInterrupt`).
    is_optimized: bool,
    logs: SharedSlab<Arc<dyn Logs>>,
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
        if this.fences.take(|number| this.bindings.signaled(number)) {
            this.count(Count::Scans);
            this.bindings.scan();
        }

        let mut engines = 0;
        let mut is_full = this.queues.take(|number| this.read_logs(number));

        is_full |= this
            .engines
            .take(|number| engines |= engine_bit(number.saturating_sub(1)));
        // FEN-98: who traces wants to know the times.
        if is_full || trace::are_logs_traced() {
            engines = u64::MAX;
        }
        if engines != 0 {
            this.read_all_logs(engines);
        }
    }
}

impl NativeInterrupts {
    /// Those of the adapter with these fences and this id, whose driver names queues or not.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new(
        bindings: &Arc<FenceBindings>,
        worker: OrderedWorker,
        adapter: u64,
        is_optimized: bool,
    ) -> Result<Arc<Self>, AllocError> {
        let logs = Slab::new().ok_or(AllocError)?;
        let logs = platform::short_lock!(logs, "NativeInterrupts::logs").ok_or(AllocError)?;

        pin_arc(
            pin_init!(Self {
                fences: InterruptRecord::new(),
                queues: InterruptRecord::new(),
                engines: InterruptRecord::new(),
                adapter,
                is_optimized,
                logs,
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

    /// Counts something once.
    pub(super) fn count(&self, what: Count) {
        self.add(what, 1);
    }

    /// An engine has interrupted for a monitored fence. In any context.
    pub(in crate::dxgk) fn legacy_interrupt(&self) {
        self.count(Count::LegacyInterrupts);
    }

    /// Counts something so often.
    pub(super) fn add(&self, what: Count, times: u64) {
        // CAST: a few.
        if let Some(count) = self.counts.get(what as usize) {
            count.add(times, Relaxed);
        }
    }

    /// Whether the driver names queues.
    pub(super) fn is_optimized(&self) -> bool {
        self.is_optimized
    }

    /// The logs of a queue can be named, by a number that is not 0.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn add_logs(&self, logs: Arc<dyn Logs>) -> Result<u32, AllocError> {
        let number = slab::insert(&self.logs, logs).ok_or(AllocError)?;

        // OVERFLOW: there are not so many.
        Ok(number.saturating_add(1))
    }

    /// They cannot be named any more. The result is to be dropped with no locks held.
    pub(super) fn remove_logs(&self, number: u32) -> Option<impl Sized> {
        self.logs.lock().remove(number.checked_sub(1)?)
    }

    /// Reads what is new in all logs, for who looks at the adapter: without waits no interrupt says
    /// when.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn look_at_logs(&self) {
        if trace::are_logs_traced() {
            self.read_all_logs(u64::MAX);
        }
    }

    /// Reads the logs with this number.
    fn read_logs(&self, number: u32) {
        let logs = number
            .checked_sub(1)
            .and_then(|number| self.logs.lock().get(number).cloned());

        if let Some(logs) = logs {
            logs.read();
        }
    }

    /// Reads the logs of these engines.
    ///
    /// Context: may sleep, no locks held.
    fn read_all_logs(&self, engines: u64) {
        let mut from = 0;

        loop {
            let next = {
                let logs = self.logs.lock();
                let next = logs.next(from);

                next.map(|(number, logs)| (number, logs.clone()))
            };
            let Some((number, logs)) = next else {
                return;
            };

            if engines & engine_bit(logs.node()) != 0 {
                logs.read();
                work::breathe();
            }
            // OVERFLOW: there are not so many.
            from = number.saturating_add(1);
        }
    }

    /// An engine has interrupted and named no fence: a queue whose logs have this number, 0 if it
    /// has none; or it has named nothing. In any context.
    pub(in crate::dxgk) fn signaled_by(self: &Arc<Self>, node: u32, queue: u64, logs: Option<u32>) {
        self.count(Count::Interrupts);
        trace::native_interrupt(self.adapter, 0, queue);
        match (self.is_optimized, logs) {
            // What has no logs has lost all that it could say.
            (false, _) | (true, Some(0)) => self.fences.post_all(),
            (true, Some(logs)) => self.queues.post(logs),
            // OVERFLOW: there are a few nodes.
            (true, None) => self.engines.post(node.saturating_add(1)),
        }
        self.worker.enqueue(self.clone());
    }

    /// The driver has named a fence that it had destroyed, so that it may have meant any: the
    /// worker looks at all of them (FEN-96). In any context.
    #[cold]
    fn bad_handle(self: &Arc<Self>) {
        kernel::pr_warn_once!("the driver names a native fence that it has destroyed\n");
        self.count(Count::BadDriverHandles);
        self.fences.post_all();
        self.worker.enqueue(self.clone());
    }

    /// Waits until the worker has looked at everything it was told of, for tests.
    ///
    /// Context: may sleep, no locks held.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn flush(&self) {
        self.worker.flush();
    }

    /// The worker has to look at the fence with this number. In any context.
    fn post(self: &Arc<Self>, number: u32) {
        self.fences.post(number);
        self.worker.enqueue(self.clone());
    }
}

/// The interrupt of one fence, which its KMD raises.
pub(super) struct Interrupt {
    /// The fence, for traces, from when it has a number.
    fence: Atomic<u64>,
    /// The number of the fence's binding, from when it has one.
    number: Atomic<u32>,
    /// It was raised, and nobody has looked since.
    is_due: Atomic<bool>,
    /// The driver has destroyed the fence.
    is_destroyed: Atomic<bool>,
    all: Arc<NativeInterrupts>,
}

impl Interrupt {
    /// One that was not raised.
    pub(super) fn new(all: &Arc<NativeInterrupts>) -> Result<Arc<Self>, AllocError> {
        Arc::new(
            Self {
                fence: Atomic::new(0),
                number: Atomic::new(0),
                is_due: Atomic::new(false),
                is_destroyed: Atomic::new(false),
                all: all.clone(),
            },
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Traces call its fence so.
    pub(super) fn name(&self, fence: u64) {
        self.fence.store(fence, Relaxed);
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

    /// Counts something for the adapter, so often.
    pub(super) fn add(&self, what: Count, times: u64) {
        self.all.add(what, times);
    }

    /// Whether the driver names queues.
    #[inline(always)]
    pub(super) fn is_optimized(&self) -> bool {
        self.all.is_optimized
    }
}

impl NativeFenceCallbacks for Interrupt {
    fn signaled(&self, _: &DeviceInterrupt) {
        if self.all.is_optimized {
            // A list of fences means nothing then (FEN-97).
            return;
        }
        self.all.count(Count::Interrupts);
        trace::native_interrupt(self.all.adapter, self.fence.load(Relaxed), 0);
        if self.is_destroyed.load(Relaxed) {
            return self.all.bad_handle();
        }
        // ORDERING: full: the value was stored before. Pairs with `take`.
        if !self.is_due.xchg(true, Full) {
            self.all.post(self.number.load(Relaxed));
        }
    }

    fn destroyed(&self) {
        self.is_destroyed.store(true, Relaxed);
    }
}
