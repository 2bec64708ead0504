// SPDX-License-Identifier: MIT OR Apache-2.0
//! An adapter goes while its queues run, and what a process has of its doorbells then (GPU-26,
//! GPU-96).

use std::sync::atomic::{AtomicU64, Ordering};

use opendxg::pm4::{Compare, Pm4};
use opendxg::raw::{Argument, Raw};
use opendxg::uapi::{D3DKMT_CONNECT_DOORBELL, D3DKMT_CREATE_DOORBELL};
use opendxg::{Access, DoorbellStatus, EventFd, HwQueue, Status, SyncFlags};
use selftests::blocked::Blocked;
use selftests::call::succeeds;
use selftests::gpu::{one, reaches, Buffer, Gpu, PAGE};
use selftests::hog::Hog;
use selftests::region::Region;
use selftests::rounds::rounds;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::{eventually, soon};
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure_eq, fails_with, fixture, Suite, TestResult};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test(
            "GPU-22 GPU-26 the page of a doorbell that is not connected any more",
            pages,
        )
        .test(
            "GPU-26 GPU-96 queues that run, waits, and what others hold",
            all,
        )
}

/// A doorbell whose addresses are known.
struct Bare {
    handle: u32,
    doorbell: u64,
    status: u64,
}

impl Bare {
    fn new(raw: &Raw, queue: &HwQueue<'_>, memory: &[Buffer; 2]) -> TestResult<Self> {
        let mut arg = D3DKMT_CREATE_DOORBELL::zeroed();
        arg.hHwQueue = queue.handle().0;
        arg.hRingBuffer = memory[0].allocation().handle().0;
        arg.hRingBufferControl = memory[1].allocation().handle().0;
        succeeds(raw, &mut arg)?;
        Ok(Self {
            handle: arg.hDoorbell,
            doorbell: arg.DoorbellCPUVirtualAddress,
            status: arg.DoorbellStatusCPUVirtualAddress,
        })
    }

    fn connect(&self, raw: &Raw) -> TestResult {
        let mut arg = D3DKMT_CONNECT_DOORBELL::zeroed();
        arg.hDoorbell = self.handle;
        succeeds(raw, &mut arg)
    }

    fn word(&self, address: u64) -> &AtomicU64 {
        // SAFETY: mapped until the doorbell is destroyed, which is left to its queue.
        unsafe { &*(address as *const AtomicU64) }
    }

    fn write(&self, value: u64) {
        self.word(self.doorbell).store(value, Ordering::SeqCst);
    }

    /// What the page of the doorbell has, and what the status says.
    fn both(&self) -> (u64, u64) {
        let read = |address| self.word(address).load(Ordering::SeqCst);
        (read(self.doorbell), read(self.status))
    }
}

/// However a doorbell is disconnected, its page is taken away, and that of nothing is shown. Which
/// page is there is told by what was written to it.
fn pages() -> TestResult {
    const NOTIFY: u64 = 1;
    const RETRY: u64 = 2;
    const ABORT: u64 = 3;
    let adapter = SoftAdapter::new("t-doorbells-pages")?;
    adapter.set("doorbells", "1")?;
    // A page that does not trap stays where it is while it is connected.
    adapter.set("notify_doorbells", "1")?;
    adapter.set("enabled", "1")?;
    let raw = fixture::raw()?;
    let gpu = Gpu::on(&adapter.device()?, 0)?;
    let context = gpu.device().create_hw_context(1)?;
    let queues = [user_queue(&context)?, user_queue(&context)?];
    let memory = [gpu.buffer(PAGE)?, gpu.buffer(PAGE)?];
    let first = Bare::new(&raw, &queues[0], &memory)?;
    let second = Bare::new(&raw, &queues[1], &memory)?;
    // Each has a page of nothing of its own.
    first.write(1);
    second.write(2);
    ensure_eq!((first.both(), second.both()), ((1, RETRY), (2, RETRY)));
    first.connect(&raw)?;
    ensure_eq!(first.both(), (0, NOTIFY));
    first.write(3);
    // Another queue takes the one that there is, in which nothing is left of who had it before.
    second.connect(&raw)?;
    ensure_eq!((first.both(), second.both()), ((1, RETRY), (0, NOTIFY)));
    second.write(4);
    ensure_eq!((first.both(), second.both()), ((1, RETRY), (4, NOTIFY)));
    // The adapter sleeps.
    eventually("D3", || adapter.set("power_state", "D3").is_ok())?;
    ensure_eq!((first.both(), second.both()), ((1, RETRY), (2, RETRY)));
    second.connect(&raw)?;
    second.write(5);
    ensure_eq!((first.both(), second.both()), ((1, RETRY), (5, NOTIFY)));
    // The adapter goes.
    adapter.disable()?;
    ensure_eq!((first.both(), second.both()), ((1, ABORT), (2, ABORT)));
    second.write(6);
    ensure_eq!((first.both(), second.both()), ((1, ABORT), (6, ABORT)));
    Ok(())
}

