// SPDX-License-Identifier: GPL-2.0

//! What is queued in a queue, how far it is, and what is to be done next. All of it is under
//! `Queue::state`; nothing here waits, and nothing is dropped.

use super::exports::{
    Exports,
    Scope,
    Search, //
};
use crate::dxgk::sync::waiter::Waiter;
use crate::{
    ddi::queue::{
        Fault,
        Submission, //
    },
    dxgk::sched::{
        callbacks::Reported,
        export::{
            NewExport,
            Wanted, //
        },
        filled::Filled,
        item::{
            Commands,
            Item,
            What, //
        },
        kmd_queue::KmdQueue,
        queued_work::Epoch,
        signal::QueuedSignal,
        snapshot::{
            Blocked,
            RingState, //
        },
        wait::{
            Begin,
            Begun,
            Bound,
            WakeQueue, //
        }, //
    },
    error::Status,
    logic::{
        submission_order::SubmissionOrder,
        submit_rules,
        tdr::{
            Look,
            Verdict,
            Watch, //
        }, //
    },
    sys::dma_fence::own::Unsignalled, //
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::Arc, //
};

/// How many times a closing queue may take as long as it may take without progress.
const ROUNDS: u32 = 5;

/// Where a queue is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Open,
    Closing,
    Stopped,
    Ended,
}

/// Who makes a queue go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    /// A call, or the module's worker: it may take as long as it takes.
    Patient,
    /// The adapter's worker, for which the queues of other users wait. It leaves to the module's
    /// worker what may take long, or wait for a thread of the user.
    Adapter,
}

/// Items by the order in which they came.
pub(super) type Items = RBTree<u64, Item>;
/// One of them, taken out.
pub(super) type Node = RBTreeNode<u64, Item>;
/// Room for one more.
pub(in crate::dxgk::sched) type Place = RBTreeNodeReservation<u64, Item>;

/// What is to be done next.
pub(super) enum Step {
    /// Nothing.
    Rest,
    /// Something that is not for this runner.
    HandOver,
    /// This is over, and dropped without the turn.
    Over(Node),
    Submit(Submission, Arc<KmdQueue>),
    /// How many elements it has. It is over with the next step.
    Signal(Arc<QueuedSignal>, usize),
    /// An exported point signals: its item is over, or it will be discarded.
    Export(Unsignalled, bool),
    /// The wait with this number begins.
    Begin(u64, Begin),
    /// Drop these: they are discarded.
    Discard(Items),
    End,
}

impl Step {
    /// Whether somebody may wait for it who waits for a sync file (FEN-164). When a queue ends or
    /// discards something, its exported points have signalled.
    pub(super) fn is_on_the_way(&self) -> bool {
        !matches!(self, Self::Rest) && !self.is_of_the_end()
    }

    /// Whether the queue ends, or discards what it has.
    pub(super) fn is_of_the_end(&self) -> bool {
        matches!(self, Self::HandOver | Self::Discard(_) | Self::End)
    }

    /// How much it is, in elements of waits and signals.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Signal(_, elements) => (*elements).max(1),
            Self::Begin(_, begin) => begin.elements().max(1),
            _ => 1,
        }
    }
}

/// The patience with a closing queue.
#[derive(Default)]
struct Patience {
    /// How far the queue was when it was looked at.
    reached: u64,
    /// How often it was as far as before.
    unchanged: u32,
    /// How often that was.
    looks: u32,
    /// It will be looked at.
    is_queued: bool,
}

/// What is left of a queue that has ended.
pub(super) struct Rest {
    /// What was in flight.
    pub(super) running: Items,
    /// What has come in the last moment.
    pub(super) waiting: Items,
    /// Their exported points.
    pub(super) exports: Exports,
    /// The patience will be looked at.
    pub(super) is_awaited: bool,
    /// It was counted among what is retiring.
    pub(super) was_retiring: bool,
    /// What it has held.
    pub(super) epoch: Option<Arc<Epoch>>,
}

