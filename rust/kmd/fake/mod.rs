// SPDX-License-Identifier: GPL-2.0

//! A test double of a KMD (GPU-106): it records what it is called for, fails the n-th call that may
//! fail, takes its time, and finds calls that break the rules of `ddi` (GPU-100, GPU-105).
//!
//! KUnit suites and host tests use it; a module for a kernel without KUnit does not have it. It
//! need not check at run time that borrowed data is not kept: the lifetimes in the trait forbid
//! that, and so do the tokens of a class.

mod behaviour;
pub mod cpu_events;
mod destroy;
pub mod doorbells;
pub mod engines;
mod facts;
pub mod features;
pub mod interrupts;
pub mod journal;
pub mod mmu;
pub mod native_fences;
pub mod operations;
mod paging;
pub mod queues;
pub mod reserves;

use crate::{
    ddi::{
        callbacks::Callbacks,
        caps::{
            AdapterQuery,
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
            FeatureSupport, //
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
            ProcessCookie, //
        },
        Kmd, //
    },
    platform::{
        self,
        SegmentMemory,
        Shared,
        Word32, //
    }, //
};
use facts::PAGE_SIZE;
use features::Step;
use journal::{
    Alone,
    Call,
    Entry,
    Journal,
    Kind, //
};
use native_fences::NativeFences;

#[cfg(CONFIG_KUNIT = "y")]
pub use behaviour::Ask;
pub use behaviour::{
    allocation_data,
    Behaviour,
    Pause,
    IN_LOCAL,
    NOTIFY_RESIDENCY,
    PHYSICAL, //
};

/// What the double is told at the end of an allocation: it belongs to its own cookie and to the id.
fn end_cookie(cookie: u64, id: AllocationId) -> AllocationEndCookie {
    AllocationEndCookie(!((cookie << 48) ^ id.0))
}

/// A test double of one adapter.
pub struct FakeKmd {
    journal: Shared<Journal>,
    behaviour: Behaviour,
    may_fail: Word32,
    /// From StartDevice on.
    callbacks: Callbacks,
    /// From StartDevice on, if it has any.
    local: Option<SegmentMemory>,
    started: bool,
}

impl FakeKmd {
    /// AddDevice: a KMD that has not been started.
    pub fn add_device(journal: Shared<Journal>, behaviour: Behaviour) -> Self {
        Self {
            journal,
            behaviour,
            may_fail: platform::word32(0),
            callbacks: Callbacks::NONE,
            local: None,
            started: false,
        }
    }

