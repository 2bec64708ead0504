// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deadlocks and lost signals.
//!
//! In all of them the first process with a part is the one that waits, if nothing else is said, and
//! parts are played in their order.

use super::actor::Step::{
    self, Acquire, AcquireLater, Close, Release, Rewind, Signal, Wait, WaitAll, WaitAny, WaitEvent,
    WaitQueue,
};

/// What one process has open and does.
pub(crate) struct Part {
    pub(crate) fences: &'static [usize],
    /// Those of them that it may only wait for.
    pub(crate) waits_only: &'static [usize],
    pub(crate) mutexes: &'static [usize],
    pub(crate) steps: &'static [Step],
}

/// Processes that come to a wait that does not end, and whom the command has to blame for that of
/// `waiter`. Numbers are places in `parts`.
pub(crate) struct Situation {
    pub(crate) name: &'static str,
    pub(crate) fences: usize,
    pub(crate) mutexes: usize,
    pub(crate) parts: Vec<Part>,
    /// Killed when all have played their parts.
    pub(crate) killed: &'static [usize],
    /// Stopped before the command runs for the first time.
    pub(crate) stopped: Option<usize>,
    pub(crate) waiter: usize,
    pub(crate) verdict: &'static str,
    pub(crate) culprits: &'static [usize],
}

const NOTHING: Situation = Situation {
    name: "",
    fences: 1,
    mutexes: 0,
    parts: Vec::new(),
    killed: &[],
    stopped: None,
    waiter: 0,
    verdict: "",
    culprits: &[],
};

const fn part(fences: &'static [usize], steps: &'static [Step]) -> Part {
    Part {
        fences,
        waits_only: &[],
        mutexes: &[],
        steps,
    }
}

/// With a keyed mutex too.
const fn with_mutex(fences: &'static [usize], steps: &'static [Step]) -> Part {
    Part {
        mutexes: &[0],
        ..part(fences, steps)
    }
}

