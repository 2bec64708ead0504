// SPDX-License-Identifier: GPL-2.0

//! What can be attached to any object.

use super::tables::Tables;
use crate::uapi::status::Outcome;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// Bytes.
pub(crate) struct Value(KVVec<u8>);

impl Value {
    /// These bytes.
    pub(crate) fn new(_tables: &Tables, bytes: KVVec<u8>) -> Outcome<Arc<Self>> {
        Ok(Arc::new(Self(bytes), GFP_KERNEL_ACCOUNT)?)
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// See the module.
#[pin_data]
pub(crate) struct Attached {
    #[pin]
    blob: SpinLock<Option<Arc<Value>>>,
}

impl Attached {
    /// Nothing attached.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            blob <- new_spinlock!(None, "Attached::blob"),
        })
    }

    /// The blob.
    pub(crate) fn blob(&self) -> Option<Arc<Value>> {
        self.blob.lock().clone()
    }

    /// Size of the blob.
    pub(crate) fn blob_size(&self) -> usize {
        self.blob().map_or(0, |blob| blob.bytes().len())
    }

    /// Sets the blob.
    pub(crate) fn set_blob(&self, value: Arc<Value>) -> Outcome {
        let old = self.blob.lock().replace(value);

        drop(old);
        Ok(())
    }

    /// Sets the blob if there is none.
    pub(crate) fn init_blob(&self, value: Arc<Value>) -> Outcome {
        if self.blob().is_none() {
            self.set_blob(value)?;
        }
        Ok(())
    }

    /// Number of changes.
    pub(crate) fn generation(&self) -> u64 {
        0
    }

    /// The object is dead: nothing resolves to it any more.
    pub(crate) fn die(&self) {}

    /// Everything of the object is gone: tells who wants to know, and lets go of the entries.
    pub(crate) fn finish(&self) {}
}
