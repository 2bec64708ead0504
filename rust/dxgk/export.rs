// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of an allocation.

use super::storage::Storage;
use crate::{
    sys::object_file::PendingFd,
    uapi::status::{
        Outcome,
        Status, //
    }, //
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// See the module.
#[pin_data]
pub(crate) struct Exports<K> {
    _keep: PhantomData<K>,
}

impl<K: Send + Sync + 'static> Exports<K> {
    /// None yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self { _keep: PhantomData })
    }

    /// A descriptor of the dma-buf.
    pub(crate) fn export(
        self: &Arc<Self>,
        _storage: &Arc<Storage>,
        _read_only: bool,
        _keep: impl FnOnce() -> Outcome<K>,
    ) -> Outcome<PendingFd> {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// Whether there is a dma-buf.
    pub(crate) fn is_exported(&self) -> bool {
        false
    }
}
