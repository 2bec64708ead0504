// SPDX-License-Identifier: GPL-2.0

//! A kernel-mode queue: a context of packets, or a HW queue.
//!
//! One thread at a time makes it go on ([`Queue::advance`]): it takes one step under the lock and
//! has its effect without it. Whoever comes meanwhile leaves it to that thread. A thread does a
//! bounded number of steps and leaves the rest to the adapter's worker, which serves the queues
//! that have something to do in turn. Nothing is recursive: the end of a wait only queues work.
//!
//! ```text
//! Open --close--> Closing --nothing left--> Ended
//!   \                |                       ^
//!    +----stop-------+----stop--> Stopped ---+
//! ```
//!
//! A closing queue has no handle any more. It goes on until everything is done, until a wait is not
//! satisfied when it is its turn, or until its commands have made no progress for [`PATIENCE_MS`]
//! (FEN-46). Then the rest is discarded. A stopped queue discards everything: its device is in
//! error, its adapter is removed, or patience has run out. The end destroys what the KMD has, which
//! stops commands that still run.
//!
//! LOCK: `state` is a leaf; items are dropped without it. `kmd` is held while the KMD takes a
//! submission, and while its priority is set.

use super::{
    callbacks::{
        Callbacks,
        Kick,
        Reported,
        Told, //
    },
    item::{
        Commands,
        Item,
        What, //
    },
    last_faults::LastFault,
    list::{
        Key,
        ListedQueue, //
    },
    show::{
        self,
        Snapshot, //
    },
    signal::QueuedSignal,
    wait::{
        Begin,
        Blocked, //
    }, //
};
use crate::dxgk::{
    adapter::Adapter,
    device::Device,
    handle::open_sync_object::OpenSyncObject,
    quota::account::{
        Charge,
        Limit, //
    },
    stats::{
        self,
        RETIRING, //
    }, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        object,
        queue::{
            Fault,
            QueueCallbacks,
            Submission, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        submission_order::SubmissionOrder,
        submit_rules, //
    },
    sys::{
        alloc::pin_arc,
        trace,
        work, //
    }, //
};
use kernel::{
    fmt,
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_mutex,
    new_spinlock,
    new_work,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        Mutex,
        SpinLock, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

/// Steps of one thread before others have their turn.
const STEPS: u32 = 64;
/// How long the commands of a closing queue may take without progress.
const PATIENCE_MS: u32 = 2000;
/// How many times they may take so long.
const ROUNDS: u32 = 5;
/// The number of the work that runs then.
const PATIENCE: u64 = 1;

/// What the KMD has of a queue.
pub(in crate::dxgk) enum KmdQueue {
    /// A context of packets.
    Context(Arc<object::Context>),
    /// A HW queue, and its progress fence, to which the KMD stores until it has destroyed the
    /// queue.
    HwQueue {
        kmd: object::HwQueue,
        _progress: OpenSyncObject,
    },
}

/// Where a queue is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Open,
    Closing,
    Stopped,
    Ended,
}

/// An item in the list.
type Node = RBTreeNode<u64, Item>;
/// Room for an item in the list.
pub(super) type Place = RBTreeNodeReservation<u64, Item>;

struct State {
    /// By the order in which they came: first those that are in flight, then those that have not
    /// begun.
    items: RBTree<u64, Item>,
    /// The number of the next item.
    next: u64,
    /// The number of the first item that has not begun.
    begin: u64,
    /// How many items are in flight.
    in_flight: u64,
    order: SubmissionOrder,
    life: Life,
    /// A thread makes it go on.
    is_busy: bool,
    /// That thread has to look again.
    again: bool,
    /// The last value of the progress fence that was asked for.
    progress: u64,
    /// It waits, for the one at its head.
    blocked: Option<Blocked>,
    /// Why it has stopped, if it has faulted.
    fault: Option<Fault>,
    /// It is counted among what is retiring.
    is_retiring: bool,
    /// How far it was when the patience with a closing queue was looked at, and how often that was.
    seen: (u64, u32),
}

/// What is to be done next.
enum Step {
    /// Nothing.
    Idle,
    /// Drop this: it is over.
    Drop(Node),
    Submit(Submission),
    Signal(Node),
    /// The wait with this number begins.
    Begin(u64, Begin),
    /// Drop these: they are discarded.
    Discard(RBTree<u64, Item>),
    End,
}

