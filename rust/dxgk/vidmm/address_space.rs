// SPDX-License-Identifier: GPL-2.0

//! The GPU address space of a process on one adapter (MEM-40 to MEM-50). Its devices share it.
//!
//! INVARIANT: while `state` is free, the page tables say what the ranges say. An entry for a page
//! of an allocation is valid exactly if the allocation has a placement. For: a range is changed
//! with its entries under the lock. A placement is set or taken away first, and then every address
//! space that shows the allocation is refreshed; who maps it meanwhile sees the new placement.
//!
//! A page goes to somebody else only after the refresh, which ends with a flush (MEM-58).
//!
//! LOCK: `state` is a mutex, inside `AllocationMemory::turn`; `AllocationMemory::state` is taken
//! inside, and so is `PagingEngine::turn`. That of the paging process is inside of the latter.
//! Entries of the KMD are called under it. Memory is allocated under it: only the process itself
//! waits, and who moves an allocation that it shares.

use super::{
    all_contexts::{
        AllContexts,
        Joined, //
    },
    contexts::{
        self,
        Contexts,
        SpaceContext, //
    },
    fence_pages::FencePages,
    idle::IdleList,
    page_tables::PageTables,
    paging_log::{
        LogAbout,
        PagingLog, //
    },
    ranges::RangeTree,
    resident_in::ResidentIn,
    rotation::{
        Rotation,
        Seated, //
    },
    seat::Seat,
    segment::Segment,
    shows_fences::ShowsFences,
    table_changes::TableWriter,
    table_page::TableSites, //
};
use crate::{
    ddi::{
        caps::GpuMmuCaps,
        object::{
            self,
            Suspension, //
        },
        reserve::{
            NoAddresses,
            ReserveAddresses, //
        },
        types::KmdResult, //
    },
    dxgk::quota::holder::Holder,
    error::DxgResult,
    logic::{
        gpu_ranges::{
            Finder,
            What,
            PAGE, //
        },
        gpu_va_rules::ClientSpace,
        kept_pages::Division,
        kmd_ranges::KmdRanges,
        page_levels::Levels,
        paging_log::{
            Action,
            Kind,
            Operation,
            PAGING_PROCESS, //
        },
        paging_rules::GROUPS,
        paging_scratch::PagingSpace,
        table_tree::Rules, //
    },
    sys::alloc::pin_arc, //
};
use kernel::{
    fmt,
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    static_lock_class,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    }, //
};
use state::{
    State,
    Why, //
};

mod changes;
mod context_ranges;
mod state;
mod updates;
mod walk;

/// What an address space has of its adapter.
pub(in crate::dxgk) struct OnAdapter<'a> {
    /// How addresses are divided; `None` if there are none.
    pub(in crate::dxgk) addresses: Option<(Levels, Division)>,
    /// What has memory of its own.
    pub(in crate::dxgk) segments: &'a [Arc<Segment>],
    /// How page tables are written, and where they are.
    pub(in crate::dxgk) gpu_mmu: &'a GpuMmuCaps,
    /// All contexts.
    pub(in crate::dxgk) contexts: &'a Arc<AllContexts>,
    /// All address spaces that take turns.
    pub(in crate::dxgk) rotation: &'a Arc<Rotation>,
    /// What the memory manager does there.
    pub(in crate::dxgk) log: &'a Arc<PagingLog>,
    /// What writes page tables of clients; `None`: the processor.
    pub(in crate::dxgk) node: Option<Arc<dyn TableWriter>>,
}

/// Whose address space it is.
#[derive(Clone, Copy)]
pub(in crate::dxgk) enum Who<'a> {
    /// That of the process with this number.
    Client(u64),
    /// That of the paging process, which is divided like this.
    Paging(&'a PagingSpace),
}

impl Who<'_> {
    /// As the log says it.
    fn id(self) -> u64 {
        match self {
            Self::Client(id) => id,
            Self::Paging(_) => PAGING_PROCESS,
        }
    }

    /// How its addresses are divided, where those of processes are divided like this.
    fn division(self, levels: &Levels, of_process: Division) -> Division {
        match self {
            Self::Client(_) => of_process,
            Self::Paging(at) => Division {
                // What the KMD may reserve.
                clients: match at.by_node {
                    true => ClientSpace {
                        first: at.end(),
                        end: levels.pages(),
                    },
                    false => of_process.clients,
                },
                kept: at.fences,
            },
        }
    }
}

