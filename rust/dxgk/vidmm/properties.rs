// SPDX-License-Identifier: GPL-2.0

//! UpdateAllocationProperty as a paging queue does it (MEM-8): in the call, like everything that
//! changes page tables.

use super::{
    device_queues::QueueOwner,
    opened::Opened,
    paging_queue::PagingQueue,
    residency::change::Changed, //
    resident_list::{
        with_room,
        NotResident, //
    },
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::allocation_properties::Update, //
};

impl PagingQueue {
    /// Whether the adapter has what an update names.
    pub(crate) fn check_properties(&self, update: &Update) -> DxgResult {
        let known = self.device.adapter.memory.known_segments();

        Ok(update.check_segments(known)?)
    }

    /// Changes what decides where an allocation is placed, which its device has opened; the update
    /// was checked. Its addresses fault meanwhile. NO_MEMORY if there is no room where it is to
    /// be; nothing has changed then. If it has lost its place on the way, the device is in error.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn update_properties(&self, opened: &Opened, update: &Update) -> DxgResult {
        let memory = &self.device.adapter.memory;

        match with_room(&self.device, || opened.memory.change(memory, update)) {
            Ok(Changed::Done) => Ok(()),
            Ok(Changed::Lost) => {
                self.device.clone().out_of_memory();
                Err(Status::NO_MEMORY.into())
            }
            Err(NotResident::OverBudget(_)) => Err(Status::NO_MEMORY.into()),
            Err(NotResident::Failed(error)) => Err(error),
        }
    }
}
