// SPDX-License-Identifier: GPL-2.0

//! A wait in a queue.
//!
//! All memory that it needs is there when it is queued. It begins when it is its turn: then it is
//! queued on its objects. Its end queues the work of its queue, which finds that it is over. So
//! nothing is done for a queue by those who signal.
//!
//! A wait for the fence of a sync file is different: it has begun when it is queued, because such a
//! fence never takes back that it has signalled.

use super::{
    callbacks::Kick,
    snapshot::Blocked, //
};
use crate::dxgk::small_vec::InlineVec;
use crate::dxgk::sync::{
    cpu_wait::{
        Element,
        Registration, //
    },
    fence::{
        FenceWaiter,
        NewNode, //
    },
    legacy::LegacySync,
    pending_waits::PendingWaits,
    queue,
    waiter::Waiter,
    wake::Wake, //
};
use crate::{
    error::DxgResult,
    logic::{
        sync_file_rules::End,
        wait_set::WaitSet,
        waiters::{
            EnqueueResult,
            WaitKey, //
        }, //
    },
    sys::{
        dma_fence::{
            Callback,
            DmaFence,
            Notified, //
        },
        trace::{
            self,
            FenceOperation, //
        }, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    }, //
};

/// A queue that goes on when its wait ends.
pub(crate) struct WakeQueue {
    queue: Arc<dyn Kick>,
    /// What the wait waits for.
    pub(in crate::dxgk) elements: InlineVec<Element>,
}

impl Wake for WakeQueue {
    fn wake(&self, _set: &WaitSet) {
        self.queue.as_arc_borrow().kick();
    }
}

/// A queue that goes on when a fence of the kernel signals.
pub(crate) struct KickQueue(pub(super) Arc<dyn Kick>);

impl Notified for KickQueue {
    fn signalled(&self) {
        self.0.as_arc_borrow().kick();
    }
}

/// A fence of the kernel that ends a wait.
pub(crate) type Bound = Callback<KickQueue>;

/// Waits for values of fences, all of them.
struct FenceWait {
    /// The id of the queue, for traces.
    queue: u64,
    waiter: Arc<Waiter<WakeQueue>>,
    /// Until it begins.
    registration: Option<Registration<WakeQueue>>,
    /// Something was exported for which it must not block longer than these, which stand for what
    /// was missing then (FEN-161). There may be none.
    bounds: Option<KVec<Bound>>,
}

/// How far a wait for an older object is.
enum Phase {
    /// It has not begun.
    New(NewNode),
    /// It begins: whoever has the turn of its queue does that, and drops it later.
    Beginning,
    /// It was queued on the object.
    Queued(WaitKey),
    /// It was satisfied when it began.
    Satisfied,
}

/// Waits for one mutex, semaphore or legacy fence.
struct LegacyWait {
    object: Arc<LegacySync>,
    value: u64,
    waiter: Arc<LegacyWaiter>,
    phase: Phase,
}

impl FenceWait {
    /// Whether it is over because all its bounds have signalled.
    fn is_over(&self) -> bool {
        self.bounds
            .as_ref()
            .is_some_and(|bounds| bounds.iter().all(Bound::has_signalled))
    }

    /// Its fences, and the values that it waits for.
    fn fences(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let elements = self.waiter.receiver.elements.iter();

        elements.map(|element| (element.fence.header.id(), element.value))
    }

    /// Whether its condition holds now, if it has not begun.
    fn holds(&self) -> bool {
        self.registration.as_ref().is_some_and(Registration::holds)
    }
}

impl LegacyWait {
    /// Takes it out of its object, or gives back what it has got.
    fn undo(&self) {
        let was_queued = match &self.phase {
            Phase::New(_) | Phase::Beginning => return,
            Phase::Queued(key) => self.object.cancel(key),
            Phase::Satisfied => false,
        };

        if !was_queued {
            self.object.give_back();
        }
    }
}

/// A [`LegacyWait`] as its object knows it.
struct LegacyWaiter {
    queue: Arc<dyn Kick>,
    has_ended: Atomic<bool>,
}

impl queue::Knows for LegacyWaiter {}

impl FenceWaiter for LegacyWaiter {
    fn satisfied(&self) -> bool {
        self.has_ended.store(true, Release);
        self.queue.as_arc_borrow().kick();
        true
    }

