// SPDX-License-Identifier: GPL-2.0

//! Identity of the local handle through which a keyed mutex was acquired. Destroying that handle
//! abandons the mutex (RES-99).
//!
//! An owner refers to it, so it is not reused while a mutex remembers it.

use crate::{
    logic::access::resource,
    sys::task::caller::ProcessKey, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// One local handle of a keyed mutex.
pub(crate) struct OpenKeyedMutex {
    /// The process, by the key of its identity. A process empties its handle table before it goes,
    /// so equal keys are the same process until the handle is closed.
    process: ProcessKey,
    /// Whether it may replace the private data of the mutex (RES-64).
    pub(crate) may_write: bool,
    /// The handle was destroyed. LOCK: changed under the lock of the mutex.
    closed: Atomic<bool>,
}

impl OpenKeyedMutex {
    /// An open handle in this process, with this access.
    pub(crate) fn new(process: ProcessKey, access: u32) -> Result<Arc<Self>, AllocError> {
        Arc::new(
            Self {
                process,
                may_write: access & resource::WRITE != 0,
                closed: Atomic::new(false),
            },
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether both belong to the same process.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.process == other.process
    }

    /// The handle is gone.
    pub(in crate::dxgk) fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Whether the handle is gone. Exact under the lock of the mutex.
    pub(in crate::dxgk) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}
