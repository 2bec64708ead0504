// SPDX-License-Identifier: GPL-2.0

//! The fences that the GPU addresses of a process on one adapter show (FEN-1, FEN-12).
//!
//! A fence is mapped there once for all handles of the process on that adapter; its page is mapped
//! once for all fences in it.
//!
//! LOCK: `FenceViews::views` is a mutex and a leaf. Nothing is mapped, unmapped or dropped under
//! it.

use super::{
    fence::Fence,
    gpu_fences::{
        GpuFences,
        ShownFence, //
    }, //
};
use crate::{
    dxgk::vidmm::{
        address_space::AddressSpace,
        shown_page::ShownPage, //
    },
    error::{
        DxgResult,
        Status, //
    },
    sys::alloc::tree_node, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// A fence in the GPU addresses of a process.
struct View {
    /// How many handles show it.
    opens: u32,
    address: u64,
    /// Unmapped before the fence is hidden.
    _page: ShownPage,
    _shown: ShownFence,
}

/// The fences that GPU addresses of a process show.
#[pin_data]
pub(crate) struct FenceViews {
    /// By the ids of the fences.
    #[pin]
    views: Mutex<RBTree<u64, View>>,
}

impl FenceViews {
    /// None.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            views <- new_mutex!(RBTree::new(), "FenceViews::views"),
        })
    }

    /// Shows a fence in the GPU addresses of `space`, or adds a handle to those that do;
    /// returns the GPU address of its value.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn open(
        &self,
        fence: &Arc<Fence>,
        fences: &Arc<GpuFences>,
        space: &Arc<AddressSpace>,
    ) -> DxgResult<u64> {
        let id = fence.header.id();

        if let Some(address) = self.reopen(id)? {
            return Ok(address);
        }

        let (page, offset) = fence.storage().place();
        let page = ShownPage::new(space, page, false)?;
        let fresh = View {
            opens: 1,
            address: page.address(offset),
            _page: page,
            _shown: fences.show(fence)?,
        };
        let address = fresh.address;
        // Dropped after the lock if another thread has been faster.
        let node = tree_node(id, fresh)?;
        let mut views = self.views.lock();

        if let Some(other) = views.get_mut(&id) {
            let opens = other.opens.checked_add(1).ok_or(Status::NO_MEMORY);
            let known = other.address;

            if let Ok(opens) = opens {
                other.opens = opens;
            }
            drop(views);
            drop(node);
            opens?;
            return Ok(known);
        }

        let _nothing = views.insert(node);

        Ok(address)
    }

    fn reopen(&self, id: u64) -> DxgResult<Option<u64>> {
        let mut views = self.views.lock();
        let Some(view) = views.get_mut(&id) else {
            return Ok(None);
        };

        view.opens = view.opens.checked_add(1).ok_or(Status::NO_MEMORY)?;
        Ok(Some(view.address))
    }

    /// One handle less. On return no engine uses the address, if it was the last one and the page
    /// has no other fence.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn close(&self, id: u64) {
        let mut views = self.views.lock();
        let is_last = views.get_mut(&id).is_some_and(|view| {
            view.opens -= 1;
            view.opens == 0
        });
        let node = is_last.then(|| views.remove_node(&id)).flatten();

        drop(views);
        drop(node);
    }
}
