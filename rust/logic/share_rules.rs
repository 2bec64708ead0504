// SPDX-License-Identifier: GPL-2.0

//! Which objects may be shared together, and with how much access (RES-17, RES-32 to RES-36,
//! RES-104).
//!
//! The rules of ShareObjects are functions in the order in which they are checked. After the
//! arguments, the object attributes are copied (see [`super::attribute_rules`]). Then the handles
//! of the objects are copied and looked up. Each may fail with a status of its own. The name comes
//! last.

use super::{
    access::{
        self,
        Type,
        Wanted, //
    },
    invalid_if,
    Invalid, //
};

/// Most objects of one share (RES-32).
pub const MAX_OBJECTS: usize = 3;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
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
    pub kind: MemberKind,
    /// The adapter that it was made on; a keyed mutex has none.
    pub adapter: Option<A>,
    /// Whether it was made to be shared by NT handle.
    pub by_nt: bool,
    /// The access that its handle may grant, if it may grant any.
    pub access: Option<u32>,
}

/// Why objects are not shared.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// INVALID_PARAMETER.
    Invalid,
    /// ACCESS_DENIED.
    Denied,
}

/// Checks how many objects a call shares, and that its pointers are not NULL.
pub fn check_arguments(count: u32, handles: u64, output: u64) -> Result<(), Invalid> {
    // CAST: a small number.
    let max = MAX_OBJECTS as u32;

    invalid_if(!(1..=max).contains(&count) || handles == 0 || output == 0)
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
        [one] if matches!(one.kind, MemberKind::Resource | MemberKind::SyncObject) => may(one),
        [first, mutex, sync]
            if first.kind == MemberKind::Resource
                && mutex.kind == MemberKind::KeyedMutex
                && sync.kind == MemberKind::SyncObject =>
        {
            let (first, mutex, sync) = (may(first)?, may(mutex)?, may(sync)?);
            let bound = access::set::bound(sync).ok_or(Refusal::Denied)?;

            Ok(first & mutex & bound)
        }
        _ => Err(Refusal::Invalid),
    }
}

/// What a caller asks for with `desired`, and the access that the new NT handle gets, if `may` is
/// the most that can be granted.
pub fn grant(ty: Type, desired: u32, may: u32) -> Result<(Wanted, u32), Refusal> {
    let wanted = Wanted::new(ty, desired).ok_or(Refusal::Invalid)?;
    let access = wanted.within(may).ok_or(Refusal::Denied)?;

    Ok((wanted, access))
}

/// Bits of a DUP_NT.
pub mod dup {
    /// The access of the source.
    pub const SAME_ACCESS: u32 = 1 << 0;
    /// The descriptor stays open across exec.
    pub const INHERIT: u32 = 1 << 1;
}

/// A DUP_NT as the rules see it (RES-17). They are methods, in the order in which they are checked.
#[derive(Clone, Copy)]
pub struct Duplication {
    /// Bits of [`dup`].
    pub flags: u32,
    /// The access asked for.
    pub desired: u32,
}

impl Duplication {
    fn has(&self, mask: u32) -> bool {
        self.flags & mask != 0
    }

    /// The arguments by themselves.
    pub fn check(&self) -> Result<(), Invalid> {
        invalid_if(
            self.has(!(dup::SAME_ACCESS | dup::INHERIT))
                || self.has(dup::SAME_ACCESS) && self.desired != 0,
        )
    }

    /// The access of the new NT handle; `own` is that of the source.
    pub fn access(&self, ty: Type, own: u32) -> Result<u32, Refusal> {
        if self.has(dup::SAME_ACCESS) {
            return Ok(own);
        }

        let (_, access) = grant(ty, self.desired, own)?;

        Ok(access)
    }

    /// Whether the descriptor stays open across exec.
    pub fn inherits(&self) -> bool {
        self.has(dup::INHERIT)
    }
}
