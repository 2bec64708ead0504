// SPDX-License-Identifier: GPL-2.0

//! The software adapter: a GPU that is not there.
//!
//! What it cannot do is absent: a cap is 0, a name is the empty string. Nothing is reported that a
//! client could then fail to use.

mod adapter;
pub mod allocation_data;
mod answers;
mod aperture;
mod cause;
pub mod cmp;
pub mod commands;
mod config;
mod context;
mod cpu_events;
mod doorbells;
mod engine_core;
mod entries;
mod fence_doorbells;
mod identity;
mod late_stores;
pub mod listed;
pub mod memory;
pub mod native_fences;
mod native_record;
mod nodes;
pub mod own_doorbell;
pub mod page_tables;
pub mod paging_buffer;
mod parts;
pub mod polls;
pub mod queue;
mod recovery;
mod report;
pub mod save_area;
mod save_areas;
mod shell;
mod system_space;
pub mod table_writes;
mod translations;

use crate::{
    ddi::{
        callbacks::Callbacks,
        caps::{
            AdapterQuery,
            AdapterType,
            DriverCaps,
            HardwareInformation,
            Luid,
            NodeMetadata,
            StartInfo, //
        },
        class::{
            DeviceInterrupt,
            Dispatch,
            Passive, //
        },
        cpu_event::{
            self,
            CreateCpuEventArgs,
            CreatedCpuEvent, //
        },
        doorbell::{
            Connected,
            CreateDoorbellArgs,
            Rung, //
        },
        feature::{
            DriverInterface,
            FeatureSupport,
            OsInterface, //
        },
        fence_storage::{
            FenceStorageArgs,
            FenceStorageInfo, //
        },
        native_fence::{
            self,
            CreateNativeFenceArgs,
            CurrentValueUpdate,
            FenceDoorbell,
            FenceUpdate,
            LogBuffer,
            NativeFenceCaps,
            NativeFenceFunctions,
            OpenNativeFenceArgs,
            PrivateData, //
        },
        paging::{
            Built,
            PagingOperation,
            RootPageTable, //
        },
        power::PowerState,
        process::CreateProcessArgs,
        queue::{
            NodeStatus,
            Submission,
            Suspend, //
        },
        recovery::{
            DebugInfo,
            EngineStatus,
            ResetHwEngine, //
        },
        reserve::ReserveAddresses,
        types::{
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
            KmdError,
            KmdResult,
            NativeFenceCookie,
            OpenAllocationArgs,
            OpenAllocationCookie,
            OpenNativeFenceCookie,
            ProcessCookie,
            Text, //
        },
        Destroy,
        Kmd, //
    },
    platform::{
        self,
        Shared, //
    }, //
};
use adapter::Adapter;
use allocation_data::{
    DriverData,
    DRIVER_DATA_SIZE, //
};
use cause::{
    Cause,
    Usage,
    USAGE_SIZE, //
};
use commands::Command;
pub use config::{
    AdapterProfile,
    Config,
    DoorbellConfig,
    FenceAddresses,
    FenceMemory,
    MonitoredValues,
    NativeInterruptMode,
    SaveAreaKind,
    SaveAreas,
    TableMemory,
    TableUpdates, //
};
use recovery::Updates;

/// The name people see.
const NAME: &str = "opendxg software GPU";

/// `DXGK_FEATURE_HWSCH` and `DXGK_FEATURE_USER_MODE_SUBMISSION`.
const HWSCH: u32 = 0;
const USER_MODE_SUBMISSION: u32 = 4;

/// The version that it has of each feature.
const VERSION: u16 = 1;

/// Bytes between two native fences in a page, unless it is made otherwise.
const FENCE_STRIDE: u32 = 64;

/// Priority of an allocation: `D3DDDI_ALLOCATIONPRIORITY_NORMAL`.
const PRIORITY_NORMAL: u32 = 0x7800_0000;

