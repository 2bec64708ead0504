// SPDX-License-Identifier: GPL-2.0

//! Whether an engine answers, and how it is made not to (GPU-92, GPU-98).
//!
//! Everything is a word, so that nobody has to wait for an engine that hangs. Such an engine keeps
//! `soft::Shell::core`, as one of hardware keeps its translations: whoever wants it goes on after
//! the reset.

use crate::{
    ddi::recovery::EngineStatus,
    platform::{
        self,
        Wakeup,
        Word32,
        Word64, //
    }, //
};

/// Something that is to happen.
struct Flag(Word64);

impl Flag {
    fn new() -> Self {
        Self(platform::word64(0))
    }

    fn set(&self, is_set: bool) {
        platform::store_release(&self.0, is_set.into());
    }

    fn is_set(&self) -> bool {
        platform::load_acquire(&self.0) != 0
    }

    /// Whether it was set, once: the thread of the engine asks.
    fn take(&self) -> bool {
        let is_set = self.is_set();

        if is_set {
            self.set(false);
        }
        is_set
    }
}

/// A step of its reset (GPU-95).
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// CollectDbgInfo.
    Collect = 1,
    /// ResetHwEngine.
    Reset = 2,
    /// ResumeHwEngine.
    Resume = 4,
}

/// All steps.
pub(super) const STEPS: u64 = Step::Collect as u64 | Step::Reset as u64 | Step::Resume as u64;

/// How many slices a queue may run after a PreemptCommand, unless it is set otherwise. A queue that
/// yields does so after one.
const PREEMPTION_THRESHOLD: u64 = 16;

/// How many naps a step is held at most: about a minute. Who holds it may have died.
const MOST_NAPS: u32 = 60_000;

