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
//! A reset of the adapter is the same for a while, and the gate is OPEN again afterwards:
//!
//! ```text
//! OPEN --begin_reset--> DRAINING --last one out--> RESETTING --dropped--> OPEN
//!  calls                 destroys, paging           queries
//! ```
//!
//! What is refused then would have failed: all devices are in error after it. Queries pass always,
//! but not when the KMD is being stopped (those marked with (r) in gpu.md section 10.2).
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
    Arrivals,
    Completion,
    GateHeld,
    Word32, //
};

const CLOSED: u32 = 1 << 31;
const STOPPING: u32 = 1 << 30;
const STOPPED: u32 = 1 << 29;
const DRAINING: u32 = 1 << 28;
const RESETTING: u32 = 1 << 27;

/// The gate is not open any more.
const ANY_STOP: u32 = CLOSED | STOPPING | STOPPED;
/// There is a reset.
const ANY_RESET: u32 = DRAINING | RESETTING;

/// The gate of one KMD.
pub struct Gate {
    /// One of the bits above, or none for OPEN, and how many are inside.
    state: Word32,
    /// The gate is STOPPING.
    drained: Completion,
    /// The gate is STOPPED.
    stopped: Completion,
    /// How often the gate became RESETTING after others had left.
    drained_to_reset: Arrivals,
    /// How many resets are over.
    resets: Arrivals,
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

/// Nobody but queries is inside a KMD that may be reset now. Dropping it says that this is done.
pub struct Resetting<'a> {
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
            drained_to_reset: platform::arrivals()?,
            resets: platform::arrivals()?,
        })
    }

    /// Enters for a call; DeviceRemoved once the gate was closed, and during a reset.
    pub fn enter(&self) -> KmdResult<Inside<'_>> {
        self.enter_unless(ANY_STOP | ANY_RESET)
    }

    /// Enters for a query; DeviceRemoved once the gate was closed.
    pub fn enter_to_query(&self) -> KmdResult<Inside<'_>> {
        self.enter_unless(ANY_STOP)
    }

    fn enter_unless(&self, refused: u32) -> KmdResult<Inside<'_>> {
        self.change(|state| (state & refused == 0).then(|| count(state)))
            .map(|_| Inside {
                gate: self,
                _held: platform::gate_entered(false),
            })
            .ok_or(KmdError::DeviceRemoved)
    }

    /// Enters for a destroy. Waits while the KMD is being stopped or reset.
    ///
    /// Context: may sleep.
    pub fn enter_to_destroy(&self) -> Inside<'_> {
        let held = platform::gate_entered(true);

        while self
            .change(|state| (state & (STOPPING | RESETTING) == 0).then(|| count(state)))
            .is_none()
        {
            self.wait_for_reset();
            if platform::load32_acquire(&self.state) & STOPPING != 0 {
                self.stopped.wait_for_completion();
            }
        }
        Inside {
            gate: self,
            _held: held,
        }
    }

    /// Enters for paging. Waits while the KMD is being stopped or reset; `None` once it is stopped,
    /// so that nothing runs any more.
    ///
    /// Context: may sleep.
    pub fn enter_to_page(&self) -> Option<Inside<'_>> {
        let held = platform::gate_entered(true);

        loop {
            let entered = self.change(|state| {
                (state & (STOPPING | STOPPED | RESETTING) == 0).then(|| count(state))
            });

            if entered.is_some() {
                return Some(Inside {
                    gate: self,
                    _held: held,
                });
            }
            self.wait_for_reset();

            let state = platform::load32_acquire(&self.state);

            if state & STOPPED != 0 {
                return None;
            }
            if state & STOPPING != 0 {
                self.stopped.wait_for_completion();
            }
        }
    }

    /// Refuses new calls and returns when only queries are inside; `None` if the gate was closed.
    /// One reset at a time.
    ///
    /// Context: may sleep; not inside.
    pub fn begin_reset(&self) -> Option<Resetting<'_>> {
        let before = self.drained_to_reset.count();
        let state = self.change(|state| match state {
            0 => Some(RESETTING),
            _ if state & (ANY_STOP | ANY_RESET) == 0 => Some(state | DRAINING),
            _ => None,
        })?;
        let held = platform::gate_closed();

        if state != RESETTING {
            // OVERFLOW: it counts modulo 2^32.
            self.drained_to_reset.wait_until(before.wrapping_add(1));
        }
        Some(Resetting {
            gate: self,
            _held: held,
        })
    }

    /// Returns when there is no reset that there was when this was called.
    fn wait_for_reset(&self) {
        let before = self.resets.count();

        if platform::load32_acquire(&self.state) & ANY_RESET != 0 {
            // OVERFLOW: as above.
            self.resets.wait_until(before.wrapping_add(1));
        }
    }

    /// Refuses new calls and returns when no call is inside; `None` if another call has done so.
    ///
    /// Context: may sleep; not inside.
    pub fn close(&self) -> Option<Closed<'_>> {
        let closed = loop {
            let closed = self.change(|state| match state {
                0 => Some(STOPPING),
                _ if state & (ANY_STOP | ANY_RESET) == 0 => Some(state | CLOSED),
                _ => None,
            });

            match closed {
                Some(closed) => break closed,
                None if !self.is_open() => return None,
                None => self.wait_for_reset(),
            }
        };
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
        platform::load32_acquire(&self.state) & ANY_STOP == 0
    }

    fn leave(&self) {
        let mut fewer = 0;

        self.change(|state| {
            // OVERFLOW: this one is counted.
            fewer = state.wrapping_sub(1);
            Some(match fewer {
                CLOSED => STOPPING,
                DRAINING => RESETTING,
                fewer => fewer,
            })
        });
        match fewer {
            CLOSED => self.drained.complete_all(),
            DRAINING => self.drained_to_reset.arrive(),
            _ => {}
        }
    }

    /// Replaces the state by what `next` makes of it, and returns that.
    fn change(&self, mut next: impl FnMut(u32) -> Option<u32>) -> Option<u32> {
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

impl Drop for Resetting<'_> {
    fn drop(&mut self) {
        let _state = self.gate.change(|state| Some(state & !RESETTING));

        self.gate.resets.arrive();
    }
}