    fn orphaned(&self) {
        self.satisfied();
    }
}

enum Kind {
    Fences(FenceWait),
    Legacy(LegacyWait),
    /// For a sync file. An error ends it like any other signal.
    SyncFile(Bound),
}

/// A wait in a queue. Dropping it ends it: what it has got is given back, unless it was over.
pub(in crate::dxgk) struct QueuedWait {
    kind: Kind,
    blocked: Blocked,
    /// The queue has gone on.
    is_over: bool,
}

/// What begins a wait whose turn it is.
pub(super) enum Begin {
    /// On fences.
    Fences(Registration<WakeQueue>),
    /// On an object that is no monitored fence.
    Legacy {
        object: Arc<LegacySync>,
        value: u64,
        new_node: NewNode,
        waiter: Arc<dyn FenceWaiter>,
    },
}

/// A wait for an older object that has begun: where it is queued, if it was not satisfied.
pub(super) struct Begun(Option<WaitKey>);

impl Begin {
    /// How many objects it waits for.
    pub(super) fn elements(&self) -> usize {
        match self {
            Self::Fences(registration) => registration.elements(),
            Self::Legacy { .. } => 1,
        }
    }

    /// Queues the wait on its objects. The result is for [`QueuedWait::begun`].
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn run(self) -> Option<Begun> {
        match self {
            Self::Fences(registration) => {
                registration.begin();
                None
            }
            Self::Legacy {
                object,
                value,
                new_node,
                waiter,
            } => {
                let key = match object.enqueue(value, new_node) {
                    EnqueueResult::Queued(key) => Some(key),
                    EnqueueResult::Satisfied(_) | EnqueueResult::Orphaned(_) => {
                        waiter.satisfied();
                        None
                    }
                };

                Some(Begun(key))
            }
        }
    }
}

