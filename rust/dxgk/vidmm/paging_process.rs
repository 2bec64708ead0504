// SPDX-License-Identifier: GPL-2.0

//! The paging process of an adapter: a GPU address space of the OS part, which no client sees
//! (MEM-60). It is made when the adapter starts, by the same calls as any process, and ends with
//! the last object of the adapter. A system context tells the KMD where its page tables begin
//! (MEM-73).
//!
//! It is there for a paging node, which fills and moves memory by its addresses
//! (`paging_engine.rs`), and for the fences of a GPU whose context processor wants to see them
//! there (FEN-119). Their pages are in a permanent part, and stay until their owner lets go of them
//! (MEM-62). A page with several fences is there once.
//!
//! LOCK: `shown` is a mutex, inside `CrossAdapter::links` and outside `AddressSpace::state`. Pages
//! are mapped under it, so that two fences find one mapping. Nothing is dropped under it.

use super::{
    address_space::{
        AddressSpace,
        OnAdapter,
        Who, //
    },
    contexts::SpaceContext,
    fence_page::FencePage,
    fence_pages::ShownPage,
    idle::IdleList,
    paging_log::LogAbout,
    shows_fences::ShowsFences, //
};
use crate::{
    ddi::{
        class::Passive,
        object::{
            self,
            Suspension, //
        },
        port::Port,
        queue::QueueCallbacks,
        types::{
            ContextId,
            CreateContextArgs,
            DeviceId,
            ProcessId,
            Scheduling, //
        }, //
    },
    dxgk::{
        quota::{
            account::Accounts,
            holder::Holder, //
        },
        sched::{
            callbacks::ContextCallbacks,
            context_state::ContextState, //
        },
        stats::{
            next_id,
            Counted,
            OwnStats,
            Stats,
            SYSTEM_PAGES, //
        }, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        gpu_ranges::PAGE,
        paging_log::{
            Action,
            Kind,
            Operation,
            PAGING_PROCESS, //
        },
        paging_scratch::PagingSpace, //
    },
    sys::alloc::{
        pin_arc,
        tree_place, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A page that is mapped.
struct Shown {
    at: ShownPage,
    /// How many fences want it to be.
    users: usize,
    _counted: Counted<OwnStats, SYSTEM_PAGES>,
}

/// The paging process of an adapter.
#[pin_data]
pub(in crate::dxgk) struct PagingProcess {
    /// By the names of pages.
    #[pin]
    shown: Mutex<RBTree<u64, Shown>>,
    stats: OwnStats,
    log: LogAbout,
    /// How its addresses are divided.
    pub(super) at: PagingSpace,
    /// The KMD looks at the page tables for it, if native fences are to be shown.
    _context: Option<SpaceContext>,
    device: Arc<object::Device>,
    pub(super) kmd: Arc<object::Process>,
    pub(super) space: Arc<AddressSpace>,
}

/// A context of the paging process that the KMD is asked for.
pub(super) struct SystemContext<'a> {
    pub(super) scheduling: Scheduling,
    pub(super) node: u32,
    pub(super) callbacks: &'a Arc<dyn QueueCallbacks>,
    pub(super) suspension: Arc<Suspension>,
}

impl PagingProcess {
    /// CreateProcess and CreateDevice, on an adapter with GPU addresses, which are divided like
    /// this. What it takes is charged to no user, and its pages of fence values are counted in
    /// `stats`. With `shows_fences` it has a context of its own, which gets no work.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn new(
        port: &Arc<Port>,
        on: &OnAdapter<'_>,
        stats: &Arc<Stats>,
        at: PagingSpace,
        shows_fences: bool,
    ) -> DxgResult<Arc<Self>> {
        let class = Passive::here();
        // An account of its own: it is nobody's.
        let account = Accounts::new()?.of_caller()?;
        let holder = Holder::new(account).map_err(DxgError::from_errno)?;
        let id = ProcessId(next_id());
        let mut device = None;
        let log = LogAbout::process(on.log, PAGING_PROCESS);
        let (kmd, space) = AddressSpace::with_process(
            on,
            Who::Paging(&at),
            holder,
            &IdleList::new(None)?,
            |addresses| {
                let process = object::Process::create_system(port, &class, id, addresses)?;

                // Before there are page tables (MEM-73).
                log.write(|| Action {
                    kind: Kind::Ddi,
                    operation: Operation::CreateDevice,
                    ..Action::default()
                });
                device = Some(object::Device::create(
                    &process,
                    &class,
                    DeviceId(next_id()),
                )?);
                Ok(process)
            },
        )?;
        let space = space.ok_or(Status::NOT_SUPPORTED)?;
        let device = device.ok_or(Status::NO_MEMORY)?;

        let context = match shows_fences {
            true => Some(Self::idle_context(&space, &device, &log)?),
            false => None,
        };

        Ok(pin_arc(
            pin_init!(Self {
                shown <- new_mutex!(RBTree::new(), "PagingProcess::shown"),
                stats: OwnStats::new(stats),
                log,
                at,
                _context: context,
                device,
                kmd,
                space,
            }),
            GFP_KERNEL,
        )?)
    }

    /// A context that gets no work.
    fn idle_context(
        space: &Arc<AddressSpace>,
        device: &Arc<object::Device>,
        log: &LogAbout,
    ) -> DxgResult<SpaceContext> {
        let suspension = space.suspension()?;
        let callbacks = ContextCallbacks {
            suspension: Some(suspension.clone()),
            state: ContextState::new().map_err(|_| Status::NO_MEMORY)?,
        };
        let callbacks: Arc<dyn QueueCallbacks> = Arc::new(callbacks, GFP_KERNEL)?;
        let context = SystemContext {
            scheduling: Scheduling::HwQueues,
            node: 0,
            callbacks: &callbacks,
            suspension,
        };

        Ok(Self::create(space, device, log, context)?.1)
    }

    /// CreateContext and SetRootPageTable. Returns the id of the context, too.
    fn create(
        space: &Arc<AddressSpace>,
        device: &Arc<object::Device>,
        log: &LogAbout,
        context: SystemContext<'_>,
    ) -> DxgResult<(u64, SpaceContext)> {
        let id = next_id();

        log.write(|| Action {
            kind: Kind::Ddi,
            operation: Operation::CreateContext,
            object: id,
            ..Action::default()
        });

        let create = CreateContextArgs {
            id: ContextId(id),
            scheduling: context.scheduling,
            node: context.node,
            engines: 0,
            is_system: true,
            private_data: &[],
            callbacks: context.callbacks,
        };
        let kmd = object::Context::create(device, &Passive::here(), &create)?;

        Ok((id, space.enter_context(id, kmd, context.suspension)?))
    }

    /// Its addresses.
    pub(in crate::dxgk) fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// A context of the paging process.
    ///
    /// Context: may sleep, no locks of contexts held.
    pub(super) fn context(&self, context: SystemContext<'_>) -> DxgResult<(u64, SpaceContext)> {
        Self::create(&self.space, &self.device, &self.log, context)
    }

    /// Maps a page of fence values, which the GPU may load and store there (FEN-57), until the
    /// result is dropped.
    ///
    /// Context: a system call, no spinlock held.
    pub(in crate::dxgk) fn show(self: &Arc<Self>, page: &FencePage) -> DxgResult<SystemPage> {
        let key = page.name();
        let place = tree_place()?;
        let mut shown = self.shown.lock();
        let at = match shown.get_mut(&key) {
            Some(known) => {
                // OVERFLOW: each is a fence in memory.
                known.users += 1;
                known.at
            }
            None => {
                let at = self.space.show_page(page, true)?;
                let first = Shown {
                    at,
                    users: 1,
                    _counted: Counted::new(self.stats.clone()),
                };
                self.record(Kind::VaAlloc, at);
                // There was none, so that nothing is replaced.
                let _nothing = shown.insert(place.into_node(key, first));

                at
            }
        };

        drop(shown);
        Ok(SystemPage {
            process: self.clone(),
            key,
            at,
        })
    }

    /// What moves a page of fence values asks it.
    pub(super) fn shows(&self) -> Arc<dyn ShowsFences> {
        self.space.clone()
    }

    /// One fence less wants a page to be mapped.
    fn leave(&self, key: u64) {
        let gone = {
            let mut shown = self.shown.lock();
            let is_last = shown.get_mut(&key).is_some_and(|known| {
                known.users = known.users.saturating_sub(1);
                known.users == 0
            });

            is_last.then(|| shown.remove_node(&key)).flatten()
        };

        // The page is kept by its mapping, so that no other one has its address yet.
        if let Some(gone) = gone {
            let (_, gone) = gone.to_key_value();

            // Nobody else gets the address before it is hidden.
            self.record(Kind::VaFree, gone.at);
            self.space.hide_page(gone.at);
        }
    }

    fn record(&self, kind: Kind, at: ShownPage) {
        self.log.write(|| Action {
            kind,
            address: at.address(0),
            size: PAGE,
            ..Action::default()
        });
    }
}

/// A page that the paging process shows.
pub(in crate::dxgk) struct SystemPage {
    process: Arc<PagingProcess>,
    key: u64,
    at: ShownPage,
}

impl SystemPage {
    /// The GPU address of a byte of the page.
    pub(in crate::dxgk) fn address(&self, offset: u64) -> u64 {
        self.at.address(offset)
    }
}

impl Drop for SystemPage {
    /// On return the GPU does not use the address.
    ///
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        self.process.leave(self.key);
    }
}
