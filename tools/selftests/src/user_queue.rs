// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hardware queue that the test fills by itself: a ring, its control page, a doorbell.

use std::sync::atomic::{AtomicU64, Ordering};

use opendxg::pm4::Pm4;
use opendxg::uapi::{
    D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission as USER_MODE_SUBMISSION,
    OPENDXG_RING_READ_POINTER, OPENDXG_RING_WRITE_POINTER,
};
use opendxg::{Context, Doorbell, HwQueue};

use crate::gpu::{Buffer, Gpu, PAGE};
use crate::time::eventually;
use crate::{ensure, TestResult};

/// Makes a hardware queue that its process fills.
pub fn user_queue(context: &Context) -> TestResult<HwQueue<'_>> {
    Ok(context.create_hw_queue_with(USER_MODE_SUBMISSION, &mut [])?)
}

/// A queue with a ring and a doorbell, not connected.
pub struct UserQueue<'a> {
    doorbell: Doorbell<'a>,
    ring: Buffer,
    control: Buffer,
    /// Dwords that were written.
    written: AtomicU64,
    /// The progress value of the last work.
    queued: AtomicU64,
}

impl<'a> UserQueue<'a> {
    /// A ring of one page for a queue.
    pub fn new(gpu: &Gpu, queue: &'a HwQueue<'a>) -> TestResult<Self> {
        Self::with_ring(gpu, queue, PAGE)
    }

    /// A ring of so many bytes for a queue.
    pub fn with_ring(gpu: &Gpu, queue: &'a HwQueue<'a>, bytes: u64) -> TestResult<Self> {
        let (ring, control) = (gpu.buffer(bytes)?, gpu.buffer(PAGE)?);
        Ok(Self {
            doorbell: queue.create_doorbell(ring.allocation(), control.allocation())?,
            ring,
            control,
            written: AtomicU64::new(0),
            queued: AtomicU64::new(queue.progress().value()),
        })
    }

    /// A ring of one page for a queue, with its doorbell connected.
    pub fn connected(gpu: &Gpu, queue: &'a HwQueue<'a>) -> TestResult<Self> {
        let user = Self::new(gpu, queue)?;
        user.doorbell.connect()?;
        Ok(user)
    }

    /// The doorbell.
    pub fn doorbell(&self) -> &Doorbell<'a> {
        &self.doorbell
    }

    /// The doorbell, without the memory.
    pub fn into_doorbell(self) -> Doorbell<'a> {
        self.doorbell
    }

    /// The memory of the ring.
    pub fn ring(&self) -> &Buffer {
        &self.ring
    }

    /// The memory of the control page.
    pub fn control(&self) -> &Buffer {
        &self.control
    }

    /// How many dwords the engine has done, as it says.
    pub fn read_pointer(&self) -> u64 {
        self.control.get64(OPENDXG_RING_READ_POINTER.into())
    }

    /// How many dwords were written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Writes packets to the ring, when there is room for them, and then the write pointer. Does
    /// not ring.
    pub fn write(&self, packets: &[u32]) -> TestResult {
        let (start, count) = (self.written(), packets.len() as u64);
        let size = self.ring.bytes() / 4;
        ensure!(count <= size, "{count} dwords in a ring of {size}");
        let has_room = || start + count - self.read_pointer() <= size;
        if !has_room() {
            eventually("room in the ring", has_room)?;
        }
        for (number, dword) in (start..).zip(packets) {
            self.ring.set32(number % size * 4, *dword);
        }
        self.written.store(start + count, Ordering::Relaxed);
        self.control
            .set64(OPENDXG_RING_WRITE_POINTER.into(), start + count);
        Ok(())
    }

    /// Packets, and behind them a store of the next progress value, which is returned.
    pub fn packets(&self, packets: &Pm4) -> (u64, Vec<u32>) {
        let value = self.queued.fetch_add(1, Ordering::Relaxed) + 1;
        let address = self.doorbell.queue().progress().gpu_address();
        let mut dwords = packets.words().to_vec();
        dwords.extend(Pm4::new().signal_native(address, value).words());
        (value, dwords)
    }

    /// Submits packets as GPU-29 says; returns the progress value behind them.
    pub fn submit(&self, packets: &Pm4) -> TestResult<u64> {
        let (value, dwords) = self.packets(packets);
        self.doorbell.set_last_queued(value);
        self.write(&dwords)?;
        self.doorbell.submit(self.written())?;
        Ok(value)
    }

    /// Waits until the progress fence has a value. It looks, so that no interrupt of a native fence
    /// is raised that a test does not ask for.
    #[track_caller]
    pub fn until(&self, value: u64) -> TestResult {
        let progress = self.doorbell.queue().progress();
        eventually("progress", || progress.is_reached(value))
    }

    /// Submits packets and waits for them.
    #[track_caller]
    pub fn run(&self, packets: &Pm4) -> TestResult {
        let value = self.submit(packets)?;
        self.until(value)
    }
}
