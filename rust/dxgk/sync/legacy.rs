// SPDX-License-Identifier: GPL-2.0

//! The synchronisation objects that the CPU neither waits on nor signals: mutex, semaphore, legacy
//! fence and CPU notification. Queued work of a context uses them (fences.md section 2.6).
//!
//! LOCK: `state` is a leaf. Waits are told with no lock held.

use super::{
    cpu_event::CpuEvent,
    fence::{
        FenceWaiter,
        NewNode, //
    },
    queue::Queue, //
};
use crate::dxgk::{
    at_once::AT_ONCE,
    object::Header, //
};
use crate::{
    logic::{
        legacy_sync::{
            Supply,
            SupplyWaiters, //
        },
        queued_sync_rules::Kind,
        sleepers::Woken,
        waiters::{
            EnqueueResult,
            WaitKey,
            Waiters, //
        }, //
    },
    platform::{
        load_acquire,
        Word64, //
    },
    sys::{
        alloc::pin_arc,
        file::eventfd::EventFd,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_spinlock,
    new_work,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        Arc,
        SpinLock, //
    },
    workqueue::Work, //
};

/// The initial state of an object.
pub(crate) enum LegacyState {
    /// A mutex: whether it starts owned.
    Mutex { owned: bool },
    /// A semaphore; `initial` is at most `max`.
    Semaphore { initial: u32, max: u32 },
    /// A fence with one value.
    Fence { value: u64 },
    /// The event that a queued signal fires.
    CpuNotification { event: EventFd },
    /// The event that the KMD fires.
    CpuEvent(Pin<KBox<CpuEvent>>),
}

/// The waits of an object, in order.
type Waits = Queue<dyn FenceWaiter>;

/// An object and its waits.
enum State {
    Supply(SupplyWaiters<Waits>),
    Fence {
        value: Word64,
        waiters: Waiters<Waits>,
    },
    CpuNotification,
}

/// A synchronisation object for queued work only.
#[pin_data]
pub(crate) struct LegacySync {
    /// What it has in common with other objects.
    #[pin]
    pub(crate) header: Header,
    /// What it is.
    pub(crate) kind: Kind,
    #[pin]
    state: SpinLock<State>,
    /// Of a CPU notification that a queued signal fires.
    event: Option<EventFd>,
    /// Of one that the KMD fires.
    cpu_event: Option<Pin<KBox<CpuEvent>>>,
    /// See [`super::retire`].
    #[pin]
    pub(in crate::dxgk) retirement: Work<LegacySync>,
}

/// Tells those whose wait is over.
fn tell(due: &Waits) {
    for (_, waiter) in due.iter() {
        waiter.satisfied();
    }
}

