// SPDX-License-Identifier: GPL-2.0

//! The driver interface: what is between the OS part (`dxgk`) and a kernel-mode driver (`kmd`).
//!
//! The OS part calls a KMD through [`Kmd`], and only through a [`port::Port`]. No file above this
//! one knows which KMD an adapter has (GPU-102). Everything here is pure: it sees `core` and
//! `platform`, so that the host tests run the very same code. `Documentation/ddi.md` has the whole
//! shape, with the entries that come with their first caller.
//!
//! - Arguments are plain values and borrowed slices, good for the call only. Objects are named by
//!   ids and cookies (GPU-103).
//! - An entry that may fail returns a [`types::KmdResult`]; nothing else may fail (GPU-104).
//! - An entry takes the token of its context class (GPU-100).
//! - The interrupt rule: what a KMD may call in interrupt context touches atomics and queues work,
//!   nothing else. It takes no lock of the OS part but the interrupt lock, and wakes nobody; the
//!   adapter's worker does.
//!
//! ```text
//! class.rs    the context classes
//! types.rs    errors, ids, cookies
//! caps.rs     what a KMD says about its adapter
//! callbacks.rs what it asks the OS part
//! interrupt_lock.rs device interrupt level
//! context_allocation.rs memory that a KMD makes for contexts
//! feature.rs  features that both sides agree upon
//! segments.rs its memory segments
//! queue.rs    submissions, and what a KMD tells about them
//! cpu_event.rs events of processes that a KMD signals
//! border/     the same across the border of a virtual machine
//! native_fence.rs fences that the GPU waits for by itself
//! fence_storage.rs where their words are in memory of the GPU
//! doorbell.rs doorbells of queues that their process fills
//! paging.rs   page tables
//! power.rs    D0 and D3
//! process.rs  processes
//! recovery.rs engines that hang
//! reserve.rs GPU addresses that a KMD reserves
//! gate.rs     who is inside
//! port.rs     a started KMD, from StartDevice to RemoveDevice
//! slab.rs     objects by number, for cookies
//! index_map.rs values by number
//! verifier/   a layer around a KMD that reports broken rules
//! object/     what a KMD has made, from its create to its destroy
//! ```

pub mod border;
pub mod callbacks;
pub mod caps;
pub mod class;
pub mod context_allocation;
pub mod cpu_event;
pub mod doorbell;
pub mod feature;
pub mod fence_storage;
pub mod gate;
pub mod index_map;
pub mod interrupt_lock;
pub mod native_fence;
pub mod object;
pub mod paging;
pub mod port;
pub mod power;
pub mod process;
pub mod queue;
pub mod recovery;
pub mod reserve;
pub mod segments;
pub mod slab;
pub mod types;
pub mod verifier;

use crate::platform::Shared;
use caps::{
    AdapterQuery,
    NodeMetadata,
    StartInfo, //
};
use class::{
    DeviceInterrupt,
    Dispatch,
    Passive, //
};
use cpu_event::{
    CreateCpuEventArgs,
    CreatedCpuEvent, //
};
use doorbell::{
    Connected,
    CreateDoorbellArgs,
    Rung, //
};
use feature::{
    DriverInterface,
    FeatureSupport, //
};
use native_fence::{
    CreateNativeFenceArgs,
    CurrentValueUpdate,
    FenceDoorbell,
    FenceUpdate,
    LogBuffer,
    OpenNativeFenceArgs,
    PrivateData, //
};
use paging::{
    Built,
    PagingOperation,
    RootPageTable, //
};
use power::PowerState;
use process::CreateProcessArgs;
use queue::{
    NodeStatus,
    Submission,
    Suspend, //
};
use recovery::{
    DebugInfo,
    EngineStatus,
    ResetHwEngine, //
};
use reserve::ReserveAddresses;
use types::{
    AllocationCookie,
    AllocationEndCookie,
    AllocationId,
    AllocationInfo,
    ClockData,
    ContextCookie,
    CpuEventCookie,
    CreateAllocationArgs,
    CreateContextArgs,
    CreateDeviceArgs,
    CreateHwQueueArgs,
    DeviceCookie,
    DeviceError,
    DoorbellCookie,
    Escape,
    FenceDoorbellCookie,
    HwQueueCookie,
    KmdResult,
    NativeFenceCookie,
    OpenAllocationArgs,
    OpenAllocationCookie,
    OpenNativeFenceCookie,
    ProcessCookie, //
};