impl QueuedWait {
    /// A wait of `queue`, which has this id in traces, for all of these.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn for_fences(
        id: u64,
        queue: Arc<dyn Kick>,
        waits: &Arc<PendingWaits>,
        elements: &[Element],
    ) -> DxgResult<Self> {
        let mut own = InlineVec::with_capacity(elements.len())?;

        for element in elements {
            own.push(element.clone());
        }

        let receiver = WakeQueue {
            queue,
            elements: own,
        };
        let registration = Registration::new(waits, elements, receiver)?;
        let blocked = registration
            .first()
            .map(|element| Blocked {
                kind: element.fence.header.kind().name(),
                object: element.fence.header.id(),
                value: element.value,
            })
            .unwrap_or_default();

        Ok(Self {
            kind: Kind::Fences(FenceWait {
                queue: id,
                waiter: registration.waiter().clone(),
                registration: Some(registration),
                bounds: None,
            }),
            blocked,
            is_over: false,
        })
    }

    /// A wait of `queue` for one object.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn for_legacy(
        queue: Arc<dyn Kick>,
        object: &Arc<LegacySync>,
        value: u64,
    ) -> DxgResult<Self> {
        let waiter = Arc::new(
            LegacyWaiter {
                queue,
                has_ended: Atomic::new(false),
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let new_node = queue::new_node(waiter.clone() as Arc<dyn FenceWaiter>)?;

        Ok(Self {
            blocked: Blocked {
                kind: object.header.kind().name(),
                object: object.header.id(),
                value,
            },
            kind: Kind::Legacy(LegacyWait {
                object: object.clone(),
                value,
                waiter,
                phase: Phase::New(new_node),
            }),
            is_over: false,
        })
    }

    /// A wait of `queue` for the fence of a sync file.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn for_sync_file(
        queue: Arc<dyn Kick>,
        fence: DmaFence,
    ) -> Result<Self, AllocError> {
        let (object, value) = fence.name();

        Ok(Self {
            kind: Kind::SyncFile(Callback::new(fence, KickQueue(queue))?),
            blocked: Blocked {
                kind: "sync_file",
                object,
                value,
            },
            is_over: false,
        })
    }

    /// Whether its condition was met, or never will be.
    pub(super) fn has_ended(&self) -> bool {
        match &self.kind {
            Kind::Fences(wait) => wait.waiter.set.outcome().is_some() || wait.is_over(),
            Kind::Legacy(wait) => wait.waiter.has_ended.load(Acquire),
            Kind::SyncFile(wait) => wait.has_signalled(),
        }
    }

    /// How many objects it waits for.
    pub(super) fn elements(&self) -> usize {
        match &self.kind {
            Kind::Fences(wait) => wait.registration.as_ref().map_or(1, Registration::elements),
            Kind::Legacy(_) | Kind::SyncFile(_) => 1,
        }
    }

    /// How it ends (FEN-161).
    pub(super) fn end(&self) -> End {
        match &self.kind {
            Kind::SyncFile(_) => End::Bounded,
            _ if self.has_ended() => End::Bounded,
            Kind::Fences(wait) if wait.bounds.is_some() => End::Bounded,
            Kind::Fences(wait) if wait.holds() => End::HoldsNow,
            Kind::Fences(_) => End::WithFences,
            Kind::Legacy(_) => End::Unbounded,
        }
    }

    /// Its condition holds: it is over from now on.
    pub(super) fn latch(&mut self) {
        if let Kind::Fences(wait) = &mut self.kind {
            wait.bounds.get_or_insert_with(KVec::new);
        }
    }

    /// What it waits for, if these are values of fences.
    pub(super) fn waiter(&self) -> Option<&Arc<Waiter<WakeQueue>>> {
        match &self.kind {
            Kind::Fences(wait) => Some(&wait.waiter),
            Kind::Legacy(_) | Kind::SyncFile(_) => None,
        }
    }

    /// It is over when all of these have signalled, which are taken; unless it is bounded already.
    pub(super) fn bind(&mut self, bounds: &mut Option<KVec<Bound>>) {
        if let Kind::Fences(wait) = &mut self.kind {
            if wait.bounds.is_none() {
                wait.bounds = bounds.take();
            }
        }
    }

    /// Whether it would not block, as far as that is known, if it were its turn now.
    pub(super) fn might_pass(&self) -> bool {
        match &self.kind {
            Kind::Fences(wait) => wait.registration.is_none() || wait.holds() || wait.is_over(),
            Kind::Legacy(_) => true,
            Kind::SyncFile(wait) => wait.has_signalled(),
        }
    }

    /// The queue goes on.
    pub(super) fn pass(&mut self) {
        self.is_over = true;
        if let Kind::Fences(wait) = &self.kind {
            if trace::shows_fence_operations() {
                for (fence, value) in wait.fences() {
                    trace::fence_done(wait.queue, fence, value, FenceOperation::Wait);
                }
            }
        }
    }

    /// It is about to be queued.
    pub(super) fn tell_queued(&self) {
        if let Kind::Fences(wait) = &self.kind {
            for (fence, value) in wait.fences() {
                trace::fence_queued(wait.queue, fence, value, FenceOperation::Wait);
            }
        }
    }

    /// What is to be done now that it is its turn; `None` if that was done.
    pub(super) fn begin(&mut self) -> Option<Begin> {
        match &mut self.kind {
            Kind::Fences(wait) => wait.registration.take().map(Begin::Fences),
            Kind::Legacy(wait) => match core::mem::replace(&mut wait.phase, Phase::Beginning) {
                Phase::New(new_node) => Some(Begin::Legacy {
                    object: wait.object.clone(),
                    value: wait.value,
                    new_node,
                    waiter: wait.waiter.clone(),
                }),
                phase => {
                    wait.phase = phase;
                    None
                }
            },
            Kind::SyncFile(_) => None,
        }
    }

    /// It has begun.
    pub(super) fn begun(&mut self, begun: &Begun) {
        if let Kind::Legacy(wait) = &mut self.kind {
            wait.phase = begun.0.map_or(Phase::Satisfied, Phase::Queued);
        }
    }

    /// What it waits for.
    pub(super) fn blocked(&self) -> Blocked {
        self.blocked
    }
}

impl Drop for QueuedWait {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        match &self.kind {
            // One that has not begun is in no fence.
            Kind::Fences(wait) if wait.registration.is_some() => {}
            // If it has not ended: its bounds may have.
            Kind::Fences(wait) => wait.waiter.cancel(),
            Kind::Legacy(_) if self.is_over => {}
            Kind::Legacy(wait) => wait.undo(),
            // The drop of the callback ends it.
            Kind::SyncFile(_) => {}
        }
    }
}
