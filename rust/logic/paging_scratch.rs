// SPDX-License-Identifier: GPL-2.0

//! The addresses of a paging process (MEM-61, MEM-62), and its scratch area (MEM-66, MEM-67): GPU
//! addresses that stand for the memory of one batch after the other.
//!
//! The first table of level 0 is the system page table. It shows where the other ones are, so that
//! the paging node can write to those of the scratch area, which are behind it. At the end is the
//! permanent part: the paging buffer, and fences.
//!
//! A batch takes pages behind those of the batch before it, and begins again at the first one. Only
//! one batch is there at a time, so that no two have a page in common; what an older one had there
//! is overwritten, and flushed, before a newer one uses it.

use super::{
    gpu_ranges::{
        Bounds,
        PAGE, //
    },
    page_levels::Levels, //
};

/// The end of its addresses, in pages: 1 GiB.
const END: u64 = (1 << 30) / PAGE;

/// How many pages the permanent part has: 64 MiB.
const PERMANENT: u64 = (64 << 20) / PAGE;

/// How many pages of the scratch area are used where the processor writes its tables: 16 MiB.
const USED: u64 = 4096;

/// Fewest pages of a scratch area.
const LEAST: u64 = 64;

/// Most pages of one part of a batch.
pub const MOST: u64 = 512;

/// How the addresses of a paging process are divided, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagingSpace {
    /// The scratch area: from the second table of level 0 on.
    pub scratch: Bounds,
    /// Where the paging buffer is.
    pub buffer: u64,
    /// Where fences are.
    pub fences: Bounds,
    /// The paging node writes to the tables of the scratch area, and not the processor.
    pub by_node: bool,
}

impl PagingSpace {
    /// The page behind the last one of the paging process, but for fences that a GPU wants further
    /// up.
    pub fn end(&self) -> u64 {
        self.buffer.saturating_add(PERMANENT)
    }

    /// Divides them. The paging node writes to the tables of all of the scratch area, or the
    /// processor does. Fences are where `wish` wants them, if there is one; then the scratch area
    /// is what is left. `None` if nothing is.
    pub fn new(levels: &Levels, by_node: bool, wish: Option<Bounds>) -> Option<Self> {
        let table = levels.pages_of_table(0);
        let end = END.min(levels.pages());
        let permanent = end.checked_sub(PERMANENT)?;
        let all = Bounds {
            first: table,
            end: match by_node {
                true => permanent,
                false => permanent.min(table.saturating_add(USED)),
            },
        };
        let wish = wish.unwrap_or(Bounds {
            first: 0,
            end: u64::MAX,
        });
        let wished = |first: u64, end: u64| Bounds {
            first: first.max(wish.first),
            end: end.min(wish.end),
        };
        // Of the scratch area they take at most one half.
        let half = all.end.saturating_sub(all.first) / 2;
        let most = |part: Bounds| Bounds {
            end: part.end.min(part.first.saturating_add(half)),
            ..part
        };
        // Where nothing else is, if it may be there, and otherwise in the scratch area, or between
        // the system page table and what that shows.
        let fences = [
            wished(permanent.saturating_add(1), end),
            wished(end, levels.pages()),
            wished(all.end, permanent),
            most(wished(all.first, all.end)),
            wished(table / 2, table),
            match by_node {
                true => Bounds { first: 0, end: 0 },
                false => wished(1, table / 2),
            },
        ]
        .into_iter()
        .find(|part| part.first < part.end)?;
        let below = Bounds {
            first: all.first,
            // The table i is shown at page i.
            end: match fences.first < table {
                true if by_node => all.end.min(fences.first.saturating_mul(table)),
                true => all.end,
                false => all.end.min(fences.first),
            },
        };
        let above = Bounds {
            first: all.first.max(fences.end.checked_next_multiple_of(table)?),
            end: all.end,
        };
        let size = |part: Bounds| part.end.saturating_sub(part.first);
        let scratch = match fences.first < table || size(below) > size(above) {
            true => below,
            false => above,
        };

        (size(scratch) >= LEAST).then_some(Self {
            scratch,
            buffer: permanent,
            fences,
            by_node,
        })
    }
}

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
