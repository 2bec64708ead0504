// SPDX-License-Identifier: GPL-2.0

//! Counts the calls inside a KMD, and decides when it may be stopped (GPU-101).
//!
//! `kernel::revocable::Revocable` cannot be used here. It holds the RCU read lock during an access,
//! so nothing may sleep. It also drops what it revokes, although that has to destroy what it made
//! first. Here each call counts itself in. Stopping refuses new calls and waits until the last one
//! is out. Destroys pass at any time, except while StopDevice runs:
//!
//! ```text
//! OPEN --close--> CLOSED --last one out--> STOPPING --stopped--> STOPPED
//!  calls           destroys, paging        nobody inside          only destroys
//! ```
//!
//! A call that is inside may enter again for a destroy: the gate does not become STOPPING while it
//! is inside.
//!
//! Paging passes like a destroy, and is refused only when the gate is STOPPED. Who changes page
//! tables frees memory afterwards, and engines may use that until StopDevice has returned: a call
//! that is refused earlier would say nothing about them.
//!
//! To lockdep the gates are one read-write lock: a call tries to take it for reading, a destroy
//! takes it for reading, which also a reader may, and closing takes it for writing until the gate
//! is STOPPED. So a kernel with lockdep reports who stops a KMD, or destroys in StopDevice, where
//! that could wait for itself: even if it does not at that moment.

use super::types::{
    KmdError,
    KmdResult, //
};
use crate::platform::{
    self,
    Completion,
    GateHeld,
    Word32, //
};

const CLOSED: u32 = 1 << 31;
const STOPPING: u32 = 1 << 30;
const STOPPED: u32 = 1 << 29;

/// The gate of one KMD.
pub struct Gate {
    /// One of the bits above, or none for OPEN, and how many are inside.
    state: Word32,
    /// The gate is STOPPING.
    drained: Completion,
    /// The gate is STOPPED.
    stopped: Completion,
}

/// A call that is inside. Dropping it leaves.
pub struct Inside<'a> {
    gate: &'a Gate,
    _held: GateHeld,
}

/// Nobody is inside a KMD that may be stopped now. Dropping it says that this is done.
pub struct Closed<'a> {
    gate: &'a Gate,
    _held: GateHeld,
}

impl Gate {
    /// An open gate; `None` if there is no memory.
    pub fn new() -> Option<Self> {
        Some(Self {
            state: platform::word32(0),
            drained: platform::completion()?,
            stopped: platform::completion()?,
        })
    }

    /// Enters for a call; DeviceRemoved once the gate was closed.
    pub fn enter(&self) -> KmdResult<Inside<'_>> {
        self.change(|state| (state & (CLOSED | STOPPING | STOPPED) == 0).then(|| count(state)))
            .map(|_| Inside {
                gate: self,
                _held: platform::gate_entered(false),
            })
            .ok_or(KmdError::DeviceRemoved)
    }

    /// Enters for a destroy. Waits while the KMD is being stopped.
    ///
    /// Context: may sleep.
    pub fn enter_to_destroy(&self) -> Inside<'_> {
        let held = platform::gate_entered(true);

        while self
            .change(|state| (state & STOPPING == 0).then(|| count(state)))
            .is_none()
        {
            self.stopped.wait_for_completion();
        }
        Inside {
            gate: self,
            _held: held,
        }
    }

    /// Enters for paging. Waits while the KMD is being stopped; `None` once that is done, so that
    /// nothing runs any more.
    ///
    /// Context: may sleep.
    pub fn enter_to_page(&self) -> Option<Inside<'_>> {
        let held = platform::gate_entered(true);

        loop {
            let entered =
                self.change(|state| (state & (STOPPING | STOPPED) == 0).then(|| count(state)));

            if entered.is_some() {
                return Some(Inside {
                    gate: self,
                    _held: held,
                });
            }
            if platform::load32_acquire(&self.state) & STOPPED != 0 {
                return None;
            }
            self.stopped.wait_for_completion();
        }
    }

    /// Refuses new calls and returns when no call is inside; `None` if another call has done so.
    ///
    /// Context: may sleep; not inside.
    pub fn close(&self) -> Option<Closed<'_>> {
        let closed = self.change(|state| match state {
            0 => Some(STOPPING),
            _ if state & (CLOSED | STOPPING | STOPPED) == 0 => Some(state | CLOSED),
            _ => None,
        })?;
        let held = platform::gate_closed();

        if closed != STOPPING {
            self.drained.wait_for_completion();
        }
        Some(Closed {
            gate: self,
            _held: held,
        })
    }

    /// Whether the gate is still open.
    pub fn is_open(&self) -> bool {
        platform::load32_acquire(&self.state) & (CLOSED | STOPPING | STOPPED) == 0
    }

    fn leave(&self) {
        // OVERFLOW: this one is counted.
        let state = self.change(|state| match state.wrapping_sub(1) {
            CLOSED => Some(STOPPING),
            fewer => Some(fewer),
        });

        if state == Some(STOPPING) {
            self.drained.complete_all();
        }
    }

    /// Replaces the state by what `next` makes of it, and returns that.
    fn change(&self, next: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        loop {
            let old = platform::load32_acquire(&self.state);
            let new = next(old)?;

            if platform::cmpxchg(&self.state, old, new) {
                return Some(new);
            }
        }
    }
}

/// One more. OVERFLOW: bounded by the number of threads, which is below the lowest bit above.
fn count(state: u32) -> u32 {
    state.wrapping_add(1)
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.gate.leave();
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let _state = self.gate.change(|_| Some(STOPPED));

        self.gate.stopped.complete_all();
    }
}
