// SPDX-License-Identifier: GPL-2.0

//! A doorbell: how a process tells an engine of what it has written to the ring of a HW queue
//! (GPU-18 to GPU-32).
//!
//! The handle is the process's; the [`Ring`](ring::Ring) is what the queue has of it, which goes on
//! for a while when the process ends: until its work is done, or patience with it is at an end.

pub(crate) mod ring;
mod views;

use super::{
    hw_queue::HwQueue,
    sched::filled::Filled,
    stats::{
        Counted,
        CountedOn,
        ObjectId,
        ObjectKind,
        Stats,
        OBJECTS, //
    },
    sync::fence_mappings::FenceMappings, //
};
use crate::{
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::doorbell::DoorbellStatus,
    sys::{
        file::revocable_file::{
            RevocableFile,
            Source, //
        },
        mem::{
            doorbell_pages::{
                DOORBELL,
                SECONDARY,
                SHARED, //
            },
            mapping::Mapped, //
        }, //
    }, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};
use ring::{
    Description,
    Ring, //
};

/// Where a process sees a doorbell.
pub(crate) struct Addresses {
    /// Where it rings.
    pub(crate) doorbell: usize,
    /// The second page of the same, if it wants that; or 0.
    pub(crate) secondary: usize,
    /// Where it sees whether it is connected.
    pub(crate) status: usize,
    /// Where it says which progress value comes last.
    pub(crate) last_queued: usize,
}

/// What is mapped into the process.
struct Mappings {
    /// The doorbell and what the process writes.
    file: RevocableFile,
    addr: usize,
    status: Mapped,
    mappings: Arc<FenceMappings>,
}

impl Drop for Mappings {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.mappings.unmap(self.status);
        if self.mappings.identity.is_caller() {
            self.file.unmap(self.addr);
        }
    }
}

/// The doorbell of a HW queue.
pub(crate) struct Doorbell {
    identified: ObjectId,
    ring: Arc<Ring>,
    mappings: Mappings,
    wants_secondary: bool,
    queue: Counted<Arc<HwQueue>, OBJECTS>,
}

impl CountedOn for Doorbell {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.queue.stats()
    }
}

impl Doorbell {
    /// A doorbell of `queue`, disconnected. INVALID_PARAMETER if the queue has one, or takes
    /// submissions, or the allocations cannot be a ring.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn new(queue: &Arc<HwQueue>, description: &Description<'_>) -> DxgResult<Arc<Self>> {
        let device = queue.device();

        device.check()?;

        let claim = queue.queue.claim_ring().ok_or(Status::INVALID_PARAMETER)?;
        let identified = ObjectId::new(ObjectKind::Doorbell);
        let ring = Ring::new(queue, identified.id, description)?;
        let mappings = device.owner.mappings().clone();
        let pages = Source::Pages(ring.views.pages.clone());
        let file = RevocableFile::new(pages, true).map_err(DxgError::from_errno)?;
        let status = mappings.map(&ring.views.status)?;
        let addr = match file.map() {
            Ok(addr) => addr,
            Err(error) => {
                mappings.unmap(status);
                return Err(DxgError::from_errno(error));
            }
        };
        let mappings = Mappings {
            file,
            addr,
            status,
            mappings,
        };
        let doorbell = Arc::new(
            Self {
                identified,
                ring: ring.clone(),
                mappings,
                wants_secondary: description.wants_secondary,
                queue: Counted::new(queue.clone()),
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        // If the queue ends, the drop of the doorbell ends this ring.
        if !claim.fill_from(ring) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        // Either the end of the device has seen it, or this fails.
        device.check()?;
        Ok(doorbell)
    }

    /// What traces and debugfs call it.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }

    /// The HW queue whose ring it is for.
    pub(crate) fn queue(&self) -> &Arc<HwQueue> {
        &self.queue
    }

    /// Where the process sees it.
    pub(crate) fn addresses(&self) -> Addresses {
        // OVERFLOW: the mapping has all these pages.
        let page = |page: usize| self.mappings.addr.wrapping_add(page * PAGE_SIZE);

        Addresses {
            doorbell: page(DOORBELL),
            secondary: match self.wants_secondary {
                true => page(SECONDARY),
                false => 0,
            },
            status: self.mappings.status.addr,
            last_queued: page(SHARED),
        }
    }

    /// ConnectDoorbell, which wakes an adapter that sleeps (GPU-28). DEVICE_REMOVED if the queue
    /// will not run any more.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn connect(&self) -> DxgResult {
        let device = self.queue.device();
        let power = &device.adapter.power;
        let connect = || self.ring.connect(&power.awake);

        device.check()?;
        self.renew_logs();
        if !connect()? {
            // It does not fall asleep before this is connected.
            power.while_up(|| connect().map(drop))?;
        }
        Ok(())
    }

    /// Makes larger logs for the queue before it is connected, if it wants some (GPU-80). The
    /// process asks where they are after it has connected the doorbell.
    fn renew_logs(&self) {
        if self.ring.status() != DoorbellStatus::Retry {
            return;
        }

        let logs = self.queue.logs();
        let has_new = logs.is_some_and(|logs| logs.renew(|| self.ring.last_queued()));

        if has_new {
            // Another thread may have connected it meanwhile, and know the old addresses.
            self.ring.disconnect_for_now();
        }
    }

    /// NotifyWorkSubmission. DEVICE_REMOVED as for [`Doorbell::connect`].
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn notify(&self) -> DxgResult {
        let device = self.queue.device();

        device.check()?;
        self.ring.notify()?;
        device.adapter.power.wake_for_work();
        Ok(())
    }

    /// Called when the handle is gone, although a call in progress may use this a little longer.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn leave(&self) {
        // A queue that is closing ends the ring when it has done what is in there.
        if self.queue.queue.give_up_ring(&self.ring) {
            self.ring.end_now();
        }
    }
}

impl Drop for Doorbell {
    /// It may never have had a handle.
    fn drop(&mut self) {
        self.leave();
    }
}
