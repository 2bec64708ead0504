// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objects that calls are made with, in several states.

use opendxg::pm4::Pm4;
use opendxg::raw::{Argument, Raw};
use opendxg::uapi::D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE;
use opendxg::{
    Access, Adapter, Context, Device, Dxg, EventFd, FencePoint, FenceValues, KeyedMutex,
    LocalHandle, MonitoredFence, NativeFence, NtHandle, Object as _, Resource, ShareOptions,
    SyncFile, SyncFlags, SyncKind, SyncObject, WeakRef,
};
use selftests::call::succeeds;
use selftests::child::{Child, Gate};
use selftests::gpu::{Buffer, Commands, Gpu};
use selftests::leak::Watch;
use selftests::user_queue::user_queue;
use selftests::{fds, fixture, TestResult};
use std::os::fd::{AsRawFd, OwnedFd};

/// What is going on around the fence while calls are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    Fresh,
    /// It is shared by an NT handle and opened a second time.
    Shared,
    /// Another process has it open.
    Opened,
    /// Somebody waits for it.
    Waiting,
}

impl State {
    /// All states.
    pub(crate) const ALL: [Self; 4] = [Self::Fresh, Self::Shared, Self::Opened, Self::Waiting];

    /// For the names of tests.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Shared => "shared",
            Self::Opened => "opened elsewhere",
            Self::Waiting => "waited for",
        }
    }
}

/// Kinds of local handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    Adapter,
    Device,
    Context,
    HwContext,
    /// A context of any kind.
    AnyContext,
    PagingQueue,
    HwQueue,
    /// A queue that its process fills, without a doorbell.
    UserQueue,
    Doorbell,
    /// An allocation that can be a ring.
    Ring,
    /// A synchronisation object of any kind.
    Sync,
    /// A monitored fence that can be shared.
    Fence,
    Resource,
    Allocation,
    KeyedMutex,
    /// A resource, or anything else with an information store.
    Shareable,
    /// A fence or a resource that can be shared by NT handle.
    Shared,
}

/// Names of objects.
#[derive(Clone, Copy)]
pub(crate) enum Named {
    Resource,
    Fence,
    /// Not taken.
    New,
}

impl Named {
    /// The full name, of this process alone.
    pub(crate) fn path(self) -> String {
        let last = match self {
            Self::Resource => "resource",
            Self::Fence => "fence",
            Self::New => "new",
        };
        format!(r"\BaseNamedObjects\negative-{}-{last}", std::process::id())
    }
}

/// The value of the fence.
pub(crate) const VALUE: u64 = 5;

/// The private runtime data of every resource.
pub(crate) const RUNTIME_DATA: [u8; 24] = [7; 24];

/// The private data of the keyed mutex.
pub(crate) const MUTEX_DATA: [u8; 8] = [9; 8];

/// The key with which the keyed mutex is free.
pub(crate) const KEY: u64 = 3;

/// What a process has at hand. The fields are destroyed in this order.
pub(crate) struct World {
    pub(crate) raw: Raw,
    pub(crate) watch: Watch,
    other: Option<(Child, Gate)>,
    second: Option<MonitoredFence>,
    pub(crate) shared: NtHandle,
    /// That of a native fence, which is open, too.
    pub(crate) shared_native: NtHandle,
    _native: NativeFence,
    pub(crate) point: FencePoint,
    /// The fence with its value.
    pub(crate) sync_file: SyncFile,
    pub(crate) foreign: Vec<OwnedFd>,
    pub(crate) shared_resource: NtHandle,
    /// Keep their names.
    with_names: [NtHandle; 2],
    pub(crate) weak: WeakRef,
    /// A resource with a global handle.
    pub(crate) known: Resource,
    /// A resource for NT handles, with two allocations.
    pub(crate) resource: Resource,
    /// A keyed mutex with a global handle and private data.
    pub(crate) mutex: KeyedMutex,
    pub(crate) named: SyncObject,
    pub(crate) fence: MonitoredFence,
    /// The event of the pending wait.
    pending: EventFd,
    /// An event for the calls under test.
    pub(crate) event: EventFd,
    /// A fence for events to signal.
    pub(crate) by_event: MonitoredFence,
    /// An event whose counter is not 0.
    pub(crate) signalled: EventFd,
    pub(crate) context: Context,
    /// Commands that do nothing.
    pub(crate) commands: Commands,
    /// A paging queue, and another context.
    pub(crate) gpu: Gpu,
    /// Tells when queues, or an update, have done everything.
    pub(crate) settled: MonitoredFence,
    /// Queues of the next, and the doorbell of one that has no other name.
    hw_queue: LocalHandle,
    user_queue: LocalHandle,
    doorbell: LocalHandle,
    /// What rings can be made of.
    ring: Buffer,
    pub(crate) hw_context: Context,
    pub(crate) device: Device,
    pub(crate) adapter: Adapter,
}

