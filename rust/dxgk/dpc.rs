// SPDX-License-Identifier: GPL-2.0

//! DpcRoutine: what a KMD does where it may signal, after it has noted it where it may not.

use crate::{
    ddi::{
        class::{
            Dispatch,
            Passive, //
        },
        port::Port, //
    },
    sys::{
        alloc::pin_arc,
        work::OrderedWorker, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// DpcRoutine of one adapter.
#[pin_data]
pub(in crate::dxgk) struct Dpc {
    port: Arc<Port>,
    worker: OrderedWorker,
    #[pin]
    work: Work<Dpc>,
    /// One call at a time.
    #[pin]
    turn: Mutex<()>,
}

impl_has_work! {
    impl HasWork<Self> for Dpc { self.work }
}

impl WorkItem for Dpc {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.call();
    }
}

impl Dpc {
    /// That of the KMD behind `port`.
    ///
    /// Context: may sleep.
    pub(in crate::dxgk) fn new(
        port: &Arc<Port>,
        worker: OrderedWorker,
    ) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                port: port.clone(),
                worker,
                work <- new_work!("Dpc::work"),
                turn <- new_mutex!((), "Dpc::turn"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has the worker call it. In any context.
    pub(in crate::dxgk) fn queue(self: &Arc<Self>) {
        self.worker.enqueue(self.clone());
    }

    /// Calls it. Nothing happens if the KMD is stopped.
    ///
    /// Context: may sleep, no locks held; may be inside the KMD.
    pub(in crate::dxgk) fn call(&self) {
        let _turn = self.turn.lock();

        if let Ok(kmd) = self.port.enter() {
            Dispatch::below(&mut Passive::here(), |class| kmd.dpc_routine(class));
        }
    }
}
