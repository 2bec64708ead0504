// SPDX-License-Identifier: GPL-2.0

//! An adapter: a GPU as the OS part sees it, with the KMD that drives it. Handles to it are per
//! process.
//!
//! It runs from [`Adapter::start`] to [`Adapter::stop`]. Then it is removed: it does nothing any
//! more, and what was made on it stays until its users have destroyed it. It is found as long as it
//! runs, see [`Driver`](super::driver::Driver).

use super::{
    border::{
        Border,
        EventPath, //
    },
    debugfs::{
        AdapterFile,
        CpuEventsFile,
        Debugfs,
        NativeFencesFile,
        PageTablesFile,
        ReportsFile, //
    },
    dpc::Dpc,
    power::Power,
    recovery::Recovery,
    report::Reports,
    sched::{
        last_faults::LastFaults,
        list::Queues, //
    },
    stats::{
        CountedOn,
        Stats, //
    },
    sync::{
        fence_binding::FenceBindings,
        log_renewal::LogRenewal,
        native_interrupts::NativeInterrupts, //
    },
    vidmm::{
        address_space::{
            AddressSpace,
            OnAdapter, //
        },
        all_contexts::AllContexts,
        context_allocations::ContextAllocations,
        context_user::ContextUser,
        mover::PagingNode,
        paging_control::PagingFile,
        paging_engine::{
            PagingEngine,
            PagingOwner, //
        },
        paging_process::PagingProcess,
        segment::AdapterMemory,
        table_changes::TableWriter, //
    }, //
};
use crate::{
    ddi::{
        callbacks::{
            Callbacks,
            Record, //
        },
        caps::{
            DriverCaps,
            PageTableUpdateMode,
            StartInfo, //
        },
        class::{
            Dispatch,
            Passive, //
        },
        context_allocation::{
            ContextMemory,
            UsedBy, //
        },
        native_fence::NativeFenceCaps,
        port::Port,
        types::{
            ClockData,
            Escape,
            KmdError,
            KmdResult,
            Text, //
        },
        Kmd, //
    },
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        adapter_info::{
            self,
            filter::Filter,
            Asked,
            Refusal,
            Size, //
        },
        feature::{
            self,
            Answer,
            FeatureSet, //
        },
        feature_agreement::Agreed,
        feature_overrides::Overrides,
        luid,
        start_rules::{
            self,
            Answers, //
        }, //
    },
    sys::{
        alloc::pin_arc,
        work::OrderedWorker, //
    }, //
};
use kernel::{
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

pub(crate) use crate::{
    ddi::caps::Luid,
    logic::luid::AdapterKind, //
};

/// Who has the adapters that run, as one of them knows it.
pub(in crate::dxgk) trait AdapterOwner: Send + Sync {
    /// Removes an adapter, as [`Driver::remove_adapter`](super::driver::Driver::remove_adapter).
    ///
    /// Context: may sleep, no locks held.
    fn remove_adapter(&self, adapter: &Arc<Adapter>);

    /// All work of an adapter is lost: its devices are in error.
    ///
    /// Context: may sleep, no locks held.
    fn lose_devices(&self, adapter: &Arc<Adapter>);
}

/// What is configured of the OS part of an adapter.
#[derive(Clone)]
pub(crate) struct AdapterOptions {
    /// How its CPU events go to the KMD and back.
    pub(crate) event_path: EventPath,
    /// What is configured about its features.
    pub(crate) overrides: Overrides,
    /// The log of its memory manager is on from the start (MEM-73).
    pub(crate) logs_paging: bool,
}

impl AdapterOptions {
    /// Nothing is.
    pub(crate) const NONE: Self = Self {
        event_path: EventPath::Local,
        overrides: Overrides::NONE,
        logs_paging: false,
    };
}

/// A GPU, and the KMD that drives it.
#[pin_data]
pub(crate) struct Adapter {
    /// Its number among all adapters.
    pub(crate) id: u64,
    /// Its system-wide name.
    pub(crate) luid: Luid,
    /// What its KMD says about it.
    pub(crate) caps: DriverCaps,
    /// What the KMD wants of its native fences, if it has any.
    pub(in crate::dxgk) native_fence_caps: NativeFenceCaps,
    /// The driver features in use.
    features: Agreed,
    /// The KMD.
    pub(in crate::dxgk) port: Arc<Port>,
    /// What it recovers with.
    #[pin]
    pub(crate) recovery: Recovery,
    /// Who ends it.
    pub(in crate::dxgk) owner: Arc<dyn AdapterOwner>,
    /// Whether it has ended. LOCK: held while it ends.
    #[pin]
    ended: Mutex<bool>,
    /// Whether its KMD could not update a native fence.
    has_failed: Atomic<bool>,
    /// Whether it is about to be stopped: no doorbell of its native fences is connected any more.
    is_ending: Atomic<bool>,
    #[pin]
    failing: Work<Adapter>,
    #[pin]
    paging_failing: DelayedWork<Adapter, PAGING_FAILS>,
    /// What it has of memory.
    pub(in crate::dxgk) memory: AdapterMemory,
    /// Its paging process, if it needs one.
    paging_process: Option<Arc<PagingProcess>>,
    /// Its paging node, if it has one.
    paging_engine: Option<Arc<PagingEngine>>,
    /// What its KMD has made for contexts, if it has a paging node.
    context_allocations: Option<Arc<ContextAllocations>>,
    /// By which the KMD asks for them.
    callbacks: Arc<Record>,
    /// The fences that are bound to it.
    pub(in crate::dxgk) fences: Arc<FenceBindings>,
    /// The interrupts of native fences.
    pub(in crate::dxgk) native_interrupts: Arc<NativeInterrupts>,
    /// Its queues whose logs are to be larger.
    pub(in crate::dxgk) log_renewal: Arc<LogRenewal>,
    /// The queues that take work for it.
    pub(crate) queues: Arc<Queues>,
    /// Why such queues have stopped.
    #[pin]
    pub(in crate::dxgk) last_faults: LastFaults,
    /// Whether it works or sleeps.
    pub(crate) power: Arc<Power>,
    /// Its contexts, all together.
    pub(in crate::dxgk) contexts: Arc<AllContexts>,
    /// Calls DpcRoutine.
    pub(in crate::dxgk) dpc: Arc<Dpc>,
    /// What is between its CPU events and the KMD, if that is in another machine.
    pub(in crate::dxgk) border: Option<Arc<Border>>,
    /// Does what its KMD has told, one after the other (GPU-114).
    pub(in crate::dxgk) worker: OrderedWorker,
    /// How much exists that belongs to it.
    stats: Arc<Stats>,
    /// What went wrong.
    pub(in crate::dxgk) reports: Arc<Reports>,
    /// Shows these until the last object of the adapter is gone.
    _file: Option<AdapterFile>,
    _reports_file: Option<ReportsFile>,
    _native_fences_file: Option<NativeFencesFile>,
    _cpu_events_file: Option<CpuEventsFile>,
    _paging_file: Option<PagingFile>,
    _page_tables_file: Option<PageTablesFile>,
}

impl CountedOn for Adapter {
    fn stats(&self) -> Option<&Arc<Stats>> {
        Some(&self.stats)
    }
}

/// The number of the work that resets it because its paging node cannot do its work.
const PAGING_FAILS: u64 = 1;

impl_has_work! {
    impl HasWork<Self> for Adapter { self.failing }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for Adapter { self.paging_failing }
}

impl WorkItem<PAGING_FAILS> for Adapter {
    type Pointer = Arc<Self>;

    /// What its memory has is not known any more: all devices are in error (MEM-102).
    fn run(this: Arc<Self>) {
        this.paging_fails();
    }
}

impl WorkItem for Adapter {
    type Pointer = Arc<Self>;

    /// The KMD fails in native fences: all of them are signaled for good.
    fn run(this: Arc<Self>) {
        pr_warn!(
            "adapter {}: stopped, because its driver fails in native fences\n",
            this.luid.low
        );
        this.owner.remove_adapter(&this);
    }
}

impl PagingOwner for Adapter {
    fn look_after_a_while(&self, engine: Arc<PagingEngine>) {
        let after = msecs_to_jiffies(self.recovery.look_after_ms());

        self.recovery.worker.enqueue_delayed::<_, 0>(engine, after);
    }

    fn limit_ns(&self) -> u64 {
        self.recovery.limit_ns()
    }

    fn engine_hangs(self: Arc<Self>, node: u32) {
        Adapter::engine_hangs(&self, node);
    }

    fn paging_failed(self: Arc<Self>) {
        self.recovery
            .worker
            .enqueue_delayed::<_, PAGING_FAILS>(self.clone(), 0);
    }

    fn wake_for_work(&self) {
        self.power.wake_for_work();
    }
}

/// Calls `step`, whose stack is not taken before.
#[inline(never)]
fn with_own_frame<T>(step: impl FnOnce() -> T) -> T {
    step()
}

impl Adapter {
    /// The adapter of this kind with the number `index`, which `kmd` drives. Starts it, with what
    /// is configured about its features. `debugfs` shows its counters.
    ///
    /// Context: may sleep, no spinlock held.
    pub(super) fn start(
        kind: AdapterKind,
        index: u32,
        kmd: KBox<dyn Kmd>,
        options: &AdapterOptions,
        debugfs: Option<&Debugfs>,
        owner: Arc<dyn AdapterOwner>,
    ) -> KmdResult<Arc<Self>> {
        let class = Passive::here();
        let luid = luid::luid_of(kind, index);
        let stats = Stats::of_adapter().map_err(|_| KmdError::NoMemory)?;
        // Only memory can be missing.
        let file = debugfs
            .map(|debugfs| debugfs.adapter_file(luid, &stats))
            .transpose()
            .map_err(|_| KmdError::NoMemory)?;
        let reports = Reports::new().map_err(|_| KmdError::NoMemory)?;
        let reports_file = debugfs
            .map(|debugfs| debugfs.reports_file(luid, &reports))
            .transpose()
            .map_err(|_| KmdError::NoMemory)?;
        let worker = OrderedWorker::start(c"dxg-sched").map_err(|_| KmdError::NoMemory)?;
        let dpc_worker = OrderedWorker::start(c"dxg-dpc").map_err(|_| KmdError::NoMemory)?;
        let fence_worker = OrderedWorker::start(c"dxg-fence").map_err(|_| KmdError::NoMemory)?;
        let fences = FenceBindings::new().map_err(|_| KmdError::NoMemory)?;
        let contexts = AllContexts::new().map_err(|_| KmdError::NoMemory)?;
        let queues = pin_arc(Queues::new(), GFP_KERNEL).map_err(|_| KmdError::NoMemory)?;
        let recovery = Recovery::new().map_err(|_| KmdError::NoMemory)?;
        let record = Record::new().ok_or(KmdError::NoMemory)?;
        let info = StartInfo {
            luid,
            callbacks: Callbacks::of(&record),
        };
        let port = Port::start(kmd, &class, &info)?;

        // What follows needs much stack, and so did the KMD.
        with_own_frame(move || {
            let dpc = Dpc::new(&port, dpc_worker).map_err(|_| KmdError::NoMemory)?;
            let border =
                Border::new(options.event_path, &port, &dpc).map_err(|_| KmdError::NoMemory)?;
            let power = Power::new(&port, &contexts, &queues).map_err(|_| KmdError::NoMemory)?;
            let log_renewal = LogRenewal::new(&queues).map_err(|_| KmdError::NoMemory)?;
            let (caps, features, native_fence_caps, memory) = {
                let kmd = port.enter()?;
                let Answers {
                    caps,
                    features,
                    native_fences,
                } = start_rules::ask(&*kmd, &class, &record, &options.overrides)?;
                let id = kind.id_of(index);
                let memory = AdapterMemory::new(id, &caps, native_fences.as_ref(), &*kmd, &class)?;

                if options.logs_paging {
                    memory.log.start().map_err(|_| KmdError::NoMemory)?;
                }

                (caps, features, native_fences.unwrap_or_default(), memory)
            };
            let on = OnAdapter {
                addresses: memory.addresses,
                segments: &memory.segments,
                gpu_mmu: &caps.gpu_mmu,
                contexts: &contexts,
                rotation: &memory.rotation,
                log: &memory.log,
                // The paging process has its tables written by the processor.
                node: None,
            };
            let shows_fences = native_fence_caps.map_to_gpu_system_process;
            let levels = on.addresses.as_ref().map(|(levels, _)| levels);
            let paging_space = start_rules::paging_space(&caps, &native_fence_caps, levels)?;
            // Memory is missing, to the KMD or here.
            let paging_process = paging_space
                .map(|space| PagingProcess::new(&port, &on, &stats, space, shows_fences))
                .transpose()
                .map_err(|_| KmdError::NoMemory)?;
            let paging_engine = match (&paging_process, &memory.addresses, caps.paging_node) {
                (Some(process), Some((levels, _)), Some(node)) => {
                    let worker = &memory.worker;
                    let engine = PagingEngine::new(process, worker, &contexts, levels, node);

                    Some(engine.map_err(|_| KmdError::NoMemory)?)
                }
                _ => None,
            };
            let context_allocations = paging_engine
                .as_ref()
                .map(|engine| ContextAllocations::new(engine, &memory, &port))
                .transpose()
                .map_err(|_| KmdError::NoMemory)?;
            let native_interrupts = NativeInterrupts::new(
                &fences,
                fence_worker,
                kind.id_of(index),
                caps.optimized_native_fence_interrupt,
            )
            .map_err(|_| KmdError::NoMemory)?;
            let native_fences_file = debugfs
                .map(|debugfs| debugfs.native_fences_file(luid, &native_interrupts))
                .transpose()
                .map_err(|_| KmdError::NoMemory)?;
            let paging_file = debugfs
                .map(|debugfs| debugfs.paging_file(luid, &memory))
                .transpose()
                .map_err(|_| KmdError::NoMemory)?;
            let page_tables_file = debugfs
                .zip(paging_process.as_ref())
                .map(|(debugfs, process)| debugfs.page_tables_file(luid, process.space()))
                .transpose()
                .map_err(|_| KmdError::NoMemory)?;
            let cpu_events_file = debugfs
                .zip(border.as_ref())
                .map(|(debugfs, border)| debugfs.cpu_events_file(luid, border.counts()))
                .transpose()
                .map_err(|_| KmdError::NoMemory)?;

            let adapter = pin_arc(
                pin_init!(Self {
                    id: kind.id_of(index),
                    luid,
                    caps,
                    native_fence_caps,
                    features,
                    port,
                    recovery <- recovery,
                    owner,
                    ended <- new_mutex!(false, "Adapter::ended"),
                    has_failed: Atomic::new(false),
                    is_ending: Atomic::new(false),
                    failing <- new_work!("Adapter::failing"),
                    memory,
                    paging_process,
                    paging_engine,
                    context_allocations,
                    callbacks: record,
                    paging_failing <- new_delayed_work!("Adapter::paging_failing"),
                    fences,
                    native_interrupts,
                    log_renewal,
                    queues,
                    last_faults <- LastFaults::new(),
                    power,
                    contexts,
                    dpc,
                    border,
                    worker,
                    stats,
                    reports,
                    _file: file,
                    _reports_file: reports_file,
                    _native_fences_file: native_fences_file,
                    _cpu_events_file: cpu_events_file,
                    _paging_file: paging_file,
                    _page_tables_file: page_tables_file,
                }),
                GFP_KERNEL,
            )
            .map_err(|_| KmdError::NoMemory)?;

            // It has the adapter until `stop`.
            if let Some(engine) = &adapter.paging_engine {
                engine.begin(adapter.clone());
            }
            if let Some(all) = &adapter.context_allocations {
                let memory: Arc<dyn ContextMemory> =
                    Arc::new(all.clone(), GFP_KERNEL).map_err(|_| KmdError::NoMemory)?;

                adapter.callbacks.set_context_memory(Some(memory));
            }
            Ok(adapter)
        })
    }

    /// Its paging node, if it has one.
    pub(in crate::dxgk) fn paging_node(&self) -> Option<Arc<dyn PagingNode>> {
        let engine = self.paging_engine.clone()?;

        Some(engine)
    }

    /// The paging process, if it shows native fences to the GPU (FEN-119).
    pub(in crate::dxgk) fn shows_native_fences(&self) -> Option<&Arc<PagingProcess>> {
        self.paging_process
            .as_ref()
            .filter(|_| self.native_fence_caps.map_to_gpu_system_process)
    }

    /// Stops the KMD: nobody is inside any more, and from now on the adapter counts as removed.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn stop(&self) {
        if let Some(all) = &self.context_allocations {
            all.end();
        }
        self.abandon_batches(true);
        // It leads to the KMD.
        self.callbacks.set_context_memory(None);
        self.port.stop(&Passive::here());
        if let Some(engine) = &self.paging_engine {
            engine.end();
        }
    }

    /// Whether nobody inside of the KMD waits for the paging node, because somebody waits for those
    /// inside.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn abandon_batches(&self, are_abandoned: bool) {
        if let Some(engine) = &self.paging_engine {
            match are_abandoned {
                true => engine.abandon(),
                false => engine.go_on(),
            }
        }
    }

    /// For a new context or device of a client the KMD may have memory, if there is a paging node.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn context_user(
        &self,
        used_by: UsedBy,
        space: Option<&Arc<AddressSpace>>,
    ) -> DxgResult<Option<ContextUser>> {
        self.context_allocations
            .as_ref()
            .zip(space)
            .map(|(all, space)| all.enter(used_by, space))
            .transpose()
    }

    /// Does what its end is, once. Whoever comes later returns when it is done.
    ///
    /// Context: may sleep, no locks held but that of a directory of configfs.
    pub(super) fn end_once(&self, end: impl FnOnce()) {
        let mut ended = self.ended.lock();

        if !*ended {
            end();
            *ended = true;
        }
    }

    /// Nothing of it is rung by other adapters any more, from before the KMD is stopped.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn end_doorbells(&self) {
        // Whoever adds a native fence that `adapter_ends` does not find looks at this later.
        self.is_ending.store(true, Relaxed);
        self.fences.adapter_ends();
    }

    /// Whether other adapters may ring doorbells of its native fences, and its engines ring theirs.
    pub(in crate::dxgk) fn has_fence_doorbells(&self) -> bool {
        self.native_fence_caps.doorbells && !self.is_ending.load(Relaxed)
    }

    /// Ends all queues: the KMD is stopped, and none is added any more.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn end_queues(&self) {
        self.memory.notices.changed();
        self.memory.worker.end_holds();
        self.memory.moves.end();
        self.memory.rotation.end();
        for queue in self.queues.iter() {
            queue.stop();
        }
        // Others may end some of them, who are at it now.
        self.queues.wait_until_gone();
    }

    /// Its KMD could not update a native fence (FEN-108), or wants its values where they cannot be
    /// (FEN-64): it is stopped, as if it were removed. In any context; touches atomics and queues
    /// work only.
    pub(in crate::dxgk) fn native_fences_failed(self: &Arc<Self>) {
        if !self.has_failed.xchg(true, Relaxed) {
            // It waits for nobody who could be inside the KMD.
            self.recovery.worker.enqueue(self.clone());
        }
    }

    /// Whether its KMD has failed in native fences, so that it is not asked to any more.
    pub(in crate::dxgk) fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// What the KMD calls a node.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn node_name(&self, node: u32) -> DxgResult<Text<32>> {
        let kmd = self.port.enter()?;

        Ok(kmd.get_node_metadata(&Passive::here(), node).name)
    }

    /// How many submissions of a queue the KMD has at a time, at a node that there is.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn most_in_flight(&self, node: u32) -> DxgResult<u32> {
        let metadata = self.port.enter()?.get_node_metadata(&Passive::here(), node);

        Ok(metadata.max_in_flight_hw_queue_buffers.into())
    }

    /// NOT_SUPPORTED if processes cannot fill queues of a node by themselves (GPU-2).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn check_user_mode_submission(&self, node: u32) -> DxgResult {
        let class = Passive::here();

        if !self
            .port
            .enter()?
            .get_node_metadata(&class, node)
            .user_mode_submission
        {
            return Err(Status::NOT_SUPPORTED.into());
        }
        Ok(())
    }

    /// Whether an enumeration with this filter lists it.
    pub(crate) fn passes(&self, filter: Filter) -> bool {
        filter.includes(&self.caps.adapter_type)
    }

    /// Whether it is removed: what exists can be destroyed, and nothing new is created or opened.
    pub(crate) fn is_removed(&self) -> bool {
        !self.port.is_started()
    }

    /// DEVICE_REMOVED if it is removed.
    pub(crate) fn check(&self) -> DxgResult {
        if self.is_removed() {
            return Err(Status::DEVICE_REMOVED.into());
        }
        Ok(())
    }

    /// Whether an EngineAffinity names physical adapters that exist: bit n is the n-th, and 0 means
    /// all of them (FEN-5).
    pub(crate) fn has_engines(&self, affinity: u32) -> bool {
        affinity
            .checked_shr(self.caps.physical_adapters)
            .unwrap_or(0)
            == 0
    }

    /// The payload size of a type of QueryAdapterInfo; `None` if there is no such type.
    pub(crate) fn info_size(&self, ty: u32) -> Option<Size> {
        adapter_info::payload_size(&self.caps, ty)
    }

    /// Answers QueryAdapterInfo in place.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn query_info(&self, ty: u32, payload: &mut [u8]) -> DxgResult {
        let asked = Asked {
            caps: &self.caps,
            features: self.features(),
            kmd: &*self.port.enter_to_query()?,
            class: &Passive::here(),
        };

        adapter_info::query(&asked, ty, payload).map_err(|refusal| {
            match refusal {
                Refusal::InvalidParameter => Status::INVALID_PARAMETER,
                Refusal::NotSupported => Status::NOT_SUPPORTED,
            }
            .into()
        })
    }

    /// Answers IsFeatureEnabled.
    pub(crate) fn feature(&self, id: u32) -> Answer {
        self.features.answer(id)
    }

    /// Private driver data of a plain allocation of so many bytes (RES-26).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn standard_allocation_data(&self, size: u64) -> DxgResult<KVVec<u8>> {
        // CAST: 32 bits fit a usize.
        let bytes = self.caps.standard_data_size as usize;
        let mut data = KVVec::from_elem(0, bytes, GFP_KERNEL_ACCOUNT)?;

        self.port
            .enter()?
            .get_standard_allocation_driver_data(&Passive::here(), size, &mut data);
        Ok(data)
    }

    /// Both clocks of a node; INVALID_PARAMETER if there is no such node.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn calibrate_clock(&self, node: u32, physical_adapter: u32) -> DxgResult<ClockData> {
        if node >= self.caps.nodes || physical_adapter >= self.caps.physical_adapters {
            return Err(Status::INVALID_PARAMETER.into());
        }

        let kmd = self.port.enter()?;

        Ok(Dispatch::below(&mut Passive::here(), |class| {
            kmd.calibrate_gpu_clock(class, node, physical_adapter)
        }))
    }

    /// The features that are enabled.
    pub(in crate::dxgk) fn features(&self) -> FeatureSet {
        self.features.enabled()
    }

    /// What address spaces have of it.
    pub(in crate::dxgk) fn to_space(&self) -> OnAdapter<'_> {
        OnAdapter {
            addresses: self.memory.addresses,
            segments: &self.memory.segments,
            gpu_mmu: &self.caps.gpu_mmu,
            contexts: &self.contexts,
            rotation: &self.memory.rotation,
            log: &self.memory.log,
            node: self.table_writer(),
        }
    }

    /// What writes page tables of clients; `None`: the processor.
    fn table_writer(&self) -> Option<Arc<dyn TableWriter>> {
        let mode = self.caps.gpu_mmu.page_table_update_mode;

        match mode {
            PageTableUpdateMode::GpuVirtual => Some(self.paging_engine.clone()?),
            PageTableUpdateMode::CpuVirtual | PageTableUpdateMode::GpuPhysical => None,
        }
    }

    /// Whether it has native fences (FEN-113).
    pub(in crate::dxgk) fn has_native_fences(&self) -> bool {
        self.features().has(feature::NATIVE_FENCE)
    }

    /// Somebody wants memory where there is no room.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn notify_memory_pressure(&self) {
        self.memory.notices.pressed();
        if let Ok(kmd) = self.port.enter() {
            kmd.notify_memory_pressure(&Passive::here());
        }
    }

    /// ACCESS_DENIED if clients may not send escapes that not every driver knows: in a secure guest
    /// (CPU-19).
    pub(crate) fn check_escape(&self) -> DxgResult {
        if let Some(border) = &self.border {
            border.check_escape()?;
        }
        Ok(())
    }

    /// Gives a client's private request to the KMD, which answers in place.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn escape(&self, escape: &Escape<'_>, data: &mut [u8]) -> DxgResult {
        Ok(self.port.enter()?.escape(&Passive::here(), escape, data)?)
    }
}