/// `DriverKnownEscape` of `D3DDDI_ESCAPEFLAGS`: an escape that every driver knows.
const KNOWN_ESCAPE: u32 = 1 << 6;
/// Bytes of those about handles.
const KNOWN_ESCAPE_SIZE: usize = 8;
/// The same with `NoAdapterSynchronization`: nothing is to be waited for, and nothing is.
const KNOWN_ESCAPE_AT_ONCE: u32 = KNOWN_ESCAPE | (1 << 3);

/// `VirtualMachineData`: the data are those of a guest, which an event of one may have.
const VIRTUAL_MACHINE_DATA: u32 = 1 << 5;

/// Whether flags are those of an escape that every driver knows.
fn is_known(flags: u32) -> bool {
    matches!(flags, KNOWN_ESCAPE | KNOWN_ESCAPE_AT_ONCE)
}

/// Ticks of the clock in one second.
const CLOCK_HZ: u64 = 1_000_000_000;

/// Sizes of memory are whole pages.
const PAGE_SIZE: u64 = 4096;

/// Bytes of its own that an adapter has unless it is made otherwise.
const LOCAL_MEMORY: u64 = 64 << 20;

/// No memory is larger: what processors can address.
const MAX_MEMORY: u64 = 1 << 48;

impl Config {
    /// Whether there can be such an adapter.
    pub fn is_valid(&self) -> bool {
        let is_size = |bytes| bytes % PAGE_SIZE == 0 && bytes <= MAX_MEMORY;

        is_size(self.local_memory)
            && self.local_memory % self.page_size().bytes() == 0
            && is_size(self.system_memory)
            && self.local_memory <= self.profile.most_local_memory()
            && (1..=nodes::COUNT).contains(&self.nodes)
            && self.doorbells.is_valid()
            && self.fence_addresses.is_valid()
            && self.fence_stride.is_power_of_two()
            && (8..=4096).contains(&self.fence_stride)
            && (self.save_areas.kind == SaveAreaKind::None || self.has_paging_node())
            && (self.table_updates == TableUpdates::Processor || self.has_paging_node())
            && (self.tables == TableMemory::System || self.has_room_for_tables())
            && identity::is_wddm_version(self.wddm_version)
            // The CMP does not know which queue it interrupts for.
            && !(self.monitored_values == MonitoredValues::Shadow
                && self.native_interrupts.is_optimized())
    }
}

impl Config {
    /// Whether local memory has pages of the size of a table.
    fn has_room_for_tables(&self) -> bool {
        self.local_memory != 0 && !self.use_64kb_pages
    }

    /// Whether a node fills and moves memory. Without memory of its own there is nothing to fill or
    /// to move.
    fn has_paging_node(&self) -> bool {
        self.nodes > nodes::PAGING && self.local_memory != 0
    }
}

impl Default for Config {
    /// `vram4` with 64 MiB of its own, all nodes, the newest version.
    fn default() -> Self {
        Self {
            index: 0,
            local_memory: LOCAL_MEMORY,
            system_memory: 0,
            nodes: nodes::COUNT,
            compute_only: false,
            wddm_version: identity::WDDM_VERSION,
            profile: AdapterProfile::default(),
            idle_updates: false,
            use_64kb_pages: false,
            doorbells: DoorbellConfig::default(),
            native_fences: true,
            native_interrupts: NativeInterruptMode::default(),
            monitored_values: MonitoredValues::default(),
            fence_addresses: FenceAddresses::default(),
            fence_stride: FENCE_STRIDE,
            intra_gpu_fences: true,
            fence_memory: FenceMemory::default(),
            lazy_logs: false,
            map_to_gpu_system_process: false,
            fence_doorbells: false,
            save_areas: SaveAreas::default(),
            table_updates: TableUpdates::default(),
            tables: TableMemory::default(),
        }
    }
}

/// A software adapter.
pub struct SoftKmd {
    config: Config,
    /// The adapter's name, from StartDevice on.
    luid: Luid,
    /// What it asks the OS part by, from StartDevice on.
    callbacks: Callbacks,
    /// What runs, from StartDevice on.
    adapter: Option<Adapter>,
}

