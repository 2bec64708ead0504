// SPDX-License-Identifier: GPL-2.0

//! NT handles: a [`Share`] holds the objects, and each open file description, an [`NtHandle`], holds
//! the share and an access mask. Copies of a descriptor share its description (RES-13 to RES-16).

use super::{
    census::{
        Member,
        SHARES, //
    },
    object::{
        Object,
        Strong, //
    }, //
};
use crate::logic::{
    access,
    sync_flags::Rights, //
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

/// The objects of a share: one of the legal sets (RES-32).
pub(crate) struct Members {
    /// A synchronisation object, or a resource.
    pub(crate) first: Strong,
    /// The keyed mutex and the synchronisation object that go with a resource.
    pub(crate) guards: Option<(Strong, Strong)>,
}

impl Members {
    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Object> {
        let guards = self.guards.iter().flat_map(|(mutex, sync)| [mutex, sync]);

        Iterator::chain(core::iter::once(&self.first), guards).map(Strong::object)
    }
}

/// What is behind NT handles.
pub(crate) struct Share {
    members: Members,
}

impl Share {
    /// A share of these objects.
    pub(crate) fn new(members: Members) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { members }, GFP_KERNEL_ACCOUNT)?)
    }

    /// The objects.
    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// The object that decides about the type: a synchronisation object or a resource.
    pub(crate) fn object(&self) -> &Object {
        self.members.first.object()
    }
}

/// One open file description.
pub(crate) struct NtHandle {
    share: Arc<Share>,
    access: u32,
    _member: Member,
}

impl NtHandle {
    /// A description of `share` with this granted access.
    pub(crate) fn new(share: Arc<Share>, access: u32) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                share,
                access,
                _member: SHARES.enter(),
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// What it is a handle of.
    pub(crate) fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// The object that decides about the type.
    pub(crate) fn object(&self) -> &Object {
        self.share.object()
    }

    /// The access of this handle.
    pub(crate) fn access(&self) -> u32 {
        self.access
    }

    /// What a handle of a synchronisation object may do that is opened from this one.
    pub(crate) fn rights(&self) -> Rights {
        access::rights(self.access)
    }

    /// The name that `/proc/PID/fd` shows.
    pub(crate) fn file_name(&self) -> &'static CStr {
        if self.object().is_sync() {
            c"[DxgkSharedSyncObject]"
        } else {
            c"[DxgkSharedResource]"
        }
    }

    /// Prints into fdinfo.
    pub(crate) fn show(&self, m: &SeqFile) {
        let object = self.object();
        let header = object.header();
        let type_name = if object.is_sync() {
            "DxgkSharedSyncObject"
        } else {
            "DxgkSharedResource"
        };

        seq_print!(m, "dxg-type:\t{}\n", type_name);
        seq_print!(m, "dxg-object:\t{}\n", header.id());
        seq_print!(m, "dxg-access:\t{:#x}\n", self.access);
        for member in self.share.members.iter() {
            seq_print!(m, "dxg-kind:\t{}\n", member.header().kind().name());
            member.show(m);
        }
        seq_print!(m, "dxg-openings:\t{}\n", header.openings.load(Relaxed));
        seq_print!(m, "dxg-references:\t{}\n", header.references());
    }
}
