// SPDX-License-Identifier: GPL-2.0

//! The CPU mapping of an opened allocation.

use super::storage::Storage;
use crate::uapi::status::{
    Outcome,
    Status, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// See the module.
pub(crate) struct Window {}

impl Window {
    /// No mapping yet.
    pub(crate) fn new(_storage: Arc<Storage>, _write: bool) -> Outcome<Arc<Self>> {
        Ok(Arc::new(Self {}, GFP_KERNEL_ACCOUNT)?)
    }

    /// Maps.
    pub(crate) fn lock(&self) -> Outcome<usize> {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// Unmaps.
    pub(crate) fn unlock(&self) -> Outcome {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// The end.
    pub(crate) fn revoke(&self) {}
}
