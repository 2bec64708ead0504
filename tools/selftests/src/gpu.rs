// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that works: a paging queue, a context, memory that the GPU reaches, and work that is
//! waited for.
//!
//! ```no_run
//! use opendxg::pm4::Pm4;
//! use selftests::gpu::Gpu;
//! use selftests::{ensure_eq, TestResult};
//!
//! fn copies() -> TestResult {
//!     let gpu = Gpu::new()?;
//!     let buffer = gpu.buffer(4096)?;
//!     buffer.set64(0, 7);
//!     gpu.run(&Pm4::new().copy(buffer.at(8), buffer.at(0), 8))?;
//!     ensure_eq!(buffer.get64(8), 7);
//!     Ok(())
//! }
//! ```

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use opendxg::pm4::Pm4;
use opendxg::{
    Allocation, Context, Device, EventFd, ExecutionState, FenceValues, GpuMap, GpuProtection,
    MonitoredFence, PagingQueue, ResidentFlags, SyncObject,
};

use crate::time::soon;
use crate::{ensure, ensure_eq, fixture, Failure, TestResult};

/// Bytes of a page of the GPU.
pub const PAGE: u64 = 4096;
/// Bytes to which the driver aligns addresses that it chooses.
pub const BLOCK: u64 = 65536;
/// The node that copies, the one that computes, and the one that draws.
pub const NODES: [u32; 3] = [0, 1, 2];
/// The node that fills and moves memory for the OS part.
pub const PAGING_NODE: u32 = 3;

/// Rights to read and write.
pub const READ_WRITE: GpuProtection = GpuProtection::WRITE;

/// A device with what work needs: a paging queue, a context, and a fence that counts what is done.
pub struct Gpu {
    context: Context,
    done: MonitoredFence,
    /// The last value that was asked for.
    last: AtomicU64,
    paging: PagingQueue,
    device: Device,
}

impl Gpu {
    /// One on a device of its own, with a context on node 0.
    pub fn new() -> TestResult<Self> {
        Self::on(&fixture::device()?, 0)
    }

    /// One on a device of its own, with a context on this node.
    pub fn node(node: u32) -> TestResult<Self> {
        Self::on(&fixture::device()?, node)
    }

