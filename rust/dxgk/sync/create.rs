// SPDX-License-Identifier: GPL-2.0

//! Making synchronisation objects (FEN-1 to FEN-6).

use super::{
    cpu_event::{
        CpuEvent,
        EventDevice, //
    },
    cross_adapter::CrossAdapter,
    fence::Fence,
    fence_binding::FenceAddresses,
    fence_storage::FenceStorage,
    legacy::{
        LegacyState,
        LegacySync, //
    },
    native_fence::{
        NativeFence,
        Words, //
    },
    opening::ReservedSync, //
};
use crate::{
    ddi::native_fence::{
        NativeFenceType,
        PrivateData,
        PRIVATE_DATA_SIZE, //
    },
    dxgk::{
        adapter::Adapter,
        handle::{
            open_sync_object::OpenSyncObject,
            HandleTarget,
            Parent,
            Reserved, //
        },
        object::{
            Header,
            Object,
            ReservedGlobal,
            Strong,
            Traits, //
        },
        process::Process,
        quota::account::ObjectCharge,
        stats::ObjectKind,
        tables::Tables,
        vidmm::fence_memory::FenceMemory, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        access,
        sync_flags::{
            Contents,
            Creation,
            Rights,
            Sharing,
            Unusable,
            NATIVE_DEFAULT,
            NATIVE_INTRA_GPU, //
        }, //
    },
    sys::file::eventfd::EventFd, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

impl From<Unusable> for DxgError {
    fn from(refusal: Unusable) -> Self {
        match refusal {
            Unusable::Invalid => Status::INVALID_PARAMETER,
            Unusable::NotSupported => Status::NOT_SUPPORTED,
        }
        .into()
    }
}

/// A new object: its local handle, and its global one if it is shared that way.
pub(crate) struct Created<'a> {
    pub(crate) opened: ReservedSync<'a>,
    pub(crate) global: Option<ReservedGlobal<'a>>,
}

impl Process {
    /// Makes a synchronisation object on a device and reserves its handles.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn create_sync_object<'a>(
        &'a self,
        tables: &'a Tables,
        parent: &Parent,
        creation: &Creation,
    ) -> DxgResult<Created<'a>> {
        let maker = Maker {
            process: self,
            parent,
            adapter: &parent.device.adapter,
            creation,
        };
        let strong = maker.sync_object()?;
        let global = match creation.sharing() {
            Sharing::Global => Some(strong.name_globally(&tables.globals)?),
            Sharing::Private | Sharing::Nt => None,
        };
        let opened = self.open_sync_object(
            strong,
            creation.rights(),
            access::ALL,
            Some(parent),
            creation.has_gpu_access(),
        )?;

        Ok(Created { opened, global })
    }
}

impl Process {
    /// Makes a native fence on a device and reserves its handle. The KMD answers the client's data
    /// in place, first for the fence and then for its opening.
    ///
    /// Context: as [`Process::create_sync_object`].
    pub(crate) fn create_native_fence<'a>(
        &'a self,
        parent: &Parent,
        creation: &Creation,
        private_data: &mut PrivateData,
    ) -> DxgResult<ReservedSync<'a>> {
        let maker = Maker {
            process: self,
            parent,
            adapter: &parent.device.adapter,
            creation,
        };

        maker.check_contents()?;

        let Contents::NativeFence { value, ty, .. } = creation.contents() else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        let strong = Strong::first(maker.native_fence(value, type_of(ty), private_data)?);

        self.open_native_fence(strong, creation.rights(), access::ALL, parent, private_data)
    }
}

/// A new progress fence.
pub(crate) struct CreatedProgress<'a> {
    pub(crate) reserved: Reserved<'a>,
    /// Where its value is seen.
    pub(crate) addresses: FenceAddresses,
    /// What keeps it there for its queue.
    pub(crate) kept: OpenSyncObject,
    /// It is a native fence.
    pub(crate) is_native: bool,
}

