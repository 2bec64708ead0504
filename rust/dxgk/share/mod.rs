// SPDX-License-Identifier: GPL-2.0

//! NT handles: a [`Share`] holds the objects, and each open file description, an [`NtHandle`],
//! holds the share and an access mask. Copies of a descriptor share its description (RES-13 to
//! RES-16).
//!
//! A share has a name as long as NT handles hold it. Calls in flight may keep the share a little
//! longer, without a name.

pub(crate) mod creation;
pub(crate) mod global_access;
pub(crate) mod global_table;
pub(crate) mod name;
pub(crate) mod name_table;
pub(crate) mod openers;
pub(crate) mod set;

use self::{
    name::Name,
    name_table::{
        NameTable,
        Named, //
    }, //
};
use super::{
    object::{
        Object,
        Strong, //
    },
    stats::{
        Counted,
        CountedOn,
        Stats,
        SHARES, //
    },
    sync::{
        cross_adapter::CrossAdapter,
        interrupted_waits::InterruptedWaits, //
    }, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access,
        sync_flags::Rights, //
    },
    sys::{
        alloc::pin_arc,
        strong_count::StrongCount,
        task::credentials::Credentials, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::Arc, //
};

/// The objects of a share: one of the legal sets (RES-32).
pub(crate) struct Members {
    /// A synchronisation object, or a resource.
    pub(crate) first: Strong,
    /// The keyed mutex and the synchronisation object that are shared with a resource.
    pub(crate) others: Option<(Strong, Strong)>,
}

impl Members {
    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Object> {
        let others = self.others.iter().flat_map(|(mutex, sync)| [mutex, sync]);

        Iterator::chain(core::iter::once(&self.first), others).map(Strong::object)
    }

    /// What cross-adapter fences among them have more than others.
    fn cross_adapter(&self) -> impl Iterator<Item = &CrossAdapter> {
        self.iter().filter_map(|object| match object {
            Object::Fence(fence) => fence.cross_adapter(),
            _ => None,
        })
    }
}

/// The table of names.
pub(crate) type Names = NameTable<Arc<Share>>;

/// The objects behind NT handles, and their name.
pub(crate) struct Share {
    members: Members,
    /// With the table that it may be in.
    name: Option<(Name, Arc<Names>)>,
    /// How many [`ShareRef`] there are.
    handles: StrongCount,
}

impl Share {
    /// The name it was given, if any.
    pub(crate) fn name(&self) -> Option<&Name> {
        self.name.as_ref().map(|(name, _)| name)
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

impl Named for Arc<Share> {
    type Ref = ShareRef;

    fn new_ref(&self) -> Option<ShareRef> {
        self.handles.inc_not_zero().then(|| ShareRef(self.clone()))
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

/// One NT handle's reference to a share. The last one removes the name (RES-42).
pub(crate) struct ShareRef(Arc<Share>);

impl ShareRef {
    /// The first reference to a new share of these objects. A name still has to be reserved and
    /// committed in the table that comes with it.
    pub(crate) fn first(
        members: Members,
        name: Option<(Name, Arc<Names>)>,
    ) -> Result<Self, AllocError> {
        let share = Arc::new(
            Share {
                members,
                name,
                handles: StrongCount::new(),
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        share.members.cross_adapter().for_each(CrossAdapter::shared);
        Ok(Self(share))
    }
}

impl core::ops::Deref for ShareRef {
    type Target = Arc<Share>;

    fn deref(&self) -> &Arc<Share> {
        &self.0
    }
}

impl CountedOn for ShareRef {
    fn stats(&self) -> Option<&Arc<Stats>> {
        self.object().header().stats()
    }
}

impl Drop for ShareRef {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        if self.0.handles.dec_and_test() {
            let members = &self.0.members;

            members.cross_adapter().for_each(CrossAdapter::unshared);
            if let Some((name, names)) = &self.0.name {
                names.remove(name, &self.0);
            }
        }
    }
}

/// One open file description.
#[pin_data]
pub(crate) struct NtHandle {
    share: Counted<ShareRef, SHARES>,
    access: u32,
    /// The interrupted waits of calls on its descriptors.
    #[pin]
    pub(crate) interrupted: InterruptedWaits,
}

impl NtHandle {
    /// An open file description of a share with this granted access.
    fn new(share: ShareRef, access: u32) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                share: Counted::new(share),
                access,
                interrupted <- InterruptedWaits::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// What all NT handles of the objects have in common.
    pub(crate) fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// The object that decides about the type.
    pub(crate) fn object(&self) -> &Object {
        self.share().object()
    }

    /// A reference to the object that decides about the type; the share holds one itself.
    pub(crate) fn strong(&self) -> DxgResult<Strong> {
        let first = &self.share().members().first;

        first.another().ok_or(Status::INVALID_HANDLE.into())
    }

    /// The access of this handle.
    pub(crate) fn access(&self) -> u32 {
        self.access
    }

    /// The rights of a local handle that is opened from this one.
    pub(crate) fn rights(&self) -> Rights {
        access::rights(self.access)
    }

    /// The last descriptor is gone: nobody makes an interrupted call again.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn close(&self) {
        self.interrupted.close();
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

        // Ids, names and keys are for readers that may inspect the creator (RES-15).
        let trusted = Credentials::of_caller().may_inspect(&header.creator);

        seq_print!(m, "dxg-type:\t{}\n", type_name);
        if let Some(name) = self.share().name().filter(|_| trusted) {
            seq_print!(m, "dxg-name:\t{}\n", name);
        }
        seq_print!(m, "dxg-access:\t{:#x}\n", self.access);
        for member in self.share().members.iter() {
            if trusted {
                seq_print!(m, "dxg-object:\t{}\n", member.header().id());
            }
            seq_print!(m, "dxg-kind:\t{}\n", member.header().kind().name());
            member.show(m);
        }
        seq_print!(m, "dxg-openings:\t{}\n", header.openers.total());
        seq_print!(m, "dxg-references:\t{}\n", header.references());
        seq_print!(m, "dxg-waiters:\t{}\n", object.waiting());
        if trusted {
            header.attachments().show(m, header.id());
        }
    }
}
