// SPDX-License-Identifier: GPL-2.0

//! What the KMD tells about a queue: the record that its callbacks write, in any context class, and
//! that the adapter's worker reads (GPU-114). Writing it takes no lock and allocates nothing.

use super::context_state::ContextState;
use crate::{
    ddi::{
        class::DeviceInterrupt,
        object::Suspension,
        power::EngineState,
        queue::{
            Fault,
            FaultKind,
            NativeFenceSignaled,
            QueueCallbacks, //
        }, //
    },
    sys::time::now_ns, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        ArcBorrow, //
    }, //
};

/// A queue that goes on when it is told to.
pub(crate) trait Kick: Send + Sync {
    /// Has the adapter's worker look at it. In any context; touches atomics and queues work only.
    fn kick(self: ArcBorrow<'_, Self>);
}

/// What was told. One writer, which is the KMD; any readers.
pub(super) struct Reported {
    /// Nanoseconds that an engine has run it.
    busy_ns: Atomic<u64>,
    /// How much of that was for looking again at values that it waits for.
    polled_ns: Atomic<u64>,
    /// Nanoseconds that it has waited for values in the middle of commands.
    waited_ns: Atomic<u64>,
    /// Since when it waits for a native fence; 0 if it does not.
    waits_since_ns: Atomic<u64>,
    /// The last submission whose commands have been read.
    fetched: Atomic<u64>,
    /// The last submission that has completed.
    completed: Atomic<u64>,
    /// Engines may have stored to fences.
    stored: Atomic<bool>,
    /// There is a fault, in `fault`.
    faulted: Atomic<bool>,
    /// Its parts, see [`Reported::fault`].
    fault: [Atomic<u64>; 6],
}

/// In the first part of a fault: it is a page fault.
const IS_PAGE_FAULT: u64 = 1 << 0;
/// It was a store.
const IS_WRITE: u64 = 1 << 1;

impl Reported {
    /// Nothing.
    pub(super) fn new() -> Self {
        Self {
            busy_ns: Atomic::new(0),
            polled_ns: Atomic::new(0),
            waited_ns: Atomic::new(0),
            waits_since_ns: Atomic::new(0),
            fetched: Atomic::new(0),
            completed: Atomic::new(0),
            stored: Atomic::new(false),
            faulted: Atomic::new(false),
            fault: [const { Atomic::new(0) }; 6],
        }
    }

    /// Nanoseconds that an engine has run it.
    pub(super) fn busy_ns(&self) -> u64 {
        self.busy_ns.load(Relaxed)
    }

    /// The same, without looking again at values that it waits for.
    pub(super) fn ran_ns(&self) -> u64 {
        self.busy_ns().saturating_sub(self.polled_ns.load(Relaxed))
    }

    /// Nanoseconds that it has waited for values in the middle of commands.
    pub(super) fn waited_ns(&self) -> u64 {
        let now = match self.waits_since_ns.load(Relaxed) {
            0 => 0,
            since => now_ns().saturating_sub(since),
        };

        self.waited_ns.load(Relaxed).saturating_add(now)
    }

    /// The last submission whose commands have been read, or one that has completed since.
    pub(super) fn fetched(&self) -> u64 {
        self.fetched.load(Acquire)
    }

    /// The last submission that has completed.
    pub(super) fn completed(&self) -> u64 {
        self.completed.load(Acquire)
    }

    /// Whether engines may have stored to fences since the last time.
    pub(super) fn take_stored(&self) -> bool {
        // ORDERING: full, before any value is looked at (FEN-101). Pairs with `set_stored`.
        self.stored.xchg(false, Full)
    }

    fn set_stored(&self) {
        self.stored.store(true, Release);
    }

    /// The fault, once.
    pub(super) fn take_fault(&self) -> Option<Fault> {
        // ORDERING: pairs with the store in `set_fault`.
        if !self.faulted.xchg(false, Full) {
            return None;
        }

        let [what, packet, number, flags, first, second] =
            self.fault.each_ref().map(|part| part.load(Relaxed));

        Some(Fault {
            kind: if what & IS_PAGE_FAULT != 0 {
                FaultKind::PageFault {
                    address: first,
                    write: what & IS_WRITE != 0,
                    // CAST: these were 32 bits.
                    level: second as u32,
                }
            } else {
                FaultKind::IllegalPacket {
                    header: first as u32,
                }
            },
            packet,
            number,
            flags: flags as u32,
        })
    }

    fn set_fault(&self, fault: &Fault) {
        let (what, first, second) = match fault.kind {
            FaultKind::PageFault {
                address,
                write,
                level,
            } => (
                IS_PAGE_FAULT | if write { IS_WRITE } else { 0 },
                address,
                level.into(),
            ),
            FaultKind::IllegalPacket { header } => (0, header.into(), 0),
        };
        let parts = [
            what,
            fault.packet,
            fault.number,
            fault.flags.into(),
            first,
            second,
        ];

        for (place, part) in self.fault.iter().zip(parts) {
            place.store(part, Relaxed);
        }
        // ORDERING: release: who sees it sees the parts.
        self.faulted.store(true, Release);
    }
}

/// A queue that the KMD tells something about.
pub(super) trait Told: Kick {
    /// Where it is written.
    fn reported(&self) -> &Reported;

