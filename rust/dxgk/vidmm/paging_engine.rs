// SPDX-License-Identifier: GPL-2.0

//! The paging node at work: it fills and moves bytes of allocations by the addresses of the paging
//! process (MEM-60, MEM-66 to MEM-68, MEM-70, MEM-71).
//!
//! One batch at a time. Its memory is shown in the scratch area, the KMD writes commands to the
//! paging buffer, a context of the paging process runs them, and the caller waits. What does not
//! fit the scratch area or the buffer takes several turns.
//!
//! A reset may hit the context. Then there is a new one, and the batch comes again, once. A page
//! fault in the paging process is never right: it resets the adapter (MEM-102). Whoever asks is
//! told that the bytes are not there yet, and has the processor do it.
//!
//! LOCK: `turn` is a mutex, inside `AllocationMemory::turn` and `Movable::state`, and outside
//! `AddressSpace::state` and `AllContexts::state`. Held while a batch runs, which the TDR time
//! bounds. `owner` is a leaf.

use super::{
    all_contexts::AllContexts,
    contexts::SpaceContext,
    mover::PagingNode,
    paging_process::{
        PagingProcess,
        SystemContext, //
    },
    paging_scratch::Window,
    paging_worker::PagingWorker, //
};
use crate::{
    ddi::{
        class::{
            DeviceInterrupt,
            Dispatch,
            Passive, //
        },
        object::{
            self,
            context::{
                Change,
                PagingWork, //
            },
            Suspension, //
        },
        paging::{
            Built,
            Direction,
            PageEntry,
            PageSize,
            PageTableEntry,
            PagingBuffer, //
        },
        queue::{
            Fault,
            FaultKind,
            QueueCallbacks,
            Submission, //
        },
        segments::SYSTEM_MEMORY,
        types::Scheduling, //
    },
    error::DxgResult,
    logic::{
        context_allocations,
        gpu_ranges::PAGE,
        page_levels::Levels,
        paging_log::{
            self,
            Action,
            Kind,
            Operation,
            PAGING_PROCESS, //
        },
        paging_scratch::{
            Scratch,
            PAGES, //
        },
        table_tree::Shows,
        watched::Watched, //
    },
    platform::store_release,
    sys::{
        alloc::pin_arc,
        mem::{
            pages::PageSource,
            value_page::ValuePage, //
        },
        time::now_ns,
        wait_queue::Arrivals,
        work, //
    }, //
};
use core::ops::Range;
use kernel::{
    impl_has_delayed_work,
    new_delayed_work,
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex,
        SpinLock, //
    },
    workqueue::{
        DelayedWork,
        WorkItem, //
    }, //
};

/// The priority of its context, above all of clients.
const PRIORITY: i32 = 31;

/// How often a batch is run: again after a reset that has hit its context.
const ATTEMPTS: usize = 2;

/// Whose paging node it is.
pub(crate) trait PagingOwner: Send + Sync {
    /// Has a worker look after a while whether a batch hangs, unless it will already. In any
    /// context.
    fn look_after_a_while(&self, engine: Arc<PagingEngine>);

    /// So many nanoseconds may a batch take.
    fn limit_ns(&self) -> u64;

    /// The engine of a node does not yield.
    ///
    /// Context: the worker that looks, no locks held.
    fn engine_hangs(self: Arc<Self>, node: u32);

    /// The paging node has faulted, or cannot be told what to do. In any context; touches atomics
    /// and queues work only.
    fn paging_failed(self: Arc<Self>);

    /// The KMD has got something to do. As the one before.
    fn wake_for_work(&self);
}

/// What the KMD tells about one context of the paging process.
struct TakerState {
    /// The last submission that has completed.
    completed: Atomic<u64>,
    /// Nothing of it completes any more.
    is_lost: AtomicFlag,
    /// It has stopped at a packet, by an access to this address with these flags.
    has_faulted: AtomicFlag,
    fault_address: Atomic<u64>,
    fault_flags: Atomic<u32>,
    suspension: Arc<Suspension>,
    /// Something was told, about any context.
    arrivals: Arc<Arrivals>,
}

impl QueueCallbacks for Arc<TakerState> {
    fn completed(&self, _: &DeviceInterrupt, number: u64) {
        // ORDERING: release: who sees the number sees what the commands have stored.
        self.completed.store(number, Release);
        self.arrivals.arrive();
    }

    fn monitored_fence_signaled(&self, _: &DeviceInterrupt) {}

