// SPDX-License-Identifier: GPL-2.0

//! The entries, verified.

use super::{
    call::Call,
    callbacks::{
        VerifiedCpuEvent,
        VerifiedDoorbell,
        VerifiedFenceDoorbell,
        VerifiedNativeFence,
        VerifiedProcess,
        VerifiedQueue, //
    },
    entry::Entry,
    objects::{
        Kind,
        New,
        Object,
        Work, //
    },
    rule::Rule,
    Verifier,
    STARTED,
    STOPPED, //
};
use crate::{
    ddi::{
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
            CreateNativeFenceArgs,
            CurrentValueUpdate,
            FenceDoorbell,
            FenceUpdate,
            LogBuffer,
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
        reserve::{
            ReserveAddresses,
            ReserveRange, //
        },
        types::{
            AllocationCookie,
            AllocationEndCookie,
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
            Scheduling, //
        },
        Kmd, //
    },
    platform::{
        self,
        Shared, //
    }, //
};

/// Pages of segments and of page tables.
const PAGE_SIZE: u64 = 4096;

/// An entry wants a context, whichever kind.
const ANY_CONTEXT: Kind = Kind::Context(Scheduling::Packets);

/// The addresses that a KMD may reserve, with every reservation in the log.
struct Reserving<'a> {
    verifier: &'a Verifier,
    process: u64,
    addresses: &'a mut dyn ReserveAddresses,
}

impl ReserveAddresses for Reserving<'_> {
    fn reserve(&mut self, range: &ReserveRange) -> KmdResult<u64> {
        self.verifier
            .log
            .called(Entry::ReserveGpuVirtualAddressRange, self.process);
        self.addresses.reserve(range)
    }
}

impl Verifier {
    /// Something is made. `make` asks the KMD; without memory for what the verifier keeps it is
    /// not asked.
    fn create(
        &self,
        new: Option<New>,
        make: impl FnOnce() -> KmdResult<u64>,
    ) -> KmdResult<(u64, Shared<Object>)> {
        let new = new.ok_or(KmdError::NoMemory)?;
        let cookie = make().inspect_err(|_| self.objects.remove(new.cookie))?;

        Ok((self.objects.made(&new, cookie), new.object))
    }

    fn submit(&self, call: &Call<'_>, queue: &Object, submission: &Submission) {
        let Some(work) = &queue.queue else {
            return;
        };
        // OVERFLOW: they are numbered from 1 on.
        let next = platform::load_acquire(&work.submitted).wrapping_add(1);
        let completed = platform::load_acquire(&work.completed);

        call.check(Rule::OutOfOrder, submission.number == next);
        call.check(
            Rule::InFlight,
            submission.number.saturating_sub(completed) <= work.most,
        );
        call.check(
            Rule::BadValue,
            submission.length != 0
                && submission.length % 4 == 0
                && submission.commands % 4 == 0
                && submission.progress.is_some() == work.progress,
        );
        // Before the KMD can tell that it is done.
        platform::store_release(&work.submitted, submission.number);
    }

    /// The same arguments for the KMD.
    fn own_reset(&self, call: &Call<'_>, reset: &ResetHwEngine) -> KmdResult<ResetHwEngine> {
        let hung = match reset.hung {
            Some(context) => Some(call.find(ANY_CONTEXT, context.0)?),
            None => None,
        };

        call.check(Rule::BadValue, self.is_node(reset.node));
        Ok(ResetHwEngine {
            hung: hung.map(|context| ContextCookie(context.cookie())),
            ..*reset
        })
    }

    fn is_node(&self, node: u32) -> bool {
        node < self.caps.nodes
    }
}

/// Whether a KMD can mean this of an allocation.
fn makes_sense(info: &AllocationInfo, existing: bool) -> bool {
    let preferred = 1_u32.checked_shl(info.preferred_segment).unwrap_or(0);

    info.size % PAGE_SIZE == 0
        && (info.size != 0 || existing)
        && info.alignment.is_power_of_two()
        && u64::from(info.alignment) >= PAGE_SIZE
        && info.supported_segments & 1 == 0
        && info.supported_segments & preferred != 0
}

