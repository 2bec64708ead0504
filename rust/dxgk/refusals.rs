// SPDX-License-Identifier: GPL-2.0

//! The calls of a process that were refused last. Only those who may inspect the process read them,
//! and nothing is printed.
//!
//! LOCK: `kept` is a leaf. It is not taken by calls that succeed.

use crate::{
    logic::refusals::{
        Answer,
        Refusal,
        Refusals,
        KEPT, //
    },
    sys::time, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// The last refusals of one process. All room that they need is here.
#[pin_data]
pub(crate) struct LastRefusals {
    #[pin]
    kept: SpinLock<Refusals>,
}

impl LastRefusals {
    /// Nothing was refused.
    pub(in crate::dxgk) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            kept <- new_spinlock!(Refusals::new(), "LastRefusals::kept"),
        })
    }

    /// A call of the process is refused now.
    pub(crate) fn record(&self, call: u32, answer: Answer) {
        let now = time::now_ns();

        self.kept.lock().record(call, answer, now);
    }

    /// Copies of all, in no order.
    pub(crate) fn all(&self) -> [Option<Refusal>; KEPT] {
        self.kept.lock().all()
    }
}
