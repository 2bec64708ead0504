// SPDX-License-Identifier: GPL-2.0

//! Pages of system memory that the kernel keeps for a GPU, and that no process sees.

use super::{
    pages::{
        Frame,
        PageSource, //
    },
    value_page::ValuePage, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// Zeroed pages, charged to who has allocated them.
pub(crate) struct SystemPages(KVVec<ValuePage>);

impl SystemPages {
    /// So many.
    ///
    /// Context: may sleep.
    pub(crate) fn new(count: usize) -> Result<Self, AllocError> {
        let mut pages = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;

        for _ in 0..count {
            pages.push(ValuePage::new()?, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Self(pages))
    }
}

impl PageSource for SystemPages {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn page(&self, index: usize) -> Result<Frame<'_>> {
        self.present(index).ok_or(EINVAL)
    }

    fn present(&self, index: usize) -> Option<Frame<'_>> {
        self.0.get(index).map(ValuePage::frame)
    }

    fn taken(&self) -> usize {
        self.count()
    }
}
