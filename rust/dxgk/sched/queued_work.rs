// SPDX-License-Identifier: GPL-2.0

//! What is to be done when the work is through that the queues of a process have on one adapter
//! (RES-30): memory that commands may still use is freed then.
//!
//! Time is cut into epochs. Each submission holds the epoch in which it was queued, until it has
//! retired or was discarded. An epoch holds the next one, so that it is over when all submissions
//! of it and of those before are gone. [`QueuedWork::after`] ends the present epoch and leaves with
//! it what is to be done when it is over. So it costs the same however many submissions there are.
//!
//! LOCK: `present` is a leaf. Epochs are dropped without it.

use crate::sys::alloc::pin_arc;
use kernel::{
    alloc::AllocError,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// What is done later.
pub(crate) trait AfterWork: Send + Sync {
    /// All submissions from before are gone.
    ///
    /// Context: may sleep, no locks held; any task, mostly the adapter's worker, for which the
    /// queues of others wait: what takes long is left to the module's worker.
    fn run(self: Arc<Self>);
}

/// What becomes of an epoch that has ended.
struct Ended {
    next: Arc<Epoch>,
    then: Arc<dyn AfterWork>,
}

/// Submissions that were queued between two calls of [`QueuedWork::after`].
#[pin_data(PinnedDrop)]
pub(in crate::dxgk) struct Epoch {
    #[pin]
    ended: SpinLock<Option<Ended>>,
}

impl Epoch {
    fn new() -> Result<Arc<Self>, AllocError> {
        pin_arc(
            pin_init!(Self {
                ended <- new_spinlock!(None, "Epoch::ended"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }
}

#[pinned_drop]
impl PinnedDrop for Epoch {
    /// Context: may sleep, no locks held.
    fn drop(self: Pin<&mut Self>) {
        let mut ended = self.ended.lock().take();

        // Without recursion: there may be many that have had nobody but the epoch before.
        while let Some(Ended { next, then }) = ended {
            then.run();
            ended = Arc::into_unique_or_drop(next).and_then(|last| last.ended.lock().take());
        }
    }
}

/// The work of a process on one adapter.
#[pin_data]
pub(crate) struct QueuedWork {
    #[pin]
    present: SpinLock<Arc<Epoch>>,
}

impl QueuedWork {
    /// There is none.
    pub(in crate::dxgk) fn new() -> Result<Arc<Self>, AllocError> {
        let first = Epoch::new()?;

        pin_arc(
            pin_init!(Self {
                present <- new_spinlock!(first, "QueuedWork::present"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// The present epoch, for a submission that is about to be queued.
    pub(in crate::dxgk) fn epoch(&self) -> Arc<Epoch> {
        self.present.lock().clone()
    }

    /// Makes room for one [`Cut::after`], which then cannot fail.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn cut(self: &Arc<Self>) -> Result<Cut, AllocError> {
        Ok(Cut {
            work: self.clone(),
            next: Epoch::new()?,
        })
    }
}

/// Room for a cut between what was queued and what will be.
pub(crate) struct Cut {
    work: Arc<QueuedWork>,
    next: Arc<Epoch>,
}

impl Cut {
    /// Runs `then` when everything that was queued before this call is gone: at once, in the
    /// caller, if nothing is there.
    ///
    /// Context: may sleep, no locks held.
    pub(in crate::dxgk) fn after(self, then: Arc<dyn AfterWork>) {
        let Self { work, next } = self;
        let before = core::mem::replace(&mut *work.present.lock(), next.clone());

        // Nobody ends it meanwhile: this is a reference to it.
        *before.ended.lock() = Some(Ended { next, then });
        drop(before);
    }
}
