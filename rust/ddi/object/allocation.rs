// SPDX-License-Identifier: GPL-2.0

//! An allocation, and the opens of it by devices.

use super::{
    aperture::InAperture,
    device::Device, //
};
use crate::{
    ddi::{
        class::Passive,
        paging::{
            NotifyResidency,
            PagesOf,
            PagingOperation, //
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

impl InAperture for Allocation {
    fn id(&self) -> u64 {
        self.id.0
    }

    fn made_by(&self) -> u64 {
        self.made_by
    }

    fn pages_of(&self) -> PagesOf {
        PagesOf::Allocation(self.cookie)
    }

    fn port(&self) -> &Shared<Port> {
        &self.port
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
