// SPDX-License-Identifier: GPL-2.0

//! One local handle's hold on a synchronisation object or keyed mutex: a strong reference, the
//! rights of this open handle, and for a shared fence its part in the mapping of the value.

use crate::dxgk::{
    keyed_mutex::{
        open::OpenKeyedMutex,
        KeyedMutex, //
    },
    object::{
        Object,
        Strong, //
    },
    sync::{
        fence::Fence,
        fence_binding::FenceAddresses,
        fence_viewer::FenceViewer,
        native_fence::NativeFence, //
    }, //
};
use crate::{
    ddi::{
        native_fence::{
            OpenNativeFenceArgs,
            PrivateData,
            PRIVATE_DATA_SIZE, //
        },
        object, //
    },
    error::DxgResult,
    logic::sync_flags::Rights, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Where an open synchronisation object comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Creation, or an open.
    Opened,
    /// Its global handle. It cannot be shared again (RES-33).
    OpenedByGlobal,
    /// It is the fence of a paging queue or the progress fence of a HW queue, which clients may
    /// only wait for (MEM-11, FEN-127).
    OfQueue,
}

/// One local handle's open of a synchronisation object or keyed mutex.
pub(crate) struct OpenSyncObject {
    strong: Strong,
    rights: Rights,
    /// The most access that an NT handle made from this one may have.
    access: u32,
    /// Where it comes from.
    origin: Origin,
    /// What was done for it at a fence.
    done: Done,
    /// The process, and who else sees the value through this.
    viewer: Arc<FenceViewer>,
    /// What the handle has of its own, if it has something.
    own: Option<KBox<Own>>,
}

/// What the opening of a fence has done, and its end undoes; in one byte, because a table has many.
#[derive(Clone, Copy, Default)]
struct Done(u8);

impl Done {
    /// The value is mapped in the process.
    const MAPPED: u8 = 1 << 0;
    /// The fence is native where it is opened.
    const NATIVE: u8 = 1 << 1;
    /// It counts among the openings of a cross-adapter fence on the adapter of its device.
    const COUNTED: u8 = 1 << 2;
    /// It is a fence that packets alone use (FEN-130).
    const INTRA_GPU: u8 = 1 << 3;