    /// A call begins that is not a destroy.
    fn enter(&self, entry: Entry) -> Call<'_> {
        self.pause(self.journal.enter(entry), entry)
    }

    /// A call begins beside which there is no other one but queries.
    fn enter_alone(&self, entry: Entry) -> Call<'_> {
        self.journal.check_alone();
        self.enter(entry)
    }

    /// A destroy begins.
    fn enter_to_destroy(&self, entry: Entry) -> Call<'_> {
        self.pause(self.journal.enter_to_destroy(entry), entry)
    }

    fn pause<'a>(&self, call: Call<'a>, entry: Entry) -> Call<'a> {
        if let Some(pause) = &self.behaviour.pause {
            pause.pass(entry);
        }
        call
    }

    /// It asks for what the test wants.
    fn ask(&self, class: &Passive, entry: Entry) {
        if let Some(ask) = &self.behaviour.asks {
            ask(&self.callbacks, class, entry);
        }
    }

    /// A call for the device of this context alone.
    fn alone_for(&self, context: ContextCookie) -> Option<Alone<'_>> {
        self.journal
            .alone(self.journal.parent(Kind::Context, context.0))
    }

    /// There are no more callbacks of this queue.
    fn forget(&self, kind: Kind, cookie: u64) {
        if let Some(queues) = &self.behaviour.queues {
            queues.remove(kind, cookie);
        }
    }

    fn submit(&self, kind: Kind, cookie: u64, submission: &Submission) {
        let _call = self.enter(Entry::SubmitCommand);

        self.linger();
        if let Some(queues) = &self.behaviour.queues {
            queues.submit(kind, cookie, submission);
        }
        self.journal
            .submit(kind, cookie, submission, self.max_in_flight());
    }

    /// The context does not run, or runs again.
    fn set_suspended(&self, context: ContextCookie, suspended: bool) {
        self.journal.set_rests(Kind::Context, context.0, suspended);
        if let Some(mmu) = &self.behaviour.mmu {
            mmu.set_suspended(context.0, suspended);
        }
    }

    /// How many submissions of a queue it takes at a time.
    fn max_in_flight(&self) -> u64 {
        self.node_metadata().max_in_flight_hw_queue_buffers.into()
    }

    fn node_metadata(&self) -> NodeMetadata {
        let mut node = facts::node_metadata();

        if let Some(change) = self.behaviour.change_node {
            change(&mut node);
        }
        node
    }

    /// Takes its time.
    fn linger(&self) {
        for _ in 0..self.behaviour.rounds {
            core::hint::spin_loop();
        }
    }

    /// A step of a call that may fail.
    fn try_to(&self) -> KmdResult {
        // OVERFLOW: a test makes few calls.
        let number = platform::fetch_add(&self.may_fail, 1).wrapping_add(1);

        self.linger();
        match self.behaviour.fail {
            Some((fail, error)) if fail == number => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for FakeKmd {
    /// RemoveDevice.
    fn drop(&mut self) {
        self.journal.remove(self.started);
    }
}

impl Kmd for FakeKmd {
    fn start_device(&mut self, _: &Passive, info: &StartInfo) -> KmdResult {
        self.try_to()?;
        self.callbacks = info.callbacks.clone();
        if self.behaviour.local_memory != 0 {
            let local = platform::segment_memory(self.behaviour.local_memory);

            self.local = Some(local.ok_or(KmdError::NoMemory)?);
        }
        if let Some(queues) = &self.behaviour.queues {
            queues.interrupts.start(&self.callbacks);
        }
        if let Some(fences) = &self.behaviour.native_fences {
            fences.interrupts.start(&self.callbacks);
        }
        self.journal.start();
        self.started = true;
        Ok(())
    }

    fn stop_device(&self, _: &Passive) {
        self.linger();
        if let Some(pause) = &self.behaviour.pause {
            pause.pass(Entry::StopDevice);
        }
        self.journal.stop();
    }

    fn query_adapter_info(&self, _: &Passive, query: AdapterQuery<'_>) {
        let _call = self.enter(Entry::Query);

        match query {
            AdapterQuery::DriverCaps(caps) => {
                *caps = facts::driver_caps();
                if let Some(mmu) = &self.behaviour.mmu {
                    mmu.change_caps(&mut caps.gpu_mmu);
                }
                if self.behaviour.has_paging_node {
                    caps.paging_node = Some(0);
                }
                if let Some(change) = self.behaviour.change_caps {
                    change(caps);
                }
                if let Some(features) = &self.behaviour.features {
                    features.note(Step::DriverCaps);
                }
            }
            AdapterQuery::NativeFenceCaps(caps) => {
                *caps = facts::native_fence_caps();
                if let Some(features) = &self.behaviour.features {
                    features.change_caps(caps);
                }
            }
            AdapterQuery::UmdDriverPrivate(out) => out.fill(facts::UMD_PRIVATE),
            AdapterQuery::Segments(segments) => {
                let _aperture = segments.add(facts::aperture());

                if let Some(local) = &self.local {
                    let _id = segments.add(facts::local(self.behaviour.local_memory, local));
                }
            }
        }
    }

    fn get_node_metadata(&self, _: &Passive, _: u32) -> NodeMetadata {
        let _call = self.enter(Entry::Query);

        self.node_metadata()
    }

    fn query_feature_support(
        &self,
        _: &Passive,
        feature: u32,
        allow_experimental: bool,
    ) -> FeatureSupport {
        let _call = self.enter(Entry::Query);
        let has = feature == facts::FEATURE
            || feature == cpu_event::FEATURE && self.behaviour.cpu_events.is_some()
            || feature == native_fence::FEATURE && self.behaviour.native_fences.is_some();
        let mut support = match has {
            true => FeatureSupport::versions(1, 1),
            false => FeatureSupport::NONE,
        };

        if let Some(features) = &self.behaviour.features {
            features.change_support(feature, allow_experimental, &mut support);
        }
        support
    }

    fn query_feature_interface(
        &self,
        _: &Passive,
        feature: u32,
        version: u16,
    ) -> KmdResult<DriverInterface> {
        let _call = self.enter(Entry::QueryFeatureInterface);
        let mut functions = NativeFenceFunctions::ALL;

        if self.callbacks.is_feature_enabled(feature) != Some(version) {
            self.journal.bad_value();
        }
        if let Some(seen) = &self.behaviour.features {
            seen.note(Step::Interface(feature, version));
            seen.ask(&self.callbacks, feature);
            seen.change_functions(&mut functions);
        }
        Ok(match features::has_functions(feature) {
            true => DriverInterface::NativeFence(functions),
            false => DriverInterface::Plain,
        })
    }

    fn create_process(
        &self,
        _: &Passive,
        process: &CreateProcessArgs<'_>,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<ProcessCookie> {
        let _call = self.enter(Entry::CreateProcess);

        self.try_to()?;
        if let Some(reserves) = &self.behaviour.reserves {
            reserves.ask(addresses);
        }

        let cookie = self.journal.create(Kind::Process, [0; 2]);

        if let Some(events) = &self.behaviour.cpu_events {
            events.add_process(cookie, process);
        }
        Ok(ProcessCookie(cookie))
    }

    fn create_device(&self, _: &Passive, device: &CreateDeviceArgs) -> KmdResult<DeviceCookie> {
        let _call = self.enter(Entry::CreateDevice);

        self.try_to()?;
        self.journal.check(Kind::Process, device.process.0);
        Ok(DeviceCookie(
            self.journal.create(Kind::Device, [device.process.0, 0]),
        ))
    }

    fn create_context(
        &self,
        class: &Passive,
        device: DeviceCookie,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<ContextCookie> {
        let _call = self.enter(Entry::CreateContext);
        let _alone = self.journal.alone(device.0);

        self.ask(class, Entry::CreateContext);
        self.try_to()?;

        let cookie = self.journal.create(Kind::Context, [device.0, 0]);

        if let Some(queues) = &self.behaviour.queues {
            queues.add(Kind::Context, cookie, context.id.0, context.callbacks);
        }
        if let Some(mmu) = &self.behaviour.mmu {
            mmu.add(
                cookie,
                context.id.0,
                self.journal.parent(Kind::Device, device.0),
            );
        }
        Ok(ContextCookie(cookie))
    }

    fn get_root_page_table_size(&self, _: &Passive, entries: &mut u32) -> u32 {
        let _call = self.enter(Entry::GetRootPageTableSize);

        match &self.behaviour.mmu {
            Some(mmu) => mmu.root_size(entries),
            None => facts::root_size(entries),
        }
    }

    fn set_root_page_table(&self, class: &Passive, context: ContextCookie, root: &RootPageTable) {
        let _call = self.enter(Entry::SetRootPageTable);
        let _alone = self.journal.alone_in(Kind::Context, context.0);

        self.linger();
        self.ask(class, Entry::SetRootPageTable);
        if root.entries == 0 || root.address % PAGE_SIZE != 0 {
            self.journal.bad_value();
        }
        if let Some(mmu) = &self.behaviour.mmu {
            mmu.set_root(context.0, root);
        }
    }

    fn set_context_priority(&self, _: &Passive, context: ContextCookie, priority: i32) {
        let _call = self.enter(Entry::SetContextPriority);
        let _alone = self.alone_for(context);

        self.linger();
        if !(-7..=31).contains(&priority) {
            self.journal.bad_value();
        }
    }

    fn create_hw_queue(
        &self,
        _: &Passive,
        context: ContextCookie,
        queue: &CreateHwQueueArgs<'_>,
    ) -> KmdResult<HwQueueCookie> {
        let _call = self.enter(Entry::CreateHwQueue);
        let _alone = self.alone_for(context);

        self.try_to()?;

        let cookie = self.journal.create(Kind::HwQueue, [context.0, 0]);

        if let Some(queues) = &self.behaviour.queues {
            queues.add(Kind::HwQueue, cookie, queue.id.0, queue.callbacks);
        }
        Ok(HwQueueCookie(cookie))
    }

    fn create_doorbell(
        &self,
        _: &Passive,
        queue: HwQueueCookie,
        doorbell: &CreateDoorbellArgs<'_>,
    ) -> KmdResult<DoorbellCookie> {
        let _call = self.enter(Entry::CreateDoorbell);
        let context = self.journal.parent(Kind::HwQueue, queue.0);
        let _alone = self.alone_for(ContextCookie(context));

        self.try_to()?;
        if doorbell.ring % PAGE_SIZE != 0 || doorbell.ring_size == 0 {
            self.journal.bad_value();
        }

        let cookie = self.journal.create(Kind::Doorbell, [queue.0, 0]);

        if let Some(doorbells) = &self.behaviour.doorbells {
            doorbells.add(cookie, doorbell);
        }
        Ok(DoorbellCookie(cookie))
    }

    fn create_cpu_event(
        &self,
        _: &Passive,
        device: DeviceCookie,
        event: &CreateCpuEventArgs<'_>,
    ) -> KmdResult<CreatedCpuEvent> {
        let _call = self.enter(Entry::CreateCpuEvent);

        self.try_to()?;

        let cookie = self.journal.create(Kind::CpuEvent, [device.0, 0]);

        match &self.behaviour.cpu_events {
            Some(events) => events.add(cookie, event.callbacks),
            // It has not said that it can do so.
            None => self.journal.bad_value(),
        }
        Ok(CreatedCpuEvent {
            cookie: CpuEventCookie(cookie),
            client: facts::client_of(cookie),
        })
    }

    fn create_native_fence(
        &self,
        _: &Passive,
        fence: &CreateNativeFenceArgs<'_>,
        private_data: &mut PrivateData,
    ) -> KmdResult<NativeFenceCookie> {
        let _call = self.enter(Entry::CreateNativeFence);

        self.try_to()?;

        let cookie = self.journal.create(Kind::NativeFence, [0; 2]);

        match &self.behaviour.native_fences {
            Some(fences) => fences.add(cookie, fence),
            // It has not said that it can do so.
            None => self.journal.bad_value(),
        }
        NativeFences::answer(private_data);
        Ok(NativeFenceCookie(cookie))
    }

    fn open_native_fence(
        &self,
        _: &Passive,
        fence: NativeFenceCookie,
        device: DeviceCookie,
        _: &OpenNativeFenceArgs,
        private_data: &mut PrivateData,
    ) -> KmdResult<OpenNativeFenceCookie> {
        let _call = self.enter(Entry::OpenNativeFence);

        self.try_to()?;
        self.journal.check(Kind::NativeFence, fence.0);
        self.journal.check(Kind::Device, device.0);
        NativeFences::answer(private_data);
        Ok(OpenNativeFenceCookie(
            self.journal
                .create(Kind::OpenNativeFence, [fence.0, device.0]),
        ))
    }

    /// It has not said that its fences have any.
    fn get_fence_doorbell(
        &self,
        _: &Passive,
        _: NativeFenceCookie,
    ) -> KmdResult<Shared<dyn FenceDoorbell>> {
        self.journal.bad_value();
        Err(KmdError::NotSupported)
    }

    /// As above.
    fn connect_fence_doorbell(
        &self,
        _: &Passive,
        _: NativeFenceCookie,
        _: &Shared<dyn FenceDoorbell>,
    ) -> KmdResult<FenceDoorbellCookie> {
        self.journal.bad_value();
        Err(KmdError::NotSupported)
    }

    fn update_monitored_values(
        &self,
        _: &DeviceInterrupt,
        updates: &[FenceUpdate<'_>],
    ) -> KmdResult {
        let _call = self.enter(Entry::UpdateMonitoredValues);

        self.try_to()?;
        if let Some(fences) = &self.behaviour.native_fences {
            fences.update_monitored(updates);
        }
        Ok(())
    }

    fn update_current_values_from_cpu(
        &self,
        _: &Dispatch,
        updates: &[FenceUpdate<'_>],
        how: CurrentValueUpdate,
    ) -> KmdResult {
        let _call = self.enter(Entry::UpdateCurrentValuesFromCpu);

        self.try_to()?;
        if let Some(fences) = &self.behaviour.native_fences {
            fences.update_current(updates, how);
        }
        Ok(())
    }

    fn set_native_fence_log_buffer(&self, _: &Passive, queue: HwQueueCookie, log: &LogBuffer) {
        let _call = self.enter(Entry::SetNativeFenceLogBuffer);

        self.journal.check(Kind::HwQueue, queue.0);
        if log.entries == 0 {
            self.journal.bad_value();
        }
    }

    fn update_native_fence_logs(&self, _: &Dispatch, queues: &[HwQueueCookie]) {
        let _call = self.enter(Entry::UpdateNativeFenceLogs);

        for queue in queues {
            self.journal.check(Kind::HwQueue, queue.0);
        }
    }

    fn dpc_routine(&self, class: &Dispatch) {
        let _call = self.enter(Entry::DpcRoutine);

        if let Some(events) = &self.behaviour.cpu_events {
            events.dpc(class);
        }
    }

    fn connect_doorbell(&self, _: &Passive, doorbell: DoorbellCookie) -> KmdResult<Connected> {
        let _call = self.enter(Entry::ConnectDoorbell);
        let _alone = self.journal.alone_in_short(Kind::Doorbell, doorbell.0);

        self.try_to()?;
        match &self.behaviour.doorbells {
            Some(doorbells) => {
                self.journal.set_rests(Kind::Doorbell, doorbell.0, false);
                doorbells.connect(doorbell.0)
            }
            None => Err(KmdError::NotSupported),
        }
    }

    fn disconnect_doorbell(&self, _: &Passive, doorbell: DoorbellCookie) {
        let _call = self.enter(Entry::DisconnectDoorbell);
        let _alone = self.journal.alone_in_short(Kind::Doorbell, doorbell.0);

        self.linger();
        self.journal.set_rests(Kind::Doorbell, doorbell.0, true);
        if let Some(doorbells) = &self.behaviour.doorbells {
            doorbells.disconnected(doorbell.0);
        }
    }

    fn notify_work_submission(&self, _: &Passive, doorbell: DoorbellCookie) {
        let _call = self.enter(Entry::NotifyWorkSubmission);

        self.linger();
        self.journal.check(Kind::Doorbell, doorbell.0);
    }

    fn doorbell_rung(&self, _: &Dispatch, doorbell: DoorbellCookie, _: Rung) {
        let _call = self.enter(Entry::DoorbellRung);

        self.journal.check(Kind::Doorbell, doorbell.0);
        if let Some(doorbells) = &self.behaviour.doorbells {
            doorbells.rung(doorbell.0);
        }
    }

    fn submit_command(&self, _: &Dispatch, context: ContextCookie, submission: &Submission) {
        self.submit(Kind::Context, context.0, submission);
    }

    fn submit_command_to_hw_queue(
        &self,
        _: &Dispatch,
        queue: HwQueueCookie,
        submission: &Submission,
    ) {
        self.submit(Kind::HwQueue, queue.0, submission);
    }

    /// It is pending until the test says that it is done, if the test can.
    fn suspend_context(&self, _: &Dispatch, context: ContextCookie, id: u64) -> Suspend {
        let _call = self.enter(Entry::SuspendContext);
        let _alone = self.journal.alone_in(Kind::Context, context.0);

        self.linger();

        let Some(queues) = &self.behaviour.queues else {
            self.set_suspended(context, true);
            return Suspend::Done;
        };

        if self.behaviour.suspends_at_once {
            self.set_suspended(context, true);
            queues.end_suspension(context.0, id);
        }
        Suspend::Pending
    }

    fn resume_context(&self, _: &Dispatch, context: ContextCookie) {
        let _call = self.enter(Entry::ResumeContext);
        let _alone = self.journal.alone_in(Kind::Context, context.0);

        self.linger();
        self.set_suspended(context, false);
    }

    /// An entry is its kind, and the place of the page. There is no other format.
    fn build_paging_buffer(&self, class: &Passive, operation: PagingOperation<'_>) -> Built {
        if let Some(operations) = &self.behaviour.operations {
            operations.record(&operation);
        }
        match operation {
            PagingOperation::UpdatePageTable(update, None) => self.update_page_table(&update),
            PagingOperation::MapApertureSegment(map) => self.map_aperture(&map),
            PagingOperation::UnmapApertureSegment(unmap) => self.unmap_aperture(&unmap),
            PagingOperation::NotifyResidency(notify) => self.notify_residency(&notify),
            PagingOperation::FlushTlb {
                process,
                first,
                last,
                buffer: None,
            } => {
                let _call = self.enter(Entry::FlushTlb);

                self.linger();
                self.ask(class, Entry::FlushTlb);
                self.journal.check(Kind::Process, process.0);
                if first > last {
                    self.journal.bad_value();
                }
                if let Some(mmu) = &self.behaviour.mmu {
                    mmu.flush(process.0, first, last);
                }
            }
            PagingOperation::InitContextResource(init, _) if self.behaviour.has_paging_node => {
                self.init_context_resource(&init);
            }
            // Its paging node does nothing, if it has one.
            PagingOperation::UpdatePageTable(_, Some(_))
            | PagingOperation::FlushTlb {
                buffer: Some(_), ..
            }
            | PagingOperation::TransferVirtual(..)
            | PagingOperation::FillVirtual(..)
            | PagingOperation::InitContextResource(..)
            | PagingOperation::UpdateContextAllocation(..) => {
                self.journal.bad_value();
                return Built::Failed;
            }
        }
        Built::All
    }

    fn query_node_status(&self, _: &Passive, _: u32) -> NodeStatus {
        let _call = self.enter(Entry::Query);

        facts::NODE_STATUS
    }

    fn get_standard_allocation_driver_data(&self, _: &Passive, size: u64, out: &mut [u8]) {
        let _call = self.enter(Entry::Query);

        for (place, byte) in out.iter_mut().zip(size.to_le_bytes()) {
            *place = byte;
        }
    }

    fn get_fence_storage_info(&self, _: &Passive, storage: &FenceStorageArgs) -> FenceStorageInfo {
        let _call = self.enter(Entry::Query);

        self.behaviour
            .fence_storage
            .map_or(facts::FENCE_STORAGE, |say| say(storage))
    }

    /// The private data are the size, or those of [`allocation_data`]. Memory of the caller may
    /// have none.
    fn create_allocation(
        &self,
        _: &Passive,
        allocation: &CreateAllocationArgs<'_>,
    ) -> KmdResult<(AllocationCookie, AllocationInfo)> {
        let _call = self.enter(Entry::CreateAllocation);
        let id = allocation.id;
        let half = |at: usize| {
            let bytes = allocation.private_data.get(at..)?.first_chunk()?;

            Some(u64::from_le_bytes(*bytes))
        };
        let (size, flags) = match (allocation.private_data.len(), half(0), half(8)) {
            (8, Some(size), _) => (size, 0),
            (16, Some(size), Some(flags)) => (size, flags),
            _ if allocation.existing => (0, 0),
            _ => return Err(KmdError::InvalidParameter),
        };
        let segment = match flags & IN_LOCAL != 0 {
            true => facts::LOCAL,
            false => facts::APERTURE,
        };

        self.try_to()?;

        let cookie = self.journal.create(Kind::Allocation, [0; 2]);

        Ok((
            AllocationCookie(cookie),
            AllocationInfo {
                size,
                // CAST: 4096.
                alignment: PAGE_SIZE as u32,
                priority: 1,
                supported_segments: 1 << segment,
                preferred_segment: segment,
                accessed_physically: flags & PHYSICAL != 0,
                explicit_residency_notification: flags & NOTIFY_RESIDENCY != 0,
                cpu_visible: true,
                notify_end: self.behaviour.notify_end.then_some(end_cookie(cookie, id)),
            },
        ))
    }

    fn open_allocation(
        &self,
        _: &Passive,
        what: &OpenAllocationArgs,
    ) -> KmdResult<OpenAllocationCookie> {
        let _call = self.enter(Entry::OpenAllocation);
        let _alone = self.journal.alone(what.device.0);

        self.try_to()?;

        let parents = [what.device.0, what.allocation.0];

        Ok(OpenAllocationCookie(
            self.journal.create(Kind::Open, parents),
        ))
    }

    fn calibrate_gpu_clock(&self, _: &Dispatch, _: u32, _: u32) -> ClockData {
        let _call = self.enter(Entry::CalibrateGpuClock);

        ClockData {
            gpu_frequency: 1,
            gpu_counter: 2,
            cpu_counter: 3,
            is_cmp_clock: false,
        }
    }

    /// Every byte is turned round.
    fn escape(&self, _: &Passive, _: &Escape<'_>, data: &mut [u8]) -> KmdResult {
        let _call = self.enter(Entry::Escape);

        self.try_to()?;
        for byte in data {
            *byte = !*byte;
        }
        Ok(())
    }

    /// It has done all that was submitted.
    fn is_idle(&self, _: &Passive) -> bool {
        let _call = self.enter(Entry::Query);

        self.journal.is_idle()
    }

    fn notify_device_error(&self, _: &Passive, device: DeviceCookie, _: DeviceError) {
        let _call = self.enter(Entry::NotifyDeviceError);

        self.linger();
        self.journal.check(Kind::Device, device.0);
    }

    fn notify_memory_pressure(&self, _: &Passive) {
        let _call = self.enter(Entry::NotifyMemoryPressure);

        self.linger();
    }

    fn set_power_state(&self, _: &Passive, state: PowerState) {
        let _call = self.enter(Entry::SetPowerState);

        self.linger();
        self.journal.set_asleep(state == PowerState::D3);
    }

    fn preempt_command(&self, _: &Dispatch, node: u32, id: u64) {
        let _call = self.enter(Entry::PreemptCommand);

        match &self.behaviour.engines {
            Some(engines) => engines.preempt(node, id),
            // Nothing runs.
            None => {}
        }
    }

    fn query_engine_status(&self, _: &Passive, node: u32) -> EngineStatus {
        let _call = self.enter(Entry::Query);

        match &self.behaviour.engines {
            Some(engines) => engines.status(node),
            // It has obeyed whatever it was asked for.
            None => EngineStatus {
                preempted: u64::MAX,
                ..EngineStatus::default()
            },
        }
    }

    fn collect_dbg_info(&self, _: &Passive, _: &ResetHwEngine, info: &mut DebugInfo) {
        let _call = self.enter(Entry::CollectDbgInfo);

        *info = facts::DEBUG_INFO;
    }

    /// The context that hangs is affected, and no other one, unless the test says so.
    fn reset_hw_engine(&self, _: &Passive, reset: &ResetHwEngine) -> KmdResult {
        let _call = self.enter(Entry::ResetHwEngine);

        self.linger();
        if let Some(context) = reset.hung {
            self.journal.check(Kind::Context, context.0);
        }
        if let Some(engines) = &self.behaviour.engines {
            engines.reset(reset.node)?;
        }
        if let (Some(context), Some(queues)) = (reset.hung, &self.behaviour.queues) {
            queues.invalidate(context.0);
        }
        Ok(())
    }

    fn resume_hw_engine(&self, _: &Passive, _: u32) {
        let _call = self.enter(Entry::ResumeHwEngine);

        self.linger();
    }

    fn reset_from_timeout(&self, _: &Passive) -> KmdResult {
        let _call = self.enter_alone(Entry::ResetFromTimeout);

        self.linger();
        if let Some(queues) = &self.behaviour.queues {
            queues.invalidate_all();
        }
        match &self.behaviour.engines {
            Some(engines) => engines.reset_all(),
            None => Ok(()),
        }
    }

    fn restart_from_timeout(&self, _: &Passive) -> KmdResult {
        let _call = self.enter_alone(Entry::RestartFromTimeout);

        self.linger();
        match &self.behaviour.engines {
            Some(engines) => engines.restart(),
            None => Ok(()),
        }
    }
}