/// The GPU addresses of a process on one adapter.
#[pin_data]
pub(crate) struct AddressSpace {
    /// What clients may have.
    pub(crate) clients: ClientSpace,
    /// Who uses its page tables.
    contexts: Arc<Contexts>,
    /// They are among those of the adapter.
    _joined: Joined,
    /// They take turns with others.
    pub(in crate::dxgk) seated: Seated,
    /// Its root is initialised.
    has_begun: AtomicFlag,
    /// Bytes that its devices want to be resident, by group.
    usage: [Atomic<u64>; GROUPS],
    /// What the process has offered and could go without.
    offered: Arc<IdleList>,
    /// Who stops its contexts to move a page of fence values holds it.
    #[pin]
    pub(super) moves: Mutex<()>,
    #[pin]
    pub(super) state: Mutex<State>,
}

impl AddressSpace {
    /// A process by `create`, which is CreateProcess, with an address space in which is only what
    /// the KMD reserves. What it takes is charged to `holder`. `None` if the adapter has no GPU
    /// addresses.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn with_process(
        on: &OnAdapter<'_>,
        who: Who<'_>,
        holder: Arc<Holder>,
        offered: &Arc<IdleList>,
        create: impl FnOnce(&mut dyn ReserveAddresses) -> KmdResult<Arc<object::Process>>,
    ) -> DxgResult<(Arc<object::Process>, Option<Arc<Self>>)> {
        let Some((levels, division)) = on.addresses else {
            return Ok((create(&mut NoAddresses)?, None));
        };
        let division = who.division(&levels, division);
        let mut ranges = KmdRanges::new(&levels, division.clients);
        let log = LogAbout::process(on.log, who.id());

        log.write(|| Action {
            kind: Kind::Ddi,
            operation: Operation::CreateProcess,
            ..Action::default()
        });

        let kmd = create(&mut ranges)?;
        let offered = offered.clone();
        let about = (log, matches!(who, Who::Paging(_)));
        let space = Self::new(on, (levels, division), kmd.clone(), holder, offered, about)?;

        if let Who::Paging(at) = who {
            space.prepare_paging(at)?;
        }
        for range in ranges.iter() {
            space.reserve_for_kmd(&range)?;
        }
        Ok((kmd, Some(space)))
    }

    /// An empty address space of the process that `kmd` is to the KMD of the adapter.
    fn new(
        on: &OnAdapter<'_>,
        (levels, Division { clients, kept }): (Levels, Division),
        kmd: Arc<object::Process>,
        holder: Arc<Holder>,
        offered: Arc<IdleList>,
        (log, is_paging): (LogAbout, bool),
    ) -> DxgResult<Arc<Self>> {
        let rules = Rules::new(on.gpu_mmu);
        let node = on.node.clone();
        let sites = TableSites::new(on.gpu_mmu, on.segments, is_paging);
        let (tables, contexts) = PageTables::new(levels, rules, kmd, node, sites, (holder, log))?;
        let joined = on.contexts.join(&contexts)?;
        let seated = on.rotation.join(&contexts)?;
        // A batch is made for one space, and shown in the other.
        let (lock_name, lock_class) = match is_paging {
            true => (c"PagingProcess::state", static_lock_class!()),
            false => (c"AddressSpace::state", static_lock_class!()),
        };

        Ok(pin_arc(
            pin_init!(Self {
                clients,
                contexts,
                _joined: joined,
                seated,
                has_begun: AtomicFlag::new(false),
                usage: [const { Atomic::new(0) }; GROUPS],
                offered,
                moves <- new_mutex!((), "AddressSpace::moves"),
                state <- Mutex::new(
                    State {
                        ranges: RangeTree::new(),
                        finder: Finder::new(clients.first),
                        tables,
                        openings: RBTree::new(),
                        context_pages: RBTree::new(),
                        reservations: 0,
                        fences: FencePages::new(kept),
                    },
                    lock_name,
                    lock_class,
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// What the callbacks of a new context tell the end of its suspensions to.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn suspension(&self) -> DxgResult<Arc<Suspension>> {
        self.contexts.suspension()
    }

    /// The context with this id uses it from now on: the KMD is told where its page tables begin.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn enter_context(
        &self,
        id: u64,
        kmd: Arc<object::Context>,
        suspension: Arc<Suspension>,
    ) -> DxgResult<SpaceContext> {
        {
            let mut state = self.state.lock();
            let (fences, tables) = state.fences();

            // Before the KMD is told where it is.
            tables.begin_root();
            fences.walk(tables)?;
        }
        self.contexts.enter(id, kmd, suspension)
    }

    /// The process has its first memory that is resident: the page tables that are there from the
    /// start are initialised (MEM-65, MEM-74).
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk::vidmm) fn begin(&self) {
        if self.has_begun.load(Acquire) {
            return;
        }

        let mut state = self.state.lock();
        let (_, tables) = state.fences();

        tables.begin_root();
        // ORDERING: release: who sees it needs nothing else.
        self.has_begun.store(true, Release);
    }

    /// How many bytes its devices want to be resident in a group.
    pub(crate) fn usage(&self, group: usize) -> u64 {
        self.usage.get(group).map_or(0, |usage| usage.load(Relaxed))
    }

    /// The lowest GPU virtual address at which an open is mapped as a whole, so many bytes.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn address_of(&self, opening: u64, bytes: u64) -> Option<u64> {
        let state = self.state.lock();
        let mut at = 0;

        while let Some(stretch) = state.ranges.shown_by(opening, at) {
            let is_whole = matches!(
                stretch.range.what,
                What::Mapped(mapping) if mapping.offset == 0
            ) && stretch.pages.saturating_mul(PAGE) >= bytes;

            if is_whole {
                return stretch.first.checked_mul(PAGE);
            }
            at = stretch.end();
        }
        None
    }

    /// Prints its page tables, as they are in memory: each with its place, and then the words that
    /// are not 0 with their numbers.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn show_tables(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.lock().tables.show(f)
    }

    /// How many stretches and page tables it has.
    pub(crate) fn extent(&self) -> (u32, usize) {
        let state = self.state.lock();

        (state.ranges.count(), state.tables.count())
    }
}

