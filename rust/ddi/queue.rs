// SPDX-License-Identifier: GPL-2.0

//! Work on its way through the driver interface: what is submitted, and what a KMD tells about it.
//!
//! A *queue* is what takes submissions: a context of packets, or a HW queue.

use super::{
    class::DeviceInterrupt,
    power::EngineState, //
};

/// A DMA buffer for a queue (SubmitCommandVirtual, SubmitCommandToHwQueue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// `SubmissionFenceId`: which submission of its queue it is, from 1 without gaps.
    pub number: u64,
    /// GPU virtual address of the commands, a multiple of 4.
    pub commands: u64,
    /// Bytes of the commands, a multiple of 4 and not 0.
    pub length: u32,
    /// What is stored to the progress fence of a HW queue when the buffer retires: FEN-126, for
    /// nodes with [`RingBufferFenceRelease`]. `None` for a context of packets.
    ///
    /// [`RingBufferFenceRelease`]: super::caps::NodeMetadata::ring_buffer_fence_release
    pub progress: Option<u64>,
}

/// What SuspendContext has done; both are success (GPU-51).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspend {
    /// No queue of the context runs any more.
    Done,
    /// [`QueueCallbacks::suspended`] comes when that is so.
    Pending,
}

/// DXGK_INTERRUPT_NATIVE_FENCE_SIGNALED without an array of fences (FEN-93 to FEN-97).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFenceSignaled {
    /// `hHWQueue` is the queue whose callbacks these are, which has signalled. Otherwise it is
    /// NULL, and it was any queue of the engine.
    pub names_queue: bool,
    /// `EvaluateLegacyMonitoredFences`: values of monitored fences may have been stored, too.
    pub evaluate_legacy_monitored_fences: bool,
}

/// Calls from a KMD to the OS part about one queue: NotifyInterrupt, with the record that belongs
/// to the queue.
///
/// They may be called under locks of the KMD: those of NotifyInterrupt at device interrupt level,
/// the others in any context class. They obey the interrupt rule: they touch atomics and queue
/// work, nothing else. What implements this keeps neither the adapter nor the object, because the
/// KMD keeps it until the object is destroyed.
pub trait QueueCallbacks: Send + Sync {
    /// Work of the queue has run for so many nanoseconds more; the engine ran another queue before,
    /// or none, if `switched`. With 0 a queue that its process fills is about to run, so that it is
    /// watched (GPU-94). Not one of the WDK; comes before what that work has led to is told.
    /// Who does not count them need not.
    fn ran(&self, _ns: u64, _switched: bool) {}

    /// Of the time that it has run, so many nanoseconds were for looking again whether a value is
    /// there that it waits for. Not one of the WDK; a queue that its process fills does not run
    /// then (GPU-93). It comes before [`QueueCallbacks::ran`] of the same time.
    fn polled(&self, _ns: u64) {}

    /// Work of the queue has waited for a value in the middle of its commands for so many
    /// nanoseconds more, and not for its turn: an unmet wait packet. Not one of the WDK; it counts
    /// for the TDR time of work that was submitted (GPU-93).
    fn waited(&self, _ns: u64) {}

    /// From this moment on, in nanoseconds, the queue waits for a native fence, until
    /// [`QueueCallbacks::waited`] or [`QueueCallbacks::ran`]. Not one of the WDK. Nobody looks at
    /// such a queue meanwhile, and its time counts all the same.
    fn waits(&self, _since_ns: u64) {}

    /// All commands of this submission and of those before it have been read, and some of them are
    /// still carried out (FEN-41). Not one of the WDK. What has completed has been read; a KMD that
    /// does not know more need not call this.
    fn fetched(&self, _number: u64) {}

    /// DMA_COMPLETED: this submission and all before it have retired. Their stores are visible to
    /// who has been told so. Numbers do not go back, and may leave some out.
    fn completed(&self, class: &DeviceInterrupt, number: u64);

    /// MONITORED_FENCE_SIGNALED: values were stored to monitored fences, and the client asked for
    /// an interrupt. Which ones is not said.
    fn monitored_fence_signaled(&self, class: &DeviceInterrupt);

    /// NATIVE_FENCE_SIGNALED without an array of fences: which of them an engine has signalled is
    /// for the OS part to find out, by their values or by the logs of queues. What was stored and
    /// logged before is visible to everybody (GPU-62).
    fn native_fence_signaled(&self, _class: &DeviceInterrupt, _record: NativeFenceSignaled) {}

    /// DMA_PAGE_FAULTED, HWQUEUE_PAGE_FAULTED, or an illegal packet: the queue has stopped for
    /// good, once (GPU-36, GPU-68).
    fn faulted(&self, class: &DeviceInterrupt, fault: &Fault);

    /// GPU_ENGINE_STATE_CHANGE, of the engine that has the queue (GPU-28). For any one of its
    /// queues. A KMD whose engines do not change need not call it.
    fn engine_state_changed(&self, _class: &DeviceInterrupt, _state: EngineState) {}

    /// InvalidateHwContext: a reset has hit the context, or the context of the queue. None of its
    /// work goes on. Told by ResetHwEngine or ResetFromTimeout, before that returns.
    fn invalidated(&self);

    /// SUSPEND_CONTEXT_COMPLETED: no queue of the context runs any more, after the SuspendContext
    /// with this id.
    fn suspended(&self, class: &DeviceInterrupt, id: u64);
}

/// Why a queue has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// GPU virtual address of the packet.
    pub packet: u64,
    /// The submission whose commands it was.
    pub number: u64,
    /// `DXGK_PAGE_FAULT_*`.
    pub flags: u32,
}

/// What went wrong in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access that the page tables do not allow (GPU-67).
    PageFault {
        /// The GPU virtual address.
        address: u64,
        /// Whether it was to be written to.
        write: bool,
        /// Which level of page tables had no valid entry; 0 is that of the pages.
        level: u32,
    },
    /// A packet that is none (GPU-36).
    IllegalPacket {
        /// Its first dword.
        header: u32,
    },
}

/// `DXGK_PAGE_FAULT_WRITE`: it was a store.
pub const PAGE_FAULT_WRITE: u32 = 0x1;

/// What a node does, for people who watch it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStatus {
    /// Whose work it runs: the number of a [`ContextId`] or a [`HwQueueId`].
    ///
    /// [`ContextId`]: super::types::ContextId
    /// [`HwQueueId`]: super::types::HwQueueId
    pub running: Option<u64>,
    /// Nanoseconds that it has run work since the start of the adapter.
    pub busy_ns: u64,
    /// Submissions that have retired.
    pub submissions: u64,
    /// How often it went on with the work of another queue.
    pub switches: u64,
    /// Queues that could run.
    pub ready: u32,
    /// Queues that wait for a value in memory.
    pub blocked: u32,
}
