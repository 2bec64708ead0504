// SPDX-License-Identifier: GPL-2.0

//! Who wants larger logs gets them when the process connects its doorbell the next time (GPU-80):
//! so the process itself pays for them, and then asks where they are (GPU-81).
//!
//! Here its doorbell is disconnected, so that this is soon. That is the module's worker's:
//! connections wait for locks that calls hold.

use crate::{
    dxgk::sched::list::Queues,
    sys::{
        alloc::pin_arc,
        work, //
    }, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// The HW queues of an adapter whose logs are to be larger.
#[pin_data]
pub(in crate::dxgk) struct LogRenewal {
    queues: Arc<Queues>,
    #[pin]
    work: Work<LogRenewal>,
}

impl_has_work! {
    impl HasWork<Self> for LogRenewal { self.work }
}

impl WorkItem for LogRenewal {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        for queue in this.queues.iter() {
            if queue.wants_other_logs() {
                queue.disconnect_doorbell();
            }
            work::breathe();
        }
    }
}

impl LogRenewal {
    /// Context: may sleep.
    pub(in crate::dxgk) fn new(queues: &Arc<Queues>) -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                queues: queues.clone(),
                work <- new_work!("LogRenewal::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Some queue wants larger logs than it has.
    ///
    /// Context: any; queues work only.
    pub(in crate::dxgk) fn request(self: &Arc<Self>) {
        if let Some(worker) = work::worker() {
            // It fails only if it is queued already, and has not begun.
            let _queued = worker.enqueue::<_, 0>(self.clone()).is_ok();
        }
    }
}
