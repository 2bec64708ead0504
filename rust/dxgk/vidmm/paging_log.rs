// SPDX-License-Identifier: GPL-2.0

//! The operation log of an adapter (MEM-103, MEM-104): what the memory manager does, in the order
//! in which it does it. `logic/paging_log.rs` has the records; root reads and controls it by
//! debugfs. A process has records of its own, see `own_paging_log.rs`.
//!
//! The same shows up as events of the kernel's tracer (MEM-105), and some things only there.
//!
//! While nobody follows any adapter, all that costs one load of a counter. A log that was never on
//! has no memory. A record takes none and waits for nobody, so that it may be written under
//! spinlocks.
//!
//! LOCK: `state` is a spinlock, a leaf. Nothing is dropped under it.

use crate::{
    ddi::{
        object,
        queue::{
            Fault,
            FaultKind, //
        }, //
    },
    logic::{
        paging_log::{
            Action,
            Event,
            Kind,
            Record,
            PAGING_PROCESS, //
        },
        paging_ring::{
            Ring,
            Serving,
            KEPT,
            KEPT_OF_PROCESS, //
        }, //
    },
    sys::{
        alloc::{
            pin_arc,
            tree_node, //
        },
        time::now_ns,
        trace,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    current,
    fmt,
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
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
    state: SpinLock<State>,
}

struct State {
    all: Ring<KVVec<Record>>,
    /// What processes read, by the process and any number.
    own: RBTree<OwnKey, Own>,
}

/// The number of a process, and of one who reads its records.
pub(super) type OwnKey = (u64, u64);

/// The records of one process, for one reader.
struct Own {
    ring: Ring<KVVec<Record>>,
    /// The last one that was read.
    seen: u64,
    /// The last one before that read.
    seen_before: u64,
    /// The thread that the process began with: threads of other processes are not named.
    leader: i32,
}

impl State {
    /// Writes what was done for a process to what that reads.
    fn write_own(&mut self, at_ns: u64, thread: u64, action: Action) {
        let reader = action.reader();
        let leader = current!().group_leader().pid();
        let mut next = (reader, 0);

        if reader == PAGING_PROCESS {
            return;
        }
        while let Some(key) = self.own.cursor_lower_bound(&next).map(|at| *at.current().0) {
            if key.0 != reader {
                return;
            }
            if let Some(own) = self.own.get_mut(&key) {
                let is_named = own.leader == leader || work::is_worker();
                let thread = if is_named { thread } else { 0 };

                own.ring.write(at_ns, thread, action.without_physical());
            }
            next = (key.0, key.1.saturating_add(1));
        }
    }
}

/// The paging node does a batch for a process, until this is dropped.
pub(super) struct Batch<'a>(Option<&'a PagingLog>);

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if let Some(log) = self.0 {
            log.state.lock().all.end_batch();
        }
    }
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
                state <- new_spinlock!(
                    State {
                        all: Ring::new(KVVec::new()),
                        own: RBTree::new(),
                    },
                    "PagingLog::state"
                ),
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
            let mut state = self.state.lock();
            let action = state.all.complete(thread, action);

            if is_record {
                let at_ns = now_ns();

                if self.is_on.load(Relaxed) {
                    state.all.write(at_ns, thread, action);
                }
                state.write_own(at_ns, thread, action);
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
        self.state.lock().all.serve(thread(), by);
        operation();
        self.state.lock().all.end_serving();
    }

    /// The paging node does the batch with this number from now on, for a process.
    ///
    /// Context: one batch at a time.
    pub(super) fn begin_batch(&self, number: u64, process: u64) -> Batch<'_> {
        if number == 0 {
            return Batch(None);
        }
        self.state.lock().all.begin_batch(number, process);
        Batch(Some(self))
    }

    /// Adds one who reads what is written for this process from now on, which is that of the
    /// caller.
    ///
    /// Context: a system call, no locks held.
    pub(super) fn add_own(&self, key: OwnKey) -> Result<(), AllocError> {
        let places = KVVec::from_elem(Record::default(), KEPT_OF_PROCESS, GFP_KERNEL_ACCOUNT)?;
        let own = Own {
            ring: Ring::new(places),
            seen: 0,
            seen_before: 0,
            leader: current!().group_leader().pid(),
        };
        let node = tree_node(key, own)?;
        // Keys are different.
        let _nothing = self.state.lock().own.insert(node);

        trace::paging_followers().fetch_add(1, Relaxed);
        Ok(())
    }

    /// Removes one.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn remove_own(&self, key: OwnKey) {
        let node = self.state.lock().own.remove_node(&key);

        if node.is_some() {
            trace::paging_followers().fetch_add(-1, Relaxed);
        }
        drop(node);
    }

    /// The next record for one of them, and the last one that it has read.
    pub(super) fn next_own(&self, key: OwnKey) -> Option<(u64, Record)> {
        let state = self.state.lock();
        let own = state.own.get(&key)?;

        Some((own.seen, own.ring.after(own.seen)?))
    }

    /// It reads that; false if another thread was faster.
    pub(super) fn take_own(&self, key: OwnKey, seen: u64, record: &Record) -> bool {
        let mut state = self.state.lock();

        match state.own.get_mut(&key) {
            Some(own) if own.seen == seen => {
                own.seen_before = seen;
                own.seen = record.number;
                true
            }
            _ => false,
        }
    }

    /// It has not read the last one after all.
    pub(super) fn untake_own(&self, key: OwnKey) {
        if let Some(own) = self.state.lock().own.get_mut(&key) {
            own.seen = own.seen_before;
        }
    }

    /// Records are written from now on.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn start(&self) -> Result {
        let has_places = self.state.lock().all.has_places();

        if !has_places {
            let places = KVVec::from_elem(Record::default(), KEPT, GFP_KERNEL_ACCOUNT)?;
            let unused = self.state.lock().all.give(places);

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
        self.state.lock().all.clear();
    }

    /// Prints what there is: first how many records are lost.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = 0;
        let (is_on, lost) = (self.is_on.load(Relaxed), self.state.lock().all.lost());

        writeln!(f, "log on={} lost={lost}", u32::from(is_on))?;
        // Who writes waits for the copy of one record at most. Not more are shown than there are
        // places, however many come meanwhile.
        for _ in 0..KEPT {
            let next = self.state.lock().all.after(seen);
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
    made_for: u64,
    object: u64,
}

impl LogAbout {
    /// About this process.
    pub(super) fn process(log: &Arc<PagingLog>, process: u64) -> Self {
        Self {
            log: log.clone(),
            process,
            made_for: 0,
            object: 0,
        }
    }

    /// About this object.
    pub(super) fn object(log: &Arc<PagingLog>, object: u64) -> Self {
        Self {
            log: log.clone(),
            process: 0,
            made_for: 0,
            object,
        }
    }

    /// About this allocation, of the process that has made it.
    pub(super) fn allocation(log: &Arc<PagingLog>, allocation: &object::Allocation) -> Self {
        Self {
            made_for: allocation.made_by,
            ..Self::object(log, allocation.id())
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
            made_for: self.made_for,
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