    fn faulted(&self, _: &DeviceInterrupt, fault: &Fault) {
        if let FaultKind::PageFault { address, .. } = fault.kind {
            self.fault_address.store(address, Relaxed);
        }
        self.fault_flags.store(fault.flags, Relaxed);
        self.has_faulted.store(true, Relaxed);
        self.is_lost.store(true, Release);
        self.arrivals.arrive();
    }

    fn invalidated(&self) {
        self.is_lost.store(true, Release);
        self.arrivals.arrive();
    }

    fn suspended(&self, _: &DeviceInterrupt, id: u64) {
        self.suspension.ended(id);
    }
}

/// A context of the paging process that takes work.
struct Taker {
    id: u64,
    context: SpaceContext,
    told: Arc<TakerState>,
    /// The number of the last submission.
    number: u64,
}

/// What one batch at a time has.
struct Turn {
    taker: Option<Taker>,
    scratch: Scratch,
    buffer: KBox<PagingBuffer>,
}

/// Why a batch is not done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NotDone {
    /// A reset has hit the context: it may be done once more.
    Lost,
    /// The adapter is in error, or removed.
    Failed,
}

/// Where the paging process shows the memory of a batch, and what is done there.
#[derive(Clone, Copy)]
struct Batch<'a> {
    /// The number of the allocation.
    object: u64,
    number: u64,
    work: PagingWork<'a>,
}

impl Batch<'_> {
    /// Whether who waits for it may be inside of the KMD.
    fn has_waiter_inside(&self) -> bool {
        matches!(self.work.change, Change::Init(..) | Change::Update(_))
    }
}

/// What is to be done with pages.
enum What<'a> {
    /// They are filled with zeros.
    Clear(&'a object::Allocation),
    /// They get the bytes of others: a segment, and the pages there.
    Copy(&'a object::Allocation, (u32, &'a dyn PageSource)),
    /// The KMD changes all pages of a context allocation, with this number.
    Change(u64, Change<'a>),
}

impl<'a> What<'a> {
    fn object(&self) -> u64 {
        match self {
            Self::Clear(allocation) | Self::Copy(allocation, _) => allocation.id(),
            Self::Change(object, _) => *object,
        }
    }

    fn source(&self) -> Option<(u32, &'a dyn PageSource)> {
        match self {
            Self::Copy(_, from) => Some(*from),
            Self::Clear(_) | Self::Change(..) => None,
        }
    }

    /// The same for the KMD, where bytes come from `source` to this segment.
    fn change(&self, source: u64, to: u32) -> Change<'a> {
        match self {
            Self::Clear(allocation) => Change::Fill(allocation, 0),
            Self::Copy(allocation, from) => {
                Change::Transfer(allocation, source, direction(from.0, to))
            }
            Self::Change(_, change) => *change,
        }
    }
}

/// The paging node of an adapter.
#[pin_data]
pub(crate) struct PagingEngine {
    process: Arc<PagingProcess>,
    worker: Arc<PagingWorker>,
    contexts: Arc<AllContexts>,
    node: u32,
    /// The first page of the scratch area. The paging buffer is behind its last one.
    first: u64,
    /// The memory of the paging buffer.
    page: ValuePage,
    arrivals: Arc<Arrivals>,
    /// The adapter is removed.
    has_ended: AtomicFlag,
    /// Nobody inside of the KMD may wait for a batch: somebody waits for those inside.
    abandons: AtomicFlag,
    /// When the batch was submitted that the paging node has; 0 if it has none.
    since_ns: Atomic<u64>,
    /// Whether somebody will look whether it hangs.
    watched: Watched,
    #[pin]
    watch: DelayedWork<PagingEngine>,
    /// Who recovers if it hangs, until the end.
    #[pin]
    owner: SpinLock<Option<Arc<dyn PagingOwner>>>,
    #[pin]
    turn: Mutex<Turn>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for PagingEngine { self.watch }
}

