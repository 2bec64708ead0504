// SPDX-License-Identifier: GPL-2.0

//! What a context and its queues have in common.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

/// What a context and its queues have in common.
pub(crate) struct ContextState {
    /// The priority among all contexts, as the client has set it.
    priority: Atomic<i32>,
    /// A reset has hit it.
    is_invalidated: Atomic<bool>,
}

impl ContextState {
    /// That of a new context.
    pub(in crate::dxgk) fn new() -> Result<Arc<Self>> {
        let state = Self {
            priority: Atomic::new(0),
            is_invalidated: Atomic::new(false),
        };

        Ok(Arc::new(state, GFP_KERNEL_ACCOUNT)?)
    }

    /// The priority among all contexts, as the client has set it.
    pub(in crate::dxgk) fn priority(&self) -> i32 {
        self.priority.load(Relaxed)
    }

    /// Sets the priority that is shown.
    pub(in crate::dxgk) fn set_priority(&self, priority: i32) {
        self.priority.store(priority, Relaxed);
    }

    /// A reset has hit it (InvalidateHwContext). In any context; touches atomics only.
    pub(super) fn invalidate(&self) {
        self.is_invalidated.store(true, Release);
    }

    /// Whether a reset has hit it.
    pub(in crate::dxgk) fn is_invalidated(&self) -> bool {
        self.is_invalidated.load(Acquire)
    }
}
