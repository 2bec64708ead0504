// SPDX-License-Identifier: GPL-2.0

//! A context: a sequence of work for one engine node of a device.

use super::{
    adapter::Adapter,
    device::Device,
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
        types::{
            ContextId,
            CreateContextArgs, //
        }, //
    },
    error::DxgResult, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

pub(crate) use crate::ddi::types::Scheduling;

/// What a context is made of, after all checks.
pub(crate) struct Description {
    /// How it takes work.
    pub(crate) scheduling: Scheduling,
    /// Its node, which the adapter has.
    pub(crate) node: u32,
    /// On which physical adapters it runs; the adapter has them.
    pub(crate) engines: u32,
    /// The part of the client's private data that the KMD reads.
    pub(crate) private_data: KVVec<u8>,
}

/// A sequence of work for one node of a device.
pub(crate) struct Context {
    identified: ObjectId,
    /// The context as the KMD has it, which keeps the device there.
    _kmd: object::Context,
    /// Lives at least as long as its contexts.
    device: Counted<Arc<Device>, OBJECTS>,
    /// How it takes work.
    pub(crate) scheduling: Scheduling,
}

impl CountedOn for Context {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.device.stats()
    }
}

impl Context {
    /// A new context of `device`.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn new(device: Arc<Device>, description: &Description) -> DxgResult<Arc<Self>> {
        let identified = ObjectId::new(ObjectKind::Context);
        let create = CreateContextArgs {
            id: ContextId(identified.id),
            scheduling: description.scheduling,
            node: description.node,
            engines: description.engines,
            private_data: &description.private_data,
        };
        let kmd = object::Context::create(&device.kmd, &Passive::here(), &create)?;

        Ok(Arc::new(
            Self {
                identified,
                _kmd: kmd,
                device: Counted::new(device),
                scheduling: description.scheduling,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// The context's id.
    pub(crate) fn id(&self) -> u64 {
        self.identified.id
    }

    /// What it was made on.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The adapter of its device.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.device.adapter
    }
}
