// SPDX-License-Identifier: GPL-2.0

//! The scratch area of a paging process (MEM-61, MEM-66, MEM-67): GPU addresses that stand for the
//! memory of one batch after the other.
//!
//! A batch takes pages behind those of the batch before it, and begins again at the first one. Only
//! one batch is there at a time, so that no two have a page in common; what an older one had there
//! is overwritten, and flushed, before a newer one uses it.

/// How many pages it has: 16 MiB.
pub const PAGES: u64 = 4096;

/// Most pages of one part of a batch.
pub const MOST: u64 = 512;

/// The scratch area, and where the next batch begins in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scratch {
    next: u64,
}

impl Scratch {
    /// How many of `pages` one batch may have, which needs `parts` addresses for each, while the
    /// area has so many pages. At least one.
    pub fn chunk(area: u64, parts: u64, pages: u64) -> u64 {
        let room = area.checked_div(parts).unwrap_or(0);

        pages.min(MOST).min(room).max(1)
    }

    /// The first page of a batch of so many, which the area has.
    pub fn take(&mut self, area: u64, pages: u64) -> u64 {
        let end = self.next.saturating_add(pages);
        let (first, end) = match end <= area {
            true => (self.next, end),
            false => (0, pages),
        };

        self.next = end;
        first
    }
}