impl World {
    /// A new world.
    pub(crate) fn new(state: State) -> TestResult<Self> {
        let adapter = fixture::adapter()?;
        let device = adapter.create_device()?;
        let fence = device.create_shareable_fence(VALUE)?;
        let shared = fence.share(Access::ALL)?;
        let native = device.create_shareable_native_fence(0)?;
        let shared_native = native.share(Access::ALL)?;
        let kind = SyncKind::Semaphore {
            max_count: 1,
            initial_count: 1,
        };
        let pending = EventFd::new()?;
        let second = match state {
            State::Shared => Some(device.open_fence(&shared, SyncFlags::empty())?),
            _ => None,
        };
        let other = match state {
            State::Opened => Some(open_elsewhere(&shared)?),
            _ => None,
        };
        if state == State::Waiting {
            fence.wait_async(VALUE + 1, &pending)?;
            fence.wait_async(u64::MAX, &pending)?;
        }
        let (reader, writer) = fds::pipe()?;
        let resource = device
            .new_resource()
            .nt_shared()
            .runtime_data(&RUNTIME_DATA);
        let resource = resource.linear(4096).linear(8192).create()?;
        let gpu = Gpu::on(&device, 1)?;
        let commands = gpu.commands(&Pm4::new().nop(4))?;
        let hw_context = device.create_hw_context(0)?;
        let hw_queue = hw_context.create_hw_queue()?.into_raw();
        let filled = user_queue(&hw_context)?.into_raw();
        let ring = gpu.buffer(4096)?;
        let doorbell = {
            let queue = user_queue(&hw_context)?;
            let doorbell = queue
                .create_doorbell(ring.allocation(), ring.allocation())?
                .into_raw();
            queue.into_raw();
            doorbell
        };
        let settled = device.create_fence(0)?;
        let known = device.new_resource().shared().runtime_data(&RUNTIME_DATA);
        Ok(Self {
            raw: fixture::raw()?,
            mutex: Dxg::open()?.create_keyed_mutex_with(KEY, &MUTEX_DATA, false)?,
            shared_resource: resource.share(Access::RESOURCE_ALL)?,
            weak: resource.weak()?,
            with_names: [
                name(Named::Resource, resource.handle(), Access::RESOURCE_ALL)?,
                name(Named::Fence, fence.handle(), Access::ALL)?,
            ],
            known: known.linear(4096).create()?,
            resource,
            named: device.create_sync_object(kind, SyncFlags::SHARED)?,
            context: device.create_context(0)?,
            commands,
            gpu,
            settled,
            hw_queue,
            user_queue: filled,
            doorbell,
            ring,
            hw_context,
            point: fence.point(u64::MAX)?,
            sync_file: device.create_sync_file(&fence, VALUE)?,
            foreign: vec![reader, writer, fds::memfd()?],
            event: EventFd::new()?,
            by_event: device.create_fence(VALUE)?,
            signalled: {
                let event = EventFd::new()?;
                event.signal()?;
                event
            },
            watch: Watch::start()?,
            adapter,
            device,
            fence,
            shared,
            shared_native,
            _native: native,
            pending,
            second,
            other,
        })
    }