impl Kmd for Verifier {
    fn start_device(&mut self, class: &Passive, info: &StartInfo) -> KmdResult {
        self.begin(Entry::StartDevice, 0);
        self.kmd.start_device(class, info)?;
        if !platform::cmpxchg(&self.stage, 0, STARTED) {
            self.log.broken(Rule::NotStarted, Entry::StartDevice, 0);
        }
        self.kmd
            .query_adapter_info(class, AdapterQuery::DriverCaps(&mut self.caps));
        Ok(())
    }

    fn stop_device(&self, class: &Passive) {
        self.begin(Entry::StopDevice, 0);
        if platform::load32_acquire(&self.inside) != 0 {
            self.log.broken(Rule::Together, Entry::StopDevice, 0);
        }
        if !platform::cmpxchg(&self.stage, STARTED, STOPPED) {
            self.log.broken(Rule::NotStarted, Entry::StopDevice, 0);
        }
        self.kmd.stop_device(class);
    }

    fn query_adapter_info(&self, class: &Passive, query: AdapterQuery<'_>) {
        let _call = self.enter(Entry::Query, 0);

        match query {
            AdapterQuery::NativeFenceCaps(caps) => {
                self.kmd
                    .query_adapter_info(class, AdapterQuery::NativeFenceCaps(caps));
                *self.native_fence_caps.lock() = *caps;
            }
            query => self.kmd.query_adapter_info(class, query),
        }
    }

    fn get_node_metadata(&self, class: &Passive, node: u32) -> NodeMetadata {
        let call = self.enter(Entry::Query, node.into());

        call.check(Rule::BadValue, self.is_node(node));
        self.kmd.get_node_metadata(class, node)
    }

    fn query_feature_support(
        &self,
        class: &Passive,
        feature: u32,
        allow_experimental: bool,
    ) -> FeatureSupport {
        let call = self.enter(Entry::Query, feature.into());
        let support = self
            .kmd
            .query_feature_support(class, feature, allow_experimental);

        call.check(Rule::BadAnswer, support.makes_sense());
        support
    }

    fn query_feature_interface(
        &self,
        class: &Passive,
        feature: u32,
        version: u16,
    ) -> KmdResult<DriverInterface> {
        let call = self.enter(Entry::QueryFeatureInterface, feature.into());

        call.check(Rule::BadValue, version != 0);
        self.kmd.query_feature_interface(class, feature, version)
    }

    fn create_process(
        &self,
        class: &Passive,
        process: &CreateProcessArgs<'_>,
        addresses: &mut dyn ReserveAddresses,
    ) -> KmdResult<ProcessCookie> {
        let id = process.id;
        let _call = self.enter(Entry::CreateProcess, id.0);
        let work = Work::of_process(0).ok_or(KmdError::NoMemory)?;
        let callbacks = VerifiedProcess::around(process.callbacks, &work, &self.log, id.0)
            .ok_or(KmdError::NoMemory)?;
        let args = CreateProcessArgs {
            callbacks: &callbacks,
            ..*process
        };
        let new = self
            .objects
            .prepare(Kind::Process, id.0, [None, None], Some(work));
        let mut reserving = Reserving {
            verifier: self,
            process: id.0,
            addresses,
        };
        let (cookie, _) = self.create(new, || {
            let process = self.kmd.create_process(class, &args, &mut reserving)?;

            Ok(process.0)
        })?;

        Ok(ProcessCookie(cookie))
    }

    fn create_device(&self, class: &Passive, device: &CreateDeviceArgs) -> KmdResult<DeviceCookie> {
        let call = self.enter(Entry::CreateDevice, device.id.0);
        let process = call.find(Kind::Process, device.process.0)?;
        let args = CreateDeviceArgs {
            process: ProcessCookie(process.cookie()),
            ..*device
        };
        let new = self
            .objects
            .prepare(Kind::Device, device.id.0, [Some(process), None], None);
        let (cookie, _) = self.create(new, || Ok(self.kmd.create_device(class, &args)?.0))?;

        Ok(DeviceCookie(cookie))
    }