impl Process {
    /// Makes the progress fence of a HW queue, below the context of the queue (FEN-125).
    ///
    /// Context: as [`Process::create_sync_object`].
    pub(crate) fn create_progress_fence<'a>(
        &'a self,
        parent: &Parent,
    ) -> DxgResult<CreatedProgress<'a>> {
        let (value, engines) = (0, 0);
        let is_native = parent.device.adapter.has_native_fences();
        let contents = match is_native {
            true => Contents::NativeFence {
                value,
                engines,
                ty: NATIVE_DEFAULT,
            },
            false => Contents::MonitoredFence { value, engines },
        };
        let maker = Maker {
            process: self,
            parent,
            adapter: &parent.device.adapter,
            creation: &Creation::new(contents, 0)?,
        };
        let strong = maker.sync_object()?;
        let more = strong.another().ok_or(Status::NO_MEMORY)?;
        // Engines store to it for the queue, and see it as long as that is there.
        let rights = Rights {
            wait: true,
            signal: true,
        };
        let (kept, addresses) =
            OpenSyncObject::new(more, rights, access::ALL, &parent.device.viewer)?;
        let rights = Rights {
            signal: false,
            ..rights
        };
        let (open, _) = OpenSyncObject::new(strong, rights, access::ALL, &self.viewer)?;
        let reserved = self
            .handles
            .reserve(HandleTarget::Sync(open.of_queue()), Some(parent))?;

        Ok(CreatedProgress {
            reserved,
            addresses,
            kept,
            is_native,
        })
    }
}

/// The type of a native fence, as a client says it and it was checked.
fn type_of(ty: u32) -> NativeFenceType {
    match ty {
        NATIVE_INTRA_GPU => NativeFenceType::IntraGpu,
        _ => NativeFenceType::Default,
    }
}

/// Who makes an object, and where.
struct Maker<'a> {
    process: &'a Process,
    /// Its device, and the adapter of that.
    parent: &'a Parent,
    adapter: &'a Arc<Adapter>,
    creation: &'a Creation,
}

