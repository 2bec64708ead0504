// SPDX-License-Identifier: GPL-2.0

//! The set of objects that a call shares together (RES-32, RES-33).

use super::Members;
use crate::{
    dxgk::{
        adapter::Luid,
        handle::Shareable,
        object::Object, //
    },
    error::{
        DxgError,
        DxgResult,
        Status, //
    },
    logic::{
        share_rules::{
            self,
            Member,
            MemberKind,
            Refusal,
            MAX_OBJECTS, //
        },
        sync_flags::Sharing, //
    }, //
};
use kernel::prelude::*;

impl From<Refusal> for DxgError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid => Status::INVALID_PARAMETER,
            Refusal::Denied => Status::ACCESS_DENIED,
        }
        .into()
    }
}

/// An object as the rules see it.
fn member(found: &Shareable) -> Member<Luid> {
    let object = found.strong.object();
    let header = object.header();

    Member {
        kind: match object {
            _ if found.allocation.is_some() => MemberKind::Allocation,
            Object::Resource(_) => MemberKind::Resource,
            Object::KeyedMutex(_) => MemberKind::KeyedMutex,
            Object::Fence(_) | Object::Legacy(_) => MemberKind::SyncObject,
        },
        adapter: header.adapter.as_ref().map(|adapter| adapter.luid),
        by_nt: header.sharing == Sharing::Nt,
        access: found.shareable,
    }
}

impl Members {
    /// The set that these objects make, if it is a legal one, and the access that may be given
    /// away.
    pub(crate) fn of(mut objects: KVec<Shareable>) -> DxgResult<(Self, u32)> {
        let first = objects.first().ok_or(Status::INVALID_PARAMETER)?;
        let mut members = [member(first); MAX_OBJECTS];

        for (place, found) in members.iter_mut().zip(&objects) {
            *place = member(found);
        }

        let members = members
            .get(..objects.len())
            .ok_or(Status::INVALID_PARAMETER)?;
        let access = share_rules::check_set(members)?;
        let mut last = || objects.pop().map(|found| found.strong);
        let (sync, mutex, first) = (last(), last(), last());

        // A legal set has one member or three.
        let (first, others) = match (first, mutex, sync) {
            (Some(first), Some(mutex), Some(sync)) => (first, Some((mutex, sync))),
            (None, None, Some(only)) => (only, None),
            _ => return Err(Status::INVALID_PARAMETER.into()),
        };

        Ok((Self { first, others }, access))
    }
}
