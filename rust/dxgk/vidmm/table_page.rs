// SPDX-License-Identifier: GPL-2.0

//! The memory of a page table: a page of the segment that the KMD wants tables of its level in
//! (`PageTableSegmentId`, MEM-53), or of system memory. A segment that is full has no room for a
//! table: then that is in system memory, too. It stays where it is until it goes.

use super::{
    pinned_pages::take_pages,
    segment::{
        LocalPages,
        Segment, //
    }, //
};
use crate::{
    ddi::{
        caps::{
            GpuMmuCaps,
            MAX_PAGE_TABLE_LEVELS, //
        },
        segments::SYSTEM_MEMORY, //
    },
    error::{
        DxgError,
        DxgResult, //
    },
    logic::gpu_ranges::PAGE,
    platform::Word64,
    sys::mem::{
        blocks::Layout,
        page_words::PageWords,
        value_page::ValuePage, //
    }, //
};
use core::array;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Where tables of an address space are to be, by level; `None` is system memory.
#[derive(Default)]
pub(super) struct TableSites([Option<Arc<Segment>>; MAX_PAGE_TABLE_LEVELS]);

impl TableSites {
    /// Where the KMD wants them, of these segments. Those of the paging process may be elsewhere.
    pub(super) fn new(caps: &GpuMmuCaps, segments: &[Arc<Segment>], is_paging: bool) -> Self {
        Self(array::from_fn(|number| {
            let level = caps.levels.get(number)?;
            let wanted = match is_paging {
                true => level.paging_process_segment,
                false => level.segment,
            };

            segments
                .iter()
                .find(|segment| segment.id == wanted)
                .cloned()
        }))
    }

    /// Memory for a table of this level, all zeros; what is in system memory is charged to the
    /// caller.
    ///
    /// Context: may sleep.
    pub(super) fn take(&self, level: u32) -> DxgResult<TablePage> {
        // CAST: 32 bits fit a usize.
        let site = self.0.get(level as usize);

        if let Some(Some(segment)) = site {
            if let Some(page) = TablePage::in_segment(segment)? {
                return Ok(page);
            }
        }
        Ok(TablePage::System(ValuePage::new()?))
    }
}

/// The memory of a table.
pub(super) enum TablePage {
    System(ValuePage),
    Segment(PageWords<LocalPages>),
}

impl TablePage {
    /// A page of the segment; `None` if it is full.
    fn in_segment(segment: &Arc<Segment>) -> DxgResult<Option<Self>> {
        let layout = Layout {
            contiguous: false,
            alignment: PAGE,
        };
        let pages = match segment.take(1, layout, None) {
            Err(error) if error == ENOSPC => return Ok(None),
            pages => pages.map_err(DxgError::from_errno)?,
        };

        take_pages(&*pages)?;
        pages.clear(0..1).map_err(DxgError::from_errno)?;
        Ok(Some(Self::Segment(
            PageWords::new(pages).map_err(DxgError::from_errno)?,
        )))
    }

    pub(super) fn words(&self) -> &[Word64] {
        match self {
            Self::System(page) => page.words(),
            Self::Segment(page) => page.words(),
        }
    }

    /// Its segment, and where it is there.
    pub(super) fn place(&self) -> (u32, u64) {
        match self {
            Self::System(page) => (SYSTEM_MEMORY, page.physical()),
            Self::Segment(page) => {
                let pages = page.keeper();

                // There is a first page.
                (pages.segment(), pages.offset(0).unwrap_or(0))
            }
        }
    }
}