impl State {
    /// Takes what has not begun out.
    fn take_waiting(&mut self) -> RBTree<u64, Item> {
        let mut kept = RBTree::new();

        // As many as may be in flight, which are few.
        while let Some(cursor) = self.items.cursor_front_mut() {
            if *cursor.current().0 >= self.begin {
                break;
            }
            let _nothing = kept.insert(cursor.remove_current().1);
        }
        self.blocked = None;
        self.begin = self.next;
        core::mem::replace(&mut self.items, kept)
    }

    /// The item that is next, if there is one.
    fn head(&mut self) -> Option<&mut Item> {
        // What has not begun is without gaps.
        self.items.get_mut(&self.begin)
    }

    /// Takes the head out.
    fn take_head(&mut self) -> Option<Node> {
        let node = self.items.remove_node(&self.begin);

        // OVERFLOW: 2^64 items take longer than any machine runs.
        self.begin = self.begin.wrapping_add(1);
        node
    }

    /// Decides what is to be done next, now that the KMD has told that everything up to `completed`
    /// has completed.
    fn next_step(&mut self, completed: u64) -> Step {
        match self.life {
            Life::Ended => return Step::Idle,
            Life::Stopped => return Step::End,
            Life::Open | Life::Closing => {}
        }
        self.order.complete(completed);
        if self.in_flight > self.order.in_flight() {
            if let Some(cursor) = self.items.cursor_front_mut() {
                self.in_flight -= 1;
                return Step::Drop(cursor.remove_current().1);
            }
        }

        let order = self.order;
        let is_closing = self.life == Life::Closing;
        let Some(head) = self.head() else {
            return if is_closing && self.in_flight == 0 {
                Step::End
            } else {
                Step::Idle
            };
        };

        if !order.may_begin(head.what.kind()) {
            // A closing queue does not wait for what is not there now (FEN-46).
            return match &head.what {
                What::Wait(wait) if is_closing && !wait.might_pass() => {
                    Step::Discard(self.take_waiting())
                }
                _ => Step::Idle,
            };
        }
        match &mut head.what {
            What::Commands(queued) => {
                let Commands {
                    address: commands,
                    length,
                    progress,
                } = queued.commands;
                let number = self.order.submit();

                self.in_flight += 1;
                // OVERFLOW: as in `take_head`.
                self.begin = self.begin.wrapping_add(1);
                Step::Submit(Submission {
                    number,
                    commands,
                    length,
                    progress,
                })
            }
            What::Signal(_) => self.take_head().map_or(Step::Idle, Step::Signal),
            What::Wait(wait) => {
                if wait.has_ended() {
                    wait.pass();
                    self.blocked = None;
                    return self.take_head().map_or(Step::Idle, Step::Drop);
                }
                if let Some(begin) = wait.begin() {
                    return Step::Begin(self.begin, begin);
                }
                if is_closing {
                    return Step::Discard(self.take_waiting());
                }
                self.blocked = Some(wait.blocked());
                Step::Idle
            }
        }
    }
}

/// A kernel-mode queue.
#[pin_data]
pub(crate) struct Queue {
    /// That of its context or HW queue.
    pub(crate) id: u64,
    /// Where its work runs.
    pub(crate) node: u32,
    /// Whether it is a HW queue.
    pub(crate) is_hw: bool,
    /// The priority of its context, as the client has set it.
    priority: Arc<Atomic<i32>>,
    /// Lives at least as long.
    pub(crate) device: Arc<Device>,
    /// What the KMD has of it, until it ends.
    #[pin]
    kmd: Mutex<Option<KmdQueue>>,
    #[pin]
    state: SpinLock<State>,
    /// What the KMD has told.
    reported: Reported,
    #[pin]
    work: Work<Queue>,
    /// Ends it when it takes too long to close.
    #[pin]
    patience: DelayedWork<Queue, PATIENCE>,
    _charge: Charge,
}

impl_has_work! {
    impl HasWork<Self> for Queue { self.work }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for Queue { self.patience }
}

impl WorkItem for Queue {
    type Pointer = Arc<Self>;

