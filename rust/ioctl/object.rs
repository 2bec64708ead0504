// SPDX-License-Identifier: GPL-2.0

//! Calls about any object: queries and more handles of it (RES-15, RES-17, RES-78).

use super::{
    allocation,
    handles::Handles,
    invalid_if,
    nt_handle,
    Call,
    Publish, //
};
use crate::{
    dxgk::{
        bundle::{
            Bundle,
            Origin, //
        },
        census::Kind,
        handle_table::{
            Item,
            Parent,
            Reserved, //
        },
        name_table::Named,
        object::{
            Object,
            Strong, //
        },
        open_allocation::OpenAllocation,
        opening::Opening,
        share::NtHandle, //
    },
    logic::{
        access::{
            self,
            Wanted, //
        },
        handle, //
    },
    sys::object_file::PendingFd,
    uapi::{
        status::{
            Outcome,
            Status, //
        },
        *, //
    }, //
};
/// What a query is about.
struct Subject {
    strong: Strong,
    kinds: [u32; 3],
    members: u32,
    access: u32,
}

impl Subject {
    fn one(strong: Strong, kind: Kind, access: u32) -> Self {
        Self {
            strong,
            kinds: [kind.number(), 0, 0],
            members: 1,
            access,
        }
    }

    fn local(call: Call<'_>, local: u32) -> Outcome<Self> {
        let found = call.process.handles.shareable(local)?;
        let kind = match &found.allocation {
            Some(_) => Kind::Allocation,
            None => found.strong.object().header().kind(),
        };

        Ok(Self::one(found.strong, kind, found.access))
    }

    fn global(call: Call<'_>, global: u32) -> Outcome<Self> {
        let strong = call
            .driver
            .tables
            .globals
            .open(global)
            .ok_or(Status::INVALID_PARAMETER)?;
        let kind = strong.object().header().kind();
        let access = strong.object().access_type().all();

        Ok(Self::one(strong, kind, access))
    }

    fn nt(handle: &NtHandle) -> Outcome<Self> {
        let members = handle.share().members();
        let strong = members.first.another().ok_or(Status::INVALID_HANDLE)?;
        let mut subject = Self::one(strong, handle.object().header().kind(), handle.access());

        subject.members = 0;
        for (place, member) in subject.kinds.iter_mut().zip(members.iter()) {
            *place = member.header().kind().number();
            subject.members += 1;
        }
        Ok(subject)
    }
}

/// nr 0x82.
pub(super) fn query<'a>(call: Call<'a>, args: &mut opendxg_query_object) -> Outcome<Publish<'a>> {
    invalid_if(args.flags != 0 || args.reserved != 0)?;

    let number = u32::try_from(args.handle).map_err(|_| Status::INVALID_PARAMETER)?;
    let subject = match args.handle_type {
        OPENDXG_HANDLE_LOCAL => Subject::local(call, number)?,
        OPENDXG_HANDLE_GLOBAL => Subject::global(call, number)?,
        OPENDXG_HANDLE_NT => Subject::nt(&*nt_handle(args.handle)?)?,
        _ => return Err(Status::INVALID_PARAMETER.into()),
    };
    let object = subject.strong.object();
    let header = object.header();

    args.type_ = match object {
        Object::Fence(_) | Object::Legacy(_) => OPENDXG_TYPE_SYNC_OBJECT,
        Object::Resource(_) => OPENDXG_TYPE_RESOURCE,
        Object::KeyedMutex(_) => OPENDXG_TYPE_KEYED_MUTEX,
    };
    [args.kind, ..] = subject.kinds;
    args.member_count = subject.members;
    args.member_kinds = subject.kinds;
    args.access = subject.access;
    args.object_id = header.id();
    args.generation = header.attached.generation();
    // Not the one that this call has taken.
    args.references = header.references().saturating_sub(1);
    (args.local_references, args.allocation_count) = match object {
        Object::Resource(resource) => (
            resource.bundles_of(call.process.space.identity.key()),
            resource.extent().0,
        ),
        _ => (call.process.handles.count_of(header.id()), 0),
    };
    args.creator_uid = 0;
    args.alive = 1;
    (args.adapter_luid_low, args.adapter_luid_high) = header
        .adapter
        .as_ref()
        .map_or((0, 0), |adapter| (adapter.luid.low, adapter.luid.high));
    args.name_size = 0;
    Ok(Publish::Nothing)
}

