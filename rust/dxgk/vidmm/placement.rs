// SPDX-License-Identifier: GPL-2.0

//! Where a resident allocation is: pages that stay where they are (MEM-4, MEM-5).

use super::{
    aperture::ShownRange,
    idle::IdleList,
    pinned_pages::PinnedPages,
    segment::LocalPages, //
};
use crate::{
    ddi::{
        paging::{
            PageEntry,
            PageSize,
            PageTableEntry, //
        },
        segments::SYSTEM_MEMORY, //
    },
    dxgk::memory::storage::PinnedStorage,
    logic::gpu_ranges::Mapping, //
};
use kernel::sync::Arc;

/// Pages that stay where they are.
#[derive(Clone)]
pub(super) enum Placement {
    /// Pages of system memory, and the part of the aperture that shows them.
    System(Arc<PinnedPages>, Option<Arc<ShownRange>>),
    /// Pages of a segment, and what keeps the bytes there.
    Local(Arc<LocalPages>, Arc<PinnedStorage>),
}

impl Placement {
    /// The pages are used no longer: the bytes may move from here on, although somebody may still
    /// have this.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    pub(super) fn release(&self) {
        match self {
            Self::System(pinned, shown) => {
                if let Some(shown) = shown {
                    shown.hide();
                }
                pinned.unpin();
            }
            Self::Local(_, pinned) => {
                let _was_pinned = pinned.unpin();
            }
        }
    }

    /// The segment that it is in; 0 is system memory.
    pub(super) fn segment(&self) -> u32 {
        match self {
            Self::System(..) => SYSTEM_MEMORY,
            Self::Local(pages, _) => pages.segment(),
        }
    }

    /// Where its first byte is for an engine that uses physical addresses: in a segment, or in the
    /// aperture. `None`: such an engine cannot use it.
    pub(super) fn physical(&self) -> Option<(u32, u64)> {
        match self {
            Self::System(_, shown) => shown.as_ref().map(|shown| shown.address()),
            Self::Local(pages, _) => Some((pages.segment(), pages.offset(0)?)),
        }
    }

    /// Whether it is made of whole pages of 64 KiB, so that page tables can have those.
    pub(super) fn has_64kb_pages(&self) -> bool {
        match self {
            Self::System(..) => false,
            Self::Local(pages, _) => pages.has_64kb_pages(),
        }
    }

    /// Where it waits if nobody wants it. Plain pages of system memory are in nobody's way.
    pub(super) fn idle(&self) -> Option<&Arc<IdleList>> {
        match self {
            Self::System(_, shown) => shown.as_ref().map(|shown| shown.idle()),
            Self::Local(pages, _) => Some(pages.idle()),
        }
    }

    /// The entry for the first page that a mapping shows.
    pub(super) fn entry(&self, mapping: &Mapping) -> PageTableEntry {
        // CAST: 64 bits fit a usize.
        let index = mapping.offset as usize;
        let place = match self {
            Self::System(pages, _) => pages
                .source()
                .present(index)
                .map(|frame| (SYSTEM_MEMORY, frame.physical())),
            Self::Local(pages, _) => pages.offset(index).map(|offset| (pages.segment(), offset)),
        };

        place.map_or(PageTableEntry::Invalid, |(segment, address)| {
            PageTableEntry::Page(PageEntry {
                segment,
                address,
                page_size: PageSize::Kib4,
                read_only: !mapping.write,
                no_execute: !mapping.execute,
                system_use_only: false,
                cache_coherent: false,
            })
        })
    }
}
