// SPDX-License-Identifier: GPL-2.0

//! dma-bufs of allocations (RES-86). A dma-buf is a strong reference to the resource like any
//! other, in the form that other drivers and programs understand.
//!
//! No fence is ever put into their reservation object, because ours may never signal (RES-88).

use super::backing::Storage;
use crate::dxgk::{
    object::Strong,
    stats::{
        Counted,
        DMABUFS, //
    }, //
};
use crate::{
    error::{
        DxgError,
        DxgResult, //
    },
    logic::handle,
    sys::{
        file::object_file::PendingFd,
        mem::{
            dma_export::{
                Buffer,
                Slots, //
            },
            pages::Whole, //
        }, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// What one dma-buf owns.
pub(crate) struct Export {
    storage: Arc<Storage>,
    pages: Whole,
    _strong: Counted<Strong, DMABUFS>,
}

impl Export {
    /// The bytes.
    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }
}

impl Buffer for Export {
    fn pages(&self) -> &Whole {
        &self.pages
    }
}

/// The dma-bufs of one storage: at most one for writing and one for reading only. Allocations with
/// the same storage, by importing a dma-buf of ours, share them.
pub(crate) struct Exports(Arc<Slots>);

impl Exports {
    /// None yet.
    pub(crate) fn new() -> Result<Self, AllocError> {
        Ok(Self(Slots::new()?))
    }

    /// A descriptor of the dma-buf of `storage`; `keep` makes the strong reference that a new one
    /// holds. For a dma-buf of another driver it is the imported one, which holds nothing of ours.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn export(
        storage: &Arc<Storage>,
        read_only: bool,
        keep: impl FnOnce() -> DxgResult<Strong>,
    ) -> DxgResult<PendingFd> {
        if let Some(original) = storage.original(read_only)? {
            return Ok(PendingFd::of_file(original, handle::LAST_FD, true)?);
        }

        let make = || -> DxgResult<Export> {
            Ok(Export {
                storage: storage.clone(),
                pages: Whole::new(storage.clone()).map_err(DxgError::from_errno)?,
                _strong: Counted::new(keep()?),
            })
        };
        let file = storage
            .exports()
            .0
            .export(!read_only, make, DxgError::from_errno)?;

        Ok(PendingFd::of_file(file, handle::LAST_FD, true)?)
    }

    /// Whether there is a dma-buf.
    pub(crate) fn is_exported(&self) -> bool {
        self.0.any()
    }
}
