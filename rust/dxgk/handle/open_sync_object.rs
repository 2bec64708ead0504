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
        fence_binding::FenceAddresses,
        fence_viewer::FenceViewer, //
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
    /// Whether it keeps the value mapped in the process.
    is_mapped: bool,
    /// The process, and who else sees the value through this.
    viewer: Arc<FenceViewer>,
    /// What the handle has of its own, if it has something.
    own: Option<KBox<Own>>,
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
    /// be shared from here (RES-104). Also returns where the value of a fence is seen.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn new(
        strong: Strong,
        rights: Rights,
        access: u32,
        viewer: &Arc<FenceViewer>,
    ) -> DxgResult<(Self, FenceAddresses)> {
        let mut private_data = [0; PRIVATE_DATA_SIZE];

        Self::with_data(strong, rights, access, viewer, &mut private_data)
    }

    /// The same with the client's data about a native fence, which the KMD answers in place.
    ///
    /// Context: as [`OpenSyncObject::new`].
    pub(crate) fn with_data(
        strong: Strong,
        rights: Rights,
        access: u32,
        viewer: &Arc<FenceViewer>,
        private_data: &mut PrivateData,
    ) -> DxgResult<(Self, FenceAddresses)> {
        strong.object().header().openers.enter(&viewer.mappings)?;

        let mut open = Self {
            strong,
            rights,
            access,
            origin: Origin::Opened,
            is_mapped: false,
            viewer: viewer.clone(),
            own: None,
        };
        let mut addresses = FenceAddresses::default();

        match open.strong.object() {
            Object::Fence(fence) => {
                if let Some(seen) = viewer.open(fence, rights.signal)? {
                    addresses = seen;
                    open.is_mapped = true;
                }
                if let (Some(native), Some(device)) = (fence.native(), &viewer.device) {
                    if open.is_mapped && addresses.process_gpu != 0 {
                        let seen = OpenNativeFenceArgs {
                            current_value: addresses.process_gpu,
                            monitored_value: addresses.monitored_gpu,
                        };

                        fence.tell_always_signaled();

                        let own = Own::Native {
                            _open: native.open(device, &seen, private_data)?,
                        };

                        open.own = Some(KBox::new(own, GFP_KERNEL_ACCOUNT)?);
                    }
                }
            }
            Object::KeyedMutex(_) => {
                let mutex = OpenKeyedMutex::new(viewer.mappings.identity.key(), access)?;

                open.own = Some(KBox::new(Own::Mutex(mutex), GFP_KERNEL_ACCOUNT)?);
            }
            Object::Legacy(_) | Object::Resource(_) => {}
        }
        Ok((open, addresses))
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

    /// Whether it is the fence of a queue, which goes with the queue.
    pub(crate) fn is_of_queue(&self) -> bool {
        self.origin == Origin::OfQueue
    }

    /// The access of this open handle, and what it may grant to others.
    pub(crate) fn grant(&self) -> Grant {
        Grant {
            rights: self.rights,
            access: self.access,
            origin: self.origin,
            viewer: self.viewer.clone(),
        }
    }

    /// Another open of the same object with the same grant.
    ///
    /// Context: as [`OpenSyncObject::new`].
    pub(crate) fn granted(strong: Strong, grant: &Grant) -> DxgResult<Self> {
        let (mut open, _) = Self::new(strong, grant.rights, grant.access, &grant.viewer)?;

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
        if let (Object::Fence(fence), true) = (self.strong.object(), self.is_mapped) {
            self.viewer.close(fence, self.rights.signal);
        }
        if let Some((mutex, open)) = self.keyed_mutex() {
            mutex.close(&open);
        }
    }
}
