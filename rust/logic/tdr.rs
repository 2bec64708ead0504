// SPDX-License-Identifier: GPL-2.0

//! When work has taken too long: timeout detection (TDR; gpu.md section 9).
//!
//! A queue whose work is in the KMD is looked at a few times in each TDR time. What counts is how
//! long that work has run, or has waited for a value in the middle of its commands (GPU-93), and
//! not how long it has waited for its turn. Nothing is reset that was not asked to yield before
//! (GPU-92):
//!
//! ```text
//! Watch --too long--> asked to yield --it has--> the queue hangs
//!                                  \--it has not, for the TDR time--> the engine hangs
//! ```
//!
//! An engine that has stopped in the middle of the work of one queue runs no other one either. So a
//! queue whose work has not gone on for the TDR time asks the engine to yield, too. If it does, the
//! queue is given more time: others have had their turns.

/// The default of Windows for `TdrDelay`, in milliseconds.
pub const DEFAULT_DELAY_MS: u32 = 2000;
/// The TDR time cannot be less.
pub const MIN_DELAY_MS: u32 = 10;
/// Or more: an hour.
pub const MAX_DELAY_MS: u32 = 3_600_000;

/// How many times work is looked at in the TDR time.
const LOOKS: u32 = 4;

/// How long it is between two looks, for a TDR time.
pub const fn look_after_ms(delay_ms: u32) -> u32 {
    delay_ms.div_ceil(LOOKS)
}

/// What a look at a queue sees.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Nanoseconds of a clock.
    pub now_ns: u64,
    /// The TDR time.
    pub limit_ns: u64,
    /// Changes when work of the queue has been done; `None` if it has no work.
    pub reached: Option<u64>,
    /// Nanoseconds that count as running, of all of its work so far.
    pub spent_ns: u64,
    /// The last request to yield that the engine has obeyed.
    pub obeyed: u64,
    /// The engine has done all work that it was given, so that work of the queue is lost.
    pub is_idle: bool,
    /// The engine does not run because somebody wants it so, and that is no hang.
    pub is_stopped: bool,
}

/// What follows from a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to watch.
    Rest,
    /// It is looked at again later.
    Wait,
    /// The same, and the engine is asked to yield: with the number that [`Watch::asked`] is told.
    Preempt,
    /// The work of this queue has taken too long, and the engine yields.
    QueueHangs,
    /// The engine does not yield.
    EngineHangs,
}

/// A request to yield.
#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    at_ns: u64,
    /// How often it was not obeyed yet. A machine that stands still for a while, as virtual ones
    /// do, makes one look late, and not the engine.
    looks: u32,
}

/// The watch over one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// How far it was, since when, and what it had spent then; `None` if there was no work.
    since: Option<Since>,
    request: Option<Request>,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    reached: u64,
    at_ns: u64,
    spent_ns: u64,
}

impl Watch {
    /// There is nothing to watch.
    pub const fn new() -> Self {
        Self {
            since: None,
            request: None,
        }
    }

    /// A look at the queue.
    pub fn look(&mut self, look: &Look) -> Verdict {
        let Some(reached) = look.reached else {
            *self = Self::new();
            return Verdict::Rest;
        };
        let since = match self.since {
            Some(since) if since.reached == reached && !look.is_stopped => since,
            _ => return self.begin(reached, look),
        };
        let spent = look.spent_ns.saturating_sub(since.spent_ns);
        let is_late = look.now_ns.saturating_sub(since.at_ns) >= look.limit_ns;
        let is_over = spent >= look.limit_ns;

        match self.request {
            Some(request) if look.obeyed >= request.number => {
                if is_over || look.is_idle {
                    *self = Self::new();
                    return Verdict::QueueHangs;
                }
                // What it has spent still counts.
                self.request = None;
                self.since = Some(Since {
                    at_ns: look.now_ns,
                    ..since
                });
                Verdict::Wait
            }
            Some(request)
                if request.looks >= LOOKS
                    && look.now_ns.saturating_sub(request.at_ns) >= look.limit_ns =>
            {
                *self = Self::new();
                Verdict::EngineHangs
            }
            Some(request) => {
                self.request = Some(Request {
                    looks: request.looks.saturating_add(1),
                    ..request
                });
                Verdict::Wait
            }
            None if is_late || is_over => Verdict::Preempt,
            None => Verdict::Wait,
        }
    }

    /// Whether the engine was asked to yield, so that its answer is needed.
    pub fn is_asked(&self) -> bool {
        self.request.is_some()
    }

    /// The engine was asked to yield, by this number, at this time.
    pub fn asked(&mut self, number: u64, at_ns: u64) {
        self.request = Some(Request {
            number,
            at_ns,
            looks: 0,
        });
    }

    /// Work has gone on, or there is some for the first time.
    fn begin(&mut self, reached: u64, look: &Look) -> Verdict {
        self.request = None;
        self.since = Some(Since {
            reached,
            at_ns: look.now_ns,
            spent_ns: look.spent_ns,
        });
        Verdict::Wait
    }
}

/// Resets of an adapter beyond this number in [`WINDOW_NS`] stop it (GPU-96).
const MOST_RESETS: usize = 5;
/// The time in which they count.
const WINDOW_NS: u64 = 60_000_000_000;

/// The last resets of an adapter.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentResets {
    /// When they were, the oldest first.
    at_ns: [Option<u64>; MOST_RESETS],
}

impl RecentResets {
    /// None.
    pub const fn new() -> Self {
        Self {
            at_ns: [None; MOST_RESETS],
        }
    }

    /// There is about to be one more; false if it is one too many.
    pub fn add(&mut self, now_ns: u64) -> bool {
        let oldest = self.at_ns.first().copied().flatten();

        if oldest.is_some_and(|at| now_ns.saturating_sub(at) < WINDOW_NS) {
            return false;
        }
        self.at_ns.rotate_left(1);
        if let Some(last) = self.at_ns.last_mut() {
            *last = Some(now_ns);
        }
        true
    }
}
