// SPDX-License-Identifier: GPL-2.0

//! A context: a sequence of work for one engine node of a device.

use super::{
    device::Device,
    stats::{
        Kind,
        ObjectId, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// How a context takes work. A handle of one kind is not accepted for the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheduling {
    /// Made by CreateContextVirtual: command buffers are submitted to the context itself.
    Packets,
    /// Made by CreateHwContext: command buffers are submitted to its HW queues.
    HwQueues,
}

/// A context.
pub(crate) struct Context {
    identified: ObjectId,
    /// Lives at least as long as its contexts.
    _device: Arc<Device>,
    /// How it takes work.
    pub(crate) scheduling: Scheduling,
}

impl Context {
    /// A new context of `device`.
    pub(crate) fn new(
        device: Arc<Device>,
        scheduling: Scheduling,
    ) -> Result<Arc<Self>, AllocError> {
        Ok(Arc::new(
            Self {
                identified: ObjectId::new(Kind::Context),
                _device: device,
                scheduling,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// The context's id.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }
}
