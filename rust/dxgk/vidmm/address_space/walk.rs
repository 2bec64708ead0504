// SPDX-License-Identifier: GPL-2.0

//! The way of an engine through the page tables of an address space.

use super::{
    state::State,
    AddressSpace, //
};
use crate::{
    ddi::paging::{
        PageSize,
        PageTableEntry, //
    },
    dxgk::vidmm::walk::{
        Step,
        Walk, //
    },
    logic::{
        gpu_ranges::{
            Mapping,
            Ranges,
            What,
            PAGE, //
        },
        table_tree::Visit, //
    }, //
};

impl AddressSpace {
    /// How an engine comes to this address; `None` if somebody changes what is there just now.
    ///
    /// Context: may sleep, but waits for nobody.
    pub(in crate::dxgk) fn walk(&self, address: u64) -> Option<Walk> {
        let state = self.state.try_lock()?;
        let page = address / PAGE;
        let mut walk = Walk::default();

        state.tables.walk(page, |visit| match visit {
            Visit::Above {
                level,
                index,
                entry,
            } => walk.add(Step {
                level,
                index,
                entry: Some(entry),
            }),
            Visit::Leaf { index, page_size } => walk.add(Step {
                level: 0,
                index,
                entry: state.entry_of(page, page_size),
            }),
        });
        Some(walk)
    }
}

impl State {
    /// The entry that page tables have for `page`, in a table with pages of this size; `None` if
    /// the placement of what is there is being changed.
    fn entry_of(&self, page: u64, size: PageSize) -> Option<PageTableEntry> {
        if let Some(entry) = self.fences.entry_of(page) {
            return Some(entry);
        }

        // The first page of an entry.
        let page = page.checked_div(size.pages())?.checked_mul(size.pages())?;
        let stretch = self
            .ranges
            .at_or_before(page)
            .filter(|one| page < one.end());
        let Some(stretch) = stretch else {
            return Some(PageTableEntry::Invalid);
        };
        let mapping = match stretch.range.what {
            What::NoAccess => return Some(PageTableEntry::Invalid),
            What::Zero => return Some(PageTableEntry::Zero),
            What::Mapped(mapping) => mapping,
        };
        let further = page.saturating_sub(stretch.first);
        let mapping = Mapping {
            offset: mapping.offset.saturating_add(further),
            ..mapping
        };

        if let Some(made) = self.context_pages.get(&mapping.opening) {
            return Some(made.entry(&mapping));
        }

        let Some(memory) = self.openings.get(&mapping.opening) else {
            return Some(PageTableEntry::Invalid);
        };

        memory.try_entry(&mapping)
    }
}
