// SPDX-License-Identifier: GPL-2.0

//! A device: one client of one adapter. It is the parent of contexts and synchronisation objects:
//! their handles are destroyed with its handle (RES-31).

use super::{
    adapter::Adapter,
    stats::{
        Counted,
        CountedOn,
        ObjectId,
        ObjectKind,
        Stats,
        OBJECTS, //
    }, //
};
use crate::{
    ddi::{
        class::Passive,
        object,
        types::DeviceId, //
    },
    error::{
        DxgResult,
        Status, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
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
    /// No reset has hit it.
    NeverReset,
    /// No work of it has faulted.
    NoPageFault,
}

/// What one client has made on one adapter.
pub(crate) struct Device {
    identified: ObjectId,
    /// The device as the KMD has it.
    pub(in crate::dxgk) kmd: Arc<object::Device>,
    /// The adapter it is on, where it is counted.
    pub(crate) adapter: Counted<Arc<Adapter>, OBJECTS>,
}

impl CountedOn for Device {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.adapter.stats()
    }
}

impl Device {
    /// A new device on `adapter`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(adapter: Arc<Adapter>) -> DxgResult<Arc<Self>> {
        let identified = ObjectId::new(ObjectKind::Device);
        let id = DeviceId(identified.id);
        let kmd = object::Device::create(&adapter.port, &Passive::here(), id)?;

        Ok(Arc::new(
            Self {
                identified,
                kmd,
                adapter: Counted::new(adapter),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Part of how it is now. NOT_SUPPORTED for what is about displays: it shows nothing.
    pub(crate) fn state(&self, part: StatePart) -> DxgResult<DeviceState> {
        match part {
            StatePart::Execution if self.adapter.is_removed() => Ok(DeviceState::Stopped),
            StatePart::Execution => Ok(DeviceState::Active),
            StatePart::Reset => Ok(DeviceState::NeverReset),
            StatePart::PageFault => Ok(DeviceState::NoPageFault),
            StatePart::Presentation => Err(Status::NOT_SUPPORTED.into()),
        }
    }

    /// The device's id.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }
}
