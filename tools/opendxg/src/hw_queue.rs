// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware queues: queues of a context, each with a fence that tells how far it is.

use std::sync::OnceLock;

use crate::calls;
use crate::device::{Context, Device};
use crate::fence::{FenceValues, MonitoredFence, SignalFlags};
use crate::handle::LocalHandle;
use crate::native_fence::NativeFence;
use crate::owned::{Kind, Owned};
use crate::pm4::Pm4;
use crate::queued::{object_of, Named, Operation, TRACE};
use crate::raw::Argument;
use crate::sync_object::SyncObject;
use crate::uapi::*;
use crate::Result;

/// A hardware queue of a context. Destroyed when dropped.
#[derive(Debug)]
pub struct HwQueue<'a> {
    /// Dies with the queue.
    progress: MonitoredFence,
    owned: Owned,
    context: &'a Context,
    /// Its process fills it, so that it has logs.
    has_logs: bool,
    /// Its progress fence is a native one.
    has_native_progress: bool,
    /// Its number in all processes, once a trace has asked for it.
    object: OnceLock<Option<u64>>,
}

impl HwQueue<'_> {
    /// The context of the queue.
    pub fn context(&self) -> &Context {
        self.context
    }

    fn device(&self) -> &Device {
        self.context.device()
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// The fence that has the value of the last command buffer that is done. Only the queue signals
    /// it.
    pub fn progress(&self) -> &MonitoredFence {
        &self.progress
    }

    /// Whether that is a native fence. If the process fills the queue by itself, its packets signal
    /// it as such ([`Pm4::signal_native`]).
    pub fn has_native_progress(&self) -> bool {
        self.has_native_progress
    }

    /// Submits a command buffer: so many bytes at a GPU address. The progress fence has `value`
    /// when it is done; each submission has a higher one.
    pub fn submit(&self, value: u64, commands: u64, length: u32) -> Result<()> {
        self.submit_with(value, commands, length, &[])
    }

    /// The same with private driver data.
    pub fn submit_with(
        &self,
        value: u64,
        commands: u64,
        length: u32,
        driver_data: &[u8],
    ) -> Result<()> {
        let mut arg = D3DKMT_SUBMITCOMMANDTOHWQUEUE::zeroed();
        arg.hHwQueue = self.handle().0;
        arg.HwQueueProgressFenceId = value;
        arg.CommandBuffer = commands;
        arg.CommandLength = length;
        let node = self.device().node();
        calls::gpu::submit_command_to_hw_queue(node, &mut arg, driver_data).map(|_| ())
    }

    /// Signals fences when all that was submitted before is done.
    pub fn signal(&self, fences: &FenceValues) -> Result<()> {
        self.signal_broadcast(&[], fences, SignalFlags::empty())
    }

    /// Signals fences once, when this queue and all the others have come so far.
    pub fn signal_broadcast(
        &self,
        others: &[&HwQueue<'_>],
        fences: &FenceValues,
        flags: SignalFlags,
    ) -> Result<()> {
        let mut queues = vec![self.handle().0];
        queues.extend(others.iter().map(|queue| queue.handle().0));
        let (node, pairs) = (self.device().node(), fences.pairs());
        calls::gpu::signal_in_hw_queues(node, &queues, pairs, flags.bits()).map(|_| ())
    }

    /// Holds back what is submitted later until every fence has reached its value.
    pub fn wait(&self, fences: &FenceValues) -> Result<()> {
        let node = self.device().node();
        calls::gpu::wait_in_hw_queue(node, self.handle().0, fences.pairs()).map(|_| ())
    }

    /// Appends a wait for a native fence to commands for this queue, as [`Pm4::wait_native`] does,
    /// and tells a timeline that it is queued (`Documentation/timeline.md`). If the queue has logs,
    /// it is logged.
    pub fn record_wait(&self, commands: Pm4, fence: &NativeFence, value: u64) -> Pm4 {
        self.tell(Operation::Wait, fence, value);
        match self.has_logs {
            true => commands.wait_native_logged(fence.gpu_address(), value, fence.handle()),
            false => commands.wait_native(fence.gpu_address(), value),
        }
    }

    /// The same for a signal, as [`Pm4::signal_native`] does.
    pub fn record_signal(&self, commands: Pm4, fence: &NativeFence, value: u64) -> Pm4 {
        self.tell(Operation::Signal, fence, value);
        match self.has_logs {
            true => commands.signal_native_logged(fence.gpu_address(), value, fence.handle()),
            false => commands.signal_native(fence.gpu_address(), value),
        }
    }

    fn tell(&self, operation: Operation, fence: &NativeFence, value: u64) {
        TRACE.tell(operation, value, || Some((self.named()?, fence.named()?)));
    }

    /// Who this is in a trace. A handle keeps its object, so that it has to be asked only once.
    fn named(&self) -> Option<Named> {
        let find = || object_of(self.device().node().fd()?, self.handle());
        let object = *self.object.get_or_init(find);
        Some(Named {
            handle: self.handle(),
            object: object?,
        })
    }

    /// Destroys the queue and reports what the driver said.
    pub fn destroy(self) -> Result<()> {
        self.owned.destroy()
    }

    /// Where the queue logs what it does with native fences, if its process fills it.
    pub fn log_detail(&self) -> Result<LogDetail> {
        let mut arg = D3DKMT_GETNATIVEFENCELOGDETAIL::zeroed();
        arg.hHwQueue = self.handle().0;
        calls::call(self.device().node(), &mut arg)?;
        Ok(LogDetail {
            waits: (arg.WaitLogGpuBaseAddress, arg.WaitLogNumberOfEntries),
            signals: (arg.SignalLogGpuBaseAddress, arg.SignalLogNumberOfEntries),
        })
    }

    /// Gives the handle away: nobody destroys it until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }
}

/// Where the logs of a hardware queue are: GPU address and number of entries of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDetail {
    /// Of waits for native fences.
    pub waits: (u64, u32),
    /// Of signals of native fences.
    pub signals: (u64, u32),
}

impl Context {
    /// Makes a hardware queue of this context.
    pub fn create_hw_queue(&self) -> Result<HwQueue<'_>> {
        self.create_hw_queue_with(0, &mut [])
    }

    /// Makes a hardware queue with flags (`D3DDDI_CREATEHWQUEUEFLAGS_*`) and private driver data.
    pub fn create_hw_queue_with(&self, flags: u32, driver_data: &mut [u8]) -> Result<HwQueue<'_>> {
        let (device, node) = (self.device(), self.device().node());
        let mut arg = D3DKMT_CREATEHWQUEUE::zeroed();
        arg.hHwContext = self.handle().0;
        arg.Flags = flags;
        let value = calls::gpu::create_hw_queue(node, &mut arg, driver_data)?;
        let fence = Owned::new(node, arg.hHwQueueProgressFence, Kind::InQueue);
        let fence = SyncObject::new(fence, Some(device.clone()), None);
        let address = arg.HwQueueProgressFenceGPUVirtualAddress;
        Ok(HwQueue {
            progress: MonitoredFence::new(fence, value, address),
            owned: Owned::new(node, arg.hHwQueue, Kind::HwQueue),
            context: self,
            has_logs: flags & D3DDDI_CREATEHWQUEUEFLAGS_UserModeSubmission != 0,
            has_native_progress: arg.Flags & D3DDDI_CREATEHWQUEUEFLAGS_NativeProgressFence != 0,
            object: OnceLock::new(),
        })
    }
}
