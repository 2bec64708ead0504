// SPDX-License-Identifier: GPL-2.0

//! How a queue goes on. One thread at a time has the turn: it takes one step under the lock and has
//! its effect without it, until there is nothing to do or it has done enough. Then the adapter's
//! worker goes on, which serves the queues that have something to do in turn.
//!
//! The queues of other users wait for the adapter's worker. So it does a bounded part, and nothing
//! in which it could wait for a thread of the user: it hands over such a step, and the turn with
//! it, to the module's worker.

use super::{
    state::{
        Items,
        Runner,
        Step, //
    },
    Queue,
    HANDED_OVER, //
};
use crate::{
    dxgk::sched::{
        callbacks::Kick,
        last_faults::LastFault,
        signal::QueuedSignal,
        wait::Begin, //
    },
    sys::{
        dma_fence::Signalling,
        trace::{
            self,
            FenceOperation, //
        },
        work, //
    }, //
};
use kernel::{
    sync::Arc,
    workqueue::WorkItem, //
};

/// How much one thread does before others have their turn, in elements of waits and signals.
const ENOUGH: usize = 64;

impl WorkItem for Queue {
    type Pointer = Arc<Self>;

    /// The adapter's worker: the KMD has told something, a wait has ended, or there was too much to
    /// do for one thread.
    fn run(this: Arc<Self>) {
        // Its own, and those of all queues after it in the worker.
        let _signalling = Signalling::begin();

        this.look_at_fault();
        this.advance(Runner::Adapter);
        this.look_at_fences();
    }
}

impl WorkItem<HANDED_OVER> for Queue {
    type Pointer = Arc<Self>;

    /// The module's worker, which gets the turn with the work.
    fn run(this: Arc<Self>) {
        this.go_on(Runner::Patient);
    }
}

impl Queue {
    /// Makes it go on as far as it can, or leaves the rest to others.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn advance(self: &Arc<Self>, runner: Runner) {
        if self.state.lock().take_turn() {
            self.go_on(runner);
        }
    }

    /// Goes on, with the turn.
    fn go_on(self: &Arc<Self>, runner: Runner) {
        let mut over = Items::new();

        self.take_steps(runner, &mut over);
        // Without the turn: memory that was kept for commands may go with them, which takes long,
        // and what is behind them may have been exported (FEN-164).
        drop(over);
    }

    /// The same; fills in the items that are over.
    fn take_steps(self: &Arc<Self>, runner: Runner, over: &mut Items) {
        let mut done = 0;

        while done < ENOUGH {
            let step = self.next_step(runner);
            let _signalling = step.is_on_the_way().then(Signalling::begin);

            // OVERFLOW: a call has a few thousand elements.
            done += step.weight();
            if step.is_of_the_end() {
                // Its items are over before it is, so that their charges are back then. Nothing
                // that was exported is left behind them.
                Self::discard(core::mem::replace(over, Items::new()));
            }
            match step {
                Step::Rest => return,
                Step::HandOver => return self.hand_over(),
                Step::Over(node) => {
                    // Numbers are unique, so that nothing is replaced.
                    let _nothing = over.insert(node);
                }
                Step::Submit(submission, kmd) => {
                    trace::run(self.id, submission.number);
                    self.device.process.engines.submitted(self.node);
                    self.as_arc_borrow().watch();
                    if kmd.submit(&submission).is_err() {
                        // The adapter is removed.
                        self.state.lock().stop();
                    }
                    self.adapter().power.wake_for_work();
                }
                Step::Signal(signal, _) => signal.reached(self.adapter().id),
                Step::Export(point, is_over) => self.export_ends(point, is_over),
                Step::Begin(number, begin) => self.begin(number, begin),
                Step::Discard(items) => Self::discard(items),
                Step::End => self.end(),
            }
        }
        self.state.lock().give_back_turn();
        self.as_arc_borrow().kick();
    }

    fn next_step(&self, runner: Runner) -> Step {
        let mut state = self.state.lock();
        let (was_blocked, before) = (state.blocked().is_some(), state.completed());
        // What was told before somebody came and found the turn taken is seen here.
        let step = state.next(&self.reported, runner);
        let completed = state.completed();

        if completed != before {
            let count = completed.saturating_sub(before);

            self.device.process.engines.completed(self.node, count);
            trace::complete(self.id, completed);
        }
        match state.blocked() {
            Some(blocked) if !was_blocked => {
                trace::block(self.id, blocked.object, blocked.value);
            }
            None if was_blocked => trace::unblock(self.id),
            _ => {}
        }
        drop(state);
        if let Step::Signal(signal, _) = &step {
            self.tell_signal(signal);
        }
        step
    }

    /// It is the turn of a signal.
    fn tell_signal(&self, signal: &QueuedSignal) {
        if trace::shows_fence_operations() {
            for (fence, value) in signal.fences() {
                trace::fence_done(self.id, fence, value, FenceOperation::Signal);
            }
        }
    }

    /// Leaves the next step to the module's worker, and the turn with it.
    fn hand_over(self: &Arc<Self>) {
        match work::worker() {
            Some(worker) => {
                // Only who has the turn hands it over, so that it cannot be queued already.
                let _queued = worker.enqueue::<_, HANDED_OVER>(self.clone()).is_ok();
            }
            None => self.go_on(Runner::Patient),
        }
    }

    /// Begins the wait with this number.
    fn begin(&self, number: u64, begin: Begin) {
        if let Some(begun) = begin.run() {
            self.state.lock().wait_began(number, &begun);
        }
    }

    /// Drops items that are not done any more.
    pub(super) fn discard(mut items: Items) {
        let mut dropped = 0usize;

        while let Some(cursor) = items.cursor_front_mut() {
            drop(cursor.remove_current().1);
            // OVERFLOW: it counts modulo the size of memory.
            dropped = dropped.wrapping_add(1);
            if dropped % ENOUGH == 0 {
                work::breathe();
            }
        }
    }

    /// Stops it if it has faulted, and puts its device in error: first the record of the fault and
    /// the state of the device, then the end of waits (CPU-45).
    fn look_at_fault(&self) {
        let Some(fault) = self.reported.take_fault() else {
            return;
        };

        trace::fault(self.id, fault.packet);
        self.device.adapter.last_faults.set(
            self.node,
            LastFault {
                queue: self.id,
                pid: self.device.owner.mappings().identity.number(),
                fault,
            },
        );
        self.adapter().report_fault(self, &fault);
        self.adapter()
            .memory
            .log
            .faulted(self.device.process.id, self.id, &fault);
        self.device.faulted(&fault);
        self.state.lock().stop_for(fault);
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
}
