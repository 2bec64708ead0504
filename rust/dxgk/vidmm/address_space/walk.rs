// SPDX-License-Identifier: GPL-2.0

//! The way of an engine through the page tables, as the OS part has them, for those who look for
//! the reason of a page fault.

use super::{
    state::State,
    AddressSpace, //
};
use crate::{
    ddi::{
        caps::MAX_PAGE_TABLE_LEVELS,
        paging::{
            PageSize,
            PageTableEntry, //
        }, //
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

/// What an engine finds in one table.
#[derive(Clone, Copy)]
pub(in crate::dxgk) struct Step {
    /// Of the table; 0 has the pages.
    pub(in crate::dxgk) level: u32,
    /// Which entry it is.
    pub(in crate::dxgk) index: u32,
    /// What is there; `None` if that is being changed.
    pub(in crate::dxgk) entry: Option<PageTableEntry>,
}

/// The way of an engine, from the root down.
pub(in crate::dxgk) struct Walk {
    steps: [Option<Step>; MAX_PAGE_TABLE_LEVELS],
    count: usize,
}

impl Walk {
    /// Its steps; none if the page tables do not reach the address.
    pub(in crate::dxgk) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flatten()
    }

    fn add(&mut self, step: Step) {
        if let Some(place) = self.steps.get_mut(self.count) {
            *place = Some(step);
            // OVERFLOW: there are a few places.
            self.count = self.count.wrapping_add(1);
        }
    }
}

impl AddressSpace {
    /// How an engine comes to this address; `None` if somebody changes what is there just now.
    ///
    /// Context: may sleep, but waits for nobody.
    pub(in crate::dxgk) fn walk(&self, address: u64) -> Option<Walk> {
        let state = self.state.try_lock()?;
        let page = address / PAGE;
        let mut walk = Walk {
            steps: [None; MAX_PAGE_TABLE_LEVELS],
            count: 0,
        };

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
        let Some(memory) = self.openings.get(&mapping.opening) else {
            return Some(PageTableEntry::Invalid);
        };
        let further = page.saturating_sub(stretch.first);
        let mapping = Mapping {
            offset: mapping.offset.saturating_add(further),
            ..mapping
        };

        memory.try_entry(&mapping)
    }
}
