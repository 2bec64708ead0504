// SPDX-License-Identifier: GPL-2.0

//! Telling processes about memory (MEM-38, MEM-39): a stream of records behind a descriptor. It is
//! readable while there is something that was not told.
//!
//! An adapter has a list of its streams. When a budget changes or room is lacking, the module's
//! worker looks at each of them; who causes that only queues the work. A stream whose next record
//! is due later has delayed work of its own. What a stream knows of its process and adapter ends
//! with its file, with the devices of the process there, or with the adapter.
//!
//! LOCK: `Notices::state`, `Notice::source` and `Notice::news` are leaves. Nobody is woken and
//! nothing is dropped under them.

use crate::{
    dxgk::{
        stats::next_id,
        sync::pending_waits::{
            Pending,
            PendingWaits, //
        }, //
    },
    error::DxgResult,
    logic::notice_rules::{
        Kind,
        News,
        Sight, //
    },
    sys::{
        alloc::{
            pin_arc,
            tree_node, //
        },
        time::now_ns,
        wait_queue::WaitQueue,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_spinlock,
    new_work,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        DelayedWork,
        HasDelayedWork,
        Work,
        WorkItem, //
    }, //
};

/// The ids of the delayed work of a stream: for what is held back, and while memory is short.
const HELD_BACK: u64 = 1;
const PERIODIC: u64 = 2;

/// The streams of an adapter.
#[pin_data]
pub(crate) struct Notices {
    #[pin]
    state: SpinLock<RBTree<u64, Arc<Notice>>>,
    /// When somebody lacked room last; 0 is never.
    pressed: Atomic<u64>,
    #[pin]
    work: Work<Notices>,
}

impl_has_work! {
    impl HasWork<Self> for Notices { self.work }
}

impl Notices {
    /// None.
    pub(super) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                state <- new_spinlock!(RBTree::new(), "Notices::state"),
                pressed: Atomic::new(0),
                work <- new_work!("Notices::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Budgets may have changed, or devices or the adapter have gone.
    ///
    /// Context: any where work may be queued.
    pub(in crate::dxgk) fn changed(self: &Arc<Self>) {
        if self.state.lock().is_empty() {
            return;
        }
        if let Some(worker) = work::worker() {
            // It fails only if it is queued already.
            let _queued = worker.enqueue::<_, 0>(self.clone()).is_ok();
        }
    }

    /// Somebody lacks room.
    pub(in crate::dxgk) fn pressed(self: &Arc<Self>) {
        self.pressed.store(now_ns().max(1), Relaxed);
        self.changed();
    }
}

impl WorkItem for Notices {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut seen = 0;

        loop {
            let next = {
                let state = this.state.lock();
                let next = state.cursor_lower_bound(&seen);

                next.map(|cursor| cursor.current().1.clone())
            };
            let Some(notice) = next else {
                return;
            };

            seen = notice.id.saturating_add(1);
            notice.look();
            work::breathe();
        }
    }
}

/// What a stream is about: a process on an adapter.
pub(crate) trait NoticeSource: Send + Sync {
    /// Bytes above the budgets, and the budget of the memory that the GPU uses first. `None` if the
    /// process has no device there any more, or the adapter is gone.
    ///
    /// Context: may sleep, no locks held.
    fn usage(&self) -> Option<(u64, u64)>;

    /// Tells the tracer that the process is told of that.
    fn trace(&self, kind: Kind, usage: (u64, u64));
}

/// A stream.
#[pin_data]
pub(crate) struct Notice {
    /// Never used for another one.
    id: u64,
    notices: Arc<Notices>,
    /// `None` after the end.
    #[pin]
    source: SpinLock<Option<Arc<dyn NoticeSource>>>,
    #[pin]
    news: SpinLock<News>,
    /// How often there may have been news, modulo 2^32.
    told: Atomic<u32>,
    /// Those who poll, and those who sleep in a read.
    #[pin]
    pub(crate) queue: WaitQueue,
    #[pin]
    held_back: DelayedWork<Notice, HELD_BACK>,
    #[pin]
    periodic: DelayedWork<Notice, PERIODIC>,
    /// It counts as a wait for one value.
    _pending: Pending,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for Notice { self.held_back }
    impl HasDelayedWork<Self, 2> for Notice { self.periodic }
}

/// What there is to read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextNotice {
    /// What was not told yet.
    Record(u64),
    /// Nothing yet. What comes next wakes those who wait.
    Nothing,
    /// Nothing, and never again.
    Ended,
}

