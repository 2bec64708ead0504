// SPDX-License-Identifier: GPL-2.0

//! The watch over the work of a queue: timeout detection (TDR; gpu.md section 9). `logic/tdr.rs`
//! decides, `logic/watched.rs` says whether there is a look.
//!
//! A queue is looked at as long as it has work in the KMD, a few times in each TDR time. One that
//! its process fills is watched from when it begins to run, and until it has not run between two
//! looks and has done all that its process has queued (GPU-94). Nothing is looked at that has no
//! work, and no queue costs another one anything.
//!
//! The looks are for a worker that each adapter has for this alone: every other worker may wait for
//! an engine that hangs.

use super::{
    Queue,
    WATCH, //
};
use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        recovery::EngineStatus, //
    },
    logic::tdr::{
        Look,
        Verdict, //
    },
    sys::{
        time::now_ns,
        work, //
    }, //
};
use kernel::{
    sync::{
        Arc,
        ArcBorrow, //
    },
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

impl WorkItem<WATCH> for Queue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.watched.look_begins();

        let verdict = this.look();

        match verdict {
            Verdict::QueueHangs => this.adapter().queue_hangs(&this),
            Verdict::EngineHangs => this.adapter().engine_hangs(this.node),
            Verdict::Rest | Verdict::Wait | Verdict::Preempt => {}
        }

        // LOCK: the end of the queue either finds that it is watched again, or this finds the end.
        let state = this.state.lock();

        if this
            .watched
            .look_ends(|| state.wants_watch(&this.reported, verdict == Verdict::Rest))
        {
            this.as_arc_borrow().look_after_a_while();
        }
    }
}

impl Queue {
    /// It may hang from now on, unless its client does not mind. In any context; touches atomics
    /// and queues work only. The work was counted before.
    pub(super) fn watch(self: ArcBorrow<'_, Self>) {
        if !self.disable_gpu_timeout && self.watched.begins() {
            self.look_after_a_while();
        }
    }

    fn look_after_a_while(self: ArcBorrow<'_, Self>) {
        let recovery = &self.adapter().recovery;

        recovery
            .worker
            .enqueue_delayed::<_, WATCH>(self.into(), msecs_to_jiffies(recovery.look_after_ms()));
    }

    /// The end of the queue: nobody looks at it any more. Nothing of it runs.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn end_watch(self: &Arc<Self>) {
        // Who looks now finds that it has ended.
        if self.watched.is_queued() {
            work::cancel::<_, WATCH>(self);
        }
    }

    /// Nanoseconds of its work that count.
    fn spent_ns(&self) -> u64 {
        match self.is_filled_by_process {
            // What it waits for is the business of its process alone.
            true => self.reported.ran_ns(),
            false => self
                .reported
                .busy_ns()
                .saturating_add(self.reported.waited_ns()),
        }
    }

    fn look(self: &Arc<Self>) -> Verdict {
        let recovery = &self.adapter().recovery;
        let asked = self.state.lock().is_asked_to_yield();
        let engine = match asked {
            true => self.engine_status(),
            false => EngineStatus::default(),
        };
        let mut look = Look {
            now_ns: now_ns(),
            limit_ns: recovery.limit_ns(),
            reached: None,
            spent_ns: self.spent_ns(),
            obeyed: engine.preempted,
            is_idle: engine.is_idle && !self.is_filled_by_process,
            is_stopped: engine.is_stopped,
        };
        let verdict = self.state.lock().watch(&self.reported, &mut look);

        if verdict == Verdict::Preempt {
            self.ask_to_yield(look.now_ns);
        }
        verdict
    }

    /// Asks the engine to yield (PreemptCommand).
    fn ask_to_yield(&self, now_ns: u64) {
        let number = self.adapter().recovery.next_preempt();

        self.state.lock().asked_to_yield(number, now_ns);
        // An adapter that is removed or reset runs nothing.
        if let Ok(kmd) = self.adapter().port.enter() {
            Dispatch::below(&mut Passive::here(), |class| {
                kmd.preempt_command(class, self.node, number);
            });
        }
    }

    fn engine_status(&self) -> EngineStatus {
        self.adapter().port.enter_to_query().map_or_else(
            |_| EngineStatus::default(),
            |kmd| kmd.query_engine_status(&Passive::here(), self.node),
        )
    }
}