impl PagingEngine {
    /// That of a node, on an adapter whose addresses are divided so.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        process: &Arc<PagingProcess>,
        worker: &Arc<PagingWorker>,
        contexts: &Arc<AllContexts>,
        levels: &Levels,
        node: u32,
    ) -> DxgResult<Arc<Self>> {
        let first = levels.pages_of_table(0);
        let page = ValuePage::new()?;
        let arrivals = pin_arc(Arrivals::new(), GFP_KERNEL)?;
        let buffer = KBox::new(PagingBuffer::new(), GFP_KERNEL)?;
        let buffer_at = first.saturating_add(PAGES);
        let physical = page.physical();

        process
            .space
            .claim_scratch(first, buffer_at.saturating_add(1))?;
        process.space.show_scratch(
            worker.log.batch(),
            &[Window {
                first: buffer_at,
                count: 1,
                shows: Shows::default(),
                entry: &|_| entry(SYSTEM_MEMORY, physical, false),
            }],
        );

        let engine = pin_arc(
            pin_init!(Self {
                process: process.clone(),
                worker: worker.clone(),
                contexts: contexts.clone(),
                node,
                first,
                page,
                arrivals,
                has_ended: AtomicFlag::new(false),
                abandons: AtomicFlag::new(false),
                since_ns: Atomic::new(0),
                watched: Watched::new(),
                watch <- new_delayed_work!("PagingEngine::watch"),
                owner <- new_spinlock!(None, "PagingEngine::owner"),
                turn <- new_mutex!(
                    Turn {
                        taker: None,
                        scratch: Scratch::default(),
                        buffer,
                    },
                    "PagingEngine::turn"
                ),
            }),
            GFP_KERNEL,
        )?;
        let taker = engine.new_taker()?;

        engine.turn.lock().taker = Some(taker);
        Ok(engine)
    }

    /// The adapter is there, and recovers if a batch hangs.
    pub(in crate::dxgk) fn begin(&self, owner: Arc<dyn PagingOwner>) {
        *self.owner.lock() = Some(owner);
    }

    /// The adapter is removed, and its KMD stopped: nobody waits for a batch any more.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn end(self: &Arc<Self>) {
        let owner = self.owner.lock().take();

        self.has_ended.store(true, Release);
        self.arrivals.arrive();
        // Who looks now finds that it has ended.
        if self.watched.is_queued() {
            work::cancel::<_, 0>(self);
        }
        drop(owner);
    }

    /// The adapter is about to be reset or stopped, which waits for all who are inside of the KMD:
    /// none of them waits for a batch from now on.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn abandon(&self) {
        self.abandons.store(true, Release);
        self.arrivals.arrive();
    }

    /// The reset is over.
    pub(in crate::dxgk) fn go_on(&self) {
        self.abandons.store(false, Release);
    }

    /// A context of the paging process (MEM-73).
    fn new_taker(&self) -> DxgResult<Taker> {
        let suspension = self.process.space.suspension()?;
        let told = TakerState {
            completed: Atomic::new(0),
            is_lost: AtomicFlag::new(false),
            has_faulted: AtomicFlag::new(false),
            fault_address: Atomic::new(0),
            fault_flags: Atomic::new(0),
            suspension: suspension.clone(),
            arrivals: self.arrivals.clone(),
        };
        let told = Arc::new(told, GFP_KERNEL)?;
        let callbacks: Arc<dyn QueueCallbacks> = Arc::new(told.clone(), GFP_KERNEL)?;
        let (id, context) = self.process.context(SystemContext {
            scheduling: Scheduling::Packets,
            node: self.node,
            callbacks: &callbacks,
            suspension,
        })?;

        context.set_priority(&Passive::here(), PRIORITY)?;
        Ok(Taker {
            id,
            context,
            told,
            number: 0,
        })
    }

    /// Has the KMD change a context allocation, whose pages are in a segment. The records have this
    /// number. False if the adapter is in error, or about to end.
    ///
    /// Context: may sleep. No lock of contexts or page tables that is not of the paging process is
    /// held, nor waited for by who waits for this.
    pub(super) fn change(
        self: &Arc<Self>,
        number: u64,
        object: u64,
        to: (u32, &dyn PageSource),
        change: Change<'_>,
    ) -> bool {
        let area = self.worker.switches.scratch_pages();
        // CAST: a usize fits 64 bits.
        let count = to.1.count() as u64;

        self.run(number, &What::Change(object, change), area, (0, count), to)
    }

    /// Runs a batch: `count` pages from the page `at` of the allocation on.
    fn run(
        self: &Arc<Self>,
        number: u64,
        what: &What<'_>,
        area: u64,
        (at, count): (u64, u64),
        to: (u32, &dyn PageSource),
    ) -> bool {
        let mut turn = self.turn.lock();
        let from = what.source();
        let parts: u64 = if from.is_some() { 2 } else { 1 };
        // OVERFLOW: the scratch area is small.
        let first = self
            .first
            .wrapping_add(turn.scratch.take(area, parts.wrapping_mul(count)));
        let destination = first.wrapping_add((parts - 1).wrapping_mul(count));
        let is_broken = self.worker.switches.take_fault();
        let shows = Shows {
            allocation: what.object(),
            offset: at.saturating_mul(PAGE),
        };
        let entry_of = |(segment, pages): (u32, &dyn PageSource), read_only: bool, further: u64| {
            // CAST: it was a usize.
            let index = at.saturating_add(further) as usize;

            match pages.device_address(index) {
                Some(address) if !is_broken => entry(segment, address, read_only),
                _ => PageTableEntry::Invalid,
            }
        };
        let writes = |further| entry_of(to, false, further);
        let reads = |further| {
            from.map_or(PageTableEntry::Invalid, |from| {
                entry_of(from, true, further)
            })
        };
        let window = |first, entry| Window {
            first,
            count,
            shows,
            entry,
        };
        let windows = [window(first, &reads), window(destination, &writes)];
        // Without a source there is no window for it.
        let windows = windows.get(2 - parts as usize..).unwrap_or_default();

        for window in windows {
            self.log_window(Kind::VaAlloc, number, window);
        }
        self.process.space.show_scratch(number, windows);

        let batch = Batch {
            object: what.object(),
            number,
            work: PagingWork {
                offset: shows.offset,
                size: count.saturating_mul(PAGE),
                destination: destination.saturating_mul(PAGE),
                change: what.change(first.saturating_mul(PAGE), to.0),
            },
        };
        let is_done = self.attempt(&mut turn, &batch);

        for window in windows {
            self.log_window(Kind::VaFree, number, window);
        }
        is_done
    }

    /// Does a batch, and once more if a reset has hit its context.
    fn attempt(self: &Arc<Self>, turn: &mut Turn, batch: &Batch<'_>) -> bool {
        for _ in 0..ATTEMPTS {
            match self.build_and_run(turn, batch) {
                Ok(()) => return true,
                Err(NotDone::Failed) => return false,
                Err(NotDone::Lost) => {}
            }
        }
        false
    }

    /// Has the KMD write commands to the buffer, and the paging node run them, until all is done.
    fn build_and_run(self: &Arc<Self>, turn: &mut Turn, batch: &Batch<'_>) -> Result<(), NotDone> {
        let Turn { taker, buffer, .. } = turn;

        if taker
            .as_ref()
            .is_some_and(|taker| taker.told.is_lost.load(Acquire))
        {
            *taker = None;
        }

        let taker = match taker {
            Some(taker) => taker,
            None => taker.insert(self.new_taker().map_err(|_| NotDone::Failed)?),
        };

        buffer.multipass_offset = 0;
        loop {
            let built = self.build(taker, buffer, batch)?;

            if buffer.written().is_empty() {
                // There may be nothing to initialise.
                if built == Built::All && matches!(batch.work.change, Change::Init(..)) {
                    return Ok(());
                }
                // It would come again for ever.
                return Err(self.fails());
            }
            self.submit(taker, buffer, batch)?;
            if built == Built::All {
                return Ok(());
            }
        }
    }

    /// BuildPagingBuffer, with an empty buffer.
    fn build(
        &self,
        taker: &Taker,
        buffer: &mut PagingBuffer,
        batch: &Batch<'_>,
    ) -> Result<Built, NotDone> {
        let class = Passive::here();
        let mut attempt = || {
            buffer.address = self.buffer_address();
            buffer.begin(self.worker.switches.buffer_dwords());
            self.log_work(batch);
            if let Some(built) = self.worker.switches.take_build() {
                return Ok(built);
            }
            taker
                .context
                .build(&class, &batch.work, buffer)
                .map_err(|_| NotDone::Failed)
        };
        let built = match attempt()? {
            Built::AllocationBusy => {
                // No engine uses anything meanwhile.
                self.contexts.suspend();
                let again = attempt();
                self.contexts.resume();
                again?
            }
            built => built,
        };

        match built {
            Built::All | Built::InsufficientDmaBuffer => Ok(built),
            Built::AllocationBusy | Built::Failed => Err(self.fails()),
        }
    }

    /// The paging node runs what is in the buffer. Returns when it has.
    fn submit(
        self: &Arc<Self>,
        taker: &mut Taker,
        buffer: &PagingBuffer,
        batch: &Batch<'_>,
    ) -> Result<(), NotDone> {
        let commands = buffer.written();

        for (word, pair) in self.page.words().iter().zip(commands.chunks(2)) {
            let half = |at: usize| u64::from(pair.get(at).copied().unwrap_or(0));

            store_release(word, half(0) | (half(1) << 32));
        }
        // OVERFLOW: 2^64 submissions take longer than any machine runs.
        taker.number = taker.number.wrapping_add(1);

        let submission = Submission {
            number: taker.number,
            commands: self.buffer_address(),
            // CAST: at most a page.
            length: (commands.len() as u32).saturating_mul(4),
            progress: None,
        };

        self.log_submission(Kind::Submit, taker.id, &submission, batch);
        self.since_ns.store(now_ns().max(1), Relaxed);
        self.watch();

        let submitted = Dispatch::below(&mut Passive::here(), |class| {
            taker.context.submit(class, &submission)
        });
        let done = match submitted {
            Ok(()) => {
                if let Some(owner) = &*self.owner.lock() {
                    owner.wake_for_work();
                }
                self.wait(taker, batch)
            }
            // The adapter is removed.
            Err(_) => Err(NotDone::Failed),
        };

        self.since_ns.store(0, Relaxed);
        if done.is_ok() {
            self.log_submission(Kind::Complete, taker.id, &submission, batch);
        }
        done
    }

    /// Waits until the last submission has completed, or never will.
    fn wait(&self, taker: &Taker, batch: &Batch<'_>) -> Result<(), NotDone> {
        let told = &taker.told;

        loop {
            // Before anything is looked at: what comes later is waited for.
            let arrived = self.arrivals.count();

            if told.completed.load(Acquire) >= taker.number {
                return Ok(());
            }
            if told.is_lost.load(Acquire) {
                if told.has_faulted.load(Relaxed) {
                    self.faulted(taker, batch);
                    return Err(self.fails());
                }
                return Err(NotDone::Lost);
            }
            if self.has_ended.load(Acquire) {
                return Err(NotDone::Failed);
            }
            if batch.has_waiter_inside() && self.abandons.load(Acquire) {
                // Nothing of it is believed any more.
                told.is_lost.store(true, Release);
                return Err(NotDone::Failed);
            }
            self.arrivals.wait_until(arrived.wrapping_add(1));
        }
    }

    /// A batch has faulted, which is never right (MEM-102).
    #[cold]
    fn faulted(&self, taker: &Taker, batch: &Batch<'_>) {
        let address = taker.told.fault_address.load(Relaxed);

        pr_err!("a batch of the paging process has faulted at {address:#x}\n");
        self.worker.log.write(|| Action {
            kind: Kind::Fault,
            batch: batch.number,
            object: taker.id,
            address,
            flags: taker.told.fault_flags.load(Relaxed),
            ..Action::default()
        });
    }

    /// The KMD or the OS part has a bug: the adapter is reset.
    fn fails(&self) -> NotDone {
        if let Some(owner) = &*self.owner.lock() {
            owner.clone().paging_failed();
        }
        NotDone::Failed
    }

    /// The paging node has work from now on, which was told before.
    ///
    /// LOCK: nobody looks any more after the end, which takes the owner away.
    fn watch(self: &Arc<Self>) {
        if self.watched.begins() {
            if let Some(owner) = &*self.owner.lock() {
                owner.look_after_a_while(self.clone());
            }
        }
    }

    fn buffer_address(&self) -> u64 {
        // OVERFLOW: addresses below the end of the space.
        self.first.wrapping_add(PAGES).wrapping_mul(PAGE)
    }

    fn log_window(&self, kind: Kind, batch: u64, window: &Window<'_>) {
        self.worker.log.write(|| Action {
            kind,
            batch,
            process: PAGING_PROCESS,
            object: window.shows.allocation,
            source: window.shows.offset,
            address: window.first.saturating_mul(PAGE),
            size: window.count.saturating_mul(PAGE),
            ..Action::default()
        });
    }

    fn log_work(&self, batch: &Batch<'_>) {
        let work = &batch.work;

        self.worker.log.write(|| {
            let action = Action {
                batch: batch.number,
                object: batch.object,
                source: work.offset,
                address: work.destination,
                size: work.size,
                ..Action::default()
            };

            match work.change {
                Change::Transfer(_, from, direction) => Action {
                    operation: Operation::TransferVirtual,
                    from,
                    flags: flags(direction),
                    ..action
                },
                Change::Fill(_, pattern) => Action {
                    operation: Operation::FillVirtual,
                    pattern,
                    ..action
                },
                Change::Init(_, (segment, offset)) => Action {
                    operation: Operation::InitContextResource,
                    segment,
                    offset,
                    ..action
                },
                Change::Update(data) => Action {
                    operation: Operation::UpdateContextAllocation,
                    // CAST: a usize fits 64 bits.
                    count: data.len() as u64,
                    pattern: context_allocations::checksum(data),
                    ..action
                },
            }
        });
    }

    fn log_submission(&self, kind: Kind, context: u64, submission: &Submission, batch: &Batch<'_>) {
        self.worker.log.write(|| Action {
            kind,
            batch: batch.number,
            object: context,
            value: submission.number,
            address: submission.commands,
            size: submission.length.into(),
            ..Action::default()
        });
    }
}

