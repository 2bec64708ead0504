// SPDX-License-Identifier: GPL-2.0

//! The way of an engine through page tables, as the OS part has them, for those who look for the
//! reason of a page fault.

use crate::ddi::{
    caps::MAX_PAGE_TABLE_LEVELS,
    paging::PageTableEntry, //
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
#[derive(Default)]
pub(in crate::dxgk) struct Walk {
    steps: [Option<Step>; MAX_PAGE_TABLE_LEVELS],
    count: usize,
}

impl Walk {
    /// Its steps; none if the page tables do not reach the address.
    pub(in crate::dxgk) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flatten()
    }

    /// Adds the next one.
    pub(super) fn add(&mut self, step: Step) {
        if let Some(place) = self.steps.get_mut(self.count) {
            *place = Some(step);
            // OVERFLOW: there are a few places.
            self.count = self.count.wrapping_add(1);
        }
    }
}
