// SPDX-License-Identifier: GPL-2.0

//! The operation log of an adapter (MEM-103, MEM-104): what the memory manager does, in the order
//! in which it does it. `logic/paging_log.rs` has the records; root reads and controls it by
//! debugfs.
//!
//! The same shows up as events of the kernel's tracer (MEM-105), and some things only there.
//!
//! While nobody follows any adapter, all that costs one load of a counter. A log that was never on
//! has no memory. A record takes none and waits for nobody, so that it may be written under
//! spinlocks.
//!
//! LOCK: `ring` is a spinlock, a leaf. Nothing is dropped under it.

use crate::{
    ddi::queue::{
        Fault,
        FaultKind, //
    },
    logic::{
        paging_log::{
            Action,
            Event,
            Kind,
            Record, //
        },
        paging_ring::{
            Ring,
            Serving,
            KEPT, //
        }, //
    },
    sys::{
        alloc::pin_arc,
        time::now_ns,
        trace, //
    }, //
};
use kernel::{
    alloc::AllocError,
    current,
    fmt,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            AtomicFlag,
            Full,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// The log of one adapter.
#[pin_data(PinnedDrop)]
pub(crate) struct PagingLog {
    /// The number of the adapter, for the tracer.
    adapter: u64,
    /// It is one of `trace::paging_followers()` then.
    is_on: AtomicFlag,
    /// The last number of a change.
    batch: Atomic<u64>,
    #[pin]
    ring: SpinLock<Ring<KVVec<Record>>>,
}

impl PagingLog {
    /// One that is off, of the adapter with this number.
    ///
    /// Context: may sleep.
    pub(super) fn new(adapter: u64) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                adapter,
                is_on: AtomicFlag::new(false),
                batch: Atomic::new(0),
                ring <- new_spinlock!(Ring::new(KVVec::new()), "PagingLog::ring"),
            }),
            GFP_KERNEL,
        )
    }

    /// Writes a record, if the log is on, and tells the tracer.
    ///
    /// Context: a task; also under spinlocks.
    pub(super) fn write(&self, action: impl FnOnce() -> Action) {
        if trace::paging_is_followed() {
            let action = action();

            self.record(action, action.event(), true);
        }
    }

    /// Tells the tracer of what is no record.
    ///
    /// Context: as [`PagingLog::write`].
    pub(super) fn tell(&self, event: Event, action: impl FnOnce() -> Action) {
        if trace::paging_is_followed() {
            self.record(action(), Some(event), false);
        }
    }

    #[cold]
    fn record(&self, action: Action, event: Option<Event>, is_record: bool) {
        let thread = thread();
        let action = {
            let mut ring = self.ring.lock();
            let action = ring.complete(thread, action);

            if is_record && self.is_on.load(Relaxed) {
                ring.write(now_ns(), thread, action);
            }
            action
        };

        if let Some(event) = event {
            trace::paging(self.adapter, event, &action);
        }
    }

    /// The work of a context or HW queue has ended by this, if it is a page fault.
    pub(in crate::dxgk) fn faulted(&self, process: u64, queue: u64, fault: &Fault) {
        if let FaultKind::PageFault { address, level, .. } = fault.kind {
            self.write(|| Action {
                kind: Kind::Fault,
                process,
                object: queue,
                level,
                address,
                flags: fault.flags,
                ..Action::default()
            });
        }
    }

    /// A number for the records of one change; 0 if nobody follows.
    pub(super) fn batch(&self) -> u64 {
        if !trace::paging_is_followed() {
            return 0;
        }
        // OVERFLOW: as for the numbers of objects.
        self.batch.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// Runs this operation of a paging queue: records of the calling thread say so. If nobody
    /// followed at its begin, they do not.
    ///
    /// Context: the worker, which does one operation at a time.
    pub(super) fn serve(&self, by: Serving, operation: impl FnOnce()) {
        if !trace::paging_is_followed() {
            return operation();
        }
        self.ring.lock().serve(thread(), by);
        operation();
        self.ring.lock().end_serving();
    }

    /// Records are written from now on.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn start(&self) -> Result {
        let has_places = self.ring.lock().has_places();

        if !has_places {
            let places = KVVec::from_elem(Record::default(), KEPT, GFP_KERNEL_ACCOUNT)?;
            let unused = self.ring.lock().give(places);

            // Another caller was faster.
            drop(unused);
        }
        self.set(true);
        Ok(())
    }

    /// No records are written any more.
    pub(super) fn stop(&self) {
        self.set(false);
    }

    fn set(&self, is_on: bool) {
        if self.is_on.xchg(is_on, Full) != is_on {
            trace::paging_followers().fetch_add(if is_on { 1 } else { -1 }, Relaxed);
        }
    }

    /// Forgets all records.
    pub(super) fn clear(&self) {
        self.ring.lock().clear();
    }

    /// Prints what there is: first how many records are lost.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = 0;
        let (is_on, lost) = (self.is_on.load(Relaxed), self.ring.lock().lost());

        writeln!(f, "log on={} lost={lost}", u32::from(is_on))?;
        // Who writes waits for the copy of one record at most. Not more are shown than there are
        // places, however many come meanwhile.
        for _ in 0..KEPT {
            let next = self.ring.lock().after(seen);
            let Some(record) = next else {
                break;
            };

            seen = record.number;
            record.show(f)?;
        }
        Ok(())
    }
}

#[pinned_drop]
impl PinnedDrop for PagingLog {
    fn drop(self: Pin<&mut Self>) {
        self.stop();
    }
}

/// The log, as it is written to about one process or one object.
#[derive(Clone)]
pub(super) struct LogAbout {
    pub(super) log: Arc<PagingLog>,
    process: u64,
    object: u64,
}

impl LogAbout {
    /// About this process.
    pub(super) fn process(log: &Arc<PagingLog>, process: u64) -> Self {
        Self {
            log: log.clone(),
            process,
            object: 0,
        }
    }

    /// About this object.
    pub(super) fn object(log: &Arc<PagingLog>, object: u64) -> Self {
        Self {
            log: log.clone(),
            process: 0,
            object,
        }
    }

    /// The number of the process.
    pub(super) fn process_id(&self) -> u64 {
        self.process
    }

    /// As [`PagingLog::write`].
    pub(super) fn write(&self, action: impl FnOnce() -> Action) {
        self.log.write(|| self.about(action()));
    }

    /// As [`PagingLog::tell`].
    pub(super) fn tell(&self, event: Event, action: impl FnOnce() -> Action) {
        self.log.tell(event, || self.about(action()));
    }

    fn about(&self, action: Action) -> Action {
        Action {
            process: self.process,
            object: match action.object {
                0 => self.object,
                other => other,
            },
            ..action
        }
    }
}

/// The number of the calling thread.
fn thread() -> u64 {
    // Numbers of threads are positive.
    u64::try_from(current!().pid()).unwrap_or(0)
}
