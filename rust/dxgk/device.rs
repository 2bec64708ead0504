// SPDX-License-Identifier: GPL-2.0

//! A device: one client of one adapter. It is the parent of contexts and synchronisation objects:
//! their handles are destroyed with its handle (RES-31).

use super::{
    adapter::Adapter,
    border::{
        ClientHandles,
        FarDevice, //
    },
    dpc::Dpc,
    gpu_process::{
        GpuProcessUse,
        GpuProcesses, //
    },
    quota::account::Account,
    stats::{
        self,
        Counted,
        CountedOn,
        ObjectId,
        ObjectKind,
        Stats,
        OBJECTS,
        RETIRING, //
    },
    sync::{
        cpu_event::EventDevice,
        fence_binding::LoggedFence,
        fence_mappings::FenceMappings,
        fence_viewer::{
            FenceViewer,
            ViewingDevice, //
        }, //
    },
    vidmm::{
        address_space::AddressSpace,
        context_user::ContextUser,
        device_queues::{
            DeviceQueues,
            QueueOwner, //
        }, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        context_allocation::UsedBy,
        object,
        queue::{
            Fault,
            FaultKind, //
        },
        types::{
            DeviceError,
            DeviceId,
            Escape, //
        }, //
    },
    error::{
        DxgResult,
        Status, //
    },
    sys::{
        alloc::pin_arc,
        work, //
    }, //
};
use kernel::{
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// What can be asked about a device (`D3DKMT_DEVICESTATE_TYPE`).
pub(crate) enum StatePart {
    /// Whether it runs.
    Execution,
    /// Whether a reset has taken something from it.
    Reset,
    /// Where its work has faulted.
    PageFault,
    /// What it has shown.
    Presentation,
}

/// How a device is (D3DKMTGetDeviceState).
pub(crate) enum DeviceState {
    /// Nothing has failed.
    Active,
    /// Its adapter was removed (GPU-96, GPU-99).
    Stopped,
    /// Its work took too long, or it was put in error without a fault of its work:
    /// D3DKMTMarkDeviceAsError counts among hangs (cpu-events.md section 8).
    Hung,
    /// A reset has hit it that was for other work (GPU-95).
    Reset,
    /// Memory that it was promised is not there.
    OutOfMemory,
    /// Its work had an illegal packet (GPU-36), or misused memory (MEM-94).
    DmaFault,
    /// Its work accessed what is not there (GPU-68).
    DmaPageFault,
    /// No reset has hit it.
    NeverReset,
    /// No work of it has faulted.
    NoPageFault,
    /// Where its work has faulted.
    Faulted(Fault),
}

/// Why a device is in error.
#[derive(Clone, Copy)]
enum Failure {
    /// Its work has faulted.
    Fault(Fault),
    /// A client said so (D3DKMTMarkDeviceAsError).
    Marked,
    /// Its work took too long (GPU-92).
    Hung,
    /// A reset that others are the reason of has hit its work.
    Reset,
    /// Memory that it was promised is not there (MEM-21).
    OutOfMemory,
    /// Its commands have named memory by physical address that is not accessed so (MEM-94).
    Misused,
}

impl Failure {
    /// What the KMD has to be told, who knows what happens to its work.
    fn device_error(self) -> Option<DeviceError> {
        match self {
            Self::Marked => Some(DeviceError::Marked),
            Self::OutOfMemory => Some(DeviceError::OutOfMemory),
            Self::Misused => Some(DeviceError::Misused),
            Self::Fault(_) | Self::Hung | Self::Reset => None,
        }
    }
}

/// The process that has made a device, as the device knows it.
pub(crate) trait DeviceOwner: Send + Sync {
    /// What it is on each adapter.
    fn gpu_processes(&self) -> &Arc<GpuProcesses>;

    /// Its mappings, and who it is.
    fn mappings(&self) -> &Arc<FenceMappings>;

    /// The account of its user.
    fn account(&self) -> &Account;

    /// A device is in error: nobody waits any more for what it could signal.
    ///
    /// Context: may sleep, no locks held; nothing is added on the device any more.
    fn device_failed(&self, device: &Device);

    /// The native fence that the process calls so, if it may signal it, or wait for it if that is
    /// not asked for. For what is logged (GPU-84).
    ///
    /// Context: may sleep, no spinlock held.
    fn logged_fence(&self, handle: u32, is_signal: bool) -> Option<Arc<dyn LoggedFence>>;

    /// Its handles, for the host's side of a border.
    fn client_handles(self: Arc<Self>) -> Arc<dyn ClientHandles>;

    /// Whatever work of a device may have signalled is looked at (FEN-99).
    ///
    /// Context: may sleep, no spinlock held.
    fn look_at_fences(&self, device: &Device);
}

/// What one client has made on one adapter.
#[pin_data]
pub(crate) struct Device {
    identified: ObjectId,
    /// The device as the KMD has it.
    pub(in crate::dxgk) kmd: Arc<object::Device>,
    /// The process on this adapter, which it shares with other devices.
    pub(in crate::dxgk) process: GpuProcessUse,
    /// The process that has made it. That is emptied when it ends, which breaks the circle.
    pub(in crate::dxgk) owner: Arc<dyn DeviceOwner>,
    /// Who sees the value of a fence that it opens.
    pub(in crate::dxgk) viewer: Arc<FenceViewer>,
    /// How many CPU events it has (CPU-41).
    pub(in crate::dxgk) cpu_events: Atomic<u64>,
    /// The same device across the border, if its adapter has one.
    far: Option<FarDevice>,
    /// Its paging queues.
    pub(in crate::dxgk) paging: Arc<DeviceQueues>,
    /// The adapter it is on, where it is counted.
    pub(crate) adapter: Counted<Arc<Adapter>, OBJECTS>,
    /// Whether it is in error, which it stays. LOCK: leaf.
    #[pin]
    failure: SpinLock<Option<Failure>>,
    /// The same, for those who need not know why.
    has_failed: Atomic<bool>,
    /// `DisableGpuTimeout`: its work may take for ever.
    pub(in crate::dxgk) disable_gpu_timeout: bool,
    /// Ends what it has, when it is in error.
    #[pin]
    failing: Work<Device>,
    /// For all its contexts the KMD may have memory.
    _user: Option<ContextUser>,
}

impl CountedOn for Device {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.adapter.stats()
    }
}