impl Maker<'_> {
    /// Checks the contents and makes the object.
    fn sync_object(&self) -> DxgResult<Strong> {
        self.check_contents()?;

        let object = match self.creation.contents() {
            Contents::MonitoredFence { value, .. } => self.monitored_fence(value)?,
            Contents::NativeFence { value, ty, .. } => {
                let mut private_data = [0; PRIVATE_DATA_SIZE];

                self.native_fence(value, type_of(ty), &mut private_data)?
            }
            Contents::Mutex { owned } => {
                self.legacy(ObjectKind::Mutex, LegacyState::Mutex { owned })?
            }
            Contents::Semaphore { initial, max } => self.legacy(
                ObjectKind::Semaphore,
                LegacyState::Semaphore { initial, max },
            )?,
            Contents::Fence { value } => {
                self.legacy(ObjectKind::Fence, LegacyState::Fence { value })?
            }
            Contents::CpuNotification { event } => {
                let event = EventFd::from_slot(event)?;

                if self.creation.is_signalled_by_kmd() {
                    return Ok(Strong::first(self.cpu_event(event)?));
                }

                self.legacy(
                    ObjectKind::CpuNotification,
                    LegacyState::CpuNotification { event },
                )?
            }
            Contents::PeriodicFence { .. } => return Err(Status::NOT_SUPPORTED.into()),
        };

        Ok(Strong::first(object))
    }

    /// The engines are those of the adapter of the device, or of the one that a periodic fence
    /// names.
    fn check_contents(&self) -> DxgResult {
        let other = match self.creation.contents() {
            Contents::PeriodicFence { adapter, .. } => Some(self.process.handles.adapter(adapter)?),
            _ => None,
        };
        let adapter = other.as_ref().unwrap_or(self.adapter);

        self.creation.check_contents(
            |engines| adapter.has_engines(engines),
            adapter.features(),
            adapter.native_fence_caps.intra_gpu_type,
        )?;
        Ok(())
    }

    /// A fence that may be native on any adapter. It becomes that when it is opened there.
    fn cross_adapter_fence(&self, value: u64, kind: ObjectKind) -> DxgResult<Object> {
        let words = Words::CrossAdapter(CrossAdapter::new(FenceStorage::own(value)?)?);
        let fence = Fence::new(self.header(kind)?, words, self.creation.keeps_value())?;

        fence.bind()?;
        Ok(Object::Fence(fence))
    }

    fn monitored_fence(&self, value: u64) -> DxgResult<Object> {
        if self.creation.is_cross_adapter() {
            return self.cross_adapter_fence(value, ObjectKind::MonitoredFence);
        }

        let storage = self.storage(value)?;
        let header = self.header(ObjectKind::MonitoredFence)?;
        let words = Words::Monitored(storage);
        let fence = Fence::new(header, words, self.creation.keeps_value())?;

        fence.bind()?;
        Ok(Object::Fence(fence))
    }

    /// A native fence. The KMD answers the client's data in place.
    fn native_fence(
        &self,
        value: u64,
        ty: NativeFenceType,
        private_data: &mut PrivateData,
    ) -> DxgResult<Object> {
        if self.creation.is_cross_adapter() {
            return self.cross_adapter_fence(value, ObjectKind::NativeFence);
        }

        let stride = self.adapter.native_fence_caps.stride;
        let place = match (self.creation.sharing(), ty) {
            (Sharing::Private, _) => self.private_place(value, stride, ty)?,
            (_, NativeFenceType::Default) => FenceStorage::own(value)?,
            (_, NativeFenceType::IntraGpu) => FenceStorage::own_of_gpu(value)?,
        };
        let native = NativeFence::new(self.adapter, place, ty, private_data)?;
        let words = Words::Native(KBox::new(native, GFP_KERNEL_ACCOUNT)?);
        let header = self.header(ObjectKind::NativeFence)?;
        let fence = Fence::new(header, words, self.creation.keeps_value())?;

        fence.bind()?;
        Ok(Object::Fence(fence))
    }

    /// Where CurrentValue of a private native fence is, with MonitoredValue in memory of the
    /// adapter or of the system (FEN-63).
    fn private_place(
        &self,
        value: u64,
        stride: u32,
        ty: NativeFenceType,
    ) -> DxgResult<FenceStorage> {
        let gpu = &self.parent.device.process;
        let memory = FenceMemory::new(self.adapter, gpu.space.as_ref(), ty);
        let storage = match &memory {
            Some(_) => &gpu.native_storage,
            None => &self.process.native_storage,
        };

        storage.slot(value, stride, ty, memory.as_ref())
    }

    /// An event that the KMD fires. The KMD makes it last, so that nothing fails after that.
    fn cpu_event(&self, event: EventFd) -> DxgResult<Object> {
        let header = self.header(ObjectKind::CpuNotification)?;
        let device: Arc<dyn EventDevice> = self.parent.device.clone();
        let event = CpuEvent::new(&device, event)?;
        let state = LegacyState::CpuEvent(event);

        Ok(Object::Legacy(LegacySync::new(header, state)?))
    }

    /// An object of a type that only queued work uses.
    fn legacy(&self, kind: ObjectKind, state: LegacyState) -> DxgResult<Object> {
        Ok(Object::Legacy(LegacySync::new(self.header(kind)?, state)?))
    }

    /// A shareable fence has a page of its own (FEN-13).
    fn storage(&self, value: u64) -> DxgResult<FenceStorage> {
        match self.creation.sharing() {
            Sharing::Private => self.process.fence_storage.slot(value, None),
            Sharing::Global | Sharing::Nt => Ok(FenceStorage::own(value)?),
        }
    }

    fn header(&self, kind: ObjectKind) -> DxgResult<impl PinInit<Header>> {
        let traits = Traits::of(self.creation.is_cross_adapter())
            .or_top_of_pipeline(self.creation.is_top_of_pipeline());

        Ok(Header::new(
            kind,
            Some(self.adapter.clone()),
            self.creation.sharing(),
            traits,
            ObjectCharge::new(&self.process.account)?,
        ))
    }
}
