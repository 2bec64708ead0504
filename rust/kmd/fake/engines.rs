// SPDX-License-Identifier: GPL-2.0

//! The engines of a double, so that a test can let them hang, and let resets fail (GPU-98).

use crate::{
    ddi::{
        recovery::EngineStatus,
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    platform::{
        self,
        ShortLock, //
    }, //
};

/// How the engines behave. The test changes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// They do not obey PreemptCommand, until the next reset that succeeds.
    pub hang: bool,
    /// They have done all that they were given.
    pub is_idle: bool,
    /// ResetHwEngine fails.
    pub engine_reset_fails: bool,
    /// ResetFromTimeout fails.
    pub adapter_reset_fails: bool,
    /// RestartFromTimeout fails.
    pub restart_fails: bool,
}

struct State {
    how: How,
    obeyed: u64,
}

/// The engines of one double, which behave alike.
pub struct Engines {
    state: ShortLock<State>,
}

impl Engines {
    /// Engines that obey; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        let state = State {
            how: How::default(),
            obeyed: 0,
        };

        Some(Self {
            state: platform::short_lock!(state, "fake::Engines::state")?,
        })
    }

    /// They behave like this from now on.
    pub fn set(&self, how: How) {
        self.state.lock().how = how;
    }

    pub(super) fn preempt(&self, _node: u32, id: u64) {
        let mut state = self.state.lock();

        if !state.how.hang {
            state.obeyed = id;
        }
    }

    pub(super) fn status(&self, _node: u32) -> EngineStatus {
        let state = self.state.lock();

        EngineStatus {
            preempted: state.obeyed,
            is_idle: state.how.is_idle,
            is_stopped: false,
        }
    }

    pub(super) fn reset(&self, _node: u32) -> KmdResult {
        self.end_hang(|how| how.engine_reset_fails)
    }

    pub(super) fn reset_all(&self) -> KmdResult {
        self.end_hang(|how| how.adapter_reset_fails)
    }

    pub(super) fn restart(&self) -> KmdResult {
        self.end_hang(|how| how.restart_fails)
    }

    fn end_hang(&self, fails: fn(&How) -> bool) -> KmdResult {
        let mut state = self.state.lock();

        if fails(&state.how) {
            return Err(KmdError::DeviceRemoved);
        }
        state.how.hang = false;
        Ok(())
    }
}
