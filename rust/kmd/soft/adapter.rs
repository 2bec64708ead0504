// SPDX-License-Identifier: GPL-2.0

//! A software adapter from StartDevice on: its engines, its memory, and what was made on it.

use super::{
    aperture::Aperture,
    cmp::{
        Cmp,
        ENGINES, //
    },
    config::Config,
    context::Context,
    cpu_events::{
        ContextEvents,
        CpuEvents, //
    },
    doorbells::{
        Doorbell,
        Doorbells, //
    },
    engine_core::NewQueue,
    late_stores::LateStores,
    memory::{
        self,
        SegmentIds, //
    },
    native_fences::{
        Bell,
        NativeFences, //
    },
    nodes,
    page_tables,
    paging_buffer,
    parts::AdapterParts,
    polls::Polls,
    queue::Queue,
    save_area::{
        self,
        SaveArea, //
    },
    shell::Shell,
    system_space::SystemSpace,
    table_writes,
    translations::{
        Engines,
        Translations, //
    }, //
};
use crate::{
    ddi::{
        callbacks::Callbacks,
        class::Passive,
        doorbell::{
            Connected,
            CreateDoorbellArgs,
            Rung, //
        },
        native_fence::{
            self,
            LogBuffer,
            OpenNativeFenceArgs, //
        },
        paging::{
            Built,
            PagingOperation,
            RootPageTable, //
        },
        queue::{
            NodeStatus,
            Submission,
            Suspend, //
        },
        segments::Segments,
        slab::{
            self,
            Removed,
            SharedSlab,
            Slab, //
        },
        types::{
            ContextCookie,
            CreateContextArgs,
            CreateHwQueueArgs,
            DeviceCookie,
            DoorbellCookie,
            HwQueueCookie,
            KmdError,
            KmdResult,
            NativeFenceCookie,
            OpenNativeFenceCookie,
            ProcessCookie,
            Scheduling, //
        }, //
    },
    engine::{
        fences::FenceIndex,
        log::{
            Log,
            LogType, //
        },
        ring::{
            Ring,
            CONTROL_SIZE, //
        },
        run_list::PRIORITIES,
        translation::{
            Root,
            Scope,
            ALL_PROCESSES, //
        }, //
    },
    platform::{
        self,
        Lock,
        PhysicalMemory,
        SegmentMemory,
        Shared,
        Thread,
        Word32, //
    }, //
};
use core::array;

/// A started adapter.
pub(super) struct Adapter {
    pub(super) config: Config,
    pub(super) callbacks: Callbacks,
    local: Option<SegmentMemory>,
    pub(super) ids: SegmentIds,
    aperture: Shared<Aperture>,
    /// Where engines keep entries of logs back, if they do.
    late: Option<Shared<LateStores>>,
    pub(super) engines: Engines<Shell>,
    /// Until StopDevice.
    threads: Lock<Option<Threads>>,
    /// Its processes, and the fences that the GPU waits for by itself.
    pub(super) native_fences: Shared<NativeFences>,
    /// Where its CMP reaches their words, if it does.
    system: Option<Shared<SystemSpace>>,
    /// Who has translations.
    translations: Shared<Translations>,
    pub(super) contexts: SharedSlab<Shared<Context>>,
    queues: SharedSlab<Shared<Queue>>,
    /// Its physical doorbells, and those of the OS part.
    physical_doorbells: Doorbells,
    /// Its devices, and whom to tell of what happens to them.
    pub(super) cpu_events: Shared<CpuEvents>,
    doorbells: SharedSlab<Shared<Doorbell>>,
    /// It is gone, as if somebody had pulled it out; 0 or 1.
    pub(super) lost: Word32,
    /// Which resets fail, by bits of `recovery::Resets`.
    pub(super) failing: Word32,
    /// Which updates of native fences fail, by bits of `recovery::Updates`.
    pub(super) failing_updates: Word32,
}

/// The threads of an adapter. Dropping them ends them.
struct Threads {
    _cmp: Thread<Cmp<Shell>>,
    _engines: [Option<Thread<Shell>>; ENGINES],
}

/// The number that a cookie is.
fn number(cookie: u64) -> u32 {
    u32::try_from(cookie).unwrap_or(u32::MAX)
}

/// The PASID of a process.
fn pasid(cookie: u64) -> u16 {
    u16::try_from(cookie).unwrap_or(ALL_PROCESSES)
}

