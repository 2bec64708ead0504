// SPDX-License-Identifier: GPL-2.0

//! Memory that clients offer and take back: arguments of the calls, when the bytes may be dropped,
//! and what a client is told afterwards (MEM-27, MEM-29 to MEM-33).

use super::{
    invalid_if,
    paging_rules::MAX_LISTED,
    Invalid, //
};

/// Bits of `D3DKMT_OFFER_FLAGS`.
pub mod flags {
    /// The work that is queued does not use it.
    pub const IMMEDIATELY: u32 = 1 << 0;
    /// The system memory that backs it may go, too.
    pub const ALLOW_DECOMMIT: u32 = 1 << 1;
}

/// How late offered bytes are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Before the others.
    Low,
    /// As most.
    Normal,
    /// After the others.
    High,
}

/// The eviction priority up to which an automatic offer is a low one.
const LOW: u32 = 0x5000_0000;

/// The eviction priority from which on an automatic offer is a high one.
const HIGH: u32 = 0xa000_0000;

impl Priority {
    /// The one that an eviction priority stands for.
    fn of_eviction(priority: u32) -> Self {
        match priority {
            ..=LOW => Self::Low,
            HIGH.. => Self::High,
            _ => Self::Normal,
        }
    }
}

/// What `D3DKMT_OFFER_PRIORITY` says; `None` is automatic.
fn priority_of(value: u32) -> Result<Option<Priority>, Invalid> {
    match value {
        1 => Ok(Some(Priority::Low)),
        2 => Ok(Some(Priority::Normal)),
        3 => Ok(Some(Priority::High)),
        4 => Ok(None),
        _ => Err(Invalid),
    }
}

/// What a call on offers names, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Handles of resources, at this address.
    Resources(u64, usize),
    /// Handles of allocations, at this address.
    Allocations(u64, usize),
}

impl Named {
    /// Exactly one of the lists is given, and it has a length.
    pub fn new(resources: u64, allocations: u64, count: u32) -> Result<Self, Invalid> {
        invalid_if(count == 0 || count > MAX_LISTED)?;

        // CAST: bounded above.
        let count = count as usize;

        match (resources, allocations) {
            (0, 0) => Err(Invalid),
            (0, list) => Ok(Self::Allocations(list, count)),
            (list, 0) => Ok(Self::Resources(list, count)),
            _ => Err(Invalid),
        }
    }
}

/// How something is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// `None`: as its eviction priority says.
    priority: Option<Priority>,
    /// Not only when the work is done that is queued.
    pub immediately: bool,
    allow_decommit: bool,
}

impl Request {
    /// What the members of an OfferAllocations say.
    pub fn new(priority: u32, flags: u32) -> Result<Self, Invalid> {
        let priority = priority_of(priority)?;

        invalid_if(flags & !(flags::IMMEDIATELY | flags::ALLOW_DECOMMIT) != 0)?;
        Ok(Self {
            priority,
            immediately: flags & flags::IMMEDIATELY != 0,
            allow_decommit: flags & flags::ALLOW_DECOMMIT != 0,
        })
    }

    /// The offer of an allocation with this eviction priority, by the call with this number.
    pub fn offer(&self, eviction_priority: u32, call: u64) -> Offer {
        Offer {
            priority: self
                .priority
                .unwrap_or(Priority::of_eviction(eviction_priority)),
            allow_decommit: self.allow_decommit,
            is_effective: self.immediately,
            call,
        }
    }
}

/// What a device says about an allocation that it does not need now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    priority: Priority,
    allow_decommit: bool,
    is_effective: bool,
    /// The number of the call.
    call: u64,
}

impl Offer {
    /// The work is done that was queued before this call: the offer holds now, if it is still that
    /// of the call.
    pub fn take_effect(&mut self, call: u64) {
        self.is_effective |= self.call == call;
    }
}

/// What all who have an allocation open say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Droppable {
    /// How late its bytes are dropped: as late as one of them says.
    pub priority: Priority,
    /// Whether the system memory that backs it may go, too: all of them say so.
    pub allow_decommit: bool,
}

impl Droppable {
    /// What these offers make of an allocation; `None` of them is of somebody who still needs it.
    /// Without any its bytes are not dropped.
    pub fn of(mut offers: impl Iterator<Item = Option<Offer>>) -> Option<Self> {
        let add = |all: Self, offer: Option<Offer>| {
            offer.filter(|offer| offer.is_effective).map(|offer| Self {
                priority: all.priority.max(offer.priority),
                allow_decommit: all.allow_decommit && offer.allow_decommit,
            })
        };
        let first = offers.next()?;
        let none = Self {
            priority: Priority::Low,
            allow_decommit: true,
        };

        offers.try_fold(add(none, first)?, add)
    }
}

/// Who gives way first where room is short (MEM-27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Its bytes are dropped.
    Offered(Priority),
    /// Nobody wants it to be resident.
    Idle,
    /// Values of fences, which are used in system memory from then on (FEN-64).
    FenceValues,
}

/// What became of something that is taken back: `D3DDDI_RECLAIM_RESULT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reclaimed {
    /// It is as it was.
    Ok,
    /// It is zeros.
    Discarded,
    /// There is no memory for it; it is still offered.
    NotCommitted,
}

impl Reclaimed {
    /// As the caller is told.
    pub fn code(self) -> u32 {
        match self {
            Self::Ok => 0,
            Self::Discarded => 1,
            Self::NotCommitted => 2,
        }
    }
}

/// The one result of a resource: the worst of its allocations.
pub fn of_resource(results: impl Iterator<Item = Reclaimed>) -> Reclaimed {
    results.max().unwrap_or(Reclaimed::Ok)
}

/// Bits of `D3DKMT_TRIMPROCESSCOMMITMENT_FLAGS`.
pub mod trim {
    /// It may take its time.
    pub const LAZY: u32 = 1 << 0;
    /// Only what has lost its bytes already.
    pub const ONLY_REPURPOSED: u32 = 1 << 1;
}

/// Checks the size and the flags of a TrimProcessCommitment. Whether only such memory goes whose
/// bytes are dropped already.
pub fn check_trim(size: u32, whole: usize, flags: u32) -> Result<bool, Invalid> {
    check_size(size, whole)?;
    invalid_if(flags & !(trim::LAZY | trim::ONLY_REPURPOSED) != 0)?;
    Ok(flags & trim::ONLY_REPURPOSED != 0)
}

/// Checks what a struct says about its own size.
pub fn check_size(size: u32, whole: usize) -> Result<(), Invalid> {
    // CAST: 32 bits fit a usize.
    invalid_if(size as usize != whole)
}