impl_has_work! {
    impl HasWork<Self> for Device { self.failing }
}

impl WorkItem for Device {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.end_work();
        stats::sub::<RETIRING>(&this, 1);
    }
}

impl EventDevice for Device {
    fn id(&self) -> u64 {
        self.identified.id
    }

    fn kmd(&self) -> &Arc<object::Device> {
        &self.kmd
    }

    fn dpc(&self) -> &Arc<Dpc> {
        &self.adapter.dpc
    }

    fn cpu_events(&self) -> &Atomic<u64> {
        &self.cpu_events
    }

    fn far(&self) -> Option<&FarDevice> {
        self.far.as_ref()
    }
}

impl QueueOwner for Device {
    /// Nothing of it goes on.
    fn out_of_memory(self: Arc<Self>) {
        self.fail_later(Failure::OutOfMemory);
    }
}

impl Device {
    /// A new device of `owner` on `adapter`, whose commands may take for ever or not.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(
        adapter: Arc<Adapter>,
        owner: Arc<dyn DeviceOwner>,
        disable_gpu_timeout: bool,
    ) -> DxgResult<Arc<Self>> {
        // A reset that is in progress would hit the device, or refuse it.
        adapter.recovery.wait();

        let identified = ObjectId::new(ObjectKind::Device);
        let class = Passive::here();
        let process = owner.gpu_processes().enter(&adapter, owner.mappings())?;
        let id = DeviceId(identified.id);
        let user = adapter.context_user(UsedBy::Device(id), process.space.as_ref())?;
        let kmd = object::Device::create(&process.kmd, &class, id)?;
        let far = adapter
            .border
            .as_ref()
            .map(|border| {
                let names = (process.id, identified.id);

                border.add_device(names, owner.clone().client_handles(), &kmd)
            })
            .transpose()
            .map_err(|_| Status::NO_MEMORY)?;
        let viewer = Arc::new(
            FenceViewer {
                mappings: owner.mappings().clone(),
                device: Some(ViewingDevice {
                    adapter: adapter.clone(),
                    gpu: process.clone(),
                    kmd: kmd.clone(),
                }),
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let paging = DeviceQueues::new(&adapter.memory.worker, identified.id, process.id)?;

        Ok(pin_arc(
            pin_init!(Self {
                identified,
                kmd,
                process,
                owner,
                viewer,
                cpu_events: Atomic::new(0),
                far,
                paging,
                adapter: Counted::new(adapter),
                failure <- new_spinlock!(None, "Device::failure"),
                has_failed: Atomic::new(false),
                disable_gpu_timeout,
                failing <- new_work!("Device::failing"),
                _user: user,
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// DEVICE_REMOVED if it is in error, or if its adapter is removed (GPU-12).
    pub(crate) fn check(&self) -> DxgResult {
        if self.has_failed.load(Acquire) {
            return Err(Status::DEVICE_REMOVED.into());
        }
        self.adapter.check()
    }

    /// The GPU addresses of its process; NOT_SUPPORTED if the adapter has none.
    pub(crate) fn space(&self) -> DxgResult<&Arc<AddressSpace>> {
        self.process
            .space
            .as_ref()
            .ok_or(Status::NOT_SUPPORTED.into())
    }

    /// Gives a client's private request about it to the KMD, which answers in place.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn escape(&self, escape: &Escape<'_>, data: &mut [u8]) -> DxgResult {
        Ok(self.kmd.escape(&Passive::here(), escape, data)?)
    }

    /// Part of how it is now. NOT_SUPPORTED for what is about displays: it shows nothing.
    pub(crate) fn state(&self, part: StatePart) -> DxgResult<DeviceState> {
        let failure = *self.failure.lock();

        match part {
            StatePart::Execution => Ok(match failure {
                Some(Failure::Fault(fault)) => match fault.kind {
                    FaultKind::PageFault { .. } => DeviceState::DmaPageFault,
                    FaultKind::IllegalPacket { .. } => DeviceState::DmaFault,
                },
                _ if self.adapter.is_removed() => DeviceState::Stopped,
                Some(Failure::Marked | Failure::Hung) => DeviceState::Hung,
                Some(Failure::Reset) => DeviceState::Reset,
                Some(Failure::OutOfMemory) => DeviceState::OutOfMemory,
                Some(Failure::Misused) => DeviceState::DmaFault,
                None => DeviceState::Active,
            }),
            StatePart::Reset => Ok(DeviceState::NeverReset),
            StatePart::PageFault => Ok(match failure {
                Some(Failure::Fault(fault)) => DeviceState::Faulted(fault),
                _ => DeviceState::NoPageFault,
            }),
            StatePart::Presentation => Err(Status::NOT_SUPPORTED.into()),
        }
    }

    /// Puts it in error, if it is not yet; the first reason stays. True if it was not.
    fn fail(&self, why: Failure) -> bool {
        let mut failure = self.failure.lock();
        let is_first = failure.is_none();

        failure.get_or_insert(why);
        // ORDERING: release: a queue that is made later sees it, or is seen by `end_work`.
        self.has_failed.store(true, Release);
        is_first
    }

    /// Work of it has faulted (GPU-36, GPU-68). The module's worker ends what it has, because users
    /// decide how much that is, and the adapter's worker has others to serve.
    pub(in crate::dxgk) fn faulted(self: &Arc<Self>, fault: &Fault) {
        self.fail_later(Failure::Fault(*fault));
    }

    /// Its work took too long, and a reset has ended it.
    pub(in crate::dxgk) fn hung(self: &Arc<Self>) {
        self.fail_later(Failure::Hung);
    }

    /// A reset has hit it that others are the reason of.
    pub(in crate::dxgk) fn was_reset(self: &Arc<Self>) {
        self.fail_later(Failure::Reset);
    }

    /// Commands for it name memory by physical address that is not accessed so (MEM-94).
    pub(crate) fn misused(self: &Arc<Self>) {
        self.fail_later(Failure::Misused);
    }

    /// Puts it in error, if it is not yet; the module's worker ends what it has.
    fn fail_later(self: &Arc<Self>, why: Failure) {
        if !self.fail(why) {
            return;
        }
        self.tell(why);
        stats::add::<RETIRING>(self, 1);

        let queued = work::worker().is_some_and(|worker| worker.enqueue(self.clone()).is_ok());

        if !queued {
            self.end_work();
            stats::sub::<RETIRING>(self, 1);
        }
    }

    /// Puts it in error because a client says so (GPU-99).
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn mark_as_error(&self) {
        if self.fail(Failure::Marked) {
            self.tell(Failure::Marked);
            self.end_work();
        }
    }

    /// Tells who waits for the reason, before who waits for work (CPU-45).
    fn tell(&self, why: Failure) {
        if let Some(error) = why.device_error() {
            self.kmd.notify_error(&Passive::here(), error);
        }
        self.adapter.dpc.call();
    }

    /// It is about to be destroyed: its queues do what they can do and end. All of them before the
    /// first fence that one of them waits for, or else the end of one would let another one go on.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close_queues(&self) {
        for queue in self.adapter.queues.of_device(self.id()) {
            queue.close();
        }
    }

    /// Steps (3) and (4) of a recovery (GPU-95): its queues do nothing more, and whoever waits for
    /// what it could signal goes on. Queues of other devices are not touched.
    fn end_work(&self) {
        for queue in self.adapter.queues.of_device(self.id()) {
            queue.stop();
        }
        self.paging.fail();
        self.owner.device_failed(self);
    }

    /// The device's id.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }
}
