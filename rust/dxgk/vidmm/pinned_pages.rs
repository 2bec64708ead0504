// SPDX-License-Identifier: GPL-2.0

//! Pages of system memory that stay where they are for GPUs: the operation log has one PIN and one
//! UNPIN of each.

use super::paging_log::LogAbout;
use crate::{
    dxgk::memory::storage::{
        PinnedStorage,
        Storage, //
    },
    error::{
        DxgError,
        DxgResult, //
    },
    logic::paging_log::{
        Action,
        Kind, //
    },
    sys::{
        mem::pages::PageSource,
        task::sleep,
        work, //
    }, //
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
        // What is not pinned may be let go of.
        let pinned = storage.pin()?;

        if !storage.is_imported() {
            take_pages(&pinned)?;
        }

        let pages = Self {
            pinned,
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

/// Takes all pages of a memory. Those of system memory stay (MEM-108). That of a segment takes them
/// of the machine at their first use, and keeps them (MEM-110).
///
/// Context: a system call that is charged.
pub(super) fn take_pages(pages: &dyn PageSource) -> DxgResult {
    for index in 0..pages.count() {
        if index % 512 == 0 {
            if sleep::is_killed() {
                return Err(DxgError::Interrupted);
            }
            work::breathe();
        }
        pages.page(index).map_err(DxgError::from_errno)?;
    }
    Ok(())
}
