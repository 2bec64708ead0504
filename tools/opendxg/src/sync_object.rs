// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synchronisation objects of every kind.

use std::os::fd::AsFd;
use std::sync::Arc;

use bitflags::bitflags;

use crate::adapter::Adapter;
use crate::calls;
use crate::device::Device;
use crate::event::{EventFd, FencePoint};
use crate::fence_stream::FenceStream;
use crate::handle::{slot, GlobalHandle, LocalHandle, NtHandle};
use crate::node::Node;
use crate::object::duplicate;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::uapi::*;
use crate::Result;

bitflags! {
    /// Properties of a synchronisation object, or of one opening of it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SyncFlags: u32 {
        /// Other processes can open it.
        const SHARED = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared;
        /// Shared by NT handles only, not by a global handle.
        const NT_SECURITY_SHARING = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing;
        /// Usable by other adapters.
        const CROSS_ADAPTER = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_CrossAdapter;
        /// Signalled when earlier work was fetched, not when it completed.
        const TOP_OF_PIPELINE = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_TopOfPipeline;
        /// Cannot be signalled through this opening.
        const NO_SIGNAL = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoSignal;
        /// Cannot be waited on through this opening.
        const NO_WAIT = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoWait;
        /// Keeps its value when a device is lost.
        const NO_SIGNAL_MAX_VALUE_ON_TDR =
            D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoSignalMaxValueOnTdr;
        /// Not mapped for the GPU.
        const NO_GPU_ACCESS = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoGPUAccess;
        /// Signalled by the miniport.
        const SIGNAL_BY_KMD = D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
        const _ = !0;
    }
}

bitflags! {
    /// What the holder of an NT handle may do with the object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Access: u32 {
        /// The right to wait for it.
        const WAIT = 0x1;
        /// The right to change the value or state.
        const SIGNAL = 0x2;
        /// Everything that can be done with a synchronisation object.
        const ALL = 0x001f_0003;
        /// Write to a resource.
        const RESOURCE_WRITE = SHARED_ALLOCATION_WRITE;
        /// Everything that can be done with a resource.
        const RESOURCE_ALL = SHARED_ALLOCATION_ALL_ACCESS;
        /// Ask what the object is; enough to read a resource.
        const READ_CONTROL = 0x0002_0000;
        /// Everything that the owner of the name allows.
        const MAXIMUM_ALLOWED = 0x0200_0000;
        /// Everything.
        const GENERIC_ALL = 0x1000_0000;
        /// Nothing but asking.
        const GENERIC_EXECUTE = 0x2000_0000;
        /// Signal or write.
        const GENERIC_WRITE = 0x4000_0000;
        /// Wait or read.
        const GENERIC_READ = 0x8000_0000;
        const _ = !0;
    }
}

/// What kind of synchronisation object to make.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SyncKind<'a> {
    /// A mutex of GPU contexts.
    Mutex {
        /// Whether it starts owned.
        initially_owned: bool,
    },
    /// A semaphore of GPU contexts.
    Semaphore {
        /// Highest count.
        max_count: u32,
        /// First count.
        initial_count: u32,
    },
    /// A legacy fence.
    Fence {
        /// First value.
        initial_value: u64,
    },
    /// An eventfd that GPU contexts can signal.
    CpuNotification {
        /// The eventfd; `None` sends 0, which the driver refuses.
        event: Option<&'a EventFd>,
    },
    /// A 64-bit value that grows, and can be waited for.
    MonitoredFence {
        /// First value.
        initial_value: u64,
    },
    /// A fence that counts refreshes of a display.
    PeriodicMonitoredFence {
        /// Adapter of the display.
        adapter: &'a Adapter,
        /// The display.
        target_id: u32,
        /// Units of 100 ns before the refresh.
        time: u64,
    },
}