impl SoftKmd {
    /// AddDevice: a KMD that has not been started.
    pub fn add_device(config: Config) -> Self {
        Self {
            config,
            luid: Luid::default(),
            callbacks: Callbacks::NONE,
            adapter: None,
        }
    }

    /// What runs. The OS part calls nothing that needs it before StartDevice.
    fn adapter(&self) -> KmdResult<&Adapter> {
        self.adapter.as_ref().ok_or(KmdError::DeviceRemoved)
    }

    fn driver_caps(&self) -> DriverCaps {
        DriverCaps {
            name: Text::new(NAME),
            hardware: HardwareInformation {
                chip_type: Text::new(NAME),
                gpu_architecture: Text::new(NAME),
                ..HardwareInformation::default()
            },
            guid: identity::guid(self.config.index),
            driver_version: identity::DRIVER_VERSION,
            wddm_version: self.config.wddm_version,
            device_ids: identity::DEVICE_IDS,
            adapter_type: AdapterType {
                render: !self.config.compute_only,
                software: true,
                compute_only: self.config.compute_only,
                ..AdapterType::default()
            },
            driver_store: Text::new(identity::DRIVER_STORE),
            umd_private_size: identity::UMD_PRIVATE_SIZE,
            // CAST: small numbers.
            standard_data_size: DRIVER_DATA_SIZE as u32,
            max_escape_size: cause::READ_SIZE as u32,
            physical_adapters: 1,
            nodes: self.config.nodes,
            paging_node: self.config.has_paging_node().then_some(nodes::PAGING),
            native_gpu_fence: self
                .callbacks
                .is_feature_enabled(native_fence::FEATURE)
                .is_some(),
            optimized_native_fence_interrupt: self.config.native_interrupts.is_optimized(),
            gpu_mmu: page_tables::mmu_caps(&self.config),
            local_memory: self.config.local_memory,
            system_memory: self.config.system_memory,
            // Nothing that is not written here.
            ..DriverCaps::default()
        }
    }
}

impl Kmd for SoftKmd {
    fn start_device(&mut self, _: &Passive, info: &StartInfo) -> KmdResult {
        if !self.config.profile.reaches(platform::memory_end()) {
            return Err(KmdError::NotSupported);
        }
        self.luid = info.luid;
        self.callbacks = info.callbacks.clone();
        self.adapter =
            Some(Adapter::start(&self.config, &self.callbacks).ok_or(KmdError::NoMemory)?);
        Ok(())
    }

    fn stop_device(&self, class: &Passive) {
        if let Ok(adapter) = self.adapter() {
            adapter.stop(class);
        }
    }

    fn query_adapter_info(&self, _: &Passive, query: AdapterQuery<'_>) {
        match query {
            AdapterQuery::DriverCaps(caps) => *caps = self.driver_caps(),
            AdapterQuery::UmdDriverPrivate(out) => {
                identity::umd_driver_private(&self.config, self.luid, out);
            }
            AdapterQuery::NativeFenceCaps(caps) => {
                *caps = NativeFenceCaps {
                    stride: self.config.fence_stride,
                    map_to_gpu_system_process: self.config.map_to_gpu_system_process,
                    minimum_address: self.config.fence_addresses.minimum,
                    maximum_address: self.config.fence_addresses.maximum,
                    intra_gpu_type: self.config.intra_gpu_fences,
                    optimized_default_type: self.config.fence_memory.is_optimized(),
                    doorbells: self.config.fence_doorbells,
                };
            }
            AdapterQuery::Segments(segments) => {
                if let Ok(adapter) = self.adapter() {
                    adapter.describe_segments(segments);
                }
            }
        }
    }

    fn get_node_metadata(&self, _: &Passive, node: u32) -> NodeMetadata {
        nodes::metadata(node, self.config.compute_only)
    }

