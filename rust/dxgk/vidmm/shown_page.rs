// SPDX-License-Identifier: GPL-2.0

//! What fences ask of a GPU address space: to show the pages of their values.

use super::{
    address_space::AddressSpace,
    fence_pages::ShownPage, //
};
use crate::{
    error::DxgResult,
    sys::mem::value_page::ValuePage, //
};
use kernel::sync::Arc;

impl AddressSpace {
    /// Maps the page of a fence, or uses its mapping for one more; see [`FencePages`]. Engines may
    /// store to it if `stores`.
    ///
    /// Context: a system call, no locks held.
    ///
    /// [`FencePages`]: super::fence_pages::FencePages
    pub(in crate::dxgk) fn show_page(
        &self,
        page: &Arc<ValuePage>,
        stores: bool,
    ) -> DxgResult<ShownPage> {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.show(tables, page, stores)
    }

    /// One more opening of the fence lets engines store.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn allow_stores(&self, shown: ShownPage) {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.allow(tables, shown);
    }

    /// One opening less lets engines store. After the last one no engine does.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn forbid_stores(&self, shown: ShownPage) {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.forbid(tables, shown);
    }

    /// Ends what [`AddressSpace::show_page`] began; `stores` is what the last opening of the fence
    /// let engines do. On return no engine uses the address, if this was the last fence in the
    /// page.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn hide_page(&self, shown: ShownPage, stores: bool) {
        let gone = {
            let mut state = self.state.lock();
            let (fences, tables) = state.fences();

            fences.hide(tables, shown, stores)
        };

        drop(gone);
    }
}
