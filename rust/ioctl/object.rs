// SPDX-License-Identifier: GPL-2.0

//! Calls about any object: queries and more handles of it (RES-15, RES-17, RES-78).

use super::{
    call::{
        by_descriptor,
        invalid_if,
        nt_handle,
        Call, //
    },
    commit::Commit,
    target::OnHandle, //
};
use crate::{
    dxgk::{
        handle::more_handles::Part,
        object::{
            Object,
            Strong, //
        },
        process::Process,
        share::{
            NtHandle,
            Share, //
        },
        stats::ObjectKind, //
    },
    error::{
        DxgResult,
        Status, //
    },
    file::weak::WeakFile,
    logic::share_rules::Duplication,
    sys::{
        file::object_file::PendingFd,
        user, //
    },
    uapi::*, //
};
use kernel::sync::Arc;

/// The object of a query.
struct Subject {
    strong: Strong,
    kinds: [u32; 3],
    members: u32,
    access: u32,
    /// The share, if it is an NT handle.
    share: Option<Arc<Share>>,
}

impl Subject {
    fn one(strong: Strong, kind: ObjectKind, access: u32) -> Self {
        Self {
            strong,
            kinds: [kind.number(), 0, 0],
            members: 1,
            access,
            share: None,
        }
    }

    fn local(call: Call<'_>, local: u32) -> DxgResult<Self> {
        let found = call.process.handles.shareable(local)?;
        let kind = match &found.allocation {
            Some(_) => ObjectKind::Allocation,
            None => found.strong.object().header().kind(),
        };

        Ok(Self::one(found.strong, kind, found.access))
    }

    fn global(call: Call<'_>, global: u32) -> DxgResult<Self> {
        let strong = call.open_global(global)?;
        let kind = strong.object().header().kind();
        let access = strong.object().access_type().all();

        Ok(Self::one(strong, kind, access))
    }

    fn nt(handle: &NtHandle) -> DxgResult<Self> {
        let members = handle.share().members();
        let strong = handle.strong()?;
        let mut subject = Self::one(strong, handle.object().header().kind(), handle.access());

        subject.members = 0;
        subject.share = Some(handle.share().clone());
        for (place, member) in subject.kinds.iter_mut().zip(members.iter()) {
            *place = member.header().kind().number();
            subject.members += 1;
        }
        Ok(subject)
    }

    /// Fills the outputs. `process` is that of the caller, if it is known.
    fn answer(&self, process: Option<&Process>, args: &mut opendxg_query_object) -> DxgResult {
        let object = self.strong.object();
        let header = object.header();

        self.answer_name(args)?;
        args.type_ = type_of(header.kind());
        [args.kind, ..] = self.kinds;
        args.member_count = self.members;
        args.member_kinds = self.kinds;
        args.access = self.access;
        args.object_id = header.id();
        args.generation = header.attachments().generation();
        // Without the one that this call has taken.
        args.references = references(object).saturating_sub(1);
        args.local_references = process.map_or(0, |process| header.openers.of(&process.mappings));
        args.allocation_count = match object {
            Object::Resource(resource) => resource.extent().0,
            _ => 0,
        };
        args.creator_uid = header.creator.uid_for_caller();
        args.alive = 1;
        (args.adapter_luid_low, args.adapter_luid_high) = header
            .adapter
            .as_ref()
            .map_or((0, 0), |adapter| (adapter.luid.low, adapter.luid.high));
        Ok(())
    }

    /// Copies the name out, if there is one and the caller wants it.
    fn answer_name(&self, args: &mut opendxg_query_object) -> DxgResult {
        let name = self.share.as_ref().and_then(|share| share.name());
        let path = name.map_or(&[][..], |name| name.path());
        // CAST: at most 1024 units.
        let size = size_of_val(path) as u32;

        if args.name != 0 && size > args.name_size {
            args.name_size = size;
            return Err(Status::BUFFER_TOO_SMALL.into());
        }
        if args.name != 0 && size != 0 {
            user::write_slice(args.name, path)?;
        }
        args.name_size = size;
        Ok(())
    }
}

/// The type of an object of this kind.
fn type_of(kind: ObjectKind) -> u32 {
    match kind {
        ObjectKind::Resource | ObjectKind::Allocation => OPENDXG_TYPE_RESOURCE,
        ObjectKind::KeyedMutex => OPENDXG_TYPE_KEYED_MUTEX,
        _ => OPENDXG_TYPE_SYNC_OBJECT,
    }
}

/// How many references there are, without those of dma-bufs that nobody has.
fn references(object: &Object) -> u32 {
    let references = object.header().references();
    let unused = match object {
        Object::Resource(resource) => resource.drop_unused_exports(),
        _ => 0,
    };

    references.saturating_sub(unused)
}

