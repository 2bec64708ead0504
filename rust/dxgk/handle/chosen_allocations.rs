// SPDX-License-Identifier: GPL-2.0

//! The allocations that a call names: those of a resource, or a list (MEM-9).

use super::{
    open_allocation::OpenAllocation,
    HandleTable, //
};
use crate::{
    dxgk::{
        memory::allocation::Allocation,
        small_vec::InlineVec, //
    },
    error::{
        DxgResult,
        Status, //
    }, //
};
use kernel::sync::Arc;

/// What a call names.
pub(crate) struct ChosenAllocations {
    /// In the order of the list, or of the resource.
    pub(crate) allocations: InlineVec<Arc<Allocation>>,
    /// How many elements the caller's array has: one for a resource.
    pub(crate) count: usize,
    may_write: bool,
}

impl ChosenAllocations {
    /// ACCESS_DENIED unless all handles may write (RES-35).
    pub(crate) fn check_may_write(&self) -> DxgResult {
        if !self.may_write {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(())
    }
}

impl HandleTable {
    /// The allocation behind a handle that was made on `device`, or on none.
    pub(crate) fn allocation_of(&self, device: u32, local: u32) -> DxgResult<Arc<OpenAllocation>> {
        let found = self.allocation(local)?;

        found.check_device(device)?;
        Ok(found.what)
    }

    /// Those of the resource behind a handle that was made on `device`, or on none.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn allocations_of_resource(
        &self,
        device: u32,
        local: u32,
    ) -> DxgResult<ChosenAllocations> {
        let found = self.resource(local)?;

        found.check_device(device)?;
        Ok(ChosenAllocations {
            allocations: found.what.resource().allocations()?,
            count: 1,
            may_write: found.what.may_write(),
        })
    }

    /// Those behind handles that were made on `device`, or on none.
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn allocations_of_list(
        &self,
        device: u32,
        locals: &[u32],
    ) -> DxgResult<ChosenAllocations> {
        let mut chosen = ChosenAllocations {
            allocations: InlineVec::with_capacity(locals.len())?,
            count: locals.len(),
            may_write: true,
        };

        for local in locals {
            let opened = self.allocation_of(device, *local)?;

            chosen.may_write &= opened.open_resource.may_write();
            chosen.allocations.push(opened.allocation.clone());
        }
        Ok(chosen)
    }
}
