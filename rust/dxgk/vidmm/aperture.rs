// SPDX-License-Identifier: GPL-2.0

//! The aperture of an adapter: what shows pages of system memory to engines that use physical
//! addresses (MEM-4, MEM-78).
//!
//! A range of it is taken before its allocation becomes resident, shows its pages as long as it is,
//! and goes back with the last reference. Only as much of the aperture is used as it may show at a
//! time.

use super::{
    idle::IdleList,
    paging_log::PagingLog, //
};
use crate::{
    ddi::{
        class::Passive,
        object::{
            ApertureRange,
            InAperture, //
        },
        paging::{
            PageSize,
            MAX_APERTURE_PAGES, //
        },
        segments::SegmentDescriptor,
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::paging_log::{
        Action,
        Operation, //
    },
    sys::mem::{
        blocks::{
            Blocks,
            Buddy,
            Layout, //
        },
        pages::PageSource,
        value_page::ValuePage, //
    }, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Arc, //
    }, //
};

/// Addresses of an aperture, which ranges are taken of.
pub(crate) struct Aperture {
    /// Its number; not 0.
    pub(crate) id: u32,
    /// Bytes that it may show at a time.
    limit: u64,
    buddy: Buddy,
    /// What hardware shows that must show something; it belongs to nobody.
    dummy: ValuePage,
    /// What is shown and could give way.
    pub(super) idle: Arc<IdleList>,
    log: Arc<PagingLog>,
}

impl Aperture {
    /// The aperture with this id, which shows nothing.
    ///
    /// Context: may sleep.
    pub(super) fn new(
        id: u32,
        descriptor: &SegmentDescriptor,
        log: &Arc<PagingLog>,
    ) -> KmdResult<Arc<Self>> {
        let limit = descriptor.commit_limit.min(descriptor.size);
        let aperture = Self {
            id,
            limit,
            buddy: Buddy::new(limit, PageSize::Kib4.bytes())
                .map_err(|_| KmdError::InvalidParameter)?,
            dummy: ValuePage::new().map_err(|_| KmdError::NoMemory)?,
            idle: IdleList::new(None).map_err(|_| KmdError::NoMemory)?,
            log: log.clone(),
        };

        Arc::new(aperture, GFP_KERNEL).map_err(|_| KmdError::NoMemory)
    }

    /// How many bytes it shows, or is about to show.
    pub(crate) fn used(&self) -> u64 {
        self.limit.saturating_sub(self.buddy.available())
    }

    /// How many bytes it could show in addition.
    pub(super) fn available(&self) -> u64 {
        self.buddy.available()
    }

    /// Takes a range for so many pages of this, which begins at a multiple of so many bytes: ENOSPC
    /// if there is none.
    ///
    /// Context: may sleep.
    pub(super) fn take(
        self: &Arc<Self>,
        kmd: Arc<dyn InAperture>,
        count: usize,
        alignment: u64,
    ) -> Result<Arc<ShownRange>> {
        let layout = Layout {
            contiguous: true,
            alignment,
        };
        let size = count.checked_mul(PAGE_SIZE).ok_or(ENOSPC)?;
        // CAST: a usize fits 64 bits.
        let blocks = self.buddy.take(size as u64, layout)?;
        let range = ApertureRange {
            segment: self.id,
            // CAST: as above.
            first: blocks.first() / PAGE_SIZE as u64,
            count: count as u64,
        };

        Ok(Arc::new(
            ShownRange {
                range,
                shown: Atomic::new(0),
                kmd,
                aperture: self.clone(),
                _blocks: blocks,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }
}

/// A range of an aperture, for one allocation of a client or a KMD.
pub(super) struct ShownRange {
    range: ApertureRange,
    /// How many of its pages show something.
    shown: Atomic<u64>,
    kmd: Arc<dyn InAperture>,
    aperture: Arc<Aperture>,
    _blocks: Blocks,
}

impl ShownRange {
    /// The aperture, and where in it, in bytes.
    pub(super) fn address(&self) -> (u32, u64) {
        let first = self.range.first.saturating_mul(PageSize::Kib4.bytes());

        (self.range.segment, first)
    }

    /// Shows these pages, which are all there and stay where they are. A stopped adapter shows
    /// nothing to anybody.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    pub(super) fn show(&self, pages: &dyn PageSource) -> DxgResult {
        // CAST: a usize fits 64 bits.
        let count = self.range.count as usize;
        let class = Passive::here();
        let batch = self.aperture.log.batch();

        for first in (0..count).step_by(MAX_APERTURE_PAGES) {
            let mut addresses = [0; MAX_APERTURE_PAGES];
            let mut ready = 0;

            for (place, index) in addresses.iter_mut().zip(first..count) {
                *place = pages
                    .present(index)
                    .ok_or(Status::INVALID_PARAMETER)?
                    .physical();
                ready += 1;
            }

            // CAST: as above.
            let page = first as u64;
            let at = self.range.first.saturating_add(page);
            let addresses = addresses.get(..ready).unwrap_or_default();

            self.aperture.log.write(|| Action {
                operation: Operation::MapApertureSegment,
                batch,
                object: self.kmd.id(),
                made_for: self.kmd.made_by(),
                start: page,
                // CAST: as above.
                count: ready as u64,
                segment: self.range.segment,
                offset: at.saturating_mul(PageSize::Kib4.bytes()),
                ..Action::default()
            });
            self.kmd
                .map_aperture(&class, (self.range.segment, at), page, addresses);
            // CAST: as above.
            self.shown.fetch_add(ready as u64, Full);
        }
        Ok(())
    }

    /// Shows nothing any more. On return no engine uses the pages.
    ///
    /// Context: may sleep, no locks held but `AllocationMemory::turn`.
    pub(super) fn hide(&self) {
        let count = self.shown.xchg(0, Full);

        if count != 0 {
            let range = ApertureRange {
                count,
                ..self.range
            };
            let dummy = self.aperture.dummy.physical();

            self.aperture.log.write(|| Action {
                operation: Operation::UnmapApertureSegment,
                batch: self.aperture.log.batch(),
                object: self.kmd.id(),
                made_for: self.kmd.made_by(),
                count: range.count,
                segment: range.segment,
                offset: range.first.saturating_mul(PageSize::Kib4.bytes()),
                ..Action::default()
            });
            self.kmd.unmap_aperture(&Passive::here(), &range, dummy);
        }
    }

    /// Where it waits if nobody wants it.
    pub(super) fn idle(&self) -> &Arc<IdleList> {
        &self.aperture.idle
    }
}

impl Drop for ShownRange {
    fn drop(&mut self) {
        self.hide();
    }
}