impl LegacySync {
    /// A new object.
    pub(crate) fn new(
        header: impl PinInit<Header>,
        state: LegacyState,
    ) -> Result<Arc<Self>, AllocError> {
        let supply = |supply| State::Supply(SupplyWaiters::new(supply, Queue::new()));
        let mut cpu_event = None;
        let (kind, state, event) = match state {
            LegacyState::Mutex { owned } => (Kind::Mutex, supply(Supply::Mutex { owned }), None),
            LegacyState::Semaphore { initial, max } => {
                let count = initial;

                (
                    Kind::Semaphore,
                    supply(Supply::Semaphore { count, max }),
                    None,
                )
            }
            LegacyState::Fence { value } => (
                Kind::Fence,
                State::Fence {
                    value: Word64::new(value),
                    waiters: Waiters::new(Queue::new()),
                },
                None,
            ),
            LegacyState::CpuNotification { event } => {
                (Kind::CpuNotification, State::CpuNotification, Some(event))
            }
            LegacyState::CpuEvent(event) => {
                cpu_event = Some(event);
                (Kind::CpuEvent, State::CpuNotification, None)
            }
        };

        pin_arc(
            pin_init!(Self {
                header <- header,
                kind,
                state <- new_spinlock!(state, "LegacySync::state"),
                event,
                cpu_event,
                retirement <- new_work!("LegacySync::retirement"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Queues a wait, unless it is satisfied now. Only a fence looks at `value`. A mutex or a place
    /// of a semaphore belongs to a wait that is satisfied.
    pub(in crate::dxgk) fn enqueue(&self, value: u64, new_node: NewNode) -> EnqueueResult<NewNode> {
        match &mut *self.state.lock() {
            State::Supply(waiters) => waiters.enqueue(new_node),
            State::Fence {
                value: current,
                waiters,
            } => waiters.enqueue(current, value, new_node),
            // No wait names it.
            State::CpuNotification => EnqueueResult::Orphaned(new_node),
        }
    }

    /// Takes a wait out, if it is still queued; true if it was.
    pub(in crate::dxgk) fn cancel(&self, key: &WaitKey) -> bool {
        let node = match &mut *self.state.lock() {
            State::Supply(waiters) => waiters.cancel(key),
            State::Fence { waiters, .. } => waiters.cancel(key),
            State::CpuNotification => None,
        };

        node.is_some()
    }

    /// Signals it, as a queue does when it is its turn. Only a fence looks at `value`, which may be
    /// lower than before (FEN-42).
    ///
    /// Context: may sleep after the fact, no locks held. Allocates nothing.
    pub(in crate::dxgk) fn signal(&self, value: u64) {
        if let Some(event) = &self.event {
            return event.signal();
        }

        let mut rest = None;
        let mut is_first = true;

        loop {
            let mut due = Queue::new();
            let has_more = match &mut *self.state.lock() {
                State::Supply(waiters) => {
                    if is_first {
                        waiters.signal();
                    }
                    waiters.release(&mut due)
                }
                State::Fence {
                    value: current,
                    waiters,
                } => {
                    if is_first {
                        // Nothing is refused: it may go down.
                        rest = waiters.signal(current, value, true).unwrap_or_default();
                    }
                    rest = rest.and_then(|sweep| waiters.sweep(sweep, &mut due, &mut Woken::new()));
                    rest.is_some()
                }
                State::CpuNotification => false,
            };

            is_first = false;
            tell(&due);
            if !has_more {
                return;
            }
        }
    }

    /// What it is if the KMD fires it.
    pub(crate) fn cpu_event(&self) -> Option<&CpuEvent> {
        self.cpu_event.as_deref()
    }

    /// Undoes what a wait has taken that is discarded after it was satisfied.
    ///
    /// Context: as [`LegacySync::signal`].
    pub(in crate::dxgk) fn give_back(&self) {
        if matches!(self.kind, Kind::Mutex | Kind::Semaphore) {
            self.signal(0);
        }
    }

    /// Whether there are few enough waits to end them at once.
    pub(in crate::dxgk) fn has_few_waits(&self) -> bool {
        let waiting = match &*self.state.lock() {
            State::Supply(waiters) => waiters.queued(),
            State::Fence { waiters, .. } => waiters.queued(),
            State::CpuNotification => 0,
        };

        // CAST: 32 bits fit a usize.
        waiting as usize <= AT_ONCE
    }

    /// Orphans all waits: nobody can signal any more (FEN-28).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn orphan(&self) {
        let orphans = match &mut *self.state.lock() {
            State::Supply(waiters) => waiters.orphan(Queue::new()),
            // The end of a queued wait is the same whether it was satisfied or orphaned.
            State::Fence { value, waiters } => {
                waiters.orphan(value, Queue::new(), &mut Woken::new()).map
            }
            State::CpuNotification => return,
        };

        for (number, (_, waiter)) in orphans.iter().enumerate() {
            if number % AT_ONCE == AT_ONCE - 1 {
                work::breathe();
            }
            waiter.orphaned();
        }
    }

    /// Prints the state into the fdinfo of an NT handle.
    pub(crate) fn show(&self, m: &SeqFile) {
        let (supply, value) = match &*self.state.lock() {
            State::Supply(waiters) => (Some(waiters.supply()), 0),
            State::Fence { value, .. } => (None, load_acquire(value)),
            State::CpuNotification => return,
        };

        match supply {
            Some(Supply::Mutex { owned }) => seq_print!(m, "dxg-owned:\t{}\n", u32::from(owned)),
            Some(Supply::Semaphore { count, max }) => {
                seq_print!(m, "dxg-count:\t{}\n", count);
                seq_print!(m, "dxg-max-count:\t{}\n", max);
            }
            None => seq_print!(m, "dxg-value:\t{}\n", value),
        }
    }
}
