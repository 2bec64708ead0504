// SPDX-License-Identifier: GPL-2.0

//! Several new handles of one call, which become usable together.

use super::Call;
use crate::{
    dxgk::{
        handle::{
            open_resource::PendingAllocations,
            HandleTarget,
            Parent,
            Reserved, //
        },
        share::global_table::ReservedGlobal, //
    },
    error::DxgResult, //
};
use kernel::prelude::*;

/// Reserved handles, in the order of their numbers. Dropping it undoes everything.
pub(super) struct Handles<'a> {
    call: Call<'a>,
    reserved: KVVec<Reserved<'a>>,
    /// Global handle of the same object, if it gets one.
    pub(super) global: Option<ReservedGlobal<'a>>,
    /// What the open resource gets. Dropped after the handles.
    pub(super) added: Option<PendingAllocations>,
}

impl<'a> Handles<'a> {
    /// No handles yet; room for `count`.
    pub(super) fn new(call: Call<'a>, count: usize) -> DxgResult<Self> {
        Ok(Self {
            call,
            reserved: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?,
            global: None,
            added: None,
        })
    }

    /// Reserves one more and returns its number.
    pub(super) fn reserve(
        &mut self,
        item: HandleTarget,
        parent: Option<&Parent>,
    ) -> DxgResult<u32> {
        let reserved = self.call.process.handles.reserve(item, parent)?;
        let number = reserved.handle();

        self.reserved.push(reserved, GFP_KERNEL_ACCOUNT)?;
        Ok(number)
    }

    /// The numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.reserved.iter().map(Reserved::handle)
    }

    /// Makes all of them usable.
    pub(super) fn commit(mut self) {
        if let Some(added) = &mut self.added {
            added.commit();
        }
        while let Some(handle) = self.reserved.pop() {
            let number = handle.handle();

            handle.commit();
            if self
                .added
                .as_ref()
                .is_some_and(PendingAllocations::is_too_late)
            {
                // A call that destroyed the resource meanwhile could not destroy handles that did
                // not resolve yet.
                let table = &self.call.process.handles;
                let _gone =
                    table.destroy(number, |item| matches!(item, HandleTarget::Allocation(_)));
            }
        }
        if let Some(global) = self.global.take() {
            global.commit();
        }
    }
}

impl Drop for Handles<'_> {
    /// The last number first, so that all of them are given back (RES-4).
    fn drop(&mut self) {
        while let Some(handle) = self.reserved.pop() {
            drop(handle);
        }
    }
}