/// Reserves a new local handle, with the handles of its allocations for a resource. The first number
/// is that of the object.
pub(super) fn open_local<'a>(
    call: Call<'a>,
    strong: Strong,
    access: u32,
    parent: Option<&Parent>,
) -> Outcome<Handles<'a>> {
    let space = &call.process.space;
    let mut handles = Handles::new(call, 1)?;

    match strong.object().clone() {
        Object::Fence(_) | Object::Legacy(_) => {
            let (opening, _) = Opening::new(strong, access::rights(access), access, space)?;

            handles.reserve(Item::Sync(opening), parent)?;
        }
        Object::KeyedMutex(_) => {
            let (opening, _) = Opening::new(strong, access::rights(access), access, space)?;

            handles.reserve(Item::KeyedMutex(opening), parent)?;
        }
        Object::Resource(resource) => {
            let alone = resource.description.alone;
            let bundle = Bundle::new(strong, access, Origin::Opened, !alone, space)?;
            let allocations = resource.allocations()?;

            if !alone {
                handles.reserve(Item::Resource(bundle.clone()), parent)?;
            }
            allocation::reserve(&mut handles, parent, &bundle, &allocations)?;
        }
    }
    Ok(handles)
}

/// nr 0xac.
pub(super) fn dup_local<'a>(call: Call<'a>, args: &mut opendxg_dup_local) -> Outcome<Publish<'a>> {
    invalid_if(args.reserved != 0)?;

    let reserved = duplicate(call, args.handle, args.index)?;

    args.new_handle = reserved.handle();
    Ok(Publish::Handle(reserved))
}

/// Another handle of what `local` stands for, or of one of its allocations.
fn duplicate<'a>(call: Call<'a>, local: u32, index: u32) -> Outcome<Reserved<'a>> {
    let table = &call.process.handles;
    let space = &call.process.space;
    let found = table.shareable(local)?;
    let parent = found
        .device
        .map(|device| table.parent(device))
        .transpose()?;
    let item = match (found.strong.object().clone(), found.allocation) {
        (Object::Resource(resource), allocation) => {
            let allocation = match (allocation, index) {
                (Some(opened), OPENDXG_WHOLE) => Some(opened.allocation.clone()),
                (None, OPENDXG_WHOLE) => None,
                (None, index) => Some(
                    resource
                        .allocation(index)
                        .ok_or(Status::INVALID_PARAMETER)?,
                ),
                (Some(_), _) => return Err(Status::INVALID_PARAMETER.into()),
            };
            let whole = allocation.is_none();
            let bundle = Bundle::new(found.strong, found.access, Origin::Duplicated, whole, space)?;

            match allocation {
                Some(allocation) => Item::Allocation(OpenAllocation::new(&bundle, &allocation)?),
                None => Item::Resource(bundle),
            }
        }
        (_, _) if index != OPENDXG_WHOLE => return Err(Status::INVALID_PARAMETER.into()),
        (object, _) => {
            let opening = table.duplicate_opening(local, found.strong, space)?;

            match object {
                Object::KeyedMutex(_) => Item::KeyedMutex(opening),
                _ => Item::Sync(opening),
            }
        }
    };

    table.reserve(item, parent.as_ref())
}

/// nr 0xad.
pub(super) fn get_container<'a>(
    call: Call<'a>,
    args: &mut opendxg_get_container,
) -> Outcome<Publish<'a>> {
    let table = &call.process.handles;
    let found = table.allocation(args.allocation)?;
    let bundle = &found.what.bundle;
    let reserved = if bundle.resource().description.alone {
        duplicate(call, args.allocation, OPENDXG_WHOLE)?
    } else {
        let parent = found
            .device
            .map(|device| table.parent(device))
            .transpose()?;
        let container = Bundle::new(
            bundle.another_strong()?,
            bundle.access,
            Origin::Duplicated,
            true,
            &call.process.space,
        )?;

        table.reserve(Item::Resource(container), parent.as_ref())?
    };

    args.container = reserved.handle();
    Ok(Publish::Handle(reserved))
}

/// nr 0xa3.
pub(super) fn dup_nt<'a>(_call: Call<'a>, args: &mut opendxg_dup_nt) -> Outcome<Publish<'a>> {
    invalid_if(args.handle_type != OPENDXG_HANDLE_NT)?;

    let source = nt_handle(args.handle)?;

    dup_description(&source, args)
}

/// Another description of what `source` is a handle of.
fn dup_description<'a>(source: &NtHandle, args: &mut opendxg_dup_nt) -> Outcome<Publish<'a>> {
    let same = args.flags & OPENDXG_DUP_SAME_ACCESS != 0;

    invalid_if(
        args.flags & !(OPENDXG_DUP_SAME_ACCESS | OPENDXG_DUP_INHERIT) != 0
            || args.reserved != 0
            || same && args.access != 0,
    )?;

    let access = if same {
        source.access()
    } else {
        Wanted::new(source.object().access_type(), args.access)
            .ok_or(Status::INVALID_PARAMETER)?
            .within(source.access())
            .ok_or(Status::ACCESS_DENIED)?
    };
    let inherit = args.flags & OPENDXG_DUP_INHERIT != 0;
    let hold = source.share().hold().ok_or(Status::INVALID_HANDLE)?;
    let handle = NtHandle::new(hold, access)?;
    let fd = PendingFd::new(handle, handle::LAST_FD, !inherit)?;

    args.new_handle = u64::from(fd.fd());
    Ok(Publish::Fd(fd))
}
