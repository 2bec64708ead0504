// SPDX-License-Identifier: GPL-2.0

//! The paging node at work: it fills and moves bytes of allocations, and changes page tables, by
//! the addresses of the paging process (MEM-60, MEM-66 to MEM-71).
//!
//! One batch at a time. Its memory is shown in the scratch area, the KMD writes commands to the
//! paging buffer, a context of the paging process runs them, and the caller waits. What does not
//! fit the scratch area or the buffer takes several turns (`paging_writer.rs`).
//!
//! A reset may hit the context. Then there is a new one, and the batch comes again, once. A page
//! fault in the paging process is never right: it resets the adapter (MEM-102). Whoever asks is
//! told that it is not done, and has the processor do it. Nothing of the batch runs from then on.
//!
//! LOCK: `turn` is a mutex, inside `AllocationMemory::turn`, `Movable::state` and the
//! `AddressSpace::state` of clients, and outside that of the paging process and
//! `AllContexts::state`. Held while a batch runs, which the TDR time bounds. `owner` is a leaf.

use super::{
    all_contexts::AllContexts,
    mover::PagingNode,
    page_tables::TableAt,
    paging_process::PagingProcess,
    paging_scratch::Window,
    paging_taker::Taker,
    paging_worker::PagingWorker,
    paging_writer::{
        NotDone,
        Writer, //
    },
    table_changes::TableChanges, //
};
use crate::{
    ddi::{
        object::{
            self,
            context::{
                Change,
                PagingWork, //
            }, //
        },
        paging::{
            Direction,
            PageEntry,
            PageSize,
            PageTableEntry,
            PagingBuffer, //
        },
        segments::SYSTEM_MEMORY, //
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
            PagingSpace,
            Scratch, //
        },
        table_tree::Shows,
        watched::Watched, //
    },
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

/// The packet that writes entries of page tables has more dwords than others.
const TABLE_PACKET: usize = 9;

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

/// What one batch at a time has.
struct Turn {
    taker: Option<Taker>,
    scratch: Scratch,
    buffer: KBox<PagingBuffer>,
}

/// What is to be done with pages.
enum What<'a> {
    /// They are filled with zeros.
    Clear(&'a object::Allocation),
    /// They get the bytes of others: a segment, and the pages there.
    Copy(&'a object::Allocation, (u32, &'a dyn PageSource)),
    /// The KMD changes all pages of a context allocation, with this number, as long as somebody
    /// wants it.
    Change(u64, Change<'a>, &'a dyn Fn() -> bool),
}

impl<'a> What<'a> {
    fn object(&self) -> u64 {
        match self {
            Self::Clear(allocation) | Self::Copy(allocation, _) => allocation.id(),
            Self::Change(object, ..) => *object,
        }
    }

    /// The process that may know of it. Memory of contexts is none of theirs.
    fn made_for(&self) -> u64 {
        match self {
            Self::Clear(allocation) | Self::Copy(allocation, _) => allocation.made_by,
            Self::Change(..) => 0,
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
            Self::Change(_, change, _) => *change,
        }
    }

    /// Whether it is done again after a reset.
    fn is_wanted(&self) -> bool {
        match self {
            Self::Clear(_) | Self::Copy(..) => true,
            Self::Change(.., is_wanted) => is_wanted(),
        }
    }
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
    at: PagingSpace,
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
                entry: &|_| entry(SYSTEM_MEMORY, physical, false),
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
        let taker = Taker::new(&engine)?;

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

