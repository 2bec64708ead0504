// SPDX-License-Identifier: GPL-2.0

//! A worker for what a KMD asks for by callbacks: one thing after the other, in the order in which
//! it was asked for.
//!
//! LOCK: `jobs` is a spinlock, a leaf. Nothing is dropped under it.

use crate::sys::{
    alloc::{
        pin_arc,
        tree_node, //
    },
    work::OrderedWorker, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// Something to do.
pub(super) trait Queued: Send + Sync {
    /// Does it.
    ///
    /// Context: the worker, no locks held.
    fn run(&self);
}

/// The worker, and what it has to do.
#[pin_data]
pub(super) struct Lane {
    /// By number.
    #[pin]
    jobs: SpinLock<RBTree<u64, Arc<dyn Queued>>>,
    #[pin]
    work: Work<Lane>,
    queue: OrderedWorker,
}

impl_has_work! {
    impl HasWork<Self> for Lane { self.work }
}

impl Lane {
    /// One whose threads carry this name.
    ///
    /// Context: may sleep.
    pub(super) fn new(name: &CStr) -> Result<Arc<Self>, AllocError> {
        let queue = OrderedWorker::start(name)?;

        pin_arc(
            pin_init!(Self {
                jobs <- new_spinlock!(RBTree::new(), "Lane::jobs"),
                work <- new_work!("Lane::work"),
                queue,
            }),
            GFP_KERNEL,
        )
    }

    /// Leaves something to the worker. Numbers are different, and in the order of the calls.
    ///
    /// Context: may sleep.
    pub(super) fn enqueue(
        self: &Arc<Self>,
        number: u64,
        job: Arc<dyn Queued>,
    ) -> Result<(), AllocError> {
        let node = tree_node(number, job)?;
        let _nothing = self.jobs.lock().insert(node);

        self.queue.enqueue(self.clone());
        Ok(())
    }
}

impl WorkItem for Lane {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        loop {
            let first = {
                let mut jobs = this.jobs.lock();
                let first = jobs.cursor_front_mut();

                first.map(|first| first.remove_current().1)
            };
            let Some(node) = first else {
                return;
            };

            node.to_key_value().1.run();
        }
    }
}
