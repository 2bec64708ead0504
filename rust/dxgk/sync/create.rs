// SPDX-License-Identifier: GPL-2.0

//! Making synchronisation objects.

use super::{
    fence::Fence,
    fence_binding::FenceBinding,
    fence_storage::{
        FenceStorage,
        FenceStoragePool, //
    },
    legacy::{
        LegacySync,
        State, //
    }, //
};
use crate::dxgk::{
    adapter::Adapter,
    object::{
        Globals,
        Header,
        Object,
        Strong, //
    },
    quota::account::{
        Account,
        ObjectCharge, //
    },
    stats::Kind, //
};
use crate::{
    error::DxgResult,
    logic::sync_flags::Sharing, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What an object starts as.
pub(crate) enum Start {
    /// A monitored fence that shows this value.
    MonitoredFence(u64),
    /// An object of a type that only queued work uses.
    Legacy(State),
}

impl Start {
    fn kind(&self) -> Kind {
        match self {
            Self::MonitoredFence(_) => Kind::MonitoredFence,
            Self::Legacy(State::Mutex { .. }) => Kind::Mutex,
            Self::Legacy(State::Semaphore { .. }) => Kind::Semaphore,
            Self::Legacy(State::Fence { .. }) => Kind::Fence,
            Self::Legacy(State::CpuNotification { .. }) => Kind::CpuNotification,
        }
    }
}

/// Where an object is made, and for whom.
pub(crate) struct Creation<'a> {
    /// The adapter of its device.
    pub(crate) adapter: &'a Arc<Adapter>,
    /// How it may be shared.
    pub(crate) sharing: Sharing,
    /// Whether devices of other adapters may use it.
    pub(crate) cross_adapter: bool,
    /// NoSignalMaxValueOnTdr: it is not signalled when a device is lost.
    pub(crate) keeps_value: bool,
    /// Where its global handle will be.
    pub(crate) globals: &'a Arc<Globals>,
    /// Who is charged for it.
    pub(crate) account: &'a Account,
    /// Where the value of a private fence is stored.
    pub(crate) pool: &'a Arc<FenceStoragePool>,
}

impl Creation<'_> {
    /// Makes the object.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn sync_object(&self, start: Start) -> DxgResult<Strong> {
        let kind = start.kind();
        let object = match start {
            Start::MonitoredFence(value) => {
                let binding = FenceBinding::monitored(self.storage(value)?);

                let fence = Fence::new(self.header(kind)?, binding, self.keeps_value)?;

                if self.sharing == Sharing::Nt {
                    self.adapter
                        .shared_fences
                        .add(fence.header.id(), fence.clone())?;
                }
                Object::Fence(fence)
            }
            Start::Legacy(state) => Object::Legacy(LegacySync::new(self.header(kind)?, state)?),
        };

        Ok(Strong::first(object))
    }

    /// A shareable fence has a page of its own (FEN-13).
    fn storage(&self, value: u64) -> DxgResult<FenceStorage> {
        match self.sharing {
            Sharing::Private => self.pool.slot(value),
            Sharing::Global | Sharing::Nt => Ok(FenceStorage::own(value)?),
        }
    }

    fn header(&self, kind: Kind) -> DxgResult<impl PinInit<Header>> {
        Ok(Header::new(
            kind,
            Some(self.adapter.clone()),
            self.sharing,
            self.cross_adapter,
            self.globals.clone(),
            ObjectCharge::new(self.account)?,
        ))
    }
}
