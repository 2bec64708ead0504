// SPDX-License-Identifier: GPL-2.0

//! A context allocation: memory that a KMD has made for a context or a device, which no client has
//! a handle of (MEM-82 to MEM-90).

use super::{
    address_space::AddressSpace,
    context_pages::ContextPages, //
};
use crate::{
    ddi::{
        context_allocation::{
            CreateContextAllocationArgs,
            UsedBy, //
        },
        types::{
            KmdError,
            KmdResult, //
        }, //
    },
    logic::gpu_va_rules::Map, //
};
use kernel::sync::Arc;

/// One of them, with its memory.
pub(super) struct ContextAllocation {
    pub(super) id: u64,
    /// What the KMD has said about it.
    pub(super) args: CreateContextAllocationArgs,
    /// What of that says whose it is.
    pub(super) used_by: UsedBy,
    pub(super) pages: Arc<ContextPages>,
    /// The address space of the process whose context uses it.
    pub(super) space: Arc<AddressSpace>,
}

impl ContextAllocation {
    /// Shows pages of it to its process. Returns the address.
    ///
    /// Context: may sleep, no locks of address spaces held.
    pub(super) fn map(&self, map: &Map) -> KmdResult<u64> {
        self.space
            .map_context_pages(map, self.id, &self.pages)
            .map_err(|_| KmdError::NoMemory)
    }

    /// Nobody uses it any more: what the KMD has told its engines is done. Its memory goes with the
    /// last reference, which may be that of a callback.
    ///
    /// Context: may sleep, no locks held. Not inside of the KMD.
    pub(super) fn end(&self) {
        self.space.end_context_pages(self.id);
        self.pages.hide();
    }
}
