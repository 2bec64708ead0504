// SPDX-License-Identifier: GPL-2.0

//! Making NT handles: by sharing objects, by name, and from another NT handle (RES-17, RES-32 to
//! RES-37, RES-43).

use super::{
    name::Name,
    name_table::{
        Named,
        Reservation,
        ReservedName, //
    },
    Members,
    Names,
    NtHandle,
    Share,
    ShareRef, //
};
use crate::{
    dxgk::process::Process,
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        access::Type,
        handle,
        name_mode::Rule,
        share_rules::{
            self,
            Duplication, //
        }, //
    },
    sys::file::object_file::PendingFd, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The name that a new share is to have.
pub(crate) struct NewName {
    pub(crate) name: Name,
    /// Who else may open it (RES-45).
    pub(crate) mode: u32,
    /// If the name is taken, the share that has it is opened instead.
    pub(crate) open_if: bool,
}

/// What a process is to share.
pub(crate) struct ShareRequest<'a> {
    /// Local handles of the objects, in order.
    pub(crate) locals: &'a [u32],
    /// The access asked for.
    pub(crate) desired: u32,
    /// The name, if the share gets one.
    pub(crate) name: Option<NewName>,
    /// The descriptor stays open across exec.
    pub(crate) inherit: bool,
}

/// A new NT handle whose descriptor is not installed yet.
pub(crate) struct Shared<'a> {
    pub(crate) fd: PendingFd,
    /// Its name, if that is new. It still has to be committed.
    pub(crate) name: Option<ReservedName<'a, Arc<Share>>>,
    /// Whether it is of a share that had the name already.
    pub(crate) exists: bool,
}

impl Process {
    /// Prepares an NT handle for objects of this process.
    ///
    /// Context: a system call of the process, no locks held.
    pub(crate) fn share_objects<'a>(
        &self,
        names: &'a Arc<Names>,
        request: ShareRequest<'_>,
    ) -> DxgResult<Shared<'a>> {
        let mut objects = KVec::with_capacity(request.locals.len(), GFP_KERNEL_ACCOUNT)?;

        for local in request.locals {
            objects.push(self.handles.shareable(*local)?, GFP_KERNEL_ACCOUNT)?;
        }

        let (members, may) = Members::of(objects)?;
        let ty = members.first.object().access_type();
        let (wanted, access) = share_rules::grant(ty, request.desired, may)?;
        let shared = |share, access, name, exists| {
            Ok(Shared {
                fd: NtHandle::prepare(share, access, request.inherit)?,
                name,
                exists,
            })
        };
        let Some(NewName {
            name,
            mode,
            open_if,
        }) = request.name
        else {
            return shared(ShareRef::first(members, None)?, access, None, false);
        };
        let rule = Rule { ty, mode, may };
        let open_if = open_if.then_some(wanted);
        let share = ShareRef::first(members, Some((name.clone(), names.clone())))?;

        match names.reserve(&self.account, &name, rule, &share, open_if)? {
            Reservation::Reserved(name) => shared(share, access, Some(name), false),
            Reservation::Exists((share, access)) => shared(share, access, None, true),
        }
    }
}

impl NtHandle {
    /// A descriptor of a new NT handle of a share, with this access.
    fn prepare(share: ShareRef, access: u32, inherit: bool) -> DxgResult<PendingFd> {
        let handle = Self::new(share, access)?;

        Ok(PendingFd::new(handle, handle::LAST_FD, !inherit)?)
    }

    /// A descriptor of a new NT handle of the share that has this name.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn open_by_name(
        names: &Names,
        name: &Name,
        ty: Type,
        desired: u32,
        inherit: bool,
    ) -> DxgResult<PendingFd> {
        let (share, access) = names.open(name, ty, desired)?;

        Self::prepare(share, access, inherit)
    }

    /// A descriptor of another NT handle of the same share, with the same access or less (RES-17).
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn duplicate(&self, request: &Duplication) -> DxgResult<PendingFd> {
        let access = request.access(self.object().access_type(), self.access)?;
        let share = self.share().new_ref().ok_or(Status::INVALID_HANDLE)?;

        Self::prepare(share, access, request.inherits())
    }
}
