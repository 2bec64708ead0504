// SPDX-License-Identifier: GPL-2.0

//! What is behind an NT handle: a strong reference to a synchronisation object and an access mask
//! (RES-13 to RES-16). One for each open file description; copies of the descriptor share it.

use super::{
    census::{
        Member,
        SHARES, //
    },
    sync_object::{
        Strong,
        SyncObject, //
    }, //
};
use crate::{
    logic::{
        access,
        sync_flags::Rights, //
    },
    sys::object_file::ObjectFile, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// See the module.
pub(crate) struct Share {
    strong: Strong,
    access: u32,
    _member: Member,
}

impl Share {
    /// A share of the object with this granted access.
    pub(crate) fn new(strong: Strong, access: u32) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                strong,
                access,
                _member: SHARES.enter(),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// The object.
    pub(crate) fn object(&self) -> &SyncObject {
        self.strong.object()
    }

    /// The access of this handle.
    pub(crate) fn access(&self) -> u32 {
        self.access
    }

    /// What a handle opened from this share may do.
    pub(crate) fn rights(&self) -> Rights {
        access::rights(self.access)
    }
}

impl ObjectFile for Share {
    const NAME: &'static CStr = c"[DxgkSharedSyncObject]";

    fn show(&self, m: &SeqFile) {
        let header = self.object().header();

        seq_print!(m, "dxg-type:\tDxgkSharedSyncObject\n");
        seq_print!(m, "dxg-object:\t{}\n", header.id());
        seq_print!(m, "dxg-access:\t{:#x}\n", self.access);
        seq_print!(m, "dxg-kind:\t{}\n", header.kind().name());
        match self.object() {
            SyncObject::Fence(fence) => seq_print!(m, "dxg-value:\t{}\n", fence.value()),
            SyncObject::Legacy(object) => object.show(m),
        }
        seq_print!(m, "dxg-openings:\t{}\n", header.openings.load(Relaxed));
    }
}
