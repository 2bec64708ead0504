// SPDX-License-Identifier: GPL-2.0

//! DestroyAllocation: of a resource, or of a list of handles (RES-28, RES-29, RES-82).
//!
//! The handles of a list are grouped by open resource: each open resource forgets its handles in
//! one step, and the resource withdraws its allocations in one step. So the cost is proportional
//! to the length of the list and to the size of the open resources, in any order. All memory is
//! allocated before the handles are taken; nothing fails after that.

use super::{
    handle::{
        open_allocation::OpenAllocation,
        HandleTable,
        HandleTarget,
        TakenHandles, //
    },
    memory::allocation::Allocation,
    small_vec::InlineVec, //
};
use crate::{
    error::{
        DxgResult,
        Status, //
    },
    logic::{
        allocation_lists::{
            destroy,
            CommonResource, //
        },
        groups, //
    },
    sys::sort::sort_pairs, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

impl HandleTable {
    /// Destroys these handles of allocations, all or none. They are different and in increasing
    /// order. `flags` say what becomes of commands that may use them (RES-30).
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn destroy_allocations(&self, device: u32, sorted: &[u32], flags: u32) -> DxgResult {
        // Nothing may fail any more once the handles are taken.
        let destruction = Destruction::new(sorted.len())?;
        let mut ends = Ends::new(sorted.len(), flags)?;
        let mut common = CommonResource::default();
        let taken = self.take_all_if(sorted, |own, item| {
            allocation(item).is_some_and(|opened| {
                let resource = opened.open_resource.resource();
                let id = (!resource.description.standalone).then(|| resource.header.id());

                common.accepts(device, own, id)
            })
        })?;

        for place in 0..sorted.len() {
            if let Some(HandleTarget::Allocation(opened)) = taken.item(place) {
                ends.add(opened);
            }
        }
        destruction.run(&taken, sorted);
        drop(taken);
        ends.wait();
        Ok(())
    }

    /// Destroys the handle of a resource and those of its allocations.
    ///
    /// Context: as [`HandleTable::destroy_allocations`].
    pub(crate) fn destroy_resource(&self, device: u32, local: u32, flags: u32) -> DxgResult {
        let found = self.resource(local)?;

        found.check_device(device)?;

        let destroyed = found.what;
        // The call that takes the list destroys the resource.
        let handles = destroyed.take_handles().ok_or(Status::INVALID_PARAMETER)?;
        // Without memory nobody waits, and the end comes by itself.
        let mut ends = Ends::new(handles.len(), flags).unwrap_or_default();

        for local in handles.iter().rev() {
            // Some may have been destroyed one by one.
            let _gone = self.destroy(*local, |item| {
                let own = allocation(item)
                    .filter(|opened| Arc::ptr_eq(&opened.open_resource, &destroyed));

                if let Some(opened) = own {
                    ends.add(opened);
                }
                own.is_some()
            });
        }
        self.destroy(
            local,
            |item| matches!(item, HandleTarget::Resource(own) if Arc::ptr_eq(own, &destroyed)),
        )?;
        ends.wait();
        Ok(())
    }
}

/// How allocations of one call end.
#[derive(Default)]
struct Ends {
    assume_not_in_use: bool,
    /// The call waits for them (SynchronousDestroy).
    is_synchronous: bool,
    /// Those that it waits for.
    waited: InlineVec<Arc<OpenAllocation>>,
}

impl Ends {
    /// For so many of them.
    fn new(count: usize, flags: u32) -> Result<Self, AllocError> {
        let is_synchronous = flags & destroy::SYNCHRONOUS != 0;

        Ok(Self {
            assume_not_in_use: flags & destroy::ASSUME_NOT_IN_USE != 0,
            is_synchronous,
            waited: match is_synchronous {
                true => InlineVec::with_capacity(count)?,
                false => InlineVec::new(),
            },
        })
    }

    /// One of them, whose handle is still there.
    fn add(&mut self, opened: &Arc<OpenAllocation>) {
        if self.assume_not_in_use {
            opened.assume_not_in_use();
        }
        if self.is_synchronous {
            // There is room for all of them.
            self.waited.push(opened.clone());
        }
    }

    /// Waits as long as it was asked for.
    fn wait(self) {
        for opened in &self.waited {
            opened.wait_for_end();
        }
    }
}

/// The destruction of one list of handles, with all memory that it needs.
struct Destruction {
    /// Pairs of the address of an open resource and the index of one of its handles in the list.
    open_resources: KVVec<[u64; 2]>,
    /// Room for allocations that are withdrawn.
    gone: KVVec<Arc<Allocation>>,
}

impl Destruction {
    /// Allocates what a list of `count` handles needs.
    fn new(count: usize) -> Result<Self, AllocError> {
        Ok(Self {
            open_resources: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
            gone: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
        })
    }

    /// Ends the handles in `taken`, whose numbers are `sorted`. Dropping `taken` frees them.
    ///
    /// Context: may sleep, no locks held.
    fn run(mut self, taken: &TakenHandles, sorted: &[u32]) {
        let opened = |place: usize| taken.item(place).and_then(allocation);
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
            if !opened.withdraw() {
                continue;
            }
            if open_resource.resource().description.standalone {
                open_resource.resource().remove_withdrawn(&mut self.gone);
            } else {
                // All allocations that are not standalone share this resource.
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
            resource.remove_withdrawn(&mut self.gone);
        }
    }
}

/// The allocation that a handle stands for.
fn allocation(item: &HandleTarget) -> Option<&Arc<OpenAllocation>> {
    match item {
        HandleTarget::Allocation(opened) => Some(opened),
        _ => None,
    }
}
