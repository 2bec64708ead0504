// SPDX-License-Identifier: GPL-2.0

//! Pages of system memory that stay where they are for GPUs: the operation log has one PIN and one
//! UNPIN of each.

use super::{
    paging_log::LogAbout,
    placement::take_pages, //
};
use crate::{
    dxgk::memory::storage::{
        PinnedStorage,
        Storage, //
    },
    error::DxgResult,
    logic::paging_log::{
        Action,
        Kind, //
    },
    sys::mem::pages::PageSource, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// All pages of a storage, which are there and stay where they are.
pub(super) struct PinnedPages {
    pinned: PinnedStorage,
    log: LogAbout,
}

impl PinnedPages {
    /// Takes the pages, and keeps them where they are.
    ///
    /// Context: a system call that is charged, no locks held but `AllocationMemory::turn`.
    pub(super) fn new(storage: &Arc<Storage>, log: &LogAbout) -> DxgResult<Arc<Self>> {
        if !storage.is_imported() {
            take_pages(&*storage.pages())?;
        }

        let pages = Self {
            pinned: storage.pin()?,
            log: log.clone(),
        };

        pages.record(Kind::Pin);
        Ok(Arc::new(pages, GFP_KERNEL_ACCOUNT)?)
    }

    /// The pages themselves.
    pub(super) fn source(&self) -> &dyn PageSource {
        &self.pinned
    }

    /// Lets the bytes move from here on. The pages are used no longer.
    pub(super) fn unpin(&self) {
        if self.pinned.unpin() {
            self.record(Kind::Unpin);
        }
    }

    fn record(&self, kind: Kind) {
        self.log.write(|| Action {
            kind,
            // CAST: a usize fits 64 bits.
            count: self.pinned.count() as u64,
            ..Action::default()
        });
    }
}

impl Drop for PinnedPages {
    fn drop(&mut self) {
        self.unpin();
    }
}