/// What `Queue::state` protects.
pub(super) struct State {
    /// Those that have not begun, without gaps.
    waiting: Items,
    /// The number of the first of them, and of the next one that comes.
    begin: u64,
    next: u64,
    /// Submissions that are in flight.
    running: Items,
    /// How many these are.
    in_flight: u64,
    order: SubmissionOrder,
    life: Life,
    /// Its handle is gone.
    has_no_handle: bool,
    /// What its process fills, if it does and there is a doorbell.
    ring: Option<Arc<dyn Filled>>,
    /// There is about to be one.
    is_ring_claimed: bool,
    /// Held while it closes: memory stays that the ring may use.
    epoch: Option<Arc<Epoch>>,
    /// Some thread has the turn: it makes the queue go on until it finds nothing to do. Whoever
    /// comes meanwhile has nothing to do: what was there before is found then.
    has_runner: bool,
    /// What the KMD has. It is for who has the turn; `Queue::kmd` keeps it as well.
    kmd: Option<Arc<KmdQueue>>,
    /// The last value of the progress fence that was asked for.
    progress: u64,
    /// It waits, for the one at its head.
    blocked: Option<Blocked>,
    /// The signal at its head is carried out; true if nothing of it was missing but that.
    signalling: Option<bool>,
    /// What stands for signals outside of this module.
    exports: Exports,
    /// Why it has stopped, if it has faulted.
    fault: Option<Fault>,
    /// It is counted among what is retiring.
    is_retiring: bool,
    patience: Patience,
    /// Whether its work takes too long.
    watch: Watch,
    /// How long it had run at the last look.
    seen_busy_ns: u64,
}

impl State {
    /// Nothing is queued. At most `most` submissions are in flight at a time.
    pub(super) fn new(most: u32) -> Self {
        Self {
            waiting: RBTree::new(),
            begin: 0,
            next: 0,
            running: RBTree::new(),
            in_flight: 0,
            order: SubmissionOrder::new(most),
            life: Life::Open,
            has_no_handle: false,
            ring: None,
            is_ring_claimed: false,
            epoch: None,
            has_runner: false,
            kmd: None,
            progress: 0,
            blocked: None,
            signalling: None,
            exports: Exports::new(),
            fault: None,
            is_retiring: false,
            patience: Patience::default(),
            watch: Watch::new(),
            seen_busy_ns: 0,
        }
    }

    /// The KMD has it now.
    pub(super) fn begin_with(&mut self, kmd: Arc<KmdQueue>) {
        self.kmd = Some(kmd);
    }

    /// What the KMD has.
    pub(super) fn kmd(&self) -> Option<Arc<KmdQueue>> {
        self.kmd.clone()
    }

    /// Whether its engine was asked to yield.
    pub(super) fn is_asked_to_yield(&self) -> bool {
        self.watch.is_asked()
    }

    /// Its engine was asked to yield, by this number, at this time.
    pub(super) fn asked_to_yield(&mut self, number: u64, at_ns: u64) {
        self.watch.asked(number, at_ns);
    }

    /// Looks whether its work takes too long. A queue that its process fills is watched as long as
    /// it runs.
    pub(super) fn watch(&mut self, reported: &Reported, look: &mut Look) -> Verdict {
        let busy = reported.busy_ns();
        let has_run = self.ring.is_some() && self.seen_busy_ns != busy;

        self.seen_busy_ns = busy;
        look.reached = self.watched_work(reported);
        match self.watch.look(look) {
            Verdict::Rest if has_run => Verdict::Wait,
            verdict => verdict,
        }
    }

    /// How far its work is, if it has any that the KMD has.
    fn watched_work(&self, reported: &Reported) -> Option<u64> {
        let completed = reported.completed();

        match (self.life, &self.ring) {
            (Life::Stopped | Life::Ended, _) => None,
            (_, Some(ring)) => (!ring.is_idle()).then(|| ring.progress()),
            (_, None) => (completed < self.order.submitted()).then_some(completed),
        }
    }

    /// Whether it is watched any more after a look: unless it has ended, and if that look has found
    /// nothing to watch, only if it has got work or has run since.
    pub(super) fn wants_watch(&self, reported: &Reported, has_rested: bool) -> bool {
        match (self.life, &self.ring) {
            (Life::Ended, _) => false,
            _ if !has_rested => true,
            (_, Some(_)) => self.seen_busy_ns != reported.busy_ns(),
            (_, None) => self.watched_work(reported).is_some(),
        }
    }

    /// Takes out what the KMD has. For who has the turn.
    pub(super) fn take_kmd(&mut self) -> Option<Arc<KmdQueue>> {
        self.kmd.take()
    }