impl Adapter {
    /// Makes the engines and starts the threads; `None` if there is no memory. May sleep.
    pub(super) fn start(config: &Config, callbacks: &Callbacks) -> Option<Self> {
        let local = match config.local_memory {
            0 => None,
            bytes => Some(platform::segment_memory(bytes)?),
        };
        let memory = platform::shared(PhysicalMemory::new(local.clone()))?;
        let aperture = platform::shared(Aperture::new()?)?;
        let polls = platform::shared(Polls::new()?)?;
        let late = match config.lazy_logs {
            true => Some(platform::shared(LateStores::new(&memory)?)?),
            false => None,
        };
        let format = page_tables::format(config.profile);
        let mut bells = [const { None }; ENGINES];

        // CAST: four at most.
        for place in bells.iter_mut().take(config.nodes as usize) {
            *place = Some(Bell::new()?);
        }

        let system = match config.map_to_gpu_system_process {
            true => Some(SystemSpace::new(&memory, format)?),
            false => None,
        };
        let native_fences = platform::shared(NativeFences::new(
            bells.clone(),
            config.monitored_values,
            system.clone(),
        )?)?;
        let translations = Translations::new(system.clone())?;
        let reached = AdapterParts {
            memory,
            aperture: aperture.clone(),
            late: late.clone(),
            polls: polls.clone(),
            native_fences: native_fences.clone(),
            translations: translations.clone(),
            native_interrupts: config.native_interrupts,
            callbacks: callbacks.clone(),
        };
        let mut engines = [const { None }; ENGINES];

        for ((number, place), bell) in engines.iter_mut().enumerate().zip(bells) {
            if let Some(bell) = bell {
                *place = Some(Shell::new(number, bell, &reached, format)?);
            }
        }

        let threads = Threads::start(config.index, polls, &engines)?;
        let adapter = Self {
            config: *config,
            callbacks: callbacks.clone(),
            ids: SegmentIds::new(local.is_some()),
            local,
            aperture,
            late,
            engines,
            threads: platform::lock!(Some(threads), "soft::Adapter::threads")?,
            native_fences,
            system,
            translations,
            contexts: platform::short_lock!(Slab::new()?, "soft::Adapter::contexts")?,
            queues: platform::short_lock!(Slab::new()?, "soft::Adapter::queues")?,
            cpu_events: platform::shared(CpuEvents::new()?)?,
            physical_doorbells: Doorbells::new(&config.doorbells)?,
            doorbells: platform::short_lock!(Slab::new()?, "soft::Adapter::doorbells")?,
            lost: platform::word32(0),
            failing: platform::word32(0),
            failing_updates: platform::word32(0),
        };

        adapter.translations.begin(&adapter.engines);
        Some(adapter)
    }

    /// Ends the threads, and tells who waits for CPU events: on return nothing runs and nothing is
    /// told any more. May sleep.
    pub(super) fn stop(&self, class: &Passive) {
        let threads = self.threads.lock().take();

        drop(threads);
        self.translations.end();
        self.set_system_root(None);
        self.cpu_events.stop(class);
    }

    /// Describes its segments.
    pub(super) fn describe_segments(&self, segments: &mut Segments) {
        memory::describe(segments, self.local.as_ref(), &self.config);
    }

    /// Which segments it has.
    pub(super) fn segment_ids(&self) -> &SegmentIds {
        &self.ids
    }

    /// CreateProcess. There can be as many as PASIDs.
    pub(super) fn create_process(&self) -> KmdResult<ProcessCookie> {
        let number = self.native_fences.add_process().ok_or(KmdError::NoMemory)?;

        if number >= ALL_PROCESSES.into() {
            self.native_fences.remove_process(number);
            return Err(KmdError::NoMemory);
        }
        Ok(ProcessCookie(number.into()))
    }

    /// DestroyProcess. Its PASID is used again.
    pub(super) fn destroy_process(&self, process: ProcessCookie) {
        self.translations
            .invalidate(Scope::Process(pasid(process.0)), 0, u64::MAX);

        self.native_fences.remove_process(number(process.0));
    }

    /// OpenNativeFence, on a device that tells which process it is.
    pub(super) fn open_native_fence(
        &self,
        fence: NativeFenceCookie,
        device: DeviceCookie,
        open: &OpenNativeFenceArgs,
    ) -> KmdResult<OpenNativeFenceCookie> {
        let process = self.cpu_events.process_of(device)?;

        self.native_fences.open(fence, number(process.0), open)
    }