    /// The adapter's worker: the KMD has told something, a wait has ended, or there was too much to
    /// do for one thread.
    fn run(this: Arc<Self>) {
        if let Some(fault) = this.reported.take_fault() {
            trace::fault(this.id, fault.packet);
            this.state.lock().fault = Some(fault);
            this.device.adapter.last_faults.set(
                this.node,
                LastFault {
                    queue: this.id,
                    pid: this.device.owner.mappings().identity.number(),
                    fault,
                },
            );
            this.device.faulted(&fault);
        }
        this.advance();
        this.look_at_fences();
    }
}

impl WorkItem<PATIENCE> for Queue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if let Some(discarded) = this.lose_patience() {
            this.discard(discarded);
            this.as_arc_borrow().kick();
        }
    }
}

/// What a queue is made of.
pub(in crate::dxgk) struct Description {
    /// The id of its context or HW queue.
    pub(in crate::dxgk) id: u64,
    /// Where its work runs.
    pub(in crate::dxgk) node: u32,
    /// Whether it is a HW queue.
    pub(in crate::dxgk) is_hw: bool,
    /// The priority of its context, as the client has set it.
    pub(in crate::dxgk) priority: Arc<Atomic<i32>>,
}

impl Queue {
    /// A new queue of `device`, which `make` makes in the KMD with these callbacks.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        device: &Arc<Device>,
        description: Description,
        make: impl FnOnce(&Arc<dyn QueueCallbacks>) -> DxgResult<KmdQueue>,
    ) -> DxgResult<Arc<Self>> {
        let Description {
            id,
            node,
            is_hw,
            priority,
        } = description;
        let charge = device.owner.account().charge(Limit::Queues, 1)?;
        let most = device.adapter.most_in_flight(node)?;
        let queue = pin_arc(
            pin_init!(Self {
                id,
                node,
                is_hw,
                priority,
                device: device.clone(),
                kmd <- new_mutex!(None, "Queue::kmd"),
                state <- new_spinlock!(
                    State {
                        items: RBTree::new(),
                        next: 0,
                        begin: 0,
                        in_flight: 0,
                        order: SubmissionOrder::new(most),
                        life: Life::Open,
                        is_busy: false,
                        again: false,
                        progress: 0,
                        blocked: None,
                        fault: None,
                        is_retiring: false,
                        seen: (0, 0),
                    },
                    "Queue::state"
                ),
                reported: Reported::new(),
                work <- new_work!("Queue::work"),
                patience <- new_delayed_work!("Queue::patience"),
                _charge: charge,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let callbacks = Callbacks::of(&queue).map_err(|_| Status::NO_MEMORY)?;
        let kmd = make(&callbacks)?;

        // The KMD has the callbacks, and these the queue: from here on its end breaks the circle.
        *queue.kmd.lock() = Some(kmd);
        if let Err(error) = queue.publish() {
            queue.leave();
            return Err(error);
        }
        Ok(queue)
    }

    /// Lets the end of the device and of the adapter find it.
    fn publish(self: &Arc<Self>) -> DxgResult {
        self.adapter().queues.add(self.key(), self.clone())?;
        // Either of them has seen the queue, or this fails.
        self.device.check()
    }

    /// Its place among the queues of its adapter.
    fn key(&self) -> Key {
        (self.device.id(), self.id)
    }

    /// That of its device.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.device.adapter
    }

    /// Queues an item, and makes the queue go on. DEVICE_REMOVED if its device is in error.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn push(self: &Arc<Self>, item: Item, place: Place) -> DxgResult {
        let mut item = Some(item);
        let mut place = Some(place);
        let refusal = self.enqueue(&mut item, &mut place).err();

        drop((item, place));
        match refusal {
            Some(status) => Err(status.into()),
            None => {
                trace::queue(self.id);
                self.advance();
                Ok(())
            }
        }
    }

    /// Takes the item, unless it is refused.
    fn enqueue(
        &self,
        item: &mut Option<Item>,
        place: &mut Option<Place>,
    ) -> core::result::Result<(), Status> {
        let mut state = self.state.lock();

        match state.life {
            Life::Open => {}
            // Its handle was destroyed meanwhile.
            Life::Closing => return Err(Status::INVALID_PARAMETER),
            Life::Stopped | Life::Ended => return Err(Status::DEVICE_REMOVED),
        }
        if let Some(Item {
            what: What::Commands(queued),
            ..
        }) = item
        {
            if let Some(next) = queued.commands.progress {
                if !submit_rules::may_progress(state.progress, next) {
                    return Err(Status::INVALID_PARAMETER);
                }
                state.progress = next;
            }
        }
        if let (Some(item), Some(place)) = (item.take(), place.take()) {
            let number = state.next;
            let _nothing = state.items.insert(place.into_node(number, item));

            // OVERFLOW: as in `take_head`.
            state.next = number.wrapping_add(1);
        }
        Ok(())
    }

    /// Makes it go on as far as it can, or leaves the rest to others.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn advance(self: &Arc<Self>) {
        {
            let mut state = self.state.lock();

            if state.is_busy {
                state.again = true;
                return;
            }
            state.is_busy = true;
        }
        for _ in 0..STEPS {
            let step = {
                let mut state = self.state.lock();
                let was_blocked = state.blocked.is_some();
                let before = state.order.completed();
                let step = state.next_step(self.reported.completed());
                let completed = state.order.completed();

                if completed != before {
                    trace::complete(self.id, completed);
                }

                match state.blocked {
                    Some(blocked) if !was_blocked => {
                        trace::block(self.id, blocked.object, blocked.value);
                    }
                    None if was_blocked => trace::unblock(self.id),
                    _ => {}
                }
                if matches!(step, Step::Idle) && !core::mem::take(&mut state.again) {
                    state.is_busy = false;
                    return;
                }
                step
            };

            self.run_step(step);
        }
        self.state.lock().is_busy = false;
        self.as_arc_borrow().kick();
    }

    /// The effect of a step.
    fn run_step(self: &Arc<Self>, step: Step) {
        match step {
            Step::Idle => {}
            Step::Drop(node) => drop(node),
            Step::Submit(submission) => self.submit(&submission),
            Step::Signal(node) => {
                let (_, item) = node.to_key_value();

                if let What::Signal(signal) = &item.what {
                    QueuedSignal::reached(signal);
                }
            }
            Step::Begin(number, begin) => self.begin(number, begin),
            Step::Discard(items) => self.discard(items),
            Step::End => self.end(),
        }
    }

    /// Hands commands to the KMD.
    fn submit(self: &Arc<Self>, submission: &Submission) {
        trace::run(self.id, submission.number);

        let submitted = {
            let kmd = self.kmd.lock();

            kmd.as_ref().map(|kmd| {
                Dispatch::below(&mut Passive::here(), |class| match kmd {
                    KmdQueue::Context(context) => context.submit(class, submission),
                    KmdQueue::HwQueue { kmd, .. } => kmd.submit(class, submission),
                })
            })
        };

        // The adapter is removed.
        if !matches!(submitted, Some(Ok(()))) {
            let discarded = self.state.lock().stop();

            self.discard(discarded);
        }
    }

    /// Begins the wait with this number.
    fn begin(&self, number: u64, begin: Begin) {
        let Some(begun) = begin.run() else {
            return;
        };
        let mut state = self.state.lock();

        // Only if it was not discarded meanwhile.
        match state.items.get_mut(&number).map(|item| &mut item.what) {
            Some(What::Wait(wait)) => wait.begun(&begun),
            _ => {
                drop(state);
                begun.undo();
            }
        }
    }

    /// Drops items that are not done any more.
    fn discard(&self, mut items: RBTree<u64, Item>) {
        let mut dropped: u32 = 0;

        while let Some(cursor) = items.cursor_front_mut() {
            drop(cursor.remove_current().1);
            // OVERFLOW: it counts modulo 2^32.
            dropped = dropped.wrapping_add(1);
            if dropped % STEPS == 0 {
                work::breathe();
            }
        }
    }

    /// The end: the KMD destroys what it has, and nothing is left.
    fn end(self: &Arc<Self>) {
        // What is in flight is used until the KMD has stopped it, so that goes first.
        let kmd = self.kmd.lock().take();

        drop(kmd);

        let (rest, is_awaited, was_retiring) = {
            let mut state = self.state.lock();

            state.life = Life::Ended;
            state.in_flight = 0;
            state.begin = state.next;
            state.blocked = None;
            (
                core::mem::replace(&mut state.items, RBTree::new()),
                state.seen.1 != 0,
                core::mem::take(&mut state.is_retiring),
            )
        };

        self.discard(rest);
        self.adapter().queues.remove(self.key());
        if is_awaited {
            work::cancel::<_, PATIENCE>(self);
        }
        if was_retiring {
            stats::sub::<RETIRING>(&self.device, 1);
        }
    }

    /// Its handle is gone: it does what it can do and ends.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(self: &Arc<Self>) {
        {
            let mut state = self.state.lock();

            if state.life != Life::Open {
                return;
            }
            state.life = Life::Closing;
            state.is_retiring = true;
            stats::add::<RETIRING>(&self.device, 1);
        }
        self.advance();

        let mut state = self.state.lock();

        if state.life == Life::Closing {
            self.be_patient(&mut state);
        }
    }

    /// Ends the patience with a closing queue later.
    fn be_patient(self: &Arc<Self>, state: &mut State) {
        // OVERFLOW: a few rounds.
        state.seen = (state.order.completed(), state.seen.1 + 1);
        if let Some(worker) = work::worker() {
            // It fails only if it is queued already.
            let _queued = worker
                .enqueue_delayed::<_, PATIENCE>(self.clone(), msecs_to_jiffies(PATIENCE_MS))
                .is_ok();
        }
    }

    /// The patience with a closing queue is looked at: what it has to discard if it is over.
    fn lose_patience(self: &Arc<Self>) -> Option<RBTree<u64, Item>> {
        let mut state = self.state.lock();

        if state.life != Life::Closing {
            return None;
        }
        if state.order.completed() != state.seen.0 && state.seen.1 < ROUNDS {
            self.be_patient(&mut state);
            return None;
        }
        Some(state.stop())
    }

    /// Looks at fences that engines may have stored to.
    fn look_at_fences(self: &Arc<Self>) {
        let fences = &self.device.process.fences;

        if self.reported.take_stored() {
            fences.stored();
        }
        if fences.look() {
            self.as_arc_borrow().kick();
        }
    }

    /// Does something with the context that the KMD has, if it still has one.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn with_context<T>(
        &self,
        act: impl FnOnce(&object::Context) -> T,
    ) -> Option<T> {
        match &*self.kmd.lock() {
            Some(KmdQueue::Context(context)) => Some(act(context)),
            Some(KmdQueue::HwQueue { .. }) | None => None,
        }
    }

    /// How it is now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state.lock();
        let waiting = state.next.wrapping_sub(state.begin);

        Snapshot {
            id: self.id,
            node: self.node,
            is_hw: self.is_hw,
            pid: self.device.owner.mappings().identity.number(),
            items: state.in_flight.saturating_add(waiting),
            in_flight: state.in_flight,
            completed: state.order.completed(),
            busy_ns: self.reported.busy_ns(),
            blocked: state.blocked,
            fault: state.fault,
            // What was set was checked.
            priority: submit_rules::priority(self.priority.load(Relaxed)).unwrap_or(0),
            life: match state.life {
                Life::Open => "open",
                Life::Closing => "closing",
                Life::Stopped => "stopped",
                Life::Ended => "ended",
            },
        }
    }
}

impl Kick for Queue {
    fn kick(self: ArcBorrow<'_, Self>) {
        self.adapter().worker.enqueue(self.into());
    }
}

impl Told for Queue {
    fn reported(&self) -> &Reported {
        &self.reported
    }
}

impl ListedQueue for Queue {
    fn close(self: Arc<Self>) {
        self.leave();
    }

    fn stop(self: Arc<Self>) {
        let discarded = self.state.lock().stop();

        self.discard(discarded);
        self.advance();
    }

    fn show(&self, running: &[Option<u64>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show::line(&self.snapshot(), running, f)
    }
}

impl State {
    /// Stops it, if it has not ended: returns what is discarded.
    fn stop(&mut self) -> RBTree<u64, Item> {
        if self.life == Life::Ended {
            return RBTree::new();
        }
        self.life = Life::Stopped;
        self.take_waiting()
    }
}