fn all() -> TestResult {
    let adapter = SoftAdapter::enabled("t-doorbells-all")?;
    let witness = Gpu::new()?;
    let others = witness.device().create_hw_context(1)?;
    let others = user_queue(&others)?;
    let unharmed = UserQueue::new(&witness, &others)?;
    for round in 0..rounds(4) {
        let gpu = Gpu::on(&adapter.device()?, 0)?;
        let device = gpu.device();
        let buffer = gpu.buffer(PAGE)?;
        let context = device.create_hw_context(1)?;
        let queues = [
            user_queue(&context)?,
            user_queue(&context)?,
            user_queue(&context)?,
        ];
        let idle = UserQueue::new(&gpu, &queues[0])?;
        let waiting = UserQueue::new(&gpu, &queues[1])?;
        let never = UserQueue::new(&gpu, &queues[2])?;
        let looping = Hog::Ring.begin(&gpu)?;
        idle.run(&Pm4::new())?;
        waiting.submit(&Pm4::new().wait64(buffer.address(), Compare::Equal, 1, u64::MAX))?;
        looping.runs()?;
        // A thread, a descriptor, and a queue of another adapter wait for it.
        let sleeper = {
            let fence = device.create_fence(0)?;
            Blocked::new(move || fence.wait(1))?
        };
        let event = EventFd::new()?;
        let pending = queues[1].progress().wait_async(2, &event)?;
        ensure_eq!(pending, Status::SUCCESS);
        let flags = SyncFlags::SHARED | SyncFlags::NT_SECURITY_SHARING | SyncFlags::CROSS_ADAPTER;
        let fence = device.create_fence_with(0, flags)?;
        let handle = fence.share(Access::ALL)?;
        let opened = witness.device().open_fence(&handle, SyncFlags::empty())?;
        witness.context().wait(&one(&opened, 1))?;
        let mark = witness.mark()?;
        buffer.set64(8, 7);
        let dma_buf = buffer.allocation().export_dmabuf()?;
        adapter.disable()?;
        for user in [&idle, &waiting, &never] {
            let bell = user.doorbell();
            ensure_eq!(bell.status(), DoorbellStatus::Abort);
            bell.ring(round.into());
            fails_with(bell.connect(), Status::DEVICE_REMOVED)?;
            fails_with(bell.notify(), Status::DEVICE_REMOVED)?;
        }
        sleeper.join()??;
        ensure_eq!(event.wait(Some(soon()))?, Some(1));
        reaches(queues[1].progress(), u64::MAX)?;
        witness.until(mark)?;
        ensure_eq!(opened.value(), u64::MAX);
        // The bytes are others' too.
        ensure_eq!(Region::of_file(&dma_buf, PAGE as usize)?.get(8), 7);
        unharmed.run(&Pm4::new())?;
        witness.works()?;
        drop((looping, idle, waiting, never));
        drop((dma_buf, handle, opened));
        adapter.set("enabled", "1")?;
    }
    Ok(())
}
