// SPDX-License-Identifier: GPL-2.0

//! The context allocations of an adapter, as its KMD asks for them by callbacks (MEM-82 to MEM-90).
//!
//! A callback comes from inside of the KMD, where the OS part may hold locks. So what waits for the
//! paging node, for page tables, or for others to give way, is left to workers of the adapter. The
//! caller waits, but not for an end. It gives up when the adapter is about to be reset or stopped,
//! which waits for all who are inside; the worker does not, so that nothing it has given to the
//! node runs later. There are two workers. What takes and frees memory waits for page tables.
//! Those wait for SetRootPageTable, which may update: that waits for the paging node alone.
//!
//! ```text
//! KMD ── callback ── Job ──> OrderedWorker ── PagingEngine ── BuildPagingBuffer ── paging node
//! ```
//!
//! LOCK: `state` is a mutex, a leaf but for memory. Nothing is dropped under it. Who waits for an
//! update may be inside of `AddressSpace::state` and `Contexts::roots` of a client, who waits for
//! the rest not.

use super::{
    address_space::AddressSpace,
    aperture::Aperture,
    context_allocation::ContextAllocation,
    context_pages::ContextPages,
    context_user::{
        ContextUser,
        MadeFor, //
    },
    paging_engine::PagingEngine,
    paging_log::{
        LogAbout,
        PagingLog, //
    },
    segment::{
        AdapterMemory,
        Segment, //
    },
    shows_fences::ShowsFences, //
};
use crate::{
    ddi::{
        context_allocation::{
            flags,
            ContextMemory,
            CreateContextAllocationArgs,
            MapContextAllocationArgs,
            UsedBy,
            MAX_PRIVATE_DATA, //
        },
        object::{
            self,
            context::Change, //
        },
        port::Port,
        types::{
            ContextAllocationId,
            KmdError,
            KmdResult, //
        }, //
    },
    dxgk::stats::next_id,
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        context_allocations::{
            self as rules,
            Segments, //
        },
        gpu_ranges::PAGE,
        gpu_va_rules::Map,
        paging_log::{
            Action,
            Kind,
            Operation, //
        }, //
    },
    sys::{
        alloc::{
            pin_arc,
            tree_node, //
        },
        mem::blocks::Layout,
        task::memory_group::MemoryGroup,
        work::OrderedWorker, //
    }, //
};
use kernel::{
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// What is to be made.
struct New {
    id: u64,
    args: CreateContextAllocationArgs,
    used_by: UsedBy,
    space: Arc<AddressSpace>,
}

/// What the worker is to do.
enum Request {
    /// It takes memory for a new one, and has the KMD initialise it.
    Create(New),
    /// It shows pages of one to its process.
    Map(Arc<ContextAllocation>, Map),
    /// It has the KMD change one, by these data.
    Update(Arc<ContextAllocation>, KVVec<u8>),
    /// It frees the memory of one when its contexts are off the engines.
    Reclaim(Arc<ContextAllocation>),
}

/// It is not done yet.
const PENDING: u32 = 0;
/// A worker is through with it, and has said how it went.
const DONE: u32 = 1;
/// Nobody waits for it any more.
const GIVEN_UP: u32 = 2;

/// Something that a worker does, and somebody may wait for.
#[pin_data]
struct Job {
    all: Arc<ContextAllocations>,
    request: Request,
    /// The number of its records.
    batch: u64,
    /// Whom its memory is charged to.
    group: MemoryGroup,
    /// 0, or the status of its failure.
    failure: Atomic<i32>,
    /// The address of what was mapped.
    address: Atomic<u64>,
    /// One of the above.
    state: Atomic<u32>,
    #[pin]
    work: Work<Job>,
}

impl_has_work! {
    impl HasWork<Self> for Job { self.work }
}

impl WorkItem for Job {
    type Pointer = Arc<Self>;

    fn run(job: Arc<Self>) {
        job.all.run_job(&job);
    }
}

struct State {
    /// Contexts and devices of clients, by their ids.
    users: RBTree<u64, (UsedBy, Arc<AddressSpace>)>,
    allocations: RBTree<u64, Arc<ContextAllocation>>,
    /// The ids of those, each behind the id of its context or device.
    of_users: RBTree<(u64, u64), ()>,
}

impl State {
    /// The first allocation of a context or device.
    fn first_of(&self, user: u64) -> Option<u64> {
        let found = self.of_users.cursor_lower_bound(&(user, 0))?;
        let (owner, id) = *found.current().0;

        (owner == user).then_some(id)
    }
}

/// The context allocations of an adapter.
#[pin_data]
pub(in crate::dxgk) struct ContextAllocations {
    engine: Arc<PagingEngine>,
    log: Arc<PagingLog>,
    segments: KVec<Arc<Segment>>,
    /// It stands for system memory.
    aperture: Arc<Aperture>,
    port: Arc<Port>,
    /// The KMD cannot ask any more.
    has_ended: AtomicFlag,
    #[pin]
    state: Mutex<State>,
    /// Takes and frees memory.
    makes: OrderedWorker,
    updates: OrderedWorker,
}

impl ContextAllocations {
    /// None yet, of an adapter with this paging node and this KMD.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new(
        engine: &Arc<PagingEngine>,
        memory: &AdapterMemory,
        port: &Arc<Port>,
    ) -> DxgResult<Arc<Self>> {
        let mut segments = KVec::new();

        for segment in memory.segments.iter() {
            segments.push(segment.clone(), GFP_KERNEL)?;
        }

        let makes = OrderedWorker::start(c"dxg-context")?;
        let updates = OrderedWorker::start(c"dxg-update")?;

        Ok(pin_arc(
            pin_init!(Self {
                engine: engine.clone(),
                log: memory.log.clone(),
                segments,
                aperture: memory.aperture.clone(),
                port: port.clone(),
                has_ended: AtomicFlag::new(false),
                state <- new_mutex!(
                    State {
                        users: RBTree::new(),
                        allocations: RBTree::new(),
                        of_users: RBTree::new(),
                    },
                    "ContextAllocations::state"
                ),
                makes,
                updates,
            }),
            GFP_KERNEL,
        )?)
    }

    /// The KMD asks for nothing any more, and what is left is not its mistake.
    pub(in crate::dxgk) fn end(&self) {
        self.has_ended.store(true, Release);
    }

    /// The KMD may make allocations for a context or a device of this address space, until the
    /// result is dropped, which is after the KMD has destroyed that.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn enter(
        self: &Arc<Self>,
        used_by: UsedBy,
        space: &Arc<AddressSpace>,
    ) -> DxgResult<ContextUser> {
        let id = id_of(used_by);
        let node = tree_node(id, (used_by, space.clone()))?;
        // Ids are different.
        let _nothing = self.state.lock().users.insert(node);

        Ok(ContextUser::new(self.clone(), id))
    }

    /// The address space of a context or device of a client: the paging process has none of them.
    fn space_of(&self, used_by: UsedBy) -> Option<Arc<AddressSpace>> {
        let state = self.state.lock();
        let (known, space) = state.users.get(&id_of(used_by))?;

        (*known == used_by).then(|| space.clone())
    }

    fn find(&self, allocation: ContextAllocationId) -> KmdResult<Arc<ContextAllocation>> {
        let state = self.state.lock();

        state
            .allocations
            .get(&allocation.0)
            .cloned()
            .ok_or(KmdError::InvalidParameter)
    }

    /// Takes out an allocation that the KMD has left behind.
    fn take_left(&self, user: u64) -> Option<Arc<ContextAllocation>> {
        let left = self.state.lock().first_of(user)?;

        self.take_out(user, left)
    }

    /// Takes out this allocation of a context or device. Nobody finds it any more.
    fn take_out(&self, user: u64, id: u64) -> Option<Arc<ContextAllocation>> {
        let mut state = self.state.lock();
        let node = state.allocations.remove_node(&id);
        let of_user = state.of_users.remove_node(&(user, id));

        drop(state);
        drop(of_user);
        node.map(|node| node.to_key_value().1)
    }

    /// The KMD asks for something, and gets its answer: both are in the log.
    fn answer<T>(
        &self,
        action: Action,
        answer: impl FnOnce(u64) -> KmdResult<T>,
        address: impl FnOnce(&T) -> u64,
    ) -> KmdResult<T> {
        let action = Action {
            batch: self.log.batch(),
            ..action
        };

        self.log.write(|| Action {
            kind: Kind::Cb,
            ..action
        });

        let answer = answer(action.batch);

        self.log.write(|| Action {
            kind: Kind::Return,
            address: answer.as_ref().map_or(0, address),
            status: answer.as_ref().err().map_or(0, |error| {
                let failure = DxgError::from(*error).failure();

                // CAST: the same bits.
                failure.unwrap_or(0) as u32
            }),
            ..action
        });
        answer
    }

    /// Something for a worker.
    fn job(self: &Arc<Self>, request: Request, batch: u64) -> DxgResult<Arc<Job>> {
        Ok(pin_arc(
            pin_init!(Job {
                all: self.clone(),
                request,
                batch,
                group: MemoryGroup::of_caller(),
                failure: Atomic::new(0),
                address: Atomic::new(0),
                state: Atomic::new(PENDING),
                work <- new_work!("Job::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Leaves it to its worker.
    fn enqueue(&self, job: Arc<Job>) {
        let worker = match &job.request {
            Request::Update(..) => &self.updates,
            Request::Create(..) | Request::Map(..) | Request::Reclaim(_) => &self.makes,
        };

        self.log.write(|| Action {
            kind: Kind::Queue,
            operation: job.request.operation(),
            batch: job.batch,
            object: job.request.object(),
            ..Action::default()
        });
        worker.enqueue(job);
    }

    /// Leaves something to a worker, and returns when it is done, with the address of what was
    /// mapped. DeviceRemoved if the adapter is about to be reset or stopped; then nobody knows of
    /// what is made.
    ///
    /// Context: may sleep. The worker needs no lock that the caller holds.
    fn ask(self: &Arc<Self>, request: Request, batch: u64) -> KmdResult<u64> {
        let job = self.job(request, batch).map_err(|_| KmdError::NoMemory)?;

        self.enqueue(job.clone());

        let is_done = || (job.state.load(Acquire) == DONE).then_some(());

        if self.engine.wait_inside(is_done).is_none() && job.ends_as(GIVEN_UP) {
            return Err(KmdError::DeviceRemoved);
        }
        match job.failure.load(Acquire) {
            0 => Ok(job.address.load(Relaxed)),
            failure if Some(failure) == Status::INVALID_PARAMETER.failure() => {
                Err(KmdError::InvalidParameter)
            }
            failure if Some(failure) == Status::DEVICE_REMOVED.failure() => {
                Err(KmdError::DeviceRemoved)
            }
            _ => Err(KmdError::NoMemory),
        }
    }

    /// What the KMD asks for, unless it may not.
    fn check_create(&self, id: u64, args: &CreateContextAllocationArgs) -> Option<New> {
        let used_by = rules::used_by(args).ok()?;

        let _places = rules::check_create(args, self.places()).ok()?;

        Some(New {
            id,
            args: *args,
            used_by,
            space: self.space_of(used_by)?,
        })
    }

    /// Memory for one, in the best of its segments that has room.
    fn take(&self, id: u64, args: &CreateContextAllocationArgs) -> DxgResult<ContextPages> {
        let log = LogAbout::object(&self.log, id);
        let is_physical = args.has(flags::ACCESSED_PHYSICALLY);
        // CAST: bounded by `MAX_SIZE`.
        let count = (args.size / PAGE) as usize;
        let layout = Layout {
            contiguous: is_physical,
            alignment: args.alignment.into(),
        };

        for place in rules::check_create(args, self.places())? {
            let taken = match self.segments.iter().find(|segment| segment.id == place) {
                Some(segment) => ContextPages::local(segment, count, layout, &log)?,
                None if is_physical => {
                    let id = ContextAllocationId(id);
                    let kmd = object::ContextAllocation::new(&self.port, id, args.driver);
                    let kmd = Arc::new(kmd, GFP_KERNEL_ACCOUNT)?;

                    ContextPages::in_aperture(
                        &self.aperture,
                        &kmd,
                        (count, layout.alignment),
                        &log,
                    )?
                }
                None => Some(ContextPages::system(count, &log)?),
            };

            if let Some(pages) = taken {
                return Ok(pages);
            }
        }
        Err(Status::NO_MEMORY.into())
    }

    /// Where allocations may be.
    fn places(&self) -> Segments {
        let bit = |id: u32| 1_u32.checked_shl(id).unwrap_or(0);

        Segments {
            memory: self
                .segments
                .iter()
                .fold(0, |all, segment| all | bit(segment.id)),
            aperture: bit(self.aperture.id),
        }
    }

    fn create_now(&self, job: &Job, new: &New) -> DxgResult {
        let New {
            id,
            args,
            used_by,
            ref space,
        } = *new;
        let pages = self.take(id, &args)?;
        let change = Change::Init(args.driver, pages.physical());
        let is_wanted = || job.is_wanted();
        let to = (pages.segment(), pages.source());

        if !self.engine.change(job.batch, id, to, (change, &is_wanted)) {
            return Err(Status::DEVICE_REMOVED.into());
        }

        let allocation = ContextAllocation {
            id,
            args,
            used_by,
            pages: Arc::new(pages, GFP_KERNEL_ACCOUNT)?,
            space: space.clone(),
        };
        let of_user = tree_node((id_of(used_by), id), ())?;
        let node = tree_node(id, Arc::new(allocation, GFP_KERNEL_ACCOUNT)?)?;
        let mut state = self.state.lock();
        // Ids are different.
        let _nothing = (
            state.allocations.insert(node),
            state.of_users.insert(of_user),
        );

        Ok(())
    }

    fn update_now(&self, job: &Job, allocation: &ContextAllocation, data: &[u8]) -> DxgResult {
        let pages = &allocation.pages;
        let to = (pages.segment(), pages.source());
        let change: (_, &dyn Fn() -> bool) = (Change::Update(data), &|| job.is_wanted());

        if !self.engine.change(job.batch, allocation.id, to, change) {
            return Err(Status::DEVICE_REMOVED.into());
        }
        Ok(())
    }

    /// Its contexts are off the engines for a moment, unless they are gone.
    fn reclaim(&self, allocation: &ContextAllocation) {
        if self.space_of(allocation.used_by).is_some() {
            allocation.space.while_stopped(&mut || {});
        }
        allocation.end();
    }

    fn run_job(&self, job: &Job) {
        let done = job.group.charge(|| match &job.request {
            Request::Create(new) => self.create_now(job, new),
            Request::Map(allocation, map) => {
                job.address.store(allocation.map(map)?, Relaxed);
                Ok(())
            }
            Request::Update(allocation, data) => self.update_now(job, allocation, data),
            Request::Reclaim(allocation) => {
                self.reclaim(allocation);
                Ok(())
            }
        });

        if let Err(error) = done {
            let failure = error.failure().or(Status::NO_MEMORY.failure());

            job.failure.store(failure.unwrap_or(-1), Relaxed);
        }
        if !job.ends_as(DONE) {
            // Its KMD will not destroy what it does not know of.
            if let Request::Create(new) = &job.request {
                drop(self.take_out(id_of(new.used_by), new.id));
            }
        }
        self.engine.tell_inside();
    }
}

impl Job {
    /// Whether it ends so: nobody has ended it before.
    fn ends_as(&self, end: u32) -> bool {
        self.state.cmpxchg(PENDING, end, Full).is_ok()
    }

    /// Whether somebody waits for it.
    fn is_wanted(&self) -> bool {
        self.state.load(Acquire) != GIVEN_UP
    }
}

impl Request {
    fn object(&self) -> u64 {
        match self {
            Self::Create(new) => new.id,
            Self::Map(allocation, _) | Self::Update(allocation, _) | Self::Reclaim(allocation) => {
                allocation.id
            }
        }
    }

    fn operation(&self) -> Operation {
        match self {
            Self::Create(..) => Operation::CreateContextAllocation,
            Self::Map(..) => Operation::MapContextAllocation,
            Self::Update(..) => Operation::UpdateContextAllocation,
            Self::Reclaim(_) => Operation::DestroyContextAllocation,
        }
    }
}

/// The number of a context or a device.
fn id_of(used_by: UsedBy) -> u64 {
    match used_by {
        UsedBy::Context(id) => id.0,
        UsedBy::Device(id) => id.0,
    }
}

/// What the KMD is given for the callbacks.
impl ContextMemory for Arc<ContextAllocations> {
    fn create(&self, args: &CreateContextAllocationArgs) -> KmdResult<ContextAllocationId> {
        let id = next_id();
        let action = Action {
            operation: Operation::CreateContextAllocation,
            object: id,
            size: args.size,
            segment: args.preferred_segment,
            ..Action::default()
        };

        self.answer(
            action,
            |batch| {
                let new = self
                    .check_create(id, args)
                    .ok_or(KmdError::InvalidParameter)?;

                self.ask(Request::Create(new), batch)?;
                Ok(ContextAllocationId(id))
            },
            |_| 0,
        )
    }

    fn map(
        &self,
        allocation: ContextAllocationId,
        args: &MapContextAllocationArgs,
    ) -> KmdResult<u64> {
        let action = Action {
            operation: Operation::MapContextAllocation,
            object: allocation.0,
            start: args.offset,
            count: args.pages,
            ..Action::default()
        };

        self.answer(
            action,
            |batch| {
                let found = self.find(allocation)?;
                let map = rules::check_map(&found.args, args, found.space.clients)
                    .map_err(|_| KmdError::InvalidParameter)?;

                self.ask(Request::Map(found, map), batch)
            },
            |address| *address,
        )
    }

    fn update(&self, allocation: ContextAllocationId, private_data: &[u8]) -> KmdResult {
        let action = Action {
            operation: Operation::UpdateContextAllocation,
            object: allocation.0,
            // CAST: a usize fits 64 bits.
            count: private_data.len() as u64,
            pattern: rules::checksum(private_data),
            ..Action::default()
        };

        self.answer(
            action,
            |batch| {
                if private_data.len() > MAX_PRIVATE_DATA {
                    return Err(KmdError::InvalidParameter);
                }

                let found = self.find(allocation)?;
                let mut data = KVVec::new();

                data.extend_from_slice(private_data, GFP_KERNEL_ACCOUNT)
                    .map_err(|_| KmdError::NoMemory)?;
                self.ask(Request::Update(found, data), batch)?;
                Ok(())
            },
            |()| 0,
        )
    }

    fn destroy(&self, allocation: ContextAllocationId) -> KmdResult {
        let action = Action {
            operation: Operation::DestroyContextAllocation,
            object: allocation.0,
            ..Action::default()
        };

        self.answer(
            action,
            |batch| {
                let found = self.find(allocation)?;
                let user = id_of(found.used_by);
                // Without memory it stays until its context ends.
                let job = self
                    .job(Request::Reclaim(found), batch)
                    .map_err(|_| KmdError::NoMemory)?;

                // The last reference is the worker's, so that nothing ends in here.
                drop(self.take_out(user, allocation.0));
                self.enqueue(job);
                Ok(())
            },
            |()| 0,
        )
    }
}

impl MadeFor for ContextAllocations {
    fn end_user(&self, id: u64) {
        let node = self.state.lock().users.remove_node(&id);

        drop(node);
        while let Some(allocation) = self.take_left(id) {
            if !self.has_ended.load(Acquire) {
                let user = match allocation.used_by {
                    UsedBy::Context(_) => "context",
                    UsedBy::Device(_) => "device",
                };

                pr_warn!(
                    "driver bug: it has left context allocation {} of {user} {id} behind\n",
                    allocation.id
                );
            }
            allocation.end();
        }
    }
}