impl Notice {
    /// A stream for the process on the adapter, where it has a device.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        waits: &Arc<PendingWaits>,
        notices: Arc<Notices>,
        source: Arc<dyn NoticeSource>,
        kind: Kind,
    ) -> DxgResult<Arc<Self>> {
        let pending = waits.reserve(1)?;
        let budget = source.usage().map_or(0, |(_, budget)| budget);
        let notice = pin_arc(
            pin_init!(Self {
                id: next_id(),
                notices,
                source <- new_spinlock!(Some(source), "Notice::source"),
                news <- new_spinlock!(News::new(kind, budget), "Notice::news"),
                told: Atomic::new(0),
                queue <- WaitQueue::new(),
                held_back <- new_delayed_work!("Notice::held_back"),
                periodic <- new_delayed_work!("Notice::periodic"),
                _pending: pending,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let node = tree_node(notice.id, notice.clone())?;
        let _nothing = notice.notices.state.lock().insert(node);

        // What was so before is told, too.
        notice.look();
        Ok(notice)
    }

    /// What a read would return.
    pub(crate) fn peek(&self) -> NextNotice {
        let record = self.news.lock().peek(now_ns());

        self.next(record)
    }

    /// Reads.
    pub(crate) fn take(&self) -> NextNotice {
        let record = self.news.lock().take(now_ns());

        self.next(record)
    }

    fn next(&self, record: Option<u64>) -> NextNotice {
        match record {
            Some(record) => NextNotice::Record(record),
            None if self.source.lock().is_some() => NextNotice::Nothing,
            None => NextNotice::Ended,
        }
    }

    /// What was read did not reach the reader. It can be read again.
    pub(crate) fn untake(&self) {
        self.news.lock().put_back();
        self.tell();
    }

    /// How often there may have been news, for [`Notice::sleep`].
    pub(crate) fn told(&self) -> u32 {
        self.told.load(Acquire)
    }

    /// Sleeps until there may be news that `told` does not include. False if a signal came.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn sleep(&self, told: u32) -> bool {
        self.queue.wait_while_equal(&self.told, told)
    }

    fn tell(&self) {
        self.told.fetch_add(1, Full);
        self.queue.wake();
    }

    /// Things may have changed.
    ///
    /// Context: may sleep, no locks held.
    fn look(self: &Arc<Self>) {
        let Some(source) = self.source.lock().clone() else {
            return;
        };
        let Some((over, budget)) = source.usage() else {
            let ended = self.source.lock().take();

            drop((ended, source));
            self.tell();
            return;
        };

        let pressed = self.notices.pressed.load(Relaxed);
        let sight = Sight {
            now: now_ns(),
            over,
            budget,
            pressed: (pressed != 0).then_some(pressed),
        };
        let (kind, is_news, held_back, period) = {
            let mut news = self.news.lock();

            news.look(&sight);
            (
                news.kind(),
                news.peek(sight.now).is_some(),
                news.held_back(sight.now),
                news.next_period(sight.now),
            )
        };

        if is_news {
            source.trace(kind, (over, budget));
            self.tell();
        }
        drop(source);
        if let Some(after) = held_back {
            self.look_later::<HELD_BACK>(after);
        }
        if let Some(after) = period {
            self.look_later::<PERIODIC>(after);
        }
    }

    /// Looks again after so many nanoseconds, unless that is queued already.
    fn look_later<const ID: u64>(self: &Arc<Self>, after: u64)
    where
        Self: WorkItem<ID, Pointer = Arc<Self>> + HasDelayedWork<Self, ID>,
    {
        // The end takes it back under the same lock.
        let source = self.source.lock();

        if source.is_none() {
            return;
        }
        if let Some(worker) = work::worker() {
            let ms = u32::try_from(after / 1_000_000).unwrap_or(u32::MAX);
            // It fails only if it is queued already.
            let _queued = worker
                .enqueue_delayed::<_, ID>(self.clone(), msecs_to_jiffies(ms.saturating_add(1)))
                .is_ok();
        }
    }

    /// The descriptor is gone.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn end(&self) {
        let ended = self.source.lock().take();
        let node = self.notices.state.lock().remove_node(&self.id);

        drop(ended);
        if let Some((_, this)) = node.map(|node| node.to_key_value()) {
            work::cancel::<_, HELD_BACK>(&this);
            work::cancel::<_, PERIODIC>(&this);
        }
    }
}

impl WorkItem<HELD_BACK> for Notice {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.look();
    }
}

impl WorkItem<PERIODIC> for Notice {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.look();
    }
}