/// Checks what all queries have in common.
fn check_query(args: &opendxg_query_object) -> DxgResult {
    invalid_if(args.flags != 0 || args.reserved != 0 || args.name == 0 && args.name_size != 0)
}

/// DXG_IOCTL_QUERY_OBJECT (0x82): what a handle of any kind stands for.
pub(super) fn query(call: Call<'_>, args: &mut opendxg_query_object) -> DxgResult {
    check_query(args)?;
    if args.handle_type == OPENDXG_HANDLE_WEAK {
        return query_weak(call, args);
    }

    let subject = match args.handle_type {
        OPENDXG_HANDLE_LOCAL => Subject::local(call, number(args.handle)?)?,
        OPENDXG_HANDLE_GLOBAL => Subject::global(call, number(args.handle)?)?,
        OPENDXG_HANDLE_NT => Subject::nt(&*nt_handle(args.handle)?)?,
        _ => return Err(Status::INVALID_PARAMETER.into()),
    };

    subject.answer(Some(call.process), args)
}

/// The value of a local or global handle.
pub(super) fn number(handle: u64) -> DxgResult<u32> {
    u32::try_from(handle).map_err(|_| Status::INVALID_PARAMETER.into())
}

/// A retired object has only an id, a kind and the access of its handles left.
fn query_weak(call: Call<'_>, args: &mut opendxg_query_object) -> DxgResult {
    let weak = by_descriptor::<WeakFile>(args.handle)?;
    let weak_target = weak.weak_target();

    if let Some(strong) = Strong::of_weak(weak_target) {
        return Subject::one(strong, weak_target.kind(), weak.access())
            .answer(Some(call.process), args);
    }
    *args = opendxg_query_object {
        handle: args.handle,
        handle_type: args.handle_type,
        name: args.name,
        type_: type_of(weak_target.kind()),
        kind: weak_target.kind().number(),
        member_count: 1,
        member_kinds: [weak_target.kind().number(), 0, 0],
        access: weak.access(),
        object_id: weak_target.object_id(),
        ..user::zeroed()
    };
    Ok(())
}

/// DXG_IOCTL_QUERY_OBJECT (0x82) on an NT handle. Counts no local handles: the caller need not have
/// the device open.
pub(super) fn query_handle(on: OnHandle<'_>, args: &mut opendxg_query_object) -> DxgResult {
    check_query(args)?;
    on.check(args.handle, args.handle_type)?;
    Subject::nt(on.0)?.answer(None, args)
}

/// DXG_IOCTL_DUP_LOCAL (0xac): another local handle of an object, or a handle of one of its
/// allocations.
pub(super) fn dup_local<'a>(
    call: Call<'a>,
    args: &mut opendxg_dup_local,
) -> DxgResult<impl Commit + 'a> {
    invalid_if(args.reserved != 0)?;

    let part = match args.index {
        OPENDXG_WHOLE => Part::Whole,
        index => Part::Allocation(index),
    };
    let reserved = call.process.duplicate(args.handle, part)?;

    args.new_handle = reserved.handle();
    Ok(reserved)
}

/// DXG_IOCTL_GET_CONTAINER (0xad): a handle of the resource that an allocation belongs to.
pub(super) fn get_container<'a>(
    call: Call<'a>,
    args: &mut opendxg_get_container,
) -> DxgResult<impl Commit + 'a> {
    let reserved = call.process.open_container(args.allocation)?;

    args.container = reserved.handle();
    Ok(reserved)
}

/// DXG_IOCTL_DUP_NT (0xa3): another NT handle of the same objects, with the same access or less.
pub(super) fn dup_nt(_call: Call<'_>, args: &mut opendxg_dup_nt) -> DxgResult<impl Commit> {
    invalid_if(args.handle_type != OPENDXG_HANDLE_NT)?;
    dup_description(&*nt_handle(args.handle)?, args)
}

/// DXG_IOCTL_DUP_NT (0xa3) on an NT handle.
pub(super) fn dup_handle(on: OnHandle<'_>, args: &mut opendxg_dup_nt) -> DxgResult<impl Commit> {
    on.check(args.handle, args.handle_type)?;
    dup_description(on.0, args)
}

/// Another open file description of the share of `source`.
fn dup_description(source: &NtHandle, args: &mut opendxg_dup_nt) -> DxgResult<PendingFd> {
    let request = Duplication {
        flags: args.flags,
        desired: args.access,
    };

    invalid_if(args.reserved != 0)?;
    request.check()?;

    let fd = source.duplicate(&request)?;

    args.new_handle = u64::from(fd.fd());
    Ok(fd)
}
