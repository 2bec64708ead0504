// SPDX-License-Identifier: MIT OR Apache-2.0
//! Doorbells: how this process tells the GPU of work that it has written to the ring of a hardware
//! queue, without a system call.

use core::ptr::NonNull;
use core::sync::atomic::{fence, AtomicU64, Ordering};

use crate::calls;
use crate::calls::call;
use crate::handle::LocalHandle;
use crate::hw_queue::HwQueue;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::uapi::*;
use crate::value::FenceValue;
use crate::Allocation;
use crate::{Error, Result, Status};

/// What the status of a doorbell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DoorbellStatus {
    /// Ringing it reaches the GPU.
    Connected,
    /// And the driver wants to be told after each ring ([`Doorbell::notify`]).
    ConnectedNotify,
    /// It can be connected ([`Doorbell::connect`]).
    Retry,
    /// The queue will not run any more.
    Abort,
}

/// A word of this process that the driver or the GPU looks at.
#[derive(Clone, Copy, Debug)]
struct Word(NonNull<AtomicU64>);

// SAFETY: the word is only used atomically, and the mapping belongs to the whole process.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// The word at an address that the module returned; `None` for 0.
    ///
    /// # Safety
    ///
    /// Writable memory is mapped there, and stays mapped for as long as this is used.
    unsafe fn at(address: u64) -> Option<Self> {
        NonNull::new(address as usize as *mut AtomicU64).map(Self)
    }

    fn get(&self) -> &AtomicU64 {
        // SAFETY: mapped as long as this is used.
        unsafe { self.0.as_ref() }
    }
}

/// The doorbell of a hardware queue that was made with `UserModeSubmission`. Destroyed when
/// dropped.
///
/// The process writes packets to the ring buffer, then the write pointer to the ring buffer
/// control, and then calls [`Doorbell::submit`].
#[derive(Debug)]
pub struct Doorbell<'a> {
    owned: Owned,
    bell: Word,
    last_queued: Word,
    status: FenceValue,
    queue: &'a HwQueue<'a>,
}

impl<'a> Doorbell<'a> {
    /// The queue of the doorbell.
    pub fn queue(&self) -> &HwQueue<'a> {
        self.queue
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// What the status says now.
    pub fn status(&self) -> DoorbellStatus {
        match u32::try_from(self.status.load()) {
            Ok(D3DDDI_DOORBELLSTATUS_CONNECTED) => DoorbellStatus::Connected,
            Ok(D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD) => DoorbellStatus::ConnectedNotify,
            Ok(D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY) => DoorbellStatus::Retry,
            _ => DoorbellStatus::Abort,
        }
    }

    /// Where the status is mapped.
    pub fn status_address(&self) -> *const u64 {
        self.status.address()
    }

    /// Rings once, whatever the status is.
    pub fn ring(&self, value: u64) {
        // ORDERING: release: the write pointer was stored before.
        self.bell.get().store(value, Ordering::Release);
    }

    /// Says which value of the progress fence comes last, before the work is visible to the GPU.
    pub fn set_last_queued(&self, value: u64) {
        self.last_queued.get().store(value, Ordering::Release);
    }

    /// Which value of the progress fence comes last, as was said.
    pub fn last_queued(&self) -> u64 {
        self.last_queued.get().load(Ordering::Acquire)
    }

    /// Tells the GPU that the write pointer is `written` now: rings, and connects the doorbell and
    /// rings again as long as it is disconnected. DEVICE_REMOVED if the queue will not run any
    /// more.
    pub fn submit(&self, written: u64) -> Result<()> {
        loop {
            self.ring(written);
            // ORDERING: full: either the status that is read is that of before the doorbell was
            // taken away, and then the ring came before that, too.
            fence(Ordering::SeqCst);
            match self.status() {
                DoorbellStatus::Connected => return Ok(()),
                DoorbellStatus::ConnectedNotify => return self.notify(),
                DoorbellStatus::Retry => self.connect()?,
                DoorbellStatus::Abort => return Err(Error::Status(Status::DEVICE_REMOVED)),
            }
        }
    }

    /// Connects it to the GPU, for as long as the status says so. The logs of the queue may be
    /// elsewhere then ([`HwQueue::log_detail`]).
    pub fn connect(&self) -> Result<()> {
        let mut arg = D3DKMT_CONNECT_DOORBELL::zeroed();
        arg.hDoorbell = self.handle().0;
        call(self.owned.node(), &mut arg).map(|_| ())
    }

    /// Tells the driver that the doorbell was rung.
    pub fn notify(&self) -> Result<()> {
        let mut arg = D3DKMT_NOTIFY_WORK_SUBMISSION::zeroed();
        arg.hDoorbell = self.handle().0;
        call(self.owned.node(), &mut arg).map(|_| ())
    }

    /// Gives the handle away: it is destroyed with its queue.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }

    /// Destroys the doorbell and reports what the driver said. What the queue has not run of its
    /// ring it will not run.
    pub fn destroy(self) -> Result<()> {
        self.owned.destroy()
    }
}

impl HwQueue<'_> {
    /// Makes the doorbell of this queue, which was made with `UserModeSubmission`. Both allocations
    /// are resident and mapped to GPU addresses; they stay as they are until the doorbell is gone.
    pub fn create_doorbell(&self, ring: &Allocation, control: &Allocation) -> Result<Doorbell<'_>> {
        let node = self.context().device().node();
        let mut arg = D3DKMT_CREATE_DOORBELL::zeroed();
        arg.hHwQueue = self.handle().0;
        arg.hRingBuffer = ring.handle().0;
        arg.hRingBufferControl = control.handle().0;
        let status = calls::gpu::create_doorbell(node, &mut arg)?;
        let owned = Owned::new(node, arg.hDoorbell, Kind::Doorbell);
        let missing = Error::Protocol("doorbell without a mapping");
        let last_queued = arg.HwQueueProgressFenceLastQueuedValueCPUVirtualAddress;
        // SAFETY: the driver has mapped both for as long as the handle is there.
        let words = unsafe {
            (
                Word::at(arg.DoorbellCPUVirtualAddress),
                Word::at(last_queued),
            )
        };
        let (Some(bell), Some(last_queued)) = words else {
            return Err(missing);
        };
        Ok(Doorbell {
            owned,
            bell,
            last_queued,
            status,
            queue: self,
        })
    }
}
