// SPDX-License-Identifier: GPL-2.0

//! How page tables divide GPU addresses (MEM-51). Level 0 is that of the tables with pages; the
//! level of the root is the last one.

use crate::ddi::{
    caps::{
        GpuMmuCaps,
        PageTableUpdateMode,
        MAX_PAGE_TABLE_LEVELS, //
    },
    paging::PageSize,
};

/// Bits of an address in a page.
const PAGE_BITS: u32 = 12;

/// Most bits that choose an entry: as many entries of 8 bytes as a page has.
const MAX_INDEX_BITS: u32 = 10;

/// The levels of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    count: u32,
    index_bits: [u32; MAX_PAGE_TABLE_LEVELS],
    has_64kb: bool,
}

impl Levels {
    /// What the caps say; `None` if it makes no sense (MEM-51), so that the adapter does not start.
    /// No table is larger than a page. Nothing updates them by physical addresses.
    pub fn new(caps: &GpuMmuCaps) -> Option<Self> {
        let count = caps.page_table_levels;
        // CAST: 32 bits fit a usize.
        let used = caps.levels.get(..count as usize)?;
        let mut index_bits = [0; MAX_PAGE_TABLE_LEVELS];

        if count < 2 || caps.page_table_update_mode == PageTableUpdateMode::GpuPhysical {
            return None;
        }
        for (bits, level) in index_bits.iter_mut().zip(used) {
            let entries = 1u32.checked_shl(level.index_bits)?;

            // An entry has 4 bytes at least.
            if !(1..=MAX_INDEX_BITS).contains(&level.index_bits)
                || !(entries.checked_mul(4)?..=1 << PAGE_BITS).contains(&level.table_bytes)
            {
                return None;
            }
            *bits = level.index_bits;
        }

        let levels = Self {
            count,
            index_bits,
            has_64kb: caps.leaf_table_bytes_64kb != 0,
        };

        // A table of pages of 64 KiB stands for as much as one of 4 KiB, which can take its place.
        if levels.has_64kb {
            let least = levels.leaf_entries(PageSize::Kib64).checked_mul(4)?;

            if least == 0 || !(least..=1 << PAGE_BITS).contains(&caps.leaf_table_bytes_64kb) {
                return None;
            }
        }

        // Addresses that the tables do not reach are nobody's.
        (levels.page_bits() + PAGE_BITS <= caps.address_bits && caps.address_bits < 64)
            .then_some(levels)
    }

    /// How many levels there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether the root has only as many entries as are needed (MEM-54).
    pub fn has_resizable_root(&self) -> bool {
        self.count == 2
    }

    /// The level of the root table.
    pub fn root(&self) -> u32 {
        self.count.saturating_sub(1)
    }

    fn index_bits(&self, level: u32) -> u32 {
        // CAST: 32 bits fit a usize.
        self.index_bits.get(level as usize).copied().unwrap_or(0)
    }

    /// Bits of a page number.
    fn page_bits(&self) -> u32 {
        self.shift(self.count)
    }

    /// How many pages there are.
    pub fn pages(&self) -> u64 {
        1u64.checked_shl(self.page_bits()).unwrap_or(u64::MAX)
    }

    /// How many entries a table of this level has.
    pub fn entries(&self, level: u32) -> u32 {
        1u32.checked_shl(self.index_bits(level)).unwrap_or(0)
    }

    /// Whether tables of level 0 can have pages of 64 KiB (MEM-57).
    pub fn has_64kb_pages(&self) -> bool {
        self.has_64kb
    }

    /// How many entries a table of level 0 has with pages of this size.
    pub fn leaf_entries(&self, size: PageSize) -> u32 {
        // CAST: at most as many.
        (u64::from(self.entries(0)) / size.pages()) as u32
    }

    /// The entry for `page` in its table of level 0, if that has pages of this size.
    pub fn leaf_index(&self, size: PageSize, page: u64) -> u32 {
        // CAST: at most as much.
        (u64::from(self.index(0, page)) / size.pages()) as u32
    }

    /// How many bits of a page number are left to the levels below.
    fn shift(&self, level: u32) -> u32 {
        // CAST: 32 bits fit a usize.
        self.index_bits.iter().take(level as usize).sum()
    }

    /// How many pages an entry of this level stands for.
    pub fn pages_of_entry(&self, level: u32) -> u64 {
        1u64.checked_shl(self.shift(level)).unwrap_or(u64::MAX)
    }

    /// How many pages a table of this level stands for.
    pub fn pages_of_table(&self, level: u32) -> u64 {
        self.pages_of_entry(level.saturating_add(1))
    }

    /// The number of the table of this level that has `page`, among all of the level.
    pub fn table(&self, level: u32, page: u64) -> u64 {
        page.checked_shr(self.shift(level.saturating_add(1)))
            .unwrap_or(0)
    }

    /// The entry for `page` in its table of this level.
    pub fn index(&self, level: u32, page: u64) -> u32 {
        let above = page.checked_shr(self.shift(level)).unwrap_or(0);
        let mask = u64::from(self.entries(level)).saturating_sub(1);

        // CAST: below the number of entries.
        (above & mask) as u32
    }

    /// The parts of these pages that are in one table of level 0 each: the first page and how many.
    pub fn leaves(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let pages_of_table = self.pages_of_table(0);
        let mut at = first;

        core::iter::from_fn(move || {
            let from = at;
            let left = pages_of_table.checked_sub(from.checked_rem(pages_of_table)?)?;
            let pages = end.checked_sub(from).filter(|pages| *pages > 0)?.min(left);

            at = from.checked_add(pages)?;
            Some((from, pages))
        })
    }
}
