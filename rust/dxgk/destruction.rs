// SPDX-License-Identifier: GPL-2.0

//! DestroyAllocation of a list of handles (RES-28, RES-29, RES-82).
//!
//! What belongs together is looked for once: every open resource forgets its handles in one go, and
//! the resource lets go of its allocations in one go. So a list costs in proportion to its length
//! and to what its open resources have, in whatever order the handles were made. Once the handles
//! are taken nothing may fail, so that all memory is taken before.

use super::{
    handle::{
        open_allocation::OpenAllocation,
        Claimed,
        HandleTarget, //
    },
    memory::allocation::Allocation, //
};
use crate::{
    logic::groups,
    sys::sort::sort_pairs, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// See the module.
pub(crate) struct Destruction {
    /// The address of an open resource, and which of the handles is one of it.
    open_resources: KVVec<[u64; 2]>,
    /// Room for allocations that are given up.
    gone: KVVec<Arc<Allocation>>,
}

impl Destruction {
    /// Of a list with `count` handles.
    pub(crate) fn new(count: usize) -> Result<Self> {
        Ok(Self {
            open_resources: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
            gone: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
        })
    }

    /// Ends the handles `claimed`, which are these numbers. They are freed when `claimed` is
    /// dropped.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn run(mut self, claimed: &Claimed, sorted: &[u32]) {
        let opened = |place: usize| claimed.item(place).and_then(allocation);
        let mut common = None;

        for place in 0..sorted.len() {
            let Some(opened) = opened(place) else {
                continue;
            };
            let open_resource = &opened.open_resource;

            if open_resource.has_resource_handle {
                // There is room for all of them. CAST: both fit 64 bits.
                let _room = self
                    .open_resources
                    .push_within_capacity([Arc::as_ptr(open_resource).addr() as u64, place as u64]);
            }
            if !opened.give_up() {
                continue;
            }
            if open_resource.resource().description.alone {
                open_resource.resource().remove_given_up(&mut self.gone);
            } else {
                // All that are not alone have it in common.
                common = Some(open_resource.resource());
            }
        }

        sort_pairs(&mut self.open_resources);
        for place in groups::firsts(&self.open_resources) {
            // CAST: it was a place in a list.
            if let Some(opened) = opened(place as usize) {
                opened.open_resource.forget_handles(sorted);
            }
        }
        if let Some(resource) = common {
            resource.remove_given_up(&mut self.gone);
        }
    }
}

/// The allocation that a handle stands for.
fn allocation(item: &HandleTarget) -> Option<&OpenAllocation> {
    match item {
        HandleTarget::Allocation(opened) => Some(opened),
        _ => None,
    }
}
