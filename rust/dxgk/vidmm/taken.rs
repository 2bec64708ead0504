// SPDX-License-Identifier: GPL-2.0

//! GPU addresses that a call has reserved or mapped, until its caller knows of them (RES-3, RES-4).
//! The call may still fail: when its paging fence needs memory, or when the caller's struct cannot
//! be written. Then the addresses become what they were.

use super::{
    address_space::AddressSpace,
    residency::Opening,
    undo::Undo, //
};
use crate::{
    error::DxgResult,
    logic::{
        gpu_ranges::PAGE,
        gpu_va_rules::{
            Map,
            Reserve, //
        }, //
    }, //
};
use kernel::sync::Arc;

/// Such addresses. Dropping it takes them back.
pub(crate) struct Taken {
    space: Arc<AddressSpace>,
    /// `None` when the caller knows of them.
    undo: Option<Undo>,
    /// The first one.
    pub(crate) address: u64,
}

impl Taken {
    fn new(space: &Arc<AddressSpace>, undo: Undo) -> Self {
        Self {
            space: space.clone(),
            address: undo.pages().0.saturating_mul(PAGE),
            undo: Some(undo),
        }
    }

    /// ReserveGpuVirtualAddress, see [`AddressSpace::reserve`].
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn reserve(space: &Arc<AddressSpace>, request: &Reserve) -> DxgResult<Self> {
        Ok(Self::new(space, space.reserve(request)?))
    }

    /// MapGpuVirtualAddress, see [`AddressSpace::map`].
    ///
    /// Context: may sleep, no locks held.
    pub(crate) fn map(
        space: &Arc<AddressSpace>,
        request: &Map,
        opened: Option<Opening<'_>>,
    ) -> DxgResult<Self> {
        Ok(Self::new(space, space.map(request, opened)?))
    }

    /// The caller knows of them.
    pub(crate) fn commit(mut self) {
        self.undo = None;
    }
}

impl Drop for Taken {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take() {
            self.space.undo(undo);
        }
    }
}
