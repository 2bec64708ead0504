// SPDX-License-Identifier: GPL-2.0

//! The operation log of an adapter (MEM-103, MEM-104): what the memory manager does, in the order
//! in which it does it. `logic/paging_log.rs` has the records; root reads and controls it by
//! debugfs.
//!
//! While it is off it has no memory, and costs one load of a flag. A record takes no memory and
//! waits for nobody, so that it may be written under spinlocks.
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
            Kind,
            Record, //
        },
        paging_ring::{
            Ring,
            KEPT, //
        }, //
    },
    sys::{
        alloc::pin_arc,
        time::now_ns, //
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
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// The log of one adapter.
#[pin_data]
pub(crate) struct PagingLog {
    is_on: AtomicFlag,
    /// The last number of a change.
    batch: Atomic<u64>,
    #[pin]
    ring: SpinLock<Ring<KVVec<Record>>>,
}

impl PagingLog {
    /// One that is off.
    ///
    /// Context: may sleep.
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                is_on: AtomicFlag::new(false),
                batch: Atomic::new(0),
                ring <- new_spinlock!(Ring::new(KVVec::new()), "PagingLog::ring"),
            }),
            GFP_KERNEL,
        )
    }

    /// Writes a record, if the log is on.
    ///
    /// Context: a task; also under spinlocks.
    pub(super) fn write(&self, action: impl FnOnce() -> Action) {
        if self.is_on.load(Relaxed) {
            self.record(action());
        }
    }

    #[cold]
    fn record(&self, action: Action) {
        self.ring.lock().write(now_ns(), thread(), action);
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

    /// A number for the records of one change; 0 if the log is off.
    pub(super) fn batch(&self) -> u64 {
        if !self.is_on.load(Relaxed) {
            return 0;
        }
        // OVERFLOW: as for the numbers of objects.
        self.batch.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// Runs this operation of a paging queue: records of the calling thread say so. If the log was
    /// off at its begin, they do not.
    ///
    /// Context: the worker, which does one operation at a time.
    pub(super) fn serve(&self, queue: u64, value: u64, operation: impl FnOnce()) {
        if !self.is_on.load(Relaxed) {
            return operation();
        }
        self.ring.lock().serve(thread(), queue, value);
        operation();
        self.ring.lock().end_serving();
    }

    /// Records are written from now on.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn start(&self) -> Result {
        let has_places = self.ring.lock().has_places();

        if !has_places {
            let places = KVVec::from_elem(Record::default(), KEPT, GFP_KERNEL_ACCOUNT)?;
            let unused = self.ring.lock().give(places);

            // Another caller was faster.
            drop(unused);
        }
        self.is_on.store(true, Relaxed);
        Ok(())
    }

    /// No records are written any more.
    pub(super) fn stop(&self) {
        self.is_on.store(false, Relaxed);
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

    /// As [`PagingLog::write`].
    pub(super) fn write(&self, action: impl FnOnce() -> Action) {
        self.log.write(|| {
            let action = action();

            Action {
                process: self.process,
                object: match action.object {
                    0 => self.object,
                    other => other,
                },
                ..action
            }
        });
    }
}

/// The number of the calling thread.
fn thread() -> u64 {
    // Numbers of threads are positive.
    u64::try_from(current!().pid()).unwrap_or(0)
}