    /// DestroyNativeFence. On return no engine knows of it. If the CMP has lost its words before,
    /// nothing of this adapter can be believed any more, as after each fault of the paging process
    /// (MEM-102).
    pub(super) fn destroy_native_fence(&self, fence: NativeFenceCookie) {
        let index = FenceIndex(number(fence.0));

        if self.native_fences.has_lost(index) {
            self.lose();
        }
        // Nobody has it open, so that no slice finds it that begins now.
        for shell in self.engines.iter().flatten() {
            shell.forget_fence(index);
        }
        self.native_fences.remove(index);
    }

    /// CreateContext, on a device that tells which process it is.
    pub(super) fn create_context(
        &self,
        class: &Passive,
        device: DeviceCookie,
        args: &CreateContextArgs<'_>,
    ) -> KmdResult<ContextCookie> {
        let save_area = self.save_area_of(class, device, args)?;
        let made = self.add_context(device, args, save_area.clone());

        if made.is_err() {
            self.leave_save_area_of(class, save_area.as_deref());
        }
        made
    }

    fn add_context(
        &self,
        device: DeviceCookie,
        args: &CreateContextArgs<'_>,
        save_area: Option<Shared<SaveArea>>,
    ) -> KmdResult<ContextCookie> {
        // CAST: 32 bits fit a usize.
        let engine = args.node as usize;
        let shell = self.engine(engine).ok_or(KmdError::InvalidParameter)?;
        let packets = match args.scheduling {
            Scheduling::Packets => {
                Some(Queue::new(args.id.0, engine, None, false).ok_or(KmdError::NoMemory)?)
            }
            Scheduling::HwQueues => None,
        };
        let process = self.cpu_events.process_of(device)?;
        let system = args.is_system.then(|| pasid(process.0));
        let context = Context::new(engine, system, packets, save_area).ok_or(KmdError::NoMemory)?;
        let events = ContextEvents {
            device,
            context: args.id.0,
            all: self.cpu_events.clone(),
        };

        shell
            .add_context(&context, pasid(process.0), args.callbacks, &events)
            .ok_or(KmdError::NoMemory)?;
        match slab::insert(&self.contexts, context.clone()) {
            Some(number) => Ok(ContextCookie(number.into())),
            None => {
                shell.remove_context(&context);
                Err(KmdError::NoMemory)
            }
        }
    }

    /// DestroyContext. Without such a context nothing happens.
    pub(super) fn destroy_context(&self, class: &Passive, cookie: ContextCookie) {
        let removed = self.contexts.lock().remove(number(cookie.0));

        if let Some(Removed {
            object: context, ..
        }) = removed
        {
            if let Some(shell) = self.engine(context.engine) {
                shell.remove_context(&context);
            }
            self.leave_save_area_of(class, context.save_area.as_deref());
            if context.system.is_some() && !self.has_system_context() {
                self.set_system_root(None);
            }
        }
    }

    /// Does this with each context, without a lock.
    pub(super) fn each_context(&self, mut visit: impl FnMut(&Context)) {
        let mut next = 0;

        loop {
            let found = {
                let contexts = self.contexts.lock();

                contexts
                    .next(next)
                    .map(|(number, context)| (number, context.clone()))
            };
            let Some((number, context)) = found else {
                return;
            };

            visit(&context);
            // OVERFLOW: numbers never reach the last one.
            next = number.saturating_add(1);
        }
    }

    /// Whether a context of the paging process is left.
    fn has_system_context(&self) -> bool {
        let contexts = self.contexts.lock();
        let mut next = 0;

        while let Some((number, context)) = contexts.next(next) {
            if context.system.is_some() {
                return true;
            }
            next = number.saturating_add(1);
        }
        false
    }

    /// The CMP reaches the paging process by this root, or not at all.
    fn set_system_root(&self, root: Option<Root>) {
        if let Some(system) = &self.system {
            system.set_root(root);
        }
    }

    /// SetRootPageTable. Without such a context nothing happens.
    pub(super) fn set_root_page_table(
        &self,
        class: &Passive,
        cookie: ContextCookie,
        root: &RootPageTable,
    ) {
        let at = self.ids.physical(root.segment, root.address);

        if let (Some((shell, context)), Some(at)) = (self.context(cookie), at) {
            shell.set_root(&context, at, root.entries);
            self.update_save_area(class, &context, root);
            if let Some(process) = context.system {
                self.set_system_root(Some(Root {
                    table: at,
                    entries: root.entries,
                    process,
                }));
            }
        }
    }