    /// Nothing happened to the fence, and nobody was woken.
    pub(crate) fn is_untouched(&self) -> TestResult {
        selftests::ensure_eq!(self.fence.value(), VALUE, "value of the fence");
        selftests::ensure_eq!(self.pending.take()?, 0, "event of the pending wait");
        Ok(())
    }

    /// Waits until the queues have done everything.
    pub(crate) fn settle(&self) -> TestResult {
        let mut next = self.settled.value();
        for context in [&self.context, self.gpu.context()] {
            next += 1;
            context.signal(&FenceValues::new().with(&self.settled, next))?;
            self.settled.wait(next)?;
        }
        next += 1;
        let (queue, fence) = ([self.hw_queue.0], [self.settled.handle().0]);
        let mut arg = D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE::zeroed();
        arg.BroadcastHwQueueCount = 1;
        arg.BroadcastHwQueueArray = queue.as_ptr() as u64;
        arg.ObjectCount = 1;
        arg.ObjectHandleArray = fence.as_ptr() as u64;
        arg.FenceValueArray = (&raw const next) as u64;
        succeeds(&self.raw, &mut arg)?;
        Ok(self.settled.wait(next)?)
    }

    /// What rings can be made of.
    pub(crate) fn ring(&self) -> &Buffer {
        &self.ring
    }

    /// A live handle of a kind.
    pub(crate) fn handle(&self, kind: Object) -> u32 {
        match kind {
            Object::Adapter => self.adapter.handle().0,
            Object::Device => self.device.handle().0,
            Object::Context => self.context.handle().0,
            Object::HwContext => self.hw_context.handle().0,
            Object::AnyContext => self.context.handle().0,
            Object::PagingQueue => self.gpu.paging().handle().0,
            Object::HwQueue => self.hw_queue.0,
            Object::UserQueue => self.user_queue.0,
            Object::Doorbell => self.doorbell.0,
            Object::Ring => self.ring.allocation().handle().0,
            Object::Sync | Object::Fence | Object::Shared => self.fence.handle().0,
            Object::Resource | Object::Shareable => self.resource.handle().0,
            Object::Allocation => self.resource.allocations()[0].handle().0,
            Object::KeyedMutex => self.mutex.handle().0,
        }
    }

    /// The NT handle of the resource that has a name.
    pub(crate) fn named_resource(&self) -> &NtHandle {
        &self.with_names[0]
    }

    /// Kinds of objects of which there is one with a global handle.
    pub(crate) const GLOBALS: [Object; 3] = [Object::Sync, Object::Resource, Object::KeyedMutex];

    /// A live global handle of an object of a kind.
    pub(crate) fn global(&self, kind: Object) -> u32 {
        let handle = match kind {
            Object::Resource => self.known.global_handle(),
            Object::KeyedMutex => self.mutex.global_handle(),
            _ => self.named.global_handle(),
        };
        handle.map_or(0, |handle| handle.0)
    }

    /// The NT handle of another kind of object; any kind is right for `Shareable`.
    pub(crate) fn other_nt_handle(&self, kind: Object) -> Option<u64> {
        match kind {
            Object::Shareable => None,
            Object::Resource => Some(self.shared.slot()),
            _ => Some(self.shared_resource.slot()),
        }
    }

    /// A handle of a kind that was destroyed a moment ago.
    fn destroyed(&self, kind: Object) -> TestResult<u32> {
        let handle = match kind {
            Object::Adapter => fixture::adapter()?.handle(),
            Object::Device => self.adapter.create_device()?.handle(),
            Object::Context | Object::AnyContext => self.device.create_context(0)?.handle(),
            Object::PagingQueue => self.device.create_paging_queue()?.handle(),
            Object::HwQueue => self.hw_context.create_hw_queue()?.handle(),
            Object::UserQueue => user_queue(&self.hw_context)?.handle(),
            Object::Doorbell => {
                let (queue, ring) = (user_queue(&self.hw_context)?, self.ring.allocation());
                queue.create_doorbell(ring, ring)?.into_raw()
            }
            Object::Ring => self.gpu.buffer(4096)?.allocation().handle(),
            Object::HwContext => self.device.create_hw_context(0)?.handle(),
            Object::Sync | Object::Fence | Object::Shared => {
                self.device.create_shareable_fence(0)?.handle()
            }
            Object::Resource | Object::Shareable => {
                self.device.new_resource().linear(4096).create()?.handle()
            }
            Object::Allocation => self
                .device
                .new_resource()
                .linear(4096)
                .create_one()?
                .handle(),
            Object::KeyedMutex => Dxg::open()?.create_keyed_mutex(0)?.handle(),
        };
        Ok(handle.0)
    }

