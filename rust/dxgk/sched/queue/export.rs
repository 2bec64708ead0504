// SPDX-License-Identifier: GPL-2.0

//! Signals that become sync files (FEN-161, FEN-162).
//!
//! An exported point is signalled in the turn that has carried its item out. It fails when the item
//! is discarded: with -EIO if its device is in error, otherwise with -ECANCELED. Nothing takes it
//! back, and it needs neither the process nor the fence.

use super::{
    exports::Search,
    state::Runner,
    Queue, //
};
use crate::dxgk::sched::{
    export::{
        Found,
        Missing,
        NewExport,
        Wanted, //
    },
    wait::{
        Bound,
        KickQueue, //
    }, //
};
use crate::sys::{
    dma_fence::{
        own::{
            Failure,
            Unsignalled, //
        },
        DmaFence, //
    },
    work, //
};
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

impl Queue {
    /// Looks for the first signal that gives a fence a value, with nothing before it that users can
    /// delay. Waits for which `is_assumed` holds are taken for bounded. If there is `export`, that
    /// is taken and becomes the one of the signal.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn find(
        &self,
        wanted: Wanted,
        is_assumed: &dyn Fn(u64) -> bool,
        export: &mut Option<NewExport>,
    ) -> Found {
        let has_timeout = !self.disable_gpu_timeout;
        let mut from = 0;

        loop {
            let search = self
                .state
                .lock()
                .search(has_timeout, wanted, from, is_assumed, export);

            match search {
                Search::More(next) => from = next,
                Search::Over(found) => return found,
            }
            work::breathe();
        }
    }

    /// What the wait with this number waits for and is not there, from a place on; `None` if there
    /// is nothing, or the wait is over.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn missing_to(&self, number: u64, from: usize) -> Option<Missing> {
        let waiter = self.state.lock().waiter(number)?;
        let (place, element) = waiter
            .receiver
            .elements
            .iter()
            .enumerate()
            .skip(from)
            .find(|(_, element)| !element.holds())?;

        Some(Missing {
            place,
            wanted: Wanted {
                fence: element.fence.header.id(),
                value: element.value,
            },
        })
    }

    /// The wait with this number is over when all these have signalled, if it is not before.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn bind_wait(
        self: &Arc<Self>,
        number: u64,
        fences: &[DmaFence],
    ) -> Result<(), AllocError> {
        let mut bounds = KVec::with_capacity(fences.len(), GFP_KERNEL_ACCOUNT)?;

        for fence in fences {
            let bound = Bound::new(fence.clone(), KickQueue(self.clone()))?;

            bounds.push(bound, GFP_KERNEL_ACCOUNT)?;
        }

        // What is not taken is dropped after the lock.
        let mut bounds = Some(bounds);

        self.state.lock().bind(number, &mut bounds);
        // They may have signalled before it had them.
        self.advance(Runner::Patient);
        Ok(())
    }

    /// An exported point signals: its item is over, or it will be discarded.
    ///
    /// Context: may sleep, no locks held.
    pub(super) fn export_ends(&self, point: Unsignalled, is_over: bool) {
        point.signal(if is_over {
            Ok(())
        } else if self.device.check().is_err() {
            Err(Failure::Lost)
        } else {
            Err(Failure::Cancelled)
        });
    }
}
