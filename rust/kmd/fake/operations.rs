// SPDX-License-Identifier: GPL-2.0

//! The paging operations that a double was told of, in order, with who told it.

use super::facts::PAGE_SIZE;
use crate::{
    ddi::paging::{
        Entries,
        NotifyResidency,
        PageSize,
        PageTableEntry,
        PagingOperation,
        UnmapApertureSegment, //
    },
    platform::{
        self,
        Boxed,
        ShortLock, //
    }, //
};

/// Most operations of a test.
const OPERATIONS: usize = 256;

/// What an operation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Entries of a table are written.
    UpdatePageTable {
        level: u32,
        /// As in the operation.
        page_size: PageSize,
        /// GPU virtual address that the first entry is for.
        address: u64,
        /// How many entries.
        count: usize,
        /// The first of them.
        first: PageTableEntry,
        /// Whether all of them are pages, each after the one before.
        is_range: bool,
        /// As in the operation.
        initial_update: bool,
        /// As in the operation.
        notify_eviction: bool,
        /// As in the operation.
        driver_protection: u64,
    },
    /// Translations are forgotten.
    FlushTlb {
        /// As in the operation.
        first: u64,
        /// As in the operation.
        last: u64,
    },
    /// The aperture shows pages of an allocation.
    MapApertureSegment {
        segment: u32,
        /// The first page of the aperture.
        first: u64,
        /// The first page of the allocation.
        page: u64,
        /// How many pages.
        count: usize,
    },
    /// It shows them no more.
    UnmapApertureSegment(UnmapApertureSegment),
    /// The KMD is told where an allocation is.
    NotifyResidency(NotifyResidency),
}

/// What BuildPagingBuffer was called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The thread that the entry was called in.
    pub thread: u64,
    /// What WDDM calls the operation, `DXGK_OPERATION_*`.
    pub number: u32,
    /// What it says.
    pub what: What,
}

/// Whether entries are pages of one segment that follow each other.
fn is_range(entries: Entries<'_>) -> bool {
    let entries = match entries {
        Entries::Each(entries) => entries,
        Entries::Following(first, _) => return matches!(first, PageTableEntry::Page(_)),
        Entries::Repeat(..) => return false,
    };
    let follows = |pair: &[PageTableEntry]| match pair {
        [PageTableEntry::Page(one), PageTableEntry::Page(next)] => {
            one.segment == next.segment && next.address.checked_sub(one.address) == Some(PAGE_SIZE)
        }
        _ => false,
    };

    matches!(entries.first(), Some(PageTableEntry::Page(_))) && entries.windows(2).all(follows)
}

struct Log {
    operations: Boxed<[Option<Operation>; OPERATIONS]>,
    count: usize,
}

/// What a double was told. The test and the double share it.
pub struct Operations {
    log: ShortLock<Log>,
}

impl Operations {
    /// None; `None` if there is no memory. May sleep.
    pub fn new() -> Option<Self> {
        let log = Log {
            operations: platform::none_array()?,
            count: 0,
        };

        Some(Self {
            log: platform::short_lock!(log, "fake::Operations::log")?,
        })
    }

    /// How many there were so far. Those that there was no room for count too.
    pub fn count(&self) -> usize {
        self.log.lock().count
    }

    /// The one with this number, from 0 on; `None` if there is no such, or there was no room for
    /// it.
    pub fn get(&self, number: usize) -> Option<Operation> {
        self.log.lock().operations.get(number).copied().flatten()
    }

    /// Those from the one with this number on.
    pub fn since(&self, number: usize) -> impl Iterator<Item = Operation> + '_ {
        (number..).map_while(|number| self.get(number))
    }

    pub(super) fn record(&self, operation: &PagingOperation<'_>) {
        let what = match operation {
            PagingOperation::UpdatePageTable(update, _) => What::UpdatePageTable {
                level: update.level,
                page_size: update.page_size,
                address: update.address,
                count: update.entries.count(),
                first: update.entries.iter().next().unwrap_or_default(),
                is_range: is_range(update.entries),
                initial_update: update.initial_update,
                notify_eviction: update.notify_eviction,
                driver_protection: update.driver_protection,
            },
            PagingOperation::FlushTlb { first, last, .. } => What::FlushTlb {
                first: *first,
                last: *last,
            },
            PagingOperation::MapApertureSegment(map) => What::MapApertureSegment {
                segment: map.segment,
                first: map.first,
                page: map.page,
                count: map.pages.len(),
            },
            PagingOperation::UnmapApertureSegment(unmap) => What::UnmapApertureSegment(*unmap),
            PagingOperation::NotifyResidency(notify) => What::NotifyResidency(*notify),
            // It has no paging node, and says that nobody may ask it for this.
            PagingOperation::TransferVirtual(..)
            | PagingOperation::FillVirtual(..)
            | PagingOperation::InitContextResource(..)
            | PagingOperation::UpdateContextAllocation(..) => return,
        };
        let operation = Operation {
            thread: platform::thread_id(),
            number: operation.number(),
            what,
        };
        let mut log = self.log.lock();
        let number = log.count;

        if let Some(place) = log.operations.get_mut(number) {
            *place = Some(operation);
        }
        // OVERFLOW: a test makes few calls.
        log.count = number.wrapping_add(1);
    }
}
