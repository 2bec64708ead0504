// SPDX-License-Identifier: GPL-2.0

//! The states of a queue, and which may follow which (GPU-49).

/// The state of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Not in the list.
    #[default]
    Gone,
    /// Nothing to do.
    Empty,
    /// Waits for its turn.
    Ready,
    /// An engine runs it.
    Running,
    /// Waits for a word in memory.
    Blocked,
    /// Its context is suspended.
    Suspended,
    /// A fault has stopped it, or a reset.
    Faulted,
}

/// Which state may follow which.
const LEGAL: [(State, State); 24] = {
    use State::{
        Blocked,
        Empty,
        Faulted,
        Gone,
        Ready,
        Running,
        Suspended, //
    };

    [
        (Gone, Empty),
        (Empty, Ready),
        (Empty, Suspended),
        (Empty, Gone),
        (Empty, Faulted),
        (Ready, Running),
        (Ready, Suspended),
        (Ready, Gone),
        (Ready, Faulted),
        (Running, Ready),
        (Running, Empty),
        (Running, Blocked),
        (Running, Suspended),
        (Running, Faulted),
        (Running, Gone),
        (Blocked, Ready),
        (Blocked, Suspended),
        (Blocked, Gone),
        (Blocked, Faulted),
        (Suspended, Empty),
        (Suspended, Ready),
        (Suspended, Gone),
        (Suspended, Faulted),
        (Faulted, Gone),
    ]
};

impl State {
    /// Whether a queue in this state may go to another one.
    pub fn may_become(self, next: Self) -> bool {
        LEGAL.contains(&(self, next))
    }
}
