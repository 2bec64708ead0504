// SPDX-License-Identifier: GPL-2.0

//! A signal of a fence that waits for an eventfd (FEN-175).
//!
//! It ends once: it signals the fence because the counter of the eventfd is not 0, or it is given
//! up because its process, the eventfd or the fence has ended. The wake-up of the eventfd comes
//! with interrupts off and only queues the work of the module's worker. So nothing is recursive:
//! an eventfd that the signal itself signals finds work that is queued or running.
//!
//! It keeps the memory of the fence through the fence's weak target, until the fence retires. It
//! does not keep the fence alive, and waits of the fence do not count it among those who could
//! signal (FEN-28).
//!
//! LOCK: `links` is a leaf. The watch on the eventfd is dropped with no lock held.

use super::pending_waits::{
    ListedWait,
    Pending,
    PendingWaits, //
};
use crate::dxgk::{
    info::weak::{
        next_number,
        Event,
        EventListener,
        WeakTarget, //
    },
    object::Object,
    stats::{
        next_id,
        Counted,
        NOTICES, //
    }, //
};
use crate::{
    error::DxgResult,
    logic::waiters::BATCHES,
    sys::{
        alloc::pin_arc,
        file::event_watch::{
            EventFile,
            EventWatch,
            EventWatcher,
            Happened, //
        },
        task::stamp::Stamp,
        work, //
    }, //
};
use kernel::{
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// [`EventSignal::happened`]: nothing.
const NOTHING: u32 = 0;
/// [`EventSignal::happened`]: the counter has gone up.
const SIGNALLED: u32 = 1;
/// [`EventSignal::happened`]: the last descriptor is gone.
const CLOSED: u32 = 2;

/// What is dropped when it has ended.
struct Links {
    watch: Option<EventWatch<EventSignal>>,
    pending: Option<Pending>,
    has_ended: bool,
}

/// A signal that waits for an eventfd.
#[pin_data]
pub(crate) struct EventSignal {
    /// Its place among the waits of its process.
    id: u64,
    /// Its place among the watches of the fence.
    number: u64,
    weak_target: Counted<Arc<WeakTarget<Object>>, NOTICES>,
    value: u64,
    allow_rewind: bool,
    /// Who has begun it.
    begun: Stamp,
    /// What has happened to the eventfd first; [`NOTHING`] yet. One that is signalled after it was
    /// closed is signalled for others.
    happened: Atomic<u32>,
    /// Whether somebody ends it.
    is_taken: Atomic<bool>,
    #[pin]
    links: SpinLock<Links>,
    #[pin]
    work: Work<EventSignal>,
}

impl_has_work! {
    impl HasWork<Self> for EventSignal { self.work }
}

impl EventSignal {
    /// Signals `fence`, which is a fence, to `value` when the counter of the eventfd is not 0:
    /// before the return if it is now.
    ///
    /// Counts as a wait of the process of `waits` until it ends. INVALID_PARAMETER if the fence or
    /// the process has ended. Context: a system call, no locks held.
    pub(crate) fn begin(
        waits: &Arc<PendingWaits>,
        fence: &Object,
        value: u64,
        allow_rewind: bool,
        event: &EventFile,
    ) -> DxgResult {
        let pending = waits.reserve(1)?;
        let weak_target = Counted::new(fence.weak_target()?);
        let this = pin_arc(
            pin_init!(Self {
                id: next_id(),
                number: next_number(),
                weak_target,
                value,
                allow_rewind,
                begun: Stamp::of_caller(),
                happened: Atomic::new(NOTHING),
                is_taken: Atomic::new(false),
                links <- new_spinlock!(
                    Links {
                        watch: None,
                        pending: Some(pending),
                        has_ended: false,
                    },
                    "EventSignal::links"
                ),
                work <- new_work!("EventSignal::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        this.register(waits, event).inspect_err(|_| this.give_up())
    }

    fn register(self: &Arc<Self>, waits: &PendingWaits, event: &EventFile) -> DxgResult {
        waits.list(self.id, self.clone())?;
        self.weak_target.add(self.number, self.clone())?;

        let (watch, is_signalled) = EventWatch::new(event, self)?;
        let late = {
            let mut links = self.links.lock();

            if links.has_ended {
                Some(watch)
            } else {
                links.watch = Some(watch);
                None
            }
        };

        drop(late);
        if is_signalled {
            self.fire();
        }
        Ok(())
    }

    /// The counter is not 0: signals the fence, unless this has ended.
    ///
    /// Context: may sleep, no locks held.
    fn fire(self: &Arc<Self>) {
        if self.is_taken.xchg(true, Full) {
            return;
        }
        // It may be retiring: then nobody sees the value.
        if let Some(Object::Fence(fence)) = self.weak_target.object() {
            let by = self.begun.again();
            let result =
                fence.signal_within(by, None, self.value, self.allow_rewind, &mut { BATCHES });

            if result.is_err() {
                self.count_refused();
            }
        }
        self.end();
    }

    /// Ends it without a signal, unless it has ended.
    ///
    /// Context: may sleep, no locks held.
    fn give_up(&self) {
        if !self.is_taken.xchg(true, Full) {
            self.end();
        }
    }

    fn count_refused(&self) {
        if let Some(pending) = &self.links.lock().pending {
            pending.waits.count_refused_rewind();
        }
    }

    /// Takes it out of everything. Called once.
    fn end(&self) {
        let (watch, pending) = {
            let mut links = self.links.lock();

            links.has_ended = true;
            (links.watch.take(), links.pending.take())
        };

        drop(watch);
        self.weak_target.remove(self.number);
        if let Some(pending) = pending {
            pending.waits.forget(self.id);
        }
    }

    /// Ends it, from where little may be done.
    fn end_later(self: Arc<Self>) {
        if let Some(worker) = work::worker() {
            // It fails only if it is queued already and has not started.
            let _queued = worker.enqueue::<_, 0>(self).is_ok();
        }
    }
}

impl WorkItem for EventSignal {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.happened.load(Acquire) == SIGNALLED {
            this.fire();
        } else {
            this.give_up();
        }
    }
}

impl EventWatcher for EventSignal {
    fn happened(this: ArcBorrow<'_, Self>, what: Happened) {
        if this.is_taken.load(Acquire) {
            return;
        }

        let what = match what {
            Happened::Signalled => SIGNALLED,
            Happened::Closed => CLOSED,
        };

        // Only the first one counts.
        let _first = this.happened.cmpxchg(NOTHING, what, Full).is_ok();

        Arc::from(this).end_later();
    }
}

/// The end of its process.
impl ListedWait for EventSignal {
    fn cancel(&self) {
        self.give_up();
    }
}

/// The end of the fence.
impl EventListener for EventSignal {
    fn tell(&self, event: Event) {
        if matches!(event, Event::Destroy) {
            self.give_up();
        }
    }
}
