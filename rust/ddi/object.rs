// SPDX-License-Identifier: GPL-2.0

//! What a KMD has made for the OS part. Each of these is one create, and its drop is the destroy
//! (GPU-105); it keeps what it was made on.
//!
//! Context: creates and drops may sleep, with no locks held.

use super::{
    class::Passive,
    port::Port,
    types::{
        self,
        AllocationCookie,
        AllocationId,
        AllocationInfo,
        ContextCookie,
        CreateContextArgs,
        DeviceCookie,
        DeviceId,
        KmdError,
        KmdResult,
        OpenAllocationCookie, //
    }, //
};
use crate::platform::{
    self,
    Shared,
    Turns,
    Word32, //
};

/// What CreateDevice has made.
pub struct Device {
    cookie: DeviceCookie,
    /// One call for the device at a time (GPU-101).
    turns: Turns,
    port: Shared<Port>,
}

impl Device {
    /// CreateDevice.
    pub fn create(port: &Shared<Port>, class: &Passive, id: DeviceId) -> KmdResult<Shared<Self>> {
        let turns = platform::turns().ok_or(KmdError::NoMemory)?;
        let device = Self {
            cookie: port.enter()?.create_device(class, id)?,
            turns,
            port: port.clone(),
        };

        // Without memory it is dropped, and so destroyed.
        platform::shared(device).ok_or(KmdError::NoMemory)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let class = Passive::here();

        self.port
            .enter_to_destroy(&class)
            .device(&class, self.cookie);
    }
}

/// What CreateContext has made.
pub struct Context {
    cookie: ContextCookie,
    device: Shared<Device>,
}

impl Context {
    /// CreateContext.
    pub fn create(
        device: &Shared<Device>,
        class: &Passive,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<Self> {
        let kmd = device.port.enter()?;
        let _turn = device.turns.take();

        Ok(Self {
            cookie: kmd.create_context(class, device.cookie, context)?,
            device: device.clone(),
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let class = Passive::here();
        let destroys = self.device.port.enter_to_destroy(&class);
        let _turn = self.device.turns.take();

        destroys.context(&class, self.cookie);
    }
}

/// What CreateAllocation has made.
pub struct Allocation {
    id: AllocationId,
    cookie: AllocationCookie,
    /// Not 0 once NotifyAllocationEnd was called.
    told: Word32,
    /// What the KMD said about it.
    pub info: AllocationInfo,
    port: Shared<Port>,
}

impl Allocation {
    /// CreateAllocation.
    pub fn create(
        port: &Shared<Port>,
        class: &Passive,
        id: AllocationId,
        private_data: &[u8],
    ) -> KmdResult<Self> {
        let (cookie, info) = port.enter()?.create_allocation(class, id, private_data)?;

        Ok(Self {
            id,
            cookie,
            told: platform::word32(0),
            info,
            port: port.clone(),
        })
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
        if !Shared::ptr_eq(&device.port, &allocation.port) {
            return Ok(None);
        }

        let kmd = device.port.enter()?;
        let what = types::OpenAllocationArgs {
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
        let destroys = self.device.port.enter_to_destroy(&class);
        let _turn = self.device.turns.take();

        destroys.open_allocation(&class, self.cookie);
    }
}
