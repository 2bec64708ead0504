// SPDX-License-Identifier: GPL-2.0

//! What fences ask of a GPU address space: to show the pages of their values.

use super::{
    address_space::AddressSpace,
    fence_page::FencePage,
    fence_pages::{
        ShownPage,
        ShownPages, //
    }, //
};
use crate::error::DxgResult;

impl AddressSpace {
    /// Maps a page of fence values. Engines may store to it if `stores`, which is as
    /// [`AddressSpace::allow_stores`].
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn show_page(
        &self,
        page: &FencePage,
        stores: bool,
    ) -> DxgResult<ShownPage> {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.show(tables, page, stores)
    }

    /// Engines may store to a page, until as many [`AddressSpace::forbid_stores`] as there were of
    /// this.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn allow_stores(&self, shown: ShownPage) {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.allow(tables, shown);
    }

    /// Ends one [`AddressSpace::allow_stores`]. On return from the last one engines do not store.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn forbid_stores(&self, shown: ShownPage) {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.forbid(tables, shown);
    }

    /// Unmaps a page. On return no engine uses the address.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn hide_page(&self, shown: ShownPage) {
        let gone = {
            let mut state = self.state.lock();
            let (fences, tables) = state.fences();

            fences.hide(tables, shown)
        };

        drop(gone);
    }

    /// Maps pages beside each other, to which engines may store: as many as there are of `pages`,
    /// which is a power of two, 16 at most.
    ///
    /// Context: a system call, no locks held.
    pub(in crate::dxgk) fn show_pages<'a>(
        &self,
        pages: impl ExactSizeIterator<Item = &'a FencePage>,
    ) -> DxgResult<ShownPages> {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.show_pages(tables, pages)
    }

    /// Unmaps pages beside each other. On return no engine uses the addresses.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn hide_pages(&self, shown: ShownPages) {
        let gone = {
            let mut state = self.state.lock();
            let (fences, tables) = state.fences();

            fences.hide_pages(tables, shown)
        };

        drop(gone);
    }
}