    /// A feature counts as there only once the driver implements it (FEN-113, FEN-115). None is an
    /// experiment.
    fn query_feature_support(&self, _: &Passive, feature: u32, _: bool) -> FeatureSupport {
        let has = match feature {
            HWSCH | cpu_event::FEATURE => true,
            USER_MODE_SUBMISSION | native_fence::FEATURE => self.config.native_fences,
            _ => false,
        };

        match has {
            true => FeatureSupport::versions(VERSION, VERSION),
            false => FeatureSupport::NONE,
        }
    }

    fn query_feature_interface(
        &self,
        _: &Passive,
        feature: u32,
        version: u16,
    ) -> KmdResult<DriverInterface> {
        match self.callbacks.query_feature_interface(feature, version)? {
            OsInterface::NativeFence(_) => {
                Ok(DriverInterface::NativeFence(NativeFenceFunctions::ALL))
            }
            OsInterface::Plain => Ok(DriverInterface::Plain),
        }
    }

    /// It has no use for addresses of its own, and signals no handle.
    fn create_process(
        &self,
        _: &Passive,
        _: &CreateProcessArgs<'_>,
        _: &mut dyn ReserveAddresses,
    ) -> KmdResult<ProcessCookie> {
        self.adapter()?.create_process()
    }

    fn create_device(&self, class: &Passive, device: &CreateDeviceArgs) -> KmdResult<DeviceCookie> {
        self.adapter()?.create_device(class, device)
    }

    fn create_cpu_event(
        &self,
        _: &Passive,
        device: DeviceCookie,
        event: &CreateCpuEventArgs<'_>,
    ) -> KmdResult<CreatedCpuEvent> {
        self.adapter()?.cpu_events.create(device, event)
    }

    /// It has nothing to say to clients about one.
    fn create_native_fence(
        &self,
        _: &Passive,
        fence: &CreateNativeFenceArgs<'_>,
        _: &mut PrivateData,
    ) -> KmdResult<NativeFenceCookie> {
        self.adapter()?.native_fences.create(fence)
    }

    fn open_native_fence(
        &self,
        _: &Passive,
        fence: NativeFenceCookie,
        device: DeviceCookie,
        open: &OpenNativeFenceArgs,
        _: &mut PrivateData,
    ) -> KmdResult<OpenNativeFenceCookie> {
        self.adapter()?.open_native_fence(fence, device, open)
    }

    fn get_fence_doorbell(
        &self,
        _: &Passive,
        fence: NativeFenceCookie,
    ) -> KmdResult<Shared<dyn FenceDoorbell>> {
        own_doorbell::of(&self.adapter()?.native_fences, fence)
    }

    fn connect_fence_doorbell(
        &self,
        _: &Passive,
        fence: NativeFenceCookie,
        doorbell: &Shared<dyn FenceDoorbell>,
    ) -> KmdResult<FenceDoorbellCookie> {
        self.adapter()?.native_fences.connect(fence, doorbell)
    }