    /// Where the end of a suspension is told, if it is the queue of a context.
    fn suspension(&self) -> Option<&Suspension>;

    /// What it has in common with its context.
    fn context(&self) -> &ContextState;

    /// An engine has run it for so long, after another queue if `switched`. In any context; touches
    /// atomics and queues work only.
    fn ran(self: ArcBorrow<'_, Self>, ns: u64, switched: bool);

    /// Its engine has signalled a monitored fence, and interrupted for that. In any context;
    /// touches atomics only.
    fn monitored_fence_signaled(&self);

    /// Its engine has signalled native fences, without saying which; it was this queue if it is
    /// named. In any context; touches atomics and queues work only.
    fn native_fence_signaled(&self, names_queue: bool);

    /// Its engine is in another state. In any context; touches atomics and queues work only.
    fn engine_state_changed(&self, state: EngineState);
}

/// The callbacks of one queue. The KMD has them until it has destroyed the queue, which the end of
/// the queue sees to.
pub(super) struct Callbacks<Q>(Arc<Q>);

impl<Q: Told + 'static> Callbacks<Q> {
    /// Those of `queue`.
    pub(super) fn of(queue: &Arc<Q>) -> Result<Arc<dyn QueueCallbacks>> {
        Ok(Arc::new(Self(queue.clone()), GFP_KERNEL_ACCOUNT)?)
    }
}

impl<Q: Told> Callbacks<Q> {
    /// It may have stored to monitored fences.
    fn look_at_fences(&self) {
        self.0.reported().set_stored();
        self.0.as_arc_borrow().kick();
    }
}

impl<Q: Told> QueueCallbacks for Callbacks<Q> {
    fn ran(&self, ns: u64, switched: bool) {
        // ORDERING: a barrier is between this and the look whether the queue is watched: see
        // `logic/watched.rs`.
        let _before = self.0.reported().busy_ns.fetch_add(ns, Relaxed);

        self.0.as_arc_borrow().ran(ns, switched);
    }

    fn polled(&self, ns: u64) {
        // ORDERING: as below. Taken before the sum that it is a part of, it may only be too large.
        let _before = self.0.reported().polled_ns.fetch_add(ns, Relaxed);
    }

    fn waits(&self, since_ns: u64) {
        self.0.reported().waits_since_ns.store(since_ns, Relaxed);
    }

    fn waited(&self, ns: u64) {
        self.0.reported().waits_since_ns.store(0, Relaxed);
        // ORDERING: a count that is looked at now and then.
        let _before = self.0.reported().waited_ns.fetch_add(ns, Relaxed);
    }

    fn fetched(&self, number: u64) {
        // ORDERING: as in `completed`.
        self.0.reported().fetched.store(number, Release);
        self.0.as_arc_borrow().kick();
    }

    fn completed(&self, _: &DeviceInterrupt, number: u64) {
        let reported = self.0.reported();

        // ORDERING: release: who sees the number sees what the commands have stored.
        reported.completed.store(number, Release);
        reported.set_stored();
        self.0.as_arc_borrow().kick();
    }

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {
        self.0.monitored_fence_signaled();
        self.look_at_fences();
    }

    fn native_fence_signaled(&self, _: &DeviceInterrupt, record: NativeFenceSignaled) {
        if record.evaluate_legacy_monitored_fences {
            self.look_at_fences();
        }
        self.0.native_fence_signaled(record.names_queue);
    }

    fn faulted(&self, _: &DeviceInterrupt, fault: &Fault) {
        self.0.reported().set_fault(fault);
        self.0.as_arc_borrow().kick();
    }

    fn engine_state_changed(&self, _: &DeviceInterrupt, state: EngineState) {
        self.0.engine_state_changed(state);
    }

    fn invalidated(&self) {
        self.0.context().invalidate();
    }

    fn suspended(&self, _: &DeviceInterrupt, id: u64) {
        if let Some(suspension) = self.0.suspension() {
            suspension.ended(id);
        }
    }
}

/// The callbacks of a context of HW queues: its queues have their own for everything else.
pub(crate) struct ContextCallbacks {
    /// Where the end of a suspension is told.
    pub(crate) suspension: Option<Arc<Suspension>>,
    /// What it has in common with its queues.
    pub(crate) state: Arc<ContextState>,
}

impl QueueCallbacks for ContextCallbacks {
    fn completed(&self, _: &DeviceInterrupt, _number: u64) {}

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

    fn faulted(&self, _: &DeviceInterrupt, _fault: &Fault) {}

    fn invalidated(&self) {
        self.state.invalidate();
    }

    fn suspended(&self, _: &DeviceInterrupt, id: u64) {
        if let Some(suspension) = &self.suspension {
            suspension.ended(id);
        }
    }
}
