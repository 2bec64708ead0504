// SPDX-License-Identifier: GPL-2.0

//! The bytes of an allocation.

use crate::uapi::status::{Outcome, Status};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    sync::Arc, //
};

/// See the module.
pub(crate) struct Storage {}

impl Storage {
    /// New zeroed memory of this many bytes.
    pub(crate) fn system(_size: u64) -> Outcome<Arc<Self>> {
        Ok(Arc::new(Self {}, GFP_KERNEL_ACCOUNT)?)
    }

    /// A file.
    pub(crate) fn section(
        _importer: &Importer,
        _fd: u32,
        _size: u64,
        _write: bool,
    ) -> Outcome<Arc<Self>> {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// Pinned memory of the caller.
    pub(crate) fn user(_addr: u64, _size: u64, _write: bool) -> Outcome<Arc<Self>> {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// Prints.
    pub(crate) fn show(&self, _m: &SeqFile) {}
}

pub(crate) struct Importer;
