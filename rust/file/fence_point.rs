// SPDX-License-Identifier: GPL-2.0

//! A pollable descriptor for one value of one fence (FEN-168).
//!
//! It becomes readable once CurrentValue has reached the value and stays so, even after a rewind.
//! It hangs up if the fence retires. It is not a sync_file: user space decides when, and whether,
//! it fires.

use crate::{
    dxgk::sync::{
        cpu_wait::{
            self,
            Element, //
        },
        pending_waits::PendingWaits,
        waiter::Waiter,
        wake::WakePollers, //
    },
    error::DxgResult,
    logic::wait_set::WaitEnd,
    sys::{
        file::object_file::{
            events,
            ObjectFile, //
        },
        task::credentials::Credentials,
        wait_queue::WaitQueue, //
    }, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::Arc, //
};

/// One fence point. The file holds the waiter, and so the wait queue, until it is released.
pub(crate) struct FencePoint {
    waiter: Arc<Waiter<WakePollers>>,
    object: u64,
    /// The creator of the fence.
    creator: Credentials,
    value: u64,
}

impl FencePoint {
    /// A fence point that waits for `element`.
    ///
    /// Context: a system call, no locks held.
    pub(crate) fn new(waits: &Arc<PendingWaits>, element: &Element) -> DxgResult<Arc<Self>> {
        let point = Arc::new(
            Self {
                waiter: cpu_wait::poller(waits)?,
                object: element.fence.header.id(),
                creator: element.fence.header.creator,
                value: element.value,
            },
            GFP_KERNEL_ACCOUNT,
        )?;

        cpu_wait::poll(&point.waiter, element)?;
        Ok(point)
    }
}

impl ObjectFile for FencePoint {
    fn name(&self) -> &'static CStr {
        c"[DxgkFencePoint]"
    }

    fn show(&self, m: &SeqFile) {
        let signalled = self.waiter.set.outcome() == Some(WaitEnd::Satisfied);

        seq_print!(m, "dxg-type:\tDxgkFencePoint\n");
        // As for NT handles (RES-15).
        if Credentials::of_caller().may_inspect(&self.creator) {
            seq_print!(m, "dxg-object:\t{}\n", self.object);
        }
        seq_print!(m, "dxg-value:\t{}\n", self.value);
        seq_print!(m, "dxg-signalled:\t{}\n", u32::from(signalled));
    }

    fn pollers(&self) -> Option<&WaitQueue> {
        Some(&self.waiter.receiver.queue)
    }

    fn events(&self) -> u32 {
        match self.waiter.set.outcome() {
            Some(WaitEnd::Satisfied) => events::IN,
            Some(WaitEnd::Orphaned | WaitEnd::Cancelled) => events::HANG_UP,
            None => 0,
        }
    }

    fn release(&self) {
        self.waiter.cancel();
    }
}