    fn set(&mut self, bit: u8) {
        self.0 |= bit;
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// What a handle has of its own.
enum Own {
    /// For a keyed mutex, the identity of the handle.
    Mutex(Arc<OpenKeyedMutex>),
    /// For a native fence, what the KMD of the device has of it.
    Native { _open: object::OpenNativeFence },
}

/// The access of an open handle, what it may grant to others, and who sees the value.
#[derive(Clone)]
pub(crate) struct Grant {
    rights: Rights,
    access: u32,
    origin: Origin,
    is_native: bool,
    viewer: Arc<FenceViewer>,
}

impl Grant {
    /// What the handle may do.
    pub(super) fn rights(&self) -> Rights {
        self.rights
    }
}

/// The result of looking a handle up: with a reference to the object, or as long as the lock of the
/// table is held.
pub(crate) struct SyncLookup<T = Object> {
    /// What the handle stands for.
    pub(crate) object: T,
    /// What this handle may do with it.
    pub(crate) rights: Rights,
    /// The handle of the device that it was opened on, if it was opened on a device itself. It is
    /// alive, because this handle is its child.
    pub(crate) device: Option<u32>,
    /// Whether it is the fence of a paging queue or of a HW queue, which only that signals.
    pub(crate) of_queue: bool,
}

impl SyncLookup<&Object> {
    /// The same with a reference.
    pub(crate) fn cloned(self) -> SyncLookup {
        SyncLookup {
            object: self.object.clone(),
            rights: self.rights,
            device: self.device,
            of_queue: self.of_queue,
        }
    }
}

impl OpenSyncObject {
    /// Opens the object behind `strong` in the process of `viewer`. `access` bounds what can
    /// be shared from here (RES-104). Also returns where the value of a fence is seen. A fence that
    /// was made as a native one is native on an adapter that has such fences.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn new(
        strong: Strong,
        rights: Rights,
        access: u32,
        viewer: &Arc<FenceViewer>,
    ) -> DxgResult<(Self, FenceAddresses)> {
        let is_native = match (strong.object(), &viewer.device) {
            (Object::Fence(fence), Some(device)) => {
                fence.is_native() && device.adapter.has_native_fences()
            }
            _ => false,
        };
        let mut private_data = [0; PRIVATE_DATA_SIZE];
        let private_data = is_native.then_some(&mut private_data);

        Self::with_data(strong, rights, access, viewer, private_data)
    }

    /// The same, as a native fence with the client's data about it, which the KMD answers in place;
    /// otherwise as a monitored one.
    ///
    /// Context: as [`OpenSyncObject::new`].
    pub(crate) fn with_data(
        strong: Strong,
        rights: Rights,
        access: u32,
        viewer: &Arc<FenceViewer>,
        private_data: Option<&mut PrivateData>,
    ) -> DxgResult<(Self, FenceAddresses)> {
        strong.object().header().openers.enter(&viewer.mappings)?;

        let mut open = Self {
            strong,
            rights,
            access,
            origin: Origin::Opened,
            done: Done::default(),
            viewer: viewer.clone(),
            own: None,
        };
        let mut addresses = FenceAddresses::default();

        match open.strong.object() {
            Object::Fence(_) => addresses = open.see(private_data)?,
            Object::KeyedMutex(_) => {
                let mutex = OpenKeyedMutex::new(viewer.mappings.identity.key(), access)?;

                open.own = Some(KBox::new(Own::Mutex(mutex), GFP_KERNEL_ACCOUNT)?);
            }
            Object::Legacy(_) | Object::Resource(_) => {}
        }
        Ok((open, addresses))
    }

    /// Shows the value, if it is a fence, in the process and to the GPU of the device. If it is
    /// native there, the KMD opens it (FEN-117, FEN-121).
    #[inline(always)]
    fn see(&mut self, mut private_data: Option<&mut PrivateData>) -> DxgResult<FenceAddresses> {
        let Self {
            strong,
            rights,
            done,
            viewer,
            own,
            ..
        } = self;
        let Object::Fence(fence) = strong.object() else {
            return Ok(FenceAddresses::default());
        };
        let device = viewer.device.as_ref();
        let part = match (fence.cross_adapter(), device) {
            (Some(cross), Some(device)) => {
                let data = private_data.as_deref_mut();
                let part = cross.enter(fence.clone(), &device.adapter, data)?;

                done.set(Done::COUNTED);
                part
            }
            _ => None,
        };
        let native = match &part {
            Some(part) => Some(part.view()),
            None => fence.native().map(NativeFence::view),
        };

        if fence.is_intra_gpu() {
            done.set(Done::INTRA_GPU);
        }
        if native.is_some() {
            done.set(Done::NATIVE);
        }

        let monitored = native.and_then(|native| native.monitored);
        let Some(seen) = viewer.open(fence, rights.signal, monitored)? else {
            return Ok(FenceAddresses::default());
        };

        done.set(Done::MAPPED);
        if let (Some(native), Some(device), Some(data)) = (native, device, private_data) {
            if seen.process_gpu != 0 {
                let places = OpenNativeFenceArgs {
                    current_value: seen.process_gpu,
                    monitored_value: seen.monitored_gpu,
                };

                fence.tell_always_signaled(native.kmd);

                let open = Own::Native {
                    _open: native.kmd.open(&device.kmd, &places, data)?,
                };

                *own = Some(KBox::new(open, GFP_KERNEL_ACCOUNT)?);
            }
        }
        Ok(seen)
    }

    /// Marks an open handle that was found by a global handle.
    pub(crate) fn found_by_global(mut self) -> Self {
        self.origin = Origin::OpenedByGlobal;
        self
    }

    /// Marks the fence of a paging queue or of a HW queue.
    pub(crate) fn of_queue(mut self) -> Self {
        self.origin = Origin::OfQueue;
        self
    }

    /// Whether it is a fence that packets alone use: all calls that wait for it or signal it are
    /// refused (FEN-130).
    #[inline(always)]
    pub(super) fn is_intra_gpu(&self) -> bool {
        self.done.has(Done::INTRA_GPU)
    }

    /// The fence, unless only packets use it or it is the fence of a queue.
    #[inline(always)]
    pub(super) fn plain_fence(&self) -> Option<&Arc<Fence>> {
        match self.strong.object() {
            Object::Fence(fence) if !self.is_intra_gpu() && !self.is_of_queue() => Some(fence),
            _ => None,
        }
    }

    /// What its process may do through it.
    #[inline(always)]
    pub(super) fn rights(&self) -> Rights {
        self.rights
    }

    /// Whether it is the fence of a queue, which goes with the queue.
    pub(crate) fn is_of_queue(&self) -> bool {
        self.origin == Origin::OfQueue
    }

    /// Whether its process may signal the object through it.
    pub(crate) fn may_signal(&self) -> bool {
        self.rights.signal && !self.is_of_queue()
    }

    /// The access of this open handle, and what it may grant to others.
    pub(crate) fn grant(&self) -> Grant {
        Grant {
            rights: self.rights,
            access: self.access,
            origin: self.origin,
            is_native: self.done.has(Done::NATIVE),
            viewer: self.viewer.clone(),
        }
    }

    /// Another open of the same object with the same grant.
    ///
    /// Context: as [`OpenSyncObject::new`].
    pub(crate) fn granted(strong: Strong, grant: &Grant) -> DxgResult<Self> {
        let mut private_data = [0; PRIVATE_DATA_SIZE];
        let private_data = grant.is_native.then_some(&mut private_data);
        let (mut open, _) = Self::with_data(
            strong,
            grant.rights,
            grant.access,
            &grant.viewer,
            private_data,
        )?;

        open.origin = grant.origin;
        Ok(open)
    }

    /// The result of looking this handle up.
    #[inline(always)]
    pub(super) fn opened(&self, device: Option<u32>) -> SyncLookup<&Object> {
        SyncLookup {
            object: self.strong.object(),
            rights: self.rights,
            device,
            of_queue: self.is_of_queue(),
        }
    }

    /// What the handle stands for.
    pub(crate) fn object(&self) -> &Object {
        self.strong.object()
    }

    /// The keyed mutex, and the identity of this handle.
    pub(crate) fn keyed_mutex(&self) -> Option<(Arc<KeyedMutex>, Arc<OpenKeyedMutex>)> {
        match (self.strong.object(), self.own.as_deref()) {
            (Object::KeyedMutex(mutex), Some(Own::Mutex(open))) => {
                Some((mutex.clone(), open.clone()))
            }
            _ => None,
        }
    }

    /// The access that may be granted to others; `None` if none may.
    pub(crate) fn shareable_access(&self) -> Option<u32> {
        (self.origin == Origin::Opened).then_some(self.access)
    }

    /// The access of this open handle.
    pub(crate) fn access(&self) -> u32 {
        self.access
    }
}

impl Drop for OpenSyncObject {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        // What a KMD has of it goes before its addresses do.
        let own = self.own.take_if(|own| matches!(**own, Own::Native { .. }));
        let header = self.strong.object().header();

        drop(own);
        header.openers.leave(&self.viewer.mappings);
        if let Object::Fence(fence) = self.strong.object() {
            if self.done.has(Done::MAPPED) {
                let is_native = self.done.has(Done::NATIVE);

                self.viewer.close(fence, self.rights.signal, is_native);
            }
            if let (Some(cross), Some(device)) = (fence.cross_adapter(), &self.viewer.device) {
                if self.done.has(Done::COUNTED) {
                    cross.leave(fence.clone(), device.adapter.id);
                }
            }
        }
        if let Some((mutex, open)) = self.keyed_mutex() {
            mutex.close(&open);
        }
    }
}
