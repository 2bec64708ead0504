// SPDX-License-Identifier: GPL-2.0

//! One use of a page of fence values in a GPU address space.

use super::address_space::AddressSpace;
use crate::{
    error::DxgResult,
    logic::gpu_ranges::PAGE,
    sys::mem::value_page::ValuePage, //
};
use kernel::sync::Arc;

/// A page of fence values that an address space shows, until this is dropped.
pub(crate) struct ShownPage {
    space: Arc<AddressSpace>,
    page: Arc<ValuePage>,
    read_only: bool,
    /// Its number in the address space.
    number: u64,
}

impl ShownPage {
    /// Maps a page of fence values, or adds a user to its mapping. Engines may store to it unless
    /// it is `read_only`.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn new(
        space: &Arc<AddressSpace>,
        page: &Arc<ValuePage>,
        read_only: bool,
    ) -> DxgResult<Self> {
        let number = {
            let mut state = space.state.lock();
            let (fences, tables) = state.fences();

            fences.show(tables, page, read_only)?
        };

        Ok(Self {
            space: space.clone(),
            page: page.clone(),
            read_only,
            number,
        })
    }

    /// The GPU address of a byte of the page.
    pub(crate) fn address(&self, offset: u64) -> u64 {
        self.number.saturating_mul(PAGE).saturating_add(offset)
    }
}

impl Drop for ShownPage {
    /// On return no engine uses the address, if this was the last user of the page.
    ///
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let gone = {
            let mut state = self.space.state.lock();
            let (fences, tables) = state.fences();

            fences.hide(tables, &self.page, self.read_only)
        };

        drop(gone);
    }
}
