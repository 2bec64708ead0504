// SPDX-License-Identifier: GPL-2.0

//! Calls on allocations that are there: which a call names (MEM-9), and which may be destroyed
//! together (RES-28, RES-30).

use super::{
    allocation_rules::MAX_ALLOCATIONS,
    invalid_if,
    Invalid, //
};

/// What a call on allocations names.
#[derive(Debug, PartialEq, Eq)]
pub enum NamedAllocations {
    /// All those of the resource with this handle.
    Resource(u32),
    /// Those in a list of this length.
    List(usize),
}

impl NamedAllocations {
    /// Exactly one of the two is given: the handle of a resource, or a list with a length.
    pub fn new(resource: u32, list: u64, count: u32) -> Result<Self, Invalid> {
        if resource != 0 {
            invalid_if(list != 0 || count != 0)?;
            return Ok(Self::Resource(resource));
        }
        invalid_if(list == 0 || count == 0 || count > MAX_ALLOCATIONS)?;
        // CAST: bounded above.
        Ok(Self::List(count as usize))
    }
}

/// Flags of a destruction. Handles are dead when the call returns, with either of them.
pub mod destroy {
    /// Pending commands of the device are ignored.
    pub const ASSUME_NOT_IN_USE: u32 = 1 << 0;
    /// The memory is reclaimed when the call returns.
    pub const SYNCHRONOUS: u32 = 1 << 1;
}

/// Most handles of one destruction.
pub const MAX_DESTROYED: u32 = 65536;

/// Checks the flags of a destruction: first of all.
pub fn check_destroy_flags(flags: u32) -> Result<(), Invalid> {
    invalid_if(flags & !(destroy::ASSUME_NOT_IN_USE | destroy::SYNCHRONOUS) != 0)
}

/// How many handles a destruction without a resource lists.
pub fn check_destroy_list(list: u64, count: u32) -> Result<usize, Invalid> {
    invalid_if(count != 0 && (list == 0 || count > MAX_DESTROYED))?;
    // CAST: bounded above.
    Ok(count as usize)
}

/// Whether no handle of a sorted list is repeated.
pub fn are_different(sorted: &[u32]) -> bool {
    !sorted
        .windows(2)
        .any(|pair| matches!(pair, [one, next] if one == next))
}

/// The allocations of a list, seen one after the other. The resource that all of them must belong
/// to is that of the first one which is not standalone.
#[derive(Default)]
pub struct CommonResource(Option<u64>);

impl CommonResource {
    /// Whether one more may be destroyed with the others on `device`: its handle was made there or
    /// on none, and its resource is theirs; a standalone one has none.
    pub fn accepts(&mut self, device: u32, own: Option<u32>, resource: Option<u64>) -> bool {
        own.is_none_or(|own| own == device)
            && resource.is_none_or(|resource| *self.0.get_or_insert(resource) == resource)
    }
}
