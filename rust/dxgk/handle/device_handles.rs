// SPDX-License-Identifier: GPL-2.0

//! What the handles of a process stand for that the private data of its clients name.

use super::{
    entry::HandleTarget,
    HandleTable, //
};
use crate::{
    ddi::types::{
        ContextId,
        HandleData,
        HwQueueId,
        QueueHandle, //
    },
    dxgk::context::Context, //
};

/// The handles of a process, for a KMD that is asked about one of its devices.
pub(crate) struct DeviceHandles<'a> {
    table: &'a HandleTable,
    /// The id of the device.
    device: u64,
}

impl HandleTable {
    /// Its handles, for what is about the device with this id.
    pub(crate) fn of_device(&self, device: u64) -> DeviceHandles<'_> {
        DeviceHandles {
            table: self,
            device,
        }
    }
}

impl DeviceHandles<'_> {
    /// A context of the device.
    fn own(&self, context: &Context) -> Option<ContextId> {
        (context.device().id() == self.device).then_some(ContextId(context.id()))
    }
}

impl HandleData for DeviceHandles<'_> {
    /// Nothing is referenced: its last reference would be dropped inside the KMD.
    fn queue(&self, handle: u32) -> Option<QueueHandle> {
        let lookup = self.table.lookup();
        let found = lookup.find(handle, |entry| match &entry.item {
            HandleTarget::Context(context) => self.own(context).map(QueueHandle::Context),
            HandleTarget::HwQueue(queue) => {
                let context = self.own(queue.context())?;

                Some(QueueHandle::HwQueue(HwQueueId(queue.id()), context))
            }
            _ => None,
        });

        found.ok()
    }
}