impl ShowsFences for AddressSpace {
    fn refresh_fence_page(&self, name: u64) {
        let mut state = self.state.lock();
        let (fences, tables) = state.fences();

        fences.refresh(tables, name);
    }

    fn while_stopped(&self, change: &mut dyn FnMut()) {
        let _alone = self.moves.lock();

        self.contexts.suspend(contexts::Why::FencePage);
        change();
        self.contexts.resume(contexts::Why::FencePage);
    }

    fn count_fence_page(&self, group: usize, is_more: bool) {
        match is_more {
            true => self.add_usage(group, PAGE),
            false => self.sub_usage(group, PAGE),
        }
    }
}

impl ResidentIn for AddressSpace {
    fn refresh(&self, opening: u64) {
        let mut state = self.state.lock();
        let (shown, tables) = state.shown();
        let is_placed = shown
            .openings
            .get(&opening)
            .is_some_and(|memory| memory.placement().is_some());
        // It has got its placement, or it has lost it.
        let why = Why {
            were_valid: !is_placed,
            evicted: !is_placed,
        };
        let mut at = 0;
        let mut changed: Option<(u64, u64)> = None;

        while let Some(stretch) = shown.ranges.shown_by(opening, at) {
            shown.write_stretch(tables, stretch, why);
            at = stretch.end();
            changed = Some(match changed {
                Some((lowest, _)) => (lowest, at),
                None => (stretch.first, at),
            });
        }
        if let Some((first, end)) = changed {
            tables.finish(first, end);
        }
    }

    fn hold_contexts(&self, are_held: bool) {
        // Nobody else suspends or resumes them meanwhile.
        let _state = self.state.lock();

        match are_held {
            true => self.contexts.suspend(contexts::Why::Move),
            false => self.contexts.resume(contexts::Why::Move),
        }
    }

    fn seat(&self) -> &Arc<Seat> {
        &self.seated.seat
    }

    fn add_usage(&self, group: usize, bytes: u64) {
        if let Some(usage) = self.usage.get(group) {
            usage.add(bytes, Relaxed);
        }
    }

    fn sub_usage(&self, group: usize, bytes: u64) {
        // It wraps, as the counter does.
        self.add_usage(group, bytes.wrapping_neg());
    }

    fn offered(&self) -> &Arc<IdleList> {
        &self.offered
    }
}
