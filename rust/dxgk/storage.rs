// SPDX-License-Identifier: GPL-2.0

//! The bytes of an allocation.

use kernel::{
    prelude::*,
    sync::Arc, //
};

/// See the module.
pub(crate) struct Storage {}

impl Storage {
    /// New zeroed memory of this many bytes.
    pub(crate) fn system(_size: u64) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {}, GFP_KERNEL_ACCOUNT)?)
    }
}