/// What one engine answers.
pub(super) struct Answers {
    /// The last PreemptCommand, and the last one that was obeyed.
    asked: Word64,
    obeyed: Word64,
    /// How many slices a queue has run that does not obey, and how many it may.
    refused: Word32,
    threshold: Word64,
    /// Submissions that it was given and has not done.
    given: Word32,
    /// The queue that it runs, and the packet that this comes to.
    queue: Word64,
    packet: Word64,
    /// It was reset, and not resumed.
    is_reset: Flag,
    /// A reset has failed.
    is_dead: Flag,
    /// A debugger has stopped it.
    is_stopped: Flag,
    /// Somebody looks at what it has come to.
    is_held: Flag,
    /// What it is made to do wrong.
    refuses: Flag,
    hangs_next: Flag,
    hangs: Flag,
    hangs_queue: Flag,
    drops_next: Flag,
    delay_ns: Word64,
    /// Steps of a reset that are held, and the one in which one is.
    held_steps: Word64,
    held_in: Word64,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self {
            asked: platform::word64(0),
            obeyed: platform::word64(0),
            refused: platform::word32(0),
            threshold: platform::word64(PREEMPTION_THRESHOLD),
            given: platform::word32(0),
            queue: platform::word64(0),
            packet: platform::word64(0),
            is_reset: Flag::new(),
            is_dead: Flag::new(),
            is_stopped: Flag::new(),
            is_held: Flag::new(),
            refuses: Flag::new(),
            hangs_next: Flag::new(),
            hangs: Flag::new(),
            hangs_queue: Flag::new(),
            drops_next: Flag::new(),
            delay_ns: platform::word64(0),
            held_steps: platform::word64(0),
            held_in: platform::word64(0),
        }
    }

    /// PreemptCommand. Does not sleep.
    pub(super) fn ask(&self, id: u64) {
        platform::store_release(&self.asked, id);
    }

    /// The last PreemptCommand, for the thread of the engine, before a slice.
    pub(super) fn asked(&self) -> u64 {
        platform::load_acquire(&self.asked)
    }

    /// The thread of the engine has looked since it was asked that, and has run a slice or not.
    /// The number of slices if a queue has now run one more than it may since then.
    pub(super) fn obey(&self, asked: u64, has_run: bool) -> Option<u64> {
        if !self.refuses.is_set() && !self.is_dead.is_set() {
            platform::store_release(&self.obeyed, asked);
        }

        let refused = platform::load32_acquire(&self.refused);

        if platform::load_acquire(&self.obeyed) == asked {
            platform::fetch_sub(&self.refused, refused);
            return None;
        }
        // Told once, until it obeys: it counts no further.
        let threshold = platform::load_acquire(&self.threshold);
        let counts = has_run && u64::from(refused) <= threshold;

        if counts {
            platform::fetch_add(&self.refused, 1);
        }
        (counts && u64::from(refused) == threshold && threshold != 0)
            .then(|| threshold.saturating_add(1))
    }

    /// QueryEngineStatus. Does not sleep.
    pub(super) fn status(&self) -> EngineStatus {
        EngineStatus {
            preempted: platform::load_acquire(&self.obeyed),
            is_idle: platform::load32_acquire(&self.given) == 0,
            is_stopped: self.is_stopped.is_set(),
        }
    }

    /// It is given a submission.
    pub(super) fn give(&self) {
        platform::fetch_add(&self.given, 1);
    }

    /// So many submissions are done, or never will be.
    pub(super) fn take(&self, count: u32) {
        platform::fetch_sub(&self.given, count);
    }

    /// It runs this queue, which comes to a packet there.
    pub(super) fn runs(&self, queue: u64, packet: u64) {
        platform::store_release(&self.queue, queue);
        platform::store_release(&self.packet, packet);
    }

    /// What it has run last.
    pub(super) fn last_run(&self) -> (u64, u64) {
        (
            platform::load_acquire(&self.queue),
            platform::load_acquire(&self.packet),
        )
    }

    /// Whether the engine may run a slice.
    pub(super) fn may_run(&self) -> bool {
        let prevents = [
            &self.is_dead,
            &self.is_reset,
            &self.is_stopped,
            &self.is_held,
        ];

        !prevents.into_iter().any(Flag::is_set)
    }

    /// It runs nothing from the end of its slice on, or goes on.
    pub(super) fn hold(&self, is_held: bool) {
        self.is_held.set(is_held);
    }

    /// A step of a reset. May sleep.
    pub(super) fn step(&self, step: Step) {
        let step = step as u64;

        for _ in 0..MOST_NAPS {
            if platform::load_acquire(&self.held_steps) & step == 0 {
                break;
            }
            platform::store_release(&self.held_in, step);
            platform::nap();
        }
        platform::store_release(&self.held_in, 0);
    }

    /// The step in which a reset is held; 0 if none is.
    pub(super) fn held_in(&self) -> u64 {
        platform::load_acquire(&self.held_in)
    }

    /// A reset begins: what hangs goes on, and nothing more is run.
    pub(super) fn begin_reset(&self) {
        self.is_reset.set(true);
        self.hangs_next.set(false);
        self.hangs.set(false);
    }

    /// The reset has succeeded, or not.
    pub(super) fn end_reset(&self, has_failed: bool) {
        self.is_dead.set(has_failed);
        if !has_failed {
            self.refuses.set(false);
        }
    }

    /// ResumeHwEngine.
    pub(super) fn resume(&self) {
        self.is_reset.set(false);
    }

    /// In the middle of a slice: hangs until a reset, or the end of the thread, if that was asked
    /// for; or only takes longer. False if the slice does not go on.
    pub(super) fn in_slice(&self, wakeup: &Wakeup) -> bool {
        let delay = platform::load_acquire(&self.delay_ns);

        if self.hangs_next.take() {
            self.hangs.set(true);
            while self.hangs.is_set() && !self.is_reset.is_set() && !wakeup.is_stopped() {
                platform::nap();
            }
            self.hangs.set(false);
        }
        if delay != 0 {
            let begin = platform::now_ns();

            while platform::now_ns().saturating_sub(begin) < delay && !wakeup.is_stopped() {
                core::hint::spin_loop();
            }
        }
        !self.is_reset.is_set()
    }

    /// Whether the queue that runs now is to hang, once.
    pub(super) fn hangs_queue(&self) -> bool {
        self.hangs_queue.take()
    }

    /// Whether the end of a submission is not to be told, once.
    pub(super) fn drops_interrupt(&self) -> bool {
        self.drops_next.take()
    }

    /// It does something wrong from now on.
    pub(super) fn inject(&self, fault: Injection) {
        match fault {
            Injection::HangEngine => self.hangs_next.set(true),
            Injection::HangQueue => self.hangs_queue.set(true),
            Injection::RefusePreemption(refuses) => self.refuses.set(refuses),
            Injection::DropInterrupt => self.drops_next.set(true),
            Injection::Delay(ns) => platform::store_release(&self.delay_ns, ns),
            Injection::Stop(stops) => self.is_stopped.set(stops),
            Injection::Die => self.is_dead.set(true),
            Injection::HoldReset(steps) => platform::store_release(&self.held_steps, steps),
            Injection::PreemptionThreshold(slices) => {
                platform::store_release(&self.threshold, slices);
            }
        }
    }
}

/// What an engine is made to do wrong (GPU-98), or a debugger wants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Injection {
    /// It hangs in its next slice.
    HangEngine,
    /// The queue that it runs next hangs, and the engine does not.
    HangQueue,
    /// It does not obey PreemptCommand, or does so again.
    RefusePreemption(bool),
    /// The end of the next submission is not told.
    DropInterrupt,
    /// Each slice takes so many nanoseconds longer.
    Delay(u64),
    /// A debugger stops it, or lets it go on.
    Stop(bool),
    /// It runs nothing any more, and answers nothing.
    Die,
    /// These steps of its reset take until they are none of these any more: a sum of [`Step`].
    HoldReset(u64),
    /// A queue that runs more slices than these after a PreemptCommand is told of; 0 for none.
    PreemptionThreshold(u64),
}
