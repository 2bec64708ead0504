// SPDX-License-Identifier: GPL-2.0

//! Several new handles of one call, which become usable together.

use super::{
    open_allocation::OpenAllocation,
    open_resource::{
        OpenResource,
        PendingAllocations, //
    },
    HandleTable,
    HandleTarget,
    Parent,
    Reserved, //
};
use crate::{
    dxgk::{
        memory::allocation::Allocation,
        object::ReservedGlobal,
        small_vec::{
            InlineVec,
            SmallVec, //
        }, //
    },
    error::DxgResult, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// So many take no memory: those of a resource with one allocation.
const FEW: usize = 2;

/// Reserved handles, in the order of their numbers. Dropping it undoes everything.
pub(crate) struct ReservedHandles<'a> {
    table: &'a HandleTable,
    reserved: SmallVec<Reserved<'a>, FEW>,
    /// Global handle of the same object, if it gets one.
    pub(crate) global: Option<ReservedGlobal<'a>>,
    /// The allocations of an open resource, not published yet. Dropped after the handles. Few calls
    /// have any, and all of them move this struct.
    pending: Option<KBox<PendingAllocations>>,
}

impl<'a> ReservedHandles<'a> {
    /// None yet; room for `count`.
    pub(crate) fn new(table: &'a HandleTable, count: usize) -> DxgResult<Self> {
        Ok(Self {
            table,
            reserved: SmallVec::with_capacity(count)?,
            global: None,
            pending: None,
        })
    }

    /// Reserves one more and returns its number.
    pub(crate) fn reserve(
        &mut self,
        item: HandleTarget,
        parent: Option<&Parent>,
    ) -> DxgResult<u32> {
        self.reserved.reserve(1)?;

        let reserved = self.table.reserve(item, parent)?;
        let number = reserved.handle();

        self.reserved.push(reserved);
        Ok(number)
    }

    /// Reserves handles of these allocations. An open resource with a handle of its own has still
    /// to get their numbers.
    pub(crate) fn reserve_allocations(
        &mut self,
        open_resource: &Arc<OpenResource>,
        allocations: &[Arc<Allocation>],
        parent: Option<&Parent>,
    ) -> DxgResult {
        let device = parent.map(|parent| &*parent.device);

        for allocation in allocations {
            let opened = OpenAllocation::new(open_resource, allocation, device)?;

            self.reserve(HandleTarget::Allocation(opened), parent)?;
        }
        Ok(())
    }

    /// The numbers of the last handles, in a list of their own.
    fn last_numbers(&self, count: usize) -> DxgResult<InlineVec<u32>> {
        let mut numbers = InlineVec::with_capacity(count)?;

        for number in self
            .numbers()
            .skip(self.reserved.len().saturating_sub(count))
        {
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Reserves the handle of a new open resource and those of its allocations.
    pub(crate) fn reserve_resource(
        &mut self,
        open_resource: &Arc<OpenResource>,
        allocations: &[Arc<Allocation>],
        parent: Option<&Parent>,
    ) -> DxgResult {
        self.reserve(HandleTarget::Resource(open_resource.clone()), parent)?;
        self.reserve_allocations(open_resource, allocations, parent)?;
        open_resource.start_with(self.last_numbers(allocations.len())?);
        Ok(())
    }

    /// Reserves handles of allocations that a resource gets which has handles already (RES-24).
    pub(crate) fn reserve_more(
        &mut self,
        open_resource: Arc<OpenResource>,
        allocations: InlineVec<Arc<Allocation>>,
        parent: Option<&Parent>,
    ) -> DxgResult {
        self.reserve_allocations(&open_resource, &allocations, parent)?;

        let numbers = self.last_numbers(allocations.len())?;

        let pending = PendingAllocations::reserve(open_resource, numbers, allocations)?;

        self.pending = Some(KBox::new(pending, GFP_KERNEL_ACCOUNT)?);
        Ok(())
    }

    /// The handles as user space will see them, in the order in which they were reserved.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.reserved.iter().map(Reserved::handle)
    }

    /// The first number.
    pub(crate) fn first(&self) -> u32 {
        self.numbers().next().unwrap_or(0)
    }

    /// Makes all of them usable.
    pub(crate) fn commit(mut self) {
        if let Some(pending) = &mut self.pending {
            pending.commit();
        }
        while let Some(handle) = self.reserved.pop() {
            let number = handle.handle();

            if handle.commit()
                && self
                    .pending
                    .as_ref()
                    .is_some_and(|pending| pending.is_too_late())
            {
                // A call that destroyed the resource meanwhile could not destroy handles that did
                // not resolve yet.
                let _gone = self
                    .table
                    .destroy(number, |item| matches!(item, HandleTarget::Allocation(_)));
            }
        }
        if let Some(global) = self.global.take() {
            global.commit();
        }
    }
}

impl Drop for ReservedHandles<'_> {
    /// The last number first, so that all of them are given back (RES-4).
    fn drop(&mut self) {
        while let Some(handle) = self.reserved.pop() {
            drop(handle);
        }
    }
}