    /// SetContextSchedulingProperties.
    pub(super) fn set_context_priority(&self, cookie: ContextCookie, priority: i32) {
        if let Some((shell, context)) = self.context(cookie) {
            shell.set_priority(&context, run_list_priority(priority));
        }
    }

    /// CreateHwQueue, on the engine of its context.
    pub(super) fn create_hw_queue(
        &self,
        cookie: ContextCookie,
        args: &CreateHwQueueArgs<'_>,
    ) -> KmdResult<HwQueueCookie> {
        let (shell, context) = self.context(cookie).ok_or(KmdError::InvalidParameter)?;
        let queue = Queue::new(
            args.id.0,
            context.engine,
            Some(args.progress_fence),
            args.user_mode_submission,
        )
        .ok_or(KmdError::NoMemory)?;
        let new = NewQueue {
            object: &queue,
            callbacks: args.callbacks,
        };

        shell.add_queue(&context, &new).ok_or(KmdError::NoMemory)?;
        match slab::insert(&self.queues, queue.clone()) {
            Some(number) => Ok(HwQueueCookie(number.into())),
            None => {
                shell.remove_queue(&queue);
                Err(KmdError::NoMemory)
            }
        }
    }

    /// DestroyHwQueue. Without such a queue nothing happens.
    pub(super) fn destroy_hw_queue(&self, cookie: HwQueueCookie) {
        let removed = self.queues.lock().remove(number(cookie.0));

        if let Some(Removed { object: queue, .. }) = removed {
            if let Some(shell) = self.engine(queue.engine) {
                shell.remove_queue(&queue);
            }
        }
        // Its logs may go now.
        self.drain_logs();
    }

    /// UpdateNativeFenceLogs: entries that engines keep back are there.
    ///
    /// Context: does not sleep.
    pub(super) fn drain_logs(&self) {
        if let Some(late) = &self.late {
            late.drain();
        }
    }

    /// SetNativeFenceLogBuffer. Without such a queue nothing happens.
    pub(super) fn set_log(&self, cookie: HwQueueCookie, buffer: &LogBuffer) {
        let queue = self.queues.lock().get(number(cookie.0)).cloned();
        let ty = match buffer.ty {
            native_fence::LogType::Waits => LogType::Waits,
            native_fence::LogType::Signals => LogType::Signals,
        };
        let log = Log {
            va: buffer.address,
            entries: buffer.entries,
        };

        if let Some(queue) = queue {
            if let Some(shell) = self.engine(queue.engine) {
                shell.set_log(&queue, ty, log);
            }
        }
        // An older log may go now.
        self.drain_logs();
    }

    /// CreateDoorbell: from now on the queue runs what is in the ring, when it is told.
    pub(super) fn create_doorbell(
        &self,
        cookie: HwQueueCookie,
        args: &CreateDoorbellArgs<'_>,
    ) -> KmdResult<DoorbellCookie> {
        let queue = self.queues.lock().get(number(cookie.0)).cloned();
        let queue = queue.ok_or(KmdError::InvalidParameter)?;
        let ring = Ring::new(args.ring, args.ring_size, args.control)
            .filter(|_| queue.is_filled_by_process && args.control_size >= CONTROL_SIZE)
            .ok_or(KmdError::InvalidParameter)?;
        let shell = self
            .engine(queue.engine)
            .ok_or(KmdError::InvalidParameter)?;
        let config = self.physical_doorbells.config();
        let doorbell = Doorbell::new(&queue, args.callbacks, config).ok_or(KmdError::NoMemory)?;
        let number = slab::insert(&self.doorbells, doorbell.clone()).ok_or(KmdError::NoMemory)?;
        let before = queue.set_doorbell(Some(args.callbacks.clone()));

        shell.set_ring(&queue, Some(ring));
        drop(before);
        Ok(DoorbellCookie(number.into()))
    }

