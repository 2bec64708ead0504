// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of allocations (RES-86): a reference to its container like any other, in the form that
//! other drivers and programs understand.
//!
//! No fence is ever put into their reservation object, because those that we have may never signal
//! (RES-88).

use super::{
    census::{
        Member,
        DMABUFS, //
    },
    object::Strong,
    storage::Storage, //
};
use crate::{
    logic::handle,
    sys::{
        dma_export::{
            Buffer,
            Slots, //
        },
        object_file::PendingFd,
        pages::PageSource, //
    },
    uapi::status::Outcome, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What one dma-buf owns.
pub(crate) struct Export {
    storage: Arc<Storage>,
    _strong: Strong,
    _member: Member,
}

impl Export {
    /// The bytes.
    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }
}

impl Buffer for Export {
    fn pages(&self) -> &dyn PageSource {
        &*self.storage
    }
}

/// The dma-bufs of one storage: at most one for writing and one for reading only. Allocations that
/// were made of the same storage, by importing a dma-buf of ours, have them in common.
pub(crate) struct Exports(Arc<Slots>);

impl Exports {
    /// None yet.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Slots::new()?))
    }

    /// A descriptor of the dma-buf of `storage`; `keep` makes the reference that a new one holds.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn export(
        storage: &Arc<Storage>,
        read_only: bool,
        keep: impl FnOnce() -> Outcome<Strong>,
    ) -> Outcome<PendingFd> {
        let make = || -> Outcome<Export> {
            Ok(Export {
                storage: storage.clone(),
                _strong: keep()?,
                _member: DMABUFS.enter(),
            })
        };
        let file = storage.exports().0.export(!read_only, make)?;

        Ok(PendingFd::of_file(file, handle::LAST_FD, true)?)
    }

    /// Whether there is a dma-buf.
    pub(crate) fn is_exported(&self) -> bool {
        self.0.any()
    }
}