    fn update_monitored_values(
        &self,
        class: &DeviceInterrupt,
        updates: &[FenceUpdate<'_>],
    ) -> KmdResult {
        let adapter = self.adapter()?;

        adapter.may_update(Updates::MonitoredValues)?;
        adapter
            .native_fences
            .update_monitored_values(class, updates)
    }

    fn update_current_values_from_cpu(
        &self,
        _: &Dispatch,
        updates: &[FenceUpdate<'_>],
        how: CurrentValueUpdate,
    ) -> KmdResult {
        let adapter = self.adapter()?;

        adapter.may_update(Updates::CurrentValues)?;
        adapter.native_fences.update_current_values(updates, how)
    }

    fn set_native_fence_log_buffer(&self, _: &Passive, queue: HwQueueCookie, log: &LogBuffer) {
        if let Ok(adapter) = self.adapter() {
            adapter.set_log(queue, log);
        }
    }

    /// Engines store entries before headers, so that a barrier of the reader is all that it takes,
    /// but for what they keep back.
    fn update_native_fence_logs(&self, _: &Dispatch, _: &[HwQueueCookie]) {
        platform::full_fence();
        if let Ok(adapter) = self.adapter() {
            adapter.drain_logs();
        }
    }

    fn dpc_routine(&self, class: &Dispatch) {
        if let Ok(adapter) = self.adapter() {
            adapter.cpu_events.dpc(class);
        }
    }

    fn create_context(
        &self,
        class: &Passive,
        device: DeviceCookie,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<ContextCookie> {
        self.adapter()?.create_context(class, device, context)
    }

    fn get_root_page_table_size(&self, _: &Passive, entries: &mut u32) -> u32 {
        page_tables::root_size(self.config.profile, entries)
    }

    fn set_root_page_table(&self, class: &Passive, context: ContextCookie, root: &RootPageTable) {
        if let Ok(adapter) = self.adapter() {
            adapter.set_root_page_table(class, context, root);
        }
    }

    fn set_context_priority(&self, _: &Passive, context: ContextCookie, priority: i32) {
        if let Ok(adapter) = self.adapter() {
            adapter.set_context_priority(context, priority);
        }
    }

    fn create_hw_queue(
        &self,
        _: &Passive,
        context: ContextCookie,
        queue: &CreateHwQueueArgs<'_>,
    ) -> KmdResult<HwQueueCookie> {
        self.adapter()?.create_hw_queue(context, queue)
    }

    fn create_doorbell(
        &self,
        _: &Passive,
        queue: HwQueueCookie,
        doorbell: &CreateDoorbellArgs<'_>,
    ) -> KmdResult<DoorbellCookie> {
        self.adapter()?.create_doorbell(queue, doorbell)
    }

    fn connect_doorbell(&self, _: &Passive, doorbell: DoorbellCookie) -> KmdResult<Connected> {
        self.adapter()?.connect_doorbell(doorbell)
    }

    fn disconnect_doorbell(&self, _: &Passive, doorbell: DoorbellCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.disconnect_doorbell(doorbell);
        }
    }

    /// As a ring that was told.
    fn notify_work_submission(&self, _: &Passive, doorbell: DoorbellCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.doorbell_rung(doorbell, Rung::Accessed);
        }
    }

    fn doorbell_rung(&self, _: &Dispatch, doorbell: DoorbellCookie, why: Rung) {
        if let Ok(adapter) = self.adapter() {
            adapter.doorbell_rung(doorbell, why);
        }
    }

    fn submit_command(&self, _: &Dispatch, context: ContextCookie, submission: &Submission) {
        if let Ok(adapter) = self.adapter() {
            adapter.submit_command(context, submission);
        }
    }

    fn submit_command_to_hw_queue(
        &self,
        _: &Dispatch,
        queue: HwQueueCookie,
        submission: &Submission,
    ) {
        if let Ok(adapter) = self.adapter() {
            adapter.submit_command_to_hw_queue(queue, submission);
        }
    }

    fn suspend_context(&self, _: &Dispatch, context: ContextCookie, id: u64) -> Suspend {
        self.adapter().map_or(Suspend::Done, |adapter| {
            adapter.suspend_context(context, id)
        })
    }

    fn resume_context(&self, _: &Dispatch, context: ContextCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.resume_context(context);
        }
    }

    fn build_paging_buffer(&self, _: &Passive, operation: PagingOperation<'_>) -> Built {
        self.adapter().map_or(Built::Failed, |adapter| {
            adapter.build_paging_buffer(operation)
        })
    }

    fn query_node_status(&self, _: &Passive, node: u32) -> NodeStatus {
        self.adapter().map_or_else(
            |_| NodeStatus::default(),
            |adapter| adapter.node_status(node),
        )
    }

    fn get_standard_allocation_driver_data(&self, _: &Passive, size: u64, out: &mut [u8]) {
        for (place, byte) in out.iter_mut().zip(DriverData::linear(size).encode()) {
            *place = byte;
        }
    }