    /// Makes a place for a ring; false if there is one.
    pub(super) fn claim_ring(&mut self) -> bool {
        self.ring.is_none() && !core::mem::replace(&mut self.is_ring_claimed, true)
    }

    /// The place for a ring is used, or not needed any more.
    pub(super) fn unclaim_ring(&mut self) {
        self.is_ring_claimed = false;
    }

    /// Its process fills it by this ring, for which there is a place; gives it back if the queue is
    /// not open any more.
    pub(super) fn fill_from(&mut self, ring: Arc<dyn Filled>) -> Option<Arc<dyn Filled>> {
        if self.life != Life::Open {
            return Some(ring);
        }
        self.ring = Some(ring);
        None
    }

    /// The process has given up the ring at this address. Whether nobody else ends it, and what to
    /// drop without the lock.
    pub(super) fn give_up_ring(&mut self, ring: *const ()) -> (bool, Option<Arc<dyn Filled>>) {
        let is_own = |own: &Arc<dyn Filled>| Arc::as_ptr(own).cast::<()>() == ring;

        match self.life {
            Life::Closing if self.ring.as_ref().is_some_and(is_own) => (false, None),
            _ if self.ring.as_ref().is_some_and(is_own) => (true, self.ring.take()),
            _ => (true, None),
        }
    }

    /// Its ring, if it has one.
    pub(super) fn ring(&self) -> Option<Arc<dyn Filled>> {
        self.ring.clone()
    }

    /// Takes its ring out, if it has one.
    pub(super) fn take_ring(&mut self) -> Option<Arc<dyn Filled>> {
        self.ring.take()
    }

    /// How far its ring is, if it has one.
    pub(super) fn ring_state(&self) -> Option<RingState> {
        self.ring.as_ref().map(|ring| RingState {
            status: ring.status(),
            progress: ring.progress(),
            last_queued: ring.last_queued(),
        })
    }