    /// One on this device, with a context on this node.
    pub fn on(device: &Device, node: u32) -> TestResult<Self> {
        Ok(Self {
            context: device.create_context(node)?,
            done: device.create_fence(0)?,
            last: AtomicU64::new(0),
            paging: device.create_paging_queue()?,
            device: device.clone(),
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The paging queue.
    pub fn paging(&self) -> &PagingQueue {
        &self.paging
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Zeroed memory of so many bytes, a multiple of [`PAGE`]: resident, mapped for GPU and CPU.
    pub fn buffer(&self, bytes: u64) -> TestResult<Buffer> {
        Buffer::new(&self.paging, self.allocate(bytes)?, bytes)
    }

    /// The same in local memory of the adapter.
    pub fn local_buffer(&self, bytes: u64) -> TestResult<Buffer> {
        Buffer::new(&self.paging, self.allocate_local(bytes)?, bytes)
    }

    /// The same memory, neither resident nor mapped.
    pub fn allocate(&self, bytes: u64) -> TestResult<Allocation> {
        Ok(self.device.new_resource().linear(bytes).create_one()?)
    }

    /// An allocation in local memory, neither resident nor mapped.
    pub fn allocate_local(&self, bytes: u64) -> TestResult<Allocation> {
        Ok(self.device.new_resource().local(bytes).create_one()?)
    }

    /// A buffer that holds commands.
    pub fn commands(&self, commands: &Pm4) -> TestResult<Commands> {
        let bytes = commands.len() as u64 * 4;
        let buffer = self.buffer(bytes.max(1).next_multiple_of(PAGE))?;
        buffer.write(0, commands.words());
        // Whoever asks for more words than fit into a submission gets them refused.
        let length = u32::try_from(bytes).map_err(|_| "too many commands")?;
        Ok(Commands { buffer, length })
    }

    /// Submits commands.
    pub fn submit(&self, commands: &Commands) -> TestResult {
        Ok(self.context.submit(commands.address(), commands.length)?)
    }

    /// Signals the own fence behind what has been submitted; returns the value for
    /// [`Gpu::until`].
    pub fn mark(&self) -> TestResult<u64> {
        let value = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let fences = FenceValues::new().with(&self.done, value);
        self.context.signal(&fences)?;
        Ok(value)
    }

    /// Whether the work up to a mark is done.
    pub fn is_done(&self, mark: u64) -> bool {
        self.done.is_reached(mark)
    }

    /// Waits until the work up to a mark is done. Fails if that does not come soon, or if the
    /// device is in error.
    #[track_caller]
    pub fn until(&self, mark: u64) -> TestResult {
        reaches(&self.done, mark)?;
        self.works()
    }

    /// Waits for all that has been submitted.
    #[track_caller]
    pub fn finish(&self) -> TestResult {
        self.until(self.mark()?)
    }

    /// Executes commands and waits for them.
    #[track_caller]
    pub fn run(&self, commands: &Pm4) -> TestResult {
        let commands = self.commands(commands)?;
        self.submit(&commands)?;
        self.finish()
    }

    /// Executes commands that put the device in error, and waits until nothing of it runs.
    ///
    /// The state alone does not say that: it is there first, and then the queues end one by one.
    /// The fences get the highest value last.
    #[track_caller]
    pub fn fails(&self, commands: &Pm4, state: ExecutionState) -> TestResult {
        let commands = self.commands(commands)?;
        self.submit(&commands)?;
        reaches(&self.done, u64::MAX)?;
        is_in(&self.device, state)
    }

    /// Demands that the device is not in error.
    #[track_caller]
    pub fn works(&self) -> TestResult {
        is_in(&self.device, ExecutionState::Active)
    }

    /// The fence that counts what is done.
    pub fn done(&self) -> &MonitoredFence {
        &self.done
    }
}

/// Demands that a device is in this state.
#[track_caller]
pub fn is_in(device: &Device, state: ExecutionState) -> TestResult {
    let place = core::panic::Location::caller();
    match device.execution_state()? {
        found if found == state => Ok(()),
        found => Err(Failure::Failed(format!(
            "{place}: the device is {found:?}, not {state:?}; {:x?}",
            device.page_fault()
        ))),
    }
}

/// Waits until a fence has a value. Fails if that does not come soon.
#[track_caller]
pub fn reaches(fence: &MonitoredFence, value: u64) -> TestResult {
    let place = core::panic::Location::caller();
    if fence.is_reached(value) {
        return Ok(());
    }
    let event = EventFd::new()?;
    fence.wait_async(value, &event)?;
    match event.wait(Some(soon()))? {
        Some(_) => Ok(()),
        None => Err(Failure::Failed(format!(
            "{place}: the fence is at {:#x}, never at {value:#x}",
            fence.value()
        ))),
    }
}

/// A list of one fence.
pub fn one(fence: &SyncObject, value: u64) -> FenceValues {
    FenceValues::new().with(fence, value)
}

/// Commands in memory.
pub struct Commands {
    buffer: Buffer,
    length: u32,
}

impl Commands {
    /// Where the GPU finds them.
    pub fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Their bytes.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

/// Memory that the GPU reaches at an address and this process by methods. The GPU may write to it
/// at any time.
pub struct Buffer {
    /// Mapped until the drop.
    start: *mut u8,
    address: u64,
    bytes: u64,
    allocation: Allocation,
}

// SAFETY: an address; access through it is atomic and not exclusive anyway.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Makes an allocation of so many bytes resident and maps it for the GPU and for this process.
    pub fn new(paging: &PagingQueue, allocation: Allocation, bytes: u64) -> TestResult<Self> {
        ensure_eq!(bytes % PAGE, 0, "bytes of a buffer");
        let map = GpuMap {
            pages: bytes / PAGE,
            protection: READ_WRITE,
            ..GpuMap::default()
        };
        let range = paging.map(Some(&allocation), &map)?;
        let resident = paging.make_resident(&[&allocation], ResidentFlags::empty())?;
        reaches(paging.fence(), resident.value()?)?;
        reaches(paging.fence(), range.value)?;
        ensure!(range.address >= BLOCK, "address {:#x}", range.address);
        let start = allocation.lock_raw()?;
        Ok(Self {
            start,
            address: range.address,
            bytes,
            allocation,
        })
    }

    /// Where the GPU finds it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Where the GPU finds a byte of it.
    pub fn at(&self, offset: u64) -> u64 {
        self.address + offset
    }

    /// The address after it.
    pub fn end(&self) -> u64 {
        self.address + self.bytes
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The allocation.
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        assert!(offset % 4 == 0 && offset + 4 <= self.bytes, "{offset:#x}");
        // SAFETY: inside of the mapping, aligned, and only ever used atomically.
        unsafe { AtomicU32::from_ptr(self.start.add(offset as usize).cast()) }
    }

    fn long(&self, offset: u64) -> &AtomicU64 {
        assert!(offset % 8 == 0 && offset + 8 <= self.bytes, "{offset:#x}");
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.start.add(offset as usize).cast()) }
    }

    /// The 32 bits at an offset in bytes.
    pub fn get32(&self, offset: u64) -> u32 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// The 64 bits at an offset in bytes.
    pub fn get64(&self, offset: u64) -> u64 {
        self.long(offset).load(Ordering::Acquire)
    }

    /// Sets the 32 bits at an offset in bytes.
    pub fn set32(&self, offset: u64, value: u32) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Sets the 64 bits at an offset in bytes.
    pub fn set64(&self, offset: u64, value: u64) {
        self.long(offset).store(value, Ordering::Release);
    }

    /// Sets the words from an offset in bytes.
    pub fn write(&self, offset: u64, words: &[u32]) {
        for (index, &word) in (0..).zip(words) {
            self.set32(offset + 4 * index, word);
        }
    }

    /// So many words from an offset in bytes.
    pub fn read(&self, offset: u64, words: u64) -> Vec<u32> {
        (0..words)
            .map(|index| self.get32(offset + 4 * index))
            .collect()
    }

    /// Sets every word.
    pub fn fill(&self, word: u32) {
        for offset in (0..self.bytes).step_by(4) {
            self.set32(offset, word);
        }
    }

    /// Demands that every word in a range of bytes is this one.
    #[track_caller]
    pub fn holds(&self, range: core::ops::Range<u64>, word: u32) -> TestResult {
        let place = core::panic::Location::caller();
        for offset in range.step_by(4) {
            let found = self.get32(offset);
            ensure!(
                found == word,
                "{place}: at {offset:#x} is {found:#x}, not {word:#x}"
            );
        }
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference into the mapping any more.
        let _ = unsafe { self.allocation.unlock_raw() };
    }
}