impl SyncKind<'_> {
    /// The argument that creates such an object.
    pub(crate) fn argument(
        self,
        device: LocalHandle,
        flags: SyncFlags,
    ) -> D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
        let mut arg = D3DKMT_CREATESYNCHRONIZATIONOBJECT2::zeroed();
        arg.hDevice = device.0;
        arg.Info.Flags = flags.bits();
        let info = &mut arg.Info.__bindgen_anon_1;
        arg.Info.Type = match self {
            Self::Mutex { initially_owned } => {
                info.SynchronizationMutex.InitialState = initially_owned.into();
                D3DDDI_SYNCHRONIZATION_MUTEX
            }
            Self::Semaphore {
                max_count,
                initial_count,
            } => {
                info.Semaphore.MaxCount = max_count;
                info.Semaphore.InitialCount = initial_count;
                D3DDDI_SEMAPHORE
            }
            Self::Fence { initial_value } => {
                info.Fence.FenceValue = initial_value;
                D3DDDI_FENCE
            }
            Self::CpuNotification { event } => {
                info.CPUNotification.Event = event.map_or(0, |event| slot(event.as_fd()));
                D3DDDI_CPU_NOTIFICATION
            }
            Self::MonitoredFence { initial_value } => {
                info.MonitoredFence.InitialFenceValue = initial_value;
                D3DDDI_MONITORED_FENCE
            }
            Self::PeriodicMonitoredFence {
                adapter,
                target_id,
                time,
            } => {
                info.PeriodicMonitoredFence.hAdapter = adapter.handle().0;
                info.PeriodicMonitoredFence.VidPnTargetId = target_id;
                info.PeriodicMonitoredFence.Time = time;
                D3DDDI_PERIODIC_MONITORED_FENCE
            }
        };
        arg
    }
}

/// An open synchronisation object of any kind. Its local handle is destroyed when it is dropped.
#[derive(Debug)]
pub struct SyncObject {
    owned: Owned,
    /// Keeps the device alive; none when opened without one.
    device: Option<Device>,
    global: Option<GlobalHandle>,
}

impl SyncObject {
    pub(crate) fn new(owned: Owned, device: Option<Device>, global: Option<GlobalHandle>) -> Self {
        Self {
            owned,
            device,
            global,
        }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        self.owned.node()
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.owned.handle()
    }

    /// The device it was made or opened on.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// The number by which any process can open it, if it was made with [`SyncFlags::SHARED`]
    /// alone.
    pub fn global_handle(&self) -> Option<GlobalHandle> {
        self.global
    }

    /// Makes an NT handle for it: a descriptor that keeps the object alive and can be passed to
    /// other processes.
    pub fn share(&self, access: Access) -> Result<NtHandle> {
        let fd = calls::share::share(self.node(), &[self.handle().0], access.bits())?;
        Ok(NtHandle::from(fd))
    }

    /// A descriptor that becomes readable when this fence reaches `value`.
    pub fn point(&self, value: u64) -> Result<FencePoint> {
        calls::fence_point(self.node(), self.handle(), value).map(FencePoint::from)
    }

    /// A descriptor from which the values of this fence are read, for one who knows the value
    /// `last`: it is readable as soon as the fence has another one.
    pub fn stream(&self, last: u64) -> Result<FenceStream> {
        calls::fence_stream(self.node(), self.handle(), last).map(FenceStream::from)
    }

    /// Signals this fence to `value`, once, when the counter of `event` is not 0: at once if it is
    /// not now. The counter is left as it is. The value may go down if `allow_rewind`; otherwise a
    /// lower value does nothing when the event comes.
    ///
    /// Closing the last descriptor of the event before that gives it up, and so does the end of
    /// this process or of the fence, which is not kept alive. ACCESS_DENIED if this handle may not
    /// signal; OBJECT_TYPE_MISMATCH if `event` is not an eventfd.
    pub fn signal_on_event(&self, value: u64, event: impl AsFd, allow_rewind: bool) -> Result<()> {
        let flags = if allow_rewind {
            OPENDXG_SIGNAL_ALLOW_REWIND
        } else {
            0
        };
        let event = slot(event.as_fd());
        calls::signal_on_event(self.node(), self.handle(), value, event, flags)
    }

    /// Another local handle of the object, with the same rights.
    pub fn duplicate(&self) -> Result<Self> {
        let handle = duplicate(self.node(), self.handle(), OPENDXG_WHOLE)?;
        let owned = Owned::new(self.node(), handle, Kind::SyncObject);
        Ok(Self::new(owned, self.device.clone(), self.global))
    }

    /// Destroys the local handle and reports what the driver said.
    pub fn destroy(self) -> Result<()> {
        self.owned.destroy()
    }

    /// Gives the handle away: nobody destroys it until the process ends.
    pub fn into_raw(self) -> LocalHandle {
        self.owned.into_raw()
    }
}