    fn get_fence_storage_info(&self, _: &Passive, storage: &FenceStorageArgs) -> FenceStorageInfo {
        self.adapter().map_or_else(
            |_| FenceStorageInfo::default(),
            |adapter| {
                adapter
                    .segment_ids()
                    .fence_storage(storage, self.config.fence_memory)
            },
        )
    }

    /// There is nothing to remember of an allocation, or of an open one: their cookies are 0.
    ///
    /// Memory of the caller may be described by data of another driver, whose clients run here too:
    /// the size is then for the OS part to find out (RES-23).
    fn create_allocation(
        &self,
        _: &Passive,
        allocation: &CreateAllocationArgs<'_>,
    ) -> KmdResult<(AllocationCookie, AllocationInfo)> {
        let ids = self.adapter()?.segment_ids();
        let data = match DriverData::decode(allocation.private_data) {
            Ok(data) => data,
            Err(_) if allocation.existing && !DriverData::is_ours(allocation.private_data) => {
                DriverData::linear(0)
            }
            Err(error) => return Err(error),
        };
        let segment = match data.local {
            false => ids.aperture,
            // Memory of the caller is where it is.
            true => ids
                .local
                .filter(|_| !allocation.existing)
                .ok_or(KmdError::InvalidParameter)?,
        };
        let info = AllocationInfo {
            size: data.size,
            // CAST: 4096.
            alignment: data.alignment.max(PAGE_SIZE as u32),
            priority: PRIORITY_NORMAL,
            supported_segments: 1_u32.wrapping_shl(segment),
            preferred_segment: segment,
            accessed_physically: data.accessed_physically,
            explicit_residency_notification: data.notify_residency,
            cpu_visible: true,
            notify_end: None,
        };

        Ok((AllocationCookie(0), info))
    }

    fn open_allocation(
        &self,
        _: &Passive,
        _: &OpenAllocationArgs,
    ) -> KmdResult<OpenAllocationCookie> {
        Ok(OpenAllocationCookie(0))
    }

    /// The clock is CLOCK_MONOTONIC, so that one sample is both counters.
    fn calibrate_gpu_clock(&self, _: &Dispatch, _: u32, _: u32) -> ClockData {
        let now = match self.adapter() {
            // All bits of what is read from a device that is gone are set.
            Ok(adapter) if adapter.is_lost() => u64::MAX,
            _ => platform::now_ns(),
        };

        ClockData {
            gpu_frequency: CLOCK_HZ,
            gpu_counter: now,
            cpu_counter: now,
            is_cmp_clock: true,
        }
    }

    /// Of the known ones the usage of a CPU event; what was kept for one; private commands.
    fn escape(&self, class: &Passive, escape: &Escape<'_>, data: &mut [u8]) -> KmdResult {
        match (escape.flags, data.len()) {
            (KNOWN_ESCAPE, KNOWN_ESCAPE_SIZE) => Err(KmdError::NotSupported),
            (flags, USAGE_SIZE) if is_known(flags & !VIRTUAL_MACHINE_DATA) => {
                let (event, words) = cause::usage_of(data);
                let usage = Usage::new(words, self.config.nodes, escape.handles)?;
                let device = escape.device.ok_or(KmdError::InvalidParameter)?;

                self.adapter()?.cpu_events.set_usage(device, event, usage)
            }
            (0, _) => {
                if let Some(event) = cause::requested(data) {
                    let device = escape.device.ok_or(KmdError::InvalidParameter)?;

                    self.adapter()?
                        .cpu_events
                        .take_log(device, event?)?
                        .answer(data);
                    return Ok(());
                }

                let command = Command::decode(data)?;

                if !escape.is_privileged {
                    return Err(KmdError::AccessDenied);
                }
                self.adapter()?.command(class, command)?;
                if let Some(node) = command.holds_reset() {
                    let held_in = self.adapter()?.reset_held_in(node);

                    if let Some(answer) = data.last_chunk_mut() {
                        *answer = held_in.to_le_bytes();
                    }
                }
                Ok(())
            }
            _ => Err(KmdError::InvalidParameter),
        }
    }

