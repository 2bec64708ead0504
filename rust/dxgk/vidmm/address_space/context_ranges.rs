// SPDX-License-Identifier: GPL-2.0

//! What the KMD shows a process of context allocations (MEM-85). These ranges are the KMD's:
//! clients can neither map nor free there (MEM-86).

use super::AddressSpace;
use crate::{
    ddi::paging::PageSize,
    dxgk::vidmm::context_pages::ContextPages,
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::{
            self,
            Mapping,
            Owner,
            Range,
            Reservation,
            What,
            PAGE, //
        },
        gpu_va_rules::{
            Map,
            Protection, //
        }, //
    },
    sys::alloc::tree_node, //
};
use kernel::sync::Arc;

impl AddressSpace {
    /// Shows pages of the context allocation with this number, where nothing is. Returns the
    /// address.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn map_context_pages(
        &self,
        map: &Map,
        allocation: u64,
        pages: &Arc<ContextPages>,
    ) -> DxgResult<u64> {
        let Protection::Pages { write, execute } = map.protection else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        // Dropped after the lock if it is not used.
        let mut node = Some(tree_node(allocation, pages.clone())?);
        let mut state = self.state.lock();
        let first = state.find(map.position, map.pages)?;
        let end = first.saturating_add(map.pages);

        if !gpu_ranges::is_free(&state.ranges, first, end) {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let id = state.reservations.wrapping_add(1);
        let range = Range {
            reservation: Some(Reservation {
                id,
                zero: false,
                owner: Owner::Kmd { is_shared: false },
            }),
            what: What::Mapped(Mapping {
                opening: allocation,
                offset: map.offset,
                write,
                execute,
                driver_protection: map.driver_protection,
            }),
        };

        // Without memory for the rest it shows nothing yet, and goes at the end.
        if state.context_pages.get(&allocation).is_none() {
            if let Some(node) = node.take() {
                let _nothing = state.context_pages.insert(node);
            }
        }

        let made = state.change(first, end, Some(PageSize::Kib4), |_, further| {
            Some(range.at(further))
        });

        state.tables.finish(first, end);
        made?;
        state.reservations = id;
        state.found(map.position, first, end);
        drop(state);
        drop(node);
        Ok(first.saturating_mul(PAGE))
    }

    /// Shows nothing of a context allocation any more. On return no engine uses its pages by
    /// addresses of this space.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn end_context_pages(&self, allocation: u64) {
        let mut state = self.state.lock();
        let mut at = 0;

        while let Some(stretch) = state.ranges.shown_by(allocation, at) {
            let (first, end) = (stretch.first, stretch.end());

            // It is a whole stretch that is there, so that nothing is split.
            state.change_with(first, end, &mut core::iter::empty(), false, |_, _| None);
            state.freed(first, end);
            state.tables.finish(first, end);
            at = end;
        }

        let node = state.context_pages.remove_node(&allocation);

        drop(state);
        drop(node);
    }
}
