// SPDX-License-Identifier: GPL-2.0

//! Which objects may be shared together, and with how much access (RES-32, RES-33, RES-104).

use super::access;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Resource,
    /// An allocation of a resource, which cannot be shared by itself.
    Allocation,
    KeyedMutex,
    /// A synchronisation object.
    SyncObject,
}

/// An object that is to be shared. `A` identifies an adapter.
#[derive(Clone, Copy, Debug)]
pub struct Member<A> {
    /// What it is.
    pub kind: Kind,
    /// The adapter that it was made on; a keyed mutex has none.
    pub adapter: Option<A>,
    /// Whether it was made to be shared by NT handle.
    pub by_nt: bool,
    /// The access that its handle may grant, if it may grant any.
    pub access: Option<u32>,
}

/// Why a set is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// INVALID_PARAMETER.
    Invalid,
    /// ACCESS_DENIED.
    Denied,
}

/// The most access to these objects that their sharer may grant, if they make a legal set.
pub fn check_set<A: Copy + PartialEq>(members: &[Member<A>]) -> Result<u32, Refusal> {
    let adapter = members.first().and_then(|first| first.adapter);
    let is_elsewhere = |own: &Member<A>| {
        own.adapter
            .zip(adapter)
            .is_some_and(|(own, first)| own != first)
    };

    if members
        .iter()
        .any(|member| !member.by_nt || is_elsewhere(member))
    {
        return Err(Refusal::Invalid);
    }

    let may = |member: &Member<A>| member.access.ok_or(Refusal::Invalid);

    match members {
        [one] if matches!(one.kind, Kind::Resource | Kind::SyncObject) => may(one),
        [first, mutex, sync]
            if first.kind == Kind::Resource
                && mutex.kind == Kind::KeyedMutex
                && sync.kind == Kind::SyncObject =>
        {
            let (first, mutex, sync) = (may(first)?, may(mutex)?, may(sync)?);
            let bound = access::set::bound(sync).ok_or(Refusal::Denied)?;

            Ok(first & mutex & bound)
        }
        _ => Err(Refusal::Invalid),
    }
}