    /// Everything that is not a handle of a kind, with a word that says why.
    pub(crate) fn bad_handles(&self, kind: Object) -> TestResult<Vec<(&'static str, u32)>> {
        let good = self.handle(kind);
        let mut bad = vec![
            ("zero", 0),
            ("one", 1),
            ("index 0", 0x4000_0000),
            ("all ones", u32::MAX),
            ("poison", selftests::poison::POISON),
            ("destroyed", self.destroyed(kind)?),
            ("never made", good + 0x40 * 0x1_0000),
            ("low bit", good | 1),
            ("as a global handle", good | 2),
            ("other top bits", good ^ 0xc000_0000),
            ("global handle", self.global(Object::Sync)),
            ("NT handle", self.shared.as_raw_fd() as u32),
        ];
        let others = [
            ("adapter", Object::Adapter),
            ("device", Object::Device),
            ("context", Object::Context),
            ("hardware context", Object::HwContext),
            ("paging queue", Object::PagingQueue),
            ("hardware queue", Object::HwQueue),
            ("doorbell", Object::Doorbell),
            ("fence", Object::Sync),
            ("resource", Object::Resource),
            ("allocation", Object::Allocation),
            ("keyed mutex", Object::KeyedMutex),
        ];
        // The last four have an information store.
        let others = match kind {
            Object::Shareable => &others[..7],
            _ => &others[..],
        };
        for (name, other) in others {
            if kind == Object::Shared && *other == Object::Resource {
                continue;
            }
            if kind == Object::AnyContext && *other == Object::HwContext {
                continue;
            }
            if self.handle(*other) != good {
                bad.push((name, self.handle(*other)));
            }
        }
        if kind == Object::Fence {
            bad.push(("semaphore", self.named.handle().0));
        }
        Ok(bad)
    }

    /// Numbers that are no open descriptor.
    pub(crate) fn closed_numbers(&self) -> TestResult<Vec<u64>> {
        let closed = fds::closed_number()? as u64;
        Ok(vec![
            closed,
            (1 << 32) | closed,
            i32::MAX as u64,
            1 << 31,
            u64::from(u32::MAX),
            u64::MAX,
            self.global(Object::Sync).into(),
            self.fence.handle().0.into(),
        ])
    }

    /// Descriptors of this process that are neither events nor NT handles.
    pub(crate) fn foreign_numbers(&self) -> TestResult<Vec<u64>> {
        let own = [self.raw.fd()?.as_raw_fd(), self.point.as_raw_fd()];
        let foreign = self.foreign.iter().map(AsRawFd::as_raw_fd);
        Ok(foreign.chain(own).map(|fd| fd as u64).collect())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.second.take();
        if let Some((child, done)) = self.other.take() {
            let _ = done.open();
            let _ = child.join();
        }
    }
}

/// A named NT handle.
fn name(name: Named, object: LocalHandle, access: Access) -> TestResult<NtHandle> {
    let options = ShareOptions::new(access).name(&name.path());
    Ok(Dxg::open()?.share(&[object], &options)?)
}

/// Opens the fence in another process, until the gate is opened.
fn open_elsewhere(shared: &NtHandle) -> TestResult<(Child, Gate)> {
    let (opened, done) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let fence = fixture::device()?.open_fence(shared, SyncFlags::empty())?;
        opened.open()?;
        done.wait()?;
        drop(fence);
        Ok(())
    })?;
    opened.wait()?;
    Ok((child, done))
}
