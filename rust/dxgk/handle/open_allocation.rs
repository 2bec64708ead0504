// SPDX-License-Identifier: GPL-2.0

//! The target of an allocation handle: the allocation in one open resource, and where the process
//! has it mapped.

use super::open_resource::{
    OpenResource,
    Origin, //
};
use crate::dxgk::{
    device::Device,
    memory::{
        allocation::Allocation,
        cpu_mapping::CpuMapping,
        storage::Storage, //
    },
    quota::holder::Holder,
    vidmm::{
        opened::Opened,
        residency::offers::OtherHandle, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        object, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::invalid_if,
    sys::{
        alloc::pin_arc,
        mem::dma_slots::User, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc, //
    },
    types::ScopeGuard, //
};

/// One handle's open of an allocation.
#[pin_data(PinnedDrop)]
pub(crate) struct OpenAllocation {
    /// The open allocation as the KMD of the device has it. Dropped before the allocation.
    _kmd: Option<object::OpenAllocation>,
    /// The open allocation as the memory manager has it, if the handle is one of a device that has
    /// GPU addresses.
    gpu: Option<Arc<Opened>>,
    /// As long as the memory manager does not have it, nobody drops the bytes.
    _other: Option<OtherHandle>,
    /// Whether its end does not wait for commands that are queued (AssumeNotInUse).
    assume_not_in_use: AtomicFlag,
    #[pin]
    mapping: CpuMapping,
    /// Keeps the dma-bufs of the allocation.
    _user: Option<User<Storage>>,
    /// What the handle opens.
    pub(crate) allocation: Arc<Allocation>,
    /// Keeps the allocation alive. Dropped last, so that the resource frees its allocations in
    /// order, this one too (RES-81).
    pub(crate) open_resource: Arc<OpenResource>,
}

impl OpenAllocation {
    /// Opens `allocation`, which belongs to the resource of `open_resource`, for a device, if the
    /// handle is one of a device.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        open_resource: &Arc<OpenResource>,
        allocation: &Arc<Allocation>,
        device: Option<&Device>,
    ) -> DxgResult<Arc<Self>> {
        let write = open_resource.may_write() && !allocation.description.read_only;
        // Without a size it has no bytes yet.
        let storage = match allocation.size() {
            0 => None,
            _ => Some(allocation.storage()?),
        };
        let user = storage.as_ref().map(Storage::add_user);
        let kmd = match device {
            Some(device) => {
                object::OpenAllocation::open(&device.kmd, &Passive::here(), &allocation.memory.kmd)?
            }
            None => None,
        };

        let gpu = match device {
            Some(device) => Opened::new(device, &allocation.memory, write)?,
            None => None,
        };
        let other = match gpu {
            Some(_) => None,
            None => Some(OtherHandle::new(&allocation.memory)?),
        };
        // If a later step fails, the drop of the open allocation does not run.
        let undo = ScopeGuard::new_with_data(gpu.clone(), |gpu| {
            if let Some(opened) = gpu {
                opened.end(true);
            }
        });

        allocation.open()?;

        let close = ScopeGuard::new(|| allocation.close());
        let opened = pin_arc(
            pin_init!(Self {
                _kmd: kmd,
                gpu,
                _other: other,
                assume_not_in_use: AtomicFlag::new(false),
                mapping <- CpuMapping::new(storage, write),
                _user: user,
                allocation: allocation.clone(),
                open_resource: open_resource.clone(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;

        undo.dismiss();
        close.dismiss();
        Ok(opened)
    }

    /// The open allocation as the memory manager has it, for a call that work may follow.
    /// INVALID_PARAMETER unless the handle is one of a device, and its adapter has GPU addresses.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn opened(&self) -> DxgResult<&Arc<Opened>> {
        let opened = self.gpu.as_ref().ok_or(Status::INVALID_PARAMETER)?;

        opened.will_be_used()?;
        Ok(opened)
    }

    /// Whether the memory manager has it as an open of this device.
    pub(crate) fn is_of(&self, device: &Device) -> bool {
        self.gpu
            .as_ref()
            .is_some_and(|opened| opened.device == device.id())
    }

    /// Its end will not wait for commands that are queued, which fault if they still use it.
    pub(in crate::dxgk) fn assume_not_in_use(&self) {
        self.assume_not_in_use.store(true, Relaxed);
    }

    /// Waits until the memory manager has ended it, or the caller is killed.
    ///
    /// Context: a system call; the handle is gone.
    pub(in crate::dxgk) fn wait_for_end(&self) {
        if let Some(opened) = &self.gpu {
            opened.wait_for_end();
        }
    }

    /// The handle is gone, for the memory manager.
    ///
    /// Context: may sleep, no locks held.
    fn end_gpu(&self) {
        if let Some(opened) = &self.gpu {
            opened.end(self.assume_not_in_use.load(Relaxed));
        }
    }

    /// Maps the allocation, or adds a lock to the mapping (RES-89). Dropping the result takes the
    /// lock back.
    ///
    /// Context: an ioctl of the process, no locks held.
    pub(crate) fn lock(self: &Arc<Self>, holder: &Arc<Holder>) -> DxgResult<(usize, Locked)> {
        // MEM-30: the bytes may be gone at any time.
        invalid_if(self.gpu.as_ref().is_some_and(|opened| opened.is_offered()))?;
        self.mapping.start_with(&self.allocation);
        Ok((self.mapping.lock(holder)?, Locked(Some(self.clone()))))
    }

    /// Removes one lock; the last one unmaps.
    ///
    /// Context: as [`OpenAllocation::lock`].
    pub(crate) fn unlock(&self) -> DxgResult {
        self.mapping.unlock()
    }

    /// The adapter is gone: takes the bytes out of every process that has them mapped through this.
    /// The handle stays, and can be unlocked and destroyed.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn adapter_removed(&self) {
        self.mapping.adapter_removed();
    }

    /// Called when the handle is gone; a call in progress may use this a little longer. Takes the
    /// bytes out of every process that has them mapped through the handle (RES-89). Ends the open
    /// resource if this was its last handle (RES-76).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(&self) {
        self.mapping.revoke();
        self.end_gpu();
        if !self.open_resource.has_resource_handle {
            self.open_resource.leave();
        }
    }

    /// DestroyAllocation of this handle: the resource withdraws the allocation if it has no other
    /// user (RES-82). True if it did.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn withdraw(&self) -> bool {
        self.mapping.revoke();
        self.open_resource.origin != Origin::Duplicated
            && self.open_resource.resource().withdraw(&self.allocation)
    }
}

#[pinned_drop]
impl PinnedDrop for OpenAllocation {
    /// Context: may sleep, no locks held.
    fn drop(self: Pin<&mut Self>) {
        self.mapping.revoke();
        self.end_gpu();
        self.allocation.close();
    }
}

/// A lock that is undone on drop, until the caller knows of it.
pub(crate) struct Locked(Option<Arc<OpenAllocation>>);

impl Locked {
    /// Keeps the lock: the caller knows of it.
    pub(crate) fn commit(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(allocation) = &self.0 {
            // It was locked, so that this succeeds unless the allocation is gone.
            let _unlocked = allocation.unlock();
        }
    }
}
