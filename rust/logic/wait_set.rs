// SPDX-License-Identifier: GPL-2.0

//! One CPU wait over one or several fences: when it ends, how, and who cleans up.
//!
//! The elements of a wait are queued on different fences and released under different locks,
//! possibly at the same time. So this is a small lock-free state machine. Exactly one caller ends a
//! wait, and exactly one caller takes its remaining elements out of their fences (FEN-85).

use crate::platform::{
    cmpxchg,
    fetch_add,
    fetch_sub,
    load32_acquire,
    word32,
    Word32, //
};

/// When a wait over several elements ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One element is enough.
    Any,
    /// Every element has been seen satisfied at some time; each is latched (FEN-16).
    All,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The condition was met.
    Satisfied,
    /// It can no longer be met: a fence has retired (FEN-28).
    Orphaned,
    /// Given up by its owner: signal, process end, closed descriptor.
    Cancelled,
}

const PENDING: u32 = 0;
const SATISFIED: u32 = 1;
const ORPHANED: u32 = 2;
const CANCELLED: u32 = 3;

/// The state of one wait. Every member is changed without a lock.
pub struct WaitSet {
    mode: Mode,
    /// How many more elements have to be satisfied; wraps below 0 in a wait for any.
    missing: Word32,
    /// How many elements could still be satisfied.
    alive: Word32,
    /// `PENDING` until exactly one caller has ended the wait.
    state: Word32,
    /// How many of the two parties, registration and ending, are through.
    through: Word32,
    /// 1 while the waiting thread runs a signal handler.
    away: Word32,
}

impl WaitSet {
    /// A pending wait over `count` elements, at least 1.
    pub fn new(mode: Mode, count: u32) -> Self {
        // Any of one is all of one.
        let mode = if count == 1 { Mode::All } else { mode };

        Self {
            mode,
            missing: word32(match mode {
                Mode::Any => 1,
                Mode::All => count,
            }),
            alive: word32(count),
            state: word32(PENDING),
            through: word32(0),
            away: word32(0),
        }
    }

    /// When it ends.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// One element was satisfied. True if this ended the wait: the caller then wakes the waiter.
    pub fn satisfy(&self) -> bool {
        fetch_sub(&self.missing, 1) == 1 && self.end(WaitEnd::Satisfied)
    }

    /// One element can never be satisfied. True if this ended the wait.
    pub fn orphan(&self) -> bool {
        let hopeless = match self.mode {
            Mode::All => true,
            Mode::Any => fetch_sub(&self.alive, 1) == 1,
        };

        hopeless && self.end(WaitEnd::Orphaned)
    }

    /// The owner gives up. False if the wait had ended before: that end stands (FEN-85).
    pub fn cancel(&self) -> bool {
        self.end(WaitEnd::Cancelled)
    }

    /// Goes on for `other`, which has not ended, and had so many elements that were seen satisfied
    /// or that never can be. Nobody tells `other` anything any more. True if this ended the wait.
    pub fn go_on_for(&self, other: &Self, told: u32) -> bool {
        let is_over = |_| match other.mode {
            // Each of them was satisfied, and stays so (FEN-16).
            Mode::All => self.satisfy(),
            // None of them was.
            Mode::Any => self.orphan(),
        };

        (0..told).map(is_over).fold(false, core::ops::BitOr::bitor)
    }

    /// How the wait ended, if it has.
    pub fn outcome(&self) -> Option<WaitEnd> {
        match load32_acquire(&self.state) {
            SATISFIED => Some(WaitEnd::Satisfied),
            ORPHANED => Some(WaitEnd::Orphaned),
            CANCELLED => Some(WaitEnd::Cancelled),
            _ => None,
        }
    }

    /// Whether the wait ended because every element was satisfied. None of them is queued then.
    pub fn all_satisfied(&self) -> bool {
        self.mode == Mode::All && self.outcome() == Some(WaitEnd::Satisfied)
    }

    /// The word that stops being 0 when the wait ends, for sleeping on it.
    pub fn state(&self) -> &Word32 {
        &self.state
    }

    /// Called once by the registration, when every element is queued, and once by the caller that
    /// ended the wait. True for the second of the two, which takes the remaining elements out.
    pub fn pass_through(&self) -> bool {
        fetch_add(&self.through, 1) == 1
    }

    /// The waiting thread leaves to run a signal handler. False if the wait has ended, so that it
    /// need not.
    pub fn leave(&self) -> bool {
        // ORDERING: the end of a wait stores the state and then looks here, in `is_there`. If that
        // was before, our look at the state sees the end. If it comes later, we are not woken, and
        // `come_back` sees the end.
        cmpxchg(&self.away, 0, 1);
        self.outcome().is_none()
    }

    /// The thread is back, and sleeps until [`WaitSet::state`] says that the wait has ended.
    pub fn come_back(&self) {
        // ORDERING: as above: either `is_there` comes later and says so, or the next look at the
        // state sees the end.
        cmpxchg(&self.away, 1, 0);
    }

    /// Whether the thread must be woken, now that the wait has ended: not while it is away.
    pub fn is_there(&self) -> bool {
        // ORDERING: a read-modify-write, so that it has a place among those above. Pairs with both.
        fetch_add(&self.away, 0) == 0
    }

    fn end(&self, outcome: WaitEnd) -> bool {
        let state = match outcome {
            WaitEnd::Satisfied => SATISFIED,
            WaitEnd::Orphaned => ORPHANED,
            WaitEnd::Cancelled => CANCELLED,
        };

        // ORDERING: full: a thread that sees the end sees everything before it. Pairs with the
        // acquire load in `outcome`, also in the sleep loop of `sys::task::sleep`.
        cmpxchg(&self.state, PENDING, state)
    }
}
