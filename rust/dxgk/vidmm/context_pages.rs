// SPDX-License-Identifier: GPL-2.0

//! The pages of a context allocation. They stay where they are until its end, so that they are
//! resident whenever its context is on an engine (MEM-83).

use super::{
    paging_log::LogAbout,
    segment::{
        LocalPages,
        Segment, //
    }, //
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
    error::{
        DxgError,
        DxgResult, //
    },
    logic::{
        gpu_ranges::Mapping,
        paging_log::{
            Action,
            Kind, //
        }, //
    },
    sys::mem::{
        blocks::Layout,
        pages::PageSource,
        system_pages::SystemPages, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Where they are.
enum Place {
    /// In a segment.
    Local(Arc<LocalPages>),
    /// In system memory.
    System(SystemPages),
}

/// The pages of one context allocation.
pub(super) struct ContextPages {
    place: Place,
    log: LogAbout,
}

impl ContextPages {
    /// So many pages of a segment, which are zeros. Others give way if there is no room; `None` if
    /// that does not do.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn local(
        segment: &Arc<Segment>,
        count: usize,
        layout: Layout,
        log: &LogAbout,
    ) -> DxgResult<Option<Self>> {
        // CAST: a few pages.
        let whole = segment.page_size.pages() as usize;
        let count = count.next_multiple_of(whole.max(1));

        loop {
            match segment.take(count, layout, Some(log)) {
                Ok(pages) => {
                    pages.clear(0..count).map_err(DxgError::from_errno)?;
                    return Ok(Some(Self {
                        place: Place::Local(pages),
                        log: log.clone(),
                    }));
                }
                Err(error) if error == ENOSPC => {
                    if !segment.idle.make_room() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(DxgError::from_errno(error)),
            }
        }
    }

    /// So many pages of system memory, which are zeros.
    ///
    /// Context: may sleep.
    pub(super) fn system(count: usize, log: &LogAbout) -> DxgResult<Self> {
        let pages = Self {
            place: Place::System(SystemPages::new(count)?),
            log: log.clone(),
        };

        pages.record(Kind::Pin);
        Ok(pages)
    }

    /// The segment that they are in; 0 is system memory.
    pub(super) fn segment(&self) -> u32 {
        match &self.place {
            Place::Local(pages) => pages.segment(),
            Place::System(_) => SYSTEM_MEMORY,
        }
    }

    /// The pages themselves.
    pub(super) fn source(&self) -> &dyn PageSource {
        match &self.place {
            Place::Local(pages) => &**pages,
            Place::System(pages) => pages,
        }
    }

    /// The entry for the first page that a mapping shows.
    pub(super) fn entry(&self, mapping: &Mapping) -> PageTableEntry {
        // CAST: 64 bits fit a usize.
        let address = self.source().device_address(mapping.offset as usize);

        address.map_or(PageTableEntry::Invalid, |address| {
            PageTableEntry::Page(PageEntry {
                segment: self.segment(),
                address,
                page_size: PageSize::Kib4,
                read_only: !mapping.write,
                no_execute: !mapping.execute,
                system_use_only: false,
                cache_coherent: false,
            })
        })
    }

    fn record(&self, kind: Kind) {
        self.log.write(|| Action {
            kind,
            // CAST: a usize fits 64 bits.
            count: self.source().count() as u64,
            ..Action::default()
        });
    }
}

impl Drop for ContextPages {
    /// Those of a segment say so themselves.
    fn drop(&mut self) {
        if matches!(self.place, Place::System(_)) {
            self.record(Kind::Unpin);
        }
    }
}
