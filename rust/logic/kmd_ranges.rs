// SPDX-License-Identifier: GPL-2.0

//! GPU addresses that a KMD has reserved while its process was made (MEM-64).
//!
//! They are where they are in the least way of clients: at the end of the addresses, or if the root
//! is resizable at the beginning.

use super::{
    gpu_ranges::{
        Bounds,
        PAGE, //
    },
    gpu_va_rules::ClientSpace,
    page_levels::Levels, //
};
use crate::ddi::{
    reserve::{
        ReserveAddresses,
        ReserveRange, //
    },
    types::{
        KmdError,
        KmdResult, //
    }, //
};

/// Most ranges of a KMD in one process.
pub const MAX_RANGES: usize = 8;

/// Pages that a KMD has reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmdRange {
    /// Where they are.
    pub pages: Bounds,
    /// Clients may map allocations there.
    pub is_shared: bool,
}

/// What a KMD has reserved of the addresses of one process.
pub struct KmdRanges {
    ranges: [Option<KmdRange>; MAX_RANGES],
    count: usize,
    /// What is left, from one end.
    left: Bounds,
    from_end: bool,
    /// Pages of a table of level 0.
    table: u64,
}

impl KmdRanges {
    /// None, of what clients may have.
    pub fn new(levels: &Levels, clients: ClientSpace) -> Self {
        Self {
            ranges: [None; MAX_RANGES],
            count: 0,
            left: Bounds {
                first: clients.first,
                end: clients.end,
            },
            from_end: !levels.has_resizable_root(),
            table: levels.pages_of_table(0),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = KmdRange> + '_ {
        self.ranges.iter().flatten().copied()
    }

    /// As many pages as so many bytes, if that is a multiple of what a table has.
    fn pages(&self, bytes: u64) -> KmdResult<u64> {
        let pages = bytes / PAGE;

        match bytes % PAGE == 0 && pages != 0 && pages.checked_rem(self.table) == Some(0) {
            true => Ok(pages),
            false => Err(KmdError::InvalidParameter),
        }
    }

    /// Where so many pages are, if there is room.
    fn place(&self, pages: u64, alignment: u64) -> Option<Bounds> {
        let first = match self.from_end {
            true => {
                let last = self.left.end.checked_sub(pages)?;

                last.checked_sub(last.checked_rem(alignment)?)?
            }
            false => self.left.first.checked_next_multiple_of(alignment)?,
        };
        let end = first.checked_add(pages)?;

        (first >= self.left.first && end <= self.left.end).then_some(Bounds { first, end })
    }
}

impl ReserveAddresses for KmdRanges {
    fn reserve(&mut self, range: &ReserveRange) -> KmdResult<u64> {
        let pages = self.pages(range.size)?;
        let alignment = self.pages(range.alignment)?;
        let place = self.ranges.get_mut(self.count).is_some();
        let pages = self
            .place(pages, alignment)
            .filter(|_| place)
            .ok_or(KmdError::NoMemory)?;

        match self.from_end {
            true => self.left.end = pages.first,
            false => self.left.first = pages.end,
        }
        if let Some(place) = self.ranges.get_mut(self.count) {
            *place = Some(KmdRange {
                pages,
                is_shared: range.allow_user_mode_mapping,
            });
            self.count += 1;
        }
        Ok(pages.first.saturating_mul(PAGE))
    }
}
