// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that offer memory and take it back.

use super::{call_with_addresses, count};
use crate::node::Node;
use crate::uapi::*;
use crate::{Result, Status};

/// What is named.
#[derive(Clone, Copy)]
pub(crate) enum List<'a> {
    /// Handles of allocations.
    Allocations(&'a [u32]),
    /// Handles of resources.
    Resources(&'a [u32]),
}

impl List<'_> {
    /// How many there are.
    fn len(self) -> usize {
        let (Self::Allocations(list) | Self::Resources(list)) = self;
        list.len()
    }

    /// The addresses of resources and of allocations.
    fn addresses(self) -> (u64, u64) {
        match self {
            Self::Allocations(list) => (0, list.as_ptr() as u64),
            Self::Resources(list) => (list.as_ptr() as u64, 0),
        }
    }
}

/// OfferAllocations.
pub(crate) fn offer(
    node: &Node,
    arg: &mut D3DKMT_OFFERALLOCATIONS,
    list: List<'_>,
) -> Result<Status> {
    arg.NumAllocations = count(list.len())?;
    (arg.pResources, arg.HandleList) = list.addresses();
    // SAFETY: the address is that of the borrowed slice, only read.
    unsafe { call_with_addresses(node, arg) }
}

/// ReclaimAllocations2; returns the results.
pub(crate) fn reclaim2(
    node: &Node,
    arg: &mut D3DKMT_RECLAIMALLOCATIONS2,
    list: List<'_>,
) -> Result<Vec<u32>> {
    let mut results = vec![u32::MAX; list.len()];
    arg.NumAllocations = count(list.len())?;
    (arg.pResources, arg.HandleList) = list.addresses();
    arg.__bindgen_anon_1.pResults = results.as_mut_ptr() as u64;
    // SAFETY: the addresses are those of the borrowed slice, only read, and of the vector, which
    // has as many elements.
    unsafe { call_with_addresses(node, arg) }?;
    Ok(results)
}

/// ReclaimAllocations; returns which have lost their bytes.
pub(crate) fn reclaim(
    node: &Node,
    arg: &mut D3DKMT_RECLAIMALLOCATIONS,
    list: List<'_>,
) -> Result<Vec<u32>> {
    let mut discarded = vec![u32::MAX; list.len()];
    arg.NumAllocations = count(list.len())?;
    (arg.pResources, arg.HandleList) = list.addresses();
    arg.pDiscarded = discarded.as_mut_ptr() as u64;
    // SAFETY: as above.
    unsafe { call_with_addresses(node, arg) }?;
    Ok(discarded)
}