/// All of them.
pub(crate) const SITUATIONS: [fn() -> Situation; 22] = [
    || Situation {
        name: "FEN-14 RES-15 two processes wait for each other",
        fences: 2,
        parts: vec![part(&[0, 1], &[Wait(0, 1)]), part(&[0, 1], &[Wait(1, 1)])],
        verdict: "cycle",
        culprits: &[0, 1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-14 RES-15 they do so after signals, beside one who has everything open",
        fences: 2,
        parts: vec![
            part(&[0, 1], &[Signal(1, 1), Wait(0, 2)]),
            part(&[0, 1], &[Signal(0, 1), Wait(1, 2)]),
            part(&[0, 1], &[]),
        ],
        verdict: "cycle",
        culprits: &[0, 1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-14 RES-15 three processes wait in a circle",
        fences: 3,
        parts: vec![
            part(&[0, 2], &[Wait(0, 1)]),
            part(&[0, 1], &[Wait(1, 1)]),
            part(&[1, 2], &[Wait(2, 1)]),
        ],
        verdict: "cycle",
        culprits: &[0, 1, 2],
        ..NOTHING
    },
    || Situation {
        name: "FEN-14 RES-15 one waits for a circle of two",
        fences: 3,
        parts: vec![
            part(&[0], &[Wait(0, 1)]),
            part(&[0, 1, 2], &[Wait(1, 1)]),
            part(&[1, 2], &[Wait(2, 1)]),
        ],
        verdict: "cycle",
        culprits: &[1, 2],
        ..NOTHING
    },
    || Situation {
        name: "FEN-28 RES-15 the signaller was killed, two wait for it",
        parts: vec![
            part(&[0], &[Wait(0, 2)]),
            part(&[0], &[Wait(0, 3)]),
            part(&[0], &[Signal(0, 1)]),
        ],
        killed: &[2],
        verdict: "last-writer-gone",
        culprits: &[2],
        ..NOTHING
    },
    || Situation {
        name: "FEN-28 RES-15 the signaller has closed the fence",
        parts: vec![
            part(&[0], &[Wait(0, 2)]),
            part(&[0], &[Signal(0, 1), Close(0)]),
        ],
        verdict: "last-writer-gone",
        culprits: &[1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-31 RES-15 the value went down before anybody waited for it",
        parts: vec![
            part(&[0], &[]),
            part(&[0], &[Signal(0, 5), Rewind(0, 2)]),
            part(&[0], &[Wait(0, 5)]),
        ],
        waiter: 2,
        verdict: "has-not",
        culprits: &[1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-14 RES-15 the only one who could signal is stopped",
        parts: vec![part(&[0], &[Wait(0, 1)]), part(&[0], &[])],
        stopped: Some(1),
        verdict: "stopped",
        culprits: &[1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-28 RES-15 a wait for a fence that nobody else has open",
        fences: 2,
        parts: vec![part(&[0, 1], &[Wait(1, 1)]), part(&[0], &[Signal(0, 1)])],
        verdict: "alone",
        culprits: &[0],
        ..NOTHING
    },
    || Situation {
        name: "RES-104 RES-15 one who may only wait is not to blame",
        parts: vec![
            part(&[0], &[Wait(0, 1)]),
            Part {
                waits_only: &[0],
                ..part(&[0], &[])
            },
            part(&[0], &[]),
        ],
        verdict: "has-not",
        culprits: &[2],
        ..NOTHING
    },
    || Situation {
        name: "FEN-46 RES-15 a queue waits for a signal of another process",
        parts: vec![part(&[0], &[WaitQueue(0, 1)]), part(&[0], &[])],
        verdict: "has-not",
        culprits: &[1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-46 RES-15 a queue waits for its own process, which waits for the queue",
        parts: vec![part(&[0], &[WaitQueue(0, 1)])],
        verdict: "alone",
        culprits: &[0],
        ..NOTHING
    },
    || Situation {
        name: "FEN-20 RES-15 an event that never comes",
        parts: vec![
            part(&[0], &[WaitEvent(0, 4)]),
            part(&[0], &[Signal(0, 3)]),
            part(&[0], &[]),
        ],
        verdict: "has-not",
        culprits: &[1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-15 RES-15 a wait for any of two, which have two signallers",
        fences: 2,
        parts: vec![
            part(&[0, 1], &[WaitAny(&[(0, 2), (1, 2)])]),
            part(&[0], &[Signal(0, 1)]),
            part(&[1], &[Signal(1, 1)]),
        ],
        verdict: "has-not",
        culprits: &[1, 2],
        ..NOTHING
    },
    || Situation {
        name: "FEN-16 RES-15 a wait for all, of which one is missing",
        fences: 2,
        parts: vec![
            part(&[0], &[Signal(0, 1)]),
            part(&[1], &[]),
            part(&[0, 1], &[WaitAll(&[(0, 1), (1, 1)])]),
        ],
        waiter: 2,
        verdict: "has-not",
        culprits: &[1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-15 RES-15 a wait for any in a circle, but for one way out",
        fences: 3,
        parts: vec![
            part(&[0, 1, 2], &[WaitAny(&[(0, 1), (1, 1)])]),
            part(&[0, 2], &[Wait(2, 1)]),
            part(&[1], &[]),
        ],
        verdict: "has-not",
        culprits: &[2],
        ..NOTHING
    },
    || Situation {
        name: "RES-95 RES-15 the owner of a keyed mutex does something else",
        fences: 0,
        mutexes: 1,
        parts: vec![
            with_mutex(&[], &[Acquire(0, 0)]),
            with_mutex(&[], &[AcquireLater(0, 0)]),
            with_mutex(&[], &[]),
        ],
        waiter: 1,
        verdict: "owner",
        culprits: &[0],
        ..NOTHING
    },
    || Situation {
        name: "RES-97 RES-15 a keyed mutex was released with another key",
        fences: 0,
        mutexes: 1,
        parts: vec![
            with_mutex(&[], &[Acquire(0, 0), Release(0, 7)]),
            with_mutex(&[], &[AcquireLater(0, 1)]),
            with_mutex(&[], &[]),
        ],
        waiter: 1,
        verdict: "other-key",
        culprits: &[0],
        ..NOTHING
    },
    || Situation {
        name: "RES-97 RES-99 RES-15 who has released it so was killed",
        fences: 0,
        mutexes: 1,
        parts: vec![
            with_mutex(&[], &[Acquire(0, 0), Release(0, 7)]),
            with_mutex(&[], &[AcquireLater(0, 1)]),
        ],
        killed: &[0],
        waiter: 1,
        verdict: "other-key",
        culprits: &[0],
        ..NOTHING
    },
    || Situation {
        name: "RES-95 FEN-14 RES-15 the owner waits for the one who waits for the mutex",
        mutexes: 1,
        parts: vec![
            with_mutex(&[0], &[Acquire(0, 0), Wait(0, 1)]),
            with_mutex(&[0], &[AcquireLater(0, 0)]),
        ],
        waiter: 1,
        verdict: "cycle",
        culprits: &[0, 1],
        ..NOTHING
    },
    || Situation {
        name: "FEN-14 RES-15 a chain of three leads to its end",
        fences: 2,
        parts: vec![
            part(&[0], &[Wait(0, 1)]),
            part(&[0, 1], &[Wait(1, 1)]),
            part(&[1], &[]),
        ],
        verdict: "has-not",
        culprits: &[2],
        ..NOTHING
    },
    || Situation {
        name: "FEN-14 FEN-28 RES-15 a circle is not the fault of one who has begun it and is gone",
        fences: 2,
        parts: vec![
            part(&[0, 1], &[Signal(0, 1), Signal(1, 1)]),
            part(&[0, 1], &[Wait(0, 2)]),
            part(&[0, 1], &[Wait(1, 2)]),
        ],
        killed: &[0],
        waiter: 1,
        verdict: "cycle",
        culprits: &[1, 2],
        ..NOTHING
    },
];
