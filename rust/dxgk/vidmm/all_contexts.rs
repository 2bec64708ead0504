// SPDX-License-Identifier: GPL-2.0

//! All contexts of an adapter, which are suspended together: for D3 (GPU-28), or whatever else must
//! not happen while one of them runs. They are found by their address spaces.
//!
//! LOCK: `state` is a mutex, outside `Contexts::state`; contexts are suspended under it, which
//! waits for engines.

use super::contexts::{
    Contexts,
    Why, //
};
use crate::{
    dxgk::stats::next_id,
    error::DxgResult,
    sys::alloc::{
        pin_arc,
        tree_node, //
    }, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        Mutex, //
    }, //
};

struct State {
    /// By any number.
    spaces: RBTree<u64, Arc<Contexts>>,
    /// How many want them to be suspended.
    holds: u32,
}

/// All contexts of one adapter.
#[pin_data]
pub(in crate::dxgk) struct AllContexts {
    #[pin]
    state: Mutex<State>,
}

/// The contexts of an address space, as long as that is there.
pub(super) struct Joined {
    all: Arc<AllContexts>,
    number: u64,
}

impl AllContexts {
    /// None.
    pub(in crate::dxgk) fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                state <- new_mutex!(
                    State {
                        spaces: RBTree::new(),
                        holds: 0,
                    },
                    "AllContexts::state"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// The contexts of a new address space are among them, as long as the result is kept.
    ///
    /// Context: may sleep, no locks of contexts held.
    pub(super) fn join(self: &Arc<Self>, contexts: &Arc<Contexts>) -> DxgResult<Joined> {
        let number = next_id();
        let node = tree_node(number, contexts.clone())?;
        let mut state = self.state.lock();

        if state.holds != 0 {
            contexts.suspend(Why::Adapter);
        }
        // Numbers are different.
        let _nothing = state.spaces.insert(node);

        drop(state);
        Ok(Joined {
            all: self.clone(),
            number,
        })
    }

    /// Suspends all of them, and those that come: on return none runs.
    ///
    /// Context: may sleep, no locks of contexts held.
    pub(in crate::dxgk) fn suspend(&self) {
        let mut state = self.state.lock();

        if state.holds == 0 {
            for contexts in state.spaces.values() {
                contexts.suspend(Why::Adapter);
            }
        }
        // OVERFLOW: there are few reasons.
        state.holds = state.holds.wrapping_add(1);
    }

    /// They go on when all have called this that have called [`AllContexts::suspend`].
    ///
    /// Context: as there.
    pub(in crate::dxgk) fn resume(&self) {
        let mut state = self.state.lock();

        state.holds = state.holds.saturating_sub(1);
        if state.holds == 0 {
            for contexts in state.spaces.values() {
                contexts.resume(Why::Adapter);
            }
        }
    }
}

impl Drop for Joined {
    /// Context: may sleep, no locks held.
    fn drop(&mut self) {
        let node = self.all.state.lock().spaces.remove_node(&self.number);

        drop(node);
    }
}