    /// DestroyDoorbell. Without such a doorbell nothing happens.
    pub(super) fn destroy_doorbell(&self, cookie: DoorbellCookie) {
        let removed = self.doorbells.lock().remove(number(cookie.0));

        if let Some(Removed {
            object: doorbell, ..
        }) = removed
        {
            let own = doorbell.queue.set_doorbell(None);

            self.physical_doorbells.end(&doorbell);
            if let Some(shell) = self.engine(doorbell.queue.engine) {
                shell.set_ring(&doorbell.queue, None);
                shell.wait_for_trap();
            }
            drop(own);
        }
    }

    /// ConnectDoorbell, with a physical doorbell of another queue if all have one.
    pub(super) fn connect_doorbell(&self, cookie: DoorbellCookie) -> KmdResult<Connected> {
        let doorbell = self.doorbell(cookie).ok_or(KmdError::InvalidParameter)?;

        if self.is_lost() {
            return Err(KmdError::DeviceRemoved);
        }

        let connected = self
            .physical_doorbells
            .connect(&doorbell, |queue| self.look_at_ring(queue))?;

        if self.physical_doorbells.config().f1 {
            if let Some(shell) = self.engine(doorbell.queue.engine) {
                shell.leave_f1();
            }
        }
        Ok(connected)
    }

    /// DisconnectDoorbell. What was rung before is looked at.
    pub(super) fn disconnect_doorbell(&self, cookie: DoorbellCookie) {
        if let Some(doorbell) = self.doorbell(cookie) {
            self.physical_doorbells.release(&doorbell);
            self.look_at_ring(&doorbell.queue);
        }
    }

    /// The process has rung, or may have before the doorbell was connected. Does not sleep.
    pub(super) fn doorbell_rung(&self, cookie: DoorbellCookie, why: Rung) {
        if let Some(doorbell) = self.doorbell(cookie) {
            if why == Rung::Accessed {
                self.physical_doorbells.rung(&doorbell);
            }
            if let Some(shell) = self.engine(doorbell.queue.engine) {
                shell.queue_was_rung(&doorbell.queue);
            }
        }
    }

    fn doorbell(&self, cookie: DoorbellCookie) -> Option<Shared<Doorbell>> {
        self.doorbells.lock().get(number(cookie.0)).cloned()
    }

    fn look_at_ring(&self, queue: &Shared<Queue>) {
        if let Some(shell) = self.engine(queue.engine) {
            shell.look_at_ring(queue);
        }
    }

    /// SubmitCommandVirtual. Does not sleep.
    pub(super) fn submit_command(&self, cookie: ContextCookie, submission: &Submission) {
        let context = self.contexts.lock().get(number(cookie.0)).cloned();

        if let Some(queue) = context
            .as_ref()
            .and_then(|context| context.packets.as_ref())
        {
            self.submit(queue, submission);
        }
    }

    /// SubmitCommandToHwQueue. Does not sleep.
    pub(super) fn submit_command_to_hw_queue(
        &self,
        cookie: HwQueueCookie,
        submission: &Submission,
    ) {
        let queue = self.queues.lock().get(number(cookie.0)).cloned();

        if let Some(queue) = &queue {
            self.submit(queue, submission);
        }
    }

    /// SuspendContext. Does not sleep.
    pub(super) fn suspend_context(&self, cookie: ContextCookie, id: u64) -> Suspend {
        let Some((shell, context)) = self.context(cookie) else {
            return Suspend::Done;
        };
        let (suspend, tell) = context.suspend(id);

        if tell {
            shell.context_has_wish(&context);
        }
        suspend
    }

    /// ResumeContext. Does not sleep.
    pub(super) fn resume_context(&self, cookie: ContextCookie) {
        if let Some((shell, context)) = self.context(cookie) {
            if context.resume() {
                shell.context_has_wish(&context);
            }
        }
    }