    fn create_context(
        &self,
        class: &Passive,
        device: DeviceCookie,
        context: &CreateContextArgs<'_>,
    ) -> KmdResult<ContextCookie> {
        let call = self.enter(Entry::CreateContext, context.id.0);
        let device = call.find(Kind::Device, device.0)?;
        let _alone = call.alone(&device);

        call.check(
            Rule::BadValue,
            // CAST: 32 bits fit a usize.
            self.is_node(context.node)
                && context.private_data.len() <= self.caps.context_data_size as usize,
        );

        let most = match context.scheduling {
            Scheduling::Packets => self.kmd.get_node_metadata(class, context.node),
            Scheduling::HwQueues => NodeMetadata::default(),
        }
        .max_in_flight_hw_queue_buffers;
        let work = Work::new(context.node, most.into(), false).ok_or(KmdError::NoMemory)?;
        let callbacks = VerifiedQueue::around(context.callbacks, &work, &self.log, context.id.0)
            .ok_or(KmdError::NoMemory)?;
        let new = self.objects.prepare(
            Kind::Context(context.scheduling),
            context.id.0,
            [Some(device.clone()), None],
            Some(work),
        );
        let args = CreateContextArgs {
            callbacks: &callbacks,
            ..*context
        };
        let made = self.create(new, || {
            let device = DeviceCookie(device.cookie());

            Ok(self.kmd.create_context(class, device, &args)?.0)
        });

        Ok(ContextCookie(made?.0))
    }

    fn get_root_page_table_size(&self, class: &Passive, entries: &mut u32) -> u32 {
        let _call = self.enter(Entry::GetRootPageTableSize, 0);

        self.kmd.get_root_page_table_size(class, entries)
    }

    fn set_root_page_table(&self, class: &Passive, context: ContextCookie, root: &RootPageTable) {
        let entered = self.enter_on(Entry::SetRootPageTable, ANY_CONTEXT, context.0);

        if let Some((call, context)) = entered {
            let _alone = call.alone(&context);

            call.check(
                Rule::BadValue,
                root.entries != 0 && root.address % PAGE_SIZE == 0,
            );
            self.kmd
                .set_root_page_table(class, ContextCookie(context.cookie()), root);
        }
    }

    fn set_context_priority(&self, class: &Passive, context: ContextCookie, priority: i32) {
        let entered = self.enter_on(Entry::SetContextPriority, ANY_CONTEXT, context.0);

        if let Some((call, context)) = entered {
            let _alone = context.parent().and_then(|device| call.alone(device));

            call.check(Rule::BadValue, (-7..=31).contains(&priority));
            self.kmd
                .set_context_priority(class, ContextCookie(context.cookie()), priority);
        }
    }

    fn create_hw_queue(
        &self,
        class: &Passive,
        context: ContextCookie,
        queue: &CreateHwQueueArgs<'_>,
    ) -> KmdResult<HwQueueCookie> {
        let call = self.enter(Entry::CreateHwQueue, queue.id.0);
        let context = call.find(ANY_CONTEXT, context.0)?;
        let _alone = context.parent().and_then(|device| call.alone(device));
        let node = context.queue.as_ref().map_or(0, |work| work.node);

        call.check(
            Rule::BadCookie,
            context.kind == Kind::Context(Scheduling::HwQueues),
        );

        let metadata = self.kmd.get_node_metadata(class, node);
        let work = if queue.user_mode_submission {
            call.check(Rule::BadValue, metadata.user_mode_submission);
            Work::of_process(node)
        } else {
            Work::new(node, metadata.max_in_flight_hw_queue_buffers.into(), true)
        }
        .ok_or(KmdError::NoMemory)?;
        let callbacks = VerifiedQueue::around(queue.callbacks, &work, &self.log, queue.id.0)
            .ok_or(KmdError::NoMemory)?;
        let new = self.objects.prepare(
            Kind::HwQueue,
            queue.id.0,
            [Some(context.clone()), None],
            Some(work),
        );
        let args = CreateHwQueueArgs {
            callbacks: &callbacks,
            ..*queue
        };
        let made = self.create(new, || {
            let context = ContextCookie(context.cookie());

            Ok(self.kmd.create_hw_queue(class, context, &args)?.0)
        });

        Ok(HwQueueCookie(made?.0))
    }

