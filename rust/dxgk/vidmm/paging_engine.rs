// SPDX-License-Identifier: GPL-2.0

//! The paging node of an adapter (MEM-60): what it has, who recovers if it hangs, and who waits for
//! it. What it does is in `paging_batches.rs`.
//!
//! LOCK: `turn` is a mutex, inside `AllocationMemory::turn`, `Movable::state` and the
//! `AddressSpace::state` of clients, and outside that of the paging process and
//! `AllContexts::state`. Held while a batch runs, which the TDR time bounds. `owner` is a leaf.

use super::{
    all_contexts::AllContexts,
    paging_process::PagingProcess,
    paging_scratch::{
        self,
        Window, //
    },
    paging_taker::Taker,
    paging_worker::PagingWorker, //
};
use crate::{
    ddi::{
        paging::PagingBuffer,
        segments::SYSTEM_MEMORY, //
    },
    error::DxgResult,
    logic::{
        gpu_ranges::PAGE,
        page_levels::Levels,
        paging_scratch::{
            PagingSpace,
            Scratch, //
        },
        table_tree::Shows,
        watched::Watched, //
    },
    sys::{
        alloc::pin_arc,
        mem::value_page::ValuePage,
        time::now_ns,
        wait_queue::Arrivals,
        work, //
    }, //
};
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

/// The packet that writes entries of page tables has more dwords than others.
const TABLE_PACKET: usize = 9;

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

/// What one batch at a time has.
pub(super) struct Turn {
    pub(super) taker: Option<Taker>,
    pub(super) scratch: Scratch,
    pub(super) buffer: KBox<PagingBuffer>,
}

/// The paging node of an adapter.
#[pin_data]
pub(crate) struct PagingEngine {
    pub(super) process: Arc<PagingProcess>,
    pub(super) worker: Arc<PagingWorker>,
    pub(super) contexts: Arc<AllContexts>,
    pub(super) node: u32,
    levels: Levels,
    /// The scratch area, and where the paging buffer is.
    pub(super) at: PagingSpace,
    /// The memory of the paging buffer.
    pub(super) page: ValuePage,
    pub(super) arrivals: Arc<Arrivals>,
    /// The adapter is removed.
    pub(super) has_ended: AtomicFlag,
    /// Nobody inside of the KMD waits for who waits for a batch: somebody waits for those inside.
    abandons: AtomicFlag,
    /// When the batch was submitted that the paging node has; 0 if it has none.
    pub(super) since_ns: Atomic<u64>,
    /// Whether somebody will look whether it hangs.
    watched: Watched,
    #[pin]
    watch: DelayedWork<PagingEngine>,
    /// Who recovers if it hangs, until the end.
    #[pin]
    owner: SpinLock<Option<Arc<dyn PagingOwner>>>,
    #[pin]
    pub(super) turn: Mutex<Turn>,
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
        let page = ValuePage::new()?;
        let arrivals = pin_arc(Arrivals::new(), GFP_KERNEL)?;
        let buffer = KBox::new(PagingBuffer::new(), GFP_KERNEL)?;
        let at = process.at;
        let physical = page.physical();

        process.space.show_scratch(
            worker.log.batch(),
            &[Window {
                first: at.buffer,
                count: 1,
                shows: Shows::default(),
                entry: &|_| (paging_scratch::entry(SYSTEM_MEMORY, physical, false), 1),
            }],
        );

        let engine = pin_arc(
            pin_init!(Self {
                process: process.clone(),
                worker: worker.clone(),
                contexts: contexts.clone(),
                node,
                levels: *levels,
                at,
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
        let taker = engine.taker()?;

        engine.turn.lock().taker = Some(taker);
        Ok(engine)
    }

    /// A context of the paging process that takes batches.
    ///
    /// Context: may sleep, no locks of contexts held.
    pub(super) fn taker(&self) -> DxgResult<Taker> {
        Taker::new(&self.process, self.node, &self.arrivals)
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
    /// none of them waits for who waits for a batch from now on. Those who are not inside wait on:
    /// what is submitted may run until then.
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

    /// Returns what `look` finds, which looks again whenever something was told; `None` if that was
    /// abandoned.
    ///
    /// Context: may sleep, also inside of the KMD.
    pub(super) fn wait_inside<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        loop {
            // Before anything is looked at: what comes later is waited for.
            let arrived = self.arrivals.count();

            if let Some(found) = look() {
                return Some(found);
            }
            if self.abandons.load(Acquire) {
                return None;
            }
            self.arrivals.wait_until(arrived.wrapping_add(1));
        }
    }

    /// Something is there to be found by who waits inside of the KMD.
    pub(super) fn tell_inside(&self) {
        self.arrivals.arrive();
    }

    /// The table of level 0 with a page of the scratch area, as the paging process has it, and the
    /// index of the page (MEM-61).
    pub(super) fn scratch_table(&self, page: u64) -> (u64, u32) {
        let table = self.levels.table(0, page);

        (table.saturating_mul(PAGE), self.levels.index(0, page))
    }

    /// How many pages of the scratch area batches use.
    pub(super) fn area(&self) -> u64 {
        let scratch = self.at.scratch;

        self.worker
            .switches
            .scratch_pages(scratch.end.saturating_sub(scratch.first))
    }

    /// How many dwords a paging buffer has, one packet at least.
    pub(super) fn buffer_dwords(&self) -> usize {
        let dwords = self.worker.switches.buffer_dwords();

        match self.at.by_node {
            true => dwords.max(TABLE_PACKET),
            false => dwords,
        }
    }

    /// How many entries such a table has.
    pub(super) fn table_entries(&self) -> u32 {
        self.levels.entries(0)
    }

    /// The KMD has got something to do.
    pub(super) fn wake_for_work(&self) {
        if let Some(owner) = &*self.owner.lock() {
            owner.wake_for_work();
        }
    }

    /// The KMD or the OS part has a bug: the adapter is reset.
    pub(super) fn fails(&self) {
        if let Some(owner) = &*self.owner.lock() {
            owner.clone().paging_failed();
        }
    }

    /// The paging node has work from now on, which was told before.
    ///
    /// LOCK: nobody looks any more after the end, which takes the owner away.
    pub(super) fn watch(self: &Arc<Self>) {
        if self.watched.begins() {
            if let Some(owner) = &*self.owner.lock() {
                owner.look_after_a_while(self.clone());
            }
        }
    }

    pub(super) fn buffer_address(&self) -> u64 {
        self.at.buffer.saturating_mul(PAGE)
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