impl PagingNode for PagingEngine {
    fn clear(
        self: Arc<Self>,
        allocation: &object::Allocation,
        (segment, to): (u32, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool {
        let area = self.worker.switches.scratch_pages();
        let (mut at, end) = bounds(&pages);

        while at < end {
            let count = Scratch::chunk(area, 1, end.saturating_sub(at));

            let number = self.worker.log.batch();
            let what = What::Clear(allocation);

            if !self.run(number, &what, area, (at, count), (segment, to)) {
                return false;
            }
            at = at.saturating_add(count);
        }
        true
    }

    fn copy(
        self: Arc<Self>,
        allocation: &object::Allocation,
        from: (u32, &dyn PageSource),
        to: (u32, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool {
        let area = self.worker.switches.scratch_pages();
        let is_there = |at: u64| {
            // CAST: it was a usize.
            let index = at as usize;

            from.1.present(index).is_some() && to.1.present(index).is_some()
        };
        let (mut at, end) = bounds(&pages);

        while at < end {
            let most = Scratch::chunk(area, 2, end.saturating_sub(at));
            let count = (0..most)
                .take_while(|further| is_there(at.saturating_add(*further)))
                .count();
            // CAST: a usize fits 64 bits.
            let count = count as u64;

            let what = What::Copy(allocation, from);

            if count != 0 && !self.run(self.worker.log.batch(), &what, area, (at, count), to) {
                return false;
            }
            // Without a page that is in both, the next one.
            at = at.saturating_add(count.max(1));
        }
        true
    }
}

impl WorkItem for PagingEngine {
    type Pointer = Arc<Self>;

    /// The worker of recovery: looks whether the paging node hangs (GPU-93).
    fn run(this: Arc<Self>) {
        this.watched.look_begins();

        let owner = this.owner.lock().clone();
        let since = this.since_ns.load(Relaxed);

        if let Some(owner) = owner.filter(|_| since != 0) {
            if now_ns().saturating_sub(since) >= owner.limit_ns() {
                owner.engine_hangs(this.node);
                // It may have been the work of others: this one has its whole time from here on.
                let _same = this.since_ns.cmpxchg(since, now_ns(), Relaxed);
            }
        }

        // LOCK: as in `watch`.
        let owner = this.owner.lock();

        if this.watched.look_ends(|| this.since_ns.load(Relaxed) != 0) {
            if let Some(owner) = &*owner {
                owner.look_after_a_while(this.clone());
            }
        }
    }
}

/// Pages, as numbers.
fn bounds(pages: &Range<usize>) -> (u64, u64) {
    // CAST: a usize fits 64 bits.
    (pages.start as u64, pages.end as u64)
}

/// The entry that leads to a page.
fn entry(segment: u32, address: u64, read_only: bool) -> PageTableEntry {
    PageTableEntry::Page(PageEntry {
        segment,
        address,
        page_size: PageSize::Kib4,
        read_only,
        no_execute: false,
        system_use_only: true,
        cache_coherent: false,
    })
}

fn direction(from: u32, to: u32) -> Direction {
    match (from, to) {
        (SYSTEM_MEMORY, _) => Direction::SystemToLocal,
        (_, SYSTEM_MEMORY) => Direction::LocalToSystem,
        _ => Direction::LocalToLocal,
    }
}

/// What the log says of a direction.
fn flags(direction: Direction) -> u32 {
    match direction {
        Direction::LocalToSystem => paging_log::FROM_SEGMENT,
        Direction::SystemToLocal => paging_log::TO_SEGMENT,
        Direction::LocalToLocal => paging_log::FROM_SEGMENT | paging_log::TO_SEGMENT,
    }
}