    fn create_doorbell(
        &self,
        class: &Passive,
        queue: HwQueueCookie,
        doorbell: &CreateDoorbellArgs<'_>,
    ) -> KmdResult<DoorbellCookie> {
        let call = self.enter(Entry::CreateDoorbell, doorbell.id.0);
        let queue = call.find(Kind::HwQueue, queue.0)?;
        let _alone = queue
            .parent()
            .and_then(|context| context.parent())
            .and_then(|device| call.alone(device));
        let filled = |work: &Shared<Work>| work.is_filled_by_process;

        call.check(
            Rule::BadValue,
            queue.queue.as_ref().is_some_and(filled)
                && doorbell.ring % PAGE_SIZE == 0
                && doorbell.control % PAGE_SIZE == 0
                && doorbell.ring_size % PAGE_SIZE == 0
                && doorbell.ring_size != 0
                && doorbell.control_size >= PAGE_SIZE,
        );

        let work = Work::of_process(0).ok_or(KmdError::NoMemory)?;
        let callbacks =
            VerifiedDoorbell::around(doorbell.callbacks, &work, &self.log, doorbell.id.0)
                .ok_or(KmdError::NoMemory)?;
        let new = self.objects.prepare(
            Kind::Doorbell,
            doorbell.id.0,
            [Some(queue.clone()), None],
            Some(work),
        );
        let args = CreateDoorbellArgs {
            callbacks: &callbacks,
            ..*doorbell
        };
        let made = self.create(new, || {
            let queue = HwQueueCookie(queue.cookie());

            Ok(self.kmd.create_doorbell(class, queue, &args)?.0)
        });

        Ok(DoorbellCookie(made?.0))
    }

    fn create_cpu_event(
        &self,
        class: &Passive,
        device: DeviceCookie,
        event: &CreateCpuEventArgs<'_>,
    ) -> KmdResult<CreatedCpuEvent> {
        let call = self.enter(Entry::CreateCpuEvent, event.id.0);
        let device = call.find(Kind::Device, device.0)?;
        let work = Work::of_process(0).ok_or(KmdError::NoMemory)?;
        let callbacks = VerifiedCpuEvent::around(event.callbacks, &work, &self.log, event.id.0)
            .ok_or(KmdError::NoMemory)?;
        let new = self.objects.prepare(
            Kind::CpuEvent,
            event.id.0,
            [Some(device.clone()), None],
            Some(work),
        );
        let args = CreateCpuEventArgs {
            callbacks: &callbacks,
            ..*event
        };
        let mut client = 0;
        let made = self.create(new, || {
            let device = DeviceCookie(device.cookie());
            let made = self.kmd.create_cpu_event(class, device, &args)?;

            client = made.client;
            Ok(made.cookie.0)
        });

        call.check(Rule::BadAnswer, made.is_err() || client != 0);
        Ok(CreatedCpuEvent {
            cookie: CpuEventCookie(made?.0),
            client,
        })
    }

    fn create_native_fence(
        &self,
        class: &Passive,
        fence: &CreateNativeFenceArgs<'_>,
        private_data: &mut PrivateData,
    ) -> KmdResult<NativeFenceCookie> {
        let call = self.enter(Entry::CreateNativeFence, fence.id.0);
        let work = Work::of_process(0).ok_or(KmdError::NoMemory)?;
        let callbacks = VerifiedNativeFence::around(fence.callbacks, &work, &self.log, fence.id.0)
            .ok_or(KmdError::NoMemory)?;
        let caps = *self.native_fence_caps.lock();

        call.check(Rule::BadValue, fence.system.suit(&caps));

        let new = self
            .objects
            .prepare(Kind::NativeFence, fence.id.0, [None, None], Some(work));
        let args = CreateNativeFenceArgs {
            callbacks: &callbacks,
            ..*fence
        };
        let made = self.create(new, || {
            Ok(self.kmd.create_native_fence(class, &args, private_data)?.0)
        });

        Ok(NativeFenceCookie(made?.0))
    }