/// What a kernel-mode driver implements for one adapter.
///
/// AddDevice is the constructor of the implementing type, RemoveDevice is its drop. The token that
/// an entry gets says in which context it is called. What a reference leads to is good for the call
/// only. An entry whose result is no [`KmdResult`] must succeed (GPU-104).
pub trait Kmd: Destroy + Send + Sync {
    /// StartDevice, once, before anything else.
    fn start_device(&mut self, class: &Passive, info: &StartInfo) -> KmdResult;

    /// StopDevice, once: from now on there are only destroys. Nothing else is inside. It is the
    /// last time that the KMD signals CPU events (CPU-34).
    fn stop_device(&self, class: &Passive);

    /// QueryAdapterInfo: writes the answer to its place in `query`.
    fn query_adapter_info(&self, class: &Passive, query: AdapterQuery<'_>);

    /// GetNodeMetadata of a node that there is.
    fn get_node_metadata(&self, class: &Passive, node: u32) -> NodeMetadata;

    /// QueryFeatureSupport, once for each feature that the OS part knows (`DXGK_FEATURE_ID`), after
    /// StartDevice: which versions the driver has. Without `allow_experimental` it says no to a
    /// feature that is an experiment.
    fn query_feature_support(
        &self,
        class: &Passive,
        feature: u32,
        allow_experimental: bool,
    ) -> FeatureSupport;

    /// QueryFeatureInterface, once for each feature that is enabled, in the version that was agreed
    /// upon: what the driver has for it. From now on the callbacks tell what is enabled. If it
    /// fails there is no adapter.
    fn query_feature_interface(
        &self,
        class: &Passive,
        feature: u32,
        version: u16,
    ) -> KmdResult<DriverInterface>;

    /// CreateProcess: a process, once on each adapter it uses. The KMD may reserve some of its GPU
    /// addresses.
    fn create_process(
        &self,
        class: &Passive,
        process: &CreateProcessArgs<'_>,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<ProcessCookie>;

    /// CreateDevice, of a process that there is.
    fn create_device(&self, class: &Passive, device: &CreateDeviceArgs) -> KmdResult<DeviceCookie>;

    /// CreateContext, and CreateHwContext. One at a time for each device.
    fn create_context(
        &self,
        class: &Passive,
        device: DeviceCookie,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<ContextCookie>;

    /// GetRootPageTableSize, for page tables with two levels: how large a root is that has so many
    /// entries at least. Sets `entries` to how many it has then, and returns its bytes (MEM-54).
    fn get_root_page_table_size(&self, class: &Passive, entries: &mut u32) -> u32;

    /// SetRootPageTable, before the first submission, and when the root has moved: no work of the
    /// context runs then (MEM-59). One at a time for each device.
    fn set_root_page_table(&self, class: &Passive, context: ContextCookie, root: &RootPageTable);

    /// SetContextSchedulingProperties: the priority of the context's work, from -7 to 31 as in
    /// D3DKMTSetContextSchedulingPriority. One at a time for each device.
    fn set_context_priority(&self, class: &Passive, context: ContextCookie, priority: i32);

    /// CreateHwQueue, on a context of HW queues. One at a time for each device.
    fn create_hw_queue(
        &self,
        class: &Passive,
        context: ContextCookie,
        queue: &CreateHwQueueArgs<'_>,
    ) -> KmdResult<HwQueueCookie>;

    /// CreateDoorbell, of a queue whose process fills it. One at a time for each device. No
    /// physical doorbell is assigned yet.
    fn create_doorbell(
        &self,
        class: &Passive,
        queue: HwQueueCookie,
        doorbell: &CreateDoorbellArgs<'_>,
    ) -> KmdResult<DoorbellCookie>;

    /// ConnectDoorbell: assigns a physical doorbell, and takes one away from another queue if none
    /// is left. Fails only if the GPU is lost. One at a time for each doorbell, as the next ones.
    fn connect_doorbell(&self, class: &Passive, doorbell: DoorbellCookie) -> KmdResult<Connected>;

    /// DisconnectDoorbell: no process writes to the physical doorbell any more. What was rung
    /// before is in the ring, where the KMD has to look once more (GPU-23).
    fn disconnect_doorbell(&self, class: &Passive, doorbell: DoorbellCookie);

    /// NotifyWorkSubmission: the process has rung (GPU-25).
    fn notify_work_submission(&self, class: &Passive, doorbell: DoorbellCookie);

    /// The process accesses a physical doorbell that traps ([`Connected::traps`]), or may have
    /// written to the ring before the doorbell was connected: the KMD has to look there. It may
    /// come at the same time as everything else.
    fn doorbell_rung(&self, class: &Dispatch, doorbell: DoorbellCookie, why: Rung);

    /// CreateCpuEvent, for a driver with the feature KMD_SIGNAL_CPU_EVENT. The device says whose
    /// the event is; DestroyCpuEvent does not need it (CPU-30).
    fn create_cpu_event(
        &self,
        class: &Passive,
        device: DeviceCookie,
        event: &CreateCpuEventArgs<'_>,
    ) -> KmdResult<CreatedCpuEvent>;

    /// DpcRoutine, after [`QueueDpc`]: signals what the KMD has noted where it could not. It comes
    /// also when nothing was noted, and at the same time as everything else but another one.
    ///
    /// [`QueueDpc`]: cpu_event::CpuEventCallbacks::queue_dpc
    fn dpc_routine(&self, class: &Dispatch);

    /// CreateNativeFence, for a driver with the feature NATIVE_FENCE, before the first
    /// OpenNativeFence.
    fn create_native_fence(
        &self,
        class: &Passive,
        fence: &CreateNativeFenceArgs<'_>,
        private_data: &mut PrivateData,
    ) -> KmdResult<NativeFenceCookie>;

    /// OpenNativeFence: a device sees the fence. One fence may be open on a device several times.
    fn open_native_fence(
        &self,
        class: &Passive,
        fence: NativeFenceCookie,
        device: DeviceCookie,
        open: &OpenNativeFenceArgs,
        private_data: &mut PrivateData,
    ) -> KmdResult<OpenNativeFenceCookie>;

    /// The doorbell of a native fence, of a driver with [`NativeFenceCaps::doorbells`]. It is rung
    /// no more when DestroyNativeFence or StopDevice comes. Not an entry of the WDK.
    ///
    /// [`NativeFenceCaps::doorbells`]: native_fence::NativeFenceCaps::doorbells
    fn get_fence_doorbell(
        &self,
        class: &Passive,
        fence: NativeFenceCookie,
    ) -> KmdResult<Shared<dyn FenceDoorbell>>;

    /// The doorbell of a native fence of another adapter, which has the same CurrentValue as
    /// `fence`: from now on an engine that stores a value rings it, behind the same barrier as that
    /// before it looks at MonitoredValue (step G3). So a queue there that begins to wait when this
    /// has returned reads the value, or is told. What UpdateCurrentValuesFromCpu does is told by
    /// the OS part. Not an entry of the WDK.
    ///
    /// NoMemory: the GPU rings no more of them for one fence. The OS part tells the adapters then.
    fn connect_fence_doorbell(
        &self,
        class: &Passive,
        fence: NativeFenceCookie,
        doorbell: &Shared<dyn FenceDoorbell>,
    ) -> KmdResult<FenceDoorbellCookie>;

    /// UpdateMonitoredValues: stores the values. After it has returned, a store of an engine to
    /// CurrentValue is visible to everybody, or the engine decides about its interrupt with this
    /// value or a later one (FEN-73). It is of class I: the KMD reports no interrupt meanwhile but
    /// those that it reports here (FEN-74). It takes no lock but leaves of its own.
    ///
    /// If it fails the adapter is stopped, and neither of the two is called again (FEN-108).
    fn update_monitored_values(
        &self,
        class: &DeviceInterrupt,
        updates: &[FenceUpdate<'_>],
    ) -> KmdResult;

    /// UpdateCurrentValuesFromCpu: stores the values, and has the queues look again that wait for
    /// these fences. A lock of the OS part is held, and the KMD takes no other one that somebody
    /// may hold who waits. One at a time for each fence. It fails in the same way.
    fn update_current_values_from_cpu(
        &self,
        class: &Dispatch,
        updates: &[FenceUpdate<'_>],
        how: CurrentValueUpdate,
    ) -> KmdResult;

    /// SetNativeFenceLogBuffer, of a HW queue that its process fills: from now on its engine logs
    /// there. It comes again when the OS part wants a larger log, at any time (GPU-81). What the
    /// engine has logged in an older one is there on return, and nothing is kept back for it: its
    /// memory may go. One at a time for each queue.
    fn set_native_fence_log_buffer(&self, class: &Passive, queue: HwQueueCookie, log: &LogBuffer);

    /// UpdateNativeFenceLogs: on return every entry can be read that belongs to a header which was
    /// read before the call (GPU-78).
    fn update_native_fence_logs(&self, class: &Dispatch, queues: &[HwQueueCookie]);

    /// SubmitCommandVirtual, to a context of packets. One at a time for each context. The KMD has
    /// at most [`caps::NodeMetadata::max_in_flight_hw_queue_buffers`] submissions of a queue that
    /// have not completed, this one included.
    fn submit_command(&self, class: &Dispatch, context: ContextCookie, submission: &Submission);

    /// SubmitCommandToHwQueue. As [`Kmd::submit_command`].
    fn submit_command_to_hw_queue(
        &self,
        class: &Dispatch,
        queue: HwQueueCookie,
        submission: &Submission,
    );

    /// SuspendContext (GPU-51): its queues stop at the end of a packet. `id` comes back in
    /// [`queue::QueueCallbacks::suspended`]. One at a time for each device; submissions may come
    /// meanwhile.
    fn suspend_context(&self, class: &Dispatch, context: ContextCookie, id: u64) -> Suspend;

    /// ResumeContext (GPU-52): its queues go on. As [`Kmd::suspend_context`].
    fn resume_context(&self, class: &Dispatch, context: ContextCookie);

    /// BuildPagingBuffer. The KMD writes entries as it is told: the OS part sees to it that nobody
    /// else changes the same table at the same time. Commands for a paging buffer are built for one
    /// operation at a time, and only if the caps name a paging node; this does not wait for it.
    fn build_paging_buffer(&self, class: &Passive, operation: PagingOperation<'_>) -> Built;

    /// What a node does that there is. Not an entry of the WDK.
    fn query_node_status(&self, class: &Passive, node: u32) -> NodeStatus;

    /// GetStandardAllocationDriverData: the private data of a plain allocation of so many bytes, as
    /// many of them as [`caps::DriverCaps::standard_data_size`] says.
    fn get_standard_allocation_driver_data(&self, class: &Passive, size: u64, out: &mut [u8]);

    /// The same for the type FENCESTORAGE: where a page of words of native fences is to be, if that
    /// is in memory of the GPU (FEN-64).
    fn get_fence_storage_info(
        &self,
        class: &Passive,
        storage: &fence_storage::FenceStorageArgs,
    ) -> fence_storage::FenceStorageInfo;

    /// CreateAllocation, of what the private data describe.
    fn create_allocation(
        &self,
        class: &Passive,
        allocation: &CreateAllocationArgs<'_>,
    ) -> KmdResult<(AllocationCookie, AllocationInfo)>;

    /// OpenAllocation. One at a time for each device.
    fn open_allocation(
        &self,
        class: &Passive,
        what: &OpenAllocationArgs,
    ) -> KmdResult<OpenAllocationCookie>;

    /// CalibrateGpuClock of a node of a physical adapter that there is.
    fn calibrate_gpu_clock(&self, class: &Dispatch, node: u32, physical_adapter: u32) -> ClockData;

    /// Escape: a client's private request, answered in place. A refusal changes nothing.
    fn escape(&self, class: &Passive, escape: &Escape<'_>, data: &mut [u8]) -> KmdResult;

    /// PreemptCommand: the engine of a node that there is stops at the end of a packet, and then
    /// looks anew at what it has to run. Once that is so, QueryEngineStatus says `id`.
    fn preempt_command(&self, class: &Dispatch, node: u32, id: u64);

    /// QueryEngineStatus of a node that there is. It waits for no engine.
    fn query_engine_status(&self, class: &Passive, node: u32) -> EngineStatus;

    /// CollectDbgInfo, before ResetHwEngine with the same arguments: what the engine runs, or the
    /// context that hangs. It waits for no engine.
    fn collect_dbg_info(&self, class: &Passive, reset: &ResetHwEngine, info: &mut DebugInfo);

    /// ResetHwEngine, and ResetEngine: an engine runs both kinds of contexts. It names every
    /// context that is affected, [`queue::QueueCallbacks::invalidated`], whose work never goes on.
    /// On return no engine holds a translation of them, and no access of them is in progress
    /// (GPU-97). The engine does not run before ResumeHwEngine. Whoever has waited for the engine
    /// in another entry goes on, whether this succeeds or not.
    ///
    /// If it fails the engine runs nothing any more, until ResetFromTimeout.
    fn reset_hw_engine(&self, class: &Passive, reset: &ResetHwEngine) -> KmdResult;

    /// ResumeHwEngine: the engine runs what was not affected by its reset.
    fn resume_hw_engine(&self, class: &Passive, node: u32);

    /// ResetFromTimeout: resets the whole adapter. Nothing is inside but queries. All contexts are
    /// affected, and named. If it fails the adapter is stopped.
    fn reset_from_timeout(&self, class: &Passive) -> KmdResult;

    /// RestartFromTimeout: the adapter runs again. As [`Kmd::reset_from_timeout`].
    fn restart_from_timeout(&self, class: &Passive) -> KmdResult;

    /// Whether no queue has anything to do: no commands, nothing in a ring that was not run, no
    /// value that is waited for. Before D3, when all contexts are suspended and no doorbell is
    /// connected: what was rung before is seen. Not an entry of the WDK.
    fn is_idle(&self, class: &Passive) -> bool;

    /// A device is in error for a reason that the KMD does not know, once for each device. The KMD
    /// tells who waits for CPU events of it; its work is ended after that. Not an entry of the WDK.
    fn notify_device_error(&self, class: &Passive, device: DeviceCookie, why: DeviceError);

    /// A segment or the aperture has no room for what somebody wants there. The KMD tells who waits
    /// for that. It may come as often as users want. Not an entry of the WDK.
    fn notify_memory_pressure(&self, class: &Passive);

    /// SetPowerState, to the other state (GPU-28). To D3 only when [`Kmd::is_idle`] has said so,
    /// although something may have been submitted since. In D3 no doorbell is connected. One of
    /// these at a time.
    fn set_power_state(&self, class: &Passive, state: PowerState);
}

/// The destroys: the only entries that are called after StopDevice too. They cannot fail. What was
/// made is destroyed exactly once, after everything that was made on it.
pub trait Destroy {
    /// DestroyProcess, after its devices. Nothing of its address space is used any more.
    fn destroy_process(&self, class: &Passive, process: ProcessCookie);

    /// DestroyDevice, after its contexts and open allocations.
    fn destroy_device(&self, class: &Passive, device: DeviceCookie);

    /// DestroyContext and DestroyHwContext, after its HW queues. One at a time for each device.
    /// What runs is stopped at the end of a packet. On return no engine runs work of it, and no
    /// callback of it is inside or comes any more.
    fn destroy_context(&self, class: &Passive, context: ContextCookie);

    /// DestroyHwQueue, in the same way. One at a time for each device.
    fn destroy_hw_queue(&self, class: &Passive, queue: HwQueueCookie);

    /// DestroyDoorbell, which is disconnected. One at a time for each device. On return no engine
    /// reads the ring or runs anything of it.
    fn destroy_doorbell(&self, class: &Passive, doorbell: DoorbellCookie);

    /// DestroyCpuEvent. On return nothing signals it, and it is not kept. It may come at the same
    /// time as everything else.
    fn destroy_cpu_event(&self, class: &Passive, event: CpuEventCookie);

    /// CloseNativeFence: the device does not see it any more. It may come at the same time as
    /// everything else.
    fn close_native_fence(&self, class: &Passive, open: OpenNativeFenceCookie);

    /// The end of [`Kmd::connect_fence_doorbell`]. On return nobody is ringing the doorbell for
    /// this fence, and it is not kept. It may come at the same time as everything else. Not an
    /// entry of the WDK.
    fn disconnect_fence_doorbell(&self, class: &Passive, doorbell: FenceDoorbellCookie);

    /// DestroyNativeFence, after the last CloseNativeFence, and when no doorbell is connected. On
    /// return no callback of it is inside or comes any more.
    fn destroy_native_fence(&self, class: &Passive, fence: NativeFenceCookie);

    /// NotifyAllocationEnd, if [`types::AllocationInfo::notify_end`] asked for it: once, when the
    /// last strong reference is gone and before the bytes are (RES-75). No lock is held: whatever
    /// this leads to may make and open other objects of the adapter. The allocation cannot be
    /// found or opened any more, and DestroyAllocation is still to come.
    fn notify_allocation_end(&self, class: &Passive, end: AllocationEndCookie, id: AllocationId);

    /// DestroyAllocation, after everybody has closed it.
    fn destroy_allocation(&self, class: &Passive, allocation: AllocationCookie);

    /// CloseAllocation. One at a time for each device.
    fn close_allocation(&self, class: &Passive, open: OpenAllocationCookie);
}
