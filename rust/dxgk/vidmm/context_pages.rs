// SPDX-License-Identifier: GPL-2.0

//! The pages of a context allocation. They stay where they are until its end, so that they are
//! resident whenever its context is on an engine (MEM-83).

use super::{
    aperture::{
        Aperture,
        ShownRange, //
    },
    paging_log::LogAbout,
    segment::{
        LocalPages,
        Segment, //
    }, //
};
use crate::{
    ddi::{
        object,
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
    /// In system memory, and what shows them to engines that use physical addresses (MEM-84).
    System(SystemPages, Option<Arc<ShownRange>>),
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
            place: Place::System(SystemPages::new(count)?, None),
            log: log.clone(),
        };

        pages.record(Kind::Pin);
        Ok(pages)
    }

    /// The same, which a range of the aperture shows, for the allocation of the KMD. What it shows
    /// of others gives way if there is no room; `None` if that does not do.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn in_aperture(
        aperture: &Arc<Aperture>,
        kmd: &Arc<object::ContextAllocation>,
        (count, alignment): (usize, u64),
        log: &LogAbout,
    ) -> DxgResult<Option<Self>> {
        let range = loop {
            match aperture.take(kmd.clone(), count, alignment) {
                Ok(range) => break range,
                Err(error) if error == ENOSPC => {
                    if !aperture.idle.make_room() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(DxgError::from_errno(error)),
            }
        };
        let mut pages = Self::system(count, log)?;

        range.show(pages.source())?;
        if let Place::System(_, shown) = &mut pages.place {
            *shown = Some(range);
        }
        Ok(Some(pages))
    }

    /// The KMD has no use for physical addresses of it any more, which no engine uses either.
    ///
    /// Context: may sleep, no locks held. Not inside of the KMD.
    pub(super) fn hide(&self) {
        if let Place::System(_, Some(shown)) = &self.place {
            shown.hide();
        }
    }

    /// The segment that they are in; 0 is system memory.
    pub(super) fn segment(&self) -> u32 {
        match &self.place {
            Place::Local(pages) => pages.segment(),
            Place::System(..) => SYSTEM_MEMORY,
        }
    }

    /// Where engines that use physical addresses find the first byte: a segment or the aperture,
    /// and an address there. Of what they do not use it is the first page.
    pub(super) fn physical(&self) -> (u32, u64) {
        match &self.place {
            Place::System(_, Some(shown)) => shown.address(),
            // There is a first page.
            _ => {
                let first = self.source().device_address(0);

                (self.segment(), first.unwrap_or(0))
            }
        }
    }

    /// The pages themselves.
    pub(super) fn source(&self) -> &dyn PageSource {
        match &self.place {
            Place::Local(pages) => &**pages,
            Place::System(pages, _) => pages,
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
        if matches!(self.place, Place::System(..)) {
            self.hide();
            self.record(Kind::Unpin);
        }
    }
}
