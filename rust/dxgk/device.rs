// SPDX-License-Identifier: GPL-2.0

//! A device: one client of one adapter. It is the parent of contexts and synchronisation objects:
//! their handles are destroyed with its handle (RES-31).

use super::{
    adapter::Adapter,
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

/// A device.
pub(crate) struct Device {
    identified: ObjectId,
    /// The adapter it is on.
    pub(crate) adapter: Arc<Adapter>,
}

impl Device {
    /// A new device on `adapter`.
    pub(crate) fn new(adapter: Arc<Adapter>) -> Result<Arc<Self>, AllocError> {
        Ok(Arc::new(
            Self {
                identified: ObjectId::new(Kind::Device),
                adapter,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// The device's id.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }
}
