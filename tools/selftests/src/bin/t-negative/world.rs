// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objects that calls are made with, in several states.

use opendxg::raw::Raw;
use opendxg::{
    Access, Adapter, Context, Device, EventFd, FencePoint, MonitoredFence, NtHandle, SyncFlags,
    SyncKind, SyncObject,
};
use selftests::child::{Child, Gate};
use selftests::leak::Watch;
use selftests::{fds, fixture, Outcome};
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
    /// A synchronisation object of any kind.
    Sync,
    /// A monitored fence that can be shared.
    Fence,
}

/// The value of the fence.
pub(crate) const VALUE: u64 = 5;

/// What a process has at hand. The fields are destroyed in this order.
pub(crate) struct World {
    pub(crate) raw: Raw,
    pub(crate) watch: Watch,
    other: Option<(Child, Gate)>,
    second: Option<MonitoredFence>,
    pub(crate) shared: NtHandle,
    pub(crate) point: FencePoint,
    pub(crate) foreign: Vec<OwnedFd>,
    pub(crate) named: SyncObject,
    pub(crate) fence: MonitoredFence,
    /// The event of the pending wait.
    pending: EventFd,
    /// An event for the calls under test.
    pub(crate) event: EventFd,
    pub(crate) context: Context,
    pub(crate) hw_context: Context,
    pub(crate) device: Device,
    pub(crate) adapter: Adapter,
}

impl World {
    /// A new world.
    pub(crate) fn new(state: State) -> Outcome<Self> {
        let adapter = fixture::adapter()?;
        let device = adapter.create_device()?;
        let fence = device.create_shareable_fence(VALUE)?;
        let shared = fence.share(Access::ALL)?;
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
        Ok(Self {
            raw: fixture::raw()?,
            named: device.create_sync_object(kind, SyncFlags::SHARED)?,
            context: device.create_context(0)?,
            hw_context: device.create_hw_context(0)?,
            point: fence.point(u64::MAX)?,
            foreign: vec![reader, writer, fds::memfd()?],
            event: EventFd::new()?,
            watch: Watch::start()?,
            adapter,
            device,
            fence,
            shared,
            pending,
            second,
            other,
        })
    }

    /// Nothing happened to the fence, and nobody was woken.
    pub(crate) fn is_untouched(&self) -> Outcome {
        selftests::ensure_eq!(self.fence.value(), VALUE, "value of the fence");
        selftests::ensure_eq!(self.pending.take()?, 0, "event of the pending wait");
        Ok(())
    }

    /// A live handle of a kind.
    pub(crate) fn handle(&self, kind: Object) -> u32 {
        match kind {
            Object::Adapter => self.adapter.handle().0,
            Object::Device => self.device.handle().0,
            Object::Context => self.context.handle().0,
            Object::HwContext => self.hw_context.handle().0,
            Object::Sync | Object::Fence => self.fence.handle().0,
        }
    }

    /// A live global handle.
    pub(crate) fn global(&self) -> u32 {
        self.named.global_handle().map_or(0, |handle| handle.0)
    }

    /// A handle of a kind that was destroyed a moment ago.
    fn destroyed(&self, kind: Object) -> Outcome<u32> {
        let handle = match kind {
            Object::Adapter => fixture::adapter()?.handle(),
            Object::Device => self.adapter.create_device()?.handle(),
            Object::Context => self.device.create_context(0)?.handle(),
            Object::HwContext => self.device.create_hw_context(0)?.handle(),
            Object::Sync | Object::Fence => self.device.create_shareable_fence(0)?.handle(),
        };
        Ok(handle.0)
    }

    /// Everything that is no handle of a kind, with a word that says why.
    pub(crate) fn bad_handles(&self, kind: Object) -> Outcome<Vec<(&'static str, u32)>> {
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
            ("global handle", self.global()),
            ("NT handle", self.shared.as_raw_fd() as u32),
        ];
        let others = [
            ("adapter", Object::Adapter),
            ("device", Object::Device),
            ("context", Object::Context),
            ("hardware context", Object::HwContext),
            ("fence", Object::Sync),
        ];
        for (name, other) in others {
            if self.handle(other) != good {
                bad.push((name, self.handle(other)));
            }
        }
        if kind == Object::Fence {
            bad.push(("semaphore", self.named.handle().0));
        }
        Ok(bad)
    }

    /// Numbers that are no open descriptor.
    pub(crate) fn closed_numbers(&self) -> Outcome<Vec<u64>> {
        let closed = fds::closed_number()? as u64;
        Ok(vec![
            closed,
            (1 << 32) | closed,
            i32::MAX as u64,
            1 << 31,
            u64::from(u32::MAX),
            u64::MAX,
            self.global().into(),
            self.fence.handle().0.into(),
        ])
    }

    /// Descriptors of this process that are neither events nor NT handles.
    pub(crate) fn foreign_numbers(&self) -> Outcome<Vec<u64>> {
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

/// Opens the fence in another process, until the gate is opened.
fn open_elsewhere(shared: &NtHandle) -> Outcome<(Child, Gate)> {
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