    fn open_native_fence(
        &self,
        class: &Passive,
        fence: NativeFenceCookie,
        device: DeviceCookie,
        open: &OpenNativeFenceArgs,
        private_data: &mut PrivateData,
    ) -> KmdResult<OpenNativeFenceCookie> {
        let (call, fence) = self
            .enter_on(Entry::OpenNativeFence, Kind::NativeFence, fence.0)
            .ok_or(KmdError::InvalidParameter)?;
        let device = call.find(Kind::Device, device.0)?;
        let caps = *self.native_fence_caps.lock();

        call.check(
            Rule::BadValue,
            caps.allow(open.current_value, open.monitored_value),
        );

        let new = self.objects.prepare(
            Kind::OpenNativeFence,
            fence.id,
            [Some(device.clone()), Some(fence.clone())],
            None,
        );
        let made = self.create(new, || {
            let fence = NativeFenceCookie(fence.cookie());
            let device = DeviceCookie(device.cookie());

            Ok(self
                .kmd
                .open_native_fence(class, fence, device, open, private_data)?
                .0)
        });

        Ok(OpenNativeFenceCookie(made?.0))
    }

    fn get_fence_doorbell(
        &self,
        class: &Passive,
        fence: NativeFenceCookie,
    ) -> KmdResult<Shared<dyn FenceDoorbell>> {
        let (_call, fence) = self
            .enter_on(Entry::Query, Kind::NativeFence, fence.0)
            .ok_or(KmdError::InvalidParameter)?;

        self.kmd
            .get_fence_doorbell(class, NativeFenceCookie(fence.cookie()))
    }

    fn connect_fence_doorbell(
        &self,
        class: &Passive,
        fence: NativeFenceCookie,
        doorbell: &Shared<dyn FenceDoorbell>,
    ) -> KmdResult<FenceDoorbellCookie> {
        let (_call, fence) = self
            .enter_on(Entry::ConnectFenceDoorbell, Kind::NativeFence, fence.0)
            .ok_or(KmdError::InvalidParameter)?;
        let work = Work::of_process(0).ok_or(KmdError::NoMemory)?;
        let doorbell = VerifiedFenceDoorbell::around(doorbell, &work, &self.log, fence.id)
            .ok_or(KmdError::NoMemory)?;
        let parents = [Some(fence.clone()), None];
        let new = self
            .objects
            .prepare(Kind::FenceDoorbell, fence.id, parents, Some(work));
        let made = self.create(new, || {
            let fence = NativeFenceCookie(fence.cookie());

            Ok(self.kmd.connect_fence_doorbell(class, fence, &doorbell)?.0)
        });

        Ok(FenceDoorbellCookie(made?.0))
    }

