// SPDX-License-Identifier: GPL-2.0

//! Making keyed mutexes, and opening them by their global handle (RES-91, RES-92).

use super::KeyedMutex;
use crate::{
    dxgk::{
        handle::{
            open_sync_object::OpenSyncObject,
            HandleTarget,
            Reserved, //
        },
        info::attachments::{
            PreparedChange,
            Value, //
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
        tables::Tables, //
    },
    error::{
        shortage,
        DxgResult, //
    },
    logic::{
        access,
        sync_flags::{
            Rights,
            Sharing, //
        }, //
    }, //
};
use kernel::sync::Arc;

/// What a keyed mutex starts as.
pub(crate) struct CreateKeyedMutexRequest {
    /// The key for which it is free.
    pub(crate) key: u64,
    /// By which kind of handle it is shared.
    pub(crate) sharing: Sharing,
    /// Its private data, if it gets some.
    pub(crate) data: Option<Arc<Value>>,
}

/// A new mutex: its local handle, and its global one if it is shared that way.
pub(crate) type Created<'a> = (Reserved<'a>, Option<ReservedGlobal<'a>>);

impl Process {
    /// Makes a keyed mutex and reserves its handles.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn create_keyed_mutex<'a>(
        &'a self,
        tables: &'a Tables,
        request: CreateKeyedMutexRequest,
    ) -> DxgResult<Created<'a>> {
        let header = Header::new(
            ObjectKind::KeyedMutex,
            None,
            request.sharing,
            Traits::NONE,
            ObjectCharge::new(&self.account)?,
        );
        let mutex = KeyedMutex::new(header, request.key)?;
        let strong = Strong::first(Object::KeyedMutex(mutex.clone()));

        if let Some(value) = request.data {
            shortage(mutex.header.attachments().set_blob(value))?;
        }

        let global = match request.sharing {
            Sharing::Global => Some(strong.name_globally(&tables.globals)?),
            Sharing::Private | Sharing::Nt => None,
        };
        let open = self.opened(strong)?;

        Ok((
            self.handles.reserve(HandleTarget::KeyedMutex(open), None)?,
            global,
        ))
    }

    /// Reserves a handle of a mutex that was found by its global handle.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn open_keyed_mutex(&self, strong: Strong) -> DxgResult<Reserved<'_>> {
        let open = self.opened(strong)?.found_by_global();

        self.handles.reserve(HandleTarget::KeyedMutex(open), None)
    }

    /// An open of a keyed mutex with every right there is.
    fn opened(&self, strong: Strong) -> DxgResult<OpenSyncObject> {
        let access = access::Type::Resource.all();
        let (open, _) = OpenSyncObject::new(strong, Rights::from_flags(0), access, &self.viewer)?;

        Ok(open)
    }
}

impl KeyedMutex {
    /// How many bytes of private data it has, if it has some.
    pub(crate) fn data_size(&self) -> Option<usize> {
        let own = self.header.attachments().blob();

        own.map(|own| own.bytes().len())
    }
}

/// Private data that an open gives to a keyed mutex that has none (RES-51, RES-92), or no data.
pub(crate) struct FirstData(Option<(Arc<KeyedMutex>, Arc<Value>)>);

impl FirstData {
    /// No data.
    pub(crate) const NONE: Self = Self(None);

    /// This data for this mutex.
    pub(crate) fn new(mutex: Arc<KeyedMutex>, value: Arc<Value>) -> Self {
        Self(Some((mutex, value)))
    }

    /// Whether there is any.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Prepares to give the data. A mutex that has got some meanwhile keeps it.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn prepare(&self) -> DxgResult<FirstChange<'_>> {
        match &self.0 {
            Some((mutex, value)) => {
                let change = mutex.header.attachments().prepare_first_blob(value);

                shortage(change).map(FirstChange)
            }
            None => Ok(FirstChange(None)),
        }
    }
}

/// Prepared by [`FirstData::prepare`]; `None` if there is nothing to do.
pub(crate) struct FirstChange<'a>(Option<PreparedChange<'a, Object>>);

impl FirstChange<'_> {
    /// Gives the data. False if the store of the mutex has changed since this was prepared, as
    /// with [`PreparedChange::commit`].
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn commit(self) -> DxgResult<bool> {
        match self.0 {
            Some(change) => Ok(change.commit()?),
            None => Ok(true),
        }
    }
}