    /// Has the KMD change a context allocation, whose pages are in a segment. The records have this
    /// number. It is done once more after a reset if `is_wanted` then. False if the adapter is in
    /// error, or about to end.
    ///
    /// Context: may sleep, not inside of the KMD. No lock of contexts or page tables that is not of
    /// the paging process is held.
    pub(super) fn change(
        self: &Arc<Self>,
        number: u64,
        object: u64,
        to: (u32, &dyn PageSource),
        (change, is_wanted): (Change<'_>, &dyn Fn() -> bool),
    ) -> bool {
        let area = self.area();
        // CAST: a usize fits 64 bits.
        let count = to.1.count() as u64;

        let what = What::Change(object, change, is_wanted);

        self.run(number, &what, area, (0, count), to)
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
        let _batch = self.worker.log.begin_batch(number, what.made_for());
        let from = what.source();
        let parts: u64 = if from.is_some() { 2 } else { 1 };
        // OVERFLOW: the scratch area is small.
        let first = self
            .at
            .scratch
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
        if !self.at.by_node {
            self.process.space.show_scratch(number, windows);
        }

        let work = PagingWork {
            offset: shows.offset,
            size: count.saturating_mul(PAGE),
            destination: destination.saturating_mul(PAGE),
            change: what.change(first.saturating_mul(PAGE), to.0),
        };
        let is_done = self.attempt(
            &mut turn,
            number,
            || what.is_wanted(),
            |writer| {
                if self.at.by_node {
                    writer.show(windows)?;
                }
                writer.build(&work, &|| recorded(what.object(), &work))?;
                writer.submit()
            },
        );

        for window in windows {
            self.log_window(Kind::VaFree, number, window);
        }
        is_done
    }

    /// Has the paging node change page tables of a process, and forget translations if there is a
    /// range to be flushed: of all addresses if both are 0. The root is the first of `tables`; there
    /// are all that are changed. On return false nothing of it is done later, and the processor has
    /// to do it.
    ///
    /// Context: may sleep; the lock of the address space.
    pub(super) fn change_tables(
        self: &Arc<Self>,
        process: &object::Process,
        (id, number): (u64, u64),
        tables: &[TableAt],
        changes: &TableChanges,
        flush: Option<(u64, u64)>,
    ) -> bool {
        let mut turn = self.turn.lock();
        let _batch = self.worker.log.begin_batch(number, id);
        // CAST: a few.
        let count = tables.len() as u64;
        // OVERFLOW: the scratch area is small.
        let scratch = self.at.scratch;
        let room = scratch.end.saturating_sub(scratch.first);
        let first = scratch.first.wrapping_add(turn.scratch.take(room, count));
        let entry_of = |further: u64| {
            // CAST: it was a usize.
            let table = tables.get(further as usize);

            table.map_or(PageTableEntry::Invalid, |table| {
                entry(table.segment, table.offset, false)
            })
        };
        let windows = [Window {
            first,
            count,
            shows: Shows::default(),
            entry: &entry_of,
        }];

        self.log_tables(Kind::VaAlloc, (id, number), first, tables);

        let is_done = self.attempt(
            &mut turn,
            number,
            || true,
            |writer| {
                if !tables.is_empty() {
                    writer.show(&windows)?;
                }
                for (key, update) in changes.iter() {
                    let at = tables.iter().position(|table| table.key == key);

                    // It is gone already otherwise.
                    if let Some(at) = at {
                        // CAST: a few.
                        let at = first.saturating_add(at as u64).saturating_mul(PAGE);

                        writer.write_table(process, key.level, at, &update, id)?;
                    }
                }
                if let Some(range) = flush {
                    writer.flush(process, range, id)?;
                }
                writer.submit()
            },
        );

        self.log_tables(Kind::VaFree, (id, number), first, tables);
        is_done
    }

    /// Where the paging process shows page tables of the process with this number.
    fn log_tables(&self, kind: Kind, (id, batch): (u64, u64), first: u64, tables: &[TableAt]) {
        for (table, page) in tables.iter().zip(first..) {
            self.worker.log.write(|| Action {
                kind,
                batch,
                process: PAGING_PROCESS,
                object: id,
                level: table.key.level,
                start: table.key.number,
                segment: table.segment,
                offset: table.offset,
                address: page.saturating_mul(PAGE),
                size: PAGE,
                ..Action::default()
            });
        }
    }

    /// Does a batch, and once more if a reset has hit its context. If it is not done, nothing of it
    /// is done later.
    fn attempt(
        self: &Arc<Self>,
        turn: &mut Turn,
        number: u64,
        is_wanted: impl Fn() -> bool,
        mut body: impl FnMut(&mut Writer<'_>) -> Result<(), NotDone>,
    ) -> bool {
        for _ in 0..ATTEMPTS {
            let Turn { taker, buffer, .. } = turn;

            if taker.as_ref().is_some_and(Taker::is_lost) {
                *taker = None;
            }

            let ready = match taker {
                Some(taker) => taker,
                None => match Taker::new(self) {
                    Ok(new) => taker.insert(new),
                    Err(_) => return false,
                },
            };

            buffer.address = self.buffer_address();
            buffer.begin(self.buffer_dwords());

            let done = body(&mut Writer {
                engine: self,
                taker: ready,
                buffer,
                number,
            });

            match done {
                Ok(()) => return true,
                Err(why) => {
                    *taker = None;
                    if why == NotDone::Failed || !is_wanted() {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// The table of level 0 with a page of the scratch area, as the paging process has it, and the
    /// index of the page (MEM-61).
    pub(super) fn scratch_table(&self, page: u64) -> (u64, u32) {
        let table = self.levels.table(0, page);

        (table.saturating_mul(PAGE), self.levels.index(0, page))
    }

    /// How many pages of the scratch area batches use.
    fn area(&self) -> u64 {
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
    pub(super) fn fails(&self) -> NotDone {
        if let Some(owner) = &*self.owner.lock() {
            owner.clone().paging_failed();
        }
        NotDone::Failed
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
}

impl PagingNode for PagingEngine {
    fn clear(
        self: Arc<Self>,
        allocation: &object::Allocation,
        (segment, to): (u32, &dyn PageSource),
        pages: Range<usize>,
    ) -> bool {
        let area = self.area();
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
        let area = self.area();
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

/// What a record says of work with bytes.
fn recorded(object: u64, work: &PagingWork<'_>) -> Action {
    let action = Action {
        object,
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
        // Page tables have records of their own.
        Change::Nothing | Change::Table(..) | Change::Flush(..) => action,
    }
}