    fn preempt_command(&self, _: &Dispatch, node: u32, id: u64) {
        if let Ok(adapter) = self.adapter() {
            adapter.preempt_command(node, id);
        }
    }

    fn query_engine_status(&self, _: &Passive, node: u32) -> EngineStatus {
        self.adapter().map_or_else(
            |_| EngineStatus::default(),
            |adapter| adapter.engine_status(node),
        )
    }

    fn collect_dbg_info(&self, _: &Passive, reset: &ResetHwEngine, info: &mut DebugInfo) {
        if let Ok(adapter) = self.adapter() {
            adapter.collect_dbg_info(reset, info);
        }
    }

    fn reset_hw_engine(&self, _: &Passive, reset: &ResetHwEngine) -> KmdResult {
        self.adapter()?.reset_hw_engine(reset)
    }

    fn resume_hw_engine(&self, _: &Passive, node: u32) {
        if let Ok(adapter) = self.adapter() {
            adapter.resume_hw_engine(node);
        }
    }

    fn reset_from_timeout(&self, _: &Passive) -> KmdResult {
        self.adapter()?.reset_from_timeout()
    }

    fn restart_from_timeout(&self, _: &Passive) -> KmdResult {
        self.adapter()?.restart_from_timeout()
    }

    fn is_idle(&self, _: &Passive) -> bool {
        self.adapter().is_ok_and(Adapter::is_idle)
    }

    /// Its memory is that of the machine, and stays.
    fn notify_device_error(&self, _: &Passive, device: DeviceCookie, why: DeviceError) {
        if let Ok(adapter) = self.adapter() {
            let cause = Cause::of_device_error(why);

            adapter.cpu_events.note(device, 0, &cause);
        }
    }

    fn notify_memory_pressure(&self, _: &Passive) {
        if let Ok(adapter) = self.adapter() {
            adapter.cpu_events.memory_pressure();
        }
    }

    fn set_power_state(&self, _: &Passive, state: PowerState) {
        if let Ok(adapter) = self.adapter() {
            adapter.set_off(state == PowerState::D3);
            adapter.cpu_events.note_everywhere(&Cause::of_power(state));
        }
    }
}

impl Destroy for SoftKmd {
    fn destroy_process(&self, _: &Passive, process: ProcessCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.destroy_process(process);
        }
    }

    fn destroy_device(&self, class: &Passive, device: DeviceCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.destroy_device(class, device);
        }
    }

    fn destroy_context(&self, class: &Passive, context: ContextCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.destroy_context(class, context);
        }
    }

    fn destroy_hw_queue(&self, _: &Passive, queue: HwQueueCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.destroy_hw_queue(queue);
        }
    }

    fn destroy_doorbell(&self, _: &Passive, doorbell: DoorbellCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.destroy_doorbell(doorbell);
        }
    }

    fn destroy_cpu_event(&self, _: &Passive, event: CpuEventCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.cpu_events.destroy(event);
        }
    }

    fn close_native_fence(&self, _: &Passive, open: OpenNativeFenceCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.native_fences.close(open);
        }
    }

    fn disconnect_fence_doorbell(&self, _: &Passive, doorbell: FenceDoorbellCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.native_fences.disconnect(doorbell);
        }
    }

    fn destroy_native_fence(&self, _: &Passive, fence: NativeFenceCookie) {
        if let Ok(adapter) = self.adapter() {
            adapter.destroy_native_fence(fence);
        }
    }

    fn notify_allocation_end(&self, _: &Passive, _: AllocationEndCookie, _: AllocationId) {}

    fn destroy_allocation(&self, _: &Passive, _: AllocationCookie) {}

    fn close_allocation(&self, _: &Passive, _: OpenAllocationCookie) {}
}
