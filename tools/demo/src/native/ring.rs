// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring of a queue that its process fills by itself, large enough for all that it ever does.

use demo::memory::{self, in_pages};
use demo::Result;
use opendxg::pm4::Pm4;
use opendxg::uapi::{
    D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission as USER_MODE_SUBMISSION,
    OPENDXG_RING_WRITE_POINTER,
};
use opendxg::{Allocation, Context, Doorbell, HwQueue, PagingQueue};

/// Makes a queue that its process fills.
pub fn queue(context: &Context) -> Result<HwQueue<'_>> {
    Ok(context.create_hw_queue_with(USER_MODE_SUBMISSION, &mut [])?)
}

/// The ring, its control page and its doorbell.
pub struct Ring<'a> {
    doorbell: Doorbell<'a>,
    ring: Allocation,
    control: Allocation,
}

impl<'a> Ring<'a> {
    /// An empty ring of so many bytes, which is connected.
    pub fn new(paging: &PagingQueue, queue: &'a HwQueue<'a>, bytes: u64) -> Result<Self> {
        let memory = |bytes| -> Result<Allocation> {
            let allocation = paging.device().new_resource().linear(bytes).create_one()?;
            memory::map(paging, &allocation, bytes)?;
            Ok(allocation)
        };
        let (ring, control) = (memory(in_pages(bytes))?, memory(in_pages(1))?);
        let doorbell = queue.create_doorbell(&ring, &control)?;
        doorbell.connect()?;
        Ok(Self {
            doorbell,
            ring,
            control,
        })
    }

    /// Writes all packets, then the write pointer, and rings, for the first and last time.
    pub fn submit(&self, packets: &Pm4) -> Result {
        let written = packets.len() as u64;
        self.ring.lock_write()?.write(0, &packets.bytes());
        self.control
            .lock_write()?
            .write(OPENDXG_RING_WRITE_POINTER as usize, &written.to_le_bytes());
        Ok(self.doorbell.submit(written)?)
    }
}
