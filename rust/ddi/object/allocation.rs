// SPDX-License-Identifier: GPL-2.0

//! An allocation, and the opens of it by devices.

use super::device::Device;
use crate::{
    ddi::{
        class::Passive,
        paging::{
            MapApertureSegment,
            NotifyResidency,
            PagingOperation,
            UnmapApertureSegment, //
        },
        port::Port,
        types::{
            AllocationCookie,
            AllocationId,
            AllocationInfo,
            CreateAllocationArgs,
            KmdResult,
            OpenAllocationArgs,
            OpenAllocationCookie, //
        }, //
    },
    platform::{
        self,
        Shared,
        Word32, //
    }, //
};

/// A part of an aperture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApertureRange {
    /// Id of the aperture.
    pub segment: u32,
    /// Its first page.
    pub first: u64,
    /// How many pages.
    pub count: u64,
}

/// What CreateAllocation has made.
pub struct Allocation {
    id: AllocationId,
    pub(super) cookie: AllocationCookie,
    /// Not 0 once NotifyAllocationEnd was called.
    told: Word32,
    /// What the KMD said about it.
    pub info: AllocationInfo,
    /// The number of the process that has made it, for the operation log; 0 if there is none.
    pub made_by: u64,
    port: Shared<Port>,
}

impl Allocation {
    /// CreateAllocation.
    pub fn create(
        port: &Shared<Port>,
        class: &Passive,
        allocation: &CreateAllocationArgs<'_>,
    ) -> KmdResult<Self> {
        let (cookie, info) = port.enter()?.create_allocation(class, allocation)?;

        Ok(Self {
            id: allocation.id,
            cookie,
            told: platform::word32(0),
            info,
            made_by: 0,
            port: port.clone(),
        })
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id.0
    }

    /// NotifyAllocationEnd, if the KMD has asked for it; not a second time. The last strong
    /// reference is gone, and the bytes are still there (RES-75).
    pub fn notify_end(&self, class: &Passive) {
        let Some(end) = self.info.notify_end else {
            return;
        };

        if platform::cmpxchg(&self.told, 0, 1) {
            self.port
                .enter_to_destroy(class)
                .notify_allocation_end(class, end, self.id);
        }
    }

    /// MapApertureSegment: shows pages of the allocation, from `page` on, in the aperture with the
    /// id `segment`, from its page `first` on. They are physical addresses, at most
    /// [`MAX_APERTURE_PAGES`](crate::ddi::paging::MAX_APERTURE_PAGES). While the adapter is being
    /// stopped this waits; a stopped one looks at no aperture any more.
    pub fn map_aperture(
        &self,
        class: &Passive,
        (segment, first): (u32, u64),
        page: u64,
        pages: &[u64],
    ) {
        let map = MapApertureSegment {
            allocation: self.cookie,
            segment,
            first,
            page,
            pages,
        };

        if let Some(kmd) = self.port.enter_to_page(class) {
            // It is done on return.
            let _done = kmd
                .build_paging_buffer(&class.building(), PagingOperation::MapApertureSegment(map));
        }
    }

    /// UnmapApertureSegment of a range that shows pages of the allocation. `dummy` is the physical
    /// address of a page that belongs to nobody. On return no engine uses the pages, whatever has
    /// become of the adapter.
    pub fn unmap_aperture(&self, class: &Passive, range: &ApertureRange, dummy: u64) {
        let unmap = UnmapApertureSegment {
            allocation: self.cookie,
            segment: range.segment,
            first: range.first,
            count: range.count,
            dummy,
        };

        if let Some(kmd) = self.port.enter_to_page(class) {
            // It is done on return.
            let _done = kmd.build_paging_buffer(
                &class.building(),
                PagingOperation::UnmapApertureSegment(unmap),
            );
        }
    }

    /// NotifyResidency, if the KMD has asked for it: the allocation is in this segment or aperture,
    /// at this address, or not resident any more. A stopped adapter is told nothing.
    pub fn notify_residency(&self, class: &Passive, at: Option<(u32, u64)>) {
        if !self.info.explicit_residency_notification {
            return;
        }

        let notify = NotifyResidency {
            allocation: self.cookie,
            at,
        };

        if let Some(kmd) = self.port.enter_to_page(class) {
            // It is done on return.
            let _done = kmd
                .build_paging_buffer(&class.building(), PagingOperation::NotifyResidency(notify));
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let class = Passive::here();

        // It may never have belonged to an object.
        self.notify_end(&class);
        self.port
            .enter_to_destroy(&class)
            .allocation(&class, self.cookie);
    }
}

/// An allocation that a device has open. The holder also keeps the allocation, and drops it later.
pub struct OpenAllocation {
    cookie: OpenAllocationCookie,
    device: Shared<Device>,
}

impl OpenAllocation {
    /// OpenAllocation. An allocation of another adapter, which a device opens because it may cross
    /// adapters, is nothing that the KMD of the device knows; `None` then.
    pub fn open(
        device: &Shared<Device>,
        class: &Passive,
        allocation: &Allocation,
    ) -> KmdResult<Option<Self>> {
        if !Shared::ptr_eq(&device.process.port, &allocation.port) {
            return Ok(None);
        }

        let kmd = device.process.port.enter()?;
        let what = OpenAllocationArgs {
            device: device.cookie,
            allocation: allocation.cookie,
        };
        let _turn = device.turns.take();

        Ok(Some(Self {
            cookie: kmd.open_allocation(class, &what)?,
            device: device.clone(),
        }))
    }
}

impl Drop for OpenAllocation {
    fn drop(&mut self) {
        let class = Passive::here();
        let destroys = self.device.process.port.enter_to_destroy(&class);
        let _turn = self.device.turns.take();

        destroys.open_allocation(&class, self.cookie);
    }
}
