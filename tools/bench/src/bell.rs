// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hardware queue that this process fills by itself.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use opendxg::pm4::Pm4;
use opendxg::uapi::{
    D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission as USER_MODE_SUBMISSION,
    OPENDXG_RING_WRITE_POINTER,
};
use opendxg::{Context, Doorbell, HwQueue, PagingQueue};

use crate::gpu::{Buffer, PAGE};

/// Makes a hardware queue that its process fills.
///
/// # Panics
///
/// If that fails, as everything here.
pub fn user_queue(context: &Context) -> HwQueue<'_> {
    context
        .create_hw_queue_with(USER_MODE_SUBMISSION, &mut [])
        .expect("create a HW queue for user-mode submission")
}

/// A queue with a ring of one page and a doorbell. The last packet of each submission stores the
/// next value of the progress fence.
#[derive(Debug)]
pub struct Bell<'a> {
    doorbell: Doorbell<'a>,
    /// The ring and the control page.
    _memory: [Buffer; 2],
    /// Where this process has both, as long as they are there.
    words: [*const AtomicU64; 2],
    written: Cell<u64>,
    last: Cell<u64>,
}

impl<'a> Bell<'a> {
    /// The ring of a queue, connected.
    pub fn new(paging: &PagingQueue, queue: &'a HwQueue<'a>) -> Self {
        let (ring, control) = (Buffer::new(paging, PAGE), Buffer::new(paging, PAGE));
        let words = [&ring, &control].map(|buffer| {
            let start = buffer.allocation.lock_raw().expect("map an allocation");
            start.cast::<AtomicU64>().cast_const()
        });
        let doorbell = queue.create_doorbell(&ring.allocation, &control.allocation);
        let doorbell = doorbell.expect("create a doorbell");
        doorbell.connect().expect("connect a doorbell");
        Self {
            doorbell,
            _memory: [ring, control],
            words,
            written: 0.into(),
            last: 0.into(),
        }
    }

    /// A word of the ring, or of the control page.
    fn word(&self, page: usize, index: u64) -> &AtomicU64 {
        assert!(index < PAGE / 8);
        // SAFETY: inside of a page that is mapped as long as the buffers are there; only ever used
        // atomically.
        unsafe { &*self.words[page].add(index as usize) }
    }

    /// Submits a packet; returns the value that it stores.
    pub fn submit(&self) -> u64 {
        self.submit_after(&Pm4::new())
    }

    /// Submits a packet behind others.
    pub fn submit_after(&self, packets: &Pm4) -> u64 {
        let value = self.last.get() + 1;
        let progress = self.doorbell.queue().progress().gpu_address();
        let mut packets = packets.clone().signal_native(progress, value);
        if packets.len() % 2 != 0 {
            packets = packets.nop(0);
        }
        let start = self.written.get();
        // Two dwords at a time, which may be on both sides of the end of the ring.
        for (place, pair) in (start / 2..).zip(packets.words().chunks(2)) {
            let pair = u64::from(pair[0]) | (u64::from(pair[1]) << 32);
            self.word(0, place % (PAGE / 8))
                .store(pair, Ordering::Relaxed);
        }
        let written = start + packets.len() as u64;
        self.last.set(value);
        self.written.set(written);
        self.doorbell.set_last_queued(value);
        self.word(1, u64::from(OPENDXG_RING_WRITE_POINTER) / 8)
            .store(written, Ordering::Release);
        self.doorbell.submit(written).expect("ring a doorbell");
        value
    }

    /// Submits a packet and waits for it.
    pub fn run(&self) {
        let value = self.submit();
        let progress = self.doorbell.queue().progress();
        progress.wait(value).expect("wait for a progress fence");
    }

    /// Submits a packet and looks at the progress value until it is done.
    pub fn run_looking(&self) {
        self.run_after(&Pm4::new());
    }

    /// The same with other packets before it.
    pub fn run_after(&self, packets: &Pm4) {
        let value = self.submit_after(packets);
        while !self.doorbell.queue().progress().is_reached(value) {
            std::thread::yield_now();
        }
    }
}