    /// BuildPagingBuffer. What has no buffer is done at once, by the processor.
    pub(super) fn build_paging_buffer(&self, operation: PagingOperation<'_>) -> Built {
        match &operation {
            PagingOperation::UpdatePageTable(update, None) => {
                page_tables::update(self.config.profile, &self.ids, update);
            }
            PagingOperation::FlushTlb {
                process,
                first,
                last,
                buffer: None,
            } => {
                let all = *first == 0 && *last == 0;
                let last = if all {
                    u64::MAX
                } else {
                    last.saturating_sub(1)
                };

                self.translations
                    .invalidate(Scope::Process(pasid(process.0)), *first, last);
            }
            PagingOperation::MapApertureSegment(map) => self.aperture.map(map.first, map.pages),
            PagingOperation::UnmapApertureSegment(unmap) => {
                self.aperture.unmap(unmap.first, unmap.count);
                // No translation leads to the page itself. Who has looked into the aperture before
                // is done with it after its slice.
                for shell in self.engines.iter().flatten() {
                    shell.wait_for_slice();
                }
            }
            // Its engines know an allocation by addresses only.
            PagingOperation::NotifyResidency(_) => {}
            // Below.
            PagingOperation::UpdatePageTable(..)
            | PagingOperation::FlushTlb { .. }
            | PagingOperation::TransferVirtual(..)
            | PagingOperation::FillVirtual(..)
            | PagingOperation::InitContextResource(..)
            | PagingOperation::UpdateContextAllocation(..) => {}
        }
        match operation {
            PagingOperation::UpdatePageTable(update, Some(buffer)) => {
                table_writes::build(self.config.profile, &self.ids, &update, buffer)
            }
            PagingOperation::FlushTlb {
                process,
                buffer: Some(buffer),
                ..
            } => table_writes::invalidate(pasid(process.0), buffer),
            PagingOperation::TransferVirtual(transfer, buffer) => {
                paging_buffer::transfer(&transfer, buffer)
            }
            PagingOperation::FillVirtual(fill, buffer) => paging_buffer::fill(&fill, buffer),
            PagingOperation::InitContextResource(init, buffer) => save_area::init(&init, buffer),
            PagingOperation::UpdateContextAllocation(update, buffer) => {
                save_area::update(&update, buffer)
            }
            _ => Built::All,
        }
    }

    /// What a node does.
    pub(super) fn node_status(&self, node: u32) -> NodeStatus {
        // CAST: 32 bits fit a usize.
        self.engine(node as usize)
            .map(|shell| shell.status())
            .unwrap_or_default()
    }

    /// Whether no queue has anything to do.
    pub(super) fn is_idle(&self) -> bool {
        self.engines.iter().flatten().all(|shell| shell.is_idle())
    }

    /// SetPowerState: all engines are off, or on again.
    pub(super) fn set_off(&self, is_off: bool) {
        for shell in self.engines.iter().flatten() {
            shell.set_off(is_off);
        }
    }

    pub(super) fn engine(&self, number: usize) -> Option<&Shared<Shell>> {
        self.engines.get(number)?.as_ref()
    }

    pub(super) fn context(
        &self,
        cookie: ContextCookie,
    ) -> Option<(&Shared<Shell>, Shared<Context>)> {
        let context = self.contexts.lock().get(number(cookie.0)).cloned()?;

        Some((self.engine(context.engine)?, context))
    }

    fn submit(&self, queue: &Shared<Queue>, submission: &Submission) {
        if let Some(shell) = self.engine(queue.engine) {
            shell.answers.give();
            if queue.push(submission) {
                shell.queue_has_work(queue);
            }
        }
    }
}

impl Threads {
    /// Starts a thread for each engine, and one for the CMP; `None` if there is no memory, and then
    /// there are none. May sleep.
    fn start(adapter: u32, polls: Shared<Polls>, engines: &Engines<Shell>) -> Option<Self> {
        let mut threads = [const { None }; ENGINES];
        let parts = nodes::PARTS.iter();

        for ((thread, engine), part) in threads.iter_mut().zip(engines).zip(parts) {
            if let Some(engine) = engine {
                *thread = Some(platform::thread(adapter, part, engine.clone())?);
            }
        }

        let cmp = Cmp::new(polls, array::from_fn(|number| engines.get(number)?.clone()));

        Some(Self {
            _cmp: platform::thread(adapter, "cmp", platform::shared(cmp)?)?,
            _engines: threads,
        })
    }
}

/// The first priority of D3DKMT that is one for real time.
const FIRST_REAL_TIME: i32 = 8;

/// A priority of the run list for one of D3DKMT, which has -7 to 7, and 8 to 31 for real time. None
/// of the first is above one of the second.
fn run_list_priority(priority: i32) -> u8 {
    // OVERFLOW: small numbers.
    let priority = priority.clamp(-7, 31);
    let place = if priority < FIRST_REAL_TIME {
        priority + 7
    } else {
        15 + (priority - FIRST_REAL_TIME) * 16 / 23
    };

    // CAST: 0 to 31.
    (place as u8).min(PRIORITIES as u8 - 1)
}