    fn update_monitored_values(
        &self,
        class: &DeviceInterrupt,
        updates: &[FenceUpdate<'_>],
    ) -> KmdResult {
        for update in updates {
            let entry = Entry::UpdateMonitoredValues;

            if let Some((_call, fence)) = self.enter_on(entry, Kind::NativeFence, update.fence.0) {
                self.kmd.update_monitored_values(
                    class,
                    &[FenceUpdate {
                        fence: NativeFenceCookie(fence.cookie()),
                        ..*update
                    }],
                )?;
            }
        }
        Ok(())
    }

    fn update_current_values_from_cpu(
        &self,
        class: &Dispatch,
        updates: &[FenceUpdate<'_>],
        how: CurrentValueUpdate,
    ) -> KmdResult {
        for update in updates {
            let entry = Entry::UpdateCurrentValuesFromCpu;

            if let Some((call, fence)) = self.enter_on(entry, Kind::NativeFence, update.fence.0) {
                call.check(
                    Rule::BadValue,
                    how != CurrentValueUpdate::AlwaysSignaled || update.value == u64::MAX,
                );
                self.kmd.update_current_values_from_cpu(
                    class,
                    &[FenceUpdate {
                        fence: NativeFenceCookie(fence.cookie()),
                        ..*update
                    }],
                    how,
                )?;
            }
        }
        Ok(())
    }

    fn set_native_fence_log_buffer(&self, class: &Passive, queue: HwQueueCookie, log: &LogBuffer) {
        let entry = Entry::SetNativeFenceLogBuffer;

        if let Some((call, queue)) = self.enter_on(entry, Kind::HwQueue, queue.0) {
            let is_filled = queue
                .queue
                .as_ref()
                .is_some_and(|work| work.is_filled_by_process);

            call.check(
                Rule::BadValue,
                is_filled && log.entries != 0 && log.address % 8 == 0,
            );
            self.kmd
                .set_native_fence_log_buffer(class, HwQueueCookie(queue.cookie()), log);
        }
    }

    fn update_native_fence_logs(&self, class: &Dispatch, queues: &[HwQueueCookie]) {
        for queue in queues {
            let entry = Entry::UpdateNativeFenceLogs;

            if let Some((_call, queue)) = self.enter_on(entry, Kind::HwQueue, queue.0) {
                self.kmd
                    .update_native_fence_logs(class, &[HwQueueCookie(queue.cookie())]);
            }
        }
    }

    fn dpc_routine(&self, class: &Dispatch) {
        let _call = self.enter(Entry::DpcRoutine, 0);

        self.kmd.dpc_routine(class);
    }

    fn connect_doorbell(&self, class: &Passive, doorbell: DoorbellCookie) -> KmdResult<Connected> {
        let entered = self.enter_on(Entry::ConnectDoorbell, Kind::Doorbell, doorbell.0);
        let Some((call, doorbell)) = entered else {
            return Err(KmdError::InvalidParameter);
        };
        let _alone = call.alone(&doorbell);

        call.check(Rule::BadPower, platform::load32_acquire(&self.asleep) == 0);
        self.kmd
            .connect_doorbell(class, DoorbellCookie(doorbell.cookie()))
    }

    fn disconnect_doorbell(&self, class: &Passive, doorbell: DoorbellCookie) {
        let entered = self.enter_on(Entry::DisconnectDoorbell, Kind::Doorbell, doorbell.0);

        if let Some((call, doorbell)) = entered {
            let _alone = call.alone(&doorbell);

            self.kmd
                .disconnect_doorbell(class, DoorbellCookie(doorbell.cookie()));
        }
    }

    fn notify_work_submission(&self, class: &Passive, doorbell: DoorbellCookie) {
        let entered = self.enter_on(Entry::NotifyWorkSubmission, Kind::Doorbell, doorbell.0);

        if let Some((_call, doorbell)) = entered {
            self.kmd
                .notify_work_submission(class, DoorbellCookie(doorbell.cookie()));
        }
    }

    fn doorbell_rung(&self, class: &Dispatch, doorbell: DoorbellCookie, why: Rung) {
        let entered = self.enter_on(Entry::DoorbellRung, Kind::Doorbell, doorbell.0);

        if let Some((_call, doorbell)) = entered {
            self.kmd
                .doorbell_rung(class, DoorbellCookie(doorbell.cookie()), why);
        }
    }

    fn submit_command(&self, class: &Dispatch, context: ContextCookie, submission: &Submission) {
        let entered = self.enter_on(Entry::SubmitCommand, ANY_CONTEXT, context.0);

        if let Some((call, context)) = entered {
            let _alone = context
                .queue
                .as_ref()
                .and_then(|work| call.alone_to_submit(work));

            call.check(
                Rule::BadCookie,
                context.kind == Kind::Context(Scheduling::Packets),
            );
            self.submit(&call, &context, submission);
            self.kmd
                .submit_command(class, ContextCookie(context.cookie()), submission);
        }
    }

    fn submit_command_to_hw_queue(
        &self,
        class: &Dispatch,
        queue: HwQueueCookie,
        submission: &Submission,
    ) {
        if let Some((call, queue)) = self.enter_on(Entry::SubmitCommand, Kind::HwQueue, queue.0) {
            let _alone = queue
                .queue
                .as_ref()
                .and_then(|work| call.alone_to_submit(work));

            self.submit(&call, &queue, submission);
            self.kmd
                .submit_command_to_hw_queue(class, HwQueueCookie(queue.cookie()), submission);
        }
    }

    fn suspend_context(&self, class: &Dispatch, context: ContextCookie, id: u64) -> Suspend {
        let entered = self.enter_on(Entry::SuspendContext, ANY_CONTEXT, context.0);
        let Some((call, context)) = entered else {
            return Suspend::Done;
        };
        let _alone = call.alone(&context);

        if let Some(work) = &context.queue {
            // Before the KMD can tell of its end.
            platform::fetch_add(&work.suspensions, 1);
        }
        self.kmd
            .suspend_context(class, ContextCookie(context.cookie()), id)
    }

    fn resume_context(&self, class: &Dispatch, context: ContextCookie) {
        let entered = self.enter_on(Entry::ResumeContext, ANY_CONTEXT, context.0);

        if let Some((call, context)) = entered {
            let _alone = call.alone(&context);

            self.kmd
                .resume_context(class, ContextCookie(context.cookie()));
        }
    }

    fn build_paging_buffer(&self, class: &Passive, operation: PagingOperation<'_>) -> Built {
        self.build_paging(class, operation)
    }

    fn query_node_status(&self, class: &Passive, node: u32) -> NodeStatus {
        let call = self.enter(Entry::Query, node.into());

        call.check(Rule::BadValue, self.is_node(node));
        self.kmd.query_node_status(class, node)
    }

    fn get_standard_allocation_driver_data(&self, class: &Passive, size: u64, out: &mut [u8]) {
        let call = self.enter(Entry::Query, 0);

        call.check(
            Rule::BadValue,
            // CAST: 32 bits fit a usize.
            out.len() == self.caps.standard_data_size as usize,
        );
        self.kmd
            .get_standard_allocation_driver_data(class, size, out);
    }

    /// What the answer means is for the OS part to find out, which refuses what makes no sense.
    fn get_fence_storage_info(
        &self,
        class: &Passive,
        storage: &FenceStorageArgs,
    ) -> FenceStorageInfo {
        let call = self.enter(Entry::Query, 0);
        let info = self.kmd.get_fence_storage_info(class, storage);
        let preferred = 1_u32.checked_shl(info.preferred_segment).unwrap_or(0);

        call.check(
            Rule::BadAnswer,
            info.supported_segments & 1 == 0 && info.supported_segments & preferred != 0,
        );
        info
    }

    fn create_allocation(
        &self,
        class: &Passive,
        allocation: &CreateAllocationArgs<'_>,
    ) -> KmdResult<(AllocationCookie, AllocationInfo)> {
        let call = self.enter(Entry::CreateAllocation, allocation.id.0);
        let new = self
            .objects
            .prepare(Kind::Allocation, allocation.id.0, [None, None], None);
        let mut answer = None;
        let (cookie, object) = self.create(new, || {
            let (cookie, info) = self.kmd.create_allocation(class, allocation)?;

            answer = Some(info);
            Ok(cookie.0)
        })?;
        // It is there, because the creation has succeeded.
        let mut info = answer.ok_or(KmdError::NoMemory)?;

        call.check(Rule::BadAnswer, makes_sense(&info, allocation.existing));
        if let Some(end) = &mut info.notify_end {
            object.want_end(*end);
            *end = AllocationEndCookie(cookie);
        }
        Ok((AllocationCookie(cookie), info))
    }

    fn open_allocation(
        &self,
        class: &Passive,
        what: &OpenAllocationArgs,
    ) -> KmdResult<OpenAllocationCookie> {
        let call = self.enter(Entry::OpenAllocation, 0);
        let device = call.find(Kind::Device, what.device.0)?;
        let allocation = call.find(Kind::Allocation, what.allocation.0)?;
        let _alone = call.alone(&device);
        let args = OpenAllocationArgs {
            device: DeviceCookie(device.cookie()),
            allocation: AllocationCookie(allocation.cookie()),
        };
        let parents = [Some(device.clone()), Some(allocation.clone())];
        let new = self
            .objects
            .prepare(Kind::Open, allocation.id, parents, None);
        let (cookie, _) = self.create(new, || Ok(self.kmd.open_allocation(class, &args)?.0))?;

        Ok(OpenAllocationCookie(cookie))
    }

    fn calibrate_gpu_clock(&self, class: &Dispatch, node: u32, physical_adapter: u32) -> ClockData {
        let call = self.enter(Entry::CalibrateGpuClock, node.into());

        call.check(
            Rule::BadValue,
            self.is_node(node) && physical_adapter < self.caps.physical_adapters,
        );
        self.kmd.calibrate_gpu_clock(class, node, physical_adapter)
    }

    fn escape(&self, class: &Passive, escape: &Escape<'_>, data: &mut [u8]) -> KmdResult {
        let call = self.enter(Entry::Escape, 0);

        call.check(
            Rule::BadValue,
            // CAST: 32 bits fit a usize.
            data.len() <= self.caps.max_escape_size as usize,
        );
        let device = match escape.device {
            Some(device) => Some(DeviceCookie(call.find(Kind::Device, device.0)?.cookie())),
            None => None,
        };

        self.kmd.escape(class, &Escape { device, ..*escape }, data)
    }

    fn preempt_command(&self, class: &Dispatch, node: u32, id: u64) {
        let call = self.enter(Entry::PreemptCommand, node.into());

        call.check(Rule::BadValue, self.is_node(node) && id != 0);
        self.kmd.preempt_command(class, node, id);
    }

    fn query_engine_status(&self, class: &Passive, node: u32) -> EngineStatus {
        let call = self.enter(Entry::Query, node.into());

        call.check(Rule::BadValue, self.is_node(node));
        self.kmd.query_engine_status(class, node)
    }

    fn collect_dbg_info(&self, class: &Passive, reset: &ResetHwEngine, info: &mut DebugInfo) {
        let call = self.enter(Entry::CollectDbgInfo, reset.node.into());

        if let Ok(reset) = self.own_reset(&call, reset) {
            self.kmd.collect_dbg_info(class, &reset, info);
        }
        call.check(Rule::BadAnswer, info.count <= info.dwords.len());
    }

    fn reset_hw_engine(&self, class: &Passive, reset: &ResetHwEngine) -> KmdResult {
        let call = self.enter(Entry::ResetHwEngine, reset.node.into());
        let reset = self.own_reset(&call, reset)?;

        self.kmd.reset_hw_engine(class, &reset)
    }

    fn resume_hw_engine(&self, class: &Passive, node: u32) {
        let call = self.enter(Entry::ResumeHwEngine, node.into());

        call.check(Rule::BadValue, self.is_node(node));
        self.kmd.resume_hw_engine(class, node);
    }

    fn reset_from_timeout(&self, class: &Passive) -> KmdResult {
        let _call = self.enter(Entry::ResetFromTimeout, 0);

        self.kmd.reset_from_timeout(class)
    }

    fn restart_from_timeout(&self, class: &Passive) -> KmdResult {
        let _call = self.enter(Entry::RestartFromTimeout, 0);

        self.kmd.restart_from_timeout(class)
    }

    fn is_idle(&self, class: &Passive) -> bool {
        let _call = self.enter(Entry::Query, 0);

        self.kmd.is_idle(class)
    }

    fn notify_device_error(&self, class: &Passive, device: DeviceCookie, why: DeviceError) {
        let entered = self.enter_on(Entry::NotifyDeviceError, Kind::Device, device.0);

        if let Some((_call, device)) = entered {
            self.kmd
                .notify_device_error(class, DeviceCookie(device.cookie()), why);
        }
    }

    fn notify_memory_pressure(&self, class: &Passive) {
        let _call = self.enter(Entry::NotifyMemoryPressure, 0);

        self.kmd.notify_memory_pressure(class);
    }

    fn set_power_state(&self, class: &Passive, state: PowerState) {
        let call = self.enter(Entry::SetPowerState, 0);
        let (from, to) = match state {
            PowerState::D0 => (1, 0),
            PowerState::D3 => (0, 1),
        };

        call.check(Rule::BadPower, platform::cmpxchg(&self.asleep, from, to));
        self.kmd.set_power_state(class, state);
    }
}