    /// Whether there is something left in its ring.
    fn is_filled(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| !ring.is_idle())
    }

    /// How far it is.
    fn reached(&self) -> u64 {
        match &self.ring {
            Some(ring) => ring.progress(),
            None => self.order.completed(),
        }
    }

    /// Why nothing more is queued, if that is so.
    pub(super) fn check_open(&self) -> Result<(), Status> {
        match self.life {
            // Its handle was destroyed meanwhile.
            _ if self.has_no_handle => Err(Status::INVALID_PARAMETER),
            Life::Open | Life::Closing => Ok(()),
            Life::Stopped | Life::Ended => Err(Status::DEVICE_REMOVED),
        }
    }

    /// Takes an item, unless it is refused.
    pub(super) fn accept(
        &mut self,
        item: &mut Option<Item>,
        place: &mut Option<Place>,
    ) -> Result<(), Status> {
        self.check_open()?;
        if let Some(What::Commands(queued)) = item.as_ref().map(|item| &item.what) {
            if let Some(next) = queued.commands.progress {
                if !submit_rules::may_progress(self.progress, next) {
                    return Err(Status::INVALID_PARAMETER);
                }
                self.progress = next;
            }
        }
        self.append(item, place);
        Ok(())
    }

    /// Takes an item that was not refused, although the queue may have ended since: then it does
    /// not take it, and the caller discards it.
    pub(super) fn append(&mut self, item: &mut Option<Item>, place: &mut Option<Place>) {
        if matches!(self.life, Life::Stopped | Life::Ended) {
            return;
        }
        if let (Some(item), Some(place)) = (item.take(), place.take()) {
            let number = self.next;
            let _nothing = self.waiting.insert(place.into_node(number, item));

            // OVERFLOW: as in `take_head`.
            self.next = number.wrapping_add(1);
        }
    }

    /// Takes the turn; false if some thread has it.
    pub(super) fn take_turn(&mut self) -> bool {
        !core::mem::replace(&mut self.has_runner, true)
    }

    /// Gives the turn back, although there may be something to do.
    pub(super) fn give_back_turn(&mut self) {
        self.has_runner = false;
    }

    /// What is to be done next, now that the KMD has told this. If that is nothing, the turn is
    /// given back.
    pub(super) fn next(&mut self, reported: &Reported, runner: Runner) -> Step {
        let step = self.decide(reported, runner);

        if matches!(step, Step::Rest) {
            self.give_back_turn();
        }
        step
    }

    fn decide(&mut self, reported: &Reported, runner: Runner) -> Step {
        if self.signalling.take().is_some() {
            if let Some(node) = self.take_head() {
                return Step::Over(node);
            }
        }
        if let Some(point) = self.exports.take_before(Some(self.begin)) {
            return Step::Export(point, true);
        }
        match self.life {
            Life::Ended => return Step::Rest,
            Life::Stopped if self.begin != self.next => return self.discard(runner),
            Life::Stopped => return Self::end_by(runner),
            Life::Open | Life::Closing => {}
        }
        self.order.fetch(reported.fetched());
        self.order.complete(reported.completed());
        if self.in_flight > self.order.in_flight() {
            if let Some(cursor) = self.running.cursor_front_mut() {
                self.in_flight -= 1;
                return Step::Over(cursor.remove_current().1);
            }
        }

        let order = self.order;
        let is_closing = self.life == Life::Closing;
        let is_filled = self.is_filled();
        let Some(head) = self.head() else {
            return if is_closing && self.in_flight == 0 && !is_filled {
                Self::end_by(runner)
            } else {
                Step::Rest
            };
        };

        if !order.may_begin(head.what.kind()) {
            // A closing queue does not wait for what is not there now (FEN-46).
            return match &head.what {
                What::Wait(wait) if is_closing && !wait.might_pass() => self.discard(runner),
                _ => Step::Rest,
            };
        }
        match &mut head.what {
            What::Commands(queued) => {
                let Commands {
                    address: commands,
                    length,
                    progress,
                } = queued.commands;

                // Both are there: the queue has not ended.
                let (Some(kmd), Some(node)) = (self.kmd.clone(), self.take_head()) else {
                    return Step::Rest;
                };
                let _nothing = self.running.insert(node);

                self.in_flight += 1;

                let submission = Submission {
                    number: self.order.submit(),
                    commands,
                    length,
                    progress,
                };

                Step::Submit(submission, kmd)
            }
            What::Signal(signal) => {
                let (signal, elements) = (signal.clone(), signal.elements());

                // It stays at the head until it is over, so that an export finds it.
                self.signalling = Some(signal.is_last_part());
                Step::Signal(signal, elements)
            }
            What::Wait(wait) => {
                if wait.has_ended() {
                    wait.pass();
                    self.blocked = None;
                    return self.take_head().map_or(Step::Rest, Step::Over);
                }
                if let Some(begin) = wait.begin() {
                    return Step::Begin(self.begin, begin);
                }
                if is_closing {
                    return self.discard(runner);
                }
                self.blocked = Some(wait.blocked());
                Step::Rest
            }
        }
    }

    /// The item that is next, if there is one.
    fn head(&mut self) -> Option<&mut Item> {
        self.waiting.get_mut(&self.begin)
    }

    /// Takes the head out.
    fn take_head(&mut self) -> Option<Node> {
        let node = self.waiting.remove_node(&self.begin);

        // OVERFLOW: 2^64 items take longer than any machine runs.
        self.begin = self.begin.wrapping_add(1);
        node
    }

    /// Everything that has not begun is discarded. Users decide how much that is.
    fn discard(&mut self, runner: Runner) -> Step {
        if let Some(point) = self.exports.take_before(None) {
            return Step::Export(point, false);
        }
        match runner {
            Runner::Patient => Step::Discard(self.take_waiting()),
            Runner::Adapter => Step::HandOver,
        }
    }

    /// Nothing is left to do. The KMD destroys what it has, in its turn among other calls for the
    /// device.
    fn end_by(runner: Runner) -> Step {
        match runner {
            Runner::Patient => Step::End,
            Runner::Adapter => Step::HandOver,
        }
    }

    /// Takes what has not begun out.
    fn take_waiting(&mut self) -> Items {
        self.blocked = None;
        self.begin = self.next;
        core::mem::replace(&mut self.waiting, RBTree::new())
    }

    /// Looks for a signal that may be exported, as [`Exports::search`] says.
    pub(super) fn search(
        &mut self,
        has_timeout: bool,
        wanted: Wanted,
        from: u64,
        is_assumed: &dyn Fn(u64) -> bool,
        export: &mut Option<NewExport>,
    ) -> Search {
        let scope = Scope {
            waiting: &mut self.waiting,
            begin: self.begin,
            in_flight: self.in_flight,
            signalling: self.signalling,
            has_timeout,
        };

        self.exports.search(scope, wanted, from, is_assumed, export)
    }

    /// The wait with this number, if it is there and waits for values of fences.
    pub(super) fn waiter(&self, number: u64) -> Option<Arc<Waiter<WakeQueue>>> {
        match &self.waiting.get(&number)?.what {
            What::Wait(wait) => wait.waiter().cloned(),
            What::Commands(_) | What::Signal(_) => None,
        }
    }

    /// The wait with this number is over when all of these have signalled, which are taken; unless
    /// it is bounded already, or over.
    pub(super) fn bind(&mut self, number: u64, bounds: &mut Option<KVec<Bound>>) {
        if let Some(What::Wait(wait)) = self.waiting.get_mut(&number).map(|item| &mut item.what) {
            wait.bind(bounds);
        }
    }

    /// A wait has begun. For who has the turn, so that it is still there.
    pub(super) fn wait_began(&mut self, number: u64, begun: &Begun) {
        if let Some(What::Wait(wait)) = self.waiting.get_mut(&number).map(|item| &mut item.what) {
            wait.begun(begun);
        }
    }

    /// Its handle is gone; false if that is not the first end of it. `epoch` is the present one, if
    /// its process fills it.
    pub(super) fn close(&mut self, epoch: &mut Option<Arc<Epoch>>) -> bool {
        let is_open = self.life == Life::Open;

        self.has_no_handle = true;
        if is_open {
            self.life = Life::Closing;
            self.is_retiring = true;
            self.epoch = epoch.take();
        }
        is_open
    }

    /// Nothing more of it is done.
    pub(super) fn stop(&mut self) {
        if self.life != Life::Ended {
            self.life = Life::Stopped;
        }
    }

    /// The same, because of a fault.
    pub(super) fn stop_for(&mut self, fault: Fault) {
        self.fault = Some(fault);
        self.stop();
    }

    /// It has ended: what is left of it.
    pub(super) fn end(&mut self) -> Rest {
        self.life = Life::Ended;
        self.in_flight = 0;
        Rest {
            running: core::mem::replace(&mut self.running, RBTree::new()),
            waiting: self.take_waiting(),
            exports: core::mem::replace(&mut self.exports, Exports::new()),
            is_awaited: self.patience.is_queued,
            was_retiring: core::mem::take(&mut self.is_retiring),
            epoch: self.epoch.take(),
        }
    }

    /// Begins the patience with a closing queue.
    pub(super) fn begin_patience(&mut self) {
        self.patience.reached = self.reached();
    }

    /// The patience is looked at. It ends after so many looks without progress, and `ROUNDS` times
    /// as many altogether; then the queue is stopped.
    pub(super) fn look_at_patience(&mut self, looks: u32) {
        let now = self.reached();
        let Patience {
            reached,
            unchanged,
            looks: before,
            is_queued,
        } = &mut self.patience;

        *is_queued = false;
        // OVERFLOW: a few hundred looks.
        *before += 1;
        *unchanged = if now == *reached { *unchanged + 1 } else { 0 };
        *reached = now;
        if self.life == Life::Closing && (*unchanged >= looks || *before >= looks * ROUNDS) {
            self.life = Life::Stopped;
        }
    }

    /// Whether the patience goes on: true if so, and then the caller sees to it that it is looked
    /// at.
    pub(super) fn is_patient(&mut self) -> bool {
        self.patience.is_queued = self.life == Life::Closing;
        self.patience.is_queued
    }

    /// How far the submissions are.
    pub(super) fn completed(&self) -> u64 {
        self.order.completed()
    }

    /// How many items the KMD has, and how many there are.
    pub(super) fn counts(&self) -> (u64, u64) {
        let waiting = self.next.wrapping_sub(self.begin);

        (self.in_flight, self.in_flight.saturating_add(waiting))
    }

    /// What it waits for.
    pub(super) fn blocked(&self) -> Option<Blocked> {
        self.blocked
    }

    /// Why it has stopped.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Where it is in its life, for people.
    pub(super) fn life(&self) -> &'static str {
        match self.life {
            Life::Open => "open",
            Life::Closing => "closing",
            Life::Stopped => "stopped",
            Life::Ended => "ended",
        }
    }
}
